"""Overcooked's options: layouts and recipes as text, what is refused, rewards and infos. The rules themselves are
compared with overcooked-ai and with JaxMARL in ``tests/integrations``."""

from __future__ import annotations

import numpy as np
import pytest

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.envs.overcooked.kitchen import kitchen, layouts
from gpuzoo.envs.overcooked.overcooked import Overcooked, OvercookedConfig

ROOM = "XXPXX/O1 2T/X   X/XDXSX"
NORTH, SOUTH, EAST, WEST, STAY, INTERACT = range(6)


def serve(sim, script):
    """The rewards of both players while the first one acts by the script and the other one stays: (steps, 2)."""
    rewards = []
    for action in script:
        sim.arrays["action"][:, :, 0] = [action, STAY]
        sim.step()
        rewards.append(sim.arrays["reward"][0].copy())
    return np.array(rewards)


def test_every_layout_is_a_kitchen():
    for name in layouts():
        found = kitchen(OvercookedConfig(layout=name))
        assert len(found.cells) == len(set(found.cells)) <= len(found.floor)
        assert not found.terrain.ravel()[found.cells].any()


def test_a_soup_from_the_crate_to_the_hatch():
    """In a layout of one's own: 3 for the ingredient, 3 for the dish, 5 for the soup, by half, and 40 for the bonus."""
    sim = Simulator(
        Overcooked, 1, device="cpu", layout=ROOM, old_dynamics=False, all_orders="O OOO", bonus_orders="O",
        cook_time=3, shaped_reward=0.5,
    )  # fmt: skip
    sim.reset(seed=0)
    fill = [WEST, INTERACT, EAST, NORTH, INTERACT, INTERACT]  # the onion into the pot; it cooks
    dish = [SOUTH, WEST, SOUTH, INTERACT]
    take = [NORTH, EAST, NORTH, INTERACT]
    deliver = [SOUTH, EAST, SOUTH, INTERACT]
    rewards = serve(sim, fill + dish + take + deliver)
    expected = np.zeros((18, 2), np.float32)
    expected[[4, 9, 13], 0] = 1.5, 1.5, 2.5
    expected[17] = 40
    assert (rewards == expected).all()
    assert sim.arrays["soups"] == 1
    assert sim.arrays["score"] == 40


def test_infos_have_sparse_and_shaped_rewards():
    env = gpuzoo.parallel_env("Overcooked-v0", infos=True, rnd_obj_prob_thresh=1.0, device="cpu")
    env.reset(seed=0)
    infos = env.step(dict.fromkeys(env.agents, STAY))[-1]
    for agent in env.possible_agents:
        assert {"sparse_reward", "shaped_reward_0", "shaped_reward_1"} <= set(infos[agent])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "cramped_rom"}, "there is no layout 'cramped_rom'; did you mean 'cramped_room'"),
        ({"layout": "XXPXX/O1 2T/X  X/XDXSX"}, "the same length"),
        ({"layout": "XXPXX/O1 2T/X  ?X/XDXSX"}, "a layout consists of"),
        ({"layout": "XXPXX/O1 1T/X   X/XDXSX"}, "each once, not 1 1"),
        ({"layout": "XXPXX/O   T/X   X/XDXSX"}, "not none"),
        ({"layout": "XXPXX/O1 2T/X    /XDXSX"}, "the same length"),
        ({"layout": "XXP X/O1 2T/X   X/XDXSX"}, "no floor at the edge"),
        ({"layout": "XXXXX/O1 2T/X   X/XXXXX"}, "the layout has no P, D, S"),
        ({"layout": "XXPXX/X1 2X/X   X/XDXSX"}, "the layout has no O or T"),
        ({"all_orders": "OOX"}, "words of one to three letters"),
        ({"all_orders": "OT TO"}, "twice"),
        ({"bonus_orders": "T"}, "bonus_orders must be some of all_orders"),
        ({"recipe_values": "1 2"}, "as many as all_orders, 1, not 2"),
        ({"recipe_times": "x"}, "whole numbers"),
        ({"onion_time": 3}, "must be given together"),
        ({"cook_time": 3, "recipe_times": "4"}, "choose one of cook_time, recipe_times"),
        ({"cook_time": 128}, "must cook 1 to 127 steps"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_options_are_refused_in_one_sentence(options, message):
    with pytest.raises(ValueError, match="Overcooked: ") as caught:
        Simulator(Overcooked, 1, device="cpu", **options)
    assert message in str(caught.value)
