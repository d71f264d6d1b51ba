"""Level-Based Foraging against Jumanji's.

Rewards are sums over foods of quotients, which XLA may add up in another order: one unit in the last place for each.
"""

from __future__ import annotations

import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import LevelBasedForaging
from jumanji.environments.routing.lbf.generator import RandomGenerator
from jumanji.environments.routing.lbf.types import Agent, Food, State

pytestmark = [
    pytest.mark.rotates,
    pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning"),  # in Jumanji's grids
]
SIZES = {"side": 8, "fov": 8, "agents": 2, "foods": 2, "top": 2, "coop": True}


def foraging(n: int, *, grid=False, normalize=True, penalty=0.0, limit=100, **sizes) -> Against:
    size = {**SIZES, **sizes}
    side, fov, agents, foods, top, coop = size.values()
    env = LevelBasedForaging(
        RandomGenerator(side, agents, foods, fov, top, coop), None, limit, grid, normalize, penalty
    )

    def state_of(arrays):
        ids = lambda count: np.tile(np.arange(count), (n, 1))  # noqa: E731
        level, food = (arrays[name].astype(np.int32) for name in ("level", "food"))
        position = arrays["position"].astype(np.int32)
        loading = arrays["action"].reshape(n, agents) == 5
        return State(
            agents=Agent(id=ids(agents), position=position, level=level, loading=loading),
            food_items=Food(id=ids(foods), position=food[..., :2], level=food[..., 2], eaten=arrays["eaten"] != 0),
            step_count=arrays["elapsed_steps"],
            key=keys(n),
        )

    def also(ours, theirs, live):
        np.testing.assert_array_equal(ours.agents.position[live], np.asarray(theirs.agents.position)[live])
        percent = game.sim.env.infos(game.sim.cfg, game.sim.arrays)["percent_eaten"]
        np.testing.assert_allclose(percent[live], np.asarray(theirs.food_items.eaten).mean(1)[live] * 100, rtol=1e-6)

    sim = simulator(
        "LevelBasedForaging-jumanji-v0", n, grid_size=side, fov=fov, num_agents=agents, num_food=foods,
        max_agent_level=top, force_coop=coop, grid_observation=grid, normalize_reward=normalize, penalty=penalty,
        max_episode_steps=limit,
    )  # fmt: skip
    # `loading` of an illegal action is True there, and has no effect
    game = Against(
        sim, env, state_of, lambda o: o.agents_view.reshape(n, -1), lambda o: o.action_mask.reshape(n, -1),
        lambda a: a.reshape(n, agents),
        chance=["agents"], also=also, rounding=foods * EPS,
    )  # fmt: skip
    return game


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"side": 6, "fov": 2, "agents": 4, "foods": 2, "top": 3, "coop": False, "penalty": 0.25, "limit": 40},
        {"side": 8, "fov": 3, "agents": 5, "foods": 4, "coop": False, "normalize": False, "penalty": 0.5},
        {"side": 7, "fov": 2, "agents": 3, "foods": 3, "coop": False, "grid": True},
        {"side": 5, "fov": 5, "agents": 1, "foods": 1, "coop": False, "grid": True, "limit": 20},
    ],
)
def test_episodes(options):
    foraging(1000, **options).follow(20_000 if options else 100_000)


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_steps_from_drawn_states(grid, normalize):
    """Crowded fields, where many loads happen, also of two foods at a time."""
    n, side, agents, foods, rng = 20_000, 5, 6, 4, np.random.default_rng(0)
    cells = rng.permuted(np.tile(np.arange(side * side), (n, 1)), axis=1)[:, : agents + foods]
    places = np.stack(np.divmod(cells, side), 2)
    food = np.concatenate([places[:, agents:], rng.integers(1, 7, (n, foods, 1))], 2)
    options = {"side": 8, "foods": foods, "agents": agents, "fov": 2, "grid": grid, "normalize": normalize}
    foraging(n, penalty=0.5, **options).from_states({
        "position": places[:, :agents].astype(np.int8), "level": rng.integers(1, 4, (n, agents)).astype(np.int8),
        "food": food.astype(np.int8), "eaten": rng.random((n, foods)) < 0.3,
    })  # fmt: skip


@pytest.mark.parametrize("sizes", [{}, {"side": 9, "agents": 5, "foods": 4, "top": 3, "coop": False}])
def test_generator(sizes):
    n, size = 10_000, {**SIZES, **sizes}
    side, fov, agents, foods, top, coop = size.values()
    theirs = resets(LevelBasedForaging(RandomGenerator(side, agents, foods, fov, top, coop)), n)
    options = {"grid_size": side, "fov": fov, "num_agents": agents, "num_food": foods, "force_coop": coop}
    sim = simulator("LevelBasedForaging-jumanji-v0", n, max_agent_level=top, **options)
    sim.reset(seed=0)
    ours, others = sim.arrays, theirs.agents
    for k in {0, foods - 1}:
        for axis in range(2):
            same_distribution(ours["food"][:, k, axis], theirs.food_items.position[:, k, axis])
        same_distribution(ours["food"][:, k, 2], theirs.food_items.level[:, k])
    apart = lambda food: abs(food[:, 0] - food[:, 1]).sum(1)  # noqa: E731
    same_distribution(apart(ours["food"][..., :2].astype(int)), apart(np.asarray(theirs.food_items.position)))
    for a in {0, agents - 1}:
        for axis in range(2):
            same_distribution(ours["position"][:, a, axis], others.position[:, a, axis])
        same_distribution(ours["level"][:, a], others.level[:, a])
    rows = ours["position"][..., :1, None].astype(int)
    assert not (rows == ours["food"][:, None, None, :, :2].reshape(n, 1, 1, -1)).any()
    sim = simulator("LevelBasedForaging-jumanji-v0", n, agents_avoid_rows=False)
    sim.reset(seed=0)
    place = (sim.arrays["position"] * [8, 1]).sum(2)
    assert (place[:, 0] != place[:, 1]).all()
    assert not (place[..., None] == (sim.arrays["food"][..., :2] * [8, 1]).sum(2)[:, None]).any()
    same_distribution(place[:, 1] // 8, np.repeat(np.arange(8), n // 8))
