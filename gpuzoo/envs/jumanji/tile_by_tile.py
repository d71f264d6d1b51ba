"""A solver of sliding-tile puzzles, as an expert from which policies can learn.

It solves the top row, then what is left of the left column, and so on with the smaller board that remains, until four
cells are left: the order of Parberry 1995, "A real-time algorithm for the (n^2 - 1)-puzzle". It brings one tile after
the other to its place, and the last two of a row or column together. A breadth-first search from each of these goals
finds the first moves of the shortest ways to it, from all positions of its tiles and the empty cell.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host
from gpuzoo.envs.jumanji.shortest_ways import Ints, first_moves, flags

LARGEST = 8  #: rows of a board; its largest search has 216,000 positions
WAYS = (-1, 0), (0, 1), (1, 0), (0, -1)  #: rows and columns that the empty cell moves: up, right, down, left


def best_moves(group: str, observation: Any) -> NDArray[np.bool_]:
    """The first moves of the shortest ways to the goal that each board comes to next.

    Args:
        group: of agents; there is one.
        observation: (rows, size, size) tiles, 0 for the empty cell; an array, or a tensor of torch on any device.

    Returns:
        (rows, 4), true for these actions of SlidingTilePuzzle-v0; none for boards that are solved or can't be.

    Raises:
        ValueError: boards that are not square, or larger than `LARGEST`.
    """
    board = to_host(observation).astype(np.int64)
    size = board.shape[-1]
    if board.shape[1:] != (size, size) or not 2 <= size <= LARGEST:
        raise ValueError(f"this solver is for square boards of 2 to {LARGEST} rows, not for shape {board.shape[1:]}.")
    cells = np.argsort(board.reshape(len(board), -1), 1)
    best = np.zeros(len(board), np.int32)
    for goal in goals(size):
        here = goal.best[tuple(goal.free_cell[cells[:, goal.things]].T)]
        best = np.where(best == 0, here, best)
    return flags(best, len(WAYS))


@dataclasses.dataclass
class Goal:
    """Tiles that come to their places.

    Attributes:
        things: 0, which stands for the empty cell, and the tiles.
        free_cell: for each cell of the board its number among those that no goal before has filled, or 0.
        best: for the number of each thing's cell: a bit for each move that is the first of a shortest way; none where
            the tiles are in place.
    """

    things: list[int]
    free_cell: Ints
    best: NDArray[np.int32]


def order(size: int) -> Iterator[list[int]]:
    """The tiles of one goal after the other."""
    board = np.arange(1, size * size + 1).reshape(size, size)
    for k in range(size - 2):
        for line in (board[k, k:].tolist(), board[k + 1 :, k].tolist()):
            yield from ([tile] for tile in line[:-2])
            yield line[-2:]
    yield [*board[-2, -2:].tolist(), int(board[-1, -2])]


@functools.cache
def goals(size: int) -> tuple[Goal, ...]:
    """All goals of a board of so many rows."""
    found, free = [], [*range(size * size)]
    for tiles in order(size):
        found.append(searched(size, free, tiles))
        free = [cell for cell in free if cell + 1 not in tiles]
    return tuple(found)


def searched(size: int, free: list[int], tiles: list[int]) -> Goal:
    """A goal, by breadth-first search from where its tiles are in place and the empty cell is anywhere else.

    Args:
        size: rows of the board.
        free: cells that no goal before has filled.
        tiles: that come to their places.
    """
    free_cell = np.zeros(size * size, np.int64)
    free_cell[free] = np.arange(len(free))
    shape = (len(free),) * (1 + len(tiles))
    row, column = np.divmod(free, size)

    def after(way: int, positions: Ints) -> Ints:
        """What a move makes of positions; one that leaves the free cells changes nothing."""
        empty, *places = np.unravel_index(positions, shape)
        to = row[empty] + WAYS[way][0], column[empty] + WAYS[way][1]
        inside = (np.min(to, 0) >= 0) & (np.max(to, 0) < size)
        cell = np.where(inside, size * to[0] + to[1], 0)
        inside &= np.isin(cell, free)
        there = np.where(inside, free_cell[cell], empty)
        return np.ravel_multi_index((there, *(np.where(place == there, empty, place) for place in places)), shape)

    ends = [tile - 1 for tile in tiles]
    empty = free_cell[[cell for cell in free if cell not in ends]]
    solved = np.ravel_multi_index((empty, *(np.full(len(empty), free_cell[cell]) for cell in ends)), shape)
    best, _ = first_moves(math.prod(shape), range(len(WAYS)), after, solved)
    return Goal([0, *tiles], free_cell, best.reshape(shape))
