"""The dialect: what rules may not say, each with file, line and reason; and compilers' messages about the author's file."""

# ruff: noqa: E501 (tables: one line per case)

from __future__ import annotations

import re
import shutil
import sys

import numpy as np
import pytest
from toys.glide import Glide

from gpuzoo import Simulator
from gpuzoo.core import nvrtc
from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.codegen import program
from gpuzoo.core.dialect import FORBIDDEN, DialectError, check_rules, inline_includes
from gpuzoo.testing.tools import assert_same, read

HEAD = """GZ void reset(Env e) {
  once(e, [=] { e.steps = 0; });
}
GZ void observe(Env e) {
  once(e, [=] { e.observation[0] = 0.f; });
}
"""
LINE = HEAD.count("\n") + 2  # of the first line in the step


def step(*lines: str) -> str:
    return HEAD + "GZ void step(Env e) {\n" + "\n".join(lines) + "\n}\n"


#: rules -> line, reason
BROKEN = {
    "double": (step("  double x = 0.f;"), LINE, "'double' is not allowed in rules: use float"),
    "double literal": (step("  float x = 0.5;"), LINE, "'0.5' is a double: write 0.5f"),
    "exponent literal": (step("", "  float x = 1e-3;"), LINE + 1, "'1e-3' is a double: write 1e-3f"),
    "library mathematics": (step("  float x = sinf(1.f);"), LINE, "'sinf' is not allowed in rules: use the engine's own functions"),
    "fast mathematics": (step("  float x = __expf(1.f);"), LINE, "'__expf' is not allowed"),
    "rand": (step("  int x = rand();"), LINE, "'rand' is not allowed in rules: use random_bits, uniform or random_int"),
    "clock": (step("  long x = clock64();"), LINE, "'clock64' is not allowed in rules: a step depends on nothing but"),
    "thread index": (step("  int x = threadIdx.x;"), LINE, "'threadIdx' is not allowed in rules: lanes are reached through lanes"),
    "shared memory": (step("  __shared__ int x;"), LINE, "'__shared__' is not allowed in rules: declare a Field"),
    "barrier": (step("  __syncthreads();"), LINE, "'__syncthreads' is not allowed in rules: every region ends with the barrier"),
    "static": (step("  static int x = 0;"), LINE, "'static' is not allowed in rules: state lives in Fields"),
    "printf": (step('  printf("x");'), LINE, "'printf' is not allowed in rules: kernels do not print"),
    "assembly": (step('  asm("nop");'), LINE, "'asm' is not allowed"),
    "macro": ("#define N 3\n" + step(), 1, "the only directives allowed in rules are #include and #pragma once"),
    "conditional": (step("#ifdef GZ_CUDA", "#endif"), LINE, "the only directives allowed"),
    "system header": ("#include <cmath>\n" + step(), 1, "#include cmath: rules include only files of their own folder"),
    "header elsewhere": ('#include "../other.cuh"\n' + step(), 1, r"#include \.\./other\.cuh: rules include only files of their own folder"),
    "no such header": ('\n#include "other.cuh"\n' + step(), 2, "#include other.cuh: no such file"),
    "write outside": (step("  e.steps = 1;"), LINE, r"e\.steps outside of a region: wrap it in lanes, once, broadcast or a reduction"),
    "read outside": (step("  if (e.steps > 1) return;"), LINE, r"e\.steps outside of a region"),
    "read in an argument": (step("  lanes(e, e.steps, [=](int a) { e.speed[a] = 0.f; });"), LINE, r"e\.steps outside of a region"),
    "reward outside": (step("", "", "  e.reward = 1.f;"), LINE + 2, r"e\.reward outside of a region"),
    "terminate outside": (step("  e.terminate_all();"), LINE, r"e\.terminate_all outside of a region"),
    "by reference": (step("  once(e, [&] { e.steps = 0; });"), LINE, r"a region's function captures by value: write \[=\]"),
    "one variable": (step("  once(e, [e] { e.steps = 0; });"), LINE, r"write \[=\]"),
    "nested": (step("  once(e, [=] {", "    lanes(e, 2, [=](int a) { e.speed[a] = 0.f; });", "  });"), LINE + 1, "lanes inside another region: a region cannot contain a region"),
    "reduction inside": (step("  lanes(e, 2, [=](int a) { lane_sum(e, 2, [=](int b) { return 1; }); });"), LINE, "lane_sum inside another region"),
    "no function": (step("  once(e, f);"), LINE, r"once wants a function \[=\]"),
    "helper with regions inside": (
        "GZ void all(Env e) {\n  once(e, [=] { e.steps = 1; });\n}\n" + step("  once(e, [=] { all(e); });"),
        LINE + 3,
        "all has regions of its own, so it cannot be called inside a region",
    ),
    "helper without regions outside": (
        "GZ void one(Env e) {\n  e.steps = 1;\n}\n" + step("  one(e);"),
        LINE + 3,
        "one works on the state of one lane: call it inside a region",
    ),
    "a cell is read beside a scatter": (step("  lanes(e, 2, [=](int a) {", "    scatter_add(e.count[e.cell[a]], 1);", "    e.seen[a] = e.count[a];", "  });"), LINE + 2, r"e\.count beside scatter_add in one region: read it or write it otherwise in another"),
    "a cell decides on a cell": (step("  lanes(e, 2, [=](int a) { scatter_max(e.best[e.best[a]], a); });"), LINE, r"e\.best beside scatter_max"),
    "two scatters": (step("  lanes(e, 2, [=](int a) {", "    scatter_add(e.count[a], 1);", "    scatter_or(e.count[0], 2);", "  });"), LINE + 2, r"scatter_or into e\.count, which this region also gives to scatter_add"),
    "a scatter in a helper": ("GZ void vote(Env e, int a) {\n  scatter_add(e.count[a], 1); e.count[0] = 0;\n}\n" + step("  lanes(e, 2, [=](int a) { vote(e, a); });"), 2, r"e\.count beside scatter_add"),
    "a scatter outside": (step("  scatter_add(e.count[0], 1);"), LINE, r"e\.count outside of a region"),
    "never closed": (step("  once(e, [=] { e.steps = 0; ;"), None, "is never closed"),
    "no step": (HEAD, 1, r"rules must define GZ void step\(Env e\)"),
    "after a comment": (step("  /* two", "  lines */ double x;"), LINE + 1, "'double' is not allowed"),
}  # fmt: skip


def check(folder, text):
    path = folder / "toy.cuh"
    path.write_text(text)
    check_rules(inline_includes(path))


@pytest.mark.parametrize("case", BROKEN)
def test_refused_with_file_and_line(case, tmp_path):
    text, line, reason = BROKEN[case]
    with pytest.raises(DialectError, match=reason) as found:
        check(tmp_path, text)
    place = rf"{re.escape(str(tmp_path / 'toy.cuh'))}:{line or '[0-9]+'}: "
    assert re.match(place, str(found.value)), str(found.value)
    assert isinstance(found.value, ValueError)


@pytest.mark.parametrize("name", FORBIDDEN)
def test_every_forbidden_name(name, tmp_path):
    with pytest.raises(DialectError, match=re.escape(f"'{name}' is not allowed in rules: {FORBIDDEN[name]}")):
        check(tmp_path, step(f"  int x = {name} + 1;"))


ALLOWED = {
    "words in comments and texts": step("  // double rand() static", "  /* e.steps = 1.0 */"),
    "members with forbidden names": step("  once(e, [=] { e.time = 1; e.clock[2] = 3.f; });"),
    "uniform members": step("  int t = e.t + e.cfg.past + (int)e.episode + (int)e.seed + e.max_steps;"),
    "hexadecimal": step("  unsigned x = 0x1e5u;"),
    "helpers": "GZ float one(Env e, int a) {\n  return e.speed[a];\n}\n"
    + step("  float s = lane_sum(e, 2, [=](int a) { return one(e, a); });", "  once(e, [=] { e.reward = s; });"),
    "collective helpers": "GZ void all(Env e) {\n  once(e, [=] { e.steps = 1; });\n}\n" + step("  all(e);"),
    "a scatter, and in the next region what came of it": step(
        "  lanes(e, 2, [=](int a) { scatter_add(e.count[e.cell[a]], 1); scatter_add(e.count[0], e.cell[a]); });",
        "  lanes(e, 2, [=](int a) { e.seen[a] = e.count[a]; });",
    ),
    "other capture in plain lambdas": step("  once(e, [=] { auto f = [=](int x) { return x; }; e.steps = f(1); });"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_accepted(case, tmp_path):
    check(tmp_path, ALLOWED[case])


def test_all_games_keep_the_dialect(game):
    check_rules(inline_includes(game.source()))


def test_includes_are_inlined_once_with_their_own_lines(tmp_path):
    (tmp_path / "shared.cuh").write_text("#pragma once\nGZ int three() { return 3; }\n")
    (tmp_path / "more.cuh").write_text('#include "shared.cuh"\nGZ int four() { return 4; }\n')
    main = tmp_path / "toy.cuh"
    main.write_text('#include "shared.cuh"\n#include "more.cuh"\n' + step("  int x = 1.0;"))
    pieces = inline_includes(main)
    assert sum("three()" in piece.source for piece in pieces) == 1
    with pytest.raises(DialectError, match=rf"toy\.cuh:{LINE + 2}: '1.0' is a double"):
        check_rules(pieces)
    (tmp_path / "shared.cuh").write_text("\nGZ float bad() { return 0.5; }\n")
    with pytest.raises(DialectError, match=r"shared\.cuh:2: '0.5' is a double"):
        check_rules(inline_includes(main))


# ---- what the dialect cannot see, the compiler says about the author's line ----


def wrong_game(folder, old="e.steps += 1;", new="e.stepz += 1;"):
    rules = Glide.source().read_text()
    assert old in rules
    path = folder / "wrong.cuh"
    path.write_text(rules.replace(old, new))
    line = path.read_text()[: path.read_text().index(new)].count("\n") + 1
    return type("Wrong", (Glide,), {"id": "Wrong-v0", "source": classmethod(lambda cls: path)}), path, line


@pytest.mark.parametrize("compiler", ["c++", "clang++", pytest.param("zig", marks=pytest.mark.rotates)])
def test_host_compiler_names_the_authors_line(tmp_path, monkeypatch, compiler):
    if compiler == "zig":
        monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang cc")
    elif shutil.which(compiler):
        monkeypatch.setenv("CXX", compiler)
    else:
        pytest.skip(f"no {compiler}")
    game, path, line = wrong_game(tmp_path)
    with pytest.raises(
        RuntimeError, match=rf"Wrong-v0 does not compile:\n.*{re.escape(str(path))}:{line}:.*error: .*stepz"
    ):
        Simulator(game, 1, device="cpu")


def test_nvrtc_names_the_authors_line(tmp_path):
    if sys.platform != "linux":  # where the dev extra brings NVRTC
        pytest.skip("NVRTC comes with the dev extra on Linux only")
    game, _, line = wrong_game(tmp_path)
    code = program(game(), game.Config()).code
    with pytest.raises(RuntimeError, match=rf"Wrong-v0 does not compile for sm_90:\n.*wrong\.cuh\({line}\): error"):
        nvrtc.compile_cubin(code, "Wrong-v0", "sm_90")


def test_broken_rules_stop_a_game(tmp_path):
    game, path, line = wrong_game(tmp_path, new="e.steps += (int)0.5;")
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}:{line}: '0.5' is a double"):
        Simulator(game, 1, device="cpu")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            "scatter_add(e.speed[0], 1);",
            r"scatter_add into e\.speed, which is float32: cells are fields of int32, uint32, uint64",
        ),
        ("scatter_max(e.steps, 0.5f);", "a_scatter_takes_integers"),
    ],
)
def test_scatters_are_of_integers(tmp_path, rules, message):
    game, path, line = wrong_game(tmp_path, new=rules)
    with pytest.raises((ValueError, RuntimeError), match=rf"(?s){re.escape(str(path))}:{line}:.*{message}"):
        Simulator(game, 1, device="cpu")


# ---- code generation and its cache ----


def test_generated_code_depends_on_constants_only():
    codes = {program(Glide(), Glide.Config(**config)).code for config in ({}, {"wind": 0.7}, {"past": 3})}
    assert len(codes) == 1, "run-time parameters must not give another program"
    assert program(Glide(), Glide.Config(past=4)).code not in codes
    assert program(Glide(), Glide.Config(), {"wind": np.zeros(2, np.float32)}).code not in codes


def test_the_unit_stands_alone(game):
    code = program(game(), game.Config()).code
    outside = {line for line in code.splitlines() if line.lstrip().startswith("#include")}
    assert outside <= {"#include <pthread.h>", "#include <unistd.h>", "#include <sched.h>"}


def test_cache_of_host_programs(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    code = 'extern "C" int f() { return 1; }'
    path = compile_host(code, "toy")
    stamp = path.stat().st_mtime_ns
    assert compile_host(code, "toy").stat().st_mtime_ns == stamp
    assert len({path, compile_host(code + " ", "toy"), compile_host(code, "toy", ("-DX=1",))}) == 3
    assert not [p for p in path.parent.iterdir() if p.is_dir()], "temporary folders are gone"


@pytest.mark.rotates
def test_zig_gives_the_same_bits(game, monkeypatch):
    """The compiler that pip brings, and the machine's own."""
    pytest.importorskip("ziglang")
    first = Simulator(game, 3, device="cpu", max_episode_steps=20)
    monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang cc")
    second = Simulator(game, 3, device="cpu", max_episode_steps=20)
    for sim in (first, second):
        sim.reset(seed=0)
        sim.rollout(60)
    assert_same("c++ and zig", read(first), read(second))
    assert np.isfinite(first.arrays["reward"]).all()
