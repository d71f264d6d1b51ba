"""PTX text in parts: variables, functions with their parameters, and the words of a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

NAME = r"[\w$%.]+"
TYPE = re.compile(r"[usb](?:8|16|32|64)|f32|f64|pred")
SPACES = ("global", "shared", "local", "const", "param")
#: words of loads, stores and atomics that change no value
HINTS = re.compile(r"weak|volatile|relaxed|gpu|cta|sys|nc|c[agsv]|lu|w[bt]|L[12]::\w+|v[24]")
#: a brace of inline assembly, a label and perhaps its list of targets, a directive or an instruction
LINE = re.compile(rf"\s*(?:[{{}}]|({NAME}):(?:\s*\.branchtargets([^;]*);)?|([.@\w][^;]*);)\s*")
VARIABLE = re.compile(
    rf"\.(global|const|shared|local)\s+\.align\s+(\d+)\s+\.(\w+)\s+({NAME})(\[\d*\])?\s*(?:=([^;]*))?(?:;|$)"
)
PARAMETER = re.compile(
    rf"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+(?:\d+\s+)?)*)?({NAME})(?:\[(\d+)\])?"
)
#: with a body: not the declaration of one that follows
FUNCTION = re.compile(rf"\.(entry|func)\s+(?:\(([^)]*)\)\s*)?({NAME})\s*\(([^)]*)\)([^{{;]*)\{{")


class UnknownInstructionError(Exception):
    """PTX that this translator has no C++ for."""


def cleaned(ptx: str) -> str:
    """PTX without comments and debug information."""
    ptx = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*\.(?:loc|file)\b[^\n]*", "", ptx, flags=re.S | re.M)
    return re.sub(r"^\s*\.section\s[^{]*\{[^}]*\}", "", ptx, flags=re.M)


def bodies(ptx: str) -> Iterator[tuple[bool, str, str, str, str]]:
    """Of each kernel and function: whether it is a kernel, name, results and parameters, directives, body."""
    for found in FUNCTION.finditer(ptx):
        end, depth = found.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(ptx[end], 0)
            end += 1
        kind, results, name, parameters, directives = found.groups()
        yield kind == "entry", name, f"{results or ''} {parameters}", directives, ptx[found.end() : end - 1]


def variables_of(text: str) -> Iterator[tuple[str, str, int, int, int, str]]:
    """Name, space, alignment, size of an element, length and initial value of each variable."""
    for space, align, kind, name, length, value in VARIABLE.findall(text):
        size = size_of(kind)
        numbers = re.sub(r"\b0[fd]([0-9A-Fa-f]+)", r"0x\1", value).strip(" {}\n").split(",") if value else []
        if not all(re.fullmatch(r"\s*-?(0x[0-9A-Fa-f]+|\d+)\s*", number) for number in numbers):
            raise UnknownInstructionError(f"tests/ptx/translate.py does not know the initial value {value} of {name}.")
        values = ", ".join(f"(u{size * 8}){number}{'' if '-' in number else 'ull'}" for number in numbers)
        yield name, space, int(align), size, int(length.strip("[]") or 0) if length else 1, values


def size_of(kind: str) -> int:
    return int(kind[1:]) // 8


def c_name(name: str) -> str:
    return re.sub(r"\W", "_", f"_{name}")


def type_of(kind: str) -> str:
    return "bool" if kind == "pred" else kind.replace("b", "u")


def parts_of(text: str) -> list[str]:
    """The members of a vector or a list in brackets, or the one word that is none."""
    return [part.strip() for part in text.strip("{}()").split(",")]


def space_of(words: list[str]) -> str:
    return next((word for word in words if word in SPACES), "")
