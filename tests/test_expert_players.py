"""Experts that play games with chance: Snake, Tetris, PacMan and 2048."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import gpuzoo
from baselines.report.evaluation import evaluate
from baselines.report.match import arrange
from gpuzoo.envs.jumanji import dellacherie, hamiltonian_cycle
from gpuzoo.envs.jumanji.tetris import PIECES

# ---- Snake ----


@pytest.mark.parametrize(("rows", "columns"), [*itertools.product((2, 4, 12), (2, 3, 12)), (3, 2), (5, 8)])
def test_a_cycle_visits_each_cell_and_comes_back(rows: int, columns: int) -> None:
    turn = hamiltonian_cycle.cycle(rows, columns)
    way = np.array([np.argwhere(turn == k)[0] for k in range(rows * columns)])
    np.testing.assert_array_equal(abs(way - np.roll(way, 1, 0)).sum(1), 1)


@pytest.mark.parametrize(("rows", "columns"), [(12, 12), (5, 6), (6, 5), (2, 2), (2, 7)])
def test_a_snake_fills_its_board(rows: int, columns: int) -> None:
    players = arrange("Snake-v1", {}, "expert", {"num_rows": rows, "num_cols": columns})
    seen = evaluate("Snake-v1", players.players, 50, seed=3, config=players.config)
    assert seen.rates == {"solved": 1.0}
    np.testing.assert_array_equal(seen.returns["agent"], rows * columns - 1)


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 4), (4, 1)])
def test_a_board_without_a_cycle_is_refused(rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match=rf"no cycle visits each cell of {rows} x {columns} once: this expert needs"):
        hamiltonian_cycle.best_moves("agent", np.zeros((1, rows, columns, 5), np.float32))


# ---- Tetris ----


def after(board: NDArray[np.bool_], piece: str, left: int) -> tuple[NDArray[np.bool_], float, int]:
    """The board after a piece has dropped, the height at which its middle lies, and rows times cells that vanish."""
    shape = [(row, column) for row, line in enumerate(piece.split("/")) for column, x in enumerate(line) if x == "#"]
    rows, top = len(board), 0
    while all(row + top + 1 < rows and not board[row + top + 1, column + left] for row, column in shape):
        top += 1
    board = board.copy()
    for row, column in shape:
        board[row + top, column + left] = True
    full = board.all(1)
    cells = sum(bool(full[row + top]) for row, _ in shape)
    height = rows - top - (max(row for row, _ in shape)) / 2
    return np.concatenate([np.zeros((full.sum(), board.shape[1]), bool), board[~full]]), height, int(full.sum()) * cells


def worth(board: NDArray[np.bool_]) -> int:
    """Minus row transitions, column transitions, four times the holes, and cumulative wells, cell by cell."""
    rows, columns = board.shape

    def is_filled(row: int, column: int) -> bool:
        return not 0 <= column < columns or row == rows or (row >= 0 and bool(board[row, column]))

    total = 0
    for row, column in itertools.product(range(rows), range(-1, columns)):
        total += is_filled(row, column) != is_filled(row, column + 1)
    for row, column in itertools.product(range(-1, rows), range(columns)):
        total += is_filled(row, column) != is_filled(row + 1, column)
    for row, column in itertools.product(range(rows), range(columns)):
        total += 4 * (not board[row, column] and bool(board[:row, column].any()))
        depth = row
        while depth >= 0 and not board[depth, column] and is_filled(depth, column - 1) and is_filled(depth, column + 1):
            total, depth = total + 1, depth - 1
    return -total


@pytest.mark.parametrize(("rows", "columns"), [(10, 10), (5, 7)])
def test_a_placement_is_worth_what_its_features_say(rows: int, columns: int) -> None:
    """In states that random play and the expert's reach; the game says which actions are legal."""
    envs = gpuzoo.make_vec("Tetris-v0", num_envs=8, device="cpu", num_rows=rows, num_cols=columns)
    seen, _ = envs.reset(seed=1)
    generator, looked_at = np.random.default_rng(1), 0
    for _ in range(25):
        best = dellacherie.best_moves("agent", seen["observation"])
        for board, mask, chosen in zip(seen["observation"][..., 0] != 0, seen["action_mask"], best, strict=True):
            kind = next(k for k in range(7) if squared(PIECES[k][0], columns) == board[:4].tolist())
            values = {}
            for action in np.flatnonzero(mask):
                rest, height, eroded = after(board[4:], PIECES[kind][action // columns], action % columns)
                values[int(action)] = worth(rest) - height + eroded
            assert {*np.flatnonzero(chosen).tolist()} == {k for k, x in values.items() if x == max(values.values())}
            looked_at += len(values)
        among = np.where(generator.random((8, 1)) < 0.6, best, seen["action_mask"])
        seen, *_ = envs.step((generator.random(among.shape) * among).argmax(1))
    assert looked_at > 2000
    envs.close()


def squared(piece: str, columns: int) -> list[list[bool]]:
    """The four rows of an observation that show a piece."""
    lines = [line.replace("#", "1").replace(".", "0").ljust(columns, "0") for line in piece.split("/")]
    return [[x == "1" for x in line] for line in [*lines, *["0" * columns] * (4 - len(lines))]]


def test_tetris_is_played_to_its_time_limit() -> None:
    """Nearly always: 191 of 200 games in a longer run, with 6,700 points on average; random play has 4."""
    players = arrange("Tetris-v0", {}, "expert")
    seen = evaluate("Tetris-v0", players.players, 40, seed=3)
    assert (~seen.terminated["agent"]).mean() > 0.8
    assert seen.returns["agent"].mean() > 5000
