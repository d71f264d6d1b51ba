"""A player of 2048 that looks ahead, as an expert from which policies can learn.

It searches by expectimax: the best move, the mean over the new tiles, the best next move, and so on; where it stops, a
heuristic says what boards are worth. Its terms are those of Robert Xiao's answer to "What is the optimal algorithm for
the game 2048?" (https://stackoverflow.com/a/22498940), its weights our own.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host
from gpuzoo.envs.game_2048.game_2048 import CHANNELS, SIZE

# A board has four bits for the exponent of each tile, the first row lowest; so 16 bits are a row.
Boards = NDArray[np.uint64]
Lines = NDArray[np.uint16]
Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

MOVES = 4
LARGEST = 15  #: exponent; larger tiles count as this one, and two of these do not join
NEW_TILES = (1, 0.9), (2, 0.1)  #: exponents, and how probable they are
CROWDED = 2  #: a board with at most so many empty cells is searched one move deeper
CHUNK = 128  #: boards that are searched together
LOST = -6000.0  #: value of a board without a legal move: less than any other
EMPTY, JOIN, TILES, DISORDER = 2.0, 3.0, 0.7, 1.0  #: weights of the heuristic's terms
BITS = np.arange(0, 64, 4, dtype=np.uint64)  #: the lowest of each cell


def best_moves(group: str, observation: Any) -> NDArray[np.bool_]:
    """The moves of the highest expected value.

    Args:
        group: of agents; there is one.
        observation: (rows, 4, 4, 31) tiles, one-hot; an array, or a tensor of torch on any device.

    Returns:
        (rows, 4), true for these actions of Game2048-v0; none for boards without a legal move.

    Raises:
        ValueError: observations of another shape.
    """
    seen = to_host(observation)
    if seen.shape[1:] != (SIZE, SIZE, CHANNELS):
        raise ValueError(f"this player is for observations (rows, {SIZE}, {SIZE}, {CHANNELS}), not {seen.shape}.")
    tiles = seen.argmax(3).reshape(-1, SIZE * SIZE)
    boards, crowded = packed(tiles), (tiles == 0).sum(1) <= CROWDED
    best = np.zeros((len(boards), MOVES), bool)
    for depth, rows in (1, np.flatnonzero(~crowded)), (2, np.flatnonzero(crowded)):
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            values = move_values(boards[chunk], depth)
            best[chunk] = ((values == values.max(0)) & np.isfinite(values)).T
    return best


def move_values(boards: Boards, depth: int) -> Floats:
    """(4, boards), the value of each move; minus infinity if it is illegal.

    Args:
        boards: (boards,).
        depth: how many more moves follow each.
    """
    before = np.stack((boards, transposed(boards)))
    left, right, _ = tables()
    moved = np.stack((left[before.view(np.uint16)], right[before.view(np.uint16)])).view(np.uint64)
    legal = moved != before
    values = np.full(legal.shape, -np.inf)
    # Boards of the moves up and down stay transposed: that does not change their values.
    values[legal] = expected_values(moved[legal], depth) if depth else heuristic(moved[legal])
    return values.reshape(MOVES, -1)


def expected_values(boards: Boards, depth: int) -> Floats:
    """(boards,), the mean value over the new tiles of boards that wait for one, `depth` moves before the end."""
    board, cell = np.nonzero((boards[:, None] >> BITS & np.uint64(LARGEST)) == 0)
    values = np.zeros(len(board))
    for tile, probability in NEW_TILES:
        after = boards[board] | np.uint64(tile) << BITS[cell]
        values += probability * np.maximum(move_values(after, depth - 1).max(0), LOST)
    return np.asarray(np.bincount(board, values) / np.bincount(board))


def heuristic(boards: Boards) -> Floats:
    """(boards,), the sum of the values of all rows and columns."""
    _, _, values = tables()
    lines = values[boards.view(np.uint16)] + values[transposed(boards).view(np.uint16)]
    return np.asarray(lines.reshape(-1, SIZE) @ np.ones(SIZE, np.float32))


@functools.cache
def tables() -> tuple[Lines, Lines, Floats]:
    """For each of the 65,536 lines: it slid to the left, it slid to the right, and the value of the heuristic."""
    tiles = np.arange(1 << 16)[:, None] >> 4 * np.arange(SIZE) & LARGEST
    mirrored = packed(tiles[:, ::-1])
    slid = without_gaps(tiles)
    joins = np.zeros(len(tiles), int)
    for k in range(SIZE - 1):
        join = (slid[:, k] == slid[:, k + 1]) & (slid[:, k] > 0) & (slid[:, k] < LARGEST)
        slid[:, k] += join
        slid[:, k + 1] *= ~join
        joins += join
    left = packed(without_gaps(slid))
    right = mirrored[left[mirrored]]
    steps = np.diff(tiles**2)
    disorder = np.minimum(steps.clip(min=0).sum(1), -steps.clip(max=0).sum(1))
    value = EMPTY * (tiles == 0).sum(1) + JOIN * joins - TILES * (tiles**2).sum(1) - DISORDER * disorder
    return left.astype(np.uint16), right.astype(np.uint16), value.astype(np.float32)


def without_gaps(tiles: Ints) -> Ints:
    """Lines of tiles that are pushed to the left."""
    return np.take_along_axis(tiles, np.argsort(tiles == 0, 1, kind="stable"), 1)


def packed(tiles: Ints) -> Boards:
    """Boards, or lines, from the exponents of their tiles (..., tiles)."""
    tiles = np.minimum(tiles, LARGEST)
    return np.asarray(np.bitwise_or.reduce(tiles.astype(np.uint64) << BITS[: tiles.shape[-1]], -1))


def transposed(boards: Boards) -> Boards:
    """Boards that have columns for rows: first each two by two cells are transposed, then each quarter is one cell."""
    for shift, cells in (12, 0x0000F0F00000F0F0), (24, 0x00000000FF00FF00):
        change = (boards ^ boards >> np.uint64(shift)) & np.uint64(cells)
        boards = boards ^ change ^ change << np.uint64(shift)
    return boards
