"""Connector against Jumanji's; drawn boards are compared in distribution.

XLA may add up shared rewards in another order: one unit in the last place for each agent.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import Connector
from jumanji.environments.routing.connector import generator as generators
from jumanji.environments.routing.connector import reward as rewards
from jumanji.environments.routing.connector.types import Agent, State

pytestmark = pytest.mark.rotates

REWARDS = {
    "dense": rewards.DenseRewardFn(0.5, -0.125),
    "shared_dense": rewards.SharedDenseRewardFn(1.0, -0.03),
    "sparse": rewards.SparseRewardFn(),
    "shared_sparse": rewards.SharedSparseRewardFn(),
}


def places(cells: np.ndarray, side: int) -> np.ndarray:
    """Rows and columns of cells in the grid, which has a margin."""
    return np.stack(np.divmod(cells, side + 2), -1) - 1


def connector(n: int, side: int, agents: int, limit: int = 50, reward: str = "dense", **options) -> Against:
    env = Connector(generators.UniformRandomGenerator(side, agents), REWARDS[reward], limit)

    def state_of(arrays):
        place = {name: places(arrays[name], side) for name in ("start", "target", "place")}
        return State(
            grid=arrays["grid"].reshape(n, side + 2, side + 2)[:, 1:-1, 1:-1].astype(np.int32),
            step_count=arrays["elapsed_steps"],
            agents=Agent(
                id=np.tile(np.arange(agents), (n, 1)),
                start=place["start"],
                target=place["target"],
                position=place["place"],
            ),
            key=keys(n),
            action_mask=arrays["action_mask"] != 0,
        )

    def seen(o):
        grid = np.asarray(o.grid).reshape(n, 1, -1)
        kind, own = (grid - 1) % 3, (grid > 0) & ((grid - 1) // 3 == np.arange(agents)[:, None])
        marks = [own & (kind == k) for k in range(3)]
        return np.stack([*marks, np.where((grid > 0) & ~own, kind + 1, 0)], -1).reshape(n, -1)

    def also(ours, theirs, live):
        np.testing.assert_array_equal(
            np.asarray(game.sim.global_state()).reshape(n, -1)[live], theirs.grid.reshape(n, -1)[live]
        )
        infos = game.sim.env.infos(game.sim.cfg, game.sim.arrays)
        for name, extra in jax.vmap(env._get_extras)(theirs).items():
            np.testing.assert_allclose(infos[name][live], np.asarray(extra)[live], rtol=1e-6)

    if reward == "dense":
        options = {"connected_reward": 0.5, "timestep_reward": -0.125, **options}
    sim = simulator(
        "Connector-v3", n, grid_size=side, num_agents=agents, max_episode_steps=limit, reward=reward, **options
    )
    game = Against(
        sim,
        env,
        state_of,
        seen,
        lambda o: o.action_mask,
        lambda a: a.reshape(n, agents),
        also=also,
        rounding=agents * EPS,
    )
    return game


@pytest.mark.parametrize(("side", "agents", "limit"), [(10, 10, 50), (3, 1, 6), (12, 40, 50)])
def test_episodes(side, agents, limit):
    generator = "uniform" if agents == 40 else "random_walk"
    connector(1000, side, agents, limit, generator=generator).follow(100_000 if side == 10 else 20_000)


@pytest.mark.parametrize("reward", list(REWARDS))
def test_rewards(reward):
    connector(1000, 6, 5, 20, reward).follow(20_000)


def test_steps_from_drawn_states():
    n, side, agents, rng = 20_000, 5, 4, np.random.default_rng(0)
    cells = rng.permuted(np.tile(np.arange(side * side), (n, 1)), axis=1)
    place, target = cells[:, :agents], cells[:, agents : 2 * agents].copy()
    connected = rng.random((n, agents)) < 0.15
    grid = np.where(rng.random((n, side * side)) < rng.random((n, 1)), 1 + 3 * rng.integers(0, agents, (n, 1)), 0)
    numbers = 3 * np.arange(agents)
    np.put_along_axis(grid, target, np.where(connected, 0, numbers + 3), axis=1)
    target = np.where(connected, place, target)
    np.put_along_axis(grid, place, np.tile(numbers + 2, (n, 1)), axis=1)
    padded = np.pad(grid.reshape(n, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=-1).reshape(n, -1)
    cell = lambda k: ((k // side + 1) * (side + 2) + k % side + 1).astype(np.int32)  # noqa: E731
    connector(n, side, agents).from_states({
        "grid": padded.astype(np.int16), "place": cell(place), "target": cell(target),
        "start": cell(rng.integers(0, side * side, (n, agents))),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("name", "side", "agents", "theirs", "options"),
    [
        ("random_walk", 10, 10, generators.RandomWalkGenerator(10, 10), {}),
        ("random_walk", 7, 3, generators.RandomWalkGenerator(7, 3, 0.3), {"temperature": 0.3}),
        ("random_walk", 8, 5, generators.RandomWalkGenerator(8, 5, 4.0, 5), {"temperature": 4.0, "max_walk_steps": 5}),
        ("legacy_random_walk", 8, 5, generators.LegacyRandomWalkGenerator(8, 5), {}),
        ("uniform", 6, 9, generators.UniformRandomGenerator(6, 9), {}),
    ],
)
def test_generators(name, side, agents, theirs, options):
    n = 8000
    first = resets(Connector(theirs), n)
    sim = simulator("Connector-v3", n, grid_size=side, num_agents=agents, generator=name, **options)
    sim.reset(seed=0)
    start, target = (places(sim.arrays[k], side) for k in ("start", "target"))
    others = first.agents
    inside = (np.asarray(others.target) >= 0).all((1, 2))  # a legacy walk may leave the board
    assert inside.mean() > 0.99
    for a in {0, agents // 2, agents - 1}:
        for axis in range(2):
            same_distribution(start[:, a, axis], others.start[inside, a, axis])
            same_distribution(target[:, a, axis], others.target[inside, a, axis])
            same_distribution((target - start)[:, a, axis], (others.target - others.start)[inside, a, axis])
    same_distribution(
        abs(target - start).sum((1, 2)), abs(np.asarray(others.target - others.start))[inside].sum((1, 2))
    )
    assert (np.sort(sim.arrays["grid"], axis=1)[:, -2 * agents :] > 0).all()
    np.testing.assert_array_equal((sim.arrays["grid"] > 0).sum(1), 2 * agents)


def test_given_boards():
    given = {"starts": np.array([[[0, 0], [2, 1]]]), "targets": np.array([[[1, 1], [0, 2]]])}
    sim = simulator("Connector-v3", 2, grid_size=3, num_agents=2, instances=given)
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["grid"][1].reshape(5, 5)[1:-1, 1:-1], [[2, 0, 6], [0, 3, 0], [0, 5, 0]])
    with pytest.raises(ValueError, match="instance 0: two things are in the cell"):
        simulator("Connector-v3", 1, grid_size=3, num_agents=2, instances={**given, "targets": given["starts"]})
