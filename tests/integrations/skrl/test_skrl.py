"""skrl's multi-agent env over one batch: what it returns, and that skrl's IPPO and MAPPO learn on it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.multi_agents.torch.ippo import IPPO, IPPO_CFG
from skrl.multi_agents.torch.mappo import MAPPO, MAPPO_CFG
from skrl.trainers.torch import SequentialTrainer
from torch import nn

import gpuzoo
from gpuzoo.wrappers.skrl import SkrlMultiAgentEnv

torch.set_num_threads(1)


def test_the_same_as_the_simulator():
    env = SkrlMultiAgentEnv("SimpleSpread-v0", 4, seed=3, device="cpu", max_episode_steps=7)
    sim = gpuzoo.Simulator(
        gpuzoo.get("SimpleSpread-v0"), 4, device="cpu", autoreset_mode="same_step", max_episode_steps=7
    )
    sim.reset(3)
    observations, _ = env.reset()
    assert env.num_agents == len(env.agents) == 3
    assert env.num_envs == 4
    for t in range(20):
        sim.random_actions()
        actions = {a: torch.as_tensor(sim.arrays["action"][:, k].copy()) for k, a in enumerate(env.agents)}
        for k, agent in enumerate(env.agents):
            np.testing.assert_array_equal(observations[agent], sim.arrays["observation"][:, k])
        sim.step()
        observations, rewards, terminated, truncated, infos = env.step(actions)
        for k, agent in enumerate(env.agents):
            np.testing.assert_array_equal(rewards[agent], sim.arrays["reward"][:, k, None])
            np.testing.assert_array_equal(terminated[agent], sim.arrays["terminated"][:, k, None])
            np.testing.assert_array_equal(truncated[agent], sim.arrays["truncated"][:, k, None])
            np.testing.assert_array_equal(infos["alive"][agent], sim.arrays["alive"][:, k])
        assert truncated["agent_0"].all() == (t % 7 == 6)
        state = env.state()["agent_1"]
        np.testing.assert_array_equal(state, torch.cat([observations[a] for a in env.agents], 1))
        assert state.shape[1:] == env.state_spaces["agent_0"].shape


def test_masks_are_apart():
    env = SkrlMultiAgentEnv("LevelBasedForaging-v3", 5, seed=0, device="cpu")
    observations, _ = env.reset()
    assert {x.shape for x in observations.values()} == {(5, 12)}
    assert {x.shape for x in env.action_mask().values()} == {(5, 6)}
    assert {x.dtype for x in env.action_mask().values()} == {torch.bool}
    before = {agent: x.clone() for agent, x in observations.items()}
    env.step({agent: torch.ones(5, 1) for agent in env.agents})
    assert all((observations[a] == before[a]).all() for a in env.agents)  # fresh tensors at each step
    with pytest.raises(ValueError, match="no action masks"):
        SkrlMultiAgentEnv("SimpleSpread-v0", 2, device="cpu").action_mask()


def test_groups_of_unlike_agents():
    env = SkrlMultiAgentEnv("SimpleSpeakerListener-v0", 3, seed=0, device="cpu")
    observations, _ = env.reset()
    assert [observations[a].shape[1] for a in env.agents] == [s.shape[0] for s in env.observation_spaces.values()]
    env.step({agent: torch.zeros(3, 1) for agent in env.agents})


def test_mistakes():
    with pytest.raises(ValueError, match="has one agent"):
        SkrlMultiAgentEnv("CartPole-v1", 2, device="cpu")
    with pytest.raises(ValueError, match="played in turns"):
        SkrlMultiAgentEnv("ConnectFour-v0", 2, device="cpu")
    with pytest.raises(TypeError, match="chooses autoreset_mode itself"):
        SkrlMultiAgentEnv("SimpleSpread-v0", 2, autoreset_mode="disabled", device="cpu")


def body(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


class Policy(CategoricalMixin, Model):
    def __init__(self, env, agent):
        Model.__init__(
            self, observation_space=env.observation_spaces[agent], action_space=env.action_spaces[agent], device="cpu"
        )
        CategoricalMixin.__init__(self)
        self.net = body(self.num_observations, self.num_actions)

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    def __init__(self, env, agent, central):
        self.name = "states" if central else "observations"
        Model.__init__(
            self,
            observation_space=env.observation_spaces[agent],
            state_space=env.state_spaces[agent],
            action_space=env.action_spaces[agent],
            device="cpu",
        )
        DeterministicMixin.__init__(self)
        self.net = body(self.num_states if central else self.num_observations, 1)

    def compute(self, inputs, role=""):
        return self.net(inputs[self.name]), {}


def returns_of(env, learner, steps, folder):
    """Mean reward per step and agent of the first and of the last eighth of a training run."""
    rewards = []
    step = env.step

    def watched(actions):
        out = step(actions)
        rewards.append(float(torch.stack(list(out[1].values())).mean()))
        return out

    env.step = watched
    SequentialTrainer(
        cfg={"timesteps": steps, "disable_progressbar": True, "close_environment_at_exit": False},
        env=env,
        agents=learner,
    ).train()
    return np.mean(rewards[: steps // 8]), np.mean(rewards[-steps // 8 :])


def learner_of(kind, config, env, folder):
    torch.manual_seed(0)
    models = {a: {"policy": Policy(env, a), "value": Value(env, a, kind is MAPPO)} for a in env.agents}
    config = config(rollouts=25, learning_epochs=4, mini_batches=4, learning_rate=1e-3, entropy_loss_scale=0.01)
    for field in dataclasses.fields(config):
        if getattr(config, field.name) == {}:  # skrl 2.1 refuses its own defaults here
            setattr(config, field.name, {agent: {} for agent in env.agents})
    config.experiment.directory = str(folder)
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    return kind(
        possible_agents=env.possible_agents,
        models=models,
        memories={a: RandomMemory(memory_size=25, num_envs=env.num_envs, device="cpu") for a in env.agents},
        cfg=config,
        observation_spaces=env.observation_spaces,
        state_spaces=env.state_spaces,
        action_spaces=env.action_spaces,
        device="cpu",
    )


@pytest.mark.rotates
@pytest.mark.parametrize(("kind", "config"), [(IPPO, IPPO_CFG), (MAPPO, MAPPO_CFG)])
def test_they_learn_to_spread(kind, config, tmp_path):
    env = SkrlMultiAgentEnv("SimpleSpread-v0", 64, seed=0, device="cpu")
    first, last = returns_of(env, learner_of(kind, config, env, tmp_path), 2000, tmp_path)
    assert last > first + 0.1


def test_one_update(tmp_path):
    env = SkrlMultiAgentEnv("SimpleSpread-v0", 8, seed=0, device="cpu")
    first, last = returns_of(env, learner_of(MAPPO, MAPPO_CFG, env, tmp_path), 50, tmp_path)
    assert np.isfinite([first, last]).all()
