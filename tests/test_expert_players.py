"""Experts that play games with chance: Snake, Tetris, PacMan and 2048."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import gpuzoo
from baselines.report.evaluation import evaluate
from baselines.report.match import arrange
from gpuzoo.envs.game_2048 import expectimax
from gpuzoo.envs.jumanji import dellacherie, ghost_evasion, hamiltonian_cycle
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


# ---- PacMan ----


def test_ghosts_go_where_the_player_expects_them() -> None:
    """In the game, which `tests/integrations/jumanji` compares with Jumanji's; but for ties, which chance decides."""
    envs = gpuzoo.make_vec("PacMan-v1", num_envs=400, device="cpu", autoreset_mode="disabled")
    seen, _ = envs.reset(seed=1)
    free = seen["observation"][0, ..., 0] != 0
    maze, generator = ghost_evasion.maze_of(free.tobytes(), *free.shape), np.random.default_rng(1)
    cells, moves, checked, right = [], [], np.zeros(4, int), np.zeros(4, int)
    alive = np.ones(400, bool)
    for _ in range(120):
        things = seen["observation"][:, free]
        cells.append((things[..., 3].argmax(1), abs(things[..., 4:]).argmax(1), things[..., 4:].min((1, 2)) < 0))
        if len(cells) > 2:
            (_, first, _), (player, before, scared), (_, now, _) = cells[-3:]
            came = maze.after[first] == before[..., None]
            states = 4 * before + came.argmax(2)
            prey = maze.targets(player[:, None], moves[-1][:, None], before[..., None], scared)
            expected = maze.hunt[states, prey[..., 0]] >> 2
            known = came.any(2) & (first != before) & (alive & ~scared)[:, None]
            checked += known.sum(0)
            right += (known & (expected == now)).sum(0)
        moves.append((generator.random(seen["action_mask"].shape) * seen["action_mask"]).argmax(1))
        seen, _, terminations, *_ = envs.step(moves[-1])
        alive &= ~terminations
    assert checked.min() > 1000
    assert (right[:3] / checked[:3]).min() > 0.97
    assert right[3] / checked[3] > 0.85, "near the player it is after its corner, which is not observed"
    envs.close()


def test_a_maze_is_solved_where_no_pellet_is_left() -> None:
    envs = gpuzoo.make_vec("PacMan-v1", num_envs=20, device="cpu", autoreset_mode="disabled", infos=True)
    player, (shown, _), solved = ghost_evasion.GhostEvasion(), envs.reset(seed=1), np.zeros(20, bool)
    for _ in range(1000):
        shown, _, over, _, infos = envs.step(player("agent", shown["observation"]).argmax(1))
        solved = infos["solved"]
        np.testing.assert_array_equal(solved, ~(shown["observation"][..., 1] != 0).any((1, 2)))
        if over.all():
            break
    assert 0 < solved.mean() < 1
    envs.close()


def test_a_player_that_has_seen_other_envs_forgets_them() -> None:
    player = ghost_evasion.GhostEvasion()
    for size in (3, 5):
        envs = gpuzoo.make_vec("PacMan-v1", num_envs=size, device="cpu")
        seen, _ = envs.reset(seed=1)
        for _ in range(3):
            best = player("agent", seen["observation"])
            assert best.shape == (size, 5)
            assert best.any(1).all()
            assert (seen["action_mask"][best] == 1).all()
            seen, *_ = envs.step(best.argmax(1))
        envs.close()


def test_other_observations_are_refused() -> None:
    player = ghost_evasion.GhostEvasion()
    with pytest.raises(ValueError, match=r"needs mazes with 8 channels, not shape \(31, 28, 3\)\."):
        player("agent", np.zeros((1, 31, 28, 3), np.int8))
    with pytest.raises(ValueError, match=r"needs the same maze in all rows\."):
        player("agent", np.eye(5, dtype=np.int8)[:2, None, :, None].repeat(8, 3))


# ---- 2048 ----


def slid(row: list[int]) -> list[int]:
    """A row of tiles that slide to the left, by the rules."""
    tiles, out = [tile for tile in row if tile], []
    while tiles:
        joins = len(tiles) > 1 and tiles[0] == tiles[1]
        out.append(tiles[0] + joins)
        tiles = tiles[1 + joins :]
    return out + [0] * (4 - len(out))


def moved(board: NDArray[np.int64], way: int) -> NDArray[np.int64]:
    """A board after a move: 0 left, 1 up, 2 right, 3 down."""
    turned = np.rot90(board, way)
    return np.rot90(np.array([slid(row) for row in turned.tolist()]), -way)


def value_of_line(line: list[int]) -> float:
    """What the heuristic says of a row or column."""
    joins = slid(line).count(0) - line.count(0)
    squares = [tile * tile for tile in line]
    steps = [b - a for a, b in itertools.pairwise(squares)]
    worse = [sum(max(sign * step, 0) for step in steps) for sign in (1, -1)]
    e = expectimax
    return e.EMPTY * line.count(0) + e.JOIN * joins - e.TILES * sum(squares) - e.DISORDER * min(worse)


def value(board: NDArray[np.int64], depth: int) -> float:
    """The value of the best move, or `LOST`."""
    values = []
    for way in range(4):
        after = moved(board, way)
        if (after == board).all():
            continue
        if depth == 0:
            values.append(sum(value_of_line(line) for line in [*after.tolist(), *after.T.tolist()]))
            continue
        cells, total = np.argwhere(after == 0), 0.0
        for row, column in cells:
            for tile, probability in ((1, 0.9), (2, 0.1)):
                after[row, column] = tile
                total += probability * max(value(after, depth - 1), expectimax.LOST) / len(cells)
            after[row, column] = 0
        values.append(total)
    return max(values, default=-np.inf)


def packed(board: NDArray[np.int64]) -> NDArray[np.uint64]:
    return expectimax.packed(board.reshape(1, 16))


@pytest.mark.parametrize("depth", [0, 1])
def test_a_move_is_worth_what_the_boards_after_it_are(depth: int) -> None:
    """In boards of all kinds, also full ones."""
    generator = np.random.default_rng(depth)
    for filled in np.linspace(0.3, 1, 40):
        board = generator.integers(1, 12, (4, 4)) * (generator.random((4, 4)) < filled)
        found = expectimax.move_values(packed(board), depth)[:, 0]
        for way, x in enumerate(found):
            after = moved(board, way)
            legal = (after != board).any()
            assert np.isfinite(x) == legal
        np.testing.assert_allclose(found.max(), value(board, depth), rtol=1e-5)


def test_of_2048_no_illegal_move_is_taken_and_the_moves_are_those_of_the_game() -> None:
    envs = gpuzoo.make_vec("Game2048-v0", num_envs=64, device="cpu", autoreset_mode="disabled")
    seen, _ = envs.reset(seed=1)
    generator, alive = np.random.default_rng(1), np.ones(64, bool)
    for _ in range(150):
        before, mask = seen["observation"], seen["action_mask"]
        best = expectimax.best_moves("agent", before)
        assert (mask[best] == 1).all()
        np.testing.assert_array_equal(best.any(1), mask.any(1))
        chosen = (generator.random(mask.shape) * np.where(generator.random((64, 1)) < 0.3, best, mask)).argmax(1)
        seen, _, terminations, *_ = envs.step(chosen)
        for old, new, way in zip(before[alive], seen["observation"][alive], chosen[alive], strict=True):
            there, expected = new.argmax(2), moved(old.argmax(2), int(way))
            ((row, column),) = np.argwhere(there != expected)
            assert expected[row, column] == 0
            assert there[row, column] in (1, 2)
        alive &= ~terminations
    envs.close()


def test_2048_is_solved_where_there_is_such_a_tile_or_a_larger_one() -> None:
    envs = gpuzoo.make_vec("Game2048-v0", num_envs=16, device="cpu", autoreset_mode="disabled", infos=True)
    shown, _ = envs.reset(seed=1)
    for _ in range(1100):
        shown, *_, infos = envs.step(expectimax.best_moves("agent", shown["observation"]).argmax(1))
        largest = shown["observation"].argmax(3).max((1, 2))
        np.testing.assert_array_equal(infos["solved"], largest >= 11)
    assert 0 < infos["solved"].mean() < 1
    envs.close()


@pytest.mark.parametrize("exponent", range(1, 31))
def test_which_tiles_count_as_2048(exponent: int) -> None:
    env, rows = gpuzoo.get("Game2048-v0"), np.zeros((4, 4), np.uint32)
    for k in range(4):
        rows[k, k] = exponent << 8 * k
    np.testing.assert_array_equal(env.infos(env.Config(), {"rows": rows})["solved"], exponent >= 11)


def test_other_boards_are_refused() -> None:
    with pytest.raises(ValueError, match=r"this player is for observations \(rows, 4, 4, 31\), not \(1, 4, 4, 11\)\."):
        expectimax.best_moves("agent", np.zeros((1, 4, 4, 11), np.int8))
