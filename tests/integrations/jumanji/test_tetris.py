"""Tetris against Jumanji's, but for the next piece, which is chance."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import Against, keys, resets, simulator
from jumanji.environments import Tetris
from jumanji.environments.packing.tetris.types import Observation, State

pytestmark = pytest.mark.rotates


def tetris(n: int, rows: int, columns: int, limit: int) -> Against:
    env = Tetris(rows, columns, limit)

    def state_of(arrays):
        grid = np.zeros((n, rows + 3, columns + 3), np.int32)
        grid[:, :rows, :columns] = arrays["filled"][..., None] >> np.arange(columns) & 1
        piece = np.asarray(env.TETROMINOES_LIST)[arrays["piece"], 0]
        nothing = np.zeros(n, np.int32)
        return State(
            grid_padded=grid, grid_padded_old=grid, tetromino_index=arrays["piece"], old_tetromino_rotated=piece,
            new_tetromino=piece, x_position=nothing, y_position=nothing,
            action_mask=(arrays["legal"][..., None] >> np.arange(columns) & 1) != 0,
            full_lines=np.zeros((n, rows + 3), bool), score=arrays["score"], reward=arrays["reward"][:, 0], key=keys(n),
            is_reset=np.zeros(n, bool), step_count=arrays["elapsed_steps"],
        )  # fmt: skip

    def observe(state):
        mask = env._calculate_action_mask(state.grid_padded, state.tetromino_index)
        return Observation(state.grid_padded[:rows, :columns], state.new_tetromino, mask, jnp.array(0))

    def seen(o):
        piece = np.pad(o.tetromino, ((0, 0), (0, 0), (0, columns - 4)))
        return np.concatenate([piece.reshape(n, -1), o.grid.reshape(n, -1)], 1)

    def grid(ours, theirs, live):
        np.testing.assert_array_equal(ours.grid_padded[live], np.minimum(theirs.grid_padded, 1)[live])

    def over(ours, legal):
        return ~legal | ~ours.action_mask.any((1, 2)) | (ours.step_count >= limit)

    compared = {"score", "reward", "step_count"}
    chance = [name for name in State.__dataclass_fields__ if name not in compared]
    return Against(
        simulator("Tetris-v0", n, num_rows=rows, num_cols=columns, max_episode_steps=limit), env, state_of, seen,
        lambda o: o.action_mask.reshape(n, -1), action=lambda actions: np.stack(np.divmod(actions, columns), 1),
        observe=observe, over=over, chance=chance,
        after_illegal=False, also=grid,
    )  # fmt: skip


@pytest.mark.parametrize(("rows", "columns", "limit"), [(10, 10, 400), (4, 4, 400), (20, 28, 30), (7, 5, 400)])
def test_episodes(rows, columns, limit):
    tetris(1000, rows, columns, limit).follow(100_000 if rows == 10 else 20_000)


def test_steps_from_drawn_states():
    """Boards that are the fuller the deeper, with rows that want one or two cells, so that up to four become full."""
    n, rows, columns, rng = 20_000, 8, 6, np.random.default_rng(0)
    depth = np.maximum(np.arange(rows) - rng.integers(0, rows, (n, 1)), 0)[..., None] / rows
    filled = rng.random((n, rows, columns)) < depth * rng.random((n, 1, 1)) * 2
    hole = rng.integers(0, columns, (n, 1, 1))
    gaps = (np.arange(columns) - hole) % columns < rng.integers(1, 5, (n, 1, 1))
    nearly = rng.random((n, rows, 1)) < 0.7 * (np.arange(rows)[:, None] >= rows - 4)
    filled = np.where(nearly, ~gaps, filled)
    filled[:, :2] &= rng.random((n, 1, 1)) < 0.2
    filled &= ~filled.all(2, keepdims=True)
    game = tetris(n, rows, columns, 400)
    piece = rng.integers(0, 7, n).astype(np.int32)
    padded = np.pad(filled, ((0, 0), (0, 3), (0, 3))).astype(np.int32)
    legal = np.asarray(jax.vmap(game.env._calculate_action_mask)(padded, piece))
    powers = 1 << np.arange(columns)
    game.from_states({
        "filled": (filled @ powers).astype(np.uint32), "piece": piece, "legal": (legal @ powers).astype(np.uint32),
        "colour": filled.reshape(n, -1).astype(np.uint8), "score": rng.integers(0, 9, n).astype(np.float32),
    })  # fmt: skip
    assert set(np.unique(game.sim.arrays["reward"])) == {0, 40, 100, 300, 1200}


def test_pieces():
    """All seven come equally often, at the beginning and later."""
    n = 20_000
    sim, theirs = simulator("Tetris-v0", n), resets(Tetris(), n)
    sim.reset(seed=0)
    first = sim.arrays["piece"].copy()
    sim.random_actions()
    sim.step()
    for pieces in (first, sim.arrays["piece"], np.asarray(theirs.tetromino_index)):
        assert (abs(np.bincount(pieces, minlength=7) - n / 7) < 5 * np.sqrt(n / 7)).all()
