"""Connect Four against PettingZoo's connect_four_v3, move by move and position by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pettingzoo.classic.connect_four.connect_four import env as pettingzoo_env
from pettingzoo.classic.connect_four.connect_four import raw_env

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.connect_four.connect_four import LINES, ConnectFour

pytestmark = pytest.mark.rotates

NAMES = ("player_0", "player_1")
ROWS, COLUMNS = 6, 7


def simulator(num_envs: int) -> Simulator:
    s = Simulator(ConnectFour, num_envs, device="cpu", autoreset_mode="disabled")
    s.reset(seed=0)
    return s


def row_of_next_disc(board: np.ndarray, column: int) -> int:
    return int((board[:, column] == 0).sum()) - 1


def wins(board: np.ndarray, player: int) -> list[tuple[tuple[int, int], ...]]:
    return [line for line in LINES if all(board[cell] == player + 1 for cell in line)]


def direction(line: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    return line[1][0] - line[0][0], line[1][1] - line[0][1]


def compare(s: Simulator, k: int, raw: Any) -> None:
    """Env k with PettingZoo's: everything that a player can see."""
    assert NAMES[s.arrays["to_move"][k]] == raw.agent_selection
    for a, name in enumerate(NAMES):
        want = raw.observe(name)
        seen = s.arrays["observation"][k, a].reshape(ROWS, COLUMNS, 2)
        np.testing.assert_array_equal(seen, want["observation"])
        np.testing.assert_array_equal(s.arrays["action_mask"][k, a], want["action_mask"])
        assert s.arrays["reward"][k, a] == raw.rewards[name]
        assert s.arrays["terminated"][k, a] == raw.terminations[name]
        assert s.arrays["truncated"][k, a] == raw.truncations[name]


def choose(rng: np.random.Generator, board: np.ndarray, player: int, shy: bool) -> int:
    """A random legal column; a shy player shuns four in a row, which makes for drawn games."""
    legal = [c for c in range(COLUMNS) if board[0, c] == 0]
    if shy:
        peaceful = []
        for c in legal:
            after = board.copy()
            after[row_of_next_disc(board, c), c] = player + 1
            peaceful += [] if wins(after, player) else [c]
        legal = peaceful or legal
    return int(rng.choice(legal))


def test_whole_games() -> None:
    games, shy_games = 1000, 30
    rng = np.random.default_rng(0)
    s = simulator(games)
    raws = [raw_env() for _ in range(games)]
    for raw in raws:
        raw.reset()
    for k in range(games):
        compare(s, k, raws[k])
    outcomes: dict[Any, int] = {}
    lengths = set()
    playing = list(range(games))
    for move in range(1, ROWS * COLUMNS + 1):
        for k in playing:
            board = np.array(raws[k].board).reshape(ROWS, COLUMNS)
            player = NAMES.index(raws[k].agent_selection)
            column = choose(rng, board, player, k < shy_games)
            s.arrays["action"][k, player, 0] = column
            s.arrays["action"][k, 1 - player, 0] = rng.integers(-9, 9)  # is ignored
            raws[k].step(column)
        s.step()
        for k in playing:
            compare(s, k, raws[k])
            assert s.arrays["elapsed_steps"][k] == move
            if raws[k].terminations["player_0"]:
                board = np.array(raws[k].board).reshape(ROWS, COLUMNS)
                for player in range(2):
                    for line in wins(board, player):
                        key = (player, direction(line))
                        outcomes[key] = outcomes.get(key, 0) + 1
                if not any(raws[k].rewards.values()):
                    outcomes["draw"] = outcomes.get("draw", 0) + 1
                lengths.add(move)
        playing = [k for k in playing if not raws[k].terminations["player_0"]]
        np.testing.assert_array_equal(np.delete(s.arrays["waiting"], playing), 1)
        assert not s.arrays["waiting"][playing].any()
    assert not playing
    assert outcomes.pop("draw") >= 5
    assert len(outcomes) == 8, "each player won in each of the four directions"
    assert min(lengths) <= 8
    assert max(lengths) == 42


def position(
    rng: np.random.Generator, line: tuple[tuple[int, int], ...], last: tuple[int, int], player: int
) -> np.ndarray | None:
    """A board without four on which a disc of ``player`` at ``last`` completes ``line``."""
    heights = rng.integers(0, ROWS + 1, COLUMNS)
    for row, column in line:
        heights[column] = max(heights[column], ROWS - row)
    heights[last[1]] = ROWS - last[0] - 1
    if any(cell != last and heights[cell[1]] < ROWS - cell[0] for cell in line):
        return None
    board = rng.integers(1, 3, (ROWS, COLUMNS))
    board[np.arange(ROWS)[:, None] < ROWS - heights] = 0
    for cell in line:
        board[cell] = player + 1
    board[last] = 0
    return None if wins(board, 0) or wins(board, 1) else board


def bits(boards: np.ndarray, player: int) -> np.ndarray:
    weights = np.uint64(1) << np.arange(ROWS * COLUMNS, dtype=np.uint64)
    cells = (boards.reshape(len(boards), -1) == player + 1).astype(np.uint64)
    return (cells * weights).sum(axis=1, dtype=np.uint64)


def inject(raw: Any, board: np.ndarray, player: int) -> None:
    raw.reset()
    raw.board = board.ravel().tolist()
    if player:
        raw.agent_selection = raw._agent_selector.next()


def test_every_line_and_every_last_disc() -> None:
    rng = np.random.default_rng(1)
    boards, columns, players, lines = [], [], [], []
    for line in LINES:
        for last in line:
            if direction(line) == (1, 0) and last != line[0]:
                continue  # of a column, the top disc comes last
            for player in range(2):
                while (board := position(rng, line, last, player)) is None:
                    pass
                boards.append(board)
                columns.append(last[1])
                players.append(player)
                lines.append(line)
    assert len(set(lines)) == 69
    assert len(boards) == 2 * (21 + 4 * 48)
    s = simulator(len(boards))
    every = np.array(boards)
    s.set_state(
        {
            "discs_0": bits(every, 0),
            "discs_1": bits(every, 1),
            "to_move": np.array(players, np.int32),
        }
    )
    s.arrays["action"][...] = np.array(columns)[:, None, None]
    s.step()
    raw = raw_env()
    for k, (board, column, player) in enumerate(zip(boards, columns, players, strict=True)):
        inject(raw, board, player)
        raw.step(column)
        assert raw.rewards[NAMES[player]] == 1
        compare(s, k, raw)


def test_any_position() -> None:
    """Random boards and columns, most of them without four, some of them full."""
    rng = np.random.default_rng(2)
    count = 2000
    heights = rng.integers(0, ROWS + 1, (count, COLUMNS))
    nearly_full = np.arange(count) < 200
    heights[nearly_full] = ROWS
    columns = rng.integers(0, COLUMNS, count)
    heights[np.arange(count), columns] = np.minimum(heights[np.arange(count), columns], ROWS - 1)
    boards = rng.integers(1, 3, (count, ROWS, COLUMNS))
    boards[np.arange(ROWS)[None, :, None] < ROWS - heights[:, None, :]] = 0
    players = rng.integers(0, 2, count).astype(np.int32)
    s = simulator(count)
    s.set_state({"discs_0": bits(boards, 0), "discs_1": bits(boards, 1), "to_move": players})
    s.arrays["action"][...] = columns[:, None, None]
    s.step()
    raw = raw_env()
    draws = 0
    for k in range(count):
        inject(raw, boards[k], int(players[k]))
        raw.step(int(columns[k]))
        compare(s, k, raw)
        draws += raw.terminations["player_0"] and not any(raw.rewards.values())
    assert draws > 0


@pytest.mark.filterwarnings("ignore")  # PettingZoo warns of the illegal move
@pytest.mark.parametrize("offender", [0, 1])
def test_illegal_move(offender: int) -> None:
    s = simulator(4)
    wrapped = pettingzoo_env()
    wrapped.reset()
    column = 3
    for move in range(ROWS + offender):
        played = column if move < ROWS else 0
        wrapped.step(played)
        s.arrays["action"][...] = played
        s.step()
        for k in range(4):
            compare(s, k, wrapped.unwrapped)
    before = {name: s.arrays[name].copy() for name in ("observation", "action_mask", "to_move")}
    illegal = np.array([column, -1, COLUMNS, -(2**31)])
    s.arrays["action"][:, offender, 0] = illegal
    s.arrays["action"][:, 1 - offender, 0] = 1
    s.step()
    wrapped.step(column)  # the others it refuses by an exception
    for a, name in enumerate(NAMES):
        want = wrapped.observe(name)["observation"]
        for k in range(4):
            seen = s.arrays["observation"][k, a].reshape(ROWS, COLUMNS, 2)
            np.testing.assert_array_equal(seen, want)
        np.testing.assert_array_equal(s.arrays["reward"][:, a], wrapped.rewards[name])
        np.testing.assert_array_equal(s.arrays["terminated"][:, a], wrapped.terminations[name])
    assert s.arrays["ended"].all()
    for name, array in before.items():  # PettingZoo passes the turn to the first of the dead
        np.testing.assert_array_equal(s.arrays[name], array)
