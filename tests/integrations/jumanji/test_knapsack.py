"""Knapsack against Jumanji's. With the sparse reward XLA adds up values in another order: hence the rounding."""

from __future__ import annotations

import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import Knapsack
from jumanji.environments.packing.knapsack.generator import RandomGenerator
from jumanji.environments.packing.knapsack.reward import DenseReward, SparseReward
from jumanji.environments.packing.knapsack.types import State

from gpuzoo.envs.jumanji.instances import bits, members

pytestmark = pytest.mark.rotates


def knapsack(n: int, items: int, budget: float, reward: str) -> Against:
    env = Knapsack(RandomGenerator(items, budget), DenseReward() if reward == "dense" else SparseReward())

    def state_of(arrays):
        return State(
            weights=arrays["weights"],
            values=arrays["values"],
            packed_items=members(arrays["packed"], items),
            remaining_budget=arrays["remaining_budget"],
            key=keys(n),
        )

    sim = simulator("Knapsack-v1", n, num_items=items, total_budget=budget, reward=reward)
    seen = lambda o: np.concatenate([o.weights, o.values, o.packed_items], 1)  # noqa: E731
    rounding = 0.0 if reward == "dense" else items * EPS
    return Against(sim, env, state_of, seen, lambda o: o.action_mask, rounding=rounding)


@pytest.mark.parametrize("reward", ["dense", "sparse"])
@pytest.mark.parametrize(("items", "budget"), [(50, 12.5), (3, 1.5), (100, 100.0), (20, 0.25)])
def test_episodes(items, budget, reward):
    knapsack(1000, items, budget, reward).follow(100_000 if items == 50 else 20_000)


def test_steps_from_drawn_states():
    n, items, rng = 20_000, 50, np.random.default_rng(0)
    game = knapsack(n, items, 12.5, "dense")
    weights = (rng.integers(0, 9, (n, items)) / 8).astype(np.float32)
    packed = rng.random((n, items)) < rng.random((n, 1))
    budget = (rng.integers(0, 20, n) / 8).astype(np.float32)
    fitting = ~packed & (weights <= budget[:, None])
    some = fitting.any(1)
    game = knapsack(int(some.sum()), items, 12.5, "dense")
    states = {
        "weights": weights, "values": rng.random((n, items), np.float32), "packed": bits(packed),
        "fitting": bits(fitting), "heaviest": weights.max(1), "remaining_budget": budget,
    }  # fmt: skip
    game.from_states({name: array[some] for name, array in states.items()})


def test_generator():
    theirs, sim = resets(Knapsack(), 5000), simulator("Knapsack-v1", 5000)
    sim.reset(seed=0)
    for name in ("weights", "values"):
        same_distribution(sim.arrays[name], getattr(theirs, name))
    assert (sim.arrays["remaining_budget"] == np.asarray(theirs.remaining_budget)).all()


def test_given_instances_of_unlike_size():
    rng = np.random.default_rng(0)
    given = {"weights": rng.random((3, 50)), "values": rng.random((3, 50)), "size": np.array([10, 50, 1])}
    sim = simulator("Knapsack-v1", 1000, instances=given)
    sim.reset(seed=0)
    assert set(sim.arrays["size"]) == {1, 10, 50}
    for k, size in enumerate(given["size"]):
        here = sim.arrays["size"] == size
        assert abs(here.mean() - 1 / 3) < 5 * np.sqrt(2 / 9 / 1000)
        assert (
            sim.arrays["weights"][here] == np.where(np.arange(50) < size, given["weights"][k].astype(np.float32), -1)
        ).all()
        assert (sim.arrays["action_mask"][here, 0].sum(1) == size).all()
