"""Shogi: positions in and out, counts of lines of play, promotion, captures, drops, and how games end.

Whole games are compared with Pgx and python-shogi in tests/integrations/pgx.
"""

from __future__ import annotations

from typing import Any

import lines_of_play
import numpy as np
import pytest

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.shogi.sfen import Position
from gpuzoo.envs.shogi.shogi import DIRECTIONS, NAMES, START, WORTH, Shogi

MATSURI = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1"


def started(sfen: str = START, **options: Any) -> Simulator:
    s = Simulator(Shogi, 1, device="cpu", autoreset_mode="disabled", sfen=sfen, **options)
    s.reset(seed=0)
    return s


def sfen_of(s: Simulator) -> str:
    return str(Position.of_state({name: value[0] for name, value in s.state().items()}))


def action_of(s: Simulator, move: str) -> int:
    """Of a move such as 7g7f, 8h2b+ or P*5e."""
    to_move = int(s.arrays["to_move"][0])

    def cell(name: str) -> int:
        seen = 9 * (int(name[0]) - 1) + "abcdefghi".index(name[1])
        return seen if to_move == 0 else 80 - seen

    if move[1] == "*":
        return 81 * (20 + "PLNSBRG".index(move[0])) + cell(move[2:4])
    start, end = cell(move[:2]), cell(move[2:4])
    left, down = end // 9 - start // 9, end % 9 - start % 9
    far = max(abs(left), abs(down)) if (left, down) not in DIRECTIONS else 1
    return 81 * (DIRECTIONS.index((left // far, down // far)) + (10 if move[4:] == "+" else 0)) + end


def play(s: Simulator, *moves: str) -> None:
    for move in moves:
        s.arrays["action"][...] = action_of(s, move)
        s.step()


def is_legal(s: Simulator, move: str) -> bool:
    return bool(s.arrays["action_mask"][0, s.arrays["to_move"][0], action_of(s, move)])


@pytest.mark.parametrize("sfen", [START, MATSURI, "8k/9/9/9/9/9/4+r4/9/K8 b R2b4g4s4n4l18p 17"])
def test_positions_in_and_out(sfen: str) -> None:
    assert str(Position.parse(sfen)) == sfen
    assert sfen_of(started(sfen)) == sfen


@pytest.mark.parametrize(
    ("sfen", "message"),
    [
        ("9/9 b - 1", "9 rows of 9"),
        ("x8/9/9/9/9/9/9/9/9 b - 1", "'x' is neither"),
        ("+k8/9/9/9/9/9/9/9/K8 b - 1", "'k' is neither"),
        ("k8/9/9/9/9/9/9/9/9 b - 1", "one king of each"),
        ("k8/P8/P8/9/9/9/9/9/K8 b - 1", "two pawns"),
        ("k7N/9/9/9/9/9/9/9/K8 b - 1", "never move"),
        ("k8/9/9/9/9/9/9/9/K8 x - 1", "b or w"),
        ("k8/9/9/9/9/9/9/9/K8 b K 1", "'K' is no piece"),
        ("k8/9/9/9/9/9/9/9/K8 b P2 1", "a number of at most 18"),
        ("k8/9/9/9/9/9/9/9/K8 b - 0", "number of the next move"),
        ("k8/9/9/9/9/9/9/9/K8 b -", "four fields"),
    ],
)
def test_what_is_no_position(sfen: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Simulator(Shogi, 1, device="cpu", sfen=sfen)


@pytest.mark.parametrize(("sfen", "counts"), [(START, [30, 900, 25470]), (MATSURI, [207, 28684])])
def test_lines_of_play(sfen: str, counts: list[int]) -> None:
    """Perft as published."""
    assert lines_of_play.counts(started(sfen), len(counts)) == counts


def test_captures_promotion_and_drops() -> None:
    s = started()
    play(s, "7g7f", "3c3d", "8h2b+", "3a2b")
    assert sfen_of(s) == "lnsgkg1nl/1r5s1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/7R1/LNSGKGSNL b Bb 5"
    assert is_legal(s, "B*5e")
    assert not is_legal(s, "P*5e")  # none is in hand
    play(s, "B*5e")
    assert sfen_of(s).split()[2] == "b"


def test_pawns_are_not_doubled_or_stuck() -> None:
    s = started("k8/9/9/9/4P4/9/9/9/K8 b NLP 1")
    assert not is_legal(s, "P*5g")
    assert is_legal(s, "P*4g")
    assert not is_legal(s, "P*4a")
    assert not is_legal(s, "L*4a")
    assert not is_legal(s, "N*4b")
    assert is_legal(s, "N*4c")


def test_who_could_not_move_any_more_must_promote() -> None:
    s = started("k8/4P4/9/2N6/9/7L1/9/9/K8 b - 1")
    assert is_legal(s, "5b5a+")
    assert not is_legal(s, "5b5a")
    assert is_legal(s, "7d6b+")
    assert not is_legal(s, "7d6b")
    assert is_legal(s, "2f2b")
    assert is_legal(s, "2f2b+")
    assert not is_legal(s, "2f2a")
    assert not is_legal(s, "2f2d+")


def test_check_is_answered() -> None:
    """By a king's step, an interposed piece, or a capture; a pinned piece stays in its line."""
    s = started("k3r4/9/9/9/9/9/4G4/9/4K3b b P 1")
    assert {is_legal(s, move) for move in ("5g5f", "5g5h", "5i6h")} == {True}
    assert not is_legal(s, "5g4g")
    s = started("k3r4/9/9/9/9/9/9/9/4K4 b P 1")
    assert {is_legal(s, move) for move in ("P*5b", "P*5h", "5i6i", "5i4h")} == {True}
    assert not is_legal(s, "5i5h")
    assert not is_legal(s, "P*4h")
    assert s.arrays["observation"][0, 0, 118] == 1
    assert s.arrays["observation"][0, 1, 118] == 0


def test_mate() -> None:
    s = started("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    play(s, "G*5b")
    np.testing.assert_array_equal(s.arrays["reward"][0], [1, -1])
    assert s.arrays["ended"][0]
    assert not s.arrays["action_mask"].any()


#: golds guard the drop and all cells around the king; in the last two positions something is left
@pytest.mark.parametrize(
    ("sfen", "drop", "legal"),
    [
        ("3nkn3/4p4/3G1G3/9/9/9/9/9/4K4 b P 1", "P*5b", False),  # occupied
        ("3lkl3/9/3GSG3/9/9/9/9/9/4K4 b P 1", "P*5b", False),
        ("3lk4/9/3GSG3/9/9/9/9/9/4K4 b P 1", "P*5b", True),
        ("3lkl3/2r6/3GSG3/9/9/9/9/9/4K4 b P 1", "P*5b", True),
    ],
)
def test_mate_by_a_dropped_pawn(sfen: str, drop: str, legal: bool) -> None:
    for strict in (False, True):
        assert is_legal(started(sfen, strict_drops=strict), drop) == legal


def test_mate_by_a_dropped_pawn_beside_a_corner() -> None:
    """Pgx lets the king go to the other end of the board."""
    sfen = "6nk1/9/6GSL/9/9/9/9/9/4K4 b P 1"
    assert is_legal(started(sfen), "P*2b")
    assert not is_legal(started(sfen, strict_drops=True), "P*2b")


def test_the_512th_move_is_the_last() -> None:
    s = started(START.replace(" 1", " 512"))
    play(s, "7g7f")
    assert s.arrays["ended"][0]
    assert not s.arrays["reward"].any()


def test_an_illegal_move_loses() -> None:
    s = started()
    play(s, "8h2b")  # a pawn stands in between
    np.testing.assert_array_equal(s.arrays["reward"][0], [-1, 0])
    assert s.arrays["ended"][0]
    assert sfen_of(s) == START


def test_names() -> None:
    assert len(NAMES) == 10
    assert sum(Shogi().observation_names(Shogi.Config(), "player").values()) == 119
    assert sum(Shogi().action_names(Shogi.Config(), "player").values()) == 2187


def test_material_that_is_won_can_be_rewarded() -> None:
    plain, shaped = (
        Simulator(Shogi, 64, device="cpu", autoreset_mode="disabled", material_reward=x) for x in (0.0, 0.25)
    )
    for s in (plain, shaped):
        s.reset(seed=3)

    def material(mover: Any, own: int) -> Any:
        """Of the pieces on the board that are the mover's (0) or not (1), and of those in its hand, in pawns."""
        board, hands = shaped.arrays["board"].astype(int), shaped.arrays["hands"].astype(int)
        side = np.where(shaped.arrays["to_move"] == mover, own, 1 - own)[:, None]
        worth = np.where((board // 14 == side) & (board >= 0), np.array(WORTH)[board % 14], 0).sum(1)
        held = np.take_along_axis(hands, 7 * side + np.arange(7), 1)
        return worth, held

    won = set()
    for _ in range(200):
        goes_on = ~(plain.arrays["ended"] | plain.arrays["waiting"])
        mover = plain.arrays["to_move"].copy()
        before = [material(mover, own) for own in (0, 1)]
        for s in (plain, shaped):
            s.random_actions()
            s.step()
        after = [material(mover, own) for own in (0, 1)]
        dropped = ((before[0][1] - after[0][1]).clip(min=0) * np.array(WORTH)[:7]).sum(1)
        pawns = (after[0][0] - before[0][0]) - (after[1][0] - before[1][0]) - dropped
        won |= {*pawns[goes_on].tolist()}
        expected = np.where(goes_on, 0.25 * pawns, 0)
        rewards = shaped.arrays["reward"] - plain.arrays["reward"]
        np.testing.assert_array_equal(rewards, np.where(mover[:, None] == [0, 1], 1, -1) * expected[:, None])
    assert {0, 1, 2, 3, 4, 5, 6, 8, 10} <= won
