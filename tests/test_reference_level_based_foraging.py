"""Level-Based Foraging against lbforaging 2.0.0, bit for bit.

Rewards are quotients of integers below 2^24: float32's is float64's, rounded once more (53 >= 2 * 24 + 2 bits).
"""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import lbforaging
import numpy as np
import pytest
from lbforaging.foraging.environment import ForagingEnv

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.level_based_foraging.level_based_foraging import LevelBasedForaging

pytestmark = pytest.mark.rotates

Arrays = dict[str, np.ndarray]
NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)

CONFIGS: dict[str, dict[str, Any]] = {
    "small": {"rows": 5, "cols": 5},
    "full sight": {"rows": 8, "cols": 8, "players": 4, "max_num_food": 3},
    "partial sight": {"rows": 8, "cols": 8, "players": 3, "max_num_food": 3, "sight": 2},
    "cooperative": {"rows": 6, "cols": 6, "players": 3, "max_num_food": 2, "sight": 3, "force_coop": True},
    "penalty": {"rows": 5, "cols": 5, "players": 3, "max_num_food": 2, "penalty": 0.1},
    "plain rewards": {"rows": 5, "cols": 5, "players": 3, "normalize_reward": False, "penalty": 0.3},
    "levels": {
        "rows": 6, "cols": 6, "players": 4, "max_num_food": 3,
        "min_player_level": 2, "max_player_level": 5, "min_food_level": 3, "max_food_level": 11,
    },
    "hidden levels": {"rows": 7, "cols": 7, "players": 4, "sight": 2, "observe_agent_levels": False},
    "wide": {"rows": 4, "cols": 11, "players": 4, "max_num_food": 3},
    "high, partial sight": {"rows": 9, "cols": 5, "players": 3, "max_num_food": 3, "sight": 2},
    "one player": {"rows": 3, "cols": 3, "players": 1, "max_num_food": 1},
    "crowd": {"rows": 5, "cols": 6, "players": 9, "max_num_food": 4, "sight": 3},
    "many": {"rows": 19, "cols": 19, "players": 9, "max_num_food": 9},
    "grid": {"rows": 8, "cols": 8, "players": 3, "max_num_food": 3, "grid_observation": True},
    "grid, partial sight": {
        "rows": 5, "cols": 7, "players": 6, "max_num_food": 3, "sight": 2, "grid_observation": True,
    },
    "grid, hidden levels": {
        "rows": 6, "cols": 6, "players": 3, "sight": 1, "grid_observation": True, "observe_agent_levels": False,
    },
}  # fmt: skip


class Original(ForagingEnv):
    """With a space that neither Gymnasium nor the env itself refuses: theirs has one dimension too few for maps, and
    rows and columns exchanged."""

    def _get_observation_space(self) -> gymnasium.Space[Any]:
        size = 3 if self._observe_agent_levels else 2
        shape = (
            (3, 2 * self.sight + 1, 2 * self.sight + 1)
            if self._grid_observation
            else (3 * self.max_num_food + size * len(self.players),)
        )
        return gymnasium.spaces.Box(-1.0, 100.0, shape, np.float32)


def original(kind: type[ForagingEnv] = Original, **config: Any) -> ForagingEnv:
    rows, cols = config.pop("rows"), config.pop("cols")
    defaults = {
        "players": 2, "max_num_food": 2, "min_player_level": 1, "max_player_level": 2, "min_food_level": 1,
        "max_food_level": None, "force_coop": False, "sight": max(rows, cols),
    }  # fmt: skip
    return kind(field_size=(rows, cols), max_episode_steps=50, **(defaults | config))


def simulator(num_envs: int, **config: Any) -> Simulator:
    s = Simulator(LevelBasedForaging, num_envs, device="cpu", autoreset_mode="disabled", **config)
    s.reset(seed=0)
    return s


def inject(env: ForagingEnv, state: Arrays, k: int, elapsed: int = 0) -> None:
    """Puts the original into the position of env k."""
    env.field = np.zeros(env.field_size, np.int32)
    for row, col, level in state["food"][k].tolist():
        if level:
            env.field[row, col] = level
    for a, player in enumerate(env.players):
        player.setup(tuple(state["position"][k, a].tolist()), np.int64(state["level"][k, a]), env.field_size)
    env._food_spawned = np.int64(state["food_spawned"][k])
    env.current_step = elapsed
    env._game_over = False
    env._gen_valid_moves()


def snapshot(s: Simulator) -> Arrays:
    return {name: s.arrays[name].copy() for name in ("position", "level", "food", "food_spawned")}


def equal(left: Any, right: Any) -> None:
    """As `np.testing.assert_array_equal`, which takes long even when there is nothing to say."""
    if not np.array_equal(left, right):
        np.testing.assert_array_equal(left, right)


def assert_same_state(s: Simulator, k: int, env: ForagingEnv) -> None:
    field = np.zeros(env.field_size, np.int32)
    for row, col, level in s.arrays["food"][k].tolist():
        if level:
            field[row, col] = level
    equal(field, env.field)
    equal(s.arrays["position"][k], [p.position for p in env.players])
    equal(s.arrays["level"][k], [p.level for p in env.players])


def assert_same_view(s: Simulator, k: int, env: ForagingEnv, observations: Any) -> None:
    want = np.stack(observations).reshape(env.n_agents, -1)
    assert s.arrays["observation"].dtype == want.dtype == np.float32
    equal(s.arrays["observation"][k], want)
    masks = np.zeros((env.n_agents, 6), np.int8)
    for mask, player in zip(masks, env.players, strict=True):
        mask[[action.value for action in env._valid_actions[player]]] = 1
    equal(s.arrays["action_mask"][k], masks)


def step_both(s: Simulator, k: int, env: ForagingEnv, actions: np.ndarray) -> bool:
    """Compares env k, which has made its step, with the original, which makes it here."""
    observations, rewards, done, truncated, _ = env.step(actions.tolist())
    assert_same_state(s, k, env)
    assert_same_view(s, k, env, observations)
    want = np.array(rewards, np.float32)
    equal(s.arrays["reward"][k].view(np.uint32), want.view(np.uint32))
    gone, late = env.field.sum() == 0, env.current_step == 50
    assert not truncated
    assert bool(done) == (gone or late)
    assert (s.arrays["terminated"][k] == gone).all()
    assert (s.arrays["truncated"][k] == late).all()
    return bool(done)


def busy_actions(rng: np.random.Generator, state: Arrays, masks: np.ndarray) -> np.ndarray:
    """Any of the six, but often loading where it is possible, and often towards another player's cell."""
    count, players = state["level"].shape
    actions = rng.integers(0, 6, (count, players))
    loads = (masks[:, :, LOAD] == 1) & (rng.random((count, players)) < 0.6)
    return np.where(loads, LOAD, actions).astype(np.int32)


def wide_states(rng: np.random.Generator, num_envs: int, config: dict[str, Any]) -> Arrays:
    """Foods as the rules allow them, some already gone; players anywhere else, many beside food or on one cell."""
    rows, cols = config["rows"], config["cols"]
    players, foods = config.get("players", 2), config.get("max_num_food", 2)
    highest = config.get("max_player_level", 2)
    cells = np.array(list(itertools.product(range(rows), range(cols))))
    inner = cells[(cells > 0).all(axis=1) & (cells < [rows - 1, cols - 1]).all(axis=1)]
    state = {
        "position": np.zeros((num_envs, players, 2), np.int8),
        "level": rng.integers(1, highest + 1, (num_envs, players)).astype(np.int8),
        "food": np.zeros((num_envs, foods, 3), np.int8),
        "food_spawned": np.zeros(num_envs, np.int32),
    }
    most = config.get("max_food_level") or min(3, players) * highest
    for k in range(num_envs):
        placed = np.zeros((0, 2), int)
        for cell in rng.permutation(inner):
            apart = np.abs(placed - cell)
            if len(placed) < foods and not ((apart.max(1) == 1) | (apart.sum(1) * (apart.min(1) == 0) == 2)).any():
                placed = np.concatenate([placed, cell[None]])
        placed = placed[np.lexsort(placed.T[::-1])]
        levels = rng.integers(1, most + 1, len(placed))
        state["food_spawned"][k] = levels.sum()
        levels *= rng.random(len(placed)) < 0.8
        state["food"][k, : len(placed)] = np.column_stack([placed, levels])
        eaten = placed[levels == 0]
        foods_left = placed[levels > 0]
        free = cells[~(cells[:, None] == foods_left[None]).all(axis=2).any(axis=1)]
        beside = free[(np.abs(free[:, None] - foods_left[None]).sum(axis=2) == 1).any(axis=1)]
        few = free[rng.integers(len(free), size=3)]
        for a in range(players):
            choice = [free, beside if len(beside) else free, few, eaten if len(eaten) else free][rng.integers(4)]
            state["position"][k, a] = choice[rng.integers(len(choice))]
    return state


@pytest.mark.parametrize("name", CONFIGS)
def test_one_step(name: str) -> None:
    config, count = CONFIGS[name], 200
    rng = np.random.default_rng(len(name))
    s, env = simulator(count, **config), original(**config)
    before = wide_states(rng, count, config)
    elapsed = np.where(np.arange(count) % 5 == 0, 49, 7).astype(np.int32)
    s.set_state(before | {"elapsed_steps": elapsed})
    actions = busy_actions(rng, before, s.arrays["action_mask"])
    masks = s.arrays["action_mask"].copy()
    s.arrays["action"][..., 0] = actions
    s.step()
    for k in range(count):
        inject(env, before, k, int(elapsed[k]))
        step_both(s, k, env, actions[k])
    illegal = np.take_along_axis(masks, actions[..., None], axis=2) == 0
    reward = s.arrays["reward"]
    loaded = (before["food"][..., 2] > s.arrays["food"][..., 2]).any(axis=1)
    assert illegal.any()
    assert (s.arrays["position"] != before["position"]).any()
    assert loaded.any()
    assert ((reward > 0).any(axis=1) == loaded).all()
    if config.get("players", 2) > 2:
        assert ((reward > 0).sum(axis=1) > 1).any(), "nobody loaded together"
    if "penalty" in config:
        assert (reward < 0).any()


@pytest.mark.parametrize(
    "cells",
    [[(2, 1), (2, 2), (2, 3)], [(2, 1), (2, 2), (1, 2)], [(2, 2), (2, 2), (2, 3)]],
    ids=["in a row", "around a corner", "two on one cell"],
)
def test_every_meeting_of_three(cells: list[tuple[int, int]]) -> None:
    """All actions of three neighbours, a food within their reach."""
    config = {"rows": 5, "cols": 5, "players": 3, "max_num_food": 1, "penalty": 0.1}
    actions = np.array(list(itertools.product(range(6), repeat=3)), np.int32)
    count = len(actions)
    s, env = simulator(count, **config), original(**config)
    before = {
        "position": np.full((count, 3, 2), cells, np.int8),
        "level": np.full((count, 3), [2, 1, 1], np.int8),
        "food": np.full((count, 1, 3), [3, 2, 3], np.int8),
        "food_spawned": np.full(count, 3, np.int32),
    }
    s.set_state(before)
    s.arrays["action"][..., 0] = actions
    s.step()
    for k in range(count):
        inject(env, before, k)
        step_both(s, k, env, actions[k])


@pytest.mark.parametrize("name", CONFIGS)
def test_whole_episodes(name: str) -> None:
    """From this game's starts; together 1,024 episodes."""
    config, count = CONFIGS[name], 64
    rng = np.random.default_rng(100 + len(name))
    s = simulator(count, **config)
    envs = [original(**config) for _ in range(count)]
    start = snapshot(s)
    for k, env in enumerate(envs):
        inject(env, start, k)
        assert_same_view(s, k, env, env.test_make_gym_obs())
    playing = list(range(count))
    for _ in range(50):
        actions = busy_actions(rng, snapshot(s), s.arrays["action_mask"])
        s.arrays["action"][..., 0] = actions
        s.step()
        playing = [k for k in playing if not step_both(s, k, envs[k], actions[k])]
    assert not playing


def test_players_can_come_to_share_a_cell() -> None:
    """The bug of the original: who is pushed back meets who follows."""
    config = {"rows": 5, "cols": 5, "players": 3, "max_num_food": 1}
    s, env = simulator(1, **config), original(**config)
    before = {
        "position": np.array([[(0, 0), (0, 1), (0, 3)]], np.int8),
        "level": np.ones((1, 3), np.int8),
        "food": np.array([[(3, 3, 3)]], np.int8),
        "food_spawned": np.array([3], np.int32),
    }
    s.set_state(before)
    s.arrays["action"][0, :, 0] = EAST, EAST, WEST
    s.step()
    inject(env, before, 0)
    step_both(s, 0, env, np.array([EAST, EAST, WEST]))
    assert s.arrays["position"][0].tolist() == [[0, 1], [0, 1], [0, 3]]


def test_players_are_seen_farther_than_food_near_the_top() -> None:
    config = {"rows": 8, "cols": 8, "max_num_food": 2, "sight": 2}
    s, env = simulator(1, **config), original(**config)
    state = {
        "position": np.array([[(0, 0), (4, 4)]], np.int8),
        "level": np.ones((1, 2), np.int8),
        "food": np.array([[(2, 2, 1), (3, 4, 2)]], np.int8),
        "food_spawned": np.array([3], np.int32),
    }
    s.set_state(state)
    inject(env, state, 0)
    assert_same_view(s, 0, env, env.test_make_gym_obs())
    assert s.arrays["observation"][0, 0].tolist() == [2, 2, 1, -1, -1, 0, 0, 0, 1, 4, 4, 1]


# ---- the beginning of an episode: random, so distributions are compared ----


def starts(config: dict[str, Any], count: int) -> tuple[Arrays, Arrays]:
    """Of this game, and of as many originals that are as good as new: players' old places would stay blocked."""
    state = snapshot(simulator(count, **config))
    theirs = {name: np.zeros_like(array) for name, array in state.items()}
    env = original(**config)
    env.reset(seed=0)
    for k in range(count):
        for player in env.players:
            player.position = None
        env.reset()
        theirs["position"][k] = [p.position for p in env.players]
        theirs["level"][k] = [p.level for p in env.players]
        found = np.argwhere(env.field)
        theirs["food"][k, : len(found)] = [(r, c, env.field[r, c]) for r, c in found]
        theirs["food_spawned"][k] = env._food_spawned
    return state, theirs


def assert_same_distribution(left: np.ndarray, right: np.ndarray) -> None:
    """Chi-square of two samples of rows, as many of each: its mean is the degrees of freedom n and its variance 2 n."""
    _, which = np.unique(np.concatenate([left, right]), axis=0, return_inverse=True)
    a, b = (np.bincount(x, minlength=which.max() + 1) for x in np.split(which.ravel(), 2))
    often = a + b >= 16
    a, b = (np.append(x[often], x[~often].sum()) for x in (a, b))
    a, b = a[a + b > 0], b[a + b > 0]
    freedom = len(a) - 1
    assert ((a - b) ** 2 / (a + b)).sum() < freedom + 5 * np.sqrt(2 * max(freedom, 1))


START_CONFIGS: dict[str, dict[str, Any]] = {
    "small": {"rows": 4, "cols": 4, "players": 1, "max_num_food": 1},
    "crowd": {"rows": 5, "cols": 6, "players": 9, "max_num_food": 2},
    "cooperative": {"rows": 5, "cols": 6, "players": 4, "max_num_food": 1, "force_coop": True, "max_player_level": 3},
    "levels": {
        "rows": 5, "cols": 5, "players": 2, "max_num_food": 2,
        "min_player_level": 2, "max_player_level": 4, "min_food_level": 2, "max_food_level": 5,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", START_CONFIGS)
def test_starts_are_distributed_alike(name: str) -> None:
    ours, theirs = starts(START_CONFIGS[name], 2000)
    for field in ours:
        rows = [x[field].reshape(2000, -1) for x in (ours, theirs)]
        for left, right in zip(*(x.T[:, :, None] for x in rows), strict=True):
            assert_same_distribution(left, right)
    levels = [np.column_stack([np.sort(x["level"], axis=1), x["food"][:, 0, 2]]) for x in (ours, theirs)]
    assert_same_distribution(*levels)
    assert_same_distribution(*(x["food"][:, :, :2].reshape(2000, -1) for x in (ours, theirs)))
    cells = [np.column_stack([x["position"][:, 0], x["food"][:, 0, :2]]) for x in (ours, theirs)]
    assert_same_distribution(*cells)


@pytest.mark.parametrize("name", [*CONFIGS, *START_CONFIGS])
def test_starts_follow_the_rules(name: str) -> None:
    config, count = (CONFIGS | START_CONFIGS)[name], 200
    state = snapshot(simulator(count, **config))
    food, position = state["food"].astype(int), state["position"].astype(int)
    there = food[..., 2] > 0
    for k in range(count):
        cells = food[k, there[k], :2]
        assert len(cells) or config["rows"] * config["cols"] < 16
        assert (cells > 0).all()
        assert (cells < [config["rows"] - 1, config["cols"] - 1]).all()
        everything = np.concatenate([cells, position[k]])
        assert len(np.unique(everything, axis=0)) == len(everything)
        for a, b in itertools.combinations(cells, 2):
            assert ((a - b) ** 2).sum() >= 5
        np.testing.assert_array_equal(np.lexsort(cells.T[::-1]), np.arange(len(cells)))
        assert not food[k, ~there[k]].any()
        lowest = np.sort(state["level"][k])[:3].sum()
        assert food[k, :, 2].max() <= (config.get("max_food_level") or lowest)
        if config.get("force_coop"):
            assert (food[k, there[k], 2] == lowest).all()
    np.testing.assert_array_equal(state["food_spawned"], food[..., 2].sum(axis=1))


# ---- ids and spaces ----


def registered() -> dict[str, dict[str, Any]]:
    """All ids of lbforaging with the arguments of the env, those that it registers on demand included."""
    found = {name: spec.kwargs for name, spec in gymnasium.registry.items() if name.startswith("Foraging-")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lbforaging, "register", lambda id, entry_point, kwargs: found.update({id: kwargs}))
        lbforaging.register_grid_envs()
    return found


def test_every_id_of_lbforaging() -> None:
    ids = registered()
    assert len(ids) == 15 * 8 * 4 * 2 * 2 + sum(range(5, 20)) * 8 * 4 * 2
    defaults = LevelBasedForaging.Config()
    for name, arguments in ids.items():
        want = dict(arguments)
        assert want.pop("max_episode_steps") == LevelBasedForaging.max_episode_steps
        want["rows"], want["cols"] = want.pop("field_size")
        want["max_food_level"] = want["max_food_level"] or 0
        want.setdefault("penalty", 0.0)
        got = vars(defaults) | LevelBasedForaging.config_of(name)
        assert {k: got[k] for k in want} == want, name
        rest = {k: v for k, v in got.items() if k not in want}
        assert rest == {"normalize_reward": True, "observe_agent_levels": True}


def test_options_of_ids_that_are_not_registered() -> None:
    assert LevelBasedForaging.config_of("Foraging-8x8-2p-2f-coop-ind-pen-v3") == LevelBasedForaging.config_of(
        "Foraging-8x8-2p-2f-v3"
    ) | {"force_coop": True, "max_food_level": 1, "penalty": 0.1}
    assert LevelBasedForaging.config_of("Foraging-3s-6x9-2p-2f-v3")["cols"] == 9
    for name in ("Foraging-8x8-2p-2f-v2", "Foraging-8x8-2p-2f", "Foraging-8x8-2p-2f-pen-coop-v3", "Foraging-v3"):
        with pytest.raises(ValueError, match="is no id of lbforaging"):
            LevelBasedForaging.config_of(name)


@pytest.mark.parametrize("name", ["Foraging-2s-5x5-2p-1f-coop-v3", "Foraging-8x8-2p-3f-v3", "Foraging-7x7-5p-2f-v3"])
def test_spaces(name: str) -> None:
    env = gymnasium.make(name).unwrapped
    s = simulator(1, **LevelBasedForaging.config_of(name))
    assert (s.layout.observation_spaces["player"],) * env.n_agents == tuple(env.observation_space)
    assert (s.layout.action_spaces["player"],) * env.n_agents == tuple(env.action_space)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rows": 3, "cols": 3, "players": 10}, "10 players do not fit"),
        ({"min_player_level": 3}, "min_player_level must be at most"),
        ({"min_food_level": 3}, "min_food_level must be at most 2"),
        ({"min_food_level": 3, "max_food_level": 2}, "min_food_level must be at most 2"),
    ],
)
def test_options_that_do_not_fit(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpuzoo.make("LevelBasedForaging-v3", 1, **config)
