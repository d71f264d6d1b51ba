"""Sudoku puzzles with one solution each, for `Sudoku-v0`: as many digits at the beginning as Jumanji's have.

    python scripts/make_sudoku.py gpuzoo/envs/jumanji/sudoku.npz [--puzzles 1000] [--seed 1]

A board is filled at random, and digits are taken out in a random order as long as the solution stays the only one,
until as many are left as were drawn. Jumanji's 10,000 "mixed" puzzles have 39 on average, with a standard deviation of
6, and from 25 to 77; the 1000 "very easy" ones have 46 to 80, all numbers about as often.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SIDE, ALL = 9, 0x1FF
UNITS = [(k // 9, 9 + k % 9, 18 + k // 27 * 3 + k % 9 // 3) for k in range(SIDE * SIDE)]
COUNTS: dict[str, Callable[[random.Random], int]] = {
    "mixed": lambda draw: min(max(round(draw.gauss(38.6, 6.0)), 25), 77),
    "very-easy": lambda draw: draw.randint(46, 80),
}


def solve(board: list[int], draw: random.Random | None = None) -> list[int] | None:
    """A solution of a board of bits, 0 for an empty cell; a random one if there are several and ``draw`` is given."""
    used = [0] * (3 * SIDE)
    for cell, digit in enumerate(board):
        for unit in UNITS[cell]:
            if digit & used[unit]:
                return None
            used[unit] |= digit
    out = list(board)

    def fill() -> bool:
        best, options = -1, 0
        fewest = SIDE + 1
        for cell, digit in enumerate(out):
            if not digit:
                a, b, c = UNITS[cell]
                free = ALL & ~(used[a] | used[b] | used[c])
                count = free.bit_count()
                if count < fewest:
                    best, options, fewest = cell, free, count
                    if count < 2:
                        break
        if best < 0:
            return True
        digits = [1 << k for k in range(SIDE) if options >> k & 1]
        if draw is not None:
            draw.shuffle(digits)
        for digit in digits:
            out[best] = digit
            for unit in UNITS[best]:
                used[unit] ^= digit
            if fill():
                return True
            for unit in UNITS[best]:
                used[unit] ^= digit
        out[best] = 0
        return False

    return out if fill() else None


def has_other_solution(board: list[int], cell: int, digit: int) -> bool:
    """Whether the board has a solution with another digit in an empty cell."""
    tried = list(board)
    for k in range(SIDE):
        if 1 << k != digit:
            tried[cell] = 1 << k
            if solve(tried) is not None:
                return True
    return False


def puzzle(digits: int, draw: random.Random) -> list[int]:
    """A board with so many digits and one solution, as bits."""
    while True:
        board = solve([0] * (SIDE * SIDE), draw)
        assert board is not None
        left = SIDE * SIDE
        for cell in draw.sample(range(SIDE * SIDE), SIDE * SIDE):
            if left == digits:
                return board
            digit, board[cell] = board[cell], 0
            if has_other_solution(board, cell, digit):
                board[cell] = digit
            else:
                left -= 1


def puzzles(name: str, number: int, draw: random.Random) -> NDArray[np.int8]:
    """Different puzzles, (number, 9, 9), 0 for an empty cell."""
    found: dict[tuple[int, ...], None] = {}
    while len(found) < number:
        found[tuple(digit.bit_length() for digit in puzzle(COUNTS[name](draw), draw))] = None
    return np.array([*found], np.int8).reshape(number, SIDE, SIDE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--puzzles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    draw = random.Random(chosen.seed)
    sets = {name: puzzles(name, chosen.puzzles, draw) for name in COUNTS}
    np.savez_compressed(chosen.file, **sets)


if __name__ == "__main__":
    main()
