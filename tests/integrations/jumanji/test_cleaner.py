"""Cleaner against Jumanji's. Its mazes are Maze's, which are compared there."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, resets, same_distribution, simulator
from jumanji.environments import Cleaner
from jumanji.environments.routing.cleaner.generator import RandomGenerator
from jumanji.environments.routing.cleaner.types import State

pytestmark = pytest.mark.rotates


def cleaner(n: int, side: int, agents: int, limit: int, penalty: float = 0.5) -> Against:
    env = Cleaner(RandomGenerator(side, side, agents), limit, penalty)

    def state_of(arrays):
        grid = np.where(arrays["walls"] != 0, 2, np.where(arrays["dirty"] != 0, 0, 1))
        return State(
            grid=grid.reshape(n, side, side).astype(np.int8),
            agents_locations=np.stack(np.divmod(arrays["place"], side), 2),
            action_mask=arrays["action_mask"] != 0,
            step_count=arrays["elapsed_steps"],
            key=keys(n),
        )

    def seen(o):
        grid, places = np.asarray(o.grid), np.asarray(o.agents_locations)
        where = np.zeros((n, agents, side, side))
        np.put_along_axis(where.reshape(n, agents, -1), (places @ [side, 1])[..., None], 1, axis=2)
        same = lambda what: np.broadcast_to((grid == what)[:, None], where.shape)  # noqa: E731
        return np.stack([same(0), same(2), where, where.sum(1, keepdims=True) - where], -1).reshape(n, -1)

    def also(ours, theirs, live):
        written = np.asarray(game.sim.global_state()).reshape(n, -1)[live]
        shown = np.concatenate([theirs.grid.reshape(n, -1), theirs.agents_locations.reshape(n, -1)], 1)[live]
        np.testing.assert_array_equal(written, shown)
        infos = game.sim.env.infos(game.sim.cfg, game.sim.arrays)
        np.testing.assert_array_equal(infos["num_dirty_tiles"][live], (theirs.grid == 0).sum((1, 2))[live])

    sim = simulator(
        "Cleaner-v0", n, num_rows=side, num_cols=side, num_agents=agents, max_episode_steps=limit,
        penalty_per_timestep=penalty,
    )  # fmt: skip
    game = Against(sim, env, state_of, seen, lambda o: o.action_mask.reshape(n, -1), also=also)
    return game


@pytest.mark.parametrize(
    ("side", "agents", "limit", "penalty"), [(10, 3, 100, 0.5), (2, 1, 4, 0.0), (3, 5, 9, 1.5), (6, 2, 36, -0.25)]
)
def test_episodes(side, agents, limit, penalty):
    cleaner(1000, side, agents, limit, penalty).follow(100_000 if side == 10 else 20_000)


def test_steps_from_drawn_states():
    n, side, agents, rng = 20_000, 4, 3, np.random.default_rng(0)
    walls = rng.random((n, side * side)) < rng.random((n, 1)) * 0.7
    place = rng.integers(0, side * side, (n, agents))
    place[:, 1] = np.where(rng.random(n) < 0.3, place[:, 0], place[:, 1])
    np.put_along_axis(walls, place, False, axis=1)
    dirty = ~walls & (rng.random((n, side * side)) < rng.random((n, 1)))
    np.put_along_axis(dirty, place, False, axis=1)
    cleaner(n, side, agents, 100).from_states({
        "walls": walls, "dirty": dirty, "num_dirty": dirty.sum(1).astype(np.int32), "place": place.astype(np.int32),
    })  # fmt: skip


def test_beginning():
    n = 5000
    theirs, sim = resets(Cleaner(), n), simulator("Cleaner-v0", n)
    sim.reset(seed=0)
    assert not sim.arrays["place"].any()
    assert not sim.arrays["dirty"][:, 0].any()
    assert ((sim.arrays["walls"] != 0) | (sim.arrays["dirty"] != 0))[:, 1:].all()
    same_distribution(sim.arrays["num_dirty"], (np.asarray(theirs.grid) == 0).sum((1, 2)))
