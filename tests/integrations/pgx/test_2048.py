"""2048 against Pgx: steps from drawn boards and whole games, but for the place of the new tile, which is chance."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pgx.play2048
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.game_2048.game_2048 import Game2048

pytestmark = pytest.mark.rotates

ENV: Any = pgx.make("2048")
STEP = jax.jit(jax.vmap(ENV.step))
SEEN = jax.jit(jax.vmap(lambda board: pgx.play2048._observe(ENV.init(jax.random.key(0)).replace(_board=board), 0)))
MASK = jax.jit(jax.vmap(lambda board: pgx.play2048._legal_action_mask(board.reshape(4, 4))))


def boards(n: int) -> np.ndarray:
    """Full and empty ones, of few kinds of tiles and of many."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, 15, (n, 1))
    return np.where(rng.random((n, 16)) < rng.random((n, 1)), rng.integers(1, kinds + 1, (n, 16)), 0)


def tiles_of(sim: Simulator) -> np.ndarray:
    """Exponents of the tiles, (num_envs, 16)."""
    return np.ascontiguousarray(sim.arrays["rows"]).view(np.uint8).astype(int)


def compare(sim: Simulator, before: np.ndarray, actions: np.ndarray, live: np.ndarray) -> None:
    """A step that was made from `before` by legal actions."""
    n = len(before)
    states: Any = jax.vmap(ENV.init)(jax.random.split(jax.random.key(1), n))
    mask = MASK(jnp.asarray(before))
    states = states.replace(_board=jnp.asarray(before, jnp.int32), legal_action_mask=mask)
    states = STEP(states, jnp.asarray(actions), jax.random.split(jax.random.key(2), n))
    theirs, ours = np.asarray(states._board)[live], tiles_of(sim)[live]
    np.testing.assert_array_equal(sim.arrays["reward"][live, 0], np.asarray(states.rewards)[live, 0])
    unlike = ours != theirs
    assert (unlike.sum(1) <= 2).all()  # each has a tile that the other has not
    for one, other in ((ours, theirs), (theirs, ours)):
        assert np.isin(one[unlike & (other == 0)], (1, 2)).all()
    both = unlike & (ours > 0) & (theirs > 0)  # at the same place, a 2 and a 4
    assert np.isin(ours[both] * theirs[both], (2,)).all()
    np.testing.assert_array_equal((ours > 0).sum(1), (theirs > 0).sum(1))
    legal = np.asarray(MASK(jnp.asarray(ours)))
    np.testing.assert_array_equal(sim.arrays["action_mask"][live, 0], legal)
    np.testing.assert_array_equal(sim.arrays["terminated"][live, 0], ~legal.any(1))
    np.testing.assert_array_equal(
        sim.arrays["observation"][live, 0].reshape(-1, 4, 4, 31), np.asarray(SEEN(jnp.asarray(ours)))
    )


def test_steps_from_drawn_boards() -> None:
    before, rng = boards(20_000), np.random.default_rng(3)
    legal = np.asarray(MASK(jnp.asarray(before)))
    before, legal = before[legal.any(1)], legal[legal.any(1)]
    actions = (rng.random(legal.shape) * legal).argmax(1)
    sim = Simulator(Game2048, len(before), device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    sim.set_state({"rows": np.ascontiguousarray(before, np.uint8).view(np.uint32)})
    np.testing.assert_array_equal(sim.arrays["action_mask"][:, 0], legal)
    sim.arrays["action"][:, 0, 0] = actions
    sim.step()
    compare(sim, before, actions, np.ones(len(before), bool))


@pytest.mark.timeout(600)
def test_whole_games() -> None:
    n, rng, moves = 1000, np.random.default_rng(4), 0
    sim = Simulator(Game2048, n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=1)
    live = np.ones(n, bool)
    while live.any():
        before, mask = tiles_of(sim), sim.arrays["action_mask"][:, 0]
        actions = (rng.random(mask.shape) * mask).argmax(1)
        sim.arrays["action"][:, 0, 0] = actions
        sim.step()
        compare(sim, before, actions, live)
        moves += int(live.sum())
        live &= sim.arrays["terminated"][:, 0] == 0
    assert moves >= 100_000
