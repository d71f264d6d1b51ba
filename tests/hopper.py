"""What ptxas may do wrong for Hopper, found in machine code.

``VIMNMX.RELU`` is ``max(min(x, n), 0)``. Its predicates tell whether x is between 0 and n. ptxas 12.6 to 13.3 takes
them for ``result == n``: on an H200, ``clamp(x, 0, n) == n`` was true for all x from 0 to n, and false above.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VIMNMX = 0x48  # the lower bits of the opcode; higher ones tell what kind of operand the second is
RELU = 1 << 12  # of the upper half
NO_PREDICATES = 0b111_111 << 17


def sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and contents of the sections of a 64-bit ELF file."""
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count, of_names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, start + k * size) for k in range(count)]
    names = headers[of_names][4]
    for name, kind, _, _, offset, length in headers:
        text = cubin[names + name : cubin.index(b"\0", names + name)].decode()
        yield text, cubin[offset : offset + length] if kind == 1 else b""


def instructions(cubin: bytes) -> Iterator[tuple[int, int]]:
    """Both halves of each instruction."""
    for name, code in sections(cubin):
        if name.startswith(".text."):
            yield from struct.iter_unpack("<QQ", code)


def is_wrong(low: int, high: int) -> bool:
    return low & 0x1FF == VIMNMX and bool(high & RELU) and high & NO_PREDICATES != NO_PREDICATES


def wrong_clamps(cubin: bytes) -> int:
    return sum(is_wrong(low, high) for low, high in instructions(cubin))
