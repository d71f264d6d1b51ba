"""``debug=True``: an index of the rules that is out of range never reaches memory, and is named with file and line."""

# ruff: noqa: E501 (tables: one line per case)

from __future__ import annotations

import dataclasses
import sys
from typing import ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim

import gpuzoo
from gpuzoo import Config, EnvDef, Field, Simulator
from gpuzoo.core import nvrtc
from gpuzoo.core.codegen import program
from gpuzoo.core.definition import param
from gpuzoo.testing.tools import assert_same, random_step, read

#: statements of agent 1 (or of all, without `one`), and the sentence about them; `n` is 0, which the compiler does not know
MANY = {
    "field": ("if (one) e.cells[25 + n] = 1;", "e.cells[25] is out of range: cells has 25 elements (5 x 5)"),
    "field, negative": ("if (one) e.cells[n - 1] += 1;", "e.cells[-1] is out of range: cells has 25 elements (5 x 5)"),
    "field of one row": ("e.x[40 + a + n] = 1.f;", "e.x[40] is out of range: x has 4 elements"),
    "row": ("if (one) e.cells(5 + n, 2) = 1;", "e.cells(5, 2) is out of range: cells has 5 rows"),
    "column": ("if (one) e.cells(2, 5 + n) = 1;", "e.cells(2, 5) is out of range: cells has 5 columns"),
    "row, negative": ("if (one) e.cells(n - 3, 4) = 1;", "e.cells(-3, 4) is out of range: cells has 5 rows"),
    "action": ("if (one) e.x[a] = (float)e.action[4 + n];", "e.action[4] is out of range: the env has 4 agents"),
    "number of an action": ("if (one) e.x[a] = (float)e.action(3, 2 + n);", "e.action(3, 2) is out of range: an action has 2 numbers"),
    "reward": ("if (one) e.reward[4 + n] = 1.f;", "e.reward[4] is out of range: the env has 4 agents"),
    "alive": ("if (one) e.x[a] = (float)e.alive[n - 1];", "e.alive[-1] is out of range: the env has 4 agents"),
    "terminate": ("if (one) e.terminate(a + 3 + n);", "e.terminate(4) is out of range: the env has 4 agents"),
    "terminated": ("if (one) e.x[a] = (float)e.terminated[6 + n];", "e.terminated[6] is out of range: the env has 4 agents"),
    "table": ("if (one) e.x[a] = e.gains[6 + n];", "e.gains[6] is out of range: gains has 6 elements (2 x 3)"),
    "table, from a pointer": ("const auto gains = e.gains + 4; if (one) e.x[a] = gains[2 + n];", "e.gains[6] is out of range: gains has 6 elements (2 x 3)"),
    "agent of an observation": ("if (one) e.observation[4 + n][0] = 1.f;", "e.observation[4] is out of range: the env has 4 agents"),
    "observation": ("if (one) e.observation[1][5 + n] = 1.f;", "e.observation[1][5] is out of range: the observation of wolf_1 has 5 numbers"),
    "observation, padding": ("if (one) e.observation[3][2 + n] = 1.f;", "e.observation[3][2] is out of range: the observation of sheep_0 has 2 numbers"),
    "observation, from a pointer": ("Row out = e.observation[0]; out += 3; if (one) out[2 + n] = 1.f;", "e.observation[0][5] is out of range: the observation of wolf_0 has 5 numbers"),
    "observation, without an index": ("Row out = e.observation[0] + 4; if (one) { ++out; *out++ = 1.f; }", "e.observation[0][5] is out of range: the observation of wolf_0 has 5 numbers"),
    "observation, a copy": ("if (one) copy<3>(e.observation[a] + n, e.gains + 4);", "e.gains[6] is out of range: gains has 6 elements (2 x 3)"),
    "a window": ("if (one) e.x[a] = (float)window_bits<1, 2, 3>(e.shown, e.tiles, 18 + n, 5);", "e.tiles[25] is out of range: tiles has 25 elements (5 x 5)"),
    "a view": ("if (one) e.x[a] = seen_cell(ViewShape<2, 1, 0>(), MapView{e.tiles, e.x, 5, 19 + n, e.shown + 0, e.gains + 0}, 3)[0];", "e.tiles[25] is out of range: tiles has 25 elements (5 x 5)"),
    "agent of a mask": ("if (one) e.action_mask[n - 1][0] = 1;", "e.action_mask[-1] is out of range: the env has 4 agents"),
    "mask": ("if (one) e.action_mask[0][5 + n] = 1;", "e.action_mask[0][5] is out of range: the action mask of wolf_0 has 5 numbers"),
    "mask, padding": ("if (one) e.action_mask[3][2 + n] = 1;", "e.action_mask[3][2] is out of range: the action mask of sheep_0 has 2 numbers"),
    "in a helper": ("if (one) mark(e, 5 + n);", "e.cells(0, 5) is out of range: cells has 5 columns"),
    "the first of two": ("if (one) { e.cells[70 + n] = 1; e.x[50 + n] = 1.f; }", "e.cells[70] is out of range: cells has 25 elements (5 x 5)"),
}  # fmt: skip
#: the same in a game with one agent
ONE = {
    "field": ("e.past[7 + n] = 1.f;", "e.past[7] is out of range: past has 7 elements"),
    "action": ("e.past[0] = e.action[2 + n];", "e.action[2] is out of range: an action has 2 numbers"),
    "observation": ("e.observation[n - 1] = 1;", "e.observation[-1] is out of range: the observation of agent_0 has 8 numbers"),
    "words": ("words(e.observation)[2 + n] = 1;", "words(e.observation)[2] is out of range: the observation of agent_0 has 2 words"),
    "table": ("e.past[0] = e.gains[n + 3];", "e.gains[3] is out of range: gains has 3 elements"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class FaultConfig(Config):
    fault: float = param(0.0, doc="number of the statement that is executed in step 2")


class Many(EnvDef):
    """Groups with unlike spaces."""

    id = "Many-v0"
    Config = FaultConfig
    action_mask = True
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg):
        return {"wolf": 3, "sheep": 1}

    def lanes(self, cfg):
        return 4

    def observation_space(self, cfg, group):
        return spaces.Box(-9, 9, (5 if group == "wolf" else 2,), np.float32)

    def action_space(self, cfg, group):
        return spaces.MultiDiscrete([3, 2]) if group == "wolf" else spaces.Discrete(2)

    def fields(self, cfg):
        return {"cells": Field("int8", (5, 5)), "x": Field("float32", ("agents",)), "tiles": Field("uint8", (5, 5))}

    def tables(self, cfg):
        return {"gains": np.ones((2, 3), np.float32), "shown": np.zeros(32, np.uint8)}


class One(EnvDef):
    """One agent."""

    id = "One-v0"
    Config = FaultConfig
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def observation_space(self, cfg, group):
        return spaces.Box(0, 255, (8,), np.uint8)

    def action_space(self, cfg, group):
        return spaces.Box(-1, 1, (2,), np.float32)

    def fields(self, cfg):
        return {"past": Field("float32", (7,))}

    def tables(self, cfg):
        return {"gains": np.ones(3, np.float32)}


MANY_RULES = """GZ void mark(Env e, int column) {
  e.cells(0, column) = 1;  // of "in a helper"
}
GZ void reset(Env e) {
  lanes(e, 25, [=](int k) {
    e.cells[k] = 0;
    e.tiles[k] = 0;
  });
  lanes(e, AGENTS, [=](int a) { e.x[a] = uniform(e, a, 0, -1.f, 1.f); });
}
GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) { e.x[a] += 0.25f * (float)e.action[a]; });
  lanes(e, AGENTS, [=](int a) {
    const int n = e.t / 1000, fault = e.t == 2 ? (int)e.cfg.fault : 0;
    const bool one = a == 1;
STATEMENTS
  });
  lanes(e, AGENTS, [=](int a) { e.reward[a] = e.x[a]; });
}
GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    for (int k = 0; k < (a < WOLFS ? 5 : 2); ++k) {
      e.observation[a][k] = (float)e.cells(k, a);
      e.action_mask[a][k] = 1;
    }
  });
}
"""
ONE_RULES = """GZ void reset(Env e) {
  lanes(e, 7, [=](int k) { e.past[k] = 0.f; });
}
GZ void step(Env e) {
  once(e, [=] {
    const int n = e.t / 1000, fault = e.t == 2 ? (int)e.cfg.fault : 0;
    e.reward = e.past[e.t % 7] += e.action[1];
STATEMENTS
  });
}
GZ void observe(Env e) {
  lanes(e, 8, [=](int k) { e.observation[k] = (u8)k; });
}
"""


def with_faults(game, rules, faults, folder):
    statements = [
        f"    if (fault == {k + 1}) {{ {statement} }}  // {name}"
        for k, (name, (statement, _)) in enumerate(faults.items())
    ]
    path = folder / f"{game.__name__.lower()}.cuh"
    path.write_text(rules.replace("STATEMENTS", "\n".join(statements)))
    return type(game.__name__, (game,), {"source": classmethod(lambda cls: path)}), path


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """By name: the game, its rules and its faults."""
    folder = tmp_path_factory.mktemp("faulty")
    return {
        game.__name__: (*with_faults(game, rules, faults, folder), faults)
        for game, rules, faults in ((Many, MANY_RULES, MANY), (One, ONE_RULES, ONE))
    }


def line_of(path, name):
    lines = path.read_text().splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.endswith((f"// {name}", f'// of "{name}"')))


CASES = [("Many", name) for name in MANY] + [("One", name) for name in ONE]


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize(("name", "fault"), CASES, ids=[f"{name}-{fault}" for name, fault in CASES])
def test_sentence(name, fault, device, faulty):
    game, path, faults = faulty[name]
    which = np.zeros(6, np.float32)
    which[[3, 5]] = list(faults).index(fault) + 1
    sim = Simulator(game, 6, device=device, threads=2, debug=True, fault=which)
    sim.reset(seed=0)
    random_step(sim)
    with pytest.raises(IndexError) as found:
        random_step(sim)
    assert str(found.value) == f"{path}:{line_of(path, fault)}: {faults[fault][1]}; env 3, step 2."
    random_step(sim)  # it is told once, and the batch goes on
    sim.close()


@pytest.mark.parametrize("name", ["Many", "One"])
def test_memory_is_safe_and_other_envs_are_not_concerned(name, faulty):
    """After each fault in env 1, what the other envs have is what they have without it; a reset begins anew."""
    game, _, faults = faulty[name]
    want = Simulator(game, 3, device="cpu", debug=True, fault=np.zeros(3))
    sim = Simulator(game, 3, device="cpu", debug=True, fault=np.zeros(3))
    for fault in range(1, len(faults) + 1):
        sim.set_params(fault=[0, fault, 0])
        for s in (want, sim):
            s.reset(seed=fault)
        want.rollout(5)
        with pytest.raises(IndexError, match="env 1, step 2"):
            sim.rollout(5)
        assert_same(f"envs beside fault {fault}", read(want, [0, 2]), read(sim, [0, 2]))


def test_reads_are_zero_and_writes_are_lost(faulty):
    game, _, faults = faulty["Many"]
    for fault in ("table", "alive", "terminated", "number of an action"):
        sim = Simulator(game, 1, device="cpu", debug=True, fault=[list(faults).index(fault) + 1])
        sim.reset(seed=0)
        with pytest.raises(IndexError):
            sim.rollout(2)
        assert sim.arrays["x"][0, 1] == 0
        assert sim.arrays["x"][0, [0, 2, 3]].all()


def test_interfaces_raise_and_go_on(faulty):
    game, path, faults = faulty["One"]
    message = f"{path}:{line_of(path, 'field')}: {faults['field'][1]}; env 0, step 2."
    envs = gpuzoo.VectorEnv(game, 2, device="cpu", debug=True, fault=1.0)
    pool = gpuzoo.make_pool(game, 2, 2, device="cpu", debug=True, fault=1.0)
    actions = np.zeros((2, 2), np.float32)
    for env in (envs, pool):
        env.reset()
        env.step(actions)
        with pytest.raises(IndexError) as found:
            env.step(actions)
        assert str(found.value) == message
        env.step(actions)
        env.close()


# ---- the checked form gives the bits of the other one ----


@pytest.mark.one_case
@pytest.mark.parametrize("toy", [Glide, Herd, Lamps, Nim], ids=lambda toy: toy.id)
@pytest.mark.parametrize("device", ["cpu", "simt"])
def test_same_bits(toy, device):
    """Fields with and without lanes, groups, deaths, masks, tables, turns, short episodes: each on both kinds of device."""
    n, steps = (9, 70) if device == "cpu" else (2, 12)
    mine, other = (
        Simulator(toy, n, device=device, debug=debug, max_episode_steps=17, autoreset_mode="same_step")
        for debug in (True, False)
    )
    for sim in (mine, other):
        sim.reset(seed=3)
        sim.rollout(steps)
    assert_same("with and without debug", read(other), read(mine))


def test_the_other_form_has_no_checks():
    for debug in (False, True):
        checked = program(Herd(), Herd.Config(), debug=debug)
        assert ("Subscript" in checked.code) == debug
        assert ("faults" in checked.store) == debug


@pytest.mark.rotates
@pytest.mark.parametrize("name", ["Many", "One"])
def test_nvrtc_compiles_it(name, faulty):
    if sys.platform != "linux":  # where the dev extra brings NVRTC
        pytest.skip("NVRTC comes with the dev extra on Linux only")
    game, path, _ = faulty[name]
    cubin, _ = nvrtc.compile_cubin(program(game(), game.Config(), debug=True).code, name, "sm_90")
    assert str(path).encode() in cubin, "without the file's name it cannot say where a fault is"
