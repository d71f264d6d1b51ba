"""RobotWarehouse against rware 2.0.0, bit for bit.

The original gets our states and our draws. Its ties between queues (see the docstring of the game) are decided by the
order in which NetworkX goes through a part of a graph: that of the nodes if it is at least half of the graph, that
of a set if not. `by_nodes` makes it the former always; `test_ties` counts what that changes.

Normalised coordinates are quotients of small integers: float32's is float64's, rounded once more (53 >= 2 * 24 + 2
bits).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import gymnasium
import networkx as nx
import numpy as np
import pytest
import rware
from rware.warehouse import Direction, ImageLayer, ObservationType, RewardType, Warehouse

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.robot_warehouse.robot_warehouse import RobotWarehouse, floor_plan

pytestmark = [
    pytest.mark.rotates,
    pytest.mark.filterwarnings("ignore:.*Box (low|high)'s precision lowered"),  # of the original's spaces
]

Arrays = dict[str, np.ndarray]
NOOP, FORWARD, LEFT, RIGHT, TOGGLE_LOAD = range(5)
SHELF, REQUESTED, ROBOT, DIRECTION, LOADED, HIGHWAY, WALL, GOAL = 1, 2, 4, 8, 32, 64, 128, 64 | 128
STATE = ("cells", "cell", "has_delivered", "message", "inactive_steps", "seed", "episode")

HALL = ".....\n.xxx.\n.xgx.\n.....\n.xxx.\n"
ROOM = "x.g\n..x\nxx."
LANE = "..........\nxxxxgxxxxx\n"
ISLES = """
.......
.x.x.x.
...g...
.x.x.x.
g.....g
.x.x.x.
.......
"""
EVERY_LAYER = "agent_load,shelves,accessible,requests,agent_direction,goals,agents"

CONFIGS: dict[str, dict[str, Any]] = {
    "tiny": {},
    "tiny, four": {"n_agents": 4, "request_queue_size": 8, "reward_type": "global"},
    "small": {"shelf_rows": 2, "n_agents": 6, "request_queue_size": 6, "normalised_coordinates": True},
    "medium, many": {"shelf_rows": 2, "shelf_columns": 5, "n_agents": 19, "request_queue_size": 19},
    "low": {"column_height": 1, "n_agents": 3, "request_queue_size": 1, "reward_type": "two_stage"},
    "hall": {"layout": HALL, "n_agents": 5, "request_queue_size": 3, "reward_type": "two_stage"},
    "crowd": {"layout": HALL, "n_agents": 17, "request_queue_size": 4, "reward_type": "two_stage", "sensor_range": 2},
    "room": {"layout": ROOM, "n_agents": 3, "request_queue_size": 2, "max_inactivity_steps": 4, "sensor_range": 4},
    "full room": {"layout": ROOM, "n_agents": 8, "request_queue_size": 3, "reward_type": "global", "sensor_range": 0},
    "lane": {"layout": LANE, "n_agents": 7, "request_queue_size": 3, "max_inactivity_steps": 7},
    "messages": {"layout": ISLES, "n_agents": 4, "request_queue_size": 3, "msg_bits": 3, "reward_type": "two_stage"},
    "messages, one": {"layout": ROOM, "n_agents": 1, "request_queue_size": 3, "msg_bits": 1},
    "image": {"layout": ISLES, "n_agents": 6, "request_queue_size": 3, "observation_type": "image"},
    "image, every layer": {
        "layout": HALL, "n_agents": 8, "request_queue_size": 3, "observation_type": "image", "sensor_range": 2,
        "image_observation_layers": EVERY_LAYER, "transposed_layers": True, "reward_type": "two_stage",
    },
    "image, straight layers": {
        "layout": ISLES, "n_agents": 9, "request_queue_size": 3, "observation_type": "image", "sensor_range": 3,
        "image_observation_layers": EVERY_LAYER, "image_observation_directional": False,
    },
    "image dictionary": {
        "n_agents": 5, "request_queue_size": 3, "observation_type": "image_dict", "msg_bits": 2, "layout": LANE,
    },
    "image dictionary, every layer": {
        "layout": ROOM, "n_agents": 4, "request_queue_size": 2, "observation_type": "image_dict",
        "reward_type": "global", "image_observation_layers": EVERY_LAYER,
    },
}  # fmt: skip


class Straight(Warehouse):
    """Square warehouses with the two layers of images as they are meant."""

    def _make_img_obs(self, agent: Any) -> np.ndarray:
        if agent.id == 1:
            super()._make_img_obs(agent)
            for k, layer in enumerate(self.image_observation_layers):
                if layer in (ImageLayer.AGENT_DIRECTION, ImageLayer.AGENT_LOAD):
                    self.global_layers[k] = self.global_layers[k].T.copy()
        name, agent.id = agent.id, 0
        image = super()._make_img_obs(agent)
        agent.id = name
        return image


class Draws:
    """Our numbers for the original: those of env k in this step."""

    def __init__(self, s: Simulator, k: int, elapsed: int) -> None:
        self.key, self.words = int(s.arrays["seed"][k]), (0, elapsed + 1, int(s.arrays["episode"][k]))
        self.count = 0

    def choice(self, shelves: list[Any]) -> Any:
        block = philox((self.count // 4, *self.words), self.key)
        number = block[self.count % 4] * len(shelves) >> 32
        self.count += 1
        return sorted(shelves, key=lambda shelf: (shelf.y, shelf.x))[number]


def philox(words: tuple[int, ...], key: int) -> list[int]:
    """Philox4x32-10."""
    x, y, z, w = words
    low, k0, k1 = 2**32 - 1, key % 2**32, key >> 32
    for _ in range(10):
        a, b = x * 0xD2511F53, z * 0xCD9E8D57
        x, y, z, w = (b >> 32) ^ y ^ k0, b & low, (a >> 32) ^ w ^ k1, a & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return [x, y, z, w]


@pytest.fixture
def by_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nx.filters, "show_nodes", lambda nodes: set(nodes).__contains__)


def original(max_steps: int = 500, names: bool = False, **config: Any) -> Warehouse:
    cfg = RobotWarehouse.Config(**config)
    layers = [ImageLayer[name.strip().upper()] for name in cfg.image_observation_layers.split(",")]
    own = "image_observation_layers", "observation_type", "reward_type", "layout", "max_inactivity_steps"
    rest = {name: value for name, value in vars(cfg).items() if name not in (*own, "transposed_layers")}
    kind = Warehouse if cfg.transposed_layers or cfg.observation_type == "flattened" else Straight
    env = kind(
        **rest,
        layout=cfg.layout or None,
        max_steps=max_steps,
        max_inactivity_steps=cfg.max_inactivity_steps or None,
        reward_type=RewardType[cfg.reward_type.upper()],
        observation_type=ObservationType.DICT if names else ObservationType[cfg.observation_type.upper()],
        image_observation_layers=layers,
    )
    if kind is Straight and "agent" in cfg.image_observation_layers.replace("agents", ""):
        assert env.grid_size[0] == env.grid_size[1]
    env.seed(0)
    if cfg.transposed_layers:
        assert env.grid_size[0] == env.grid_size[1], "the original's error"
    env.reset()
    return env


def simulator(num_envs: int, max_steps: int = 500, **config: Any) -> Simulator:
    s = Simulator(
        RobotWarehouse, num_envs, device="cpu", autoreset_mode="disabled", max_episode_steps=max_steps, **config
    )
    s.reset(seed=3)
    return s


def snapshot(s: Simulator) -> Arrays:
    """The state, and where robots are, where they look, and whether they are loaded, of shape (envs, robots)."""
    state = {name: s.arrays[name].copy() for name in STATE}
    y, x = np.divmod(state["cell"], state["cells"].shape[-1])
    codes = inside(s, state["cells"])[np.arange(s.num_envs)[:, None], y, x]
    return state | {"x": x, "y": y, "direction": codes >> 3 & 3, "carrying": (codes & LOADED > 0).astype(np.int8)}


def set_state(s: Simulator, state: Arrays, **more: np.ndarray) -> None:
    """`cells` have the robots' directions already."""
    cells, here = state["cells"].copy(), (np.arange(s.num_envs)[:, None], state["y"], state["x"])
    inside(s, cells)[here] |= (LOADED * state["carrying"]).astype(np.uint8)
    names = ("has_delivered", "message", "inactive_steps")
    cell = state["y"] * cells.shape[-1] + state["x"]
    s.set_state({"cells": cells, "cell": cell} | {name: state[name] for name in names} | more)


def inside(s: Simulator, cells: np.ndarray) -> np.ndarray:
    """Without the margin."""
    margin = max(1, s.cfg.sensor_range)
    return cells[..., margin:-margin, margin:-margin]


def inject(env: Warehouse, s: Simulator, state: Arrays, k: int, elapsed: int = 0) -> None:
    """Puts the original into the position of env k; which shelf is which does not matter."""
    cells = inside(s, state["cells"][k])
    places = np.argwhere(cells & SHELF).tolist()
    shelves = {}
    for shelf, (y, x) in zip(env.shelfs, places, strict=True):
        shelf.x, shelf.y = x, y
        shelves[y, x] = shelf
    for a, agent in enumerate(env.agents):
        agent.x, agent.y = int(state["x"][k, a]), int(state["y"][k, a])
        agent.dir = Direction(int(state["direction"][k, a]))
        agent.carrying_shelf = shelves[agent.y, agent.x] if state["carrying"][k, a] else None
        agent.has_delivered = bool(state["has_delivered"][k, a])
        agent.message[:] = state["message"][k, a, : env.msg_bits]
    env.request_queue = [shelves[y, x] for y, x in np.argwhere(cells & REQUESTED).tolist()]
    env._cur_inactive_steps, env._cur_steps = int(state["inactive_steps"][k]), elapsed
    env._recalc_grid()


def equal(left: Any, right: Any) -> None:
    """As `np.testing.assert_array_equal`, which takes long even when there is nothing to say."""
    if not np.array_equal(left, right):
        np.testing.assert_array_equal(left, right)


def assert_same_state(s: Simulator, k: int, env: Warehouse) -> None:
    cells, state = np.where(env.highways, HIGHWAY, 0), snapshot(s)
    for x, y in env.goals:
        cells[y, x] |= GOAL
    for shelf in env.shelfs:
        assert not cells[shelf.y, shelf.x] & SHELF
        cells[shelf.y, shelf.x] |= SHELF | (REQUESTED if shelf in env.request_queue else 0)
    for a, agent in enumerate(env.agents):
        assert not cells[agent.y, agent.x] & ROBOT
        cells[agent.y, agent.x] |= ROBOT | DIRECTION * agent.dir.value
        shelf = agent.carrying_shelf
        assert shelf is None or (shelf.x, shelf.y) == (agent.x, agent.y)
        got = [state[name][k, a] for name in ("x", "y", "direction", "carrying", "has_delivered")]
        assert got == [agent.x, agent.y, agent.dir.value, shelf is not None, agent.has_delivered], a
        cells[agent.y, agent.x] |= LOADED if shelf else 0
        equal(s.arrays["message"][k, a, : env.msg_bits], agent.message)
    equal(s.arrays["cells"][k], np.pad(cells, max(1, env.sensor_range), constant_values=WALL))
    assert s.arrays["inactive_steps"][k] == env._cur_inactive_steps


def assert_same_view(s: Simulator, k: int, env: Warehouse, observations: Any) -> None:
    if isinstance(observations[0], dict):
        pairs = zip(env.observation_space, observations, strict=True)
        observations = [gymnasium.spaces.flatten(space, observation) for space, observation in pairs]
    want = np.stack(observations).reshape(env.n_agents, -1)
    assert s.arrays["observation"].dtype == want.dtype == np.float32
    equal(s.arrays["observation"][k], want)


def step_both(s: Simulator, k: int, env: Warehouse, actions: np.ndarray) -> bool:
    """Compares env k, which has made its step, with the original, which makes it here."""
    env._np_random = Draws(s, k, env._cur_steps)
    observations, rewards, done, truncated, _ = env.step(actions.tolist() if env.msg_bits else actions[:, 0].tolist())
    assert_same_state(s, k, env)
    equal(s.arrays["reward"][k], np.array(rewards, np.float32))
    assert_same_view(s, k, env, observations)
    gone = env.max_inactivity_steps is not None and env._cur_inactive_steps >= env.max_inactivity_steps
    late = env._cur_steps == env.max_steps
    assert not truncated
    assert bool(done) == (gone or late)
    assert (s.arrays["terminated"][k] == gone).all()
    assert (s.arrays["truncated"][k] == late).all()
    return bool(done)


def wide_states(rng: np.random.Generator, s: Simulator) -> Arrays:
    """Any positions, often crowded, of robots in any direction; many loaded, shelves on any of their places."""
    cfg, plan = s.cfg, floor_plan(s.cfg).astype(int)
    (rows, cols), n = plan.shape, cfg.n_agents
    state = {name: np.zeros_like(array) for name, array in snapshot(s).items() if name not in ("seed", "episode")}
    y, x = np.indices(plan.shape).reshape(2, -1)
    places, goals = np.flatnonzero(plan & SHELF), np.flatnonzero(plan == GOAL)
    for k in range(s.num_envs):
        centre = [rng.integers(rows * cols), rng.choice(goals)][rng.integers(2)]
        far = np.abs(y - y[centre]) + np.abs(x - x[centre]) + rng.random(rows * cols)
        crowd = np.argsort(far)[: n + int(rng.integers(3, 8))]
        cells = rng.permutation(crowd)[:n] if rng.random() < 0.7 else rng.permutation(rows * cols)[:n]
        carrying = rng.permutation(n)[: min(len(places), int(rng.integers(0, n + 1)))]
        loaded = cells[carrying]
        free = rng.permutation(np.setdiff1d(places, loaded))[: len(places) - len(loaded)]
        shelves = np.concatenate([rng.permutation(loaded), rng.permutation(free)])
        likely = rng.random(len(shelves)) * np.where(np.arange(len(shelves)) < len(loaded), 1, rng.choice([1, 9]))
        requested = shelves[np.argsort(likely)[: cfg.request_queue_size]]
        flat = plan.ravel() & ~SHELF
        flat[shelves] |= SHELF
        flat[requested] |= REQUESTED
        direction = rng.integers(4, size=n)
        if rng.random() < 0.5:
            direction[:] = rng.choice(rng.integers(4, size=2), n)
        flat[cells] |= ROBOT | DIRECTION * direction
        inside(s, state["cells"][k])[:] = flat.reshape(plan.shape)
        state["x"][k], state["y"][k], state["direction"][k] = x[cells], y[cells], direction
        state["carrying"][k, carrying] = 1
        if cfg.reward_type == "two_stage":
            state["has_delivered"][k] = rng.random(n) < 0.5
        state["inactive_steps"][k] = rng.integers(max(1, cfg.max_inactivity_steps))
        state["message"][k, :, : cfg.msg_bits] = rng.integers(2, size=(n, cfg.msg_bits))
    outside = np.ones_like(state["cells"], bool)
    inside(s, outside)[:] = False
    state["cells"][outside] = WALL
    return state


def busy_actions(rng: np.random.Generator, s: Simulator, state: Arrays, random: float = 0.3) -> np.ndarray:
    """Robots head for requested shelves, with them for goals, with others for free places; or do anything."""
    plan = floor_plan(s.cfg).astype(int)
    cells, goals, width = inside(s, state["cells"]), np.argwhere(plan == GOAL), s.layout.action_size
    actions = rng.integers(0, [5] + [2] * (width - 1), (*state["x"].shape, width))
    for k, a in np.argwhere(rng.random(state["x"].shape) >= random):
        here = np.array([state["y"][k, a], state["x"][k, a]])
        shelf, loaded = cells[k][tuple(here)] & (SHELF | REQUESTED), state["carrying"][k, a]
        if loaded and shelf & REQUESTED:
            wanted = goals
        elif loaded:
            wanted = np.argwhere((plan & SHELF > 0) & ((cells[k] & SHELF == 0) | (cells[k] & ROBOT > 0)))
        else:
            wanted = np.argwhere((cells[k] & REQUESTED > 0) & ((plan & SHELF > 0) | (cells[k] & ROBOT == 0)))
        if not len(wanted):
            continue
        way = wanted[np.argmin(np.abs(wanted - here).sum(1))] - here
        if not way.any():
            actions[k, a, 0] = TOGGLE_LOAD
            continue
        down = abs(way[0]) > abs(way[1]) or (abs(way[0]) == abs(way[1]) and rng.random() < 0.5)
        heading = (1 if way[0] > 0 else 0) if down else (3 if way[1] > 0 else 2)
        ahead = state["direction"][k, a] == heading
        actions[k, a, 0] = FORWARD if ahead else rng.choice([LEFT, RIGHT])
    return actions.astype(np.int32)


@pytest.mark.usefixtures("by_nodes")
@pytest.mark.parametrize("name", CONFIGS)
def test_one_step(name: str) -> None:
    config, count = CONFIGS[name], 40 if name == "medium, many" else 150
    rng = np.random.default_rng(len(name))
    s, env = simulator(count, **config), original(**config)
    before = wide_states(rng, s)
    elapsed = np.where(np.arange(count) % 5 == 0, 499, 7).astype(np.int32)
    set_state(s, before, elapsed_steps=elapsed)
    actions = busy_actions(rng, s, before, random=1.0)
    likely = rng.choice([FORWARD, TOGGLE_LOAD], actions.shape[:2], p=[0.7, 0.3])
    actions[..., 0] = np.where(rng.random(actions.shape[:2]) < 0.8, likely, actions[..., 0])
    s.arrays["action"][:] = actions
    s.step()
    for k in range(count):
        inject(env, s, before, k, int(elapsed[k]))
        step_both(s, k, env, actions[k])
    after, forward = snapshot(s) | {"reward": s.arrays["reward"]}, actions[..., 0] == FORWARD
    assert (after["carrying"] > before["carrying"]).any()
    assert (after["carrying"] < before["carrying"]).any()
    assert (after["reward"] > 0).any()
    if s.cfg.n_agents > 2:
        moved = (after["x"] != before["x"]) | (after["y"] != before["y"])
        step_x, step_y = np.array([[0, 0, -1, 1], [-1, 1, 0, 0]])[:, before["direction"]]
        wanted, here = (
            s_y * 1000 + s_x for s_y, s_x in ((before["y"] + step_y, before["x"] + step_x), (before["y"], before["x"]))
        )
        behind = (forward[:, :, None] & (wanted[:, :, None] == here[:, None])).any(1)
        taken = (wanted[:, :, None] == here[:, None]).any(2)
        rival = (forward[:, None] & (wanted[:, :, None] == wanted[:, None])).sum(2) > 1
        assert (moved & behind).any(), "a robot with another one in its queue"
        assert (forward & ~moved & ~taken & rival).any(), "a robot that lets another one pass to a free cell"
    if s.cfg.reward_type == "two_stage":
        assert ((after["has_delivered"] < before["has_delivered"]) & (after["reward"] == 0.5)).any()


@pytest.mark.usefixtures("by_nodes")
@pytest.mark.parametrize("name", CONFIGS)
def test_whole_episodes(name: str) -> None:
    """From this game's starts; together 620 short episodes."""
    config, count, steps = CONFIGS[name], 10 if name in ("medium, many", "crowd") else 40, 24
    rng = np.random.default_rng(100 + len(name))
    s = simulator(count, steps, **config)
    envs = [original(steps, **config) for _ in range(count)]
    start = snapshot(s)
    for k, env in enumerate(envs):
        inject(env, s, start, k)
        assert_same_view(s, k, env, [env._make_obs(agent) for agent in env.agents])
    playing = list(range(count))
    for _ in range(steps):
        actions = busy_actions(rng, s, snapshot(s))
        s.arrays["action"][:] = actions
        s.step()
        playing = [k for k in playing if not step_both(s, k, envs[k], actions[k])]
    assert not playing


@pytest.mark.usefixtures("by_nodes")
def test_a_long_episode() -> None:
    config = CONFIGS["messages"]
    rng = np.random.default_rng(0)
    s, env = simulator(1, **config), original(**config)
    inject(env, s, snapshot(s), 0)
    total = 0.0
    for step in range(500):
        s.arrays["action"][:] = actions = busy_actions(rng, s, snapshot(s), random=0.1)
        s.step()
        assert step_both(s, 0, env, actions[0]) == (step == 499)
        total += s.arrays["reward"][0].sum()
    assert total > 3


# ---- conflicts ----

PLANS = {"field": ".....\n.....\n.....\n.....\nxxxxg", "shelves": "xxxxx\nxxxxx\nxxxxx\nxxxxg"}


def meetings(rng: np.random.Generator, s: Simulator, robots: list[tuple[int, int]]) -> tuple[Arrays, np.ndarray]:
    """Robots on these cells, in all directions and in any order; nearly all go forward."""
    state = {name: array for name, array in snapshot(s).items() if name not in ("seed", "episode")}
    plan, count, n = floor_plan(s.cfg).astype(int), s.num_envs, len(robots)
    state["direction"] = rng.integers(4, size=(count, n))
    inside(s, state["cells"])[:] = plan
    for k in range(count):
        places = rng.permutation(robots)
        state["x"][k], state["y"][k] = places.T
        inside(s, state["cells"][k])[tuple(places.T[::-1])] |= ROBOT + DIRECTION * state["direction"][k].astype(
            np.uint8
        )
    state["carrying"][:] = inside(s, state["cells"])[np.arange(count)[:, None], state["y"], state["x"]] & SHELF
    state["carrying"] &= rng.random((count, n)) < 0.5
    actions = np.where(rng.random((count, n)) < 0.93, FORWARD, rng.integers(0, 5, (count, n)))
    return state, actions[..., None].astype(np.int32)


@pytest.mark.usefixtures("by_nodes")
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    "robots",
    [
        [(1, 1), (2, 1), (1, 2), (2, 2)],
        [(0, 1), (1, 1), (3, 1), (4, 1), (2, 0), (2, 2), (2, 3)],
    ],
    ids=["square", "around a cell"],
)
def test_meetings(robots: list[tuple[int, int]], plan: str) -> None:
    count = 500
    config = {"layout": PLANS[plan], "n_agents": len(robots), "request_queue_size": 0}
    rng = np.random.default_rng(len(robots))
    s, env = simulator(count, **config), original(**config)
    before, actions = meetings(rng, s, robots)
    set_state(s, before)
    s.arrays["action"][:] = actions
    s.step()
    for k in range(count):
        inject(env, s, before, k)
        step_both(s, k, env, actions[k])


def after_a_step_forward(s: Simulator, robots: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Where robots end up that begin here (x, y, direction); the rest of them stays in the last rows."""
    state = {name: array for name, array in snapshot(s).items() if name not in ("seed", "episode")}
    inside(s, state["cells"])[0] = floor_plan(s.cfg)
    parked = [(k, 3, 0) for k in range(s.cfg.n_agents - len(robots))]
    for a, (x, y, direction) in enumerate([*robots, *parked]):
        state["x"][0, a], state["y"][0, a], state["direction"][0, a] = x, y, direction
        inside(s, state["cells"])[0, y, x] |= ROBOT + DIRECTION * direction
    set_state(s, state)
    s.arrays["action"][0, :, 0] = [FORWARD] * len(robots) + [NOOP] * len(parked)
    s.step()
    after = snapshot(s)
    return [(int(after["x"][0, a]), int(after["y"][0, a])) for a in range(len(robots))]


def test_circles_turn_but_two_do_not_swap() -> None:
    up, down, left, right = range(4)
    s = simulator(1, layout=PLANS["field"], n_agents=7, request_queue_size=0)
    four = [(1, 1, right), (2, 1, down), (2, 2, left), (1, 2, up)]
    assert after_a_step_forward(s, four) == [(2, 1), (2, 2), (1, 2), (1, 1)]
    assert after_a_step_forward(s, [*four, (0, 1, right)]) == [(2, 1), (2, 2), (1, 2), (1, 1), (0, 1)]
    assert after_a_step_forward(s, four[:2] + [(2, 2, up)]) == [(1, 1), (2, 1), (2, 2)]
    assert after_a_step_forward(s, [(1, 1, right), (3, 1, left)]) == [(2, 1), (3, 1)]
    assert after_a_step_forward(s, [(1, 1, right), (3, 1, left), (4, 1, left)]) == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("robots", [3, 4, 9])
def test_ties(robots: int) -> None:
    """Up to three robots, NetworkX goes through the nodes in their order anyway. Among more, it chooses another one of
    queues that are equally long; seldom even in these crowds."""
    config, count = {"layout": HALL, "n_agents": robots, "request_queue_size": 2}, 200
    rng = np.random.default_rng(robots)
    s, env = simulator(count, **config), original(**config)
    before = wide_states(rng, s)
    actions = np.where(rng.random((count, robots, 1)) < 0.8, FORWARD, NOOP).astype(np.int32)
    set_state(s, before)
    s.arrays["action"][:] = actions
    s.step()
    others, after = 0, snapshot(s)
    for k in range(count):
        inject(env, s, before, k)
        env._np_random = Draws(s, k, 0)
        env.step(actions[k, :, 0].tolist())
        same = all((agent.x, agent.y) == (after["x"][k, a], after["y"][k, a]) for a, agent in enumerate(env.agents))
        others += not same
    assert others == 0 if robots <= 3 else 0 < others < 0.25 * count


# ---- the beginning of an episode: random, so distributions are compared ----


def test_starts_are_distributed_alike() -> None:
    config, count = CONFIGS["room"], 1500
    s, env = simulator(count, **config), original(**config)
    env.seed(1)
    state, (ours, theirs) = snapshot(s), np.zeros((2, count, 8), int)
    for k in range(count):
        env.reset()
        requested = sorted(3 * shelf.y + shelf.x for shelf in env.request_queue)
        theirs[k] = [x for agent in env.agents[:2] for x in (agent.x, agent.y, agent.dir.value)] + requested
        requested = np.flatnonzero(inside(s, s.arrays["cells"][k]) & REQUESTED)
        robots = [state[name][k, :2] for name in ("x", "y", "direction")]
        ours[k] = [*np.stack(robots, axis=1).ravel(), *requested]
    for columns in ([0, 1, 3, 4], [2, 5], [6, 7], [0, 1, 6]):
        assert_same_distribution(ours[:, columns], theirs[:, columns])


def assert_same_distribution(left: np.ndarray, right: np.ndarray) -> None:
    """Chi-square of two samples of rows, as many of each: its mean is the degrees of freedom n and its variance 2 n."""
    _, which = np.unique(np.concatenate([left, right]), axis=0, return_inverse=True)
    a, b = (np.bincount(x, minlength=which.max() + 1) for x in np.split(which.ravel(), 2))
    freedom = len(a) - 1
    assert ((a - b) ** 2 / (a + b)).sum() < freedom + 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("name", CONFIGS)
def test_starts_follow_the_rules(name: str) -> None:
    s = simulator(50, **CONFIGS[name])
    plan, cells = floor_plan(s.cfg), inside(s, s.arrays["cells"])
    equal(cells & (SHELF | HIGHWAY | GOAL), np.broadcast_to(plan, cells.shape))
    equal(((cells & REQUESTED) > 0).sum((1, 2)), np.full(50, s.cfg.request_queue_size))
    assert ((cells & REQUESTED == 0) | (cells & SHELF > 0)).all()
    codes = cells.reshape(50, -1)
    assert (codes & LOADED == 0).all()
    y, x = np.divmod(s.arrays["cell"], s.arrays["cells"].shape[-1])
    assert (cells[np.arange(50)[:, None], y, x] & ROBOT > 0).all()
    equal(((cells & ROBOT) > 0).sum((1, 2)), np.full(50, s.cfg.n_agents))


# ---- spaces, observations as dictionaries, maps and ids ----


@pytest.mark.parametrize("name", CONFIGS)
def test_spaces(name: str) -> None:
    s, env = simulator(1, **CONFIGS[name]), original(**CONFIGS[name])
    theirs = env.observation_space[0]
    if isinstance(theirs, gymnasium.spaces.Dict):
        theirs = gymnasium.spaces.flatten_space(theirs)
    ours = s.layout.observation_spaces["agent"]
    assert ours == theirs
    assert ours.contains(s.arrays["observation"][0, 0].reshape(ours.shape))
    assert s.layout.action_spaces["agent"] == env.action_space[0]
    assert len(env.action_space) == s.cfg.n_agents


@pytest.mark.parametrize("name", ["tiny", "messages", "small"])
def test_dictionaries_flatten_to_the_same(name: str) -> None:
    """But for normalised coordinates, which they round down."""
    config = CONFIGS[name]
    s = simulator(30, **config)
    state = wide_states(np.random.default_rng(0), s)
    set_state(s, state)
    env = original(names=True, **config)
    for k in range(30):
        inject(env, s, state, k)
        pairs = zip(env.observation_space, (env._make_obs(agent) for agent in env.agents), strict=True)
        want = np.stack([gymnasium.spaces.flatten(space, observation) for space, observation in pairs])
        ours = s.arrays["observation"][k].copy()
        if s.cfg.normalised_coordinates:
            ours[:, :2] = np.floor(ours[:, :2])
        equal(ours, want)


@pytest.mark.parametrize(
    "config",
    [
        {"shelf_rows": r, "shelf_columns": c, "column_height": h}
        for r, c, h in itertools.product((1, 2, 4), (3, 9), (1, 8))
    ],
    ids=str,
)
def test_floor_plans(config: dict[str, int]) -> None:
    plan = floor_plan(RobotWarehouse.Config(**config))
    env = original(**config, request_queue_size=1)
    equal((plan & HIGHWAY) > 0, env.highways > 0)
    equal([(x, y) for y, x in np.argwhere(plan == GOAL).tolist()], env.goals)


def test_a_layout_in_one_line() -> None:
    lines = floor_plan(RobotWarehouse.Config(layout="  ..XX\n x.g x\n"))
    equal(lines, floor_plan(RobotWarehouse.Config(layout="..xx/x.Gx")))
    equal(lines, [[HIGHWAY, HIGHWAY, SHELF, SHELF], [SHELF, HIGHWAY, HIGHWAY | GOAL, SHELF]])


def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids of rware and a part of the four million that it registers on demand: some of every number."""
    for name, spec in gymnasium.registry.items():
        if name.startswith("rware-"):
            yield name, spec.kwargs
    found: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(rware, "register", lambda id, entry_point, kwargs: found.update({id: kwargs}))
    monkeypatch.setattr(
        rware, "range", lambda *bounds: sorted({*range(*bounds)[::6], range(*bounds)[-1]}), raising=False
    )
    rware.image_registration()
    rware.full_registration()
    yield from found.items()


def test_ids_of_rware(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults, count = RobotWarehouse.Config(), 0
    for name, arguments in registered(monkeypatch):
        want = dict(arguments)
        assert want.pop("max_steps") == RobotWarehouse.max_episode_steps
        want["max_inactivity_steps"] = want["max_inactivity_steps"] or 0
        want["reward_type"] = want["reward_type"].name.lower()
        want["observation_type"] = want.get("observation_type", ObservationType.FLATTENED).name.lower()
        got = vars(defaults) | RobotWarehouse.config_of(name)
        assert {k: got[k] for k in want} == want, name
        rest = {k: v for k, v in got.items() if k not in want and k != "image_observation_directional"}
        assert rest == {k: getattr(defaults, k) for k in rest}
        count += 1
    assert count > 10000


def test_an_id_makes_the_same_env() -> None:
    name = "rware-small-3ag-easy-v2"
    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    cfg = RobotWarehouse.Config(**RobotWarehouse.config_of(name))
    assert isinstance(env, Warehouse)
    assert (env.n_agents, env.request_queue_size, env.grid_size) == (3, 6, floor_plan(cfg).shape)
    assert RobotWarehouse().observation_space(cfg, "agent") == env.observation_space[0]


@pytest.mark.parametrize(
    "name", ["rware-tiny-2ag", "rware-huge-2ag-v2", "rware-tiny-2ag-2req-indiv-v2", "rware-2x3-8h-2ag-v2"]
)
def test_what_is_no_id(name: str) -> None:
    with pytest.raises(ValueError, match="is no id of rware"):
        RobotWarehouse.config_of(name)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"shelf_columns": 2}, "must be odd"),
        ({"layout": "x.g/x"}, "the same length"),
        ({"layout": "x.g/x.a"}, "consists of"),
        ({"layout": "x../x.."}, "must have a goal"),
        ({"layout": "x" * 128 + "/" + "g" * 128}, "at most 127"),
        ({"layout": "x.g", "n_agents": 4}, "4 robots do not fit on 3 cells"),
        ({"request_queue_size": 32}, "less than the number of shelves, 32"),
        ({"layout": "xxg", "normalised_coordinates": True, "request_queue_size": 1}, "two rows"),
        ({"image_observation_layers": "shelves,roof"}, "image_observation_layers are"),
        ({"image_observation_layers": "shelves,shelves"}, "image_observation_layers are"),
    ],
)
def test_options_that_do_not_fit(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpuzoo.make("RobotWarehouse-v0", 1, **config)
