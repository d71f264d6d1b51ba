"""JaxNav: parameters that differ from env to env."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuzoo import Simulator
from gpuzoo.core.configuration import split_config
from gpuzoo.envs.jaxnav.jaxnav import JaxNav
from gpuzoo.testing.spaces import check_parameters
from gpuzoo.testing.tools import assert_same, pick, read


def test_every_other_parameter_may_differ() -> None:
    """All but the bounds of actions, which all envs of a batch share."""
    check_parameters("JaxNav-v0", min_v=0.0, max_v=1.0)


@pytest.mark.rotates
def test_speeds_stay_in_the_bounds_of_their_own_env() -> None:
    bounds = {"min_v": np.array([0.0, 0.25], np.float32), "max_v": np.array([1.0, 0.5], np.float32)}
    batch = Simulator(JaxNav, 2, device="cpu", **bounds)
    alone = [Simulator(JaxNav, 1, device="cpu", **{k: float(v[i]) for k, v in bounds.items()}) for i in range(2)]
    batch.reset(seed=0)
    for i, sim in enumerate(alone):
        sim.reset(seed=i)
    rng = np.random.default_rng(0)
    for _ in range(50):
        actions = rng.uniform([-0.2, -0.5], [1.2, 0.5], (2, 2, 2)).astype(np.float32)
        batch.arrays["action"][...] = actions
        batch.step()
        for i, sim in enumerate(alone):
            sim.arrays["action"][...] = actions[i : i + 1]
            sim.step()
            assert_same(f"env {i}", pick(read(batch), [i]), read(sim))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_v": 2.0}, "min_v must be below max_v: 2.0 >= 1.0"),
        ({"min_v": np.array([0.0, 1.5], np.float32)}, "min_v must be below max_v: 1.5 >= 1.0"),
        ({"act_type": "Discrete", "min_v": -0.5}, "min_v must be 0 for discrete actions"),
        ({"lambda_low": 2.0}, "lambda_low must not be above lambda_high: 2.0 > 1.0"),
        ({"min_dist_to_goal": 3.0, "max_dist_to_goal": 2.0}, "min_dist_to_goal must not be above max_dist_to_goal"),
        ({"layout": "####/#..#/#..#/####"}, "a layout must have 11 rows of 11 cells"),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"JaxNav-v0: {message}"):
        split_config(JaxNav(), 2, values)
