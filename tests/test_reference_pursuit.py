"""Pursuit against PettingZoo's sisl.pursuit_v5, through its parallel interface.

The original gets our evaders' moves, and after that all integers are equal. Rewards are of float64 there. Where
parameters are multiples of powers of two and so is the number of pursuers, both are exact. Elsewhere ours rounds the
mean, the product and the quotient of the tags, the mean and the product of the catches, and two sums: with U = 2^-24 at
most 4 U (tags + catches + urgency), far below what one tag more would give.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from pettingzoo.sisl.pursuit.pursuit import parallel_env
from pettingzoo.sisl.pursuit.utils import agent_utils

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.pursuit.pursuit import Pursuit

pytestmark = pytest.mark.rotates

U = 2.0**-24
Arrays = dict[str, np.ndarray]
MOVES = np.array([[-1, 0], [1, 0], [0, 1], [0, -1], [0, 0]])
EXACT = {"tag_reward": 0.0078125, "catch_reward": 5.0, "urgency_reward": -0.125}

CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "exact": {**EXACT},
    "own rewards": {**EXACT, "shared_reward": False, "n_pursuers": 4},
    "own rewards, not exact": {"shared_reward": False, "n_pursuers": 5, "n_evaders": 7, "x_size": 9, "y_size": 7},
    "on the cell": {**EXACT, "surround": False, "shared_reward": False, "x_size": 6, "y_size": 7},
    "three on the cell": {"surround": False, "n_catch": 3, "n_pursuers": 6, "x_size": 5, "y_size": 5, "n_evaders": 6},
    "at once": {"surround": False, "n_catch": 0, "n_pursuers": 2, "n_evaders": 3, "x_size": 7, "y_size": 7},
    "frozen": {**EXACT, "freeze_evaders": True, "x_size": 8, "y_size": 12, "n_evaders": 12},
    "even range": {"obs_range": 6, "n_pursuers": 3, "n_evaders": 5, "x_size": 10, "y_size": 8},
    "no sight": {"obs_range": 1, "n_pursuers": 4, "n_evaders": 4, "x_size": 10, "y_size": 8},
    "two cells": {"obs_range": 2, "n_pursuers": 4, "n_evaders": 4, "x_size": 6, "y_size": 8},
    "wide range": {"obs_range": 15, "n_pursuers": 2, "n_evaders": 5, "x_size": 6, "y_size": 9},
    "building at the border": {**EXACT, "n_pursuers": 4, "n_evaders": 2, "x_size": 3, "y_size": 4},
    "two columns": {**EXACT, "n_pursuers": 2, "n_evaders": 1, "x_size": 2, "y_size": 5, "shared_reward": False},
    "one column": {**EXACT, "n_pursuers": 2, "n_evaders": 2, "x_size": 1, "y_size": 8},
    "alone": {"n_pursuers": 1, "n_evaders": 1, "surround": False, "n_catch": 1, "x_size": 5, "y_size": 5},
}  # fmt: skip


def simulator(num_envs: int, **config: Any) -> Simulator:
    s = Simulator(Pursuit, num_envs, device="cpu", autoreset_mode="disabled", **config)
    s.reset(seed=0)
    return s


CORNER = mock.patch.object(agent_utils, "feasible_position_exp", return_value=(0, 0))


class Fed:
    """An evaders' controller that replays moves."""

    def __init__(self) -> None:
        self.moves: list[int] = []

    def act(self, state: Any) -> int:
        return self.moves.pop(0)


class Original:
    """PettingZoo's, put into positions and stepped with our evaders' moves. All begin in a corner: by itself it would
    search for ever where a board is crowded."""

    def __init__(self, limit: int = 500, **config: Any) -> None:
        rewards = {"tag_reward": 0.01, "catch_reward": 5.0, "urgency_reward": -0.1}
        for name in rewards:
            rewards[name] = float(np.float32(config.get(name, rewards[name])))
        with CORNER:
            self.env = parallel_env(max_cycles=limit, **(config | rewards))
        self.reset()
        self.game = self.env.unwrapped.env
        self.fed = Fed()
        if not config.get("freeze_evaders"):
            self.game.evader_controller = self.fed

    def reset(self) -> None:
        with CORNER:
            self.env.reset(seed=0)
        self.evaders = self.env.unwrapped.env.evader_layer.allies[:]

    def inject(self, state: Arrays, k: int) -> None:
        if not self.env.agents:
            self.reset()
        game = self.game
        for a, pursuer in enumerate(game.pursuer_layer.allies):
            pursuer.set_position(state["pursuer_x"][k, a], state["pursuer_y"][k, a])
        left = state["evader_x"][k] >= 0
        game.evaders_gone = ~left
        game.evader_layer.allies = [evader for i, evader in enumerate(self.evaders) if left[i]]
        game.evader_layer.nagents = int(left.sum())
        for i, evader in enumerate(self.evaders):
            if left[i]:
                evader.set_position(state["evader_x"][k, i], state["evader_y"][k, i])
        game.model_state[1] = game.pursuer_layer.get_state_matrix()
        game.model_state[2] = game.evader_layer.get_state_matrix()
        game.frames = int(state["elapsed_steps"][k])

    def step(self, actions: np.ndarray, moves: np.ndarray) -> tuple[Any, ...]:
        self.fed.moves = moves.tolist()
        out = self.env.step({f"pursuer_{a}": int(action) for a, action in enumerate(actions)})
        return tuple([values[f"pursuer_{a}"] for a in range(len(actions))] for values in out[:4])

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        return tuple(
            np.array([layer.get_position(i) for i in range(layer.n_agents())]).reshape(-1, 2)
            for layer in (self.game.pursuer_layer, self.game.evader_layer)
        )  # type: ignore[return-value]


def check_step(s: Simulator, k: int, original: Original, actions: np.ndarray) -> bool:
    """One env's step, which ours has made, made by the original; returns whether rewards had to be equal."""
    cfg, n = s.program.cfg, actions.shape[0]
    left = s.arrays["evader_x"][k] >= 0
    moves = s.arrays["way"][k][left]
    observations, rewards, terminations, truncations = original.step(actions, moves)
    pursuers, evaders = original.places()
    for name, places in (("pursuer", pursuers), ("evader", evaders)):
        ours = np.stack([s.arrays[f"{name}_x"][k], s.arrays[f"{name}_y"][k]], 1)
        np.testing.assert_array_equal(ours if name == "pursuer" else ours[left], places)
    np.testing.assert_array_equal(s.arrays["observation"][k].reshape(np.shape(observations)), observations)
    assert s.arrays["terminated"][k].tolist() == terminations
    assert s.arrays["truncated"][k].tolist() == truncations
    ours = s.arrays["reward"][k].astype(np.float64)
    exact = cfg.tag_reward == EXACT["tag_reward"] and n in (1, 2, 4, 8)
    if exact:
        np.testing.assert_array_equal(ours, rewards)
        return True
    tags = cfg.tag_reward * s.arrays["tags"][k].max() / n
    allowed = 4 * U * (tags + cfg.catch_reward + abs(cfg.urgency_reward))
    assert allowed < cfg.tag_reward / n**2 / 4
    np.testing.assert_allclose(ours, rewards, rtol=0, atol=allowed)
    return False


def open_cells(s: Simulator) -> np.ndarray:
    known, cfg = s.env.constants(s.program.cfg), s.program.cfg
    walls = s.env.tables(cfg)["empty_board"].reshape(-1, known["BOARD_COLUMNS"], 3)[..., 0]
    margin = known["MARGIN"]
    return np.argwhere(walls[margin:-margin, margin:-margin].T == 0)  # x, y


def wide_states(rng: np.random.Generator, s: Simulator) -> tuple[Arrays, np.ndarray]:
    """Anybody anywhere, in heaps too, with evaders that some moves will surround; some are gone."""
    cfg, count = s.program.cfg, s.num_envs
    cells = open_cells(s)
    free = {tuple(cell) for cell in cells.tolist()}
    n, m = cfg.n_pursuers, cfg.n_evaders
    few = rng.integers(1, len(cells) + 1, count)
    after = np.stack([rng.permutation(cells)[:k][rng.integers(0, k, n)] for k in few])
    evaders = np.stack([rng.permutation(cells)[:k][rng.integers(0, k, m)] for k in few])
    for k in range(count):
        for i in range(rng.integers(0, 3)):
            i = min(i, m - 1)
            around = [x for x in (evaders[k, i] + MOVES[:4]).tolist() if tuple(x) in free]
            around = around if cfg.surround else [evaders[k, i].tolist()] * max(cfg.n_catch, 1)
            who = rng.permutation(n)[: len(around)]
            after[k, who] = around[: len(who)]
    actions = rng.integers(0, 5, (count, n)).astype(np.int32)
    before = after - MOVES[actions]
    inside = np.array([[tuple(x) in free for x in row] for row in before.tolist()])
    before = np.where(inside[..., None], before, after)
    actions = np.where(inside | (rng.random((count, n)) < 0.5), actions, 4).astype(np.int32)
    gone = rng.random((count, m)) < rng.choice([0.0, 0.3, 0.9], (count, 1))
    gone[:, 0] = False
    evaders[gone] = -1
    state = {
        "pursuer_x": before[..., 0], "pursuer_y": before[..., 1], "evader_x": evaders[..., 0],
        "evader_y": evaders[..., 1], "elapsed_steps": rng.choice([0, 7, 498, 499], count),
    }  # fmt: skip
    return {name: array.astype(np.int32) for name, array in state.items()}, actions


@pytest.mark.parametrize("name", CONFIGS)
def test_one_step(name: str) -> None:
    """60 wide states of each configuration."""
    config = CONFIGS[name]
    s = simulator(60, **config)
    original = Original(**config)
    rng = np.random.default_rng(list(CONFIGS).index(name))
    state, actions = wide_states(rng, s)
    s.set_state(state)
    s.arrays["action"][...] = actions[..., None]
    s.step()
    exact = 0
    for k in range(s.num_envs):
        original.inject(state, k)
        exact += check_step(s, k, original, actions[k])
    caught = int((s.arrays["caught"] != 0).sum())
    assert caught == 0 if name == "one column" else caught > 5
    assert exact in (0, s.num_envs)
    assert s.arrays["tags"].any()


@pytest.mark.parametrize(
    ("episodes", "limit", "config"),
    [
        (2, 150, {}),
        (1, 500, {**EXACT, "n_pursuers": 4, "n_evaders": 6, "x_size": 10, "y_size": 9}),
        (40, 40, {**EXACT, "surround": False, "n_catch": 1, "n_pursuers": 4, "n_evaders": 3, "x_size": 7, "y_size": 6}),
        (20, 30, {"n_pursuers": 6, "n_evaders": 2, "x_size": 4, "y_size": 4, "obs_range": 4}),
    ],
)
def test_whole_episodes(episodes: int, limit: int, config: dict[str, Any]) -> None:
    """Random play from reset to the end; the original starts where ours does and then runs by itself: 63 episodes."""
    s = simulator(episodes, max_episode_steps=limit, **config)
    start = s.state()
    start["elapsed_steps"] = np.zeros(episodes, int)
    rng = np.random.default_rng(1)
    originals = [Original(limit, **config) for _ in range(episodes)]
    for k, original in enumerate(originals):
        original.inject(start, k)
        seen = [original.env.aec_env.observe(f"pursuer_{a}") for a in range(s.program.cfg.n_pursuers)]
        np.testing.assert_array_equal(s.arrays["observation"][k].reshape(np.shape(seen)), seen)
    running = np.ones(episodes, bool)
    for _ in range(limit):
        actions = rng.integers(0, 5, s.arrays["action"].shape).astype(np.int32)
        s.arrays["action"][...] = actions
        s.step()
        for k in np.flatnonzero(running):
            check_step(s, k, originals[k], actions[k, :, 0])
            assert bool(originals[k].env.agents) == (not s.arrays["ended"][k])
        running &= s.arrays["ended"] == 0
    assert not running.any()
    if limit == 40:
        assert s.arrays["terminated"].any()


def test_all_caught_in_the_last_step_is_truncation_alone() -> None:
    config: dict[str, Any] = {
        "surround": False,
        "n_catch": 1,
        "n_pursuers": 1,
        "n_evaders": 1,
        "x_size": 5,
        "y_size": 5,
    }
    s = simulator(2, max_episode_steps=10, **config)
    zeros = np.zeros((2, 1), int)
    state = {name: zeros for name in ("pursuer_x", "pursuer_y", "evader_x", "evader_y")}
    s.set_state(state | {"elapsed_steps": np.array([8, 9])})
    s.arrays["action"][...] = 4
    s.step()
    assert s.arrays["terminated"][:, 0].tolist() == [True, False]
    assert s.arrays["truncated"][:, 0].tolist() == [False, True]


@pytest.mark.parametrize("window", [1.0, 0.5])
def test_start(window: float) -> None:
    """Where 500 episodes of the original begin: as often in each region of 4 x 4 cells, apart, in a window."""
    count = 500
    s = simulator(6000, constraint_window=window, n_evaders=3, n_pursuers=3)
    original = parallel_env(constraint_window=window, n_evaders=3, n_pursuers=3).unwrapped.env
    free = {tuple(cell) for cell in open_cells(s).tolist()}
    for name, n in (("pursuer", 3), ("evader", 3)):
        places = np.stack([s.arrays[f"{name}_x"], s.arrays[f"{name}_y"]], 2)
        reached = {tuple(cell) for cell in places.reshape(-1, 2).tolist()}
        assert reached == (free if window == 1.0 else {(x, y) for x, y in free if max(x, y) < 15})
        gaps = np.abs(places[:, :, None] - places[:, None]).sum(-1) + 9 * np.eye(n, dtype=int)
        assert (gaps > 1).all()
        width = np.ptp(places, axis=1)
        assert width.max() == 16 * window - 1
    original._seed(3)
    theirs = np.zeros(16)
    for _ in range(count):
        original.reset()
        for agent in original.evaders:
            x, y = agent.current_position() // 4
            theirs[4 * x + y] += 1
    regions = 4 * (s.arrays["evader_x"] // 4) + s.arrays["evader_y"] // 4
    ours = np.bincount(regions.ravel(), minlength=16) / s.num_envs * count
    assert ((theirs == 0) == (ours == 0)).all()
    part = ours > 0
    deviation = (theirs - ours)[part] / np.sqrt(ours[part] + 1)
    assert np.abs(deviation).max() < 4.5  # those of one start lie in one window: more than by chance


def test_evaders_walk_all_ways_alike() -> None:
    s = simulator(3000)
    before = np.stack([s.arrays["evader_x"], s.arrays["evader_y"]], 2)
    s.arrays["action"][...] = 4
    s.step()
    assert (s.arrays["evader_x"] >= 0).mean() > 0.99
    way = s.arrays["way"]
    counts = np.bincount(way.ravel(), minlength=5)
    assert np.abs(counts - way.size / 5).max() < 5 * np.sqrt(way.size * 0.16)
    moved = np.stack([s.arrays["evader_x"], s.arrays["evader_y"]], 2) - before
    wide = (before > 0).all(2) & (before < 15).all(2) & (before[..., 0] < 3) & (s.arrays["evader_x"] >= 0)
    np.testing.assert_array_equal(moved[wide], MOVES[way[wide]])


def test_places_run_out() -> None:
    """Where the original would search for ever: everybody is somewhere outside of the building."""
    s = simulator(50, x_size=4, y_size=4, n_evaders=40, n_pursuers=9, constraint_window=0.01)
    free = {tuple(cell) for cell in open_cells(s).tolist()}
    for name in ("pursuer", "evader"):
        places = np.stack([s.arrays[f"{name}_x"], s.arrays[f"{name}_y"]], 2)
        assert {tuple(cell) for cell in places.reshape(-1, 2).tolist()} <= free
