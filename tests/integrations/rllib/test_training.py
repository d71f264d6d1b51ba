"""RLlib learns on gpuzoo's batches, with two env runners as on a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from gpuzoo.wrappers.rllib import BatchedEnvRunner, RLlibMultiAgentEnv, RLlibVectorEnv, policies


def ppo(envs: int, steps: int, **training: Any) -> PPOConfig:
    """PPO with two env runners of so many envs and steps each."""
    model = DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False)
    return (
        PPOConfig()
        .env_runners(num_env_runners=2, num_envs_per_env_runner=envs, rollout_fragment_length=steps)
        .training(train_batch_size=2 * envs * steps, use_kl_loss=False, vf_clip_param=1e4, **training)
        .rl_module(model_config=model)
        .reporting(metrics_num_episodes_for_smoothing=2 * envs)
        .debugging(seed=0)
    )


def learn(config: PPOConfig, target: float, limit: int) -> None:
    """Trains until the mean return of the last episodes reaches the target, in no more than so many env steps."""
    algorithm, returns, steps = config.build_algo(), [], 0
    try:
        while not returns or not returns[-1] >= target:
            assert steps < limit, f"a mean return of {target} was not reached in {limit} steps: {returns}"
            result = algorithm.train()
            steps = result["num_env_steps_sampled_lifetime"]
            returns.append(result["env_runners"].get("episode_return_mean", float("nan")))
        seeds = algorithm.env_runner_group.foreach_env_runner(
            lambda runner: runner.env.unwrapped.simulator.arrays["seed"].tolist(), local_env_runner=False
        )
    finally:
        algorithm.stop()
    assert len(seeds) == 2
    assert len({*seeds[0], *seeds[1]}) == 2 * config.num_envs_per_env_runner, "the env runners play the same episodes"


@pytest.mark.rotates
def test_ppo_learns_cartpole():
    config = ppo(16, 128, lr=1e-3, num_epochs=6, minibatch_size=512, vf_loss_coeff=0.01, lambda_=0.95)
    config.environment(RLlibVectorEnv, env_config={"env": "CartPole-v1"})
    config.env_runners(gym_env_vectorize_mode="vector_entry_point")
    learn(config, target=475, limit=150_000)


@pytest.mark.rotates
def test_ppo_learns_simple_spread():
    env_config = {"env": "SimpleSpread-v0"}
    config = ppo(32, 25, lr=1e-3, num_epochs=6, minibatch_size=512, lambda_=0.95)
    config.environment(RLlibMultiAgentEnv, env_config=env_config).multi_agent(**policies(env_config))
    config.env_runners(env_runner_cls=BatchedEnvRunner)
    # Random actions: -79.2, and 2.9 is the standard error of the mean of as many episodes as are averaged.
    learn(config, target=-68, limit=40_000)
