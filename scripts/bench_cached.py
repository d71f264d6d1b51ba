"""Self-play of AlphaZero with an evaluator that remembers positions and with one that does not, in turns, on one core.

    python scripts/bench_cached.py [ConnectFour-v0 ...] [--minutes 1] [--rounds 3]

A small network learns for some minutes first, so that the games are those of a run. From then on every phase (16 moves
of 512 games, 24 simulations each) is played twice, from the same games and with the same noise. CPU seconds are those
of the process. A network of 32 channels and 4 blocks is measured; its results are thrown away, and the small one plays.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.alphazero import Args, Run, network_of
from gpuzoo.search import Cached

import torch  # isort: skip
from torch import Tensor  # isort: skip

#: options of the runs of docs/alphazero.md
GAMES: dict[str, dict[str, Any]] = {
    "ConnectFour-v0": {"symmetry": "mirror", "opening": 6},
    "Othello-v0": {"symmetry": "square", "opening": 6, "config": {"size": 6}},
    "Go-v0": {"symmetry": "square", "config": {"size": 5}},
}
SHARED: dict[str, Any] = {"simulations": 24, "td_lambda": 0.85, "reuse": 2, "device": "cpu"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", default=list(GAMES), help="some of " + ", ".join(GAMES))
    parser.add_argument("--minutes", type=float, default=1.0, help="how long the small network learns first")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for game in given.games:
        options = SHARED | GAMES[game]
        run = Run(Args(game, minutes=given.minutes, channels=16, blocks=1, **options))
        while run.minutes < given.minutes:
            run.phase()
        large = network_of(Args(game, channels=32, blocks=4, **options))

        def evaluate(observation: Tensor, legal: Tensor, run: Run = run, large: Any = large) -> tuple[Tensor, Tensor]:
            large(observation)
            logits, value = run.network(observation)
            return logits, value

        seconds: dict[str, list[float]] = {"plain": [], "cached": []}
        shares = []
        for _ in range(given.rounds):
            begun, noise = run.self_play.envs.snapshot(), run.self_play.search.random.get_state()
            numbers = torch.get_rng_state()
            for name, times in seconds.items():
                run.self_play.envs.restore(begun)
                run.self_play.search.random.set_state(noise)
                torch.set_rng_state(numbers)
                asked = Cached(evaluate) if name == "cached" else evaluate
                begin = time.process_time()
                run.self_play.play(asked, run.replay)
                times.append(time.process_time() - begin)
                if isinstance(asked, Cached):
                    shares.append(asked.evaluated / asked.asked)
        plain, cached = (statistics.median(times) for times in seconds.values())
        print(
            f"{game}: a phase takes {plain:.1f} CPU seconds, with memory {cached:.1f} ({plain / cached:.2f} times as "
            f"fast); {statistics.mean(shares):.0%} of the positions are evaluated",
            flush=True,
        )


if __name__ == "__main__":
    main()
