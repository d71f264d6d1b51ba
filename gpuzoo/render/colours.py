"""Names of colours, and what drawings make of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Colours: TypeAlias = "str | Sequence[str] | NDArray[np.uint8]"
RGBA: TypeAlias = tuple[int, int, int, int]

PALETTE: dict[str, str] = {
    "white": "#ffffff", "paper": "#f6f7f9", "mist": "#e9ecf1", "line": "#d5dae2",
    "grey": "#9aa4b2", "slate": "#566273", "ink": "#1f2937", "black": "#000000",
    "red": "#e5575a", "orange": "#f08c42", "yellow": "#f2c14b", "green": "#4cae72",
    "teal": "#31a9a5", "blue": "#4285e0", "purple": "#8a66d3", "pink": "#e37bb0",
    "brown": "#9c7353", "sand": "#f1e7d0", "grass": "#dfeedb", "water": "#d3e6f6",
    "rose": "#f9dcdc", "lilac": "#e6def6",
}  # fmt: skip
"""Named colours: greys from white to ink, ten strong hues, and pale fills for large areas."""

CYCLE: tuple[str, ...] = ("blue", "orange", "green", "purple", "red", "teal", "yellow", "pink")
"""Palette names for teams or agents: ``CYCLE[team % len(CYCLE)]``."""


@functools.lru_cache(maxsize=4096)
def rgba_of(colour: str) -> RGBA:
    """Red, green, blue and opacity of a colour, from 0 to 255."""
    text = PALETTE.get(colour, colour)
    try:
        if text[0] != "#" or len(text) not in (7, 9):
            raise ValueError
        r, g, b, a = bytes.fromhex((text[1:] + "ff")[:8])
    except (ValueError, IndexError):
        names = ", ".join(PALETTE)
        message = f"unknown colour {colour!r}: use '#rrggbb', '#rrggbbaa' or one of {names}"
        raise ValueError(message) from None
    return r, g, b, a


def rgba_list(colours: Colours, n: int) -> list[RGBA]:
    """The same of ``n`` colours, or of one that is meant ``n`` times."""
    if isinstance(colours, str):
        return [rgba_of(colours)] * n
    if len(colours) != n:
        raise ValueError(f"expected one colour or {n}, got {len(colours)}")
    if isinstance(colours, np.ndarray):
        return [(c[0], c[1], c[2], c[3] if len(c) > 3 else 255) for c in colours.tolist()]
    return [rgba_of(c) for c in colours]


def fade(colour: str, alpha: float) -> str:
    """Return ``colour`` as ``'#rrggbbaa'`` with opacity ``alpha`` (0 invisible .. 1 opaque)."""
    r, g, b, _ = rgba_of(colour)
    return f"#{r:02x}{g:02x}{b:02x}{round(255 * min(max(alpha, 0.0), 1.0)):02x}"


def mix(a: str, b: str, t: float) -> str:
    """Return the ``'#rrggbbaa'`` colour a share ``t`` (clipped to 0..1) of the way from a to b."""
    t = min(max(t, 0.0), 1.0)
    pairs = zip(rgba_of(a), rgba_of(b), strict=True)
    return "#" + "".join(f"{round(p + (q - p) * t):02x}" for p, q in pairs)
