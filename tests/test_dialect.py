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
from gpuzoo.core.headers import DEVICE
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
    "the draw of an order": (step("  in_random_order(e, AGENTS, 3, [=](int a) { e.x[a] = 0.f; });", "  lanes(e, AGENTS, [=](int b) { e.x[b] = uniform(e, b, 3, 0.f, 1.f); });"), LINE + 1, rf"draw 3 of one agent is drawn in line {LINE} of toy\.cuh already"),
    "a scatter outside": (step("  scatter_add(e.count[0], 1);"), LINE, r"e\.count outside of a region"),
    "pointer": (step("", "  once(e, [=] { float *out = e.observation; });"), LINE + 1, r"'float \*' is a pointer whose indices debug=True cannot check: write Row"),
    "pointer to a table": (step("  once(e, [=] { const u8 *out = e.map; });"), LINE, r"'u8 \*' is a pointer"),
    "address": (step("  once(e, [=] { auto out = &e.speed[0]; });"), LINE, "'&e' is an address, whose indices debug=True cannot check: use a reference"),
    "address as argument": ("GZ void f(float x) {}\n" + step("  f(1.f, &x, 2.f);"), LINE + 1, "'&x' is an address"),
    "never closed": (step("  once(e, [=] { e.steps = 0; ;"), None, "is never closed"),
    "no step": (HEAD, 1, r"rules must define GZ void step\(Env e\)"),
    "after a comment": (step("  /* two", "  lines */ double x;"), LINE + 1, "'double' is not allowed"),
} | {
    # draws: the second of two that are one number
    name: (step("  once(e, [=] {", f"    {first}", f"    {second}", "  });"), LINE + 2, reason)
    for name, first, second, reason in (
        ("draw twice", "e.steps = random_int(e, 0, 5);", "e.x = uniform(e, 0, 0.f, 1.f);", rf"draw 0 of the env is drawn in line {LINE + 1} of toy.cuh already"),
        ("draw within a normal one", "e.x = normal(e, 3);", "e.y = uniform(e, 4, 0.f, 1.f);", "draw 4 of the env"),
        ("draw of one agent twice", "e.x = uniform(e, FIRST_WOLF, 2, 0.f, 1.f);", "e.y = uniform(e, FIRST_WOLF, 2u, 0.f, 1.f);", "draw 2 of one agent"),
        ("draw before a branch", "e.x = uniform(e, 1, 0.f, 1.f);", "if (e.x < 0.5f) e.y = uniform(e, 1, 0.f, 1.f);", "draw 1 of the env"),
        ("draw behind a branch", "if (e.steps) { e.x = uniform(e, 1, 0.f, 1.f); }", "e.y = uniform(e, 1, 0.f, 1.f);", "draw 1 of the env"),
        ("draw with constant names", "e.x = uniform(e, 2 * WOLFS, 0.f, 1.f);", "e.y = uniform(e, 2 * WOLFS, 0.f, 2.f);", r"draw 2 \* WOLFS of the env"),
        ("draw of a constant local", "const int a = FIRST_WOLF; e.x = uniform(e, a, 0, 0.f, 1.f);", "const int b = FIRST_WOLF; e.y = uniform(e, b, 0, 0.f, 1.f);", "draw 0 of one agent"),
        ("draw in both arms of one choice", "e.x = e.steps ? uniform(e, 1, 0.f, 1.f) : 0.f;", "e.y = e.steps ? random_int(e, 0, 2) : random_int(e, 0, 3) + random_int(e, 0, 4);", "draw 0 of the env"),
        ("draw in each attempt", "for (int k = 0; k < 9; ++k) {", "  e.steps = random_int(e, 0, 5); if (e.steps) break; }", "draw 0 of the env is the same number in each round of the loop: let the draw depend"),
    )
} | {
    "draw in two regions": (step("  lanes(e, 2, [=](int a) { e.speed[a] = uniform(e, a, 0, 0.f, 1.f); });", "  lanes(e, 3, [=](int b) { e.path[b] = random_bits(e, b, 0); });"), LINE + 1, "draw 0 of one agent"),
    "draw in a helper": ("GZ void wind(Env e) {\n  e.x = uniform(e, 1, 0.f, 1.f);\n}\n" + step("  once(e, [=] { wind(e); e.y = uniform(e, 1, 0.f, 2.f); });"), LINE + 3, r"draw 1 of the env is drawn in line 2 of toy\.cuh already"),
    "draw in step and in observe": (HEAD.replace("= 0.f", "= uniform(e, 0, 0.f, 1.f)") + "GZ void step(Env e) {\n  once(e, [=] { e.x = uniform(e, 0, 0.f, 1.f); });\n}\n", LINE, r"draw 0 of the env is drawn in line 5 of toy\.cuh"),
    # arrays that need an address
    "local array": (step("  once(e, [=] {", "    float v[4] = {0.f};", "    e.x = v[e.steps];", "  });"), LINE + 2, r"v\[e\.steps\]: a local array is indexed by constants, or by a loop of at most 16 rounds"),
    "local array by a parameter": ("GZ float at(Env e, int k) {\n  const float v[2] = {1.f, 2.f};\n  return v[k];\n}\n" + step(), 3, r"v\[k\]: a local array"),
    "local array in a long loop": (step("  int v[40];", "  for (int k = 0; k < 40; ++k) v[k] = k;"), LINE + 1, r"v\[k\]: a local array"),
    "local array in a loop of any length": (step("  int v[40];", "  for (int k = 0; k < e.t; ++k) v[2 * k + 1] = k;"), LINE + 1, r"v\[2\*k\+1\]: a local array"),
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
    name: step("  once(e, [=] {", *(f"    {line}" for line in lines), "  });")
    for name, lines in {
        "one draw on either way": ["if (e.steps) e.x = uniform(e, 1, 0.f, 1.f);", "else e.x = uniform(e, 1, 0.f, 2.f);"],
        "one draw in either arm": ["e.x = e.steps == 0 ? uniform(e, 1, 0.f, 1.f) : e.steps == 1 ? uniform(e, 1, 0.f, 2.f) : uniform(e, 1, 0.f, 3.f);"],
        "one draw, or behind a return": ["if (e.steps) { e.x = uniform(e, 1, 0.f, 1.f); return; }", "e.x = uniform(e, 1, 0.f, 2.f);"],
        "one draw under two conditions": ["if (e.steps) e.x = uniform(e, 1, 0.f, 1.f);", "if (!e.steps) e.x = uniform(e, 1, 0.f, 2.f);"],
        "one draw in one case": ["switch (e.steps) {", "case 0: e.x = uniform(e, 1, 0.f, 1.f); break;", "default: e.x = uniform(e, 1, 0.f, 2.f);", "}"],
        "one draw behind and": ["e.x = e.steps && random_int(e, 0, 2) ? 1.f : 0.f;", "e.y = !e.steps && random_int(e, 0, 2) ? 1.f : 0.f;"],
        "draws of a loop": ["for (int k = 0; k < 9; ++k) e.speed[k] = uniform(e, k, 0, 0.f, 1.f);", "for (int k = 0; k < 9; ++k) e.path[k] = uniform(e, k + 9, 0, 0.f, 1.f);"],
        "attempts": ["for (int attempt = 0; attempt < 9; ++attempt) if (random_int(e, attempt, 5) == 0) break;"],
        "draws of two agents": ["e.x = uniform(e, 0, 1, 0.f, 1.f);", "e.y = uniform(e, 1, 1, 0.f, 1.f);", "e.z = uniform(e, 1, 0.f, 1.f);"],
        "draws of who moves": ["int a = e.mover;", "e.x = uniform(e, a, 1, 0.f, 1.f);", "a = 1 - a;", "e.y = uniform(e, a, 1, 0.f, 1.f);"],
        "draws of those whom state names": ["e.x = uniform(e, e.mover, 1, 0.f, 1.f);", "e.mover = 1;", "e.y = uniform(e, e.mover, 1, 0.f, 1.f);"],
        "draws of another key": ["e.x = unit_float(random_bits(e.seed, 0u, 0u, 1u, 0u));", "e.y = unit_float(random_bits(e.seed, 0u, 1u, 1u, 0u));"],
        "normal and the draw behind it": ["e.x = normal(e, 0);", "e.y = normal(e, 2);"],
        "local arrays": ["int v[4] = {1, 2, 3, 4};", "const int last = 3;", "for (int k = 0; k < 4; ++k) v[k] = v[last - k] + v[0];", "for (int k = 0; k < WOLFS; ++k) v[(int)k] = 0;"],
        "fields and members called like a local array": ["{ int v[2] = {0, 1}; e.x = v[1]; }", "e.v[e.steps] = 1;", "Row v = e.observation;", "v[e.steps] = 1.f;"],
        "products and references": ["float x = 2.f * e.x, y = (float)e.steps * x;", "float &z = e.x;", "e.y = x & y;", "if (x && y) z = 1.f;"],
        "captures of plain lambdas": ["float x = 0.f, y = 0.f;", "const auto f = [&x, &y, z = 1](int k) { x += y; };", "f(1);"],
    }.items()
} | {
    "one draw of one call that is made twice": "GZ float wind(Env e) {\n  return uniform(e, 0, 0.f, 1.f);\n}\n" + step("  once(e, [=] { e.x = wind(e); e.y = wind(e); });"),
    "one draw in either of two functions of one name": "GZ float wind(Env e, int k) {\n  return uniform(e, 0, 0.f, 1.f);\n}\nGZ float wind(Env e, float k) {\n  return uniform(e, 0, 0.f, k);\n}\n" + step("  once(e, [=] { e.x = wind(e, 2.f); });"),
    "one draw in reset and in step": HEAD.replace("e.steps = 0", "e.steps = random_int(e, 0, 5)") + "GZ void step(Env e) {\n  once(e, [=] { e.steps = random_int(e, 0, 5); });\n}\n",
    "local array by an enumerator and a template parameter": "enum { LEFT, right };\ntemplate <int K> GZ float at(Env e) {\n  float v[4] = {0.f};\n  return v[K] + v[right] + v[LEFT + 1];\n}\n" + step(),
    "a reference to an array": "GZ float at(float (&v)[4]) {\n  return v[0];\n}\n" + step(),
} | {
    "words in comments and texts": step("  // double rand() static", "  /* e.steps = 1.0 */"),
    "members with forbidden names": step("  once(e, [=] { e.time = 1; e.clock[2] = 3.f; });"),
    "uniform members": step("  int t = e.t + e.cfg.past + (int)e.episode + (int)e.seed + e.max_steps;"),
    "hexadecimal": step("  unsigned x = 0x1e5u;"),
    "helpers": "GZ float one(Env e, int a) {\n  return e.speed[a];\n}\n"
    + step("  float s = lane_sum(e, 2, [=](int a) { return one(e, a); });", "  once(e, [=] { e.reward = s; });"),
    "collective helpers": "GZ void all(Env e) {\n  once(e, [=] { e.steps = 1; });\n}\n" + step("  all(e);"),
    "other draws than that of an order": step("  in_random_order(e, AGENTS, 0, [=](int a) { e.x[a] = uniform(e, a, 1, 0.f, 1.f); });", "  lanes(e, 9, [=](int c) { e.y[c] = uniform(e, AGENTS + c, 0, 0.f, 1.f); });"),
    "a scatter, and in the next region what came of it": step(
        "  lanes(e, 2, [=](int a) { scatter_add(e.count[e.cell[a]], 1); scatter_add(e.count[0], e.cell[a]); });",
        "  lanes(e, 2, [=](int a) { e.seen[a] = e.count[a]; });",
    ),
    "other capture in plain lambdas": step("  once(e, [=] { auto f = [=](int x) { return x; }; e.steps = f(1); });"),
}  # fmt: skip


@pytest.mark.parametrize("case", ALLOWED)
def test_accepted(case, tmp_path):
    check(tmp_path, ALLOWED[case])


def test_all_games_keep_the_dialect(game):
    check_rules(inline_includes(game.source()), packed=game.packed)


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
    code = code.replace((DEVICE / "simt.cuh").read_text(), "")  # for tests, on a machine with a C library
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
