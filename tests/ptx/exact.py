"""Whether PTX rounds as the host does: instructions by name, and where fused multiply-adds come from."""

from __future__ import annotations

import re
from collections.abc import Iterator

EXACT = re.compile(
    r"(add|sub|mul|div|sqrt|rcp|fma)\.rn\.f32|(neg|abs|min|max|selp|mov)\.f32|setp\.\w+(\.(and|or|xor))?\.f32"
    r"|(ld|st)(\.\w+)*\.f32|cvt\.rn\.f32\.[us]\d+|cvt\.r[nzmp]i\.([us]\d+|f32)\.f32|shfl\.sync\.\w+\.b32"
)
INSTRUCTION = re.compile(r"^[ \t]+(@!?%p\d+\s+)?([a-z][\w.:]*)(\s[^;]*)?;", re.M)


def opcodes(ptx: str) -> set[str]:
    return {opcode for _, opcode, _ in INSTRUCTION.findall(ptx)}


def inexact(ptx: str) -> set[str]:
    """Instructions on floats that may give other bits than IEEE arithmetic, rounded to nearest."""
    floats = {op for op in opcodes(ptx) if re.search(r"\.(b?f\d+\w*|tf32|approx|ftz|full|sat)\b", op)}
    return {op for op in floats if not EXACT.fullmatch(op)}


def lines_of(code: str) -> dict[tuple[str, int], str]:
    """The lines of a translation unit, by the names that its ``#line`` marks give them."""
    lines, file, number = {}, "unit.cu", 0
    for text in code.splitlines():
        if mark := re.match(r'#line (\d+) "(.*)"', text):
            file, number = mark[2], int(mark[1]) - 1
        else:
            number += 1
            lines[file, number] = text
    return lines


def fused(ptx: str) -> Iterator[tuple[str, int]]:
    """The place in the source of each fused multiply-add."""
    files = {number: name for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.M)}
    place = ("", 0)
    for line in ptx.splitlines():
        if mark := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line):
            place = files[mark[1]], int(mark[2])
        elif re.match(r"\s*(@!?%p\d+\s+)?(fma|mad)\.\w+\.f", line):
            yield place


def unwritten_fusions(code: str, ptx: str) -> set[tuple[str, int]]:
    """Where a multiplication and an addition were fused although the source does not call for it."""
    source = {(file.rpartition("/")[2], number): text for (file, number), text in lines_of(code).items()}
    places = {(file.rpartition("/")[2], number) for file, number in fused(ptx)}
    return {place for place in places if "__fmaf_rn(" not in source.get(place, "")}
