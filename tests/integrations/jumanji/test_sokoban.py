"""Sokoban against Jumanji's, on our levels, its own and drawn ones."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from against import Against, keys, simulator
from jumanji.environments import Sokoban
from jumanji.environments.routing.sokoban.generator import SimpleSolveGenerator, ToyGenerator
from jumanji.environments.routing.sokoban.reward import DenseReward, SparseReward
from jumanji.environments.routing.sokoban.types import State

from gpuzoo.envs.jumanji.sokoban import levels

pytestmark = pytest.mark.rotates


def sokoban(n: int, reward: str = "dense", limit: int = 120, **options) -> Against:
    env = Sokoban(ToyGenerator(), DenseReward() if reward == "dense" else SparseReward(), object(), limit)

    def state_of(arrays):
        return State(
            key=keys(n),
            fixed_grid=arrays["fixed"].reshape(n, 10, 10),
            variable_grid=arrays["variable"].reshape(n, 10, 10),
            agent_location=np.stack(np.divmod(arrays["worker"], 10), 1),
            step_count=arrays["elapsed_steps"],
        )

    sim = simulator("Sokoban-v0", n, reward=reward, max_episode_steps=limit, **options)

    def also(ours, theirs, live):
        extras = jax.vmap(env._get_extras)(theirs)
        infos = sim.env.infos(sim.cfg, sim.arrays)
        for name in ("prop_correct_boxes", "solved"):
            np.testing.assert_array_equal(infos[name][live], np.asarray(extras[name])[live])

    return Against(sim, env, state_of, lambda o: o.grid.reshape(n, -1), also=also)


@pytest.mark.parametrize(
    ("reward", "limit", "options"),
    [("dense", 120, {}), ("sparse", 40, {}), ("dense", 300, {"levels": "toy"}), ("sparse", 120, {"levels": "simple"})],
)
def test_episodes(reward, limit, options):
    """In the simple level random moves find a solution now and then."""
    sokoban(1000, reward, limit, **options).follow(100_000 if not options and reward == "dense" else 30_000)


def test_steps_from_drawn_states():
    """Any walls, also open edges; boxes and targets anywhere, some of them one push from the solution."""
    n, rng = 40_000, np.random.default_rng(0)
    fixed = (rng.random((n, 100)) < 0.5 * rng.random((n, 1))).astype(np.uint8)
    places = rng.random((n, 100)).argsort(1)
    targets, worker = places[:, :4], places[:, 4]
    boxes = np.where(rng.random((n, 4)) < 0.6, targets, places[:, 5:9])
    way = rng.choice([1, -1, 10, -10], n)  # a box beside its target, with the worker behind it
    near = np.clip(targets[:, 0] - way, 0, 99)
    free = (boxes[:, 1:] != near[:, None]).all(1) & (worker != near)
    boxes[:, 0] = np.where(free & (rng.random(n) < 0.5), near, boxes[:, 0])
    behind = np.clip(boxes[:, 0] - way, 0, 99)
    worker = np.where((boxes != behind[:, None]).all(1), behind, worker)
    variable = np.zeros((n, 100), np.uint8)
    np.put_along_axis(fixed, targets, 2, axis=1)
    for taken in (*boxes.T, worker):
        row = np.arange(n)
        fixed[row, taken] = np.where(fixed[row, taken] == 1, 0, fixed[row, taken])
    np.put_along_axis(variable, boxes, 4, axis=1)
    variable[np.arange(n), worker] = 3
    game = sokoban(n)
    game.from_states({
        "fixed": fixed, "variable": variable, "worker": worker.astype(np.int32),
        "on_target": ((fixed == 2) & (variable == 4)).sum(1).astype(np.int32),
        "elapsed_steps": rng.integers(0, 120, n).astype(np.int32),
    })  # fmt: skip
    assert game.sim.arrays["terminated"].sum() > 100


@pytest.mark.parametrize("name", ["toy", "simple"])
def test_jumanjis_levels(name):
    """They are the same, and each is drawn as often as others."""
    generator = ToyGenerator() if name == "toy" else SimpleSolveGenerator()
    theirs = jax.vmap(generator)(jax.random.split(jax.random.key(0), 50))
    whole = np.stack([theirs.variable_grid, theirs.fixed_grid], -1)
    ours = np.stack([levels(name)["variable"], levels(name)["fixed"]], -1)
    assert {level.tobytes() for level in whole} == {level.tobytes() for level in ours}
    sim = simulator("Sokoban-v0", 4000, levels=name)
    sim.reset(seed=0)
    _, counts = np.unique(sim.arrays["worker"], return_counts=True)
    assert (abs(counts - 4000 / len(ours)) < 5 * np.sqrt(4000 / len(ours))).all()
