"""Overcooked against JaxMARL's, from states drawn at random and over whole episodes. All numbers are exact in both.

Its pots have one number: 23 to 20 with 0 to 3 onions before they cook, then the steps that are left.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxmarl.environments.overcooked import Overcooked as Theirs
from jaxmarl.environments.overcooked import overcooked_layouts
from jaxmarl.environments.overcooked.common import COLOR_TO_INDEX, DIR_TO_VEC, OBJECT_TO_INDEX

from gpuzoo import Simulator
from gpuzoo.envs.overcooked.kitchen import COUNTER, POT, kitchen
from gpuzoo.envs.overcooked.overcooked import Overcooked

LIMIT, SOUP = 400, 19
OBJECTS = {0: "empty", 1: "onion", 3: "plate", SOUP: "dish"}  # in hands; on counters nothing is "wall"
AGENTS = ("agent_0", "agent_1")
pytestmark = [pytest.mark.rotates, pytest.mark.filterwarnings("ignore:OvercookedV2 is now released")]


class Both:
    """Our batch, and their game with a batch of states."""

    def __init__(self, n, name, **options):
        self.n = n
        self.sim = Simulator(
            Overcooked, n, autoreset_mode="disabled", device="cpu", layout=f"jaxmarl_{name}",
            observation_type="jaxmarl", stale_pots=False, **options,
        )  # fmt: skip
        self.sim.reset(seed=0)
        self.env = Theirs(overcooked_layouts[name], random_reset=options.get("random_reset", False), max_steps=LIMIT)
        self.keys = jax.random.split(jax.random.key(0), n)
        _, self.first = jax.jit(jax.vmap(self.env.reset))(self.keys)
        self.kitchen = kitchen(self.sim.cfg)
        self.rows, self.columns = self.kitchen.terrain.shape
        self.advance = jax.jit(jax.vmap(self.env.step_env))
        self.observe = jax.jit(jax.vmap(self.env.get_obs))

    def padded(self, cells):
        """Rows and columns of cells in their map, which has a margin."""
        margin = (self.first.maze_map.shape[1] - self.rows) // 2
        return cells // self.columns + margin, cells % self.columns + margin

    def theirs(self, values):
        """Our states as theirs."""
        n, every = self.n, np.arange(self.n)[:, None]
        maps = np.array(self.first.maze_map)
        rows, columns = self.padded(self.kitchen.floor)
        maps[:, rows, columns] = [OBJECT_TO_INDEX["empty"], 0, 0]
        rows, columns = self.padded(self.kitchen.where(COUNTER))
        names = np.array([OBJECT_TO_INDEX[OBJECTS.get(k, "unseen")] for k in range(SOUP + 1)])
        maps[:, rows, columns, 0] = np.where(values["counter"] == 0, OBJECT_TO_INDEX["wall"], names[values["counter"]])
        rows, columns = self.padded(self.kitchen.where(POT))
        idle = values["tick"] < 0
        maps[:, rows, columns, 2] = np.where(idle, 23 - values["recipe"].astype(int), 20 - values["tick"])
        cells, way = values["cell"].astype(int), values["orientation"].astype(int)
        rows, columns = self.padded(cells)
        maps[every, rows, columns, 0] = OBJECT_TO_INDEX["agent"]
        maps[every, rows, columns, 1] = COLOR_TO_INDEX["red"] + 2 * np.arange(2)
        maps[every, rows, columns, 2] = way
        return self.first.replace(
            agent_pos=jnp.array(np.stack([cells % self.columns, cells // self.columns], 2), jnp.uint32),
            agent_dir=DIR_TO_VEC[way],
            agent_dir_idx=jnp.array(way, self.first.agent_dir_idx.dtype),
            agent_inv=jnp.array(names[values["held"]], self.first.agent_inv.dtype),
            maze_map=jnp.array(maps),
            step=jnp.array(values["elapsed_steps"], self.first.step.dtype),
            done=jnp.zeros(n, bool),
        )

    def fields(self, state):
        """Their states in our fields."""
        ours = np.zeros(max(OBJECT_TO_INDEX.values()) + 1, int)
        for number, name in OBJECTS.items():
            ours[OBJECT_TO_INDEX[name]] = number
        maps = np.asarray(state.maze_map)
        pots = maps[(slice(None), *self.padded(self.kitchen.where(POT)), 2)].astype(int)
        return {
            "cell": np.asarray(state.agent_pos).astype(int) @ [1, self.columns],
            "orientation": np.asarray(state.agent_dir_idx),
            "held": ours[np.asarray(state.agent_inv).astype(int)],
            "counter": ours[maps[(slice(None), *self.padded(self.kitchen.where(COUNTER)), 0)].astype(int)],
            "recipe": np.where(pots >= 20, 23 - pots, 3),
            "tick": np.where(pots >= 20, -1, 20 - pots),
            "elapsed_steps": np.asarray(state.step),
        }

    def assert_same(self, state):
        ours = self.sim.state()
        for name, theirs in self.fields(state).items():
            assert (ours[name] == theirs).all(), name
        for a, theirs in enumerate(self.observe(state)[agent] for agent in AGENTS):
            shown = self.sim.arrays["observation"][:, a].reshape(self.n, self.rows, self.columns, 26)
            assert (shown == np.asarray(theirs)).all()

    def step(self, state, actions):
        """Both make a step; returns their next states, with the number of soups delivered and of rewarded dishes."""
        self.sim.arrays["action"][...] = actions[..., None]
        self.sim.step()
        _, state, rewards, done, infos = self.advance(self.keys, state, dict(zip(AGENTS, actions.T, strict=True)))
        ours = self.sim.arrays
        for a, agent in enumerate(AGENTS):
            assert (ours["reward"][:, a] == np.asarray(rewards[agent])).all()
            assert (ours["shaped"][:, a] == np.asarray(infos["shaped_reward"][agent])).all()
        assert (ours["truncated"][:, 0] == np.asarray(done["__all__"])).all()
        return state, int((ours["delivered"] > 0).sum()), int((ours["shaped"] == 3.0).sum())


def drawn(both, rng):
    n, counters, pots = both.n, len(both.kitchen.where(COUNTER)), len(both.kitchen.pots)
    things = np.array(list(OBJECTS))
    status = rng.integers(0, 24, (n, pots))
    density = rng.choice([0.0, 0.1, 0.9], (n, 1))
    return {
        "cell": np.stack([rng.permutation(both.kitchen.floor)[:2] for _ in range(n)]).astype(np.int16),
        "orientation": rng.integers(0, 4, (n, 2)).astype(np.int8),
        "held": rng.choice(things, (n, 2)).astype(np.uint8),
        "counter": np.where(rng.random((n, counters)) < density, rng.choice(things, (n, counters)), 0).astype(np.uint8),
        "recipe": np.minimum(status, 3).astype(np.uint8),
        "tick": np.where(status <= 3, -1, status - 3).astype(np.int16),
        "elapsed_steps": rng.integers(0, LIMIT, n).astype(np.int32),
    }


def actions(rng, n):
    return np.where(rng.random((n, 2)) < 0.5, 5, rng.integers(0, 6, (n, 2)))


@pytest.mark.parametrize("name", sorted(overcooked_layouts))
def test_steps_from_drawn_states(name):
    n, rng = 20_000, np.random.default_rng(0)
    both = Both(n, name)
    values = drawn(both, rng)
    both.sim.set_state(values)
    state = both.theirs(values)
    both.assert_same(state)
    state, soups, dishes = both.step(state, actions(rng, n))
    both.assert_same(state)
    assert soups > 10
    assert dishes > 10


@pytest.mark.parametrize("name", sorted(overcooked_layouts))
def test_whole_episodes(name):
    n, rng = 250, np.random.default_rng(1)
    both = Both(n, name)
    values = drawn(both, rng) | {"elapsed_steps": np.zeros(n, np.int32)}
    both.sim.set_state(values)
    state = both.theirs(values)
    for t in range(LIMIT):
        state, _, _ = both.step(state, actions(rng, n))
        if t % 20 == 0 or t == LIMIT - 1:
            both.assert_same(state)
    assert both.sim.arrays["truncated"].all()


@pytest.mark.parametrize("options", [{"random_orientation": True}, {"random_reset": True}], ids=str)
@pytest.mark.parametrize("name", ["cramped_room", "forced_coord"])
def test_starts_are_drawn_alike(name, options):
    """Shares of places, directions, held objects and pots in 20,000 starts of each, within 5 standard deviations of
    their difference."""
    n = 20_000
    both = Both(n, name, **options)
    ours, theirs = both.sim.state(), both.fields(both.first)
    for what in (["cell"], ["orientation"], ["held"], ["recipe", "tick"], ["counter"]):
        a, b = (np.concatenate([np.asarray(side[name]) for name in what], 1).astype(int) for side in (ours, theirs))
        kinds, which = np.unique(np.concatenate([a, b]), axis=0, return_inverse=True)
        first, second = (np.bincount(w, minlength=len(kinds)) for w in (which.ravel()[:n], which.ravel()[n:]))
        p = (first + second) / (2 * n)
        assert (abs(first - second) / n <= 5 * np.sqrt(p * (1 - p) * 2 / n)).all(), what
        assert len(kinds) > 1 or what == ["counter"] or not options.get("random_reset")
