"""What ``gpuzoo doctor ID`` says about one game: its form and the reason for it, lanes, bytes, and compile times."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo.core import nvrtc
from gpuzoo.core.backend import KERNELS, Kernels, Launch
from gpuzoo.core.backend_cpu import CpuBackend, find_compiler
from gpuzoo.core.codegen import Program, program
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.headers import DEVICE
from gpuzoo.core.simulator import Simulator

_ARCHITECTURE = "sm_90"
_WALK = DEVICE / "walk_cpu.cuh"
_MARK = re.compile(r"// loop over envs: (\w+)$")
#: a line of g++'s -fopt-info: file, line, kind, indentation, text
_SAID = re.compile(r"(.+?):(\d+):\d+: (missed|optimized):( +)(.*)")
#: predefined macro -> what the CPU has, the longest vectors first
_FEATURES = {
    "__AVX512F__": "AVX-512",
    "__AVX2__": "AVX2",
    "__AVX__": "AVX",
    "__SSE4_2__": "SSE4.2",
    "__SSE2__": "SSE2",
    "__FMA__": "FMA",
    "__ARM_FEATURE_SVE": "SVE",
    "__ARM_NEON": "NEON",
}


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop over envs of the CPU's program, as g++ compiled it.

    Attributes:
        name: what it does: ``"rules"``, ``"observations"`` or ``"resets"``.
        vector_bytes: length of its vectors; 0 where it steps one env after another.
        reason: the compiler's reason for that, with the place that it names.
    """

    name: str
    vector_bytes: int
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class GameReport:
    """How a game is compiled for this machine.

    Attributes:
        id: the game.
        config: its parameters.
        lanes: lanes per env, by kind of device.
        branchless: whether the CPU's program has loops over envs that a compiler can vectorise.
        obstacles: why not, one sentence each.
        pack_width: how many envs a register of the CPU holds in packed rules; 0 where rules are not packed, or where
            there is no compiler.
        loops: what g++ made of these loops; None where that cannot be known.
        unknown: why it cannot.
        compiler: the host's compiler.
        features: vector instructions that this compiler uses on this CPU.
        compile_seconds: cold, by kind of device; without those that cannot be compiled for here.
        bytes_per_env: ``state`` (the game's fields), ``spaces`` (observations, actions and masks, final ones included),
            ``engine`` (rewards, flags, counts, seeds) and ``total``.
    """

    id: str
    config: dict[str, Any]
    lanes: dict[str, int]
    branchless: bool
    obstacles: tuple[str, ...]
    pack_width: int
    loops: tuple[Loop, ...] | None
    unknown: str
    compiler: str
    features: tuple[str, ...]
    compile_seconds: dict[str, float]
    bytes_per_env: dict[str, int]

    @property
    def vectorised(self) -> bool | None:
        """Whether a CPU steps several envs with one instruction; None where the compiler does not say."""
        if not self.branchless:
            return self.pack_width > 1
        return None if self.loops is None else all(x.vector_bytes for x in self.loops if x.name == "rules")

    def as_json(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {"vectorised": self.vectorised, **dataclasses.asdict(self)}

    def lines(self) -> Iterator[tuple[str, str]]:
        """The report as a table of two columns."""
        answer = {True: "yes", False: "no", None: "cannot be known"}[self.vectorised]
        if self.pack_width:
            answer = f"packed rules, {self.pack_width} env{'s' * (self.pack_width > 1)} per register"
        why = [*self.obstacles, *([self.unknown] if self.unknown else [])]
        for loop in self.loops or ():
            how = f"vectors of {loop.vector_bytes} bytes" if loop.vector_bytes else f"env by env: {loop.reason}"
            why.append(f"Loop over envs, {loop.name}: {how}.")
        yield "Vectorised on a CPU", "\n".join([answer, *why])
        yield "Lanes", ", ".join(f"{device} {count}" for device, count in self.lanes.items())
        yield "Bytes per env", ", ".join(f"{name} {count:,}" for name, count in self.bytes_per_env.items())
        times = ", ".join(f"{device} {taken:.2f} s" for device, taken in self.compile_seconds.items())
        yield "Compile time, cold", times or "no compiler"
        if self.compiler:
            yield "Compiler", f"{self.compiler}; {', '.join(self.features) or 'no vector instructions'}"


@contextlib.contextmanager
def empty_cache() -> Iterator[Path]:
    """A folder that is the cache meanwhile: that a program was compiled some time ago says nothing about now."""
    usual = os.environ.get("GPUZOO_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GPUZOO_CACHE_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            if usual is None:
                del os.environ["GPUZOO_CACHE_DIR"]
            else:
                os.environ["GPUZOO_CACHE_DIR"] = usual


class _NoKernels:
    def __init__(self) -> None:
        self.launches: Mapping[str, Launch] = dict.fromkeys(KERNELS, lambda *_: None)
        self.threads = 1


class _Uncompiled(CpuBackend):
    """Arrays without kernels."""

    def compile(self, program: Program) -> Kernels:
        return _NoKernels()


def _bytes(env: EnvDef, config: dict[str, Any]) -> tuple[Program, dict[str, int]]:
    """The CPU's program, and the bytes that one more env takes."""
    one, two = (Simulator(env, n, backend=_Uncompiled(threads=1), **config) for n in (1, 2))

    def per_env(*names: str) -> int:
        return sum(math.prod(x.shape[1:]) * x.itemsize for name, x in one.arrays.items() if name in names)

    state = per_env(*one.program.fields)
    spaces = per_env("observation", "final_observation", "action", "action_mask", "final_action_mask")
    total = two.nbytes - one.nbytes
    return one.program, {"state": state, "spaces": spaces, "engine": total - state - spaces, "total": total}


def _compiler() -> tuple[str, tuple[str, ...], bool]:
    """Its first words about itself, the vector instructions that it uses here, and whether it is GNU's."""
    command = find_compiler()
    about = subprocess.run([*command, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    asked = [*command, "-march=native", "-dM", "-E", "-x", "c++", os.devnull]
    macros = {line.split()[1] for line in subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()}
    features = tuple(name for macro, name in _FEATURES.items() if macro in macros)
    return about[0] if about else command[0], features, "__GNUC__" in macros and "__clang__" not in macros


def _pack_width(code: str) -> int:
    """What packed rules are compiled for on this CPU."""
    asked = [*find_compiler(), "-march=native", "-dM", "-E", "-x", "c++", "-"]
    macros = subprocess.run(asked, input=code, capture_output=True, text=True).stdout
    found = re.search(r"^#define GZ_PACK_WIDTH (\d+)$", macros, re.M)
    return int(found[1]) if found else 0


def read_opt_info(text: str) -> tuple[Loop, ...]:
    """What g++ says of the loops over envs.

    Args:
        text: its messages under ``-fopt-info-vec-optimized-missed-internals``.
    """
    lines = _WALK.read_text(encoding="utf-8").splitlines()
    marks = {k: m[1] for k, line in enumerate(lines, 1) if (m := _MARK.search(line))}
    lengths: dict[str, int] = {}
    reasons: dict[str, str] = {}
    reason, inner = "", set()
    for line in text.splitlines():
        said = _SAID.match(line)
        if not said:
            continue
        file, number, kind, indent, message = said.groups()
        name = marks.get(int(number), "") if file == _WALK.name else ""
        vectors = re.match(r"loop vectorized using (\d+) byte", message) if kind == "optimized" else None
        if vectors or message == "couldn't vectorize loop":
            if name:
                lengths[name] = max(lengths.get(name, 0), int(vectors[1]) if vectors else 0)
                reasons.setdefault(name, reason)
            elif not vectors and os.path.isabs(file):  # the engine's files have no folder
                inner.add(f"{file}:{number}")
            reason = ""
        # The first reason is that of the longest vectors. Shorter ones are tried later and fail for other reasons.
        elif len(indent) > 1 and message.startswith("not vectorized: ") and not reason:
            reason = message.removeprefix("not vectorized: ").rstrip(".; ") + (
                f" ({file}:{number})" if not name else ""
            )
    control = f"; loops of the rules: {', '.join(sorted(inner))}" if inner else ""
    return tuple(
        Loop(name, length, "" if length else reasons[name] + control * ("control flow" in reasons[name]))
        for name, length in lengths.items()
    )


def examine(env: EnvDef, **config: Any) -> GameReport:
    """Compiles a game for this machine, and says what came of it.

    Args:
        env: the game.
        **config: its parameters.

    Raises:
        ValueError, TypeError: parameters that the game refuses, or rules that break the dialect.
        RuntimeError: rules that do not compile.
    """
    made, sizes = _bytes(env, config)
    form = made.form
    general = program(env, made.cfg)
    seconds: dict[str, float] = {}
    compiler, features, width = "", tuple[str, ...](), 0
    loops: tuple[Loop, ...] | None = None
    unknown = "There is no C++ compiler: what it makes of the loops over envs cannot be known."
    with contextlib.suppress(RuntimeError, OSError):
        compiler, features, gnu = _compiler()
        width = _pack_width(made.code) if form.packed else 0
        unknown = f"Only g++ says what it makes of the loops over envs, and this is {compiler}."
    if compiler:
        with empty_cache() as folder:
            said = folder / "said"
            flags = (f"-fopt-info-vec-optimized-missed-internals={said}",) if gnu else ()
            begin = time.perf_counter()
            CpuBackend(threads=1, flags=flags).compile(made)
            seconds["cpu"] = time.perf_counter() - begin
            if gnu:
                loops = read_opt_info(said.read_text(encoding="utf-8")) if form.branchless else ()
    with contextlib.suppress(RuntimeError):
        nvrtc.load()
        begin = time.perf_counter()
        nvrtc.compile_cubin(general.code, env.id, _ARCHITECTURE)
        seconds["cuda"] = time.perf_counter() - begin
    return GameReport(
        id=env.id,
        config={name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in config.items()},
        lanes={"cpu": made.lanes, "cuda": general.lanes},
        branchless=form.branchless,
        obstacles=form.obstacles,
        pack_width=width,
        loops=loops,
        unknown=unknown if form.branchless and loops is None else "",
        compiler=compiler,
        features=features,
        compile_seconds=seconds,
        bytes_per_env=sizes,
    )
