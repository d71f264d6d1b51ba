"""TSP and CVRP against Jumanji's.

Distances are the root of a sum of two squares, which XLA may fuse: one unit in the last place. A reward is one
distance; TSP's last one is the sum of two, so three units; at the end it is a sum of up to 2n in another order. XLA
multiplies by the inverse of CVRP's capacity, where we divide by it.
"""

from __future__ import annotations

import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import CVRP, TSP
from jumanji.environments.routing.cvrp import generator as cvrp_generator
from jumanji.environments.routing.cvrp import reward as cvrp_reward
from jumanji.environments.routing.cvrp.types import State as CVRPState
from jumanji.environments.routing.tsp import generator as tsp_generator
from jumanji.environments.routing.tsp import reward as tsp_reward
from jumanji.environments.routing.tsp.types import State as TSPState

from gpuzoo.envs.jumanji.instances import bits, members

pytestmark = pytest.mark.rotates


def tsp(n: int, cities: int, reward: str, **options) -> Against:
    env = TSP(
        generator=tsp_generator.UniformGenerator(cities),
        reward_fn=tsp_reward.DenseReward() if reward == "dense" else tsp_reward.SparseReward(),
    )

    def state_of(arrays):
        return TSPState(
            coordinates=arrays["coordinates"][:, :cities],
            position=arrays["position"],
            visited_mask=~members(arrays["left"], cities),
            trajectory=arrays["trajectory"][:, :cities].astype(np.int32),
            num_visited=arrays["num_visited"],
            key=keys(n),
        )

    def seen(o):
        return np.concatenate([o.coordinates.reshape(n, -1), o.position[:, None], o.trajectory], 1)

    sim = simulator("TSP-v1", n, **{"num_cities": cities, "reward": reward, **options})
    rounding = 3 * EPS if reward == "dense" else cities * EPS
    return Against(sim, env, state_of, seen, lambda o: o.action_mask, rounding=rounding)


@pytest.mark.parametrize("reward", ["dense", "sparse"])
@pytest.mark.parametrize("cities", [20, 1, 2, 70])
def test_tsp(reward, cities):
    game = tsp(1000, cities, reward)
    game.follow(100_000 if cities == 20 else 20_000)


def test_tsp_from_drawn_states():
    n, cities, rng = 20_000, 20, np.random.default_rng(0)
    game = tsp(n, cities, "dense")
    visited = rng.integers(1, cities, n)
    order = rng.permuted(np.tile(np.arange(cities), (n, 1)), axis=1)
    place = np.arange(cities)
    trajectory = np.where(place < visited[:, None], order, -1)
    left = np.zeros((n, cities), bool)
    np.put_along_axis(left, order, place >= visited[:, None], axis=1)
    game.from_states({
        "coordinates": rng.integers(0, 4, (n, cities, 2)).astype(np.float32) / 3,
        "left": bits(left), "trajectory": trajectory.astype(np.int16), "num_visited": visited.astype(np.int32),
        "position": order[np.arange(n), visited - 1].astype(np.int32),
    })  # fmt: skip


def test_tsp_generator():
    theirs, sim = resets(TSP(), 5000), simulator("TSP-v1", 5000)
    sim.reset(seed=0)
    for axis in range(2):
        same_distribution(sim.arrays["coordinates"][..., axis], theirs.coordinates[..., axis])


def test_tsp_of_given_instances_of_unlike_size():
    """Small instances in large arrays are played as by an env of Jumanji of their size."""
    rng = np.random.default_rng(0)
    size = np.repeat([5, 12], 50)
    given = {"coordinates": rng.random((100, 20, 2)).astype(np.float32), "size": size}
    for k, cities in enumerate((5, 12)):
        number = np.arange(50 * k, 50 * k + 50).astype(np.float32)
        sim = simulator("TSP-v1", 50, instances=given, instance=number)
        small = tsp(50, cities, "dense", num_cities=20, instances=given, instance=number)
        small.seen = lambda o, c=cities: np.concatenate([
            o.coordinates.reshape(50, -1), np.full((50, 40 - 2 * c), -1), o.position[:, None], o.trajectory,
            np.full((50, 20 - c), -1)
        ], 1)  # fmt: skip
        small.mask = lambda o, c=cities: np.pad(np.asarray(o.action_mask), ((0, 0), (0, 20 - c)))
        sim.reset(seed=0)
        np.testing.assert_array_equal(
            sim.arrays["coordinates"][:, :cities], given["coordinates"][50 * k : 50 * k + 50, :cities]
        )
        small.follow(50 * cities * 3, illegal=0.0)


def cvrp(n: int, nodes: int, reward: str, capacity: int = 30) -> Against:
    env = CVRP(
        generator=cvrp_generator.UniformGenerator(nodes, capacity, 10),
        reward_fn=cvrp_reward.DenseReward() if reward == "dense" else cvrp_reward.SparseReward(),
    )

    def state_of(arrays):
        return CVRPState(
            coordinates=arrays["coordinates"],
            demands=arrays["demands"],
            position=arrays["position"],
            capacity=arrays["capacity"],
            visited_mask=~members(arrays["left"], nodes + 1),
            trajectory=arrays["trajectory"].astype(np.int32),
            num_total_visits=arrays["num_total_visits"],
            key=keys(n),
        )

    def seen(o):
        parts = [o.coordinates.reshape(n, -1), o.demands, o.unvisited_nodes, o.position[:, None], o.trajectory]
        return np.concatenate([*parts, o.capacity[:, None]], 1)

    sim = simulator("CVRP-v1", n, num_nodes=nodes, reward=reward, max_capacity=capacity)
    rounding = EPS if reward == "dense" else 2 * nodes * EPS
    return Against(sim, env, state_of, seen, lambda o: o.action_mask, rounding=rounding, seen_rounding=EPS)


@pytest.mark.parametrize("reward", ["dense", "sparse"])
@pytest.mark.parametrize(("nodes", "capacity"), [(20, 30), (1, 10), (70, 50)])
def test_cvrp(reward, nodes, capacity):
    cvrp(1000, nodes, reward, capacity).follow(100_000 if nodes == 20 else 20_000)


def test_cvrp_from_drawn_states():
    n, nodes, rng = 20_000, 20, np.random.default_rng(0)
    game = cvrp(n, nodes, "dense")
    left = rng.random((n, nodes + 1)) < rng.random((n, 1))
    left[:, 1] = True
    position = np.where(left[:, 0], rng.integers(2, nodes + 1, n), 0)
    left[np.arange(n), position] = False
    demands = rng.integers(0, 31, (n, nodes + 1)) * (np.arange(nodes + 1) > 0)
    game.from_states({
        "coordinates": rng.integers(0, 4, (n, nodes + 1, 2)).astype(np.float32) / 3,
        "demands": demands.astype(np.int32), "left": bits(left), "position": position.astype(np.int32),
        "trajectory": rng.integers(0, nodes + 1, (n, 2 * nodes)).astype(np.int16),
        "num_total_visits": rng.integers(1, 2 * nodes + 1, n).astype(np.int32),
        "capacity": rng.integers(0, 31, n).astype(np.int32),
    })  # fmt: skip


def test_cvrp_generator():
    theirs, sim = resets(CVRP(), 5000), simulator("CVRP-v1", 5000)
    sim.reset(seed=0)
    for axis in range(2):
        same_distribution(sim.arrays["coordinates"][..., axis], theirs.coordinates[..., axis])
    same_distribution(sim.arrays["demands"][:, 1:], theirs.demands[:, 1:])
    assert set(np.unique(sim.arrays["demands"])) == set(np.unique(np.asarray(theirs.demands)))
