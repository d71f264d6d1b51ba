"""Stable-Baselines3 on CartPole: gpuzoo's VecEnv against SB3's own way to a batch, in one run, taking turns.

    python scripts/bench_sb3.py [--num-envs 64] [--rounds 5] [--epochs 1 4 10] [--threads 1] [--device cpu] [--json]

Theirs is ``make_vec_env("CartPole-v1", num_envs)``: Gymnasium's CartPole in a DummyVecEnv, each env in a Monitor. Both
have episode statistics. ``step``: calls of `VecEnv.step` with random actions drawn before. ``PPO``: `learn`, that is
policy, env, bookkeeping and optimisation together, with the same hyper-parameters: 128 steps per env, 4 minibatches,
SB3's network, and a number of epochs (10 is SB3's default). The env takes no part in the epochs: the fewer there are,
the more its speed counts. ``no env`` gives the same arrays in every step, without a computation: what SB3 itself needs,
so that no env can be faster. Rates are steps of one env per second, medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from gpuzoo.core.backend import make_backend
from gpuzoo.tools import provenance
from gpuzoo.wrappers.sb3 import SB3VecEnv

STEPS = 128


class NoEnv(VecEnvWrapper):
    """What its env said in the first step, in every step."""

    def __init__(self, env: VecEnv) -> None:
        super().__init__(env)
        env.reset()
        self.said = env.step(np.zeros(env.num_envs, np.int64))

    def reset(self) -> VecEnvObs:
        return self.said[0]

    def step_async(self, actions: np.ndarray) -> None:
        pass

    def step_wait(self) -> VecEnvStepReturn:
        return self.said


def step_rate(env: VecEnv) -> float:
    actions = np.random.default_rng(0).integers(0, 2, (STEPS, env.num_envs))
    start = time.perf_counter()
    for action in actions:
        env.step(action)
    return STEPS * env.num_envs / (time.perf_counter() - start)


def learner(env: VecEnv, epochs: int) -> Callable[[], float]:
    batch = STEPS * env.num_envs
    model = PPO("MlpPolicy", env, n_steps=STEPS, batch_size=batch // 4, n_epochs=epochs, device="cpu", seed=0)

    def rate() -> float:
        start = time.perf_counter()
        model.learn(2 * batch, reset_num_timesteps=False)
        return 2 * batch / (time.perf_counter() - start)

    return rate


def compare(num_envs: int, rounds: int, epochs: list[int], device: str, threads: int | None) -> list[dict[str, Any]]:
    makers: dict[str, Callable[[], VecEnv]] = {
        "gpuzoo": lambda: SB3VecEnv("CartPole-v1", num_envs, device=device, threads=threads, seed=0),
        "DummyVecEnv": lambda: make_vec_env("CartPole-v1", num_envs, seed=0),
        "no env": lambda: NoEnv(make_vec_env("CartPole-v1", num_envs, seed=0)),
    }
    rows = []
    for count in (0, *epochs):
        loops: dict[str, Callable[[], float]] = {}
        for name, make in makers.items():
            env = make()
            env.reset()
            loops[name] = learner(env, count) if count else (lambda env=env: step_rate(env))
        for loop in loops.values():
            loop()  # warms up
        rates: dict[str, list[float]] = {name: [] for name in loops}
        for _ in range(rounds):
            for name, loop in loops.items():
                rates[name].append(loop())
        medians = {name: statistics.median(values) for name, values in rates.items()}
        what = f"PPO, epochs: {count}" if count else "step"
        faster = {f"{name}_is_faster_by": medians[name] / medians["DummyVecEnv"] for name in ("gpuzoo", "no env")}
        rows.append({"what": what, "num_envs": num_envs, **medians, **faster})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 4, 10], help="of PPO")
    parser.add_argument("--device", default="cpu", help="of gpuzoo")
    parser.add_argument("--threads", type=int, default=1, help="of gpuzoo on the CPU and of torch")
    parser.add_argument("--json", action="store_true", help="rows of JSON")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    machine = provenance.describe(make_backend(chosen.device, chosen.threads))
    rows = compare(chosen.num_envs, chosen.rounds, chosen.epochs, chosen.device, chosen.threads)
    if chosen.json:
        print("\n".join(map(json.dumps, [machine, *rows])))
        return
    print(
        f"{machine['gpu'] or machine['cpu']}, Stable-Baselines3 {stable_baselines3.__version__}, {chosen.num_envs} envs"
    )
    print(f"{'steps/s':14} {'gpuzoo':>16} {'DummyVecEnv':>20} {'gpuzoo is faster by':>20} {'no env would be by':>20}")
    for row in rows:
        limit = f"{row['no env_is_faster_by']:.1f}" if row["what"] != "step" else ""
        print(
            f"{row['what']:14} {row['gpuzoo']:16,.0f} {row['DummyVecEnv']:20,.0f} "
            f"{row['gpuzoo_is_faster_by']:20.1f} {limit:>20}"
        )


if __name__ == "__main__":
    main()
