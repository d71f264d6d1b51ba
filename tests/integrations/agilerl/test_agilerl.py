"""AgileRL's vectorized PettingZoo env over one batch: what it returns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from agilerl.algorithms import IPPO, MADDPG
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
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


def both_spaces(env):
    agents = env.possible_agents
    return [env.single_observation_space(a) for a in agents], [env.single_action_space(a) for a in agents]


@pytest.mark.rotates
def test_ippo_learns():
    """From a return of about -15 to -5 within 20,000 steps, in 10 seconds."""
    torch.manual_seed(0)
    np.random.seed(0)
    game = {"env": "SimpleSpread-v0", "num_envs": 16, "device": "cpu", "N": 1}
    env, other = AgileRLVecEnv(**game), AgileRLVecEnv(**game)
    env.reset(seed=0)
    other.reset(seed=1000)
    agent = IPPO(
        *both_spaces(env),
        agent_ids=env.possible_agents,
        learn_step=800,
        batch_size=200,
        lr=3e-3,
        gamma=0.9,
        ent_coef=0.001,
        update_epochs=4,
    )
    before = agent.test(other, loop=3)
    options = {"max_steps": 20_000, "evo_steps": 5000, "eval_loop": 1, "verbose": False}
    trained = train_multi_agent_on_policy(env, "spread", "IPPO", [agent], **options)[0][0]
    after = trained.test(other, loop=3)
    assert after > before + 5, (before, after)
    assert after > -8, (before, after)


def test_maddpg_takes_masks():
    """Its actions are legal. (IPPO of AgileRL 2.58 compares masks with None by `in`, which NumPy refuses.)"""
    env = AgileRLVecEnv("LevelBasedForaging-v3", 8, device="cpu")
    observations, infos = env.reset(seed=0)
    agent = MADDPG(*both_spaces(env), agent_ids=env.possible_agents)
    for _ in range(30):
        masks = {name: infos[name]["action_mask"].astype(bool) for name in env.agents}
        actions = agent.get_action(observations, infos=infos)
        chosen = actions[0] if isinstance(actions, tuple) else actions
        for name, action in chosen.items():
            assert masks[name][np.arange(8), np.asarray(action).reshape(8)].all()
        observations, _, _, _, infos = env.step(chosen)
    env.close()


def test_mistakes():
    with pytest.raises(ValueError, match="has one agent"):
        AgileRLVecEnv("CartPole-v1", 2, device="cpu")
    with pytest.raises(TypeError, match="chooses copy itself"):
        AgileRLVecEnv("SimpleSpread-v0", 2, copy=False, device="cpu")
