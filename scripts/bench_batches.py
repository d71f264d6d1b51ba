"""Steps per second of some games by the number of envs, for the plot of docs/benchmarks.md.

    python scripts/bench_batches.py [--seconds 0.2] [--rounds 3] [--threads 2] [--json docs/batch_sizes.json]

Each rate is the best of its rounds: other programs can only make one lower. Gymnasium's own vectorised CartPole is
timed in the same run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium

from gpuzoo import registry
from gpuzoo.core.backend import make_backend
from gpuzoo.core.simulator import Simulator
from gpuzoo.tools import provenance

GAMES = ("CartPole-v1", "SimpleSpread-v0", "Breakout-MinAtar-v1", "HalfCheetah-v5", "TagContinuous-v0")
SIZES = [4**k for k in range(9)]
LONGEST = 0.5  # seconds of a step that is not timed any more


def rate(step: Callable[[], Any], envs: int, seconds: float, rounds: int) -> float:
    """Env steps per second, the best round's."""
    step()
    best = 0.0
    for _ in range(rounds):
        begun, count = time.perf_counter(), 0
        while (spent := time.perf_counter() - begun) < seconds:
            step()
            count += 1
        best = max(best, count * envs / spent)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, default=Path("docs/batch_sizes.json"))
    chosen = parser.parse_args()
    series: dict[str, list[tuple[int, float]]] = {}
    for game in GAMES:
        series[game] = []
        for envs in SIZES:
            simulator = Simulator(registry.get(game), envs, device=chosen.device, threads=chosen.threads)
            simulator.reset(seed=0)
            simulator.random_actions()

            def step(simulator: Simulator = simulator) -> None:
                simulator.step()
                simulator.synchronize()

            step()
            begun = time.perf_counter()
            step()
            took = time.perf_counter() - begun

            series[game].append((envs, rate(step, envs, chosen.seconds, chosen.rounds)))
            print(game, *series[game][-1], flush=True)
            simulator.close()
            if took > LONGEST / 4:
                break
    theirs = series["Gymnasium's CartPoleVectorEnv"] = []
    for envs in itertools.takewhile(lambda n: n <= 4**7, SIZES):
        vector = gymnasium.make_vec("CartPole-v1", envs, vectorization_mode="vector_entry_point")
        vector.reset(seed=0)
        actions = vector.action_space.sample()
        theirs.append((envs, rate(lambda v=vector, a=actions: v.step(a), envs, chosen.seconds, chosen.rounds)))
    machine = provenance.describe(make_backend(chosen.device, chosen.threads))
    text = json.dumps({"machine": machine, "threads": chosen.threads, "series": series}, indent=1)
    chosen.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
