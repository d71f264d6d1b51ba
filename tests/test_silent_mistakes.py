"""Mistakes that would pass unseen: options, agents and groups that do not exist, and steps before a reset."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from toys.herd import Herd
from toys.nim import Nim

import gpuzoo
from gpuzoo.interfaces.aec import TurnBasedEnv
from gpuzoo.interfaces.parallel import AgentView
from gpuzoo.testing.tools import assert_same

INTERFACES: dict[str, Any] = {
    "gymnasium.make": lambda: gymnasium.make("gpuzoo/CartPole-v1"),
    "make_vec": lambda: gpuzoo.make_vec("CartPole-v1", 2, device="cpu"),
    "make": lambda: gpuzoo.make("CartPole-v1", 2, device="cpu"),
    "make_pool": lambda: gpuzoo.make_pool("CartPole-v1", 2, device="cpu"),
    "parallel_env": lambda: gpuzoo.parallel_env(Herd),
    "aec_env": lambda: gpuzoo.aec_env(Nim),
    "aec_env of a parallel game": lambda: gpuzoo.aec_env(Herd),
}


@pytest.mark.parametrize("interface", INTERFACES)
def test_unknown_option_of_reset(interface):
    env = INTERFACES[interface]()
    env.reset(seed=1)
    before = copy.deepcopy(env.unwrapped.simulator if hasattr(env, "unwrapped") else env.simulator).arrays
    for options in ({"reset_maks": np.ones(2, bool)}, {"parms": {}}, {"low": -0.1, "high": 0.1}):
        with pytest.raises(
            ValueError, match=f"has no option of reset '{next(iter(options))}'; (did you mean|there are)"
        ):
            env.reset(options=options)
    with pytest.raises(TypeError, match="options must be a dictionary or None, not 3"):
        env.reset(options=3)
    simulator = env.unwrapped.simulator if hasattr(env, "unwrapped") else env.simulator
    assert_same("after what was refused", before, simulator.arrays)
    env.reset(options={})


def test_an_option_that_only_batches_have():
    with pytest.raises(ValueError, match="Herd-v0 has no option of reset 'reset_mask'"):
        gpuzoo.parallel_env(Herd).reset(options={"reset_mask": np.ones(1, bool)})


# ---- before a reset ----


def test_step_of_a_parallel_env_before_reset():
    env = gpuzoo.parallel_env(Herd)
    for actions in ({}, {agent: 0 for agent in env.possible_agents}):
        with pytest.raises(RuntimeError, match=r"Herd-v0: call reset\(\) before step\(\)"):
            env.step(actions)
    env.reset(seed=0)
    assert set(env.step({agent: 0 for agent in env.agents})[0]) == set(env.possible_agents)


def test_step_of_a_turn_based_env_before_reset():
    with pytest.raises(RuntimeError, match=r"Nim-v0: call reset\(\) before step\(\)"):
        TurnBasedEnv(AgentView(Nim)).step(0)


def test_step_after_the_end_of_an_episode_is_no_mistake():
    env = gpuzoo.parallel_env(Herd, max_cycles=1)
    env.reset(seed=0)
    env.step({agent: 0 for agent in env.agents})
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})


# ---- agents and groups ----


def test_unknown_agent():
    env = gpuzoo.parallel_env(Herd)
    env.reset(seed=0)
    everybody = {agent: 1 for agent in env.agents}
    before = env.simulator.arrays["action"].copy()
    with pytest.raises(ValueError, match="Herd-v0 has no agent 'sheeep_0'; did you mean 'sheep_"):
        env.step(everybody | {"sheeep_0": 1})
    np.testing.assert_array_equal(env.simulator.arrays["action"], before)
    assert env.simulator.arrays["elapsed_steps"][0] == 0


def test_unknown_group():
    env = gpuzoo.make(Herd, 2, device="cpu")
    env.reset(seed=0)
    before = env.simulator.arrays["action"].copy()
    with pytest.raises(ValueError, match="Herd-v0 has no group 'wolfs'; did you mean 'wolf'"):
        env.step({"sheep": np.ones((2, 3), int), "wolfs": np.ones((2, 2), int)})
    np.testing.assert_array_equal(env.simulator.arrays["action"], before)


# ---- shapes that a caller must give ----


def test_shape_of_one_action():
    env = gymnasium.make("gpuzoo/CartPole-v1")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"^the action must have shape \(\), not \(1,\)\.$"):
        env.step([1])
    with pytest.raises(TypeError, match=r"^the action must be an integer in Discrete\(2\), not float64\.$"):
        env.step(0.5)
    glide = gymnasium.make("gpuzoo/Pendulum-v1")
    glide.reset(seed=0)
    with pytest.raises(ValueError, match=r"^the action must have shape \(1,\), not \(1, 1\)\.$"):
        glide.step([[1.0]])
    herd = gpuzoo.parallel_env(Herd)
    herd.reset(seed=0)
    with pytest.raises(ValueError, match=r"^the action of wolf_1 must have shape \(\), not \(2,\)\.$"):
        herd.step({agent: 0 for agent in herd.agents} | {"wolf_1": [0, 1]})
