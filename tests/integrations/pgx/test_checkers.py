"""Checkers against OpenSpiel: legal moves, turns, observations, ends and results of whole games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest
from numpy.typing import NDArray

from gpuzoo import Simulator, get
from gpuzoo.envs.checkers.fen import Position, bit_of

pytestmark = pytest.mark.rotates

MOST_QUIET = 40
WAYS = ((-1, -1), (-1, 1), (1, -1), (1, 1))
SPIEL_WAYS = ((-1, -1), (-1, 1), (1, 1), (1, -1))


def spiel_action(action: int, player: int, board: NDArray[Any]) -> int:
    """OpenSpiel's number of an action, on a board of letters as the first player sees it."""
    rows, columns = board.shape
    back, rest = divmod(action, rows * columns)
    square, right = divmod(rest, 2)
    row, place = divmod(square, columns // 2)
    column, (dr, dc) = 2 * place + 1 - row % 2, WAYS[2 * back + right]
    if player == 1:
        row, column, dr, dc = rows - 1 - row, columns - 1 - column, -dr, -dc
    jumps = board[row + dr, column + dc] != "."
    return ((row * columns + column) * 4 + SPIEL_WAYS.index((dr, dc))) * 2 + int(jumps)


def spiel_board(state: Any, rows: int) -> NDArray[Any]:
    """Letters of OpenSpiel's picture: ``o8`` for the first player's men and kings, ``+*`` for the second one's."""
    lines = str(state).splitlines()
    return np.array([[*line[len(str(rows)) :]] for line in lines[:rows]])


def expected(board: NDArray[Any], player: int, quiet: int, jumper: tuple[int, int] | None) -> NDArray[Any]:
    planes = [board == letter for letter in ("o8+*" if player == 0 else "+*o8")]
    jumps = np.zeros(board.shape, bool)
    if jumper:
        jumps[jumper] = True
    clock = [np.full(board.shape, quiet >= share * MOST_QUIET / 4) for share in (1, 2, 3)]
    seen = np.stack([*planes, jumps, *clock], -1)
    return seen[::-1, ::-1] if player == 1 else seen


#: rows, columns, games, and the chance that a player moves one of its kings or, without one, the foremost man, so that
#: games have more kings. (If a board has more columns than rows, OpenSpiel ends with an error when a piece jumps on.)
CASES = [(8, 8, 1100, 0.0), (8, 8, 400, 0.7), (8, 6, 300, 0.3), (8, 4, 300, 0.3), (10, 6, 200, 0.5), (12, 4, 200, 0.5)]


@pytest.mark.parametrize(("rows", "columns", "games", "forward"), CASES)
def test_whole_games(rows: int, columns: int, games: int, forward: float) -> None:
    rng = np.random.default_rng(rows * columns)
    options = {"rows": rows, "columns": columns}
    sim = Simulator(get("Checkers-v0"), games, device="cpu", autoreset_mode="disabled", **options)
    sim.reset(seed=5)
    game = pyspiel.load_game(f"checkers(rows={rows},columns={columns})")
    states, playing, moves, met = [game.new_initial_state() for _ in range(games)], list(range(games)), 0, set[str]()
    quiet, jumper = [0] * games, list[tuple[int, int] | None]([None] * games)
    while playing:
        actions = np.full(games, -1)
        for k in playing:
            state, mover = states[k], states[k].current_player()
            board = spiel_board(state, rows)
            assert sim.arrays["to_move"][k] == mover
            mask = sim.arrays["action_mask"][k]
            assert not mask[1 - mover].any()
            legal = np.flatnonzero(mask[mover])
            theirs = [spiel_action(a, mover, board) for a in legal]
            assert sorted(theirs) == state.legal_actions()
            for player in (0, 1):
                want = expected(board, player, quiet[k], jumper[k])
                np.testing.assert_array_equal(sim.arrays["observation"][k, player].reshape(want.shape), want)
            choice = int(rng.integers(len(legal)))
            if rng.random() < forward:
                kings = [i for i, a in enumerate(theirs) if board.ravel()[a // 8] in "8*"]
                choice = int(rng.choice(kings)) if kings else 0
            actions[k] = legal[choice]
            state.apply_action(theirs[choice])
            start, (dr, dc), jumps = theirs[choice] // 8, SPIEL_WAYS[theirs[choice] // 2 % 4], theirs[choice] % 2
            quiet[k] = 0 if jumps else quiet[k] + 1
            again = not state.is_terminal() and state.current_player() == mover
            jumper[k] = (start // columns + 2 * dr, start % columns + 2 * dc) if again else None
            met |= {"again"} if again else set()
            met |= {f"king {'jumps' if jumps else 'steps'}"} if board.ravel()[start] in "8*" else set()
        for k in playing:
            sim.arrays["action"][k, sim.arrays["to_move"][k], 0] = actions[k]
        moves += len(playing)
        sim.step()
        ended = sim.arrays["ended"].astype(bool)
        np.testing.assert_array_equal(ended[playing], [states[k].is_terminal() for k in playing])
        for k in playing:
            if ended[k]:
                np.testing.assert_array_equal(sim.arrays["reward"][k], states[k].returns())
                met |= {f"returns {states[k].returns()[0]:g}"}
                met |= {"draw"} if quiet[k] == MOST_QUIET else set()
            else:
                assert not sim.arrays["reward"][k].any()
        playing = [k for k in playing if not ended[k]]
    assert moves > 25 * games
    assert {"again", "king jumps", "king steps", "returns 1", "returns -1"} <= met


def test_positions_are_those_of_openspiel() -> None:
    """Positions on their way through FEN, against OpenSpiel's picture."""
    rng = np.random.default_rng(0)
    game = pyspiel.load_game("checkers")
    sim = Simulator(get("Checkers-v0"), 1, device="cpu", autoreset_mode="disabled")
    for _ in range(20):
        sim.reset(seed=0)
        state = game.new_initial_state()
        while not state.is_terminal():
            board, mover = spiel_board(state, 8), state.current_player()
            position = Position.of_state({name: value[0] for name, value in sim.state().items()})
            assert Position.parse(str(position)) == position
            letters = np.full(64, ".")
            for square, piece in enumerate(position.board, 1):
                letters[bit_of(square)] = ".o8+*"[".bBwW".index(piece)]
            np.testing.assert_array_equal(letters.reshape(8, 8), board)
            assert position.to_move == mover
            action = rng.choice(np.flatnonzero(sim.arrays["action_mask"][0, mover]))
            state.apply_action(spiel_action(action, mover, board))
            sim.arrays["action"][0, mover, 0] = action
            sim.step()
