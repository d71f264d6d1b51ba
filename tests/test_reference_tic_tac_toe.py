"""Tic-tac-toe against PettingZoo's tictactoe_v3: every position that can occur, and every move in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pettingzoo.classic.tictactoe.tictactoe import env as pettingzoo_env
from pettingzoo.classic.tictactoe.tictactoe import raw_env

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.tic_tac_toe.tic_tac_toe import LINES, TicTacToe

pytestmark = pytest.mark.rotates

NAMES = ("player_1", "player_2")


def simulator(num_envs: int) -> Simulator:
    s = Simulator(TicTacToe, num_envs, device="cpu", autoreset_mode="disabled")
    s.reset(seed=0)
    return s


def compare(s: Simulator, k: int, raw: Any) -> None:
    """Env k with PettingZoo's: everything that a player can see."""
    assert NAMES[s.arrays["to_move"][k]] == raw.agent_selection
    for a, name in enumerate(NAMES):
        want = raw.observe(name)
        np.testing.assert_array_equal(s.arrays["observation"][k, a].reshape(3, 3, 2), want["observation"])
        np.testing.assert_array_equal(s.arrays["action_mask"][k, a], want["action_mask"])
        assert s.arrays["reward"][k, a] == raw.rewards[name]
        assert s.arrays["terminated"][k, a] == raw.terminations[name]
        assert s.arrays["truncated"][k, a] == raw.truncations[name]


def over(board: tuple[int, ...]) -> bool:
    return 0 not in board or any(board[a] and board[a] == board[b] == board[c] for a, b, c in LINES)


def positions() -> list[tuple[int, ...]]:
    """All boards that can occur in which somebody is to move: cells with 0, 1 or 2."""
    found, now = [], {(0,) * 9}
    for move in range(9):
        found += sorted(now)
        mark = move % 2 + 1
        after = {(*b[:k], mark, *b[k + 1 :]) for b in now for k in range(9) if not b[k]}
        now = {b for b in after if not over(b)}
    return found


def test_every_move_in_every_position() -> None:
    moves = [(b, k) for b in positions() for k in range(9) if not b[k]]
    assert len({b for b, _ in moves}) == 4520  # of the 5,478 positions, 958 are ends
    s = simulator(len(moves))
    boards = np.array([b for b, _ in moves])
    weights = 1 << np.arange(9)
    players = ((boards > 0).sum(1) % 2).astype(np.int32)
    marks = {f"marks_{a}": ((boards == a + 1) @ weights).astype(np.uint32) for a in range(2)}
    s.set_state({**marks, "to_move": players})
    cells = np.array([k for _, k in moves])
    s.arrays["action"][np.arange(len(moves)), players, 0] = cells
    s.arrays["action"][np.arange(len(moves)), 1 - players, 0] = 9  # is ignored
    s.step()
    raw = raw_env()
    results = set()
    for k, (board, cell) in enumerate(moves):
        raw.reset()
        raw.board.squares = list(board)
        if players[k]:
            raw.agent_selection = raw._agent_selector.next()
        raw.step(cell)
        compare(s, k, raw)
        results.add((raw.terminations["player_1"], raw.rewards["player_1"]))
    assert results == {(False, 0), (True, 0), (True, 1), (True, -1)}


def test_whole_games() -> None:
    games, rng = 1000, np.random.default_rng(0)
    s, raws = simulator(games), [raw_env() for _ in range(games)]
    for k, raw in enumerate(raws):
        raw.reset()
        compare(s, k, raw)
    playing = list(range(games))
    for _ in range(9):
        for k in playing:
            cell = int(rng.choice(raws[k].board.legal_moves()))
            player = NAMES.index(raws[k].agent_selection)
            s.arrays["action"][k, player, 0] = cell
            s.arrays["action"][k, 1 - player, 0] = rng.integers(-9, 12)  # is ignored
            raws[k].step(cell)
        s.step()
        for k in playing:
            compare(s, k, raws[k])
        playing = [k for k in playing if not raws[k].terminations["player_1"]]
        np.testing.assert_array_equal(np.delete(s.arrays["waiting"], playing), 1)
    assert not playing


@pytest.mark.filterwarnings("ignore")  # PettingZoo warns of the illegal move
@pytest.mark.parametrize("offender", [0, 1])
def test_illegal_move(offender: int) -> None:
    s, wrapped = simulator(4), pettingzoo_env()
    wrapped.reset()
    for cell in (4, 0)[: 1 + offender]:
        wrapped.step(cell)
        s.arrays["action"][...] = cell
        s.step()
    mover = 1 - offender
    before = {name: s.arrays[name].copy() for name in ("observation", "action_mask", "to_move")}
    s.arrays["action"][:, mover, 0] = [4, -1, 9, -(2**31)]
    s.step()
    wrapped.step(4)  # the others it refuses by an exception
    for a, name in enumerate(NAMES):
        np.testing.assert_array_equal(s.arrays["reward"][:, a], wrapped.rewards[name])
        np.testing.assert_array_equal(s.arrays["terminated"][:, a], wrapped.terminations[name])
    assert s.arrays["ended"].all()
    for name, array in before.items():
        np.testing.assert_array_equal(s.arrays[name], array)
