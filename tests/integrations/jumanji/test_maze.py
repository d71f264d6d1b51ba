"""Maze against Jumanji's; drawn mazes are compared in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, resets, same_distribution, simulator
from jumanji.environments import Maze
from jumanji.environments.routing.maze.generator import RandomGenerator, ToyGenerator
from jumanji.environments.routing.maze.types import Position, State

pytestmark = pytest.mark.rotates


def maze(n: int, rows: int, columns: int, limit: int, **options) -> Against:
    env = Maze(ToyGenerator() if options else RandomGenerator(rows, columns), limit)

    def state_of(arrays):
        return State(
            agent_position=Position(*np.divmod(arrays["agent"], columns)),
            target_position=Position(*np.divmod(arrays["target"], columns)),
            walls=arrays["walls"].reshape(n, rows, columns) != 0,
            action_mask=arrays["action_mask"][:, 0] != 0,
            key=keys(n),
            step_count=arrays["elapsed_steps"],
        )

    def seen(o):
        channels = np.zeros((n, rows, columns, 3))
        channels[..., 0] = o.walls
        for k, place in ((1, o.agent_position), (2, o.target_position)):
            channels[np.arange(n), place.row, place.col, k] = 1
        return channels.reshape(n, -1)

    sim = simulator("Maze-v0", n, num_rows=rows, num_cols=columns, max_episode_steps=limit, **options)
    return Against(sim, env, state_of, seen, lambda o: o.action_mask)


@pytest.mark.parametrize(("rows", "columns"), [(10, 10), (2, 2), (5, 12)])
def test_episodes(rows, columns):
    maze(1000, rows, columns, rows * columns).follow(100_000 if rows == 10 else 20_000, illegal=0.05)


def test_toy():
    game = maze(100, 5, 5, 25, generator="toy")
    game.sim.reset(seed=0)
    theirs, ours = resets(game.env, 100), game.state_of(game.arrays())
    for name in ("walls", "agent_position", "target_position"):
        np.testing.assert_array_equal(getattr(ours, name), np.asarray(getattr(theirs, name)))
    game.follow(10_000)


def test_steps_from_drawn_states():
    n, rows, columns, rng = 20_000, 4, 5, np.random.default_rng(0)
    walls = rng.random((n, rows * columns)) < rng.random((n, 1))
    agent, target = rng.integers(0, rows * columns, (2, n))
    walls[np.arange(n), agent] = walls[np.arange(n), target] = False
    maze(n, rows, columns, 20).from_states(
        {"walls": walls, "agent": agent.astype(np.int32), "target": target.astype(np.int32)}
    )


@pytest.mark.parametrize(("rows", "columns"), [(10, 10), (7, 4)])
def test_generator(rows, columns):
    n = 10_000
    theirs = resets(Maze(RandomGenerator(rows, columns)), n)
    sim = simulator("Maze-v0", n, num_rows=rows, num_cols=columns)
    sim.reset(seed=0)
    ours, others = sim.arrays["walls"] != 0, np.asarray(theirs.walls).reshape(n, -1)
    same_distribution(ours.sum(1), others.sum(1))
    for frequency in (lambda w: w.mean(0), lambda w: (w[:, 1:] & w[:, :-1]).mean(0)):  # of walls, and of neighbours
        one, other = frequency(ours), frequency(others)
        spread = np.sqrt(2 * np.maximum(one * (1 - one), 1e-3) / n)
        assert (abs(one - other) < 5 * spread).all()
    for name in ("agent", "target"):
        place = getattr(theirs, f"{name}_position")
        same_distribution(sim.arrays[name], np.asarray(place.row) * columns + np.asarray(place.col))
        assert not ours[np.arange(n), sim.arrays[name]].any()
    assert (sim.arrays["agent"] != sim.arrays["target"]).all()


def test_given_mazes():
    given = {
        "walls": np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]]),
        "agent": np.array([[0, 0], [1, 1]]),
        "target": np.array([[1, 1], [0, 0]]),
    }
    sim = simulator("Maze-v0", 2, num_rows=2, num_cols=2, instances=given, instance=np.array([1, 0]))
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["walls"].reshape(2, 2, 2), given["walls"][::-1])
    np.testing.assert_array_equal(sim.arrays["agent"], [3, 0])
    with pytest.raises(ValueError, match="instance 0: the agent's cell"):
        simulator("Maze-v0", 2, num_rows=2, num_cols=2, instances={**given, "agent": np.array([[0, 1], [1, 1]])})
