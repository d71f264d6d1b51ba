"""A table of bridge deals with their double-dummy results, for `BridgeBidding-v0`: deals drawn at random, solved here.

    python scripts/make_bridge_deals.py gpuzoo/envs/card_games/bridge_deals.npy [--deals 1000] [--seed 1]

It needs OpenSpiel (.venvs/pgx has it), whose bridge solves deals by Bo Haglund's DDS: about 0.2 CPU seconds each. The
form is that of Pgx's tables: an int32 array (2, deals, 4). The first half has a number for each suit (spades, hearts,
diamonds, clubs). Its two-bit digits say who holds each card: north, east, south or west. The ace's digit is the
highest, then come those of the two up to the king. The second half has a number for each declarer, whose hexadecimal
digits are the tricks in clubs, diamonds, hearts, spades and without trumps.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

SEATS, DENOMINATIONS = "NESW", ("C", "D", "H", "S", "N")
GAME: Any = pyspiel.load_game("bridge(use_double_dummy_result=true,dealer_vul=false,non_dealer_vul=false)")
CONTRACTS = [GAME.contract_string(k) for k in range(GAME.num_possible_contracts())]


def tricks(owners: NDArray[Any]) -> NDArray[np.int32]:
    """Tricks of each declarer (4) in each denomination (5), of the owners of cards 13 * suit + rank."""
    hands: list[list[int]] = [[], [], [], []]
    for card, owner in enumerate(owners):
        suit, rank = divmod(card, 13)
        hands[owner].append(3 - suit + 4 * ((rank - 1) % 13))
    state = GAME.new_initial_state()
    for k in range(13):
        for seat in range(4):
            state.apply_action(hands[seat][k])
    scores = dict(zip(CONTRACTS, state.score_by_contract(), strict=True))
    found = np.zeros((4, 5), np.int32)
    for seat, name in enumerate(SEATS):
        for k, denomination in enumerate(DENOMINATIONS):
            score = (1 if seat % 2 == 0 else -1) * scores[f"1{denomination} {name}"]  # of north and south there
            first, each = {"C": (70, 20), "D": (70, 20), "H": (80, 30), "S": (80, 30), "N": (90, 30)}[denomination]
            found[seat, k] = 7 + (score - first) // each if score > 0 else 7 + score // 50
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--deals", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rng, table = np.random.default_rng(chosen.seed), np.zeros((2, chosen.deals, 4), np.int32)
    for k in range(chosen.deals):
        owners = rng.permutation(np.repeat(np.arange(4), 13))
        table[0, k] = owners.reshape(4, 13) @ (4 ** np.arange(12, -1, -1))
        table[1, k] = tricks(owners) @ (16 ** np.arange(4, -1, -1))
    np.save(chosen.file, table)


if __name__ == "__main__":
    main()
