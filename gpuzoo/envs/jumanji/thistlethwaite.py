"""Thistlethwaite's algorithm, which solves Rubik's cube of size 3, as an expert from which policies can learn.

It solves the cube in four phases. Each phase allows fewer moves than the one before, so that it keeps what was reached
(Morwen Thistlethwaite 1981; https://www.jaapsch.net/puzzles/thistle.htm):

1. With all moves: orient the edges.
2. With half turns only of front and back: orient the corners, and bring the middle layer's edges into it.
3. With half turns only of right and left, too: bring corners and edges to where half turns can solve them.
4. With half turns only: solve the cube.

A breadth-first search from the end of each phase finds the first moves of the shortest solutions from each position.
They have at most 7, 10, 13 and 15 moves.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host
from gpuzoo.envs.jumanji.rubiks_cube import FACES, TURNS, cycles
from gpuzoo.envs.jumanji.shortest_ways import Ints, first_moves, flags

UP, FRONT, RIGHT, BACK, LEFT, DOWN = range(len(FACES))
MOVES = len(FACES) * len(TURNS)
HALF = TURNS.index("half")
#: The stickers of each place, 9 face + 3 row + column: of corners that of the upper or lower face, and on clockwise; of
#: edges that of the upper or lower face, or in the middle layer that of front or back.
CORNERS = np.array([
    [8, 18, 11], [6, 9, 38], [0, 36, 29], [2, 27, 20], [47, 17, 24], [45, 44, 15], [51, 35, 42], [53, 26, 33],
])  # fmt: skip
#: those between left and right, those between front and back, and those of the middle layer
EDGES = np.array([
    [1, 28], [7, 10], [52, 34], [46, 16], [3, 37], [5, 19], [48, 43], [50, 25], [14, 21], [12, 41], [32, 39], [30, 23],
])  # fmt: skip


def best_moves(group: str, observation: Any) -> NDArray[np.bool_]:
    """The first moves of the shortest solutions of the phase that each cube is in.

    Args:
        group: of agents; there is one.
        observation: (rows, 6, 9) colours, of cubes that can be solved; an array, or a tensor of torch on any device.

    Returns:
        (rows, 18), true for these actions of RubiksCube-v0; none for a solved cube.

    Raises:
        ValueError: cubes of another size.
    """
    cube = to_host(observation).astype(np.int64)
    if cube.shape[1:] != (6, 9):
        raise ValueError(
            f"Thistlethwaite's algorithm is for cubes of size 3, (rows, 6, 9), not for shape {cube.shape}."
        )
    corners, twists, edges, flips = pieces(cube.reshape(len(cube), -1))
    positions: tuple[tuple[Ints, ...], ...] = (
        (flips,),
        (twists, edges // 8),
        (corners, 1 - edges[:, :8] // 4),
        (corners, edges[:, :4], edges[:, 4:8] - 4, edges[:, 8:] - 8),
    )
    best = np.zeros(len(corners), np.int32)
    for phase, position in zip(phases(), positions, strict=True):
        here = phase.best[tuple(part.number(rows) for part, rows in zip(phase.parts, position, strict=True))]
        best = np.where(best == 0, here, best)
    return flags(best, MOVES)


# ---- the pieces of a cube ----


def pieces(cube: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Which corner and which edge lies in each place, and how it is oriented.

    Args:
        cube: (cubes, 54) colours.

    Returns:
        corners (cubes, 8), their twists 0, 1 or 2, edges (cubes, 12), and their flips 0 or 1. Quarter turns of front
        and back flip edges, others flip none.
    """
    found = []
    for places in (CORNERS, EDGES):
        number = np.zeros(1 << len(FACES), np.int64)
        number[(1 << places // 9).sum(1)] = np.arange(len(places))
        found.append(number[(1 << cube[:, places]).sum(2)])
    twists = np.argmax(np.isin(cube[:, CORNERS], (UP, DOWN)), 2)
    vertical, sideways = (np.isin(cube[:, EDGES], faces) for faces in ((UP, DOWN), (LEFT, RIGHT)))
    flips = np.where(vertical.any(2), vertical[..., 1], sideways[..., 0])
    return found[0], twists, found[1], flips.astype(np.int64)


@functools.cache
def turned() -> tuple[Ints, Ints, Ints, Ints]:
    """What each move makes of a solved cube, as `pieces`, (moves, ...) each."""
    cubes = []
    for face in cycles(3)[:, 0]:
        comes_from = np.arange(54)
        comes_from[np.roll(face, -1, 1)] = face
        twice = comes_from[comes_from]
        cubes += [comes_from // 9, twice[comes_from] // 9, twice // 9]
    return pieces(np.array(cubes))


# ---- the positions of a phase ----


class Part:
    """Part of a position: what lies in some places, or how it is oriented there.

    Args:
        rows: all that it can be, (count, places).
        comes_from: (moves, places), the place from which a move brings something.
        added: (moves, places), what is added to that then.
        modulo: what the sum is a remainder of.
    """

    def __init__(
        self, rows: Iterable[Sequence[int]], comes_from: Ints, added: Ints | None = None, modulo: int = 8
    ) -> None:
        self.rows, self._comes_from, self._modulo = np.array([*rows], np.int64), comes_from, modulo
        self._added = np.zeros_like(comes_from) if added is None else added
        self._base = int(self.rows.max()) + 1
        self._number = np.zeros(self._base ** self.rows.shape[1], np.int32)
        self._number[self._digits(self.rows)] = np.arange(len(self.rows))

    def __len__(self) -> int:
        return len(self.rows)

    def _digits(self, rows: Ints) -> Ints:
        return np.asarray(rows @ self._base ** np.arange(rows.shape[1]))

    def number(self, rows: Ints) -> Ints:
        """The number of each row; any number for what is none of the rows."""
        return self._number[self._digits(rows.clip(0, self._base - 1))]

    def after(self, move: int) -> Ints:
        """(count,): the number of what a move makes of each row."""
        return self.number((self.rows[:, self._comes_from[move]] + self._added[move]) % self._modulo)


@dataclasses.dataclass
class Phase:
    """A phase of the solution.

    Attributes:
        parts: of a position.
        best: for the numbers of each part: a bit for each move that is the first of a shortest way; none at the end.
        longest: of the shortest ways, in moves.
    """

    parts: tuple[Part, ...]
    best: NDArray[np.int32]
    longest: int


def searched(parts: tuple[Part, ...], moves: Sequence[int], ends: tuple[Ints, ...]) -> Phase:
    """A phase, by breadth-first search from the numbers of its ends; the inverse of each move is a move, too."""
    shape = tuple(len(part) for part in parts)
    tables = {move: [part.after(move) for part in parts] for move in moves}

    def after(move: int, positions: Ints) -> Ints:
        numbers = zip(tables[move], np.unravel_index(positions, shape), strict=True)
        return np.ravel_multi_index(tuple(table[number] for table, number in numbers), shape)

    best, longest = first_moves(math.prod(shape), moves, after, np.ravel_multi_index(ends, shape))
    return Phase(parts, best.reshape(shape), longest)


@functools.cache
def phases() -> tuple[Phase, ...]:
    """All four, in a few seconds."""
    corners, twists, edges, flips = turned()
    every = range(MOVES)
    second, third, halves = (
        [m for m in every if m // len(TURNS) not in by_halves or m % len(TURNS) == HALF]
        for by_halves in ((FRONT, BACK), (FRONT, BACK, RIGHT, LEFT), range(len(FACES)))
    )

    flipped = Part(itertools.product(range(2), repeat=12), edges, flips, 2)
    twisted = Part((x for x in itertools.product(range(3), repeat=8) if sum(x) % 3 == 0), corners, twists, 3)
    middle = Part((x for x in itertools.product(range(2), repeat=12) if sum(x) == 4), edges)
    permuted = Part(itertools.permutations(range(8)), corners)
    standing = Part((x for x in itertools.product(range(2), repeat=8) if sum(x) == 4), edges[:, :8] % 8)
    at_home, before = permuted.number(np.arange(8)[None]), 0
    while len(at_home) > before:
        before = len(at_home)
        at_home = np.unique(np.concatenate([at_home, *(permuted.after(move)[at_home] for move in halves)]))
    orbit = Part(permuted.rows[at_home], corners)
    slices = [Part(itertools.permutations(range(4)), edges[:, k : k + 4] % 4) for k in (0, 4, 8)]

    def solved(part: Part, row: Sequence[int]) -> Ints:
        return part.number(np.array([row]))

    return (
        searched((flipped,), every, (solved(flipped, [0] * 12),)),
        searched((twisted, middle), second, (solved(twisted, [0] * 8), solved(middle, [0] * 8 + [1] * 4))),
        searched((permuted, standing), third, (at_home, np.repeat(solved(standing, [1] * 4 + [0] * 4), len(at_home)))),
        searched((orbit, *slices), halves, (solved(orbit, range(8)), *(solved(part, range(4)) for part in slices))),
    )
