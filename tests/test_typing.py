"""What a user's type checker knows. `make lint` checks this file: mypy must find the types, and the mistakes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from typing_extensions import assert_type

import gpuzoo
from gpuzoo.interfaces.dm import DmPool, TimeStep
from gpuzoo.interfaces.parallel import GpuzooParallelEnv

Groups = dict[str, Any]


def test_types_of_envs() -> None:
    batch = gpuzoo.make("SimpleSpread-v0", num_envs=2, device="cpu", output="numpy", copy=True)
    assert_type(batch, gpuzoo.BatchEnv)
    assert_type(batch.simulator, gpuzoo.Simulator)
    assert_type(batch.reset(seed=0), tuple[Groups, Groups])
    assert_type(batch.step(batch.random_actions()), tuple[Groups, Groups, Groups, Groups, Groups])

    rows = gpuzoo.make_vec("SimpleSpread-v0", num_worlds=2, device="cpu", statistics=True)
    assert_type(rows, gpuzoo.VectorEnv)
    assert_type(rows.num_worlds, int)

    env = gpuzoo.parallel_env("SimpleSpread-v0", max_cycles=5, N=4)
    assert_type(env, GpuzooParallelEnv)
    env.reset(seed=0)
    rewards = env.step({agent: 0 for agent in env.agents})[1]
    assert_type(rewards, dict[str, float])
    assert len(rewards) == 4
    assert_type(env.state(), np.ndarray[Any, Any])

    pool = gpuzoo.make_pool("CartPole-v1", 2, num_threads=1, device="cpu")
    assert_type(pool, gpuzoo.EnvPool)
    timed = gpuzoo.make_pool("CartPole-v1", 2, num_threads=1, env_type="dm", device="cpu")
    assert_type(timed, DmPool)
    assert_type(timed.reset(), TimeStep)
    assert_type(gpuzoo.get("CartPole-v1"), gpuzoo.EnvDef)
    for made in (batch, rows, env, pool, timed):
        made.close()


def test_types_find_mistakes() -> None:
    """mypy refuses these lines, and complains of a mark that hides nothing."""
    for wrong in (
        lambda: gpuzoo.make("CartPole-v1", num_envs="2"),  # type: ignore[arg-type]
        lambda: gpuzoo.make("CartPole-v1", output="jax"),  # type: ignore[arg-type]
        lambda: gpuzoo.make_vec("CartPole-v1", 2, masks="both"),  # type: ignore[arg-type]
        lambda: gpuzoo.parallel_env("TagGridWorld-v0", max_cycles="never"),  # type: ignore[arg-type]
        lambda: gpuzoo.make_pool("CartPole-v1", env_type="gym"),  # type: ignore[call-overload]
    ):
        with pytest.raises((ValueError, TypeError)):
            wrong()


@pytest.mark.parametrize("make", [gpuzoo.make, gpuzoo.make_vec, gpuzoo.parallel_env, gpuzoo.aec_env])
def test_help_names_the_arguments(make: Any) -> None:
    assert "device" in inspect.signature(make).parameters
    assert inspect.signature(make).return_annotation not in (None, inspect.Signature.empty)
