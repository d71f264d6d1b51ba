"""Games in turns by who observes: steps with observations of all agents, or of the agent to move.

    python scripts/bench_observers.py [ID ...] [--envs 64 ...] [--seconds 0.3] [--rounds 5] [--threads N]

Million moves per second by calls of `Simulator.step`, the best of some rounds, in turns in one run. "legal" draws
random legal actions in each step and counts their time; "given" leaves that time out, as if a policy had chosen them.
"""

from __future__ import annotations

import argparse
import time

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core.simulator import OBSERVERS

SETTLE = 100  # steps before the first round, after which envs are everywhere in their games
KINDS = ("legal", "given")


def moves_per_second(sim: Simulator, kind: str, seconds: float) -> float:
    steps, spent = 0, 0.0
    while spent < seconds:
        if kind == "given":
            sim.random_actions()
        start = time.perf_counter()
        if kind == "legal":
            sim.random_actions()
        sim.step()
        spent += time.perf_counter() - start
        steps += 1
    return steps * sim.num_envs / spent


def measure(game: str, envs: int, args: argparse.Namespace) -> dict[tuple[str, str], float]:
    sims = {
        observers: Simulator(
            gpuzoo.get(game), envs, device="cpu", threads=args.threads, observers=observers, autoreset_mode="same_step"
        )
        for observers in OBSERVERS
    }
    best: dict[tuple[str, str], float] = {}
    for sim in sims.values():
        sim.reset(seed=0)
        sim.rollout(SETTLE)
    for _ in range(args.rounds):
        for observers, sim in sims.items():
            for kind in KINDS:
                rate = moves_per_second(sim, kind, args.seconds)
                best[observers, kind] = max(rate, best.get((observers, kind), 0.0))
    for sim in sims.values():
        sim.close()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", default=["Chess-v0", "Shogi-v0"], help="ids of games in turns")
    parser.add_argument("--envs", type=int, nargs="+", default=[32, 128, 512, 2048], help="sizes of the batch")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, help="CPU threads; all by default")
    args = parser.parse_args()
    columns = [(observers, kind) for kind in KINDS for observers in OBSERVERS]
    print(f"{'game':20} {'envs':>6}", *(f"{f'{kind}, {observers}':>14}" for observers, kind in columns))
    for game in args.games:
        for envs in args.envs:
            best = measure(game, envs, args)
            print(f"{game:20} {envs:6}", *(f"{best[column] / 1e6:12.2f} M" for column in columns), flush=True)


if __name__ == "__main__":
    main()
