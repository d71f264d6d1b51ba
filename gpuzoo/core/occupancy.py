"""Launch bounds: how many registers a kernel may use, so that half of an SM's threads have room, or three quarters.

A GPU hides the time that memory takes behind other threads, if there are enough of them. The compiler does not know
how many are wanted, and takes as many registers as help one thread. So a program is compiled once, and once more with
bounds for those of its kernels that took too many. Where a bound makes a kernel spill, the program is compiled with
loops over agents that are not unrolled, and with threads that do not help each other at an episode's end. If it spills
even so, the bound is eased until it does not.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

REGISTERS = 65536  #: of an SM, for all compute capabilities from 7.5 on
WARP = 32
#: threads of a block whose warps wait for each other so often that an SM needs more blocks beside it. TagGridWorld with
#: 1,000 agents makes 1.2 times as many steps with three blocks of 512 threads as with two.
LARGE = 128
KERNELS = ("step", "rollout")  #: those whose speed counts
#: threads of an SM by compute capability, and for all that are not here
_THREADS = {"75": 1024, "86": 1536, "87": 1536, "88": 1536, "89": 1536, "110": 1536, "120": 1536, "121": 1536}
_MOST_THREADS = 2048
#: KB of shared memory of an SM, likewise; the system takes one of each block
_SHARED = {"75": 64, "80": 164, "86": 100, "87": 164, "88": 100, "89": 100, "120": 100, "121": 100}
_MOST_SHARED = 228

#: loops over agents as loops; prelude.cuh
ROLLED = ("-DGZ_ROLLED_LANES=1",)
#: without what takes registers: reading all before writing, and the neighbours' help at an env's end; episode.cuh
ALONE = ("-DGZ_HELP=0",)
FORMS = ((), ROLLED, ALONE, (*ALONE, *ROLLED))

#: options of a compiler to a program and the compiler's log
Compile = Callable[[tuple[str, ...]], tuple[bytes, str]]


class Bounded(NamedTuple):
    """A compiled program.

    Attributes:
        cubin: the program.
        log: the compiler's, with ptxas' report.
        options: the macros that were chosen for it.
    """

    cubin: bytes
    log: str
    options: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a kernel needs, as ptxas reports it.

    Attributes:
        registers: per thread.
        stack: bytes of local memory per thread, for arrays and for registers that are spilled.
        spills: bytes that a thread's instructions store to and load from spilled registers.
        shared: bytes of static shared memory per block.
    """

    registers: int
    stack: int
    spills: int
    shared: int

    @property
    def local(self) -> int:
        """0 in a kernel that is in order."""
        return self.stack + self.spills


def usage(log: str) -> dict[str, Usage]:
    """The kernels of a program by name, with the functions that they call, from a log with ``--ptxas-options=-v``."""
    found = {}
    for part in re.split(r"properties for gz_", log)[1:]:
        bytes_ = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        stack, stores, loads = (sum(map(int, column)) for column in zip(*bytes_, strict=True))
        registers, shared = (re.search(words, part) for words in (r"Used (\d+) registers", r"(\d+) bytes smem"))
        assert registers
        kernel = re.split(r"\W", part, maxsplit=1)[0]
        found[kernel] = Usage(int(registers[1]), stack, stores + loads, int(shared[1]) if shared else 0)
    return found


def most_threads(arch: str) -> int:
    """Threads of an SM of an architecture such as ``sm_90``."""
    return _THREADS.get(re.sub(r"\D", "", arch), _MOST_THREADS)


def resident(registers: int, block: int) -> int:
    """Blocks for which an SM has registers. It gives them to warps, 256 at a time."""
    of_warp = -(-registers * WARP // 256) * 256
    return REGISTERS // of_warp // (block // WARP)


def roomy(shared: int, arch: str) -> int:
    """Blocks for which an SM of an architecture has shared memory, of which each takes so many bytes."""
    return _SHARED.get(re.sub(r"\D", "", arch), _MOST_SHARED) * 1024 // (shared + 1024)


def bounded(compile_with: Compile, block: int, arch: str) -> Bounded:
    """Compiles a game such that half of an SM's threads have registers for a step, if that is possible without spills.

    Of large blocks three quarters of them.

    Where shared memory has no room for so many, as many threads as it has room for are enough.

    Args:
        compile_with: the compiler, which is given macros, and leaves ptxas' report in its log.
        block: threads per block.
        arch: such as ``sm_90``.
    """

    @functools.cache
    def made(options: tuple[str, ...]) -> Bounded:
        return Bounded(*compile_with(options), options)

    def spilling(result: Bounded) -> list[str]:
        """Those that have local memory which they do not have without a bound."""
        return [name for name, use in usage(result.log).items() if use.local > free[name].local]

    first = made(())
    free = usage(first.log)
    share = most_threads(arch) * (3 if block > LARGE else 2) // 4
    wanted = {name: min(-(-share // block), roomy(free[name].shared, arch)) for name in KERNELS}
    # A kernel that spills without a bound is not helped by one.
    candidates = [name for name in KERNELS if not free[name].local]
    blocks = {name: wanted[name] for name in candidates if resident(free[name].registers, block) < wanted[name]}
    if not blocks:
        return first
    tried: dict[tuple[str, ...], Bounded] = {}
    for form in FORMS:
        tried[form] = made((*form, *macros(blocks)))
        if not spilling(tried[form]):
            return tried[form]

    def eased(form: tuple[str, ...]) -> Bounded:
        """Each kernel with the most blocks with which it does not spill, found by bisection."""
        low = {name: resident(free[name].registers, block) for name in blocks}  # as without a bound
        high = {name: count - (name in spilling(tried[form])) for name, count in blocks.items()}
        low |= {name: count for name, count in blocks.items() if high[name] == count}
        while any(low[name] < high[name] for name in blocks):
            middle = {name: -(-(low[name] + high[name]) // 2) for name in blocks}
            spilled = spilling(made((*form, *macros(middle))))
            for name, count in middle.items():
                if name in spilled:
                    high[name] = max(low[name], count - 1)
                else:
                    low[name] = count
        helped = {name: low[name] for name in blocks if low[name] > resident(free[name].registers, block)}
        return made((*form, *macros(helped))) if form or helped else first

    # Which form is the best one is up to the step. A rollout does the same, and the choice of actions.
    for form in FORMS:
        if "step" not in spilling(tried[form]):
            found = eased(form)
            if not spilling(found):
                return found
    return eased(())


def macros(blocks: Mapping[str, int]) -> tuple[str, ...]:
    """Compiler options that bound kernels to as many registers as so many blocks of an SM have."""
    return tuple(f"-DGZ_BLOCKS_{name}={count}" for name, count in sorted(blocks.items()))
