"""What the experts for puzzles share: shortest ways, by breadth-first search, and their first moves as bits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def first_moves(
    count: int, moves: Sequence[int], after: Callable[[int, Ints], Ints], ends: Ints
) -> tuple[NDArray[np.int32], int]:
    """The first moves of the shortest ways from each position to an end.

    Args:
        count: of positions.
        moves: a move for each way to change a position; the inverse of each must be a move, too.
        after: what a move makes of positions.
        ends: the positions to which ways lead.

    Returns:
        For each position bit ``m`` of a number for each first move ``m``, none for ends and for positions without a
        way; and the moves of the longest way.
    """
    distance, reached = np.full(count, -1, np.int16), ends
    for steps in itertools.count():
        distance[reached] = steps
        found = np.zeros(count, bool)
        for move in moves:
            found[after(move, reached)] = True
        reached = np.flatnonzero(found & (distance < 0))
        if not len(reached):
            break
    known, best = np.flatnonzero(distance >= 0), np.zeros(count, np.int32)
    for move in moves:
        best[known] |= (distance[after(move, known)] < distance[known]).astype(np.int32) << move
    return best, steps


def flags(bits: NDArray[np.int32], moves: int) -> NDArray[np.bool_]:
    """(rows, moves), whether each bit is set."""
    return np.asarray(bits[:, None] >> np.arange(moves) & 1 != 0)
