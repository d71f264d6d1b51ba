"""rl-games' vector env over one batch: what it returns, and that rl-games learns on it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from gymnasium import spaces
from rl_games.torch_runner import Runner

import gpuzoo
from gpuzoo.wrappers.rl_games import RLGamesVecEnv, register

torch.set_num_threads(1)


def made(env, n=4, **kwargs):
    return RLGamesVecEnv("gpuzoo", n, env=env, seed=3, device="cpu", **kwargs)


def test_one_agent():
    envs, plain = (
        made("CartPole-v1", max_episode_steps=9),
        gpuzoo.Simulator(gpuzoo.get("CartPole-v1"), 4, device="cpu", autoreset_mode="same_step", max_episode_steps=9),
    )
    plain.reset(3)
    info = envs.get_env_info()
    assert info["agents"] == 1
    assert info["action_space"] == spaces.Discrete(2)
    seen, cut = envs.reset(), 0
    for t in range(40):
        np.testing.assert_array_equal(seen, plain.arrays["observation"][:, 0])
        actions = torch.full((4,), t // 2 % 2)
        seen, rewards, dones, infos = envs.step(actions)
        plain.arrays["action"][:, 0, 0] = actions
        plain.step()
        np.testing.assert_array_equal(rewards, plain.arrays["reward"][:, 0])
        np.testing.assert_array_equal(dones, plain.arrays["ended"])
        over = plain.arrays["truncated"] & ~plain.arrays["terminated"]
        np.testing.assert_array_equal(infos["time_outs"], over[:, 0])
        cut += int(infos["time_outs"].sum())
    assert cut
    assert not envs.has_action_masks()
    with pytest.raises(ValueError, match="no action masks"):
        envs.get_action_masks()


def test_agents_that_leave_are_padding():
    """Their rows are zeros until the env's next episode, and done once more when that begins."""
    envs = made("TagContinuous-v0", 2, max_episode_steps=60)
    rows = envs.envs.num_envs
    assert envs.get_number_of_agents() * 2 == rows
    envs.reset()
    gone = torch.zeros(rows, dtype=torch.bool)
    left = border = 0
    for _ in range(130):
        space = envs.envs.single_action_space
        actions = torch.as_tensor(np.stack([space.sample() for _ in range(rows)]))
        seen, rewards, dones, _ = envs.step(actions)
        alive = envs._alive
        assert not rewards[gone].any()
        assert not seen[~alive].any()
        border += int((gone & alive).sum())
        assert dones[gone & alive].all()
        left += int((~gone & ~alive).sum())
        gone = ~alive
    assert left
    assert border


def test_masks_states_and_kinds_of_actions():
    envs = made("LevelBasedForaging-v3", 3, central_value=True)
    found = envs.reset()
    assert found["obs"].shape == (6, 12)
    assert found["states"].shape == (3, 24)
    assert envs.get_env_info()["state_space"].shape == (24,)
    np.testing.assert_array_equal(found["states"].reshape(6, 12), found["obs"])
    assert envs.has_action_masks()
    mask = envs.get_action_masks()
    assert mask.dtype == torch.bool
    assert mask.shape == (6, 6)
    many = made("SimpleReference-v0")
    assert isinstance(many.get_env_info()["action_space"], (spaces.Discrete, spaces.Tuple))
    assert made("Pendulum-v1").get_env_info()["action_space"].shape == (1,)


def test_mistakes():
    with pytest.raises(ValueError, match="no network: it takes Box only"):
        made("FrozenLake-v1")
    with pytest.raises(TypeError, match="chooses autoreset_mode itself"):
        made("CartPole-v1", autoreset_mode="next_step")
    with pytest.raises(TypeError, match="makes its batch itself"):
        made(gpuzoo.make_vec("CartPole-v1", device="cpu"))


CONFIG = {
    "seed": 0,
    "algo": {"name": "a2c_discrete"},
    "model": {"name": "discrete_a2c"},
    "network": {
        "name": "actor_critic",
        "separate": False,
        "space": {"discrete": None},
        "mlp": {"units": [64, 64], "activation": "elu", "initializer": {"name": "default"}},
    },
    "config": {
        "env_name": "gpuzoo",
        "reward_shaper": {"scale_value": 0.1},
        "normalize_advantage": True,
        "normalize_input": True,
        "normalize_value": True,
        "value_bootstrap": True,
        "gamma": 0.99,
        "tau": 0.95,
        "learning_rate": 1e-3,
        "lr_schedule": None,
        "kl_threshold": 0.01,
        "score_to_win": 1e9,
        "grad_norm": 1.0,
        "truncate_grads": True,
        "entropy_coef": 0.005,
        "e_clip": 0.2,
        "clip_value": False,
        "critic_coef": 2,
        "horizon_length": 32,
        "mini_epochs": 4,
        "ppo": True,
        "mixed_precision": False,
        "print_stats": False,
        "torch_compile": False,
        "save_best_after": 10**9,
        "device": "cpu",
        "device_name": "cpu",
    },
}


def trained(tmp_path, epochs, actors, **config):
    params = copy.deepcopy(CONFIG)
    agents = RLGamesVecEnv("", 1, **{**config["env_config"], "device": "cpu"}).get_number_of_agents()
    params["config"] |= {
        "name": "test",
        "full_experiment_name": "test",
        "train_dir": str(tmp_path),
        "num_actors": actors,
        "minibatch_size": actors * agents * 8,
        "max_epochs": epochs,
        **config,
    }
    register()
    runner = Runner()
    runner.load({"params": params})
    agent = runner.algo_factory.create(runner.algo_name, base_name="run", params=runner.params)
    agent.train()
    return float(agent.game_rewards.get_mean().ravel()[0])


def test_it_runs_with_masks_and_several_agents(tmp_path):
    config = {"env": "LevelBasedForaging-v3", "central_value": True, "device": "cpu"}
    central = {
        "minibatch_size": 64,
        "mini_epochs": 1,
        "learning_rate": 1e-3,
        "clip_value": False,
        "normalize_input": True,
        "truncate_grads": True,
        "grad_norm": 1.0,
        "network": {"name": "actor_critic", "central_value": True, "mlp": CONFIG["network"]["mlp"]},
    }
    mean = trained(tmp_path, 2, 16, env_config=config, use_action_masks=True, central_value_config=central)
    assert np.isfinite(mean)


@pytest.mark.rotates
def test_ppo_balances_the_pole(tmp_path):
    assert trained(tmp_path, 60, 64, env_config={"env": "CartPole-v1", "device": "cpu"}) > 200
