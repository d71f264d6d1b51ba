"""RLlib's multi-agent sampling: single envs in its ``SyncVectorMultiAgentEnv``, and gpuzoo's batch.

    .venvs/rllib/bin/python scripts/bench_rllib.py [--game SimpleSpread-v0] [--num-envs 64] [--steps 50]

Env steps per second of the vector env alone, of an env runner with random actions, and of one with RLlib's default
network: what is between them is RLlib's own work per env and agent. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.vector.sync_vector_multi_agent_env import SyncVectorMultiAgentEnv

from gpuzoo.wrappers.rllib import BatchedEnvRunner, RLlibMultiAgentEnv, RLlibMultiAgentVectorEnv, policies

Vector = SyncVectorMultiAgentEnv | RLlibMultiAgentVectorEnv


def stepping(env: Vector, steps: int) -> Callable[[], None]:
    """The vector env alone, with the same action for all."""
    env.reset(seed=0)
    actions = [{agent: 0 for agent in env.envs[0].unwrapped.possible_agents}] * env.num_envs

    def loop() -> None:
        for _ in range(steps):
            env.step(actions)

    return loop


def median_rate(loop: Callable[[], object], count: int) -> float:
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        loop()
        rates.append(count / (time.perf_counter() - start))
    return statistics.median(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="SimpleSpread-v0")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False)
    env_config, count = {"env": args.game, "flatten": True}, args.num_envs * args.steps
    vectors = {
        MultiAgentEnvRunner: SyncVectorMultiAgentEnv([lambda: RLlibMultiAgentEnv(env_config)] * args.num_envs),
        BatchedEnvRunner: RLlibMultiAgentVectorEnv(env_config, args.num_envs),
    }
    print(f"{args.game}, {args.num_envs} envs: env steps/s, medians of 5")
    print(f"{'':22}{'env alone':>12}{'random actions':>16}{'default network':>18}")
    for cls, vector in vectors.items():
        config = (
            PPOConfig()
            .environment(RLlibMultiAgentEnv, env_config=env_config)
            .multi_agent(**policies(env_config))
            .env_runners(num_env_runners=0, num_envs_per_env_runner=args.num_envs)
        )
        runner = cls(config=config, worker_index=0)
        rates = [median_rate(stepping(vector, args.steps), count)]
        for random in (True, False):
            rates.append(
                median_rate(
                    lambda random=random, runner=runner: runner.sample(
                        num_timesteps=count, random_actions=random, force_reset=True
                    ),
                    count,
                )
            )
        print(f"{cls.__name__:22}{rates[0]:>12,.0f}{rates[1]:>16,.0f}{rates[2]:>18,.0f}", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
