"""What the host executes where a GPU would execute a cubin, and what a launch of it must look like."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo.core.backend_cpu import compile_host

from .driver import driver

#: executes a kernel: grid, block, and all arguments one behind the other
Run = Callable[[Sequence[int], Sequence[int], bytes], None]
#: makes the kernels of a translation unit, by name, from its code and what messages call it
Build = Callable[[str, str], Mapping[str, Run]]


class _ThreadForm(dict[str, Run]):
    """The thread form of the same code, with the block that a launch asks for."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._library = ctypes.CDLL(str(path))
        self._block = getattr(self._library, "gz_simt_block", None) and ctypes.c_int.in_dll(
            self._library, "gz_simt_block"
        )

    def __missing__(self, name: str) -> Run:
        function = getattr(self._library, name.replace("gz_", "gz_launch_", 1))
        function.restype = None

        def run(grid: Sequence[int], block: Sequence[int], arguments: bytes) -> None:
            struct = ctypes.create_string_buffer(arguments, len(arguments))
            if self._block is None:  # a unit: the struct and an offset
                function(struct, ctypes.c_longlong(int.from_bytes(arguments[-8:], "little", signed=True)))
                return
            self._block.value = block[0]
            argument, count = np.frombuffer(arguments[-16:], np.int64).tolist()
            function(struct, ctypes.c_longlong(argument), ctypes.c_longlong(count), 1)

        self[name] = run
        return run


def thread_form(code: str, name: str) -> Mapping[str, Run]:
    """Kernels as `Build` makes them, from the thread form of the code."""
    return _ThreadForm(compile_host(code, name, ("-DGZ_SIMT",)))


@dataclasses.dataclass
class Binary:
    """What is executed in place of a cubin."""

    kernels: Mapping[str, Run]
    lanes: int


build: Build = thread_form
binaries: dict[str, Binary] = {}


def cubin(code: str, name: str, *architecture: object) -> Path:
    """In place of `nvrtc.cached_cubin`."""
    path = Path(f"{name}-{hashlib.sha256(code.encode()).hexdigest()[:16]}-{build.__name__}.cubin")
    if str(path) not in binaries:
        lanes = re.search(r"^#define LANES (\d+)", code, re.M)
        assert lanes is not None
        binaries[str(path)] = Binary(build(code, name), int(lanes[1]))
    return path


def _bytes(argument: Any, name: str) -> bytes:
    """An argument as a kernel gets it."""
    if isinstance(argument, np.ndarray):  # CuPy passes an array of one element by value
        if argument.size != 1 or not argument.flags.c_contiguous:
            raise TypeError(f"{name}: only a NumPy array of size one can be passed by value, not {argument.shape}.")
    elif not isinstance(argument, np.generic):
        raise TypeError(f"{name}: an argument must have a type with a size, not {type(argument).__name__}.")
    if argument.nbytes % 8:
        raise TypeError(f"{name}: an argument has {argument.nbytes} bytes, and those of these kernels 8 or more.")
    return argument.tobytes()


class Kernel:
    """A kernel of a loaded binary."""

    def __init__(self, binary: Binary, name: str, device: int) -> None:
        self._binary, self.name, self._device = binary, name, device
        self._loaded = False
        self._run = binary.kernels[name]

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        handle = driver.cupy_stream() if stream is None else stream.ptr
        if driver.thread.device != self._device:
            driver.refuse(f"{self.name}, which belongs to device {self._device}, on device {driver.thread.device}")
        for what, size, most in (("grid", grid, 2**31 - 1), ("block", block, 1024)):
            if not isinstance(size, tuple) or len(size) != 1 or type(size[0]) is not int:
                raise TypeError(f"{self.name}: {what} must be a tuple of one int, not {size!r}.")
            if not 1 <= size[0] <= most:
                driver.refuse(f"{self.name} with {what} {size}")
        arguments = b"".join(_bytes(argument, self.name) for argument in args)
        if not self._loaded:
            driver.note("load", self.name, handle)
            if driver.graphs:
                driver.refuse(f"to load {self.name} while a stream is captured")
            self._loaded = True
        self._check_threads(grid[0] * block[0], block[0], args, arguments)
        driver.give("launch", self.name, handle, lambda: self._run(grid, block, arguments))

    def _check_threads(self, threads: int, block: int, args: Sequence[Any], arguments: bytes) -> None:
        """A thread for each lane of each env, or for each item of a unit, and not a block more than that takes."""
        items = int.from_bytes(arguments[:8], "little")  # of a unit, whose struct begins with that
        want = int(args[2]) * self._binary.lanes if len(args) == 3 else items
        if not max(want, 1) <= threads < max(want, 1) + block:
            driver.refuse(f"{self.name} with {threads} threads for {want}")
