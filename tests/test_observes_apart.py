"""`observes_apart` changes when a CPU observes, and nothing that it computes."""

from __future__ import annotations

import numpy as np
import pytest
from batches import advance

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.testing.tools import assert_same, read

ENVS = 37
#: those that declare it, and games of turns in which the kernel chooses moves or masks them
GAMES = [
    *(game for game in gpuzoo.ids() if gpuzoo.get(game).observes_apart),
    "ConnectFour-v0",
    "LeducHoldem-v0",
    "Chess-v0",
]


def played(game: str, apart: bool, mode: str):
    """All arrays after each of some steps, in which all happens that may happen to a batch."""
    env = gpuzoo.get(game)
    env.observes_apart = apart
    sim = Simulator(env, ENVS, device="cpu", threads=1, autoreset_mode=mode, max_episode_steps=5)
    assert f"#define GZ_OBSERVES_APART {int(apart)}" in sim.program.code
    chance = np.random.default_rng(0)
    sim.reset(seed=3)
    for step in range(18):
        sim.random_actions()
        advance(sim, step, chance)
        yield read(sim)


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("name", GAMES)
def test_bits_are_the_same(name, mode):
    for step, (want, got) in enumerate(zip(played(name, False, mode), played(name, True, mode), strict=True)):
        assert_same(f"step {step}", want, got)
