"""The engine's headers, and the names that they take from rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gpuzoo.core.tokens import DialectError, Piece

DEVICE = Path(__file__).parent / "device"


@cache
def header(name: str) -> str:
    """The text of a header."""
    return f'#line 1 "{name}"\n' + (DEVICE / name).read_text(encoding="utf-8")


def defined(text: str) -> dict[str, int]:
    """Names of the constants that C++ defines outside of functions, and where they stand."""
    found = {m[1]: m.start() for m in re.finditer(r"^(?:constexpr [\w<>]+|#define) ([A-Z]\w*)", text, re.M)}
    for enum in re.finditer(r"\benum\b[^{;]*\{([^}]*)\}", text):
        found |= dict.fromkeys(re.findall(r"\b[A-Z]\w*", enum[1]), enum.start())
    return found


@cache
def taken() -> frozenset[str]:
    """Names that the engine defines, on any machine."""
    return frozenset(defined("\n".join(path.read_text(encoding="utf-8") for path in DEVICE.glob("*.cuh"))))


def check_names(rules: Sequence[Piece]) -> None:
    """Refuses constants of the rules that would be the engine's: some machines may not compile them, others may."""
    for piece in rules:
        for name, place in defined(piece.source).items():
            if name in taken():
                line = piece.line + piece.source.count("\n", 0, place)
                raise DialectError(f"{piece.path}:{line}: the engine has a name {name} of its own: choose another one.")
