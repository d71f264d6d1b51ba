"""UCT with random play on one core: playouts and moves per CPU second, beside OpenSpiel's search in C++.

    python scripts/bench_search.py [ConnectFour-v0 ...] [--roots 1024] [--simulations 200] [--rounds 3]

Searches begin at positions of random games, the same for all. A playout is one random game from a new node to its end;
its moves are counted. CPU seconds are those of the process, so that other programs on the machine disturb less. With
``pip install open_spiel`` its MCTS bot (one random rollout for each simulation) takes turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpuzoo import Simulator, get
from gpuzoo.search import Search
from gpuzoo.tensors import as_tensor

import torch  # isort: skip

#: OpenSpiel's names of games whose actions have the same numbers
SPIEL = {"ConnectFour-v0": "connect_four", "TicTacToe-v0": "tic_tac_toe"}
OPENING = 4  # random moves before a search


class Counting(Search):
    """Counts the moves of random games."""

    moves = 0

    def _played(self, mover: torch.Tensor) -> torch.Tensor:
        value = super()._played(mover)
        games = self._games
        assert games is not None
        begun = as_tensor(self._envs.arrays["elapsed_steps"]).sum() * self._playouts
        self.moves += int(as_tensor(games.arrays["elapsed_steps"]).sum() - begun)
        return value


def ours(game: str, roots: int, simulations: int) -> Callable[[], tuple[int, int]]:
    """A search of all roots; returns its playouts and their moves."""
    envs = Simulator(get(game), roots, device="cpu", threads=1, autoreset_mode="disabled")
    envs.reset(seed=0)
    envs.rollout(OPENING)
    search = Counting(game, roots, simulations=simulations, rule="uct", device="cpu", threads=1)

    def run() -> tuple[int, int]:
        search.moves = 0
        search.run(envs)
        return roots * (simulations + 1), search.moves

    return run


def spiel(game: str, simulations: int, searches: int = 8) -> Callable[[], tuple[int, int]] | None:
    """The same by OpenSpiel, one root after the other; None without it."""
    try:
        import pyspiel
    except ImportError:
        return None
    if game not in SPIEL:
        return None
    rules, rng = pyspiel.load_game(SPIEL[game]), np.random.default_rng(0)
    bot = pyspiel.MCTSBot(rules, pyspiel.RandomRolloutEvaluator(1, 0), 2.0, simulations, 100, False, 0, False)
    states: list[Any] = []
    while len(states) < searches:
        state = rules.new_initial_state()
        for _ in range(OPENING):
            state.apply_action(int(rng.choice(state.legal_actions())))
        states.append(state)

    def run() -> tuple[int, int]:
        for state in states:
            bot.step(state)
        return searches * simulations, 0

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", default=["ConnectFour-v0"])
    parser.add_argument("--roots", type=int, default=1024)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for game in given.games:
        contestants = {"gpuzoo": ours(game, given.roots, given.simulations)}
        if peer := spiel(game, given.simulations):
            contestants["OpenSpiel"] = peer
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
        for _ in range(given.rounds + 1):  # the first one warms up
            for name, run in contestants.items():
                begin = time.process_time()
                playouts, moves = run()
                seconds = time.process_time() - begin
                rates[name].append((playouts / seconds, moves / seconds))
        medians = {name: statistics.median(p for p, _ in found[1:]) for name, found in rates.items()}
        moves = statistics.median(m for _, m in rates["gpuzoo"][1:])
        print(f"{game}: {medians['gpuzoo']:,.0f} playouts and {moves:,.0f} moves per CPU second", flush=True)
        if "OpenSpiel" in medians:
            other, ratio = medians["OpenSpiel"], medians["gpuzoo"] / medians["OpenSpiel"]
            print(f"  OpenSpiel: {other:,.0f} playouts per CPU second; gpuzoo makes {ratio:.1f} times as many")


if __name__ == "__main__":
    main()
