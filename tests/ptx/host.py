"""PTX of programs, and its kernels on this host."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo.core import nvrtc
from gpuzoo.core.backend import KERNELS, Kernels, Launch, Unit
from gpuzoo.core.backend_cpu import CpuBackend, compile_host
from gpuzoo.core.codegen import Program
from gpuzoo.core.compiled import compiled

from .translate import Entry, translate

MACHINE = Path(__file__).with_name("machine.h")
#: PTX has run-time checks of nothing that a host's compiler may take as undefined. -Og is sooner done than -O1.
FLAGS = ("-Og", "-fwrapv", "-fno-strict-aliasing", "-w")
ARCHITECTURE = "compute_90"
#: instructions name their lines; they are the same as without
OPTIONS = (*nvrtc.OPTIONS, "-lineinfo")
ORDERS = 3

Three = tuple[int, int, int]


def ptx_of(code: str, name: str) -> str:
    """What NVRTC makes of a translation unit, with the lines of its source, from the cache if it was made before."""
    key = "\0".join([code, ARCHITECTURE, nvrtc.version(), *OPTIONS])
    path = compiled("ptx", name, ".ptx", key, lambda _: nvrtc.compile_ptx(code, name, ARCHITECTURE, OPTIONS).encode())
    return path.read_text()


def load(ptx: str, name: str) -> dict[str, Kernel]:
    """The kernels of PTX, by name.

    Args:
        ptx: the text.
        name: what a message of the host's compiler calls it.

    Raises:
        UnknownInstructionError: the translator does not know something in it.
        RuntimeError: the host's compiler refuses the translation.
    """
    return build(*translate(ptx), name)[1]


def build(variables: str, entries: Sequence[Entry], name: str, more: str = "") -> tuple[ctypes.CDLL, dict[str, Kernel]]:
    """Compiles translated kernels, and ``more`` C++ before them."""
    code = [MACHINE.read_text(), "namespace ptx {", more, variables]
    for entry in entries:
        code += [entry.code, f'extern "C" const char *launch_{entry.name}(const Three *dims, const char *params, ']
        code[-1] += "u32 shared, int order) {"
        code.append(f"  return launch({entry.name}, {int(entry.waits)}, dims, params, shared, order);\n}}")
    library = ctypes.CDLL(str(compile_host("\n".join([*code, "}\n"]), f"ptx-{name}", FLAGS)))
    return library, {entry.name: Kernel(entry, library[f"launch_{entry.name}"]) for entry in entries}


class Kernel:
    """A kernel that can be launched.

    Each launch takes another order of the blocks and of their threads than the one before: results must not depend on
    it.

    Attributes:
        entry: what PTX says about it; ``entry.parameters`` has offset and size of each parameter.
    """

    _launches = itertools.count()

    def __init__(self, entry: Entry, function: Any) -> None:
        self.entry, self._function = entry, function
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_int]
        function.restype = ctypes.c_char_p

    def __call__(self, grid: Sequence[int], block: Sequence[int], arguments: bytes, shared: int = 0) -> None:
        """Runs it to its end.

        Args:
            grid: blocks along up to three axes.
            block: threads along up to three axes.
            arguments: all parameters, each at its offset; pointers are the host's.
            shared: bytes of dynamic shared memory.

        Raises:
            ValueError: a launch that the driver would refuse, or arguments of another size.
            RuntimeError: a fault, such as an address that is not aligned, or threads that wait for others for ever.
        """
        entry, dims = self.entry, [*grid, *[1] * (3 - len(grid)), *block, *[1] * (3 - len(block))]
        size, threads = sum(entry.parameters[-1]) if entry.parameters else 0, int(np.prod(dims[3:]))
        if min(dims) < 1 or threads > entry.most_threads:
            raise ValueError(f"{entry.name}: grid {grid} and block {block}, with at most {entry.most_threads} threads")
        if len(arguments) != size:
            raise ValueError(f"{entry.name} takes {size} bytes of arguments, not {len(arguments)}")
        if entry.shared + shared > 227 * 1024 or (entry.shared > 48 * 1024):
            raise ValueError(f"{entry.name}: {entry.shared} bytes of static and {shared} of dynamic shared memory")
        order = next(self._launches) % ORDERS
        message = self._function((ctypes.c_uint * 6)(*dims), arguments, entry.shared + shared, order)
        if message:
            raise RuntimeError(f"{entry.name}: {message.decode()}.")


class PtxBackend(CpuBackend):
    """A backend whose programs are NVRTC's PTX, executed on the host.

    Args:
        head: what stands before the programs' code, such as macros of `gpuzoo.core.occupancy`.
    """

    def __init__(self, head: str = "") -> None:
        super().__init__(simt=True)
        self.device, self.head = "ptx", head

    def compile(self, program: Program) -> Kernels:
        return PtxKernels(load(ptx_of(self.head + program.code, program.env.id), program.env.id), program)

    def compile_unit(self, code: str, name: str, kernels: Sequence[str]) -> Unit:
        return _PtxUnit(load(ptx_of(code, name), name))


class PtxKernels:
    """The kernels of a game."""

    threads = 1

    def __init__(self, kernels: Mapping[str, Kernel], program: Program) -> None:
        self._lanes, self._block = program.lanes, program.block
        self.launches: Mapping[str, Launch] = {
            name: functools.partial(self._launch, kernels[f"gz_{name}"]) for name in KERNELS if f"gz_{name}" in kernels
        }

    def _launch(self, kernel: Kernel, store: int, argument: int, count: int, threads: int) -> None:
        _, size = kernel.entry.parameters[0]
        arguments = ctypes.string_at(store, size) + np.array([argument, count], np.int64).tobytes()
        kernel((-(-count * self._lanes // self._block),), (self._block,), arguments)


class _PtxUnit:
    BLOCK = 128

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self._kernels = kernels

    def bind(self, kernel: str, words: Sequence[int]) -> Callable[[int], None]:
        function = self._kernels[f"gz_{kernel}"]
        arguments = (ctypes.c_longlong * len(words))(*words)

        def call(offset: int) -> None:
            numbers = bytes(arguments) + np.int64(offset).tobytes()
            if words[0]:
                function((-(-words[0] // self.BLOCK),), (self.BLOCK,), numbers)

        return call
