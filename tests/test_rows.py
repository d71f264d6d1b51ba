"""Observations and action masks on a GPU: the threads of a warp or a block assemble and store them together
(device/rows.cuh).

All in the thread form, with more envs than a warp has threads.
"""

from __future__ import annotations

import numpy as np
import pytest
from toys.glide import Glide

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.testing.tools import assert_same, read

ENVS = 70  #: two full warps and a few threads of a third one
GAMES = {
    "a chunk per row": ("CartPole-v1", {}),
    "chunks that begin in one row and end in the next": ("Acrobot-v1", {}),
    "turns": ("Breakout-MinAtar-v1", {}),
    "padding, and agents who wait": ("SimpleAdversary-v0", {}),
    "gaps between rows": (Glide, {"past": 64}),
    "masks": ("ConnectFour-v0", {}),
    "lanes, turns of two envs": ("CollectTreasure-v0", {}),
    "lanes, padding, rows of half sectors": ("SimpleWorldComm-v0", {}),
    "lanes, masks": ("LevelBasedForaging-v3", {"players": 8, "max_num_food": 2}),
    "an env per warp, bytes that begin anywhere": ("FourRooms-v0", {"use_visual_obs": True}),
    "windows of agents": ("SimpleTag-v0", {"num_adversaries": 30, "num_good": 12}),
    "an env per block": ("TagGridWorld-v0", {"num_taggers": 60, "use_full_observation": False}),
}


def both(name, **options):
    game, config = GAMES[name]
    game = game if isinstance(game, type) else type(gpuzoo.get(game))
    for backend in (CpuBackend(), CpuBackend(simt=True, flags=("-O1",))):
        sim = Simulator(game, ENVS, backend=backend, max_episode_steps=5, **options, **config)
        yield sim


def moved(sim, name, bytes_behind):
    """Lets an output go to an address so many bytes behind a multiple of 64."""
    old = sim.arrays[name]
    raw = np.full(old.nbytes + 128, 99, np.uint8)
    start = -raw.ctypes.data % 64 + bytes_behind
    array = raw[start : start + old.nbytes].view(old.dtype).reshape(old.shape)
    array[...] = old  # padding is written by nobody
    sim.use_outputs(sim.new_outputs({name: array}))
    return raw, start


@pytest.mark.one_case
@pytest.mark.parametrize("name", GAMES)
def test_rows_are_those_of_a_cpu(name):
    cpu, simt = sims = list(both(name, autoreset_mode="next_step"))
    for sim in sims:
        sim.reset(seed=3)
    assert_same("reset", read(cpu), read(simt))
    for step in range(8):  # waiting envs among others
        for sim in sims:
            sim.random_actions()
            sim.step()
        assert_same(f"step {step}", read(cpu), read(simt))
        for sim in sims:  # episodes of different ages
            sim.reset(mask=np.arange(ENVS) % 7 == step % 7)
    chosen = np.random.default_rng(0).permutation(ENVS)[:41]
    for sim in sims:
        sim.step(chosen)
    assert_same("some", read(cpu), read(simt))
    for sim in sims:
        sim.autoreset_mode = "same_step"
        sim.rollout(7)
    assert_same("rollout", read(cpu), read(simt))


@pytest.mark.one_case
@pytest.mark.parametrize("name", GAMES)
def test_outputs_anywhere(name):
    """Where rows begin at no multiple of 16 bytes, and nothing beside them is touched."""
    cpu, simt = sims = list(both(name))
    for sim in sims:
        sim.reset(seed=3)
    outputs = {name: moved(simt, name, 4) for name in ("observation", "action_mask") if name in simt.arrays}
    for sim in sims:
        sim.random_actions()
        sim.step()
    assert_same("elsewhere", read(cpu), read(simt))
    for output, (raw, start) in outputs.items():
        assert (raw[:start] == 99).all()
        assert (raw[start + simt.arrays[output].nbytes :] == 99).all()
