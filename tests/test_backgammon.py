"""Backgammon: hits, the bar, doubles, bearing off, results, and the official rules.

Whole games are compared with Pgx and OpenSpiel in tests/integrations/pgx.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.backgammon.backgammon import Backgammon, seen_by_white

BAR, OTHER_BAR, OFF, OTHER_OFF = 24, 25, 26, 27


def started(**options: Any) -> Simulator:
    s = Simulator(Backgammon, 1, device="cpu", autoreset_mode="disabled", **options)
    s.reset(seed=0)
    return s


def put(s: Simulator, dice: tuple[int, ...], own: dict[int, int], others: dict[int, int]) -> None:
    """A position of player_0, by the mover's points (25 is a bar); whoever is left is off. Its legal moves follow from
    those of a turn that ends in it: player_1 cannot move."""
    board = np.zeros((1, 28), np.int8)
    for side, sign in ((own, 1), (others, -1)):
        bar, off = (BAR, OFF) if sign > 0 else (OTHER_BAR, OTHER_OFF)
        for point, count in side.items():
            board[0, bar if point == 25 else 24 - point] = sign * count
        board[0, off] = sign * (15 - sum(side.values()))
    given = np.zeros((1, 6), np.int8)
    for number in dice:
        given[0, number - 1] += 1
    s.set_state({"board": board, "dice": given, "rolled": np.array([[dice[0], dice[-1]]], np.int8)})


def action(source: int, die: int) -> int:
    return 6 * (1 if source == 25 else 26 - source) + die - 1


def play(s: Simulator, source: int, die: int) -> None:
    """A move that is taken for legal."""
    k = action(source, die)
    s.set_state({"legal": np.array([[1 << k // 6 if d == die - 1 else 0 for d in range(6)]], np.uint32)})
    s.arrays["action"][...] = k
    s.step()


def legal(s: Simulator) -> set[int]:
    return {*np.flatnonzero(s.arrays["action_mask"][0, s.arrays["to_move"][0]]).tolist()}


def test_the_first_dice_are_never_alike() -> None:
    s = Simulator(Backgammon, 3000, device="cpu")
    s.reset(seed=0)
    pairs, counts = np.unique(s.arrays["rolled"], axis=0, return_counts=True)
    assert len(pairs) == 30
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert ((counts - 100) ** 2 / 100).sum() < 58.3  # chi-squared with 29 degrees of freedom: one in a thousand


def test_dice_are_fair() -> None:
    """Those of second turns: many games are played until player_1 begins."""
    s = Simulator(Backgammon, 7200, device="cpu", autoreset_mode="disabled")
    s.reset(seed=0)
    while not (s.arrays["to_move"] == 1).all():
        s.random_actions()
        s.step(np.flatnonzero(s.arrays["to_move"] == 0))
    counts = np.unique(s.arrays["rolled"], axis=0, return_counts=True)[1]
    assert len(counts) == 36
    assert ((counts - 200) ** 2 / 200).sum() < 66.6  # 35 degrees of freedom


def test_a_hit_checker_must_come_back() -> None:
    s = started()
    put(s, (3,), {24: 2, 10: 13}, {7: 1, 1: 14})
    play(s, 10, 3)  # the last die: it is player_1's turn
    assert s.arrays["to_move"][0] == 1
    assert s.arrays["board"][0, BAR] == 1
    sources = {k // 6 for k in legal(s)}
    assert sources <= {0, 1}


def test_two_alike_dice_are_played_four_times() -> None:
    s = started()
    put(s, (1, 1, 1, 1), {24: 2, 10: 13}, {23: 1, 1: 14})
    for left in (3, 2, 1):
        play(s, 10, 1)
        assert s.arrays["to_move"][0] == 0
        assert s.arrays["dice"][0].tolist() == [left, 0, 0, 0, 0, 0]
        assert s.arrays["observation"][0, 0, 28:].tolist() == [left, 0, 0, 0, 0, 0]
        assert not s.arrays["observation"][0, 1, 28:].any()
    play(s, 10, 1)
    assert s.arrays["to_move"][0] == 1


def test_bearing_off() -> None:
    s = started()
    put(s, (6, 4, 2), {5: 2, 3: 2, 2: 1}, {24: 15})
    play(s, 2, 2)
    assert s.arrays["board"][0, OFF] == 11
    assert legal(s) == {action(5, 6), action(5, 4)}  # none is on point 6 or 4, and 5 - 4 is 1
    put(s, (6, 4, 1), {3: 2, 2: 1}, {24: 15})
    play(s, 3, 1)
    assert legal(s) == {action(3, 6), action(3, 4)}


def test_whoever_cannot_move_passes() -> None:
    s = started()
    put(s, (6, 6, 5), {25: 2, 24: 13}, {20: 2, 1: 13})
    play(s, 25, 6)
    assert legal(s) == {action(25, 6)}
    put(s, (6, 5), {25: 2, 24: 13}, {19: 2, 1: 13})
    play(s, 25, 5)
    assert legal(s) == set(range(6))
    s.arrays["action"][...] = 3
    s.step()
    assert s.arrays["to_move"][0] == 1
    assert s.arrays["dice"][0].sum() in (2, 4)


@pytest.mark.parametrize(
    ("others", "points", "official"),
    [
        ({24: 14}, 1, 1),
        ({24: 15}, 2, 2),
        ({24: 14, 6: 1}, 3, 3),
        ({24: 14, 25: 1}, 2, 3),
    ],
)
def test_results(others: dict[int, int], points: int, official: int) -> None:
    for rule, want in ((False, points), (True, official)):
        s = started(official=rule)
        put(s, (3, 2), {1: 1}, others)
        play(s, 1, 3)
        assert s.arrays["ended"][0]
        assert s.arrays["reward"][0].tolist() == [want, -want]


def test_official_rules_use_both_dice() -> None:
    """6 from point 20 leaves no 5: points 9 and 3 are blocked. The 6 from point 8 and the 5 from 20 go together."""
    own, others = {20: 1, 8: 1, 2: 1, 1: 12}, {9: 2, 3: 2, 24: 11}
    both = {action(20, 5), action(8, 6)}
    for official, want in ((True, both), (False, both | {action(20, 6)})):
        s = started(official=official)
        put(s, (6, 5, 1), own, others)
        play(s, 2, 1)
        assert legal(s) == want


def test_official_rules_use_the_higher_die() -> None:
    """6 and 5 from point 20 are possible, but neither from where the other one leads."""
    own, others = {20: 1, 2: 2, 1: 12}, {9: 15}
    for official, want in ((True, {action(20, 6)}), (False, {action(20, 5), action(20, 6)})):
        s = started(official=official)
        put(s, (6, 5, 1), own, others)
        play(s, 2, 1)
        assert legal(s) == want


def test_an_illegal_move_loses() -> None:
    s = started()
    board = s.arrays["board"].copy()
    s.arrays["action"][...] = 0
    s.step()
    np.testing.assert_array_equal(s.arrays["reward"][0], [-3, 0])
    assert s.arrays["ended"][0]
    np.testing.assert_array_equal(s.arrays["board"], board)


def test_both_players_views() -> None:
    """Turning the board twice changes nothing."""
    s = Simulator(Backgammon, 64, device="cpu")
    s.reset(seed=1)
    s.rollout(100)
    for board in s.arrays["board"]:
        turned = np.array(seen_by_white(board, 1))
        assert seen_by_white(turned, 1) == board.tolist()
        assert board[board > 0].sum() == 15
        assert board[board < 0].sum() == -15
