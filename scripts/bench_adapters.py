"""Env steps per second of CartPole through the adapter of each library that the interpreter has: `step` calls alone.

    python scripts/bench_adapters.py [--num-envs 64 1024] [--seconds 1]

Run it in the environments of scripts/test_integrations.sh too: .venvs/NAME/bin/python. Actions are made beforehand.
Tianshou's and TorchRL's loops reset finished envs themselves, so their resets are counted in.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch's threads beside the engine's

import numpy as np

import gpuzoo

GAME = "CartPole-v1"
Step = Callable[[], Any]


def bare(n: int, actions: np.ndarray) -> Step:
    simulator = gpuzoo.Simulator(gpuzoo.get(GAME), n, device="cpu", autoreset_mode="same_step")
    simulator.reset(seed=0)
    simulator.arrays["action"][...] = actions.reshape(n, 1, 1)
    return simulator.step


def gymnasium(n: int, actions: np.ndarray) -> Step:
    envs = gpuzoo.make_vec(GAME, n, device="cpu")
    envs.reset(seed=0)
    return lambda: envs.step(actions)


def torch(n: int, actions: np.ndarray) -> Step:
    import torch

    envs = gpuzoo.make_vec(GAME, n, device="cpu", output="torch")
    envs.reset(seed=0)
    tensor = torch.as_tensor(actions)
    return lambda: envs.step(tensor)


def envpool(n: int, actions: np.ndarray) -> Step:
    envs = gpuzoo.make_pool(GAME, n, device="cpu")
    envs.reset()
    choices = actions.astype(np.int32)
    return lambda: envs.step(choices)


def stable_baselines3(n: int, actions: np.ndarray) -> Step:
    from gpuzoo.wrappers.sb3 import SB3VecEnv

    envs = SB3VecEnv(GAME, n, device="cpu")
    envs.reset()
    return lambda: envs.step(actions)


def cleanrl(n: int, actions: np.ndarray) -> Step:
    from gpuzoo.wrappers.cleanrl import make

    envs = make(GAME, n, device="cpu")
    envs.reset(seed=0)
    return lambda: envs.step(actions)


def rllib(n: int, actions: np.ndarray) -> Step:
    from ray.rllib.env.env_context import EnvContext

    from gpuzoo.wrappers.rllib import RLlibVectorEnv

    envs = RLlibVectorEnv(EnvContext({"env": GAME, "num_envs": n}, worker_index=0))
    envs.reset(seed=0)
    return lambda: envs.step(actions)


def tianshou(n: int, actions: np.ndarray) -> Step:
    from gpuzoo.wrappers.tianshou import TianshouVectorEnv

    envs = TianshouVectorEnv(GAME, n, device="cpu")
    envs.reset(seed=0)

    def step() -> None:
        _, _, terminated, truncated, _ = envs.step(actions)
        done = np.flatnonzero(terminated | truncated)
        if len(done):
            envs.reset(done)

    return step


def torchrl(n: int, actions: np.ndarray) -> Step:
    import torch

    from gpuzoo.wrappers.torchrl import GpuZooEnv

    envs = GpuZooEnv(GAME, n, device="cpu")
    state, tensor = [envs.reset()], torch.as_tensor(actions)

    def step() -> None:
        _, state[0] = envs.step_and_maybe_reset(state[0].set("action", tensor))

    return step


ADAPTERS = (bare, gymnasium, torch, envpool, stable_baselines3, cleanrl, rllib, tianshou, torchrl)


def rate(step: Step, n: int, seconds: float) -> float:
    """The median of five rounds."""
    rates = []
    for _ in range(5):
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < seconds / 5:
            step()
            steps += n
        rates.append(steps / (time.perf_counter() - start))
    return float(np.median(rates))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-envs", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    for adapter in ADAPTERS:
        line = f"{adapter.__name__:20}"
        for n in options.num_envs:
            try:
                step = adapter(n, np.random.default_rng(0).integers(0, 2, n))
            except ImportError as error:
                line += f" {str(error).split(':')[0]}"
                break
            step()
            line += f" {n} envs: {rate(step, n, options.seconds) / 1e6:.3g} M steps/s;"
        print(line, flush=True)


if __name__ == "__main__":
    main()
