"""math.cuh: accuracy, special values, and the same bits from every compiler.

The reference is numpy in float64, whose own error is negligible here. Errors are counted in ulp,
the spacing of float32 numbers at the reference.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gpuzoo.core import nvrtc

DEVICE = Path(__file__).parents[1] / "gpuzoo" / "core" / "device"
MAX_ULP = 2.0
NAN_BITS = 0x7FC00000
COUNT = 1_000_000

Floats = np.ndarray
Pair = tuple[Floats, Floats]

# ---- inputs ----

SPECIAL = np.array(
    [0, 1e-45, 1.1754942e-38, 1.1754944e-38, 1e-20, 2**-24, 0.5, 2 / 3, 0.625, 0.99999994, 1]
    + [1.0000001, 4 / 3, 2, 3, 4, 5, 2**24 - 1, 2**24, 1e20, 3.4028235e38, np.inf, np.nan],
    np.float32,
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])
POWERS = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
EDGES = np.concatenate([SPECIAL, POWERS, -POWERS, np.nextafter(POWERS, np.float32(0))])


def uniform(low: float, high: float, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(low, high, COUNT).astype(np.float32)


def patterns(seed: int = 0) -> Floats:
    """Any float at all: every exponent is as likely as any other."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2**32, COUNT, dtype=np.uint32).view(np.float32)


def around(x: Floats) -> Floats:
    x = x.astype(np.float32)
    infinity = np.float32(np.inf)
    return np.concatenate([np.nextafter(x, -infinity), x, np.nextafter(x, infinity)])


def one(*parts: Floats) -> Pair:
    x = np.concatenate([EDGES, patterns(), *parts])
    return x, np.zeros_like(x)


def two(*parts: Pair) -> Pair:
    grid = np.meshgrid(SPECIAL, SPECIAL)
    parts = ((grid[0].ravel(), grid[1].ravel()), (patterns(1), patterns(2)), *parts)
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


def angles() -> Pair:
    x, zero = one(uniform(-10, 10), uniform(-(2**17), 2**17), around(np.arange(2**16) * np.pi / 2))
    within = (np.abs(x) <= 2**17) | ~np.isfinite(x)
    return x[within], zero[within]


def powers() -> Pair:
    """Bases of any size, and close to 1, with exponents that give results of any size."""
    base = np.concatenate([np.abs(patterns(3)), uniform(0.5, 2, 4)])
    exponent = np.resize(uniform(-151, 129), base.shape) / np.log2(base.astype(np.float64))
    return two((base, exponent.astype(np.float32)), (uniform(-9, 9), np.rint(uniform(-40, 40))))


def moduli() -> Pair:
    """Quotients below 2^24, many of them next to an integer."""
    y = np.abs(patterns(5))
    y = np.clip(np.nan_to_num(y), 1e-30, 1e30).astype(np.float32)
    turn = np.full(COUNT, 2 * np.pi, np.float32)
    multiple = y * np.rint(uniform(-5000, 5000))
    x = np.concatenate([y * uniform(-1e7, 1e7), around(multiple), uniform(-1e3, 1e3)])
    return x, np.concatenate([y, y, y, y, turn])


# ---- the functions ----


@dataclass(frozen=True)
class Function:
    code: str
    reference: Callable[..., Floats]
    inputs: Callable[[], Pair]


FUNCTIONS = {
    "sin": Function("sin(a)", lambda a, _: np.sin(a), angles),
    "cos": Function("cos(a)", lambda a, _: np.cos(a), angles),
    "exp": Function("exp(a)", lambda a, _: np.exp(a), lambda: one(uniform(-2, 2), uniform(-105, 90))),
    "tanh": Function("tanh(a)", lambda a, _: np.tanh(a), lambda: one(uniform(-3, 3))),
    "log": Function("log(a)", lambda a, _: np.log(a), lambda: one(uniform(0.3, 3))),
    "log1p": Function("log1p(a)", lambda a, _: np.log1p(a), lambda: one(uniform(-1, 4))),
    "pow": Function("pow(a, b)", np.power, powers),
    "atan2": Function("atan2(a, b)", np.arctan2, lambda: two((uniform(-1, 1, 6), uniform(-1, 1, 7)))),
    "mod": Function("mod(a, b)", np.mod, moduli),
}


@pytest.fixture(scope="module")
def sweep() -> dict[str, Pair]:
    with np.errstate(all="ignore"):
        return {name: f.inputs() for name, f in FUNCTIONS.items()}


# ---- the harness: every function as a C loop ----

HARNESS = '#include "base.cuh"\n#include "math.cuh"\nnamespace gz {\n' + "".join(
    f'extern "C" void run_{name}(int n, const float *x, const float *y, float *z) {{\n'
    f"  for (int i = 0; i < n; ++i) {{ float a = x[i], b = y[i]; (void)b; z[i] = {f.code}; }}\n}}\n"
    for name, f in FUNCTIONS.items()
)
HARNESS += "}\n"


def compilers() -> dict[str, list[str]]:
    """The host compilers at hand, the preferred one first."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    found = {name: [path] for name in names if name and (path := shutil.which(name))}
    if importlib.util.find_spec("ziglang"):
        found["zig"] = [sys.executable, "-m", "ziglang", "c++", "-nostdlib"]
    return found


def build(command: list[str], flags: list[str], folder: Path, code: str = HARNESS) -> ctypes.CDLL:
    source, library = folder / "harness.cpp", folder / "harness.so"
    source.write_text(code)
    strict = ["-std=c++17", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    shared = ["-shared", "-fPIC", "-I", str(DEVICE), str(source), "-o", str(library)]
    subprocess.run([*command, *flags, *strict, *shared], check=True)
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, name: str, inputs: Pair) -> Floats:
    x, y = (np.ascontiguousarray(v, np.float32) for v in inputs)
    z = np.empty_like(x)
    getattr(library, f"run_{name}")(x.size, *(ctypes.c_void_p(v.ctypes.data) for v in (x, y, z)))
    return z


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    found = list(compilers().values())
    if not found:
        pytest.skip("no host compiler")
    return build(found[0], ["-O3", "-march=native"], tmp_path_factory.mktemp("native"))


# ---- tests ----


def ulps(result: Floats, reference: Floats) -> Floats:
    """Distance in units of the float32 spacing at the reference; infinity counts as 2^128."""
    limit = 2.0**128
    reference = np.clip(reference, -limit, limit)
    spacing = np.ldexp(1.0, np.maximum(np.frexp(reference)[1] - 24, -149))
    error: Floats = np.abs(np.clip(result.astype(np.float64), -limit, limit) - reference) / spacing
    return error


@pytest.mark.one_case
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(native: ctypes.CDLL, sweep: dict[str, Pair], name: str) -> None:
    inputs = sweep[name]
    result = call(native, name, inputs)
    with np.errstate(all="ignore"):
        reference = FUNCTIONS[name].reference(*(v.astype(np.float64) for v in inputs))
    nan = np.isnan(reference)
    assert (result[nan].view(np.uint32) == NAN_BITS).all()
    a, b, result, reference = (v[~nan] for v in (*inputs, result, reference))
    assert not np.isnan(result).any()
    assert np.array_equal(np.signbit(result), np.signbit(reference))
    exact = (reference == 0) | np.isinf(reference)
    assert np.array_equal(result[exact], reference[exact])
    error = ulps(result, reference)
    worst = int(error.argmax())
    assert error[worst] <= MAX_ULP, (error[worst], a[worst], b[worst], result[worst])


def test_special_values(native: ctypes.CDLL) -> None:
    inf, nan = np.inf, np.nan
    cases = {
        "sin": [(0.0, 0, 0.0), (-0.0, 0, -0.0), (1e6, 0, 0.0), (inf, 0, nan), (nan, 0, nan)],
        "cos": [(0.0, 0, 1), (-1e30, 0, 1), (-inf, 0, nan), (nan, 0, nan)],
        "exp": [(0.0, 0, 1), (inf, 0, inf), (-inf, 0, 0.0), (89, 0, inf), (-104, 0, 0.0)],
        "tanh": [(-0.0, 0, -0.0), (inf, 0, 1), (-inf, 0, -1), (nan, 0, nan)],
        "log": [(1, 0, 0.0), (0.0, 0, -inf), (-0.0, 0, -inf), (-1e-45, 0, nan), (inf, 0, inf)],
        "log1p": [(-0.0, 0, -0.0), (-1, 0, -inf), (-1.0000001, 0, nan), (inf, 0, inf)],
        "pow": [(nan, 0, 1), (1, nan, 1), (-1, inf, 1), (-2, 3, -8), (-2, 0.5, nan)]
        + [(0.0, -2, inf), (-0.0, -3, -inf), (-0.0, 3, -0.0), (-inf, -3, -0.0), (0.5, inf, 0.0)],
        "atan2": [(0.0, 1, 0.0), (-0.0, 1, -0.0), (0.0, -0.0, np.pi), (-0.0, -1, -np.pi)]
        + [(1, 0.0, np.pi / 2), (1, inf, 0.0), (1, -inf, np.pi), (nan, 1, nan), (0.0, nan, nan)],
        "mod": [(-1, 4, 3), (-0.0, 2, 0.0), (-4, 2, 0.0), (1e30, 3, 0.0), (-1e-20, 1, 1)]
        + [(inf, 3, nan), (nan, 3, nan)],
    }
    for name, rows in cases.items():
        a, b, expected = np.array(rows, np.float32).T
        result = call(native, name, (a, b))
        expected = np.where(np.isnan(expected), np.uint32(NAN_BITS).view(np.float32), expected)
        assert np.array_equal(result.view(np.uint32), expected.view(np.uint32)), (name, result)


def test_mod_is_exact(native: ctypes.CDLL, sweep: dict[str, Pair]) -> None:
    x, y = sweep["mod"]
    result = call(native, "mod", (x, y))
    assert np.array_equal(result.view(np.uint32), np.mod(x, y).view(np.uint32))


@pytest.mark.rotates
def test_same_bits_from_every_compiler(
    native: ctypes.CDLL, sweep: dict[str, Pair], tmp_path_factory: pytest.TempPathFactory
) -> None:
    builds = {}
    for number, (name, command) in enumerate(compilers().items()):
        flags = ["-O3", "-march=native"] if number else ["-O0"]
        builds[name] = build(command, flags, tmp_path_factory.mktemp(f"build{number}"))
    for function, inputs in sweep.items():
        expected = call(native, function, inputs).view(np.uint32)
        for name, library in builds.items():
            bits = call(library, function, inputs).view(np.uint32)
            assert np.array_equal(bits, expected), (function, name)


# ---- packs of numbers ----

#: what packs have beside the functions, in words that a pack of one has, too
OPERATIONS = {
    "arithmetic": "a * b + a / b - (-a)",
    "fma": "fma(a, b, -a)",
    "sqrt": "sqrt(a)",
    "floor": "floor(a)",
    "rint": "rint(a)",
    "min": "min(a, b)",
    "max": "max(a, b)",
    "abs": "abs(a)",
    "clamp": "clamp(a, -abs(b), 0.5f)",
    "copysign": "copysign(a, b)",
    "masks": "select(((a < b) & !(a == 2.f)) | ((a >= 2.f * b) ^ (b <= -1.f)), a, select(a != b, b, 3.f))",
    "mask of masks": "select(select(a > b, a > 1.f, b > 1.f), a, b)",
    "integers": "Pack((PackInt(clamp(a, -1e6f, 1e6f)) * 3 + 7) % 1000 - (PackInt(clamp(b, -9.f, 9.f)) << 2))",
    "comparisons": "select(PackInt(clamp(a, -9.f, 9.f)) < min(PackInt(clamp(b, -9.f, 9.f)), 4), a, b)",
    "bits": "as_float((as_u32(a) ^ (as_u32(b) >> 3)) & 0xff7fffffu)",
}
PACKED = "".join(f'#include "{name}.cuh"\n' for name in ("base", "math", "rng", "packed")) + "namespace gz {\n"
PACKED += "".join(
    f'extern "C" void run_{name.replace(" ", "_")}(int n, const float *x, const float *y, float *z) {{\n'
    f"  for (int i = 0; i < n; i += GZ_PACK_WIDTH) {{\n    Pack a, b;\n"
    f"    __builtin_memcpy(&a, x + i, sizeof(a)), __builtin_memcpy(&b, y + i, sizeof(b)), (void)b;\n"
    f"    const Pack c = {code};\n    __builtin_memcpy(z + i, &c, sizeof(c));\n  }}\n}}\n"
    for name, code in ({name: f.code for name, f in FUNCTIONS.items()} | OPERATIONS).items()
)
PACKED += """extern "C" int find(const float *x) {
  Pack a;
  __builtin_memcpy(&a, x, sizeof(a));
  return (int)any(a > 0.f) + 2 * (int)all(a > 0.f);
}
}
"""


def packs(width: int, folder: Path, flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    command = next(iter(compilers().values()))
    return build(command, ["-O2", "-march=native", f"-DGZ_PACK_WIDTH={width}", *flags], folder, PACKED)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return packs(1, tmp_path_factory.mktemp("single"))


X86 = platform.machine() in ("x86_64", "AMD64")


@pytest.mark.one_case
@pytest.mark.parametrize(("width", "flags"), [(16, ()), (8, ()), (4, ()), *[(8, ("-mno-avx512f",))] * X86])
def test_packs_have_the_bits_of_numbers(
    single: ctypes.CDLL, sweep: dict[str, Pair], tmp_path: Path, width: int, flags: tuple[str, ...]
) -> None:
    library = packs(width, tmp_path, flags)
    values, others = two((patterns(3), patterns(4)))
    wide = np.concatenate([EDGES, values]), np.concatenate([EDGES[::-1], others])
    for name in (*FUNCTIONS, *OPERATIONS):
        pair = tuple(x[: min(len(x), 400_000) // 16 * 16] for x in sweep.get(name, wide))
        entry = name.replace(" ", "_")
        want, found = call(single, entry, pair), call(library, entry, pair)
        if name in OPERATIONS:  # which of several NaN an operation makes is the machine's choice
            want, found = (np.where(np.isnan(x), np.float32(np.nan), x) for x in (want, found))
        assert np.array_equal(want.view(np.uint32), found.view(np.uint32)), name
    for lane in range(width):
        for x, expected in ((0.0, 0), (1.0, 1)):
            row = np.zeros(16, np.float32)
            row[lane] = x
            assert library.find(row.ctypes.data_as(ctypes.c_void_p)) == expected
            assert library.find((1 - row).ctypes.data_as(ctypes.c_void_p)) == (3 if x == 0 else 1)


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has no NVRTC for other systems' CPUs")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_compiles_for_cuda(architecture: str) -> None:
    library = nvrtc.load()
    source = (DEVICE / "base.cuh").read_text() + (DEVICE / "math.cuh").read_text()
    source += "namespace gz {\n" + "".join(
        f'extern "C" __global__ void run_{name}(const float *x, const float *y, float *z) {{\n'
        f"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  float a = x[i], b = y[i]; (void)b; z[i] = {f.code};\n}}\n"
        for name, f in FUNCTIONS.items()
    )
    program = ctypes.c_void_p()
    text = (source + "}\n").encode()
    assert not library.nvrtcCreateProgram(ctypes.byref(program), text, b"math.cu", 0, None, None)
    options = [f"--gpu-architecture={architecture}", "-fmad=false", "--ftz=false", "-std=c++17"]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = library.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()
    assert not library.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, ptx)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    for inexact in (b".approx", b".ftz", b".f64", b"div.full"):
        assert inexact not in ptx.value
