"""AgileRL's vectorized PettingZoo env over one batch: what it returns."""

from __future__ import annotations

import numpy as np
import pytest
from agilerl.vector.pz_vec_env import PettingZooVecEnv

import gpuzoo
from gpuzoo.wrappers.agilerl import AgileRLVecEnv


def test_the_same_as_the_simulator():
    env = AgileRLVecEnv("SimpleSpread-v0", 4, device="cpu", max_episode_steps=7)
    assert isinstance(env, PettingZooVecEnv)
    sim = gpuzoo.Simulator(
        gpuzoo.get("SimpleSpread-v0"), 4, device="cpu", autoreset_mode="same_step", max_episode_steps=7
    )
    sim.reset(3)
    observations, infos = env.reset(seed=3)
    assert infos == {agent: {} for agent in env.possible_agents}
    assert env.observation_space("agent_0").shape == observations["agent_0"].shape == (4, 18)
    assert env.single_action_space("agent_1").n == 5
    for _ in range(20):
        sim.random_actions()
        actions = {a: sim.arrays["action"][:, k, 0].copy() for k, a in enumerate(env.agents)}
        for k, agent in enumerate(env.agents):
            np.testing.assert_array_equal(observations[agent], sim.arrays["observation"][:, k])
        sim.step()
        observations, rewards, terminations, truncations, _ = env.step(actions)
        for k, agent in enumerate(env.agents):
            np.testing.assert_array_equal(rewards[agent], sim.arrays["reward"][:, k])
            np.testing.assert_array_equal(terminations[agent], sim.arrays["terminated"][:, k])
            np.testing.assert_array_equal(truncations[agent], sim.arrays["truncated"][:, k])
    env.close()


def test_agents_that_have_left_are_not_numbers():
    env = AgileRLVecEnv("TagContinuous-v0", 2, device="cpu", max_episode_steps=60)
    env.reset(seed=0)
    there = {agent: np.ones(2, np.bool_) for agent in env.agents}
    rng, gone = np.random.default_rng(0), 0
    for _ in range(130):
        actions = {a: rng.integers(0, s.nvec, (2, len(s.nvec))).astype(float) for a, s in spaces_of(env).items()}
        for agent in env.agents:
            actions[agent][~there[agent]] = np.nan
        observations, rewards, terminations, truncations, _ = env.step(actions)
        for agent in env.agents:
            for values in (rewards, terminations, truncations):
                np.testing.assert_array_equal(np.isnan(values[agent]), ~there[agent])
            there[agent] = ~np.isnan(observations[agent]).any(1)
            gone += int((~there[agent]).sum())
    assert gone


def spaces_of(env):
    return {agent: env.single_action_space(agent) for agent in env.agents}


def test_masks_are_in_infos():
    env = AgileRLVecEnv("LevelBasedForaging-v3", 3, device="cpu")
    observations, infos = env.reset(seed=0)
    assert {x.shape for x in observations.values()} == {(3, 12)}
    assert {info["action_mask"].shape for info in infos.values()} == {(3, 6)}
    for agent, info in infos.items():
        k = env.agents.index(agent)
        np.testing.assert_array_equal(info["action_mask"], env.simulator.arrays["action_mask"][:, k])


def test_mistakes():
    with pytest.raises(ValueError, match="has one agent"):
        AgileRLVecEnv("CartPole-v1", 2, device="cpu")
    with pytest.raises(TypeError, match="chooses copy itself"):
        AgileRLVecEnv("SimpleSpread-v0", 2, copy=False, device="cpu")
