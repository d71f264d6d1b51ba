"""Animal shogi: promotion, captures, drops, and how games end. Whole games are compared in tests/integrations/pgx."""

from __future__ import annotations

import numpy as np

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.animal_shogi.animal_shogi import DIRECTIONS, AnimalShogi

CHICK, THEIRS = 0, 5


def started() -> Simulator:
    s = Simulator(AnimalShogi, 1, device="cpu", autoreset_mode="disabled")
    s.reset(seed=0)
    return s


def move(s: Simulator, *actions: int) -> None:
    for action in actions:
        s.arrays["action"][...] = action
        s.step()


def going(cell: int, dx: int, dy: int) -> int:
    return 12 * DIRECTIONS.index((dx, dy)) + cell


def test_first_moves() -> None:
    """The chick captures; the giraffe goes up; the lion goes diagonally up."""
    mask = started().arrays["action_mask"][0]
    assert {*np.flatnonzero(mask[0])} == {going(6, 0, -1), going(3, 0, -1), going(7, -1, -1), going(7, 1, -1)}
    assert not mask[1].any()


def test_a_captured_chick_is_dropped() -> None:
    s = started()
    move(s, going(6, 0, -1))  # the lion is in check, and captures the chick
    assert s.arrays["hands"][0, 0].tolist() == [0, 0, 0, 1, 0, 0]
    move(s, going(7, 0, -1))
    assert s.arrays["hands"][0, 0].tolist() == [1, 0, 0, 1, 0, 0]
    move(s, 96 + 4)
    board = s.arrays["history"][0, 0]
    assert board[11 - 4] == THEIRS + CHICK
    assert s.arrays["hands"][0, 0].tolist() == [1, 0, 0, 0, 0, 0]


def test_a_position_for_the_third_time() -> None:
    s = started()
    there, back = going(3, 0, -1), going(2, 0, 1)
    move(s, *(there, there, back, back) * 2)
    assert s.arrays["ended"][0]
    assert not s.arrays["reward"].any()
    assert s.arrays["moves"][0] == 8


def test_an_illegal_move_loses() -> None:
    s = started()
    move(s, going(7, 0, -1))  # one's own chick stands there
    np.testing.assert_array_equal(s.arrays["reward"][0], [-1, 0])
    assert s.arrays["ended"][0]
