"""What wrappers cost: ours for tensors beside Gymnasium's for NumPy arrays, around the same batch on the CPU.

    python scripts/bench_wrappers.py [--seconds 1]

Prints a table with the microseconds that each wrapper adds to a step, and those of the bare step. Each side has one
thread; a figure is the median of single steps, in which a busy machine is seldom seen.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import gymnasium.wrappers.vector as theirs
import torch

import gpuzoo.wrappers.vector as ours
from gpuzoo import VectorEnv

WRAPPERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "nothing": (lambda env: env, lambda env: env),
    "RecordEpisodeStatistics": (ours.RecordEpisodeStatistics, theirs.RecordEpisodeStatistics),
    "NormalizeObservation": (ours.NormalizeObservation, theirs.NormalizeObservation),
    "NormalizeReward": (ours.NormalizeReward, theirs.NormalizeReward),
    "clip observations": (
        lambda env: ours.TransformObservation(env, lambda x: x.clamp(-1, 1)),
        lambda env: theirs.TransformObservation(env, lambda x: x.clip(-1, 1)),
    ),
    "clip rewards": (
        lambda env: theirs.TransformReward(env, lambda r: r.clamp(-1, 1)),
        lambda env: theirs.ClipReward(env, -1, 1),
    ),
    "FrameStackObservation, 4": (lambda env: ours.FrameStackObservation(env, 4), None),  # type: ignore[dict-item]
}


def microseconds(env: Any, actions: Any, seconds: float) -> float:
    """The median step."""
    env.reset(seed=0)
    taken: list[float] = []
    while len(taken) < 9 or sum(taken) < seconds:
        start = time.perf_counter()
        env.step(actions)
        taken.append(time.perf_counter() - start)
    return sorted(taken)[len(taken) // 2] * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each figure")
    parser.add_argument("--env", default="CartPole-v1")
    torch.set_num_threads(1)  # as NumPy
    seconds, name = parser.parse_args().seconds, parser.parse_args().env
    print(f"{name} on the CPU, next-step mode: microseconds per step, added by the wrapper")
    print(f"{'wrapper':28} {'envs':>6} {'torch, ours':>12} {'NumPy, Gymnasium':>17}")
    bare: dict[tuple[int, str], float] = {}
    for (wrapper, sides), num_envs in itertools.product(WRAPPERS.items(), (64, 4096)):
        cells = []
        for output, wrap in zip(("torch", "numpy"), sides, strict=True):
            if wrap is None:
                cells.append("-")
                continue
            env = wrap(VectorEnv(name, num_envs, device="cpu", output=output, threads=1))
            actions = env.action_space.sample()
            value = microseconds(env, torch.as_tensor(actions) if output == "torch" else actions, seconds)
            base = bare.setdefault((num_envs, output), value)
            cells.append(f"{value if wrapper == 'nothing' else value - base:.0f}")
            env.close()
        print(f"{wrapper:28} {num_envs:6} {cells[0]:>12} {cells[1]:>17}")


if __name__ == "__main__":
    main()
