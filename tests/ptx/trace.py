"""The addresses that a kernel's threads access, from its PTX executed on the host."""

from __future__ import annotations

import ctypes
import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuzoo.core.backend import Kernels
from gpuzoo.core.codegen import Program

from .host import PtxBackend, PtxKernels, build, ptx_of
from .translate import translate

#: an access of a thread; one of 16 bytes is aligned to them, so it lies within one sector
ACCESS = np.dtype(
    [("address", np.uint64), ("block", np.uint32), ("thread", np.uint32), ("site", np.uint32), ("kind", np.uint32)]
)
STORE = 1 << 16  #: in `kind`, beside the bytes
MOST = 24_000_000  #: accesses of one launch

_RECORDER = f"""
struct Access {{
  u64 address;
  u32 block, thread, site, kind;
}};
static Access *accesses;
static u64 recorded;
static void record(Thread &t, u32 site, const void *p, u32 kind) {{
  if (accesses && recorded < {MOST}) accesses[recorded] = {{(u64)p, t.ctaid.x, t.index, site, kind}};
  ++recorded;
}}
extern "C" u64 trace(Access *to) {{
  const u64 before = recorded;
  accesses = to, recorded = 0;
  return before;
}}
"""
_PLACE = re.compile(r"= (at\([^;]*?, (\d+), odd\);)([^}]*)")


def _recorded(code: str) -> str:
    """A kernel that records its accesses of memory that is not shared."""
    sites = iter(range(1 << 30))

    def add(found: re.Match[str]) -> str:
        place, size, rest = found.groups()
        if "shared_memory" in place:
            return found[0]
        kind = int(size) | STORE * ("put<" in rest)
        return f"= {place} record(t, {next(sites)}, p, {kind});{rest}"

    return _PLACE.sub(add, code)


@dataclasses.dataclass(frozen=True)
class Requests:
    """Loads, or stores, of global memory by whole warps.

    Attributes:
        requests: how often a warp executed such an instruction.
        sectors: how many sectors of 32 bytes these requests touched, each counted for itself.
        distinct: how many different sectors they touched in all.
    """

    requests: int
    sectors: int
    distinct: int


class TraceBackend(PtxBackend):
    """A `PtxBackend` whose kernels can be traced: reset, random actions and steps of one game."""

    def compile(self, program: Program) -> Kernels:
        variables, entries = translate(ptx_of(self.head + program.code, program.env.id))
        wanted = [entry for entry in entries if entry.name in ("gz_reset", "gz_act", "gz_step")]
        wanted = [dataclasses.replace(entry, code=_recorded(entry.code)) for entry in wanted]
        library, kernels = build(variables, wanted, f"trace-{program.env.id}", _RECORDER)
        self._trace = library.trace
        self._trace.argtypes, self._trace.restype = [ctypes.c_void_p], ctypes.c_uint64
        return PtxKernels(kernels, program)

    def start(self) -> None:
        """Records from now on."""
        self._accesses = np.zeros(MOST, ACCESS)
        self._trace(self._accesses.ctypes.data)

    def stop(self) -> np.ndarray[Any, Any]:
        """The accesses since `start`, in the order of each thread.

        Raises:
            RuntimeError: they were more than `MOST`.
        """
        count = int(self._trace(None))
        if count > MOST:
            raise RuntimeError(f"{count} accesses are more than the {MOST} that can be recorded: take fewer envs.")
        return self._accesses[:count]


def requests(accesses: np.ndarray[Any, Any], store: bool, ranges: Mapping[str, tuple[int, int]]) -> Requests:
    """Counts those accesses that are stores, or that are none, and lie in one of the ranges of addresses.

    The k-th time that threads of a warp execute an instruction counts as one request.
    """
    chosen = accesses[(accesses["kind"] >= STORE) == store]
    inside = np.zeros(len(chosen), bool)
    for start, size in ranges.values():
        inside |= (chosen["address"] >= start) & (chosen["address"] < start + size)
    chosen = chosen[inside]
    if not len(chosen):
        return Requests(0, 0, 0)
    thread = chosen["block"].astype(np.uint64) << 10 | chosen["thread"]
    site = chosen["site"].astype(np.uint64)
    own = thread << np.uint64(24) | site
    order = np.argsort(own, kind="stable")
    new = np.r_[True, own[order][1:] != own[order][:-1]]
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    times = np.empty(len(order), np.uint64)
    times[order] = np.arange(len(order)) - first
    sectors = chosen["address"] >> 5
    warp = thread >> 5
    request = np.stack([warp, site, times], 1)
    _, request_of = np.unique(request, axis=0, return_inverse=True)
    pairs = np.unique(np.stack([request_of.ravel().astype(np.uint64), sectors], 1), axis=0)
    return Requests(int(request_of.max()) + 1, len(pairs), len(np.unique(sectors)))
