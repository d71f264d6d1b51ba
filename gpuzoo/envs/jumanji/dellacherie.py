"""A player of Tetris, as an expert from which policies can learn.

It looks at the board after each action, and takes the one that Dellacherie's evaluation finds best: six features with
weights that were found by hand (Thiery and Scherrer 2009, "Building Controllers for Tetris",
https://hal.science/inria-00418954). It does not know the next piece.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host
from gpuzoo.envs.jumanji.shortest_ways import Ints
from gpuzoo.envs.jumanji.tetris import PIECES, ROTATIONS

SIDE = 4  #: rows and columns of the square that holds a piece
Boards = NDArray[np.bool_]


def best_moves(group: str, observation: Any) -> NDArray[np.bool_]:
    """The actions after which the board is worth the most.

    Args:
        group: of agents; there is one.
        observation: (batch, rows + 4, columns, 1), as in Tetris-v0; an array, or a tensor of torch on any device.

    Returns:
        (batch, 4 columns), true for these actions of Tetris-v0; none where no action is legal.
    """
    seen = to_host(observation).astype(np.int64)[..., 0] != 0
    best = np.zeros((len(seen), ROTATIONS * seen.shape[2]), bool)
    for rotations in PIECES:
        cells = _cells(rotations[0])
        rows = np.flatnonzero((seen[:, cells[:, 0], cells[:, 1]]).all(1) & (seen[:, :SIDE].sum((1, 2)) == len(cells)))
        drops = placements(rotations, seen.shape[2])
        legal, worth = evaluation(seen[rows, SIDE:], drops)
        worth = np.where(legal, worth, -np.inf)
        best[np.ix_(rows, drops.actions)] = legal & (worth == worth.max(1, keepdims=True))
    return best


class Placements(NamedTuple):
    """Ways to drop a piece.

    Attributes:
        actions: (placements,).
        cells: (placements, 4, 2), row and column of each cell at the top of the board.
        needs: (placements, 4, columns), the cells of the uppermost rows that must be free.
    """

    actions: Ints
    cells: Ints
    needs: Boards


@functools.cache
def placements(rotations: tuple[str, ...], columns: int) -> Placements:
    """All placements of a piece within the columns of a board.

    Args:
        rotations: rows of each, as in `PIECES`.
        columns: of the board.
    """
    actions, cells, needs = [], [], []
    for rotation, piece in enumerate(rotations):
        shape = _cells(piece)
        for left in range(columns - shape[:, 1].max()):
            actions.append(columns * rotation + left)
            cells.append(shape + np.array((0, left)))
            needs.append(np.zeros((SIDE, columns), bool))
            needs[-1][tuple(cells[-1].T)] = True
            needs[-1][1] |= needs[-1][2]
            needs[-1][0] |= needs[-1][1]
    return Placements(np.array(actions), np.array(cells), np.array(needs))


def evaluation(boards: Boards, drops: Placements) -> tuple[Boards, NDArray[np.float64]]:
    """Which placements are legal, and Dellacherie's evaluation of the boards that they leave.

    Args:
        boards: (batch, rows, columns).
        drops: placements of the piece.

    Returns:
        (batch, placements) each.
    """
    rows, options = boards.shape[1], len(drops.actions)
    legal = np.asarray(~(boards[:, None, :SIDE] & drops.needs).any((2, 3)))
    with_floor = np.pad(boards, ((0, 0), (0, SIDE), (0, 0)), constant_values=True)
    fallen = np.arange(rows)[:, None] + drops.cells[:, None, :, 0]
    room = ~with_floor[:, fallen, drops.cells[:, None, :, 1]].any(3)
    height = np.logical_and.accumulate(room, 2).sum(2) - 1
    row = np.where(legal, height, 0)[..., None] + drops.cells[..., 0]
    env, option, _ = np.ogrid[: len(boards), :options, :1]
    after = np.repeat(with_floor[:, None], options, 1)
    after[env, option, row, drops.cells[..., 1]] = True
    after = after[:, :, :rows]
    full = np.asarray(after.all(3))
    eroded = full.sum(2) * full[env, option, np.minimum(row, rows - 1)].sum(2)
    order = np.argsort(~full, 2, kind="stable")[..., None]
    left = np.take_along_axis(after & ~full[..., None], order, 2)
    landing = rows - (row.min(2) + row.max(2)) / 2
    return legal, eroded - landing - badness(left)


def badness(boards: Boards) -> Ints:
    """Row and column transitions, four times the holes, and cumulative wells.

    Args:
        boards: (..., rows, columns).

    Returns:
        (...).
    """
    rest = ((0, 0),) * (boards.ndim - 2)
    across = np.pad(boards, (*rest, (0, 0), (1, 1)), constant_values=True)
    along = np.pad(np.pad(boards, (*rest, (1, 0), (0, 0))), (*rest, (0, 1), (0, 0)), constant_values=True)
    transitions = np.diff(across, axis=-1).sum((-2, -1)) + np.diff(along, axis=-2).sum((-2, -1))
    holes = (np.logical_or.accumulate(boards, -2) & ~boards).sum((-2, -1))
    well = ~boards & across[..., :-2] & across[..., 2:]
    depth, wells = np.zeros(well[..., 0, :].shape, np.int64), np.zeros(boards.shape[:-2], np.int64)
    for row in range(boards.shape[-2]):
        depth = np.where(well[..., row, :], depth + 1, 0)
        wells += depth.sum(-1)
    return np.asarray(transitions + 4 * holes + wells)


def _cells(piece: str) -> Ints:
    """(4, 2), row and column of each cell."""
    return np.argwhere([[mark == "#" for mark in line] for line in piece.split("/")])
