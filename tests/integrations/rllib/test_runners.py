"""What RLlib's env runners make of the batches: their episodes are those of PettingZoo's view, agent by agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from toys.herd import Herd
from toys.nim import Nim

import gpuzoo
from gpuzoo import parallel_env
from gpuzoo.wrappers.rllib import BatchedEnvRunner, RLlibMultiAgentEnv, RLlibVectorEnv, policies

RUNNERS = pytest.mark.parametrize("runner", [MultiAgentEnvRunner, BatchedEnvRunner])


def multi(
    env_config: dict[str, Any], runner: Any = BatchedEnvRunner, envs: int = 4, per_agent: bool = False
) -> PPOConfig:
    return (
        PPOConfig()
        .environment(RLlibMultiAgentEnv, env_config=env_config)
        .multi_agent(**policies(env_config, per_agent))
        .env_runners(env_runner_cls=runner, num_env_runners=0, num_envs_per_env_runner=envs)
        .debugging(seed=3)
    )


def masked(config: PPOConfig) -> PPOConfig:
    """With RLlib's own module where observations have masks."""
    if not gpuzoo.get(config.env_config["env"]).action_mask:
        return config
    specs = {name: RLModuleSpec(module_class=ActionMaskingTorchRLModule) for name in config.policies}
    return config.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=specs))


@RUNNERS
@pytest.mark.parametrize(
    "env_config",
    [
        {"env": "SimpleSpread", "max_episode_steps": 7},
        {"env": "TagGridWorld", "max_episode_steps": 40},
        {"env": Herd, "wolfs": 1, "sheeps": 4, "cells": 5, "max_episode_steps": 4},
    ],
    ids=["SimpleSpread", "TagGridWorld", "Herd"],
)
def test_episodes_equal_the_parallel_env(env_config, runner):
    """Observations, rewards, and who was terminated and who truncated, in the episodes that RLlib learns from."""
    envs, seed = 4, 3
    # Ravelled, as RLlib has no network for some of the shapes.
    sampler = runner(config=masked(multi({**env_config, "flatten": True}, runner, envs)), worker_index=0)
    episodes = sampler.sample(num_timesteps=envs * 100, random_actions=True, explore=True)
    done = [e for e in episodes if e.is_done]
    limit = env_config["max_episode_steps"]
    env = parallel_env(**{k: v for k, v in env_config.items() if k != "max_episode_steps"}, max_cycles=limit)
    # The env and the number of an episode are known by its first observations.
    begins = {}
    for w in range(envs):
        env.reset(seed=seed + w)
        for number in range(100):
            begins[env.state().tobytes()] = (w, number)
            env.reset()
    terminated = truncated = 0
    for episode in done[:30]:
        agents = episode.agent_episodes
        first = [agents[a].get_observations(0) for a in env.possible_agents]
        plain = [np.ravel(o["observations"] if isinstance(o, dict) else o) for o in first]
        w, number = begins[np.concatenate(plain).astype(np.float32).tobytes()]
        env.reset(seed=seed + w)
        for _ in range(number):
            env.reset()
        for t in range(len(episode)):
            acting = list(env.agents)
            assert acting == [a for a in env.possible_agents if t < len(agents[a])]
            actions = {a: agents[a].get_actions(t) for a in acting}
            observations, rewards, terminations, *_ = env.step(actions)
            for a in acting:
                mine, theirs = agents[a].get_observations(t + 1), observations[a]
                if isinstance(theirs, dict):
                    assert (mine["action_mask"] == theirs["action_mask"]).all()
                    mine, theirs = mine["observations"], theirs["observation"]
                assert (mine == np.ravel(theirs)).all()
                assert agents[a].get_rewards(t) == np.float32(rewards[a])
                if a not in env.agents:
                    # What follows has a value unless the agent is terminated.
                    assert agents[a].is_terminated == terminations[a]
                    assert agents[a].is_truncated or terminations[a]
                    terminated += terminations[a]
                    truncated += not terminations[a]
        assert not env.agents
    assert len(done) >= 8
    assert truncated > 0
    assert terminated > 0 or env_config["env"] == "SimpleSpread"


@RUNNERS
@pytest.mark.parametrize("turns", ["ConnectFour", Nim])
def test_two_policies_and_legal_moves_in_games_of_turns(turns, runner):
    config = masked(multi({"env": turns, "flatten": True}, runner, per_agent=True))
    episodes = runner(config=config, worker_index=0).sample(num_episodes=6)
    for episode in episodes:
        one, other = (episode.agent_episodes[f"player_{k}"] for k in range(2))
        assert (one.module_id, other.module_id) == ("player_0", "player_1")
        assert len(one) - len(other) in (0, 1)
        assert one.is_terminated
        assert other.is_terminated
        assert sorted([one.get_return(), other.get_return()]) == [-1, 1] or one.get_return() == other.get_return() == 0
        for agent in (one, other):
            masks = agent.get_observations()["action_mask"]
            assert all(masks[t][action] for t, action in enumerate(agent.get_actions()))


def test_connect_four_trains_with_two_policies():
    config = masked(multi({"env": "ConnectFour", "flatten": True}, envs=8, per_agent=True))
    algorithm = config.training(train_batch_size=256, minibatch_size=64, num_epochs=1).build_algo()
    before = {k: v.copy() for k, v in algorithm.get_weights()["player_1"].items()}
    learners = algorithm.train()["learners"]
    assert {"player_0", "player_1"} <= set(learners)
    assert any((before[k] != v).any() for k, v in algorithm.get_weights()["player_1"].items())
    algorithm.stop()


def test_single_agent_episodes_are_whole():
    """CartPole's reward is 1 in each step of an episode, the last one included."""
    config = (
        PPOConfig()
        .environment(RLlibVectorEnv, env_config={"env": "CartPole-v1", "max_episode_steps": 20})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=8, gym_env_vectorize_mode="vector_entry_point")
        .debugging(seed=0)
    )
    sampler = SingleAgentEnvRunner(config=config, worker_index=0)
    episodes = [e for e in sampler.sample(num_timesteps=1600, random_actions=True) if e.is_done]
    assert {e.is_terminated for e in episodes} == {True, False}
    for episode in episodes:
        position, _, angle, _ = episode.get_observations(-1)
        assert episode.is_terminated == (abs(angle) > 12 * np.pi / 180 or abs(position) > 2.4)
        assert episode.is_truncated == (len(episode) == 20)
        assert episode.get_return() == len(episode)
        assert (np.abs(episode.get_observations(0)) < 0.05).all()


def test_batched_env_runner_refuses_other_envs():
    config = multi({"env": "SimpleSpread"})
    config.environment("CartPole-v1")
    with pytest.raises(TypeError, match="RLlibMultiAgentEnv"):
        BatchedEnvRunner(config=config, worker_index=0)
