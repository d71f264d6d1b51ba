"""Launch bounds: how many registers a kernel may use, so that half of an SM's threads have room.

A GPU hides the time that memory takes behind other threads, if there are enough of them. The compiler does not know
how many are wanted, and takes as many registers as help one thread. So a program is compiled once, and once more with
bounds for those of its kernels that took too many. A bound that makes a kernel spill is eased until it does not.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

REGISTERS = 65536  #: of an SM, for all compute capabilities from 7.5 on
WARP = 32
KERNELS = ("step", "rollout")  #: those whose speed counts
#: threads of an SM by compute capability, and for all that are not here
_THREADS = {"75": 1024, "86": 1536, "87": 1536, "88": 1536, "89": 1536, "110": 1536, "120": 1536, "121": 1536}
_MOST_THREADS = 2048

#: options of a compiler to a program and the compiler's log
Compile = Callable[[tuple[str, ...]], tuple[bytes, str]]


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a kernel needs, as ptxas reports it.

    Attributes:
        registers: per thread.
        local: bytes of local memory per thread: stack frame and spills, 0 in a kernel that is in order.
        shared: bytes of static shared memory per block.
    """

    registers: int
    local: int
    shared: int


def usage(log: str) -> dict[str, Usage]:
    """The kernels of a program by name, from a log with ``--ptxas-options=-v``."""
    found = re.findall(
        r"properties for gz_(\w+)\n\D*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
        r".*?Used (\d+) registers([^\n]*)",
        log,
    )
    shared = [re.search(r"(\d+) bytes smem", rest) for *_, rest in found]
    return {
        name: Usage(int(registers), int(stack) + int(stores) + int(loads), int(bytes_[1]) if bytes_ else 0)
        for (name, stack, stores, loads, registers, _), bytes_ in zip(found, shared, strict=True)
    }


def most_threads(arch: str) -> int:
    """Threads of an SM of an architecture such as ``sm_90``."""
    return _THREADS.get(re.sub(r"\D", "", arch), _MOST_THREADS)


def resident(registers: int, block: int) -> int:
    """Blocks for which an SM has registers. It gives them to warps, 256 at a time."""
    of_warp = -(-registers * WARP // 256) * 256
    return REGISTERS // of_warp // (block // WARP)


def bounded(compile_with: Compile, block: int, arch: str) -> tuple[bytes, str]:
    """Compiles a game such that half of an SM's threads have registers for a step, if that is possible without spills.

    Args:
        compile_with: the compiler, which is given macros for the launch bounds, and leaves ptxas' report in its log.
        block: threads per block.
        arch: such as ``sm_90``.

    Returns:
        What the compiler returned last.
    """
    result = compile_with(())
    free = usage(result[1])
    wanted = -(-most_threads(arch) // 2 // block)
    # A kernel that spills without a bound is not helped by one.
    candidates = [name for name in KERNELS if not free[name].local]
    blocks = {name: wanted for name in candidates if resident(free[name].registers, block) < wanted}
    while blocks:
        result = compile_with(macros(blocks))
        spilling = [name for name in blocks if usage(result[1])[name].local]
        if not spilling:
            break
        for name in spilling:
            blocks[name] -= 1
            if blocks[name] <= resident(free[name].registers, block):
                del blocks[name]
        if not blocks:
            result = compile_with(())
    return result


def macros(blocks: Mapping[str, int]) -> tuple[str, ...]:
    """Compiler options that bound kernels to as many registers as so many blocks of an SM have."""
    return tuple(f"-DGZ_BLOCKS_{name}={count}" for name, count in sorted(blocks.items()))
