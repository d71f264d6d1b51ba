"""Overcooked against overcooked-ai, from states drawn at random and over whole episodes. All numbers are exact in both.

Its package 1.1.0 has the new dynamics. The old ones, which its repository has as an option, are added here: three lines
of `OvercookedGridworld.step_environment_effects` and a condition of `resolve_interacts`.
"""

from __future__ import annotations

import importlib.resources

import numpy as np
import pytest
from overcooked_ai_py.mdp.actions import Action, Direction
from overcooked_ai_py.mdp.overcooked_mdp import (
    ObjectState,
    OvercookedGridworld,
    OvercookedState,
    PlayerState,
    Recipe,
    SoupState,
)

from gpuzoo import Simulator
from gpuzoo.envs.overcooked.kitchen import COUNTER, POT, RECIPES, code, kitchen, layouts
from gpuzoo.envs.overcooked.overcooked import Overcooked

PACKAGED = {
    path.name.removesuffix(".layout")
    for path in (importlib.resources.files("overcooked_ai_py") / "data" / "layouts").iterdir()
}
OTHERS = {  # of its repository and of JaxMARL: not in the package
    "old_dynamics_cook_test", "old_dynamics_put_test", "random0", "random3", "jaxmarl_cramped_room",
    "jaxmarl_asymm_advantages", "jaxmarl_coord_ring", "jaxmarl_forced_coord", "jaxmarl_counter_circuit",
}  # fmt: skip
NAMES = [None, "onion", "tomato", "dish"]
LETTERS = {"O": "onion", "T": "tomato"}
DYNAMICS = [False, True]
LIMIT = 400


class OldDynamics(OvercookedGridworld):
    """A pot starts by itself once it has three ingredients, and not otherwise."""

    def soup_to_be_cooked_at_location(self, state, pos):
        return False

    def step_environment_effects(self, state):
        for soup in (thing for thing in state.objects.values() if thing.name == "soup"):
            if soup.is_idle and len(soup.ingredients) == 3:
                soup.begin_cooking()
        super().step_environment_effects(state)


def orders(text):
    return [{"ingredients": [LETTERS[letter] for letter in word]} for word in text.split()]


def original(name, old_dynamics, **options):
    """Theirs: of the package by name, or of our grid where it does not have that layout."""
    if name in PACKAGED:
        mdp = OvercookedGridworld.from_layout_name(name, **options)
    else:
        own = layouts()[name]
        assert set(own) <= {"grid", "all_orders", "start"}
        mdp = OvercookedGridworld.from_grid(own["grid"], {"start_all_orders": orders(own["all_orders"]), **options})
    if old_dynamics:
        mdp.__class__ = OldDynamics
    return mdp


def soup(place, recipe, **how):
    return SoupState.get_soup(place, num_onions=recipe & 3, num_tomatoes=recipe >> 2, **how)


class Side:
    """Both sides: our batch, and their game with its states."""

    def __init__(self, n, layout, old_dynamics, theirs=None, **options):
        self.sim = Simulator(
            Overcooked, n, autoreset_mode="disabled", device="cpu", layout=layout, old_dynamics=old_dynamics, **options
        )
        self.sim.reset(seed=0)
        self.mdp = original(layout, old_dynamics, **(theirs or {}))
        self.kitchen = kitchen(self.sim.cfg)
        self.columns = self.kitchen.terrain.shape[1]

    def place(self, cell):
        return int(cell) % self.columns, int(cell) // self.columns

    def thing(self, place, number):
        if number < 16:
            return ObjectState(NAMES[number], place) if number else None
        return soup(place, int(number) - 16, finished=True)

    def state(self, values, i):
        """Our env i as a state of theirs."""
        players, objects = [], {}
        for cell, way, held in zip(values["cell"][i], values["orientation"][i], values["held"][i], strict=True):
            place = self.place(cell)
            players.append(PlayerState(place, Direction.INDEX_TO_DIRECTION[way], self.thing(place, held)))
        for cell, number in zip(self.kitchen.where(COUNTER), values["counter"][i], strict=True):
            if number:
                objects[self.place(cell)] = self.thing(self.place(cell), number)
        for cell, recipe, tick in zip(self.kitchen.where(POT), values["recipe"][i], values["tick"][i], strict=True):
            if recipe:
                objects[self.place(cell)] = soup(self.place(cell), int(recipe), cooking_tick=int(tick))
        mdp = self.mdp
        return OvercookedState(
            players, objects, mdp.start_bonus_orders, mdp.start_all_orders, timestep=int(values["elapsed_steps"][i])
        )

    def number(self, thing):
        if thing is None:
            return 0
        if thing.name != "soup":
            return NAMES.index(thing.name)
        assert thing.is_ready
        return 16 + self.recipe(thing)

    def recipe(self, thing):
        return thing.ingredients.count("onion") + 4 * thing.ingredients.count("tomato")

    def fields(self, state):
        """A state of theirs in our fields."""
        pots = [state.objects.get(self.place(cell)) for cell in self.kitchen.where(POT)]
        return {
            "cell": [x + self.columns * y for x, y in state.player_positions],
            "orientation": [Direction.DIRECTION_TO_INDEX[way] for way in state.player_orientations],
            "held": [self.number(player.held_object) for player in state.players],
            "counter": [self.number(state.objects.get(self.place(cell))) for cell in self.kitchen.where(COUNTER)],
            "recipe": [self.recipe(pot) if pot else 0 for pot in pots],
            "tick": [pot._cooking_tick if pot else -1 for pot in pots],
            "elapsed_steps": state.timestep,
        }

    def assert_same_states(self, states):
        ours = self.sim.state()
        for name in ("cell", "orientation", "held", "counter", "recipe", "tick", "elapsed_steps"):
            theirs = np.array([self.fields(state)[name] for state in states])
            assert (ours[name] == theirs.reshape(ours[name].shape)).all(), name

    def assert_same_observations(self, states):
        if self.mdp.num_players != 2:
            return
        columns_first = (self.columns, len(self.kitchen.terrain), 26)
        for i, state in enumerate(states):
            for a, theirs in enumerate(self.mdp.lossless_state_encoding(state, horizon=LIMIT)):
                assert (self.sim.arrays["observation"][i, a].reshape(columns_first) == theirs).all()

    def step(self, states, actions):
        """Both make a step; returns their next states, with the rewards of each player."""
        self.sim.arrays["action"][...] = actions[..., None]
        self.sim.step()
        after, delivered, shaped = [], [], []
        for state, action in zip(states, actions, strict=True):
            state, infos = self.mdp.get_state_transition(state, [Action.INDEX_TO_ACTION[k] for k in action])
            after.append(state)
            delivered.append(sum(infos["sparse_reward_by_agent"]))
            shaped.append(infos["shaped_reward_by_agent"])
        ours = self.sim.arrays
        assert (ours["delivered"] == np.array(delivered, np.float32)).all()
        assert (ours["shaped"] == np.array(shaped, np.float32)).all()
        weight = self.sim.cfg.shaped_reward
        total = np.array(delivered, np.float32)[:, None] + np.float32(weight) * np.array(shaped, np.float32)
        assert (ours["reward"] == total).all()
        assert not ours["terminated"].any()
        return after, np.array(delivered), np.array(shaped)


def places(side, rng, n):
    """Cells and directions of players: any, but mostly in front of something to use."""
    floor, players = side.kitchen.floor, len(side.kitchen.cells)
    useful = side.kitchen.terrain.ravel()[floor[:, None] + np.array([-side.columns, side.columns, 1, -1])] > COUNTER
    near = 1 + 5.0 * useful.any(1)
    which = np.stack([rng.choice(len(floor), players, replace=False, p=near / near.sum()) for _ in range(n)])
    weights = 1 + 5 * useful[which]
    ways = (weights.cumsum(-1) <= rng.random((n, players, 1)) * weights.sum(-1, keepdims=True)).sum(-1)
    return floor[which].astype(np.int16), ways.astype(np.int8)


def drawn(side, rng, n):
    """States drawn widely: full and empty kitchens, pots in all fillings at all times."""
    players, counters, pots = len(side.kitchen.cells), len(side.kitchen.where(COUNTER)), len(side.kitchen.pots)
    recipes = np.array([code(recipe) for recipe in RECIPES])
    full = recipes[np.add(recipes & 3, recipes >> 2) == 3]
    things = np.array([1, 2, 3, *(16 + recipes)])
    weights = np.array([3.0, 3.0, 4.0, *[1.0] * 9])
    any_thing = lambda shape: rng.choice(things, shape, p=weights / weights.sum())  # noqa: E731
    filled = np.where(rng.random((n, pots)) < 0.6, rng.choice(full, (n, pots)), rng.choice(recipes, (n, pots)))
    filled *= rng.random((n, pots)) < 0.8
    times = side.kitchen.time[filled]
    ticks = np.where(rng.random((n, pots)) < 0.3, times, rng.integers(0, times + 1))
    ticks = np.where((filled == 0) | (rng.random((n, pots)) < 0.4), -1, ticks)
    density = rng.choice([0.0, 0.1, 0.9], (n, 1))
    cells, ways = places(side, rng, n)
    return {
        "cell": cells,
        "orientation": ways,
        "held": np.where(rng.random((n, players)) < 0.3, 0, any_thing((n, players))).astype(np.uint8),
        "counter": np.where(rng.random((n, counters)) < density, any_thing((n, counters)), 0).astype(np.uint8),
        "recipe": filled.astype(np.uint8),
        "tick": ticks.astype(np.int16),
        "elapsed_steps": rng.integers(0, LIMIT - 1, n).astype(np.int32),
    }


def actions(rng, n, players):
    return np.where(rng.random((n, players)) < 0.5, 5, rng.integers(0, 6, (n, players)))


def test_all_layouts_are_known():
    assert set(layouts()) == PACKAGED | OTHERS


@pytest.mark.parametrize("old_dynamics", DYNAMICS, ids=["new", "old"])
@pytest.mark.parametrize("layout", sorted(PACKAGED | OTHERS))
def test_steps_from_drawn_states(layout, old_dynamics):
    n, rng = 600, np.random.default_rng(0)
    side = Side(n, layout, old_dynamics, shaped_reward=0.5)
    values = drawn(side, rng, n)
    side.sim.set_state(values)
    states = [side.state(values, i) for i in range(n)]
    side.assert_same_states(states)
    side.assert_same_observations(states)
    after, _, shaped = side.step(states, actions(rng, n, len(side.kitchen.cells)))
    side.assert_same_states(after)
    side.assert_same_observations(after)
    assert shaped.any()


@pytest.mark.parametrize("old_dynamics", DYNAMICS, ids=["new", "old"])
@pytest.mark.parametrize("layout", sorted(PACKAGED | OTHERS))
def test_whole_episodes(layout, old_dynamics):
    """Ten of each layout and dynamics: more than 1,000 together. Half of them begin as the layout does."""
    n, rng = 10, np.random.default_rng(1)
    side = Side(n, layout, old_dynamics)
    values = {name: field.copy() for name, field in side.sim.state().items() if name in drawn(side, rng, 1)}
    if layout in PACKAGED:
        first = side.mdp.get_standard_start_state()
        assert all((np.array(side.fields(first)[name]) == values[name][0]).all() for name in values)
    wide = drawn(side, rng, n)
    for name, field in values.items():
        field[n // 2 :] = wide[name][n // 2 :] if name != "elapsed_steps" else 0
    side.sim.set_state(values)
    states = [side.state(values, i) for i in range(n)]
    for t in range(LIMIT):
        states, _, _ = side.step(states, actions(rng, n, len(side.kitchen.cells)))
        if t % 40 in (0, 1) or t > LIMIT - 3:
            side.assert_same_states(states)
            side.assert_same_observations(states)
    assert side.sim.arrays["truncated"].all()


def test_soups_are_delivered_with_bonus_and_without():
    """Players who stand at the serving hatch with each soup, ordered or not: all values of the tomato layouts."""
    for layout in ("asymmetric_advantages_tomato", "cramped_room_o_3orders", "soup_coordination", "tutorial_3"):
        side = Side(len(RECIPES), layout, False)
        values = {name: field.copy() for name, field in side.sim.state().items() if name != "alive"}
        x, y = side.mdp.get_serving_locations()[0]
        way, (dx, dy) = next(
            (k, d) for k, d in enumerate(Direction.INDEX_TO_DIRECTION)
            if (x - d[0], y - d[1]) in side.mdp.get_valid_player_positions()
        )  # fmt: skip
        values["cell"][:, 0] = x - dx + side.columns * (y - dy)
        values["cell"][:, 1] = next(c for c in side.kitchen.floor if c != values["cell"][0, 0])
        values["orientation"][:, 0] = way
        values["held"][:, 0] = [16 + code(recipe) for recipe in RECIPES]
        side.sim.set_state(values)
        states = [side.state(values, i) for i in range(len(RECIPES))]
        _, delivered, _ = side.step(states, np.tile([5, 4], (len(RECIPES), 1)))
        assert len(set(delivered)) > 1


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"delivery_reward": 7, "cook_time": 3}, {"delivery_reward": 7, "cook_time": 3}),
        (
            {"all_orders": "OOT OT O", "bonus_orders": "O", "recipe_values": "5 6 7", "recipe_times": "8,9,10",
             "order_bonus": 3},
            {"start_all_orders": orders("OOT OT O"), "start_bonus_orders": orders("O"), "recipe_values": [5, 6, 7],
             "recipe_times": [8, 9, 10], "order_bonus": 3},
        ),
        (
            {"onion_value": 3, "tomato_value": 4, "onion_time": 5, "tomato_time": 6},
            {"onion_value": 3, "tomato_value": 4, "onion_time": 5, "tomato_time": 6},
        ),
    ],
    ids=["one for all", "lists", "ingredients"],
)  # fmt: skip
def test_recipes_of_ones_own(ours, theirs):
    side = Side(1, "cramped_room", False, theirs, **ours)
    state = side.mdp.get_standard_start_state()
    for onions, tomatoes in RECIPES:
        recipe = Recipe(["onion"] * onions + ["tomato"] * tomatoes)
        assert side.kitchen.value[code((onions, tomatoes))] == side.mdp.get_recipe_value(state, recipe)
        assert side.kitchen.time[code((onions, tomatoes))] == recipe.time


def test_random_starts_are_drawn_alike():
    """Shares of places, held objects and pots in 40,000 of our starts and 4,000 of theirs, within 5 standard deviations
    of their difference."""
    n, m, layout = 40_000, 4_000, "cramped_room_tomato"
    side = Side(n, layout, False, random_start_pos=True, rnd_obj_prob_thresh=0.6)
    np.random.seed(0)
    start = side.mdp.get_random_start_state_fn(random_start_pos=True, rnd_obj_prob_thresh=0.6)
    theirs = [side.fields(start()) for _ in range(m)]
    ours = side.sim.state()
    assert (ours["orientation"] == theirs[0]["orientation"]).all()
    for what in (["cell"], ["held"], ["recipe", "tick"]):
        a = np.concatenate([ours[name].reshape(n, -1) for name in what], 1).astype(int)
        b = np.concatenate([np.array([row[name] for row in theirs]).reshape(m, -1) for name in what], 1)
        kinds, which = np.unique(np.concatenate([a, b]), axis=0, return_inverse=True)
        first, second = (np.bincount(w, minlength=len(kinds)) for w in (which.ravel()[:n], which.ravel()[n:]))
        p = (first + second) / (n + m)
        deviation = np.sqrt(p * (1 - p) * (1 / n + 1 / m))
        assert (abs(first / n - second / m) < 5 * deviation).all()
        assert len(kinds) > 8
