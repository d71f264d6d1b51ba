"""Go's rules in positions that are known: suicide, ko, superko, and scores.

Whole games are compared with Pgx and OpenSpiel in tests/integrations/pgx.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpuzoo import get
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.go.go import Go

SIZE, PASS = 5, 25


def started(**options: object) -> Simulator:
    s = Simulator(Go, 1, device="cpu", autoreset_mode="disabled", size=SIZE, **options)
    s.reset(seed=0)
    return s


def at(text: str) -> int:
    """The action of a point such as c2: the column, then the row, both from the upper left."""
    return PASS if text == "pass" else SIZE * (int(text[1]) - 1) + ord(text[0]) - ord("a")


def play(s: Simulator, moves: str) -> None:
    """Moves of both players in turn, which must be legal."""
    for move in moves.split():
        assert not s.arrays["ended"][0], move
        mover = int(s.arrays["to_move"][0])
        assert s.arrays["action_mask"][0, mover, at(move)], move
        s.arrays["action"][0, mover, 0] = at(move)
        s.step()


def legal(s: Simulator, point: str) -> bool:
    return bool(s.arrays["action_mask"][0, s.arrays["to_move"][0], at(point)])


def board(s: Simulator) -> list[str]:
    rows = s.arrays["board"][0].reshape(SIZE + 2, SIZE + 2)[1:-1, 1:-1]
    return ["".join(".xo"[k] for k in row) for row in rows]


def test_a_stone_without_liberties_is_taken() -> None:
    s = started()
    play(s, "a2 a1 b1")
    assert board(s)[:2] == [".x...", "x...."]
    np.testing.assert_array_equal(s.arrays["prisoners"][0], [1, 0])
    assert not legal(s, "a1")  # suicide of white


def test_ko_may_be_retaken_after_another_move() -> None:
    s = started()
    play(s, "b1 c1 a2 d2 b3 c3 c2 b2")
    assert board(s)[:3] == [".xo..", "xo.o.", ".xo.."]
    assert not legal(s, "c2")
    play(s, "e5 e4")
    assert legal(s, "c2")
    play(s, "c2")
    assert board(s)[1] == "x.xo."


def test_a_position_that_comes_again_loses() -> None:
    """Random games on a small board, where that happens now and then, against a record of all positions."""
    games, rng, repeats = 2_000, np.random.default_rng(0), 0
    s = Simulator(Go, games, device="cpu", autoreset_mode="disabled", size=3)
    s.reset(seed=0)
    seen: list[set[bytes]] = [set() for _ in range(games)]
    playing = list(range(games))
    while playing:
        mover = s.arrays["to_move"].copy()
        mask = s.arrays["action_mask"][np.arange(games), mover]
        actions = (rng.random(mask.shape) * mask).argmax(1)
        s.arrays["action"][np.arange(games), mover, 0] = actions
        s.step()
        for k in playing:
            position = s.arrays["board"][k].tobytes()
            if position in seen[k] and actions[k] != 9:
                repeats += 1
                assert s.arrays["ended"][k]
                assert s.arrays["reward"][k, mover[k]] == -1
            seen[k].add(position)
        playing = [k for k in playing if not s.arrays["ended"][k]]
    assert 10 < repeats < games / 2


@pytest.mark.parametrize(("komi", "black"), [(24.5, 1), (25.0, -1), (7.5, 1)])
def test_a_lone_stone_has_the_whole_board(komi: float, black: int) -> None:
    s = started(komi=komi)
    play(s, "c3 pass pass")
    np.testing.assert_array_equal(s.arrays["reward"][0], [black, -black])


def test_an_empty_board_is_even() -> None:
    s = started(komi=0.0)
    play(s, "pass pass")
    np.testing.assert_array_equal(s.arrays["reward"][0], [-1, 1])


def test_points_that_both_reach_are_nobodys() -> None:
    """Black has a wall of five and the five points behind it; white has one stone in the rest."""
    for komi, black in ((8.5, 1), (9.0, -1)):
        s = started(komi=komi)
        play(s, "a2 c4 b2 pass c2 pass d2 pass e2 pass pass")
        np.testing.assert_array_equal(s.arrays["reward"][0], [black, -black])


def test_the_limit_of_moves_ends_the_game() -> None:
    s = started(max_moves=3, komi=0.5)
    play(s, "a1 e5 b2")
    assert s.arrays["ended"][0]
    np.testing.assert_array_equal(s.arrays["reward"][0], [1, -1])


@pytest.mark.rotates
def test_names_of_boards() -> None:
    assert Simulator(get("go_13x13"), 1, device="cpu").cfg.size == 13
    with pytest.raises(ValueError, match="boards are square"):
        get("go_9x13")
