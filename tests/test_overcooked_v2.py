"""OvercookedV2's options: layouts, recipes and permutations as text, what is refused, rewards and infos. The rules
themselves are compared with JaxMARL in ``tests/integrations``."""

from __future__ import annotations

import numpy as np
import pytest

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.envs.overcooked.kitchen_v2 import code, foods, kitchen, layouts
from gpuzoo.envs.overcooked.overcooked_v2 import OvercookedV2, OvercookedV2Config

ROOM = "WWPWW/0A A1/L   R/WBWXW"
RIGHT, DOWN, LEFT, UP, STAY, INTERACT = range(6)


def test_every_layout_is_a_kitchen():
    for name in layouts():
        found = kitchen(OvercookedV2Config(layout=name))
        assert 1 <= len(found.cells) == len(set(found.cells)) <= 2
        assert not found.terrain.ravel()[found.cells].any()
        assert found.rooms.ravel()[found.cells].min() >= 0


def test_recipes_as_text_and_as_lists():
    every = kitchen(OvercookedV2Config(layout=ROOM)).recipes
    assert [foods(recipe) for recipe in every] == [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)]
    for recipes in ("001 111", [[0, 0, 1], [1, 1, 1]]):
        sim = Simulator(OvercookedV2, 1, device="cpu", layout=ROOM, possible_recipes=recipes, agent_view_size=None)
        assert kitchen(sim.cfg).recipes == [code("001"), code("111")]


def test_a_soup_from_the_pile_to_the_goal():
    """The first player cooks what is ordered; shaped rewards count by half; the button costs five points."""
    sim = Simulator(
        OvercookedV2, 1, device="cpu", layout=ROOM, possible_recipes="000", pot_cook_time=3, shaped_reward=0.5
    )
    sim.reset(seed=0)
    onion = [LEFT, INTERACT, RIGHT, UP, INTERACT]
    press = [LEFT, DOWN, LEFT, INTERACT]
    plate = [DOWN, INTERACT]
    take = [UP, RIGHT, UP, INTERACT]
    deliver = [DOWN, RIGHT, DOWN, INTERACT]
    rewards = []
    for action in onion * 3 + press + plate + take + deliver:
        sim.arrays["action"][:, :, 0] = [action, STAY]
        sim.step()
        rewards.append(sim.arrays["reward"][0].copy())
    expected = np.zeros((29, 2), np.float32)
    expected[[4, 9, 14], 0] = 1.5
    expected[18] = -5
    expected[20, 0] = 1.5
    expected[24, 0] = 2.5
    expected[28] = 20
    np.testing.assert_array_equal(np.array(rewards), expected)
    assert sim.arrays["soups"] == 1
    assert sim.arrays["score"] == 15


def test_infos_have_sparse_and_shaped_rewards():
    env = gpuzoo.parallel_env("OvercookedV2-v0", infos=True, device="cpu")
    env.reset(seed=0)
    infos = env.step(dict.fromkeys(env.agents, STAY))[-1]
    for agent in env.possible_agents:
        assert {"sparse_reward", "shaped_reward_0", "shaped_reward_1"} <= set(infos[agent])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "cramped_rom"}, "there is no layout 'cramped_rom'; did you mean 'cramped_room'"),
        ({"layout": "WWPWW/0A A1/L  R/WBWXW"}, "the same length"),
        ({"layout": "WWPWW/0A A1/L  ?R/WBWXW"}, "a layout consists of"),
        ({"layout": "WWPWW/0   1/L   R/WBWXW"}, "the layout has no A"),
        ({"layout": "WWWWW/WA AW/W   R/WWWWW"}, "the layout has no X, P, B, 0 to 9"),
        ({"layout": "WWPWW/0A A1/    R/WBWXW"}, "no floor at the edge"),
        ({"layout": "WWPWW/0A A1/L   W/WBWXW"}, "without a recipe indicator R needs possible_recipes"),
        ({"possible_recipes": "00"}, "words of three digits"),
        ({"possible_recipes": "001"}, "the layout has the ingredients 0 to 0"),
        ({"op_ingredient_permutations": "0 1"}, "different ingredients from 0 to 0"),
        ({"layout": ROOM, "op_ingredient_permutations": "1 1"}, "different ingredients from 0 to 1"),
        ({"layout": ROOM, "observation_type": "featurized"}, "kitchens with one ingredient"),
        ({"observation_type": "featurized", "agent_view_size": 2}, "agent_view_size is for observation_type='default'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_options_are_refused_in_one_sentence(options, message):
    with pytest.raises(ValueError, match="OvercookedV2: ") as caught:
        Simulator(OvercookedV2, 1, device="cpu", **options)
    assert message in str(caught.value)
