"""What the host executes where a GPU would execute a cubin, and what a launch of it must look like.

`build` is where another way to make host code of a program can be put: it is given the code and returns a library with
the entries ``gz_launch_<kernel>`` of the thread form.
"""

from __future__ import annotations

import ctypes
import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo.core.backend_cpu import compile_host

from .driver import driver


def thread_form(code: str, name: str) -> Path:
    """The thread form of the same code: a host thread for each of the GPU's."""
    return compile_host(code, name, ("-DGZ_SIMT",))


build: Callable[[str, str], Path] = thread_form

_SIZES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4}
_SIZES |= {"b64": 8, "u64": 8, "s64": 8, "f64": 8}


def parameter_sizes(ptx: str) -> dict[str, list[int]]:
    """Bytes of each parameter of each kernel, as the compiler says."""
    found = {}
    for name, text in re.findall(r"\.entry (\w+)\s*\((.*?)\)", ptx, re.S):
        parameters = re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+\w+(?:\[(\d+)\])?", text)
        found[name] = [_SIZES[kind] * int(count or 1) for kind, count in parameters]
    return found


@dataclasses.dataclass
class Binary:
    """Host code in place of a cubin."""

    library: ctypes.CDLL
    lanes: int
    sizes: dict[str, list[int]]  # where the compiler was asked


binaries: dict[str, Binary] = {}


def cubin(code: str, name: str, *architecture: object, sizes: dict[str, list[int]] | None = None) -> Path:
    """In place of `nvrtc.cached_cubin`."""
    path = build(code, name)
    lanes = re.search(r"^#define LANES (\d+)", code, re.M)
    assert lanes is not None
    binaries[str(path)] = Binary(ctypes.CDLL(str(path)), int(lanes[1]), sizes or {})
    return path


def _value(argument: Any, name: str) -> tuple[int, int, Any]:
    """An argument as C takes it, its bytes, and what must live as long."""
    if isinstance(argument, np.ndarray):  # CuPy passes an array of one element by value
        if argument.size != 1 or not argument.flags.c_contiguous:
            raise TypeError(f"{name}: only a NumPy array of size one can be passed by value, not {argument.shape}.")
        kept = argument.copy()
        return kept.ctypes.data, argument.nbytes, kept
    if not isinstance(argument, np.generic):
        raise TypeError(f"{name}: an argument must have a type with a size, not {type(argument).__name__}.")
    return int(argument), argument.nbytes, None


class Kernel:
    """A kernel of a loaded binary."""

    def __init__(self, binary: Binary, name: str, device: int) -> None:
        self._binary, self.name, self._device = binary, name, device
        self._loaded = False
        self._function = getattr(binary.library, name.replace("gz_", "gz_launch_", 1))
        self._function.restype = None

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
        values = [_value(argument, self.name) for argument in args]
        sizes = [size for _, size, _ in values]
        if sizes != self._binary.sizes.get(self.name, sizes):
            driver.refuse(f"{self.name} with arguments of {sizes} bytes in place of {self._binary.sizes[self.name]}")
        if not self._loaded:
            driver.note("load", self.name, handle)
            if driver.graphs:
                driver.refuse(f"to load {self.name} while a stream is captured")
            self._loaded = True
        self._check_threads(grid[0] * block[0], block[0], args, values)
        numbers = [ctypes.c_longlong(ctypes.c_longlong(value).value) for value, _, _ in values]
        if len(numbers) == 3:
            numbers.append(ctypes.c_longlong(1))

        def work() -> None:
            if len(args) == 3:
                ctypes.c_int.in_dll(self._binary.library, "gz_simt_block").value = block[0]
            self._function(*numbers)
            del values[len(args) :]  # keeps what was passed by value

        driver.give("launch", self.name, handle, work)

    def _check_threads(
        self, threads: int, block: int, args: Sequence[Any], values: Sequence[tuple[int, int, Any]]
    ) -> None:
        """A thread for each lane of each env, or for each item of a unit, and not a block more than that takes."""
        if len(args) == 3:
            want = int(args[2]) * self._binary.lanes
        else:  # the struct begins with the number of items
            want = ctypes.c_longlong.from_address(values[0][0]).value
        if not max(want, 1) <= threads < max(want, 1) + block:
            driver.refuse(f"{self.name} with {threads} threads for {want}")
