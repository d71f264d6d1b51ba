"""How strong AlphaZero is in a game: matches against UCT, which plays random games from each position of its tree.

    python -m baselines.alphazero Othello-v0 --config '{"size": 6}' --minutes 60 --out out/othello
    python scripts/alphazero_strength.py out/othello/network.safetensors [--simulations 32 400] [--games 100]

A game begins with random moves, and each opening is played from both seats.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.alphazero import evaluator, load
from baselines.report.searchers import match, searcher

import torch  # isort: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="a checkpoint of baselines.alphazero")
    parser.add_argument("--simulations", type=int, nargs="+", default=[32, 400], help="of AlphaZero's search, per move")
    parser.add_argument("--playouts", type=int, default=1000, help="of UCT, for each move")
    parser.add_argument("--games", type=int, default=100, help="of each match")
    parser.add_argument("--opening", type=int, default=2, help="random moves at the beginning of a game")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bfloat16", action="store_true", help="twice as fast where the processor has it")
    given = parser.parse_args()
    torch.set_num_threads(1)
    network, args = load(given.network)
    evaluate = evaluator(network, torch.bfloat16 if given.bfloat16 else torch.float32)
    uct = searcher("uct", given.playouts, None, 1)
    for n in given.simulations:
        score = match(
            args.game, searcher("puct", n, evaluate, 1), uct, games=given.games, opening=given.opening, seed=given.seed,
            config=args.config,
        )  # fmt: skip
        low, high = score.interval
        print(f"AlphaZero, {n} simulations, against UCT with {given.playouts} playouts: {score}, points "
              f"{score.points:.3f}, 95 % interval {low:.3f} to {high:.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
