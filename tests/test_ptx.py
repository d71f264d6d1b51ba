"""The GPU's own code on a CPU: NVRTC's PTX of every game and trainer's kernel gives the CPU's bits (tests/ptx).

It cannot show what ptxas makes of PTX. That is why the rounding instructions are checked by name: ptxas may fuse
``mul.f32`` and ``add.f32``, but never ``mul.rn.f32`` and ``add.rn.f32``.
"""

from __future__ import annotations

import dataclasses
import functools
import sys

import numpy as np
import pytest
from ptx.exact import INSTRUCTION, fused, inexact, unwritten_fusions
from ptx.host import OPTIONS, PtxBackend, ptx_of
from test_compile import nvrtc_missing
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core import nvrtc, occupancy
from gpuzoo.core.codegen import program
from gpuzoo.core.occupancy import ALONE, ROLLED
from gpuzoo.testing.tools import assert_same, read

pytestmark = pytest.mark.skipif(sys.platform != "linux" and bool(nvrtc_missing()), reason=nvrtc_missing())

NAN = 0x7FC00000


# ---- the same bits ----


def assert_ptx_equals_cpu(game, num_envs, mode, rollout, steps, lanes=None, backend=PtxBackend, **config):
    options = {"autoreset_mode": mode, "max_episode_steps": 7, **config}
    sims = [
        Simulator(game, num_envs, device="cpu", **options),
        Simulator(game, num_envs, backend=backend(), lanes=lanes, **options),
    ]

    def same(what, *calls):
        for sim in sims:
            for name, *arguments in calls:
                getattr(sim, name)(*arguments)
        assert_same(f"{mode}, {what}", *({**read(sim), "action": np.array(sim.arrays["action"])} for sim in sims))

    same("reset", ("reset", 11))
    same("step", ("random_actions",), ("step",))
    same("rollout", ("rollout", rollout))
    rng = np.random.default_rng(3)
    for k in range(steps):  # actions that no policy would take
        bits = rng.integers(0, 2**32, sims[0].arrays["action"].shape, np.uint32)
        bits[rng.random(bits.shape) < 0.4] = NAN
        for sim in sims:
            sim.arrays["action"][...] = bits.view(sim.layout.action_dtype)
        same(f"illegal actions, step {k}", ("step",))
    some = np.arange(num_envs) % 2 == 0
    same("reset of some", ("reset", None, some))
    same("step of some", ("random_actions",), ("step", np.flatnonzero(some)))
    same("observed again", ("set_state", {}))
    for sim in sims:
        sim.between_episodes = read
    for k in range(7 * (mode == "same_step")):
        same(f"step {k} in halves", ("random_actions",), ("step",))
    return sims[1].program.lanes


@pytest.mark.rotates
def test_the_bits_of_the_cpu(game):
    lanes = game().lanes(game.Config())
    for mode in ("same_step", "next_step", "disabled"):
        # more than one block of 128 threads, the last of them with threads that have no env
        assert_ptx_equals_cpu(game, max(2, 128 // lanes + 1), mode, rollout=12, steps=3)


@pytest.mark.rotates
@pytest.mark.parametrize("lanes", [512, 1024])
@pytest.mark.parametrize("name", ["TagContinuous-v0", "TagGridWorld-v0"])
def test_widest_games(name, lanes):
    game = type(gpuzoo.get(name))
    config = max(game.benchmarks.values(), key=lambda config: game().lanes(game.Config(**config)))
    assert assert_ptx_equals_cpu(game, 2, "same_step", 2, 1, lanes, **config) == lanes


@pytest.mark.rotates
@pytest.mark.parametrize(("name", "config"), [
    ("Hanabi-v0", {"observation_type": "beliefs"}),
    ("Chess-v0", {"observation_type": "pettingzoo"}),
    ("Go-v0", {"observation_type": "pettingzoo"}),
])  # fmt: skip
def test_other_observations(name, config):
    assert_ptx_equals_cpu(type(gpuzoo.get(name)), 9, "same_step", 12, 3, **config)


@pytest.mark.rotates
@pytest.mark.parametrize("name", [name for name in gpuzoo.ids() if gpuzoo.get(name).turn is not None])
def test_rows_of_the_agent_to_move(name):
    """With its kernels' registers, none of which spill."""
    game = type(gpuzoo.get(name))
    lanes = game().lanes(game.Config())
    for mode in ("same_step", "next_step"):
        assert_ptx_equals_cpu(game, max(2, 128 // lanes + 1), mode, rollout=12, steps=3, observers="mover")
    made = program(game(), game.Config(), of_mover_only=True)
    usage = occupancy.usage(nvrtc.bounded_cubin(made.code, name, "sm_90", made.block).log)
    assert {kernel: usage[kernel].local for kernel in ("step", "rollout")} == {"step": 0, "rollout": 0}


@pytest.mark.rotates
@pytest.mark.parametrize("lanes", [1, 2, 8, 64])
def test_other_lanes(lanes):
    """More agents than lanes, and reductions over several groups of 32."""
    config = {"wolfs": 5, "sheeps": 40, "cells": 60, "mood": "wild"}
    assert_ptx_equals_cpu(Herd, 3, "next_step", 9, 2, lanes, **config)


def with_macro(option):
    """A backend whose programs are compiled with an option of `occupancy`."""
    return functools.partial(PtxBackend, f"#define {option[2:].replace('=', ' ')}\n")


@pytest.mark.rotates
@pytest.mark.parametrize("name", ["SimpleSpread-v0", "CoinGame-v0"])
def test_loops_over_agents(name):
    """One agent after the other, as where the unrolled form takes too many registers."""
    assert_ptx_equals_cpu(type(gpuzoo.get(name)), 33, "same_step", 9, 2, backend=with_macro(*ROLLED))


@pytest.mark.one_case
@pytest.mark.parametrize("name", ["Catch-bsuite-v0", "TicTacToe-v0", "Lamps-v0"])
def test_without_help(name):
    """Envs that end alone, as where the help of their neighbours takes too many registers."""
    game = Lamps if name == Lamps.id else type(gpuzoo.get(name))
    assert_ptx_equals_cpu(game, 33, "same_step", 9, 2, backend=with_macro(*ALONE))


@pytest.mark.rotates
def test_parameters_per_env():
    gravity = np.linspace(5, 15, 130, dtype=np.float32)
    assert_ptx_equals_cpu(type(gpuzoo.get("CartPole-v1")), 130, "same_step", 9, 2, gravity=gravity)


@pytest.mark.one_case
@pytest.mark.parametrize(("name", "old", "new"), [
    ("Acrobot-v1", "__fmaf_rn(a, b, c)", "a * b + c"),
    ("Herd-v0", "__syncwarp(warp_mask());", ";"),
    ("Herd-v0", "__umulhi(a, b)", "__umulhi(a, b) + (blockIdx.x > 0)"),
])  # fmt: skip
def test_a_fault_that_only_a_gpu_would_have_is_found(name, old, new):
    class Faulty(PtxBackend):
        def compile(self, program):
            assert old in program.code
            return super().compile(dataclasses.replace(program, code=program.code.replace(old, new)))

    game = Herd if name == Herd.id else type(gpuzoo.get(name))
    with pytest.raises(AssertionError, match="on one side and"):
        assert_ptx_equals_cpu(game, 17, "same_step", 9, 2, backend=Faulty)


@pytest.mark.rotates
@pytest.mark.parametrize("toy", [Glide, Herd])
def test_the_checked_form(toy):
    """With ``debug=True``, where PTX has functions that are called."""
    cpu = Simulator(toy, 17, device="cpu", max_episode_steps=7, autoreset_mode="same_step")
    ptx = Simulator(toy, 17, backend=PtxBackend(), debug=True, max_episode_steps=7, autoreset_mode="same_step")
    for sim in (cpu, ptx):
        sim.reset(seed=4)
        sim.rollout(15)
    assert_same("without and with debug=True", read(cpu), read(ptx))


# ---- instructions ----


@pytest.mark.by_kind
def test_instructions(game):
    code = program(game(), game.Config()).code
    ptx = ptx_of(code, game.id)
    assert inexact(ptx) == set()
    assert unwritten_fusions(code, ptx) == set()


def test_lines_of_the_source_change_no_instruction():
    code = program(gpuzoo.get("CartPole-v1"), gpuzoo.get("CartPole-v1").Config()).code
    plain = nvrtc.compile_ptx(code, "plain", "compute_90")
    with_lines = ptx_of(code, "CartPole-v1")
    assert ".loc" in with_lines
    assert ".loc" not in plain
    assert INSTRUCTION.findall(plain) == INSTRUCTION.findall(with_lines)


@pytest.mark.parametrize(("expression", "option", "found"), [
    ("x * y", ("-ftz=true",), {"mul.rn.ftz.f32"}),
    ("x / y", ("-prec-div=false",), {"div.full.f32"}),
    ("sqrtf(x)", ("-prec-sqrt=false",), {"sqrt.approx.f32"}),
    ("__sinf(x)", (), {"sin.approx.f32"}),
    ("__saturatef(x)", (), {"cvt.sat.f32.f32"}),
    ("__fadd_rz(x, y)", (), {"add.rz.f32"}),
    ("x * 0.1", (), {"mul.rn.f64", "cvt.f64.f32", "cvt.rn.f32.f64"}),
    ("x * y + 1.f", (), set()),
])  # fmt: skip
def test_inexact_instructions_are_found(expression, option, found):
    code = f'extern "C" __global__ void f(float x, float y, float *out) {{ *out = {expression}; }}'
    options = [o for o in OPTIONS if o.partition("=")[0] not in {o.partition("=")[0] for o in option}]
    assert inexact(nvrtc.compile_ptx(code, "f", "compute_90", (*options, *option))) == found


def test_a_fusion_that_is_not_written_is_found():
    code = '\n#line 7 "rules.cuh"\nextern "C" __global__ void f(float x, float *y) {\n  *y = x * x + *y;\n}\n'
    options = [o for o in OPTIONS if not o.startswith("-fmad")]
    ptx = nvrtc.compile_ptx(code, "f", "compute_90", (*options, "-fmad=true"))
    assert unwritten_fusions(code, ptx) == {("rules.cuh", 8)}
    assert not unwritten_fusions(code, nvrtc.compile_ptx(code, "f", "compute_90", OPTIONS))
    written = code.replace("x * x + *y", "__fmaf_rn(x, x, *y)")
    assert list(fused(nvrtc.compile_ptx(written, "f", "compute_90", OPTIONS)))
    assert not unwritten_fusions(written, nvrtc.compile_ptx(written, "f", "compute_90", OPTIONS))
