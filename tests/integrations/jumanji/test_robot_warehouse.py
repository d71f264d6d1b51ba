"""The robot warehouse against Jumanji's. It requests other shelves than ours, so it observes our states."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, resets, same_distribution, simulator
from jumanji.environments import RobotWarehouse
from jumanji.environments.routing.robot_warehouse.generator import RandomGenerator
from jumanji.environments.routing.robot_warehouse.types import Agent, Observation, Position, Shelf, State
from jumanji.environments.routing.robot_warehouse.utils import compute_action_mask

pytestmark = pytest.mark.rotates
SIZES = {
    "shelf_rows": 2, "shelf_columns": 3, "column_height": 8, "num_agents": 4, "sensor_range": 1,
    "request_queue_size": 8,
}  # fmt: skip


def warehouse(n: int, limit: int = 500, **sizes) -> Against:
    size = {**SIZES, **sizes}
    env = RobotWarehouse(RandomGenerator(**size), limit)
    rows, columns = env.grid_size
    agents, shelves, queue = size["num_agents"], len(env.shelf_ids), size["request_queue_size"]

    def state_of(arrays):
        where = np.full((n, shelves + 1), 0)
        there, cells = np.nonzero(arrays["shelves"])
        where[there, arrays["shelves"][there, cells]] = cells
        requested = arrays["requested"] != 0
        position = lambda cell: Position(*np.divmod(cell.astype(np.int32), columns))  # noqa: E731
        return State(
            grid=np.stack([arrays["shelves"], arrays["robots"]], 1).reshape(n, 2, rows, columns).astype(np.int32),
            agents=Agent(
                position=position(arrays["place"]),
                direction=arrays["direction"].astype(np.int32),
                is_carrying=(arrays["carrying"] != 0).astype(np.int32),
            ),
            shelves=Shelf(position=position(where[:, 1:]), is_requested=requested.astype(np.float32)),
            request_queue=np.argsort(~requested, axis=1, kind="stable")[:, :queue].astype(np.int32),
            step_count=arrays["elapsed_steps"],
            action_mask=arrays["action_mask"] != 0,
            key=keys(n),
        )

    def observe(state):
        return Observation(
            agents_view=env._make_observations(state.grid, state.agents, state.shelves),
            action_mask=compute_action_mask(state.grid, state.agents),
            step_count=state.step_count,
        )

    def also(ours, theirs, live):
        assert (ours.shelves.is_requested.sum(1) == queue).all()
        same = (np.sort(ours.request_queue, 1) == np.sort(np.asarray(theirs.request_queue), 1)).all(1)
        delivered = game.sim.arrays["reward"][:, 0] > 0
        assert same[live & ~delivered].all()
        mine, other = ours.shelves.is_requested, np.asarray(theirs.shelves.is_requested)
        assert (abs(mine - other).sum(1) <= 2 * game.sim.arrays["reward"][:, 0])[live].all()
        game.deliveries += int(game.sim.arrays["reward"][live, 0].sum())
        game.collisions += int(game.sim.arrays["terminated"][live, 0].sum())

    sim = simulator("RobotWarehouse-jumanji-v0", n, max_episode_steps=limit, **size)
    game = Against(
        sim, env, state_of, lambda o: o.agents_view.reshape(n, -1), lambda o: o.action_mask.reshape(n, -1),
        lambda a: a.reshape(n, agents),
        observe=observe, chance=["shelves", "request_queue"], also=also,
    )  # fmt: skip
    game.deliveries = game.collisions = 0
    return game


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"shelf_rows": 1, "num_agents": 10, "sensor_range": 2, "request_queue_size": 3, "limit": 60},
        {"shelf_columns": 1, "column_height": 2, "num_agents": 2, "sensor_range": 0, "request_queue_size": 1},
    ],
)
def test_episodes(sizes):
    game = warehouse(1000, **sizes)
    game.follow(20_000 if sizes else 100_000)
    assert game.collisions > 100


@pytest.mark.parametrize("sensor_range", [1, 0, 2])
def test_steps_from_drawn_states(sensor_range):
    """Small crowded warehouses: shelves anywhere, many of them loaded, some on the goals."""
    n, rng = 20_000, np.random.default_rng(0)
    sizes = {"shelf_rows": 1, "shelf_columns": 3, "column_height": 3, "num_agents": 6, "request_queue_size": 7}
    game = warehouse(n, sensor_range=sensor_range, **sizes)
    cells, shelves = game.sim.env.constants(game.sim.cfg)["CELLS"], game.sim.env.constants(game.sim.cfg)["SHELVES"]
    place = rng.permuted(np.tile(np.arange(cells), (n, 1)), axis=1)[:, :6]
    robots = np.zeros((n, cells), np.uint8)
    np.put_along_axis(robots, place, np.tile(np.arange(1, 7), (n, 1)), axis=1)
    home = rng.permuted(np.tile(np.arange(cells), (n, 1)), axis=1)[:, :shelves]
    shelf = np.zeros((n, cells), np.int16)
    np.put_along_axis(shelf, home, np.tile(np.arange(1, shelves + 1), (n, 1)), axis=1)
    requested = rng.permuted(np.tile(np.arange(shelves) < 7, (n, 1)), axis=1)
    on_shelf = np.take_along_axis(shelf, place, 1) > 0
    states = {
        "robots": robots, "shelves": shelf, "requested": requested, "place": place.astype(np.int32),
        "direction": rng.integers(0, 4, (n, 6)).astype(np.int8), "carrying": on_shelf & (rng.random((n, 6)) < 0.7),
    }  # fmt: skip
    game.sim.reset(seed=1)
    game.sim.set_state(states)
    actions = game.some_illegal(rng, 0.1)
    game.sim.arrays["action"][...] = actions.reshape(game.sim.arrays["action"].shape)
    game.sim.step()
    second = np.array(game.sim.arrays["shelves"])[:, np.asarray(game.env.goals)[1] @ [1, game.env.grid_size[1]]]
    new = (second > 0) & ~requested[np.arange(n), second - 1]  # it counts if the first goal's delivery requests it
    sure = ~new | (game.sim.arrays["reward"][:, 0] == 0)
    game.sim.reset(seed=1)
    game.sim.set_state(states)
    game.step(actions, sure)
    assert game.deliveries > 1000
    assert game.collisions > 1000


def test_beginning():
    n = 5000
    theirs, sim = resets(RobotWarehouse(), n), simulator("RobotWarehouse-jumanji-v0", n)
    sim.reset(seed=0)
    ours = sim.arrays
    np.testing.assert_array_equal(ours["shelves"][0], np.asarray(theirs.grid)[0, 0].ravel())
    for a in (0, 3):
        place = theirs.agents.position
        same_distribution(ours["place"][:, a], np.asarray(place.x)[:, a] * 10 + np.asarray(place.y)[:, a])
        same_distribution(ours["direction"][:, a], theirs.agents.direction[:, a])
    assert ((ours["requested"] != 0).sum(1) == 8).all()
    same_distribution(np.nonzero(ours["requested"])[1], theirs.request_queue)


def test_next_request_is_uniform():
    """A shelf on a goal is delivered; the next one is any of those that were not requested."""
    n = 20_000
    sim = simulator("RobotWarehouse-jumanji-v0", n, shelf_rows=1, column_height=2, request_queue_size=2)
    sim.reset(seed=0)
    constants = sim.env.constants(sim.cfg)
    shelves = np.array(sim.arrays["shelves"])
    goal = (constants["ROWS"] - 1) * constants["COLUMNS"] + constants["COLUMNS"] // 2
    shelves[shelves == 4] = 0
    shelves[:, goal] = 4
    requested = np.zeros((n, constants["SHELVES"]), bool)
    requested[:, [1, 3]] = True
    sim.set_state({"shelves": shelves, "requested": requested})
    sim.arrays["action"][...] = 0
    sim.step()
    assert (sim.arrays["reward"] == 1).all()
    after = sim.arrays["requested"] != 0
    assert after[:, 1].all()
    assert not after[:, 3].any()
    others = np.flatnonzero(~requested[0])
    count = after[:, others].sum(0)
    assert (abs(count - n / len(others)) < 5 * np.sqrt(n / len(others))).all()


def test_doing_nothing_may_keep_the_load():
    for keeps in (False, True):
        sim = simulator("RobotWarehouse-jumanji-v0", 1, num_agents=1, noop_keeps_load=keeps)
        sim.reset(seed=0)
        cell = int(np.flatnonzero(sim.arrays["shelves"][0])[0])
        robots = np.zeros_like(sim.arrays["robots"])
        robots[0, cell] = 1
        sim.set_state({"place": np.array([[cell]], np.int32), "robots": robots, "carrying": np.array([[True]])})
        sim.arrays["action"][...] = 0
        sim.step()
        assert bool(sim.arrays["carrying"][0, 0]) == keeps
