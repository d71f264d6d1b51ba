"""A backend whose kernels are compiled for AArch64 and run by an emulator, on the arrays of this process."""

from __future__ import annotations

import ctypes
import itertools
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, UC_PROT_ALL, Uc
from unicorn import arm64_const as arm

from gpuzoo.core.backend import KERNELS
from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.core.codegen import Program

ZIG = (sys.executable, "-m", "ziglang")
#: a processor that can do no more than each one of ARMv8; -c, as linking would first compile zig's C library
FLAGS = (
    "cc -target aarch64-linux-musl -march=cortex_a53 -c -x c++ -std=c++17 -O1 -ffp-contract=off -fno-math-errno "
    "-fno-trapping-math -fno-exceptions -fno-rtti -fno-sanitize=all -fno-stack-protector -fno-pic -Wno-unknown-pragmas"
).split()
#: what a compiler calls by itself; threads are not used by one thread
LIBRARY = """
extern "C" {
void *memcpy(void *to, const void *from, unsigned long size) {
  for (unsigned long k = 0; k < size; ++k) ((volatile char *)to)[k] = ((const char *)from)[k];
  return to;
}
void *memset(void *to, int byte, unsigned long size) {
  for (unsigned long k = 0; k < size; ++k) ((volatile char *)to)[k] = (char)byte;
  return to;
}
}
"""
#: whatever a program of Linux does not use: a stack, a thread's own memory, and where a function returns to
STACK, THREAD, HOME = 0x7000_0000, 0x7800_0000, 0x7900_0000
PAGE, ROOM = 4096, 1 << 21


class Executable:
    """A static program for AArch64, of which functions are called."""

    def __init__(self, path: Path) -> None:
        image = path.read_bytes()
        assert image[:5] == b"\x7fELF\x02", path
        assert struct.unpack_from("<HH", image, 16) == (2, 183), "no static program for AArch64"
        self.machine = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        self.mapped: set[int] = set()
        offset, sections = struct.unpack_from("<QQ", image, 32)
        entry, count, section, named = struct.unpack_from("<HHHH", image, 54)
        for k in range(count):
            kind, _, start, at, _, length, size, _ = struct.unpack_from("<IIQQQQQQ", image, offset + k * entry)
            if kind == 1:  # what is loaded
                self.map(at, size)
                self.machine.mem_write(at, image[start : start + length])
        for at in (STACK, THREAD, HOME):
            self.map(at, ROOM)
        self.machine.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # vector instructions
        self.machine.reg_write(arm.UC_ARM64_REG_TPIDR_EL0, THREAD + ROOM // 2)
        self.symbols = self._symbols(image, sections, section, named)

    @staticmethod
    def _symbols(image: bytes, sections: int, size: int, count: int) -> dict[str, int]:
        """Addresses by name."""
        headers = [struct.unpack_from("<IIQQQQIIQQ", image, sections + k * size) for k in range(count)]
        table = next(header for header in headers if header[1] == 2)
        names, out = headers[table[6]][4], {}
        for k in range(table[4], table[4] + table[5], 24):
            name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, k)
            start = names + name
            out[image[start : image.index(b"\0", start)].decode()] = value
        return out

    def _new(self, start: int, size: int) -> Iterator[tuple[int, int]]:
        """Where memory begins that is not mapped yet, and how long it is: each one costs the emulator as much."""
        first, last = start // PAGE, -(-(start + size) // PAGE)
        for new, pages in itertools.groupby(range(first, last), lambda page: page not in self.mapped):
            if new:
                found = [*pages]
                self.mapped.update(found)
                yield found[0] * PAGE, len(found) * PAGE

    def map(self, start: int, size: int) -> None:
        """Gives the program memory of its own."""
        for at, length in [*self._new(start, size)]:
            self.machine.mem_map(at, length, UC_PROT_ALL)

    def share(self, start: int, size: int) -> None:
        """Lets the program see memory of this process at its own address."""
        for at, length in [*self._new(start, size)]:
            self.machine.mem_map_ptr(at, length, UC_PROT_ALL, ctypes.c_void_p(at))

    def call(self, name: str, *arguments: int) -> None:
        """Runs a function from its first instruction to its return."""
        for k, argument in enumerate(arguments):
            self.machine.reg_write(arm.UC_ARM64_REG_X0 + k, argument & (1 << 64) - 1)
        self.machine.reg_write(arm.UC_ARM64_REG_SP, STACK + ROOM - 64)
        self.machine.reg_write(arm.UC_ARM64_REG_LR, HOME)
        self.machine.emu_start(self.symbols[name], HOME)


def compiled(code: str, folder: Path) -> Path:
    """A static program of functions. What it would need of the C library is not there."""
    source, unit, linked = (folder / f"unit{end}" for end in (".cpp", ".o", ""))
    source.write_text(code + LIBRARY)
    link = ("ld.lld", "-static", "--unresolved-symbols=ignore-all", "--entry=memcpy", str(unit), "-o", str(linked))
    for command in ((*FLAGS, str(source), "-o", str(unit)), link):
        done = subprocess.run([*ZIG, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return linked


class Emulated(CpuBackend):
    """The CPU's kernels, as a machine with NEON has them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(threads=1)
        self.folder = folder
        self._arrays: list[np.ndarray[Any, Any]] = []

    def zeros(self, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        array = super().zeros(shape, dtype)
        self._arrays.append(array)
        return array

    def zeros_all(self, shapes: Any) -> Any:
        arrays, addresses = super().zeros_all(shapes)
        self._arrays += arrays
        return arrays, addresses

    def compile(self, program: Program) -> Any:
        executable = Executable(compiled(program.code, self.folder))

        def launch(kernel: str) -> Any:
            def run(store: int, argument: Any, count: int, threads: int) -> None:
                for array in self._arrays:
                    executable.share(array.ctypes.data, array.nbytes)
                executable.share(store, PAGE)
                if kernel == "step" and argument:  # the indices of envs
                    executable.share(argument, 8 * count)
                executable.call(f"gz_launch_{kernel}", store, argument or 0, count, threads)

            return run

        return SimpleNamespace(launches={kernel: launch(kernel) for kernel in KERNELS}, threads=1, pack_width=4)
