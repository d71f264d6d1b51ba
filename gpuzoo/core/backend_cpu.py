"""The CPU: NumPy arrays, the host's C++ compiler, threads over envs."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gpuzoo.core.backend import KERNELS, Event, Kernels, Launch, Stream, Unit
from gpuzoo.core.codegen import Program
from gpuzoo.core.compiled import compiled

FLAGS = (
    "-std=c++17 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-exceptions -fno-rtti "
    "-fPIC -shared -Wno-unknown-pragmas -Wno-pass-failed "
    "--param=vect-epilogues-nomask=0 "  # g++: no copy of a loop in shorter vectors for what is left over
    # Without these g++ takes up to twice as long, for nothing measurable.
    "--param=max-combine-insns=2 --param=ira-max-loops-num=0 -fno-gcse -fno-gcse-after-reload"
).split()
#: of units that are no game: longer than a trainer is in Python between two calls, and short beside torch's operations
UNIT_SPINS = "-DGZ_SPINS=2000"

LINE = 64  #: bytes of a cache line, and of the longest vectors
BLOCK = 4096  #: bytes of what small arrays share


class _Memory(np.ndarray[Any, Any]):
    """What an array lies in. As its type is another one, a view of a view refers to that array, not to this."""


@functools.cache
def _lines(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of an array, in whole cache lines."""
    return -(-math.prod(shape) * np.dtype(dtype).itemsize // LINE) * LINE


def find_compiler() -> list[str]:
    """The command of the host's C++ compiler: ``$CXX``, c++, g++, clang++, or the one in the ziglang wheel.

    Raises:
        RuntimeError: there is none.
    """
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        path = shutil.which(name)
        if path:
            return [path]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise RuntimeError(
        "The CPU device needs a C++ compiler and none was found: pip install 'gpuzoo[cpu]' brings one, or install g++ "
        "or clang++, or set CXX."
    )


@functools.cache
def _machine() -> str:
    """What -march=native depends on."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), platform.machine())
    except OSError:
        return platform.machine() + platform.processor()


def _identity(command: list[str]) -> str:
    path = shutil.which(command[0])
    if path is None:
        raise RuntimeError(f"The C++ compiler {command[0]!r} was not found: check CXX.")
    package = importlib.util.find_spec("ziglang") if "ziglang" in command else None
    stat = os.stat(package.origin if package and package.origin else path)
    return f"{path} {stat.st_size} {stat.st_mtime_ns} {' '.join(command[1:])}"


def compile_host(code: str, name: str, flags: tuple[str, ...] = (), suffix: str = ".so") -> Path:
    """Compiles C++ for this machine, or finds the result in the cache.

    Args:
        code: the translation unit.
        name: what a message calls it.
        flags: added to the usual ones; ``-DNAME``, sanitizers and the like.
        suffix: ``.so`` for a library, ``.exe`` for a program with a ``main``.

    Raises:
        RuntimeError: no compiler, one that cannot be started, or the compiler's message.
    """
    compiler = find_compiler()
    base = [f for f in FLAGS if suffix == ".so" or f not in ("-shared", "-fPIC")]
    options = [*base, *flags]
    key = "\0".join([code, _identity(compiler), _machine(), *options, suffix])

    def build(folder: Path) -> bytes:
        source, result = folder / "unit.cpp", folder / "unit.out"
        source.write_text(code)
        command = [*compiler, "-x", "c++", str(source), *options, "-o", str(result), "-lpthread", "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise RuntimeError(f"The C++ compiler {compiler[0]!r} cannot be started ({error}): check CXX.") from error
        if done.returncode != 0:
            raise RuntimeError(f"{name} does not compile:\n{_first_errors(done.stderr)}")
        return result.read_bytes()

    return compiled("cpu", name, suffix, key, build)


def _first_errors(output: str) -> str:
    """The compiler's errors with file and line, without its notes and template chains."""
    lines = output.splitlines()
    errors = [k for k, line in enumerate(lines) if "error:" in line]
    shown = [line for k in errors[:3] for line in lines[k : k + 3]]
    return "\n".join(shown or lines[:20])


def available_threads() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _load(path: Path) -> dict[str, Callable[..., None]]:
    library = ctypes.CDLL(str(path))
    functions = {kernel: getattr(library, f"gz_launch_{kernel}") for kernel in KERNELS}
    for function in functions.values():
        function.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_int]
        function.restype = None
    return functions


@functools.lru_cache(maxsize=256)
def _compiled(code: str, name: str, flags: tuple[str, ...], *places: str | None) -> Path:
    """`compile_host`, asked once by this process where its surroundings are the same."""
    return compile_host(code, name, flags)


class _CpuKernels:
    def __init__(self, path: Path, threads: int) -> None:
        self.launches: Mapping[str, Launch] = _load(path)
        self.threads = threads

    def address(self, kernel: str) -> int:
        """Of a kernel's entry, for other host code."""
        return int(ctypes.cast(self.launches[kernel], ctypes.c_void_p).value or 0)  # type: ignore[arg-type]


class _CpuUnit:
    def __init__(self, path: Path, kernels: Sequence[str]) -> None:
        library = ctypes.CDLL(str(path))
        self._functions = {kernel: getattr(library, f"gz_launch_{kernel}") for kernel in kernels}
        for function in self._functions.values():
            function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_longlong], None

    def bind(self, kernel: str, words: Sequence[int]) -> Callable[[int], None]:
        return functools.partial(self._functions[kernel], (ctypes.c_longlong * len(words))(*words))


class _Done:
    def done(self) -> bool:
        return True

    def join(self) -> None:
        pass


class _NoStream:
    def run(self, work: Callable[[], None]) -> Event:
        work()
        return _Done()


class CpuBackend:
    """NumPy arrays and host code.

    Args:
        threads: threads over envs; all CPUs of this process by default.
        simt: compile the thread form of the engine, one thread per lane. For tests.
        flags: more compiler flags.
    """

    def __init__(self, threads: int | None = None, simt: bool = False, flags: tuple[str, ...] = ()) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}.")
        self.device = "simt" if simt else "cpu"
        self.xp: ModuleType = np
        self.interleaves = self.scratch_per_env = simt
        self.threads = threads or available_threads()
        self._flags = ("-DGZ_SIMT", *flags) if simt else flags
        self._block, self._next, self._end, self._address = _Memory(0, np.uint8), 0, 0, 0

    def zeros(self, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        return self.zeros_at(shape, dtype)[0]

    def zeros_at(self, shape: tuple[int, ...], dtype: str) -> tuple[np.ndarray[Any, Any], int]:
        # Each array begins a cache line: vectors that lie across two take twice as long.
        size = _lines(shape, dtype)
        if size > self._end - self._next:
            small = size <= BLOCK // 8  # many in one block of memory: an env alone has thirty of them
            block = _Memory((BLOCK if small else size) + LINE, np.uint8)
            block.fill(0)
            address = block.ctypes.data
            start = -address % LINE
            if not small:
                return np.ndarray(shape, dtype, block, start), address + start
            self._block, self._next, self._end, self._address = block, start, start + BLOCK, address
        start, self._next = self._next, self._next + size
        return np.ndarray(shape, dtype, self._block, start), self._address + start

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def store(self, members: np.ndarray[Any, Any]) -> int:
        return int(members.ctypes.data)

    def compile(self, program: Program) -> Kernels:
        flags = (*self._flags, "--param=vect-epilogues-nomask=1") if program.form.remainders else self._flags
        flags = (*flags, "-O1") if program.debug else flags  # compiled in a third of the time
        places = tuple(map(os.environ.get, ("CXX", "PATH", "GPUZOO_CACHE_DIR", "HOME")))
        return _CpuKernels(_compiled(program.code, program.env.id, flags, *places), self.threads)

    def compile_unit(self, code: str, name: str, kernels: Sequence[str]) -> Unit:
        return _CpuUnit(compile_host(code, name, (*self._flags, UNIT_SPINS)), kernels)

    def upload(self, array: Any, values: Any) -> None:
        array[...] = values

    def fill(self, array: Any, byte: int) -> None:
        array.view(np.uint8).fill(byte)

    def to_numpy(self, array: Any) -> Any:
        return np.array(array)

    def staged(self, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        return list(arrays)

    def ordered(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def new_stream(self) -> Stream:
        return _NoStream()

    def synchronize(self) -> None:
        pass

    def release(self, arrays: list[Any]) -> None:
        pass
