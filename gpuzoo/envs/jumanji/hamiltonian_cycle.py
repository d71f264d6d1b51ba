"""A player of Snake that fills the board, as an expert from which policies can learn.

A cycle visits each cell of the board once. A snake that follows it never bites itself, so it eats each fruit, but it
takes half of the cycle for one. Short cuts are as safe where the head does not pass the tail, as the body then still
lies in the order of the cycle (Tapsell 2015, "Nokia 6110 Part 3 - Algorithms",
https://johnflux.com/2015/05/02/nokia-6110-part-3-algorithms/).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host
from gpuzoo.envs.jumanji.shortest_ways import Ints

WAYS = (-1, 0), (0, 1), (1, 0), (0, -1)  #: rows and columns of a move: up, right, down, left
LONG = 0.5  #: the part of the board from which a snake takes no short cuts: they leave gaps where fruits are far


def best_moves(group: str, observation: Any) -> NDArray[np.bool_]:
    """The move along the cycle, or the short cut that leads nearest to the fruit.

    Args:
        group: of agents; there is one.
        observation: (rows of the batch, rows, columns, 5), as in Snake-v1; an array, or a tensor of torch on any
            device.

    Returns:
        (rows of the batch, 4), true for this action of Snake-v1.

    Raises:
        ValueError: boards that no cycle visits whole: the numbers of rows and of columns are odd, or one of them is 1.
    """
    seen = to_host(observation).astype(np.int64)  # the fractions of the last channel are not used
    batch, rows, columns, channels = seen.shape
    cells, turn = rows * columns, cycle(rows, columns).ravel()
    body, *marks = (channel for channel in seen.reshape(batch, cells, channels).transpose(2, 0, 1)[:4])
    head, tail, fruit = (mark.argmax(1) for mark in marks)
    to_tail = np.where(tail == head, cells, (turn[tail] - turn[head]) % cells)
    to_fruit = (turn[fruit] - turn[head]) % cells
    farthest = np.where(body.sum(1) < LONG * cells, np.minimum(to_tail - 1, to_fruit), 1)
    progress = np.zeros((batch, len(WAYS)), np.int64)
    for way, (down, right) in enumerate(WAYS):
        row, column = head // columns + down, head % columns + right
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        gained = (turn[np.where(inside, row * columns + column, head)] - turn[head]) % cells
        progress[:, way] = np.where((gained == 1) | (gained <= farthest), gained, 0)
    return np.asarray((progress > 0) & (progress == progress.max(1, keepdims=True)))


@functools.cache
def cycle(rows: int, columns: int) -> Ints:
    """The place of each cell, (rows, columns), in a cycle of neighbours that visits them all.

    It winds through all columns but the first, row by row, and comes back along the first.

    Raises:
        ValueError: there is none.
    """
    if min(rows, columns) < 2 or rows * columns % 2:
        raise ValueError(
            f"no cycle visits each cell of {rows} x {columns} once: this expert needs two rows and columns or more, and"
            " an even number of one of them."
        )
    if rows % 2:
        return cycle(columns, rows).T
    turn = np.zeros((rows, columns), np.int64)
    turn[:, 1:] = np.arange(rows * (columns - 1)).reshape(rows, -1)
    turn[1::2, 1:] = turn[1::2, :0:-1]
    turn[:, 0] = np.arange(rows * columns - 1, rows * (columns - 1) - 1, -1)
    return turn
