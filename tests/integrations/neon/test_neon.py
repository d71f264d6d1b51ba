"""Packed rules have the same bits on a machine with NEON, in packs of four, as on this one.

They are compiled for AArch64 by zig, and run by an emulator.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from emulated import Emulated, compiled
from toys.rafts import Rafts
from toys.swings import Swings

import gpuzoo
from gpuzoo import EnvDef, Simulator
from gpuzoo.core.codegen import program
from gpuzoo.testing.tools import assert_same, read
from gpuzoo.tools import scaffold

#: Pusher's bodies touch each other: cylinder, capsules and spheres; Hopper's the ground, under RK4
GAMES = {"HalfCheetah-v5": 300, "Hopper-v5": 300, "Pusher-v5": 300}
ENVS = 11  # no multiple of any width


def assert_same_bits(game: type[EnvDef], steps: int, folder: Path) -> None:
    """Of all that a step leaves, while episodes begin and end."""
    sims = [Simulator(game, ENVS, backend=Emulated(folder), max_episode_steps=70)]
    sims.append(Simulator(game, ENVS, device="cpu", max_episode_steps=70))
    for sim in sims:
        sim.reset(seed=4)
    for step in range(steps):
        for sim in sims:
            sim.random_actions()
            sim.step(np.arange(0, ENVS, 3) if step % 5 == 4 else None)
        assert_same(f"NEON and here, step {step}", *map(read, sims))
    assert read(sims[0])["final_length"].any(), "no episode ended"


@pytest.mark.parametrize("toy", [Swings, Rafts])
def test_toys(toy, tmp_path):
    assert_same_bits(toy, 200, tmp_path)


@pytest.mark.rotates
@pytest.mark.timeout(900)
@pytest.mark.parametrize("robot", GAMES)
def test_robots(robot, tmp_path):
    assert_same_bits(type(gpuzoo.get(robot)), GAMES[robot], tmp_path)


def test_the_packed_example(tmp_path, monkeypatch):
    """The game that `gpuzoo new --packed` writes."""
    scaffold.create("neon_swing", tmp_path, scaffold.template(None, False, False, False, True))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert_same_bits(importlib.import_module("neon_swing.neon_swing").NeonSwing, 200, tmp_path)


def test_a_pack_is_a_register_of_four(tmp_path):
    """The rules become instructions on four numbers (FMLA Vd.4S), not loops over them."""
    code = program(Swings(), Swings.Config()).code
    image = compiled(code, tmp_path).read_bytes()
    words = np.frombuffer(image[: len(image) // 4 * 4], np.uint32)
    assert np.count_nonzero(words & 0xFFE0FC00 == 0x4E20CC00) > 50
