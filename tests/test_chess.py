"""Chess: positions in and out, counts of lines of play, special moves, draws.

Whole games are compared with Pgx and python-chess in tests/integrations/pgx.
"""

from __future__ import annotations

import lines_of_play
import numpy as np
import pytest

from gpuzoo import get
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.chess.board import Geometry
from gpuzoo.envs.chess.chess import START, Chess
from gpuzoo.envs.chess.fen import Position


def started(fen: str = "", name: str = "Chess-v0") -> Simulator:
    s = Simulator(get(name), 1, device="cpu", autoreset_mode="disabled", **({"fen": fen} if fen else {}))
    s.reset(seed=0)
    return s


def fen_of(s: Simulator) -> str:
    return str(Position.of_state({name: value[0] for name, value in s.state().items()}))


def play(s: Simulator, *moves: str) -> None:
    """Moves such as e2e4, or e7e8n."""
    for move in moves:
        mover = int(s.arrays["to_move"][0])
        cells = [("abcdefgh".index(move[k]), int(move[k + 1]) - 1) for k in (0, 2)]
        (column, row), (to_column, to_row) = [(c, 7 - r) if mover else (c, r) for c, r in cells]
        way = (to_row - row, to_column - column)
        ways = Geometry(8).ways()
        kinds = {plane: "rbn"[plane // 3] if plane < 9 else "" for plane, w in enumerate(ways) if w == way}
        plane = next(p for p, kind in kinds.items() if kind == move[4:])
        s.arrays["action"][...] = 73 * (8 * column + row) + plane
        s.step()


def masked(s: Simulator) -> int:
    return int(s.arrays["action_mask"][0].sum())


@pytest.mark.parametrize("fen", [START, "r3k2r/8/8/3pP3/8/8/8/R3K2R w Kq d6 3 17", "8/8/8/8/8/k7/8/K7 b - - 99 80"])
def test_positions_in_and_out(fen: str) -> None:
    assert str(Position.parse(fen)) == fen
    assert fen_of(started(fen)) == fen


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("8/8 w - - 0 1", "8 rows of 8"),
        ("8/8/8/8/8/8/8/K6x w - - 0 1", "'x' is neither"),
        ("8/8/8/8/8/8/8/K7 w - - 0 1", "one king of each"),
        ("k7/8/8/8/8/8/8/K6P w - - 0 1", "pawn on the first"),
        ("k7/8/8/8/8/8/8/K7 w K - 0 1", "castling 'K'"),
        ("k7/8/8/8/8/8/8/K7 w - e6 0 1", "no pawn can have passed"),
        ("k7/8/8/8/8/8/8/K7 x - - 0 1", "w or b"),
        ("k7/8/8/8/8/8/8/K7 w - - x 1", "two numbers"),
        ("k7/8/8/8/8/8/8/K7 w - -", "six fields"),
    ],
)
def test_what_is_no_position(fen: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Simulator(Chess, 1, device="cpu", fen=fen)


@pytest.mark.parametrize(("name", "counts"), [("Chess-v0", [20, 400, 8902]), ("GardnerChess-v0", [7, 53, 506])])
def test_lines_of_play(name: str, counts: list[int]) -> None:
    """Perft as published for chess, and as Pgx counts for Gardner's."""
    assert lines_of_play.counts(started(name=name), len(counts)) == counts


def test_special_moves() -> None:
    s = started()
    play(s, "e2e4", "a7a6", "e4e5", "d7d5")
    assert fen_of(s).split()[3] == "d6"
    play(s, "e5d6", "a6a5", "d6c7", "a5a4", "c7d8n", "a4a3", "g1f3", "a3b2", "f1e2", "b2c1r", "e1g1")
    assert fen_of(s) == "rnbNkbnr/1p2pppp/8/8/8/5N2/P1PPBPPP/RNrQ1RK1 b kq - 1 8"


def test_mate() -> None:
    s = started()
    play(s, "f2f3", "e7e5", "g2g4", "d8h4")
    np.testing.assert_array_equal(s.arrays["reward"][0], [-1, 1])
    assert s.arrays["ended"][0]
    assert masked(s) == 0


@pytest.mark.parametrize(
    ("fen", "move"),
    [
        ("7k/8/5KQ1/8/8/8/8/8 w - - 0 1", "g6f7"),  # stalemate
        ("7k/8/5K2/8/8/8/8/Q7 w - - 99 80", "a1a2"),
        ("7k/8/5KpN/8/8/8/8/8 b - - 0 1", "h8h7"),
        ("7k/8/5Kp1/8/8/8/8/8 w - - 0 1", "f6g6"),
    ],
)
def test_draws(fen: str, move: str) -> None:
    s = started(fen)
    play(s, move)
    assert s.arrays["ended"][0] == (move != "h8h7")
    assert not s.arrays["reward"].any()


def test_a_position_for_the_third_time() -> None:
    s = started()
    there_and_back = ("g1f3", "g8f6", "f3g1", "f6g8")
    play(s, *there_and_back, *there_and_back[:3])
    assert not s.arrays["ended"][0]
    repeats = s.arrays["observation"][0, :, : 64 * 119].reshape(2, 64, 119)[:, 0, 13:112:14]
    np.testing.assert_array_equal(repeats, [[1, 1, 1, 1, 1, 1, 1, 1]] * 2)
    play(s, there_and_back[3])
    assert s.arrays["ended"][0]
    assert not s.arrays["reward"].any()


def test_an_illegal_move_loses() -> None:
    s = started()
    s.arrays["action"][...] = 0
    s.step()
    np.testing.assert_array_equal(s.arrays["reward"][0], [-1, 0])
    assert s.arrays["ended"][0]
    assert fen_of(s) == START


@pytest.mark.parametrize("name", ["Chess-v0", "GardnerChess-v0"])
def test_material_that_is_won_can_be_rewarded(name: str) -> None:
    worth = {"P": 1, "N": 3, "B": 3, "R": 5, "Q": 9}

    def balances(s: Simulator) -> list[int]:
        """White's material without Black's, in pawns."""
        state = s.state()
        fens = [str(Position.of_state({k: value[env] for k, value in state.items()})).split()[0] for env in range(64)]
        return [sum(worth.get(c, 0) - worth.get(c.upper(), 0) * c.islower() for c in fen) for fen in fens]

    plain, shaped = (
        Simulator(get(name), 64, device="cpu", autoreset_mode="disabled", material_reward=x) for x in (0.0, 0.25)
    )
    changes = set()
    for s in (plain, shaped):
        s.reset(seed=3)
    before = np.array(balances(shaped))
    for _ in range(250):
        goes_on = ~(plain.arrays["ended"] | plain.arrays["waiting"])
        for s in (plain, shaped):
            s.random_actions()
            s.step()
        after = np.array(balances(shaped))
        won = np.where(goes_on, 0.25 * (after - before), 0)
        np.testing.assert_array_equal(shaped.arrays["reward"] - plain.arrays["reward"], np.stack([won, -won], 1))
        changes |= {*(after - before).tolist()}
        before = after
    assert {-9, -5, -3, -1, 0, 1, 3, 5, 8, 9} <= changes


def test_pettingzoos_observations() -> None:
    s = Simulator(get("chess_v6"), 1, device="cpu", autoreset_mode="disabled")
    s.reset(seed=0)

    def planes() -> np.ndarray:
        return s.arrays["observation"][0].reshape(2, 8, 8, 111)

    assert not planes()[..., 7:].any()
    play(s, "e2e4")
    white, black = planes()
    assert white[7, 4, 7] == black[0, 4, 13] == 1  # the pawn that made a double step, on its first row
    assert white[4, 4, 7] == black[3, 4, 13] == 0
    play(s, "g8f6", "g1f3", "f6g8", "f3g1", "g8f6", "g1f3")
    assert planes()[:, 0, 0, 19::13].tolist() == [[1, 1, 0, 0, 0, 0, 0, 0]] * 2  # two positions had come before
    assert planes()[:, 4, 4, 7].tolist() == [1, 0]
