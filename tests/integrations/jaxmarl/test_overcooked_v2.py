"""OvercookedV2 against JaxMARL's, from states drawn at random and over whole episodes. All numbers are exact in both.

What is drawn (recipes, places, things) comes from other random numbers here: in episodes JaxMARL gets our new recipes,
and starts are compared by how often each one comes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxmarl.environments.overcooked_v2 import Layout, OvercookedV2, overcooked_v2_layouts

from gpuzoo import Simulator
from gpuzoo.envs.overcooked.kitchen_v2 import BUTTON, COUNTER, FLOOR, POT, code, kitchen, layouts
from gpuzoo.envs.overcooked.overcooked_v2 import OvercookedV2 as Ours

pytestmark = pytest.mark.rotates

LIMIT, COOK_TIME, LIT = 400, 20, 10
STAY, INTERACT = 4, 5
PLATE, COOKED = 1, 2
CROWD = """
WWPWWWBW
0AA  AA1
R      L
W A AA X
W      X
WWBWLWPW
"""
LANE = """
WWWWWWWW
PAAA  AX
0      B
WWWWWWWW
"""
KITCHENS = {
    **{name: {"layout": name} for name in overcooked_v2_layouts},
    "crowd": {"layout": CROWD},
    "lane": {"layout": LANE, "possible_recipes": [[0, 0, 0]]},
    "swapped": {"layout": CROWD, "possible_recipes": [[0, 0, 1], [1, 1, 1]], "swap_agents": True},
}
OPTIONS = [
    {},
    {"start_cooking_interaction": True, "negative_rewards": True},
    {"agent_view_size": 2, "indicate_successful_delivery": True, "sample_recipe_on_delivery": True},
    {"agent_view_size": 1, "op_ingredient_permutations": True},
    {"op_ingredient_permutations": True, "indicate_successful_delivery": True, "negative_rewards": True},
]
FEATURIZED = ["cramped_room", "asymm_advantages", "coord_ring", "forced_coord", "counter_circuit", "lane"]


def make(name, options):
    """Our class's options, and their env."""
    about = dict(KITCHENS[name])
    theirs = {k: v for k, v in options.items() if k != "op_ingredient_permutations"}
    ours = {**about, **options}
    text = about.pop("layout")
    layout = overcooked_v2_layouts[text] if text in overcooked_v2_layouts else Layout.from_string(text, **about)
    if options.get("op_ingredient_permutations"):
        ours["op_ingredient_permutations"] = list(range(layout.num_ingredients))[-3:]
        theirs["op_ingredient_permutations"] = ours["op_ingredient_permutations"]
    return ours, OvercookedV2(layout, max_steps=LIMIT, **theirs)


class Both:
    """Our batch, and their game with a batch of states."""

    def __init__(self, n, name, options, seed=0):
        ours, self.env = make(name, options)
        self.n = n
        self.sim = Simulator(Ours, n, autoreset_mode="disabled", device="cpu", **ours)
        self.sim.reset(seed=seed)
        self.kitchen = kitchen(self.sim.cfg)
        self.rows, self.columns = self.kitchen.terrain.shape
        self.players = len(self.kitchen.cells)
        self.keys = jax.random.split(jax.random.key(seed), n)
        _, self.first = jax.jit(jax.vmap(self.env.reset))(self.keys)
        self.advance = jax.jit(jax.vmap(self.env.step_env))
        self.observe = jax.jit(jax.vmap(self.env.get_obs))

    def at(self, kind):
        return divmod(self.kitchen.where(kind), self.columns)

    def theirs(self, values):
        """Our states as theirs."""
        grid = np.array(self.first.grid)
        for name, kind, layer in (("counter", COUNTER, 1), ("pot", POT, 1), ("timer", POT, 2), ("lit", BUTTON, 2)):
            rows, columns = self.at(kind)
            grid[:, rows, columns, layer] = values[name][:, : len(rows)]
        agents = self.first.agents
        y, x = divmod(values["cell"].astype(np.int32), self.columns)
        shown = None
        if self.sim.cfg.op_ingredient_permutations:
            shown = jnp.array(values["shown"], self.first.ingredient_permutations.dtype)
        return self.first.replace(
            agents=agents.replace(
                pos=agents.pos.replace(x=jnp.array(x), y=jnp.array(y)),
                dir=jnp.array(values["orientation"], agents.dir.dtype),
                inventory=jnp.array(values["held"], agents.inventory.dtype),
            ),
            grid=jnp.array(grid),
            recipe=jnp.array(values["recipe"], self.first.recipe.dtype),
            new_correct_delivery=jnp.array(values["delivered"], bool),
            ingredient_permutations=shown,
            step=jnp.array(values["elapsed_steps"], self.first.step.dtype),
            done=jnp.zeros(self.n, bool),
        )

    def fields(self, state):
        """Their states in our fields."""
        grid = np.asarray(state.grid)
        position = state.agents.pos
        out = {
            "cell": np.asarray(position.y) * self.columns + np.asarray(position.x),
            "orientation": np.asarray(state.agents.dir),
            "held": np.asarray(state.agents.inventory),
            "counter": grid[(slice(None), *self.at(COUNTER), 1)],
            "pot": grid[(slice(None), *self.at(POT), 1)],
            "timer": grid[(slice(None), *self.at(POT), 2)],
            "lit": grid[(slice(None), *self.at(BUTTON), 2)],
            "recipe": np.asarray(state.recipe),
            "delivered": np.asarray(state.new_correct_delivery),
            "elapsed_steps": np.asarray(state.step),
        }
        return {name: value for name, value in out.items() if value.size}

    def assert_same(self, state):
        ours = self.sim.state()
        for name, theirs in self.fields(state).items():
            np.testing.assert_array_equal(ours[name], theirs, err_msg=name)
        for a, theirs in enumerate(self.observe(state).values()):
            shown = self.sim.arrays["observation"][:, a].reshape(np.shape(theirs))
            np.testing.assert_array_equal(shown, np.asarray(theirs), err_msg=f"player {a}")

    def step(self, state, actions):
        """Both make a step; returns their next states, with our new recipes if there are some."""
        self.sim.arrays["action"][...] = actions[..., None]
        self.sim.step()
        named = dict(zip(self.env.agents, actions.T, strict=True))
        _, after, rewards, done, infos = self.advance(self.keys, state, named)
        ours = self.sim.arrays
        for a, agent in enumerate(self.env.agents):
            np.testing.assert_array_equal(ours["reward"][:, a], np.asarray(rewards[agent]))
            np.testing.assert_array_equal(ours["shaped"][:, a], np.asarray(infos["shaped_reward"][agent]))
        np.testing.assert_array_equal(ours["truncated"][:, 0], np.asarray(done["__all__"]))
        if self.sim.cfg.sample_recipe_on_delivery:
            anew = np.asarray(after.new_correct_delivery)
            assert np.isin(ours["recipe"], self.kitchen.recipes).all()
            kept = np.where(anew, ours["recipe"], np.asarray(after.recipe))
            after = after.replace(recipe=jnp.array(kept, after.recipe.dtype))
        return after


def food(rng, kinds, low, high, shape):
    """Numbers of ingredients from low to high, as bits."""
    digits = rng.integers(0, kinds, (*shape, 3))
    taken = np.arange(3) < rng.integers(low, high + 1, (*shape, 1))
    return ((4 << 2 * digits) * taken).sum(-1)


def drawn(both, rng):
    """Any things anywhere, those that are ordered more often; players beside piles, pots and goals more often."""
    n, kinds, recipes = both.n, both.kitchen.ingredients, np.array(both.kitchen.recipes)
    recipe = rng.choice(recipes, n)

    def things(count):
        soup = np.where(rng.random((n, count)) < 0.5, recipe[:, None], food(rng, kinds, 1, 3, (n, count)))
        raw = food(rng, kinds, 1, 1, (n, count))
        return np.choose(rng.integers(0, 4, (n, count)), [0, PLATE, raw, soup | PLATE | COOKED]).astype(np.int32)

    pots, counters, buttons = (len(both.kitchen.where(kind)) for kind in (POT, COUNTER, BUTTON))
    status = rng.integers(0, 4, (n, pots))
    some = np.where(rng.random((n, pots)) < 0.4, recipe[:, None], food(rng, kinds, 0, 3, (n, pots)))
    timer = np.where((status == 1) & (some > 0), rng.integers(1, COOK_TIME + 1, (n, pots)), 0)
    ready = (status == 2) & (some > 0)
    shown = np.tile(np.arange(kinds), (n, both.players, 1))
    if both.kitchen.permuted:
        shown[..., both.kitchen.permuted] = rng.permuted(shown[..., both.kitchen.permuted], axis=-1)
    clear = rng.random((n, 1)) < 0.5
    floor = np.tile(both.kitchen.where(FLOOR), (n, 1))
    facilities = np.flatnonzero(both.kitchen.terrain > COUNTER)
    beside = np.isin(floor, np.add.outer(facilities, [1, -1, both.columns, -both.columns]))
    order = (rng.random(floor.shape) - 0.4 * beside).argsort(1)
    return {
        "cell": np.take_along_axis(floor, order, 1)[:, : both.players].astype(np.int16),
        "orientation": rng.integers(0, 4, (n, both.players)).astype(np.int8),
        "held": things(both.players),
        "shown": shown.astype(np.int8),
        "counter": np.where(clear & (rng.random((n, counters)) < 0.95), 0, things(counters)).astype(np.int32),
        "pot": (some | COOKED * ready).astype(np.int32),
        "timer": timer.astype(np.int8),
        "lit": (rng.integers(0, LIT + 1, (n, max(buttons, 1))) * bool(buttons)).astype(np.int8),
        "recipe": recipe.astype(np.int32),
        "delivered": rng.random(n) < 0.5,
        "elapsed_steps": rng.integers(0, LIMIT, n).astype(np.int32),
    }


def draw_actions(rng, n, players):
    return np.where(rng.random((n, players)) < 0.4, INTERACT, rng.integers(0, 6, (n, players)))


def test_layouts_are_the_same():
    assert layouts().keys() == overcooked_v2_layouts.keys()
    for name, theirs in overcooked_v2_layouts.items():
        ours = kitchen(Ours.Config(layout=name))
        statics = theirs.static_objects
        renamed = np.select([statics >= 10, statics == 9, statics >= 4], [statics - 3, 6, statics - 2], statics)
        np.testing.assert_array_equal(ours.terrain, renamed)
        assert [divmod(cell, theirs.width)[::-1] for cell in ours.cells] == theirs.agent_positions
        assert ours.ingredients == theirs.num_ingredients
        assert sorted(ours.recipes) == sorted(code("".join(map(str, recipe))) for recipe in theirs.possible_recipes)


@pytest.mark.parametrize("name", KITCHENS)
def test_steps_from_drawn_states(name):
    """Each kitchen with one set of options after another."""
    rng, n, options = np.random.default_rng(0), 8000, OPTIONS[list(KITCHENS).index(name) % len(OPTIONS)]
    both = Both(n, name, options)
    values = drawn(both, rng)
    both.sim.set_state(values)
    state = both.theirs(values)
    both.assert_same(state)
    state = both.step(state, draw_actions(rng, n, both.players))
    both.assert_same(state)
    rewards = both.sim.arrays["earned"]
    assert (rewards > 0).sum() > 10
    assert (rewards < 0).any() == (options.get("negative_rewards", False) or BUTTON in both.kitchen.terrain)
    assert len(np.unique(both.sim.arrays["shaped"])) >= 3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["crowd", "grounded_coord_ring", "fun_coordination"])
def test_options_from_drawn_states(name, options):
    rng, n = np.random.default_rng(1), 8000
    both = Both(n, name, options)
    values = drawn(both, rng)
    both.sim.set_state(values)
    state = both.theirs(values)
    both.assert_same(both.step(state, draw_actions(rng, n, both.players)))


@pytest.mark.parametrize("name", FEATURIZED)
def test_features(name):
    rng, n = np.random.default_rng(2), 8000
    both = Both(n, name, {"observation_type": "featurized"})
    values = drawn(both, rng)
    both.sim.set_state(values)
    state = both.theirs(values)
    both.assert_same(state)
    both.assert_same(both.step(state, draw_actions(rng, n, both.players)))


EPISODES = [
    ("cramped_room", {"negative_rewards": True}),
    ("cramped_room", {"observation_type": "featurized", "random_reset": True}),
    ("grounded_coord_simple", {"agent_view_size": 2, "sample_recipe_on_delivery": True, "random_reset": True}),
    ("test_time_wide", {"start_cooking_interaction": True, "random_agent_positions": True}),
    ("crowd", {"agent_view_size": 2, "op_ingredient_permutations": True, "indicate_successful_delivery": True,
               "sample_recipe_on_delivery": True}),
]  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "options"), EPISODES, ids=str)
def test_whole_episodes(name, options):
    """1,000 episodes from our starts, JaxMARL beside us; in every second env soups begin in many pots and hands."""
    rng, n = np.random.default_rng(3), 1000
    both = Both(n, name, options, seed=4)
    values = both.sim.state()
    more = drawn(both, rng) | {"elapsed_steps": np.zeros(n, np.int32), "delivered": np.zeros(n, bool)}
    every_second = np.arange(n) % 2 == 1
    values = {k: v.copy() for k, v in values.items()}
    for k in ("held", "counter", "pot", "timer", "cell"):
        values[k][every_second] = more[k][every_second]
    both.sim.set_state(values)
    state, soups = both.theirs(values), 0
    for t in range(LIMIT):
        state = both.step(state, draw_actions(rng, n, both.players))
        soups += int(both.sim.arrays["delivered"].sum())
        if t % 20 == 0 or t == LIMIT - 1:
            both.assert_same(state)
    assert both.sim.arrays["truncated"].all()
    assert soups > 50


STARTS = [
    ("crowd", {"random_reset": True}),
    ("crowd", {"random_reset": True, "start_cooking_interaction": True}),
    ("forced_coord", {"random_agent_positions": True}),
    ("two_rooms", {"random_agent_positions": True}),
    ("fun_coordination", {"op_ingredient_permutations": True}),
    ("cramped_room_v2", {"random_reset": True}),
]


@pytest.mark.parametrize(("name", "options"), STARTS, ids=str)
def test_starts_are_drawn_alike(name, options):
    """How often each value of each field comes in 20,000 starts of each, within 5 standard deviations of their
    difference; of pots, contents and timer together."""
    n = 20_000
    both = Both(n, name, options)
    ours, theirs = dict(both.sim.state()), both.fields(both.first)
    if both.kitchen.permuted:
        theirs["shown"] = np.asarray(both.first.ingredient_permutations)
    for what in (["cell"], ["orientation"], ["held"], ["recipe"], ["pot", "timer"], ["counter"], ["shown"]):
        if any(name not in theirs for name in what):
            continue
        of_both = [np.stack([np.asarray(side[name]).reshape(n, -1) for name in what], -1) for side in (ours, theirs)]
        for k in range(of_both[0].shape[1]):
            assert_as_often(*(x[:, k].astype(int) for x in of_both), what)
    assert_as_often(*(np.sort(side["cell"], 1)[:, :2].astype(int) for side in (ours, theirs)), "places together")


def assert_as_often(ours, theirs, what):
    n = len(ours)
    kinds, which = np.unique(np.concatenate([ours, theirs]), axis=0, return_inverse=True)
    first, second = (np.bincount(w, minlength=len(kinds)) for w in (which.ravel()[:n], which.ravel()[n:]))
    p = (first + second) / (2 * n)
    assert (abs(first - second) / n <= 5 * np.sqrt(p * (1 - p) * 2 / n)).all(), what


def test_recipes_are_drawn_alike_after_deliveries():
    """After 20,000 right deliveries each recipe is as often ordered, within 5 standard deviations."""
    n = 20_000
    both = Both(n, "cramped_room_v2", {"sample_recipe_on_delivery": True})
    values = {k: v.copy() for k, v in both.sim.state().items()}
    goal = np.flatnonzero(both.kitchen.terrain.ravel() == 2)[0]
    values["cell"][:, 0] = goal - both.columns
    values["orientation"][:, 0] = 1
    values["cell"][:, 1] = next(c for c in both.kitchen.where(FLOOR) if c != goal - both.columns)
    values["held"][:, 0] = values["recipe"] | PLATE | COOKED
    both.sim.set_state(values)
    state = both.step(both.theirs(values), np.tile([INTERACT, STAY], (n, 1)))
    assert both.sim.arrays["delivered"].all()
    both.assert_same(state)
    counts = [np.sum(both.sim.arrays["recipe"] == recipe) for recipe in both.kitchen.recipes]
    share = 1 / len(counts)
    assert (np.abs(np.array(counts) - n * share) < 5 * np.sqrt(n * share * (1 - share))).all()
