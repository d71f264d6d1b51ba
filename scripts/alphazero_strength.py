"""How strong AlphaZero is in a game: matches against UCT, which plays random games from each position of its tree.

    python -m baselines.alphazero Othello-v0 --config '{"size": 6}' --minutes 60 --out out/othello
    python scripts/alphazero_strength.py out/othello/network.safetensors [--simulations 32 400] [--games 100]

A game begins with random moves, and each opening is played from both seats.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from alphazero_players import parser, players

from baselines.report.searchers import match


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--games", type=int, default=100, help="of each match")
    options.add_argument("--opening", type=int, default=2, help="random moves at the beginning of a game")
    given = options.parse_args()
    args, contestants, uct = players(given)
    for name, player in contestants.items():
        score = match(
            args.game, player, uct, games=given.games, opening=given.opening, seed=given.seed, config=args.config
        )
        low, high = score.interval
        print(f"{name}, against UCT with {given.playouts} playouts: {score}, points {score.points:.3f}, "
              f"95 % interval {low:.3f} to {high:.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
