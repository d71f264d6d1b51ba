"""The form of a game's kernels: which one it gets, the reasons that doctor gives, and what g++ made of it."""

from __future__ import annotations

import json
import platform
import shlex

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.lookup import NAMES, Lookup
from toys.nim import Nim
from typer.testing import CliRunner

from gpuzoo import Simulator, registry
from gpuzoo.core import backend_cpu, nvrtc
from gpuzoo.core.codegen import program
from gpuzoo.core.headers import DEVICE
from gpuzoo.tools import cli
from gpuzoo.tools.doctor_game import Loop, examine, read_opt_info

_LOAD = nvrtc.load


def missing():
    raise RuntimeError("NVRTC was not found")


@pytest.fixture(autouse=True)
def _no_nvrtc(monkeypatch):
    """It takes longer than all else here, and one test is about it."""
    monkeypatch.setattr(nvrtc, "load", missing)


@pytest.mark.parametrize(
    ("options", "debug"), [({}, False), ({}, True), ({"simt": True}, False), ({"flags": ("-mno-avx512f",)}, False)]
)
def test_tables_of_a_loop_over_envs(options, debug):
    """Short tables, whose entries are compared with an index, give what longer ones give, for all types of numbers."""
    sim = Simulator(Lookup, 200, backend=backend_cpu.CpuBackend(**options), debug=debug)
    assert sim.program.form.branchless
    sim.reset(seed=3)
    for _ in range(3):
        sim.random_actions()
        sim.step()
        chosen = np.asarray(sim.arrays["action"]).reshape(200)
        wanted = np.stack([Lookup().tables(None)[name][chosen].astype(np.float32) for name in NAMES], 1)
        seen = np.asarray(sim.arrays["observation"]).reshape(200, -1)
        assert (seen[:, : len(NAMES)] == wanted).all()
        assert (seen[:, len(NAMES) :] == np.arange(3, 11) ** 2).all()


def form(game, **config):
    env = registry.get(game)
    return program(env, env.Config(**config), lanes=1 if type(env).single() else None).form


def changed(game, tmp_path, old, new):
    """A copy of a game with other rules, and the line of the change."""
    rules = game.source().read_text()
    assert rules.count(old) == 1
    path = tmp_path / "changed.cuh"
    path.write_text(rules.replace(old, new))
    line = rules[: rules.index(old)].count("\n") + 1
    return type("Changed", (game,), {"source": classmethod(lambda cls: path), "id": "Changed-v0"}), f"{path}:{line}"


# ---- the decision ----


def test_games_without_an_obstacle_are_branchless():
    assert form(Lamps).branchless
    assert form(Lamps).short
    assert not form(Lamps).apart
    assert form(registry.get("MNISTBandit-bsuite-v0")).apart
    assert form(registry.get("SwitchRiddle-v0")).branchless
    assert not form(registry.get("SwitchRiddle-v0")).apart


def test_short_arrays_and_turns_are_no_obstacles():
    """Where all indices are known when the rules are compiled."""
    kuhn = form(registry.get("KuhnPoker-v0"))
    assert kuhn.branchless
    assert kuhn.short
    assert kuhn.apart


@pytest.mark.parametrize(
    ("name", "config", "obstacles"),
    [
        (Glide, {}, ["arrays (path)"]),
        (Herd, {}, ["lanes", "arrays", "5 agents"]),
        (Nim, {}, ["e.reward has an index that depends on the state"]),
        ("SwitchRiddle-v0", {"num_agents": 5}, ["5 agents; the rewards of at most 4"]),
    ],
)
def test_the_declaration_is_named(name, config, obstacles):
    found = form(registry.get(name), **config)
    assert not found.branchless
    for word in obstacles:
        assert any(word in text for text in found.obstacles), found.obstacles


def test_the_line_of_the_rules_is_named(tmp_path):
    riddle = type(registry.get("SwitchRiddle-v0"))
    step = "GZ void step(Env e) {"
    game, place = changed(riddle, tmp_path, step, f"{step} /* e.alive */ once(e, [=] {{ e.terminate(0); }});")
    assert form(game).obstacles == (f"{place}: e.terminate means that an agent may leave before the others.",)


@pytest.mark.parametrize("index", ["mover", "1 - mover", "e.to_move", "a * mover"])
def test_the_line_of_an_index_that_depends_on_the_state_is_named(tmp_path, index):
    old = "e.bet[a] += "
    game, place = changed(type(registry.get("KuhnPoker-v0")), tmp_path, old, f"e.bet[{index}] += ")
    reason = f"{place}: e.bet has an index that depends on the state, so it is not held in registers."
    assert form(game).obstacles == (reason,)


# ---- what the compiler made of it ----


@pytest.mark.parametrize("name", ["CartPole-v1", "CoinGame-v0"])
def test_steps_are_vectorised(name):
    """g++ gives up at small changes of what the engine does around the rules; then a step takes three times as long."""
    assert examine(registry.get(name)).vectorised is True


@pytest.mark.rotates
@pytest.mark.parametrize("name", registry.ids())
def test_a_step_is_vectorised_or_known_not_to_be(name):
    game = registry.get(name)
    found = program(game, game.Config(), lanes=1).form
    if found.branchless and not found.packed:
        assert examine(game).vectorised is not False
    else:
        assert found.packed or found.obstacles


@pytest.mark.one_case
@pytest.mark.parametrize("name", ["Taxi-v4", "Blackjack-v1", "KuhnPoker-v0", "LeducHoldem-v0", "TicTacToe-v0"])
def test_flags_of_0_or_1_are_vectorised(name):
    """A flag that rules write as a number is not converted to bool, which g++ does not vectorise."""
    report = examine(registry.get(name))
    assert report.vectorised is True
    assert {loop.name: loop.vector_bytes > 8 for loop in report.loops}["rules"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="-mno-avx512f is an option for x86 alone")
@pytest.mark.one_case
@pytest.mark.parametrize("name", ["KuhnPoker-v0", "LeducHoldem-v0", "TicTacToe-v0"])
def test_turns_are_vectorised_without_gathers(name, monkeypatch):
    """g++ makes no gathers for CPUs that it does not know, nor for AMD's, so nobody's action is read by an index."""
    compiler = shlex.join(backend_cpu.find_compiler())
    monkeypatch.setenv("CXX", f"{compiler} -mno-avx512f -mtune=generic")
    assert examine(registry.get(name)).vectorised is True


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("u64 bits = 0x123456789abcdefull; e.x += (float)((bits >> (e.t & 63)) & 1ull);", " >> "),
        ("for (int k = 0; k < (int)e.x; ++k) e.x_dot += 0.5f * e.theta;", "control flow"),
    ],
)
def test_the_line_that_the_compiler_gives_up_at_is_named(tmp_path, rule, reason):
    game, place = changed(type(registry.get("CartPole-v1")), tmp_path, "float total_mass", f"{rule} float total_mass")
    report = examine(game())
    assert report.branchless
    assert report.vectorised is False
    (loop,) = report.loops
    assert (loop.name, loop.vector_bytes) == ("rules", 0)
    assert reason in loop.reason
    assert place in loop.reason


def test_the_reason_is_that_of_the_longest_vectors():
    lines = (DEVICE / "walk_cpu.cuh").read_text().splitlines()
    line, resets = (
        next(k for k, text in enumerate(lines, 1) if text.endswith(f"loop over envs: {name}"))
        for name in ("rules", "resets")
    )
    text = f"""\
/home/me/game.cuh:7:1: missed:   not vectorized: of another loop.
/home/me/game.cuh:7:1: missed: couldn't vectorize loop
/home/me/game.cuh:7:1: missed: not vectorized: of another loop.
walk_cpu.cuh:{line}:21: missed:   Unknown misalignment, naturally aligned
/home/me/game.cuh:31:57: missed:   not vectorized: relevant stmt not supported: _3 = 819 >> _3;
generated:112:20: missed:   not vectorized: no vectype for stmt: _86 = *_85;
 scalar_type: float
walk_cpu.cuh:{line}:21: missed: couldn't vectorize loop
generated:112:20: missed: not vectorized: no vectype for stmt: _86 = *_85;
walk_cpu.cuh:{resets}:21: optimized: loop vectorized using 64 byte vectors
walk_cpu.cuh:{resets}:21: optimized: loop vectorized using 32 byte vectors
"""
    assert read_opt_info(text) == (
        Loop("rules", 0, "relevant stmt not supported: _3 = 819 >> _3 (/home/me/game.cuh:31)"),
        Loop("resets", 64),
    )


def test_other_compilers_do_not_say(tmp_path, monkeypatch):
    compiler = tmp_path / "clang++"
    compiler.write_text('#!/bin/sh\nexec g++ -D__clang__ "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    report = examine(Lamps())
    assert report.loops is None
    assert report.vectorised is None
    assert "Only g++ says" in report.unknown
    assert report.compile_seconds["cpu"] > 0
    assert examine(Glide()).vectorised is False  # the declaration says so, whatever the compiler


def test_without_a_compiler_the_rest_is_known(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    report = examine(Lamps())
    assert report.vectorised is None
    assert "no C++ compiler" in report.unknown
    assert "cpu" not in report.compile_seconds
    assert report.bytes_per_env["total"] > report.bytes_per_env["state"] > 0


# ---- the report ----


def test_bytes_per_env_are_those_of_the_simulator():
    report = examine(Lamps())
    few, many = (Simulator(Lamps, n, device="cpu") for n in (1, 8))
    assert report.bytes_per_env["total"] * 7 == many.nbytes - few.nbytes
    assert report.bytes_per_env["state"] == 4 + 1 + 1
    # two observations of 3 numbers and two masks of 5, and an action of 2 numbers
    assert report.bytes_per_env["spaces"] == 2 * 3 * 4 + 2 * 5 + 2 * 4
    parts = ("state", "spaces", "engine")
    assert report.bytes_per_env["total"] == sum(report.bytes_per_env[part] for part in parts)


def test_the_command_explains_a_game(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")

    def run(*words):
        return CliRunner().invoke(cli.app, ["doctor", *words])

    five = ("SwitchRiddle-v0", "--config", "num_agents=5")
    with monkeypatch.context() as context:
        context.setattr(nvrtc, "load", _LOAD)
        report = json.loads(run(*five, "--json").stdout)
    assert report["vectorised"] is False
    assert report["config"] == {"num_agents": 5}
    assert report["lanes"] == {"cpu": 1, "cuda": 1}
    assert min(report["compile_seconds"].values()) > 0
    out = run(*five).stdout
    for text in ("Vectorised on a CPU", "5 agents", "Lanes", "Bytes per env", "Compile time"):
        assert text in out
    assert run("CartPole-v9").exit_code == 2
    assert run("--config", "gravity=3").exit_code == 2
