"""Sudoku against Jumanji's, with its puzzles."""

from __future__ import annotations

import jumanji
import numpy as np
import pytest
from against import Against, keys, simulator
from jumanji.environments import Sudoku
from jumanji.environments.logic.sudoku.constants import INITIAL_BOARD_SAMPLE
from jumanji.environments.logic.sudoku.types import State

from gpuzoo.envs.jumanji.sudoku import puzzles

pytestmark = pytest.mark.rotates


def sudoku(n: int, name: str = "Sudoku-v0", **options) -> Against:
    def state_of(arrays):
        return State(
            board=arrays["board"].reshape(n, 9, 9).astype(np.int32),
            action_mask=(arrays["action_mask"][:, 0] != 0).reshape(n, 9, 9, 9),
            key=keys(n),
        )

    return Against(
        simulator(name, n, **options), Sudoku(), state_of, lambda o: o.board.reshape(n, -1),
        lambda o: o.action_mask.reshape(n, -1),
        action=lambda actions: np.stack([*np.divmod(actions // 9, 9), actions % 9], 1), after_illegal=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["Sudoku-v0", "Sudoku-very-easy-v0"])
def test_episodes(name):
    sudoku(1000, name).follow(100_000 if name == "Sudoku-v0" else 20_000, illegal=0.003)


def test_steps_from_drawn_states():
    """Boards of any digits, right or wrong, and solved ones that want one or two digits."""
    n, rng = 20_000, np.random.default_rng(0)
    cell = np.arange(81)
    solved = (3 * (cell // 9) + cell // 27 + cell % 9) % 9
    boards = rng.permuted(np.tile(np.arange(9), (n, 1)), axis=1)[:, solved]
    few = rng.random((n, 81)) < rng.random((n, 1))
    boards = np.where(few, rng.integers(-1, 9, (n, 81)), boards)
    boards[: n // 2] = rng.permuted(np.tile(np.arange(9), (n // 2, 1)), axis=1)[:, solved]
    for envs in (np.arange(n), np.arange(0, n, 2)):
        boards[envs, rng.integers(0, 81, len(envs))] = -1
    used = np.zeros((n, 27), np.uint32)
    for k in range(81):
        digit = np.where(boards[:, k] >= 0, 1 << np.maximum(boards[:, k], 0), 0).astype(np.uint32)
        for unit in (k // 9, 9 + k % 9, 18 + k // 27 * 3 + k % 9 // 3):
            used[:, unit] |= digit
    game = sudoku(n)
    game.from_states({"board": boards.astype(np.int8), "used": used}, illegal=0.02)
    assert 0.1 < game.sim.arrays["reward"].mean() < 0.9


@pytest.mark.parametrize("name", ["Sudoku-v0", "Sudoku-very-easy-v0"])
def test_puzzles(name):
    """They are Jumanji's, and each one is drawn as often as others."""
    theirs = np.asarray(jumanji.make(name)._generator._boards)
    database = "mixed" if name == "Sudoku-v0" else "very-easy"
    np.testing.assert_array_equal(puzzles(database), theirs)
    n = 20_000
    sim = simulator(name, n)
    sim.reset(seed=0)
    number = {board.tobytes(): k for k, board in enumerate(theirs.astype(np.int8) - 1)}
    drawn = np.array([number[board.tobytes()] for board in sim.arrays["board"]])
    counts = np.bincount(drawn * 100 // len(theirs), minlength=100)
    assert (abs(counts - n / 100) < 5 * np.sqrt(n / 100)).all()


def test_dummy_and_given_puzzles():
    np.testing.assert_array_equal(puzzles("dummy")[0], INITIAL_BOARD_SAMPLE)
    given = puzzles("mixed")[:3]
    sim = simulator("Sudoku-v0", 3, instances={"board": given}, instance=np.array([2, 0, 1]))
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["board"].reshape(3, 9, 9), given[[2, 0, 1]] - 1)
    with pytest.raises(ValueError, match="from 0 to 2"):
        simulator("Sudoku-v0", 3, instances={"board": given}, instance=3.0)
