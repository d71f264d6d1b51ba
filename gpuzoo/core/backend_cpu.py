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
from gpuzoo.core.layout import Shapes

FLAGS = (
    "-std=c++17 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-exceptions -fno-rtti "
    "-fPIC -shared -Wno-unknown-pragmas -Wno-pass-failed "
    "--param=vect-epilogues-nomask=0 "  # g++: no copy of a loop in shorter vectors for what is left over
    # Without these g++ takes up to twice as long, for nothing measurable.
    "--param=max-combine-insns=2 --param=ira-max-loops-num=0 -fno-gcse -fno-gcse-after-reload"
).split()
#: g++: threaded jumps are branches, which keep loops over envs from being vectorised; others pass over it
NO_THREADED_JUMPS = '#pragma GCC optimize("no-thread-jumps")\n'
#: of units that are no game: longer than a trainer is in Python between two calls, and short beside torch's operations
UNIT_SPINS = "-DGZ_SPINS=2000"

LINE = 64  #: bytes of a cache line, and of the longest vectors
SMALL = 512  #: bytes of the largest arrays that share a block of memory: an env alone has thirty of them


class _Memory(np.ndarray[Any, Any]):
    """What an array lies in. As its type is another one, a view of a view refers to that array, not to this."""


def _zeros(size: int) -> tuple[_Memory, int, int]:
    """Memory, where its first cache line begins, and the address of that: vectors across two take twice as long."""
    block = _Memory(-(-size // LINE) * LINE + LINE, np.uint8)  # whole lines, which nothing else shares
    block.fill(0)
    address = block.ctypes.data
    start = -address % LINE
    return block, start, address + start


@functools.lru_cache(maxsize=256)
def _places(shapes: Shapes) -> tuple[list[tuple[tuple[int, ...], np.dtype[Any], int]], list[int], int]:
    """Where arrays lie that share a block of memory.

    Returns:
        Shape, dtype and place of each; which are too large for it, and stand here as empty ones; and its size.
    """
    places: list[tuple[tuple[int, ...], np.dtype[Any], int]] = []
    large, end = [], 0
    for k, (shape, dtype) in enumerate(shapes.shapes):
        kind = np.dtype(dtype)
        size = -(-math.prod(shape) * kind.itemsize // LINE) * LINE
        if size > SMALL:
            large.append(k)
            shape, size = (0,), 0
        places.append((shape, kind, end))
        end += size
    return places, large, end


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
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
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
        source.write_text(code, encoding="utf-8")
        command = [*compiler, "-x", "c++", str(source), *options, "-o", str(result), "-lpthread", "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
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
def _load(path: Path) -> tuple[dict[str, Callable[..., None]], int]:
    library = ctypes.CDLL(str(path))
    functions = {kernel: getattr(library, f"gz_launch_{kernel}") for kernel in KERNELS}
    for function in functions.values():
        function.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_int]
        function.restype = None
    return functions, library.gz_pack_width()


@functools.lru_cache(maxsize=256)
def _compiled(code: str, name: str, flags: tuple[str, ...], *places: str | None) -> Path:
    """`compile_host`, asked once by this process where its surroundings are the same."""
    return compile_host(code, name, flags)


class _CpuKernels:
    def __init__(self, path: Path, threads: int) -> None:
        self.launches: Mapping[str, Launch]
        self.launches, self.pack_width = _load(path)  # and how many envs are stepped in the time of one
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

    def zeros(self, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        kind = np.dtype(dtype)
        block, start, _ = _zeros(math.prod(shape) * kind.itemsize)
        return np.ndarray(shape, kind, block, start)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        return np.empty(shape, dtype)

    def zeros_all(self, shapes: Shapes) -> tuple[list[np.ndarray[Any, Any]], list[int]]:
        places, large, size = _places(shapes)
        block, start, address = _zeros(size)
        arrays = [np.ndarray(shape, kind, block, start + place) for shape, kind, place in places]
        addresses = [address + place for _, _, place in places]
        for k in large:
            arrays[k] = self.zeros(*shapes.shapes[k])
            addresses[k] = self.address(arrays[k])
        return arrays, addresses

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def store(self, members: np.ndarray[Any, Any]) -> int:
        return int(members.ctypes.data)

    def compile(self, program: Program) -> Kernels:
        form = program.form
        flags = (*self._flags, "--param=vect-epilogues-nomask=1") if form.remainders else self._flags
        flags = (*flags, "-Og") if program.debug else flags  # compiled in a quarter of the time
        places = tuple(map(os.environ.get, ("CXX", "PATH", "GPUZOO_CACHE_DIR", "HOME")))
        code = NO_THREADED_JUMPS + program.code if form.branchless else program.code
        return _CpuKernels(_compiled(code, program.env.id, flags, *places), self.threads)

    def compile_unit(self, code: str, name: str, kernels: Sequence[str]) -> Unit:
        return _CpuUnit(compile_host(code, name, (*self._flags, UNIT_SPINS)), kernels)

    def upload(self, array: Any, values: Any) -> None:
        array[...] = values

    def fill(self, array: Any, byte: int) -> None:
        array.view(np.uint8).fill(byte)

    def take(self, array: Any, envs: Any) -> Any:
        return np.array(array if envs is None else array[envs], order="C")

    def put(self, array: Any, envs: Any, rows: Any) -> None:
        array[slice(None) if envs is None else envs] = rows

    def copied(self, array: Any, dtype: Any = None) -> Any:
        return np.array(array, dtype, order="C")

    def write(self, target: Any, array: Any) -> None:
        target[...] = array

    def is_zero(self, array: Any) -> Any:
        return array == 0

    def either(self, one: Any, other: Any) -> Any:
        return one | other

    def any(self, array: Any, axis: int | None = None) -> Any:
        return np.atleast_1d(np.any(array, axis))

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
