"""A game's parameters and other attributes of an env, by the names and calls that libraries use."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pettingzoo import ParallelEnv
from toys.glide import Glide
from toys.herd import Herd

import gpuzoo
from gpuzoo import SingleEnv, VectorEnv, make_pool, make_vec
from gpuzoo.interfaces.parallel import AgentView, GpuzooParallelEnv


def moved(env: Any) -> Any:
    env.reset(seed=0)
    return env.step(1)[0]


# ---- one env ----


@pytest.mark.parametrize("way", ["set_wrapper_attr", "set_wrapper_attr without force", "attribute"])
def test_a_parameter_of_a_single_env_acts(way):
    env = gymnasium.make("gpuzoo/CartPole-v1")
    wanted = moved(gymnasium.make("gpuzoo/CartPole-v1", gravity=3.0))
    assert env.get_wrapper_attr("gravity") == env.unwrapped.gravity == 9.8
    assert (moved(env) != wanted).any()
    if way == "attribute":
        env.unwrapped.gravity = 3.0
    else:
        assert env.set_wrapper_attr("gravity", 3.0, force=way == "set_wrapper_attr")
    assert env.get_wrapper_attr("gravity") == 3.0
    np.testing.assert_array_equal(moved(env), wanted)


def test_a_parameter_of_a_pettingzoo_env_acts():
    env = gpuzoo.parallel_env("SimpleSpread-v0")
    env.collision_penalty = 0.25
    assert env.collision_penalty == env.unwrapped.collision_penalty == 0.25
    assert env.simulator.params["collision_penalty"] == 0.25
    assert env.N == 3


def test_a_parameter_that_cannot_be_set():
    env = SingleEnv(Glide)
    with pytest.raises(TypeError, match="Glide-v0: past is compiled into the kernel: make a new env to change it"):
        env.past = 5
    with pytest.raises(ValueError, match=r"wind must be at least 0\.0 and at most 1\.0, not 7\.0"):
        env.wind = 7.0
    assert not {"past", "wind"} & set(vars(env))
    with pytest.raises(AttributeError, match="no attribute 'winds'"):
        _ = env.winds
    env.note = "mine"
    assert env.note == "mine"


def test_no_interface_hides_a_parameter(registered_game):
    """An attribute or an argument of an interface would be something else than the game's parameter."""
    names = set(type(registered_game.Config()).__dataclass_fields__)
    kinds = [SingleEnv] if registered_game.single() else [AgentView, GpuzooParallelEnv]
    for kind in (*kinds, VectorEnv, gpuzoo.EnvPool, gpuzoo.BatchEnv):
        ours = {*dir(kind), *inspect.signature(kind.__init__).parameters}
        assert not names & ours - set(dir(ParallelEnv)), kind  # SwitchRiddle's num_agents is PettingZoo's, too


# ---- batches ----


def test_get_attr_as_sync_vector_env():
    ours = VectorEnv("CartPole-v1", 3, device="cpu", render_mode="rgb_array")
    theirs = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1", render_mode="rgb_array")] * 3)
    for name in ("gravity", "length", "x_threshold", "render_mode", "observation_space", "action_space"):
        assert ours.get_attr(name) == theirs.get_attr(name) == ours.call(name), name
    ours.reset(seed=0)
    frames = ours.call("render")
    assert len(frames) == 3
    np.testing.assert_array_equal(frames, ours.render())
    assert VectorEnv("CartPole-v1", 2, device="cpu").call("render") == (None, None)
    with pytest.raises(AttributeError, match="no method 'reset' of their own: only 'render' can be called for each"):
        ours.call("reset")
    with pytest.raises(AttributeError, match="gravty"):
        ours.get_attr("gravty")


def test_set_attr_reaches_parameters():
    env = VectorEnv("CartPole-v1", 3, device="cpu", gravity=[9.8, 9.8, 9.8])
    env.set_attr("gravity", [1.0, 2.0, 3.0])
    assert env.get_attr("gravity") == (1.0, 2.0, 3.0)
    env.set_attr("gravity", np.array([4.0, 5.0, 6.0]))
    assert env.get_attr("gravity") == (4.0, 5.0, 6.0)
    env.set_attr("gravity", 7.0)
    env.set_attr("length", [0.25] * 3)
    assert env.get_attr("gravity") == (7.0, 7.0, 7.0)
    assert env.get_attr("length") == (0.25,) * 3
    other = VectorEnv("CartPole-v1", 3, device="cpu", gravity=7.0, length=0.25)
    for one in (env, other):
        one.reset(seed=0)
    np.testing.assert_array_equal(env.step([0, 1, 1])[0], other.step([0, 1, 1])[0])


def test_rows_of_an_env_share_its_parameters():
    env = make_vec("SimpleSpread-v0", num_worlds=2, device="cpu", collision_penalty=[1.0, 1.0])
    env.set_attr("collision_penalty", [0.5] * 3 + [0.25] * 3)
    assert env.get_attr("collision_penalty") == (0.5,) * 3 + (0.25,) * 3
    np.testing.assert_array_equal(env.simulator.params["collision_penalty"], [0.5, 0.25])
    with pytest.raises(ValueError, match="collision_penalty belongs to an env: its 3 rows must have the same value"):
        env.set_attr("collision_penalty", np.linspace(0, 1, 6))
    with pytest.raises(ValueError, match=r"collision_penalty must be one value or 6 of them, not \(2,\)"):
        env.set_attr("collision_penalty", [0.5, 0.25])


def test_what_set_attr_refuses():
    env = VectorEnv("CartPole-v1", 2, device="cpu")
    with pytest.raises(AttributeError, match="CartPole-v1 has no parameter 'gravty'; did you mean 'gravity'"):
        env.set_attr("gravty", 1.0)
    with pytest.raises(ValueError, match="gravity is shared by all envs: give an array of length 2"):
        env.set_attr("gravity", [1.0, 2.0])
    with pytest.raises(TypeError, match="sutton_barto_reward is compiled into the kernel"):
        env.set_attr("sutton_barto_reward", True)


def test_set_attr_of_a_pool():
    pool = make_pool("SimpleSpread-v0", 2, device="cpu", collision_penalty=[1.0, 1.0])
    pool.set_attr("collision_penalty", [0.5, 0.25])
    assert pool.get_attr("collision_penalty") == (0.5, 0.25)


@pytest.mark.parametrize("make", [VectorEnv, make_pool, gpuzoo.make])
def test_a_batch_keeps_no_attribute_that_does_nothing(make):
    env = make("CartPole-v1", 2, device="cpu")
    with pytest.raises(
        AttributeError, match=r"gravity is a parameter of CartPole-v1: set it with simulator\.set_params"
    ):
        env.gravity = 1.0
    assert "gravity" not in vars(env)


# ---- what a batch is ----


def test_which_number_counts_what():
    batch = gpuzoo.make("SimpleSpread-v0", 2, device="cpu")
    rows = make_vec("SimpleSpread-v0", 6, device="cpu")
    pool = make_pool("SimpleSpread-v0", 2, device="cpu")
    assert [env.num_worlds for env in (batch, rows, pool)] == [env.simulator.num_envs for env in (batch, rows, pool)]
    assert (batch.num_worlds, rows.num_worlds, pool.num_worlds) == (2, 2, 2)
    assert (batch.num_envs, rows.num_envs, pool.num_envs) == (2, 6, 2)
    assert repr(rows).startswith("VectorEnv(SimpleSpread-v0, num_envs=6, num_worlds=2, ")
    assert repr(batch).startswith("BatchEnv(SimpleSpread-v0, num_envs=2, agents of an env: 3 agent, ")
    rows.reset(seed=0)
    with pytest.raises(
        ValueError, match=r"actions of 6 rows \(2 envs of 3 agents\) must have shape \(6,\), not \(2,\)"
    ):
        rows.step(np.zeros(2, int))
    with pytest.raises(ValueError, match=r"must have shape \(6,\), for 6 rows \(2 envs of 3 agents\), not \(2,\)"):
        rows.reset(options={"reset_mask": np.ones(2, bool)})
    for env in (batch, rows, pool):
        assert "num_envs" in type(env).__doc__


def test_a_batch_by_groups():
    with gpuzoo.make(Herd, 2, device="cpu") as env:
        assert env.autoreset_mode is AutoresetMode.SAME_STEP
        env.autoreset_mode = "disabled"
        assert env.simulator.autoreset_mode is AutoresetMode.DISABLED
        for group in env.groups:
            assert env.observation_space(group) is env.observation_spaces[group]
            assert env.action_space(group) is env.action_spaces[group]
        with pytest.raises(ValueError, match="Herd-v0 has no group 'wolves'; did you mean 'wolf'"):
            env.action_space("wolves")
        env.reset(seed=0)
    with pytest.raises(RuntimeError, match="this env was closed"):
        env.step({})
