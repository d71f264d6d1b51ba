"""MultiCVRP against Jumanji's.

Distances are the root of a sum of two squares and penalties are added to sums, which XLA may both fuse: one unit in the
last place of what a vehicle has driven or paid; a penalty is a part of how far a time is from a window, and so inexact
by units in the last place of that time. A dense reward is the difference of two sums of these, which are up to
SUMS, so it differs by units in the last place of that.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import MultiCVRP
from jumanji.environments.routing.multi_cvrp import generator, reward, types

from gpuzoo.envs.jumanji.multi_cvrp import NAMES, SETTINGS
from gpuzoo.envs.jumanji.multi_cvrp import MultiCVRP as Ours

pytestmark = pytest.mark.rotates
SUMS = 4000.0


def vehicles(n: int, customers: int, count: int, pays: str = "dense", **options) -> Against:
    maker = generator.UniformRandomGenerator(customers, count)
    rewards = {"dense": reward.DenseReward, "sparse": reward.SparseReward}
    env = MultiCVRP(maker, rewards[pays](count, customers, maker._map_max))

    def state_of(arrays):
        return types.State(
            nodes=types.Node(coordinates=arrays["coordinates"], demands=arrays["demands"].astype(np.int16)),
            windows=types.TimeWindow(start=arrays["start"], end=arrays["end"]),
            coeffs=types.PenalityCoeff(early=arrays["early"], late=arrays["late"]),
            vehicles=types.StateVehicle(
                local_times=arrays["local_time"], capacities=arrays["capacity"].astype(np.int16),
                positions=arrays["position"].astype(np.int16), distances=arrays["distance"],
                time_penalties=arrays["time_penalty"],
            ),
            order=arrays["order"],
            step_count=arrays["step_count"].astype(np.int16),
            action_mask=arrays["action_mask"] != 0,
            key=keys(n),
        )  # fmt: skip

    def joint(o):
        nodes = [o.nodes.coordinates.reshape(n, -1), o.nodes.demands, o.windows.start, o.windows.end]
        one = [*o.vehicles.coordinates.transpose(2, 0, 1), o.vehicles.local_times, o.vehicles.capacities]
        return np.concatenate([*nodes, o.coeffs.early, o.coeffs.late], 1), np.stack(one, 2)

    def seen(o):
        nodes, each = joint(o)
        order = [[v, *(u for u in range(count) if u != v)] for v in range(count)]
        return np.concatenate([np.concatenate([nodes, each[:, own].reshape(n, -1)], 1) for own in order], 1)

    near = {"positions": 0, "capacities": 0, "local_times": 2, "distances": 2, "time_penalties": 4}

    def also(ours, theirs, live):
        one, other = (
            {name: np.asarray(getattr(state.vehicles, name))[live] for name in near} for state in (ours, theirs)
        )
        for name, units in near.items():
            unit = EPS * (abs(other[name]) + (abs(other["local_times"]) if name == "time_penalties" else 0))
            assert (abs(one[name] - other[name]) <= units * unit).all(), name
        written = np.asarray(game.sim.global_state()).reshape(n, -1)[live]
        nodes, each = joint(jax.vmap(env._state_to_observation)(ours))
        np.testing.assert_array_equal(written, np.concatenate([nodes, each.reshape(n, -1)], 1)[live])

    config = {"num_customers": customers, "num_vehicles": count, "reward": pays}
    sim = simulator("MultiCVRP-v0", n, **Ours.parameters_of({**config, **options}))
    assert (sim.cfg.max_capacity, sim.cfg.customer_demand_max) == (maker._max_capacity, maker._customer_demand_max)
    game = Against(
        sim, env, state_of, seen, lambda o: o.action_mask.reshape(n, -1), chance=["vehicles"], also=also,
        rounding=4 * SUMS * EPS, seen_rounding=2 * EPS,
    )  # fmt: skip
    return game


@pytest.mark.parametrize("pays", ["dense", "sparse"])
@pytest.mark.parametrize(("customers", "count"), [(20, 2), (6, 3), (100, 5)])
def test_episodes(customers, count, pays):
    vehicles(1000, customers, count, pays).follow(100_000 if (customers, pays) == (20, "dense") else 20_000, 0.03)


@pytest.mark.parametrize("pays", ["dense", "sparse"])
def test_steps_from_drawn_states(pays):
    """Also the last steps, at home with few customers left or by the limit."""
    n, customers, count, rng = 20_000, 6, 3, np.random.default_rng(0)
    game = vehicles(n, customers, count, pays)
    demands = rng.integers(0, 21, (n, customers + 1)) * (rng.random((n, customers + 1)) < rng.random((n, 1)))
    demands[:, 0] = 0
    tenths = lambda high, *shape: (rng.integers(0, high + 1, shape) / 8).astype(np.float32)  # noqa: E731
    position = rng.integers(0, customers + 1, (n, count)) * (rng.random((n, 1)) < 0.5)
    np.put_along_axis(demands, position, 0, axis=1)
    game.from_states({
        "coordinates": tenths(80, n, customers + 1, 2), "demands": demands.astype(np.int32),
        "start": tenths(80, n, customers + 1), "end": tenths(80, n, customers + 1) + 20,
        "early": tenths(8, n, customers + 1), "late": tenths(8, n, customers + 1),
        "num_left": (demands > 0).sum(1).astype(np.int32), "position": position.astype(np.int32),
        "capacity": rng.integers(0, 21, (n, count)).astype(np.int32), "local_time": tenths(500, n, count),
        "distance": tenths(500, n, count), "time_penalty": tenths(500, n, count),
        "step_count": rng.integers(1, 2 * customers + 1, n).astype(np.int32),
    })  # fmt: skip


@pytest.mark.parametrize("numbers", list(SETTINGS))
def test_settings(numbers):
    maker = generator.UniformRandomGenerator(*numbers)
    options = Ours.parameters_of({"num_customers": numbers[0], "num_vehicles": numbers[1]})
    cfg = Ours.Config(**options)
    for name in NAMES:
        assert getattr(cfg, name) == getattr(maker, f"_{name}")
    assert (cfg.min_early_coef, cfg.max_early_coef) == maker._early_coef_rand
    assert (cfg.min_late_coef, cfg.max_late_coef) == maker._late_coef_rand
    assert cfg.time_window_length == maker._time_window_length


@pytest.mark.parametrize("numbers", [(20, 2), (150, 5)])
def test_generator(numbers):
    n = 5000
    theirs = resets(MultiCVRP(generator.UniformRandomGenerator(*numbers)), n)
    sim = simulator("MultiCVRP-v0", n, num_customers=numbers[0], num_vehicles=numbers[1])
    sim.reset(seed=0)
    ours = sim.arrays
    pairs = {
        "coordinates": theirs.nodes.coordinates, "start": theirs.windows.start, "end": theirs.windows.end,
        "early": theirs.coeffs.early, "late": theirs.coeffs.late, "demands": theirs.nodes.demands,
    }  # fmt: skip
    for name, others in pairs.items():
        for k in (0, numbers[0]):
            same_distribution(ours[name][:, k], np.asarray(others)[:, k])
    same_distribution(ours["demands"].sum(1), np.asarray(theirs.nodes.demands).sum(1))


def test_given_instances_of_unlike_size():
    """Small instances in large arrays are played as by an env of Jumanji of their size."""
    rng, size = np.random.default_rng(0), np.full(50, 6)
    shape = (50, 21)
    given = {
        "coordinates": rng.random((*shape, 2)), "demands": rng.integers(0, 10, shape), "size": size,
        "window_start": rng.random(shape), "window_end": 2 + rng.random(shape), "early_coef": rng.random(shape),
        "late_coef": rng.random(shape),
    }  # fmt: skip
    for name in ("demands", "early_coef", "late_coef"):
        given[name][:, 0] = 0
    options = {"num_vehicles": 2, "max_capacity": 20, "instance": np.arange(50).astype(np.float32)}
    large = simulator("MultiCVRP-v0", 50, num_customers=20, instances=given, **options)
    small = {name: array if name == "size" else array[:, :7] for name, array in given.items()}
    little = simulator("MultiCVRP-v0", 50, num_customers=6, instances=small, **options)
    for sim in (large, little):
        sim.reset(seed=0)
    for _ in range(14):
        actions = (rng.random((50, 2, 7)) * little.arrays["action_mask"]).argmax(2)
        for sim in (large, little):
            sim.arrays["action"][...] = actions.reshape(sim.arrays["action"].shape)
            sim.step()
        for name in ("reward", "terminated", "local_time", "position"):
            np.testing.assert_array_equal(large.arrays[name], little.arrays[name])
        assert not large.arrays["action_mask"][..., 7:].any()
    given["early_coef"][3, 0] = 1
    with pytest.raises(ValueError, match="instance 3: demand and coefficients of the depot"):
        simulator("MultiCVRP-v0", 50, num_customers=20, instances=given)
