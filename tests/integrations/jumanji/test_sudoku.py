"""Sudoku against Jumanji's, with its puzzles and ours."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jumanji
import jumanji.environments.logic.sudoku as original
import numpy as np
import pytest
from against import Against, keys, simulator
from jumanji.environments import Sudoku
from jumanji.environments.logic.sudoku.constants import INITIAL_BOARD_SAMPLE
from jumanji.environments.logic.sudoku.types import State

from gpuzoo.envs.jumanji.sudoku import Sudoku as Ours
from gpuzoo.envs.jumanji.sudoku import puzzles

pytestmark = pytest.mark.rotates
FILES = {"jumanji-mixed": "10000_mixed_puzzles.npy", "jumanji-very-easy": "1000_very_easy_puzzles.npy"}


def theirs(database: str) -> Path:
    return Path(original.__file__).parent / "data" / FILES[database]


def sudoku(n: int, name: str = "Sudoku-v0", **options) -> Against:
    flat = options.get("action_form") != "parts"

    def legal(arrays):
        """Legal actions, which masks of parts do not say."""
        if flat:
            return (arrays["action_mask"][:, 0] != 0).reshape(n, 9, 9, 9)
        board = arrays["board"].reshape(n, 9, 9)
        row, column = np.mgrid[:9, :9]
        used = np.bitwise_or.reduce([arrays["used"][:, k] for k in (row, 9 + column, 18 + row // 3 * 3 + column // 3)])
        return (board < 0)[..., None] & (used[..., None] >> np.arange(9, dtype=np.uint32) & 1 == 0)

    def state_of(arrays):
        board = arrays["board"].reshape(n, 9, 9).astype(np.int32)
        return State(board=board, action_mask=legal(arrays), key=keys(n))

    def mask(o):
        whole = np.asarray(o.action_mask)
        return whole.reshape(n, -1) if flat else np.concatenate([whole.any(k) for k in ((2, 3), (1, 3), (1, 2))], 1)

    return Against(
        simulator(name, n, **options), Sudoku(), state_of, lambda o: o.board.reshape(n, -1), mask,
        action=lambda actions: np.stack(np.unravel_index(actions, (9, 9, 9)), 1) if flat else actions,
        after_illegal=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["Sudoku-v0", "Sudoku-very-easy-v0"])
def test_episodes(name):
    sudoku(1000, name).follow(20_000, illegal=0.003)


@pytest.mark.parametrize("database", [*FILES])
def test_episodes_of_jumanjis_puzzles(database):
    given = {"board": np.load(theirs(database))}
    sudoku(1000, instances=given).follow(100_000 if database == "jumanji-mixed" else 20_000, illegal=0.003)


def test_actions_in_parts():
    game = sudoku(1000, action_form="parts")
    for seed in range(2):
        game.sim.reset(seed=seed)
        live = np.ones(1000, bool)
        for _ in range(40):
            game.sim.random_actions()
            before = game.arrays()["board"]
            live &= ~game.step(game.sim.arrays["action"][:, 0].copy(), live)
            assert ((game.sim.arrays["board"] != before).sum(1)[live] == 1).all()
        actions = game.any_actions(np.random.default_rng(seed), legal=False)
        board = game.sim.arrays["board"].copy()
        whole = np.asarray(game.state_of(game.arrays()).action_mask)[(np.arange(1000), *actions.T)]
        game.sim.arrays["action"][:, 0] = actions
        game.sim.step()
        assert ((game.sim.arrays["board"] != board).any(1) == whole)[live].all()
        assert (game.sim.arrays["terminated"][:, 0] != 0)[live & ~whole].all()


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
    """Ours have as many digits as Jumanji's. They are valid, and each one is drawn as often as others."""
    own, others = (
        puzzles("mixed" if name == "Sudoku-v0" else "very-easy"),
        np.asarray(jumanji.make(name)._generator._boards),
    )
    counts, other_counts = ((boards > 0).sum((1, 2)) for boards in (own, others))
    assert abs(counts.mean() - other_counts.mean()) < 1
    assert abs(counts.std() - other_counts.std()) < 1
    assert counts.min() >= other_counts.min()
    assert counts.max() <= other_counts.max()
    n = 20_000
    sim = simulator(name, n)
    sim.reset(seed=0)
    number = {board.tobytes(): k for k, board in enumerate(own - 1)}
    assert len(number) == len(own) == 1000
    drawn = np.array([number[board.tobytes()] for board in sim.arrays["board"]])
    counts = np.bincount(drawn * 100 // len(own), minlength=100)
    assert (abs(counts - n / 100) < 5 * np.sqrt(n / 100)).all()


@pytest.mark.parametrize("database", [*FILES])
def test_jumanjis_puzzles_come_through_the_cache(database, tmp_path, monkeypatch):
    """The declared files are Jumanji's; nothing is fetched where they lie in the cache."""
    content, asset = theirs(database).read_bytes(), Ours.assets[database]
    assert (len(content), hashlib.sha256(content).hexdigest()) == (asset.size, asset.sha256)
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / f"{asset.sha256[:20]}-{FILES[database]}").write_bytes(content)
    puzzles.cache_clear()
    np.testing.assert_array_equal(puzzles(database), np.load(theirs(database)))


def test_dummy_and_given_puzzles():
    np.testing.assert_array_equal(puzzles("dummy")[0], INITIAL_BOARD_SAMPLE)
    given = puzzles("mixed")[:3]
    sim = simulator("Sudoku-v0", 3, instances={"board": given}, instance=np.array([2, 0, 1]))
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["board"].reshape(3, 9, 9), given[[2, 0, 1]] - 1)
    with pytest.raises(ValueError, match="from 0 to 2"):
        simulator("Sudoku-v0", 3, instances={"board": given}, instance=3.0)
