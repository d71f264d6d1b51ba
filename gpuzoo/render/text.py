"""The font, and how large a text is in it."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import ImageFont


@functools.lru_cache(maxsize=64)
def font_of(size: float) -> tuple[ImageFont.FreeTypeFont, float]:
    """The font of a size in pixels, and the height of its capital letters."""
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise ImportError("Rendering text needs a Pillow with FreeType: pip install --force-reinstall pillow")
    return font, float(font.getbbox("H")[3] - font.getbbox("H")[1])


@functools.lru_cache(maxsize=1024)
def extent_of(string: str, em: float, anchor: str, pen: int, scale: int) -> tuple[int, int, int, int]:
    """Left, top, width and height of a text in pixels, relative to its place; it is drawn ``scale`` times larger."""
    left, top, right, bottom = font_of(em * scale)[0].getbbox(string, anchor=anchor, stroke_width=pen)
    x, y = math.floor(left / scale), math.floor(top / scale)
    return x, y, math.ceil(right / scale) - x + 1, math.ceil(bottom / scale) - y + 1


@functools.lru_cache(maxsize=1024)
def length_of(string: str, em: float) -> float:
    """How long a line of text is in pixels."""
    return float(font_of(em)[0].getlength(string))
