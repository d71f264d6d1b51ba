"""Drawing for the games' ``render`` methods: a canvas, tiling, animations and a window.

Pillow, pygame and imageio are imported on first use only. **Units.** Positions, radii and lengths
are in the game's world units (see `Canvas.view`). Line widths and text sizes are in *points*: one
point is 1/400 of the canvas's shorter side, so a drawing looks the same at every resolution.
Angles are in radians and mean the world direction ``(cos a, sin a)``. **Colours** are
``'#rrggbb'``, ``'#rrggbbaa'`` or names from `PALETTE`. One file: most of it is the canvas, one method for each shape.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import html
import importlib
import io
import itertools
import json
import math
import os
import string
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

__all__ = ["CYCLE", "PALETTE", "Canvas", "Window", "fade", "mix", "picture_size", "save_animation", "tile"]

Frame: TypeAlias = NDArray[np.uint8]
Colours: TypeAlias = "str | Sequence[str] | NDArray[np.uint8]"
RGBA: TypeAlias = tuple[int, int, int, int]
Box: TypeAlias = tuple[int, int, int, int]

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

#: what `save_animation` writes
SUFFIXES = (".gif", ".png", ".mp4", ".webm", ".html")
_HUD = 24.0  # height of the text strip, in points of its own
_MOST_DRAWN = 2000  # calls whose strokes a canvas remembers; the oldest are forgotten


def _need(module: str, purpose: str, install: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {install}") from error


def _need_pillow() -> None:
    _need("PIL.Image", "Rendering", "Pillow: pip install 'gpuzoo[render]'")


@functools.lru_cache(maxsize=4096)
def _rgba(colour: str) -> RGBA:
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


def _rgba_list(colours: Colours, n: int) -> list[RGBA]:
    if isinstance(colours, str):
        return [_rgba(colours)] * n
    if len(colours) != n:
        raise ValueError(f"expected one colour or {n}, got {len(colours)}")
    if isinstance(colours, np.ndarray):
        return [(c[0], c[1], c[2], c[3] if len(c) > 3 else 255) for c in colours.tolist()]
    return [_rgba(c) for c in colours]


@functools.lru_cache(maxsize=64)
def _font(size: float) -> tuple[ImageFont.FreeTypeFont, float]:
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise ImportError("Rendering text needs a Pillow with FreeType: pip install --force-reinstall pillow")
    return font, float(font.getbbox("H")[3] - font.getbbox("H")[1])


@functools.lru_cache(maxsize=1024)
def _extent(string: str, em: float, anchor: str, pen: int, scale: int) -> tuple[int, int, int, int]:
    """Left, top, width and height of a text in pixels, relative to its place; it is drawn ``scale`` times larger."""
    left, top, right, bottom = _font(em * scale)[0].getbbox(string, anchor=anchor, stroke_width=pen)
    x, y = math.floor(left / scale), math.floor(top / scale)
    return x, y, math.ceil(right / scale) - x + 1, math.ceil(bottom / scale) - y + 1


@functools.lru_cache(maxsize=1024)
def _length(string: str, em: float) -> float:
    return float(_font(em)[0].getlength(string))


@functools.lru_cache(maxsize=256)
def _opacity(alpha: int) -> list[int]:
    """A mask's values, from 0 to 255, where the colour has an opacity below 255."""
    return [round(v * alpha / 255) for v in range(256)]


def fade(colour: str, alpha: float) -> str:
    """Return ``colour`` as ``'#rrggbbaa'`` with opacity ``alpha`` (0 invisible .. 1 opaque)."""
    r, g, b, _ = _rgba(colour)
    return f"#{r:02x}{g:02x}{b:02x}{round(255 * min(max(alpha, 0.0), 1.0)):02x}"


def mix(a: str, b: str, t: float) -> str:
    """Return the ``'#rrggbbaa'`` colour a share ``t`` (clipped to 0..1) of the way from a to b."""
    t = min(max(t, 0.0), 1.0)
    pairs = zip(_rgba(a), _rgba(b), strict=True)
    return "#" + "".join(f"{round(p + (q - p) * t):02x}" for p, q in pairs)


class _Mask:
    """Coverage of a shape. If a large rectangle lies wholly inside it, or inside its outline, the rest is kept apart.

    Pillow fills a rectangle ten times as fast as it blends one through a mask.

    Attributes:
        solid: the rectangle to fill: left, top, right, bottom, or None.
        parts: box and mask of the rest.
        size: bytes that it takes in `_Masks`, about: small shapes take less memory for pixels than for all the rest.
    """

    __slots__ = ("parts", "size", "solid")

    def __init__(self, mask: Image.Image, key: tuple[Any, ...]) -> None:
        width, height = mask.size
        self.size = width * height + 1500 + 120 * len(key)
        self.solid: Box | None = None
        self.parts = [((0, 0, width, height), mask)]
        if width * height < 6000:
            return
        for share in (0.0, 0.04, 0.08, 0.15, 0.25):  # a circle's largest square leaves 0.15 free on each side
            x, y = max(1, math.ceil(share * width)), max(1, math.ceil(share * height))
            box = (x, y, width - x, height - y)
            if min(box[2] - x, box[3] - y) <= 25:
                return
            inside = mask.crop(box).getextrema()
            if inside in ((255, 255), (0, 0)):
                around = (
                    (0, 0, width, y),
                    (0, height - y, width, height),
                    (0, y, x, height - y),
                    (width - x, y, width, height - y),
                )
                self.parts = [(part, mask.crop(part)) for part in around]
                self.solid = box if inside == (255, 255) else None
                return


class _Masks:
    """Masks of recent shapes. Games draw the same ones in every frame, so most frames rasterise next to nothing."""

    LIMIT = 16_000_000  # bytes

    def __init__(self) -> None:
        self._masks: OrderedDict[tuple[Any, ...], _Mask] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...], make: Callable[[], Image.Image]) -> _Mask:
        with self._lock:
            mask = self._masks.get(key)
            if mask is not None:
                self._masks.move_to_end(key)
                return mask
        mask = _Mask(make(), key)
        with self._lock:
            if key not in self._masks:
                self._masks[key] = mask
                self._bytes += mask.size
            while self._bytes > self.LIMIT:
                self._bytes -= self._masks.popitem(last=False)[1].size
        return mask


_masks = _Masks()
if hasattr(os, "register_at_fork"):  # another thread of the parent may hold the lock
    os.register_at_fork(after_in_child=_masks.__init__)  # type: ignore[misc]


@dataclasses.dataclass(slots=True)
class _Stroke:
    """One colour or picture on the canvas, through a mask. Equal strokes paint equal pixels.

    Attributes:
        ink: a colour, or a picture.
        place: left and top in pixels.
        key: what determines the mask.
        size: width and height in pixels.
        make: makes the mask, None for a full rectangle.
    """

    ink: tuple[int, ...] | Image.Image
    place: tuple[int, int]
    key: tuple[Any, ...]
    size: tuple[int, int]
    make: Callable[[], Image.Image] | None = dataclasses.field(default=None, compare=False)

    def paint(self, image: Image.Image) -> None:
        left, top = self.place
        if self.make is None:
            image.paste(self.ink, (left, top, left + self.size[0], top + self.size[1]))
            return
        if not isinstance(self.ink, tuple):
            image.paste(self.ink, (left, top), self.make())
            return
        mask = _masks.get(self.key, self.make)
        paste = image.im.paste  # Image.paste takes as long again to look at its arguments
        if mask.solid:
            x0, y0, x1, y1 = mask.solid
            paste(self.ink, (left + x0, top + y0, left + x1, top + y1))
        for (x0, y0, x1, y1), part in mask.parts:
            paste(self.ink, (left + x0, top + y0, left + x1, top + y1), part.im)


def picture_size(aspect: float, side: int) -> tuple[int, int]:
    """Width and height in pixels of a picture whose longer side has ``side`` and whose width is ``aspect`` heights.

    Raises:
        ValueError: ``aspect`` is not between 1/16 and 16, or ``side`` is not positive.
    """
    if not 1 / 16 <= aspect <= 16 or side < 1:
        raise ValueError(
            f"a picture of {side} pixels with aspect={aspect}: want aspect in 1/16..16 and a positive side"
        )
    return max(1, round(side * min(1.0, aspect))), max(1, round(side * min(1.0, 1 / aspect)))


class Canvas:
    """An antialiased drawing of ``width_px`` x ``height_px`` pixels in world coordinates.

    Shapes are painted in call order; colours with alpha blend. The world window is the unit
    square until `view` is called. Outlines lie inside the shape for circles and rectangles and
    are centred on the edge elsewhere. Lines with a NaN or absurdly distant point are skipped. The
    same calls always give the same pixels.

    Attributes:
        seat: index of the agent who looks at the picture, or None: then everything is shown. See `hides`.

    Raises:
        ImportError: Pillow is not installed.
        ValueError: A size or ``supersample`` is not positive.
    """

    def __init__(self, width_px: int, height_px: int, *, supersample: int = 3) -> None:
        """Create a white canvas whose shapes lie on a grid ``supersample`` times finer than its pixels."""
        if min(width_px, height_px, supersample) < 1:
            raise ValueError("width_px, height_px and supersample must be positive")
        _need_pillow()
        from PIL import Image

        self.width_px, self.height_px, self._ss = width_px, height_px, supersample
        self.seat: int | None = None
        self._pt = min(width_px, height_px) * supersample / 400
        self._strip_pt = min(width_px, 1.5 * height_px) * supersample / 400  # wide pictures have a legible strip, too
        self._fine = (width_px * supersample, height_px * supersample)
        self._pixels = np.empty((height_px, width_px, 4), np.uint8)
        self._image: Image.Image = Image.frombuffer("RGBX", (width_px, height_px), self._pixels, "raw", "RGBX", 0, 1)
        self._image.readonly = 0  # Pillow draws into our memory: copying out of its own takes longer than drawing
        self._drawn: dict[Hashable, list[_Stroke]] = {}  # by call and view
        self._strokes: list[_Stroke] = []
        self._painted: list[_Stroke] = []  # the last picture's
        self._same = 0  # how many of them were the picture's before, too
        #: strokes that the last pictures began with, what they look like, and this as a frame
        self._base: tuple[list[_Stroke], NDArray[np.uint8], Frame] = (
            [],
            self._pixels,
            np.empty((height_px, width_px, 3), np.uint8),
        )
        self.clear()

    def clear(self) -> None:
        """Make the canvas white, with the unit square in view, for everybody's eyes."""
        self.seat = None
        self.background("white")
        self.view(0.0, 0.0, 1.0, 1.0)

    def view(
        self, x0: float, y0: float, x1: float, y1: float, *,
        y_down: bool = False, pad: float = 0.0, hud: bool = False,
    ) -> None:  # fmt: skip
        """Show the world window [x0, x1] x [y0, y1], centred, keeping its aspect ratio.

        ``y_down=True`` puts y0 at the top (boards, arrays). ``pad`` points stay free on each
        side, and with ``hud=True`` also the strip which `hud` draws.

        Raises:
            ValueError: The window is empty or the padding leaves no room.
        """
        top = _HUD * self._strip_pt if hud else 0.0
        width, height = self._fine
        w = width - 2 * pad * self._pt
        h = height - 2 * pad * self._pt - top
        if not (x1 > x0 and y1 > y0 and w > 0 and h > 0):
            raise ValueError(f"empty view: x from {x0} to {x1}, y from {y0} to {y1}, with pad={pad}")
        self._window = (x0, y0, x1, y1)
        self._sx = min(w / (x1 - x0), h / (y1 - y0))
        self._sy = self._sx if y_down else -self._sx
        self._ox = width / 2 - self._sx * (x0 + x1) / 2
        self._oy = (height + top) / 2 - self._sy * (y0 + y1) / 2
        self._place = (self._window, self._sx, self._sy, self._ox, self._oy)

    def seen(self) -> tuple[float, float, float, float]:
        """What of the world is in the picture, x0, y0, x1 and y1: the view, and what lies beside it."""
        width, height = self._fine
        xs = [(side - self._ox) / self._sx for side in (0, width)]
        ys = [(side - self._oy) / self._sy for side in (0, height)]
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def window(self) -> tuple[float, float, float, float]:
        """The view: x0, y0, x1 and y1."""
        return self._window

    def at(self, across: float, down: float) -> tuple[float, float]:
        """The world point at a place of the picture: from 0 to 1 rightwards and downwards."""
        width, height = self._fine
        return (across * width - self._ox) / self._sx, (down * height - self._oy) / self._sy

    def hides(self, owner: int) -> bool:
        """Whether an agent's secrets, such as the cards in its hand, are to be drawn face down: others look."""
        return self.seat is not None and self.seat != owner

    def cached(self, draw: Callable[..., None], *arguments: Hashable) -> None:
        """Call ``draw(canvas, *arguments)``, or repeat what it drew when this view last saw the same call.

        For what most pictures have in common: a board, a card, a piece in a cell. What ``draw`` draws must follow from
        its arguments alone; a function of a module is one call, a function within a function is another one each time.
        """
        key = (draw, arguments, self._place)
        strokes = self._drawn.get(key)
        if strokes is None:
            before, self._strokes = self._strokes, []
            try:
                draw(self, *arguments)
                strokes = self._strokes
            finally:
                self._strokes = before
            while len(self._drawn) >= _MOST_DRAWN:
                del self._drawn[next(iter(self._drawn))]
            self._drawn[key] = strokes
        self._strokes += strokes

    def _px(self, points: ArrayLike) -> NDArray[np.float64]:
        """World points (..., 2) -> places on the fine grid (..., 2)."""
        scale, offset = (self._sx, self._sy), (self._ox, self._oy)
        return np.asarray(points, dtype=np.float64) * scale + offset

    def _width(self, points: float) -> int:
        return max(1, round(points * self._pt))

    def _box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        """World corners -> box on the fine grid (left, top, right, bottom), the last two exclusive."""
        px = sorted((round(self._ox + self._sx * x0), round(self._ox + self._sx * x1)))
        py = sorted((round(self._oy + self._sy * y0), round(self._oy + self._sy * y1)))
        return px[0], py[0], max(px[1], px[0] + 1), max(py[1], py[0] + 1)

    def _paint(
        self, box: tuple[float, float, float, float], rgba: RGBA, shape: tuple[Any, ...],
        rasterise: Callable[[ImageDraw.ImageDraw, int, int], None],
    ) -> None:  # fmt: skip
        """Colour a shape through a mask of its coverage, so that it never overlaps itself.

        Args:
            box: left, top, right and bottom on the fine grid, the last two exclusive.
            rgba: its colour.
            shape: what determines the mask beside the place, on the fine grid relative to the top left of ``box``.
            rasterise: draws the shape in white, moved by (dx, dy).
        """
        ss = self._ss
        left, top = max(math.floor(box[0] / ss), 0), max(math.floor(box[1] / ss), 0)
        right, bottom = min(math.ceil(box[2] / ss), self.width_px), min(math.ceil(box[3] / ss), self.height_px)
        if right <= left or bottom <= top:
            return
        size, dx, dy = (right - left, bottom - top), -left * ss, -top * ss

        def make() -> Image.Image:
            from PIL import Image, ImageDraw

            fine = Image.new("L", (size[0] * ss, size[1] * ss))
            rasterise(ImageDraw.Draw(fine), dx, dy)
            mask = fine.reduce(ss) if ss > 1 else fine
            return mask if rgba[3] == 255 else mask._new(mask.im.point(_opacity(rgba[3]), None))

        key = (ss, size, box[0] + dx, box[1] + dy, rgba[3], *shape)
        self._strokes.append(_Stroke(rgba[:3], (left, top), key, size, make))

    def _poly(self, px: NDArray[np.float64], fill: RGBA) -> None:
        points = [(round(x), round(y)) for x, y in px.tolist() if abs(x) < 1e6 and abs(y) < 1e6]
        if len(points) < len(px):  # NaN, or so far that Pillow would take seconds
            return
        xs, ys = zip(*points, strict=True)
        x0, y0 = min(xs), min(ys)
        corners = [(x - x0, y - y0) for x, y in points]

        def rasterise(draw: ImageDraw.ImageDraw, dx: int, dy: int) -> None:
            draw.polygon([(x + x0 + dx, y + y0 + dy) for x, y in corners], fill=255)

        self._paint((x0, y0, max(xs) + 1, max(ys) + 1), fill, ("polygon", *corners), rasterise)

    def _stroke(self, px: NDArray[np.float64], rgba: RGBA, width: int, tail: float = 1.0) -> None:
        """Paint a polyline with round joints.

        Opacity grows linearly from ``tail`` x alpha at the first point to alpha at the last.
        """
        points = [(round(x), round(y)) for x, y in px.tolist() if abs(x) < 1e6 and abs(y) < 1e6]
        n = len(points)
        if n < 2 or n < len(px):  # NaN, or so far that Pillow would take seconds
            return
        x0, y0 = min(p[0] for p in points) - width, min(p[1] for p in points) - width
        x1, y1 = max(p[0] for p in points) + width + 1, max(p[1] for p in points) + width + 1
        flat = [(x - x0, y - y0) for x, y in points]
        r = (width - 1) / 2

        def rasterise(draw: ImageDraw.ImageDraw, dx: int, dy: int) -> None:
            places = [(x + x0 + dx, y + y0 + dy) for x, y in flat]
            for i in range(n - 1):
                ink = round(255 * (tail + (1 - tail) * (i + 1) / (n - 1)))
                draw.line([places[i], places[i + 1]], fill=ink, width=width)
                for x, y in (places[i], places[i + 1]) if width > 2 else ():
                    draw.ellipse((x - r, y - r, x + r, y + r), fill=ink)

        self._paint((x0, y0, x1, y1), rgba, ("stroke", width, tail, *flat), rasterise)

    def background(self, colour: str = "paper") -> None:
        """Fill the whole canvas, erasing what was drawn before (alpha is ignored)."""
        self._strokes = [_Stroke(_rgba(colour)[:3], (0, 0), (), self._image.size)]

    def _rectangle(self, box: Box, rgba: RGBA, radius: float = 0.0, pen: int = 0) -> None:
        """Paint a rectangle on the fine grid, or with a ``pen`` its outline alone."""
        left, top, right, bottom = box
        ink: dict[str, Any] = {"outline": 255, "width": pen} if pen else {"fill": 255}

        def rasterise(draw: ImageDraw.ImageDraw, dx: int, dy: int) -> None:
            draw.rounded_rectangle((left + dx, top + dy, right - 1 + dx, bottom - 1 + dy), radius, **ink)

        self._paint(box, rgba, ("rectangle", right - left, bottom - top, radius, pen), rasterise)

    def rect(
        self, x0: float, y0: float, x1: float, y1: float, *, fill: str | None = None,
        outline: str | None = None, width: float = 1.5, radius: float = 0.0,
    ) -> None:  # fmt: skip
        """Draw a rectangle between two corners; ``radius`` (world units) rounds its corners."""
        left, top, right, bottom = box = self._box(x0, y0, x1, y1)
        pen = self._width(width) if outline else 0
        if fill:
            rim = min(pen // 2, (right - left - 1) // 2, (bottom - top - 1) // 2)  # else it shows around the outline
            inset = (left + rim, top + rim, right - rim, bottom - rim)
            self._rectangle(inset, _rgba(fill), max(radius * self._sx - rim, 0.0))
        if outline:
            self._rectangle(box, _rgba(outline), radius * self._sx, pen)

    def circle(
        self, x: float, y: float, r: float, *,
        fill: str | None = None, outline: str | None = None, width: float = 1.5,
    ) -> None:  # fmt: skip
        """Draw a circle of radius ``r`` around (x, y)."""
        px, py, radius = self._ox + self._sx * x, self._oy + self._sy * y, r * self._sx
        ring, pen = (_rgba(outline), self._width(width)) if outline else (None, 0)
        self._disc(px, py, radius, _rgba(fill) if fill else None, ring, pen)

    def circles(
        self, xy: ArrayLike, r: ArrayLike, colours: Colours | None = "blue", *,
        outline: str | None = None, width: float = 1.5,
    ) -> None:  # fmt: skip
        """Draw circles around xy (N, 2) with radius ``r`` (a number or (N,)).

        ``colours`` fills them: one colour, N colours, or a uint8 array (N, 3) or (N, 4). Rows
        with NaN or infinity are skipped, as in `arrows` and `darts`.
        """
        centres = self._px(xy)
        radii = np.broadcast_to(np.asarray(r, dtype=np.float64) * self._sx, len(centres))
        fills = None if colours is None else _rgba_list(colours, len(centres))
        ring, pen = (_rgba(outline), self._width(width)) if outline else (None, 0)
        for i, ((px, py), radius) in enumerate(zip(centres.tolist(), radii.tolist(), strict=True)):
            self._disc(px, py, radius, fills[i] if fills else None, ring, pen)

    def _disc(self, px: float, py: float, r: float, fill: RGBA | None, ring: RGBA | None, pen: int) -> None:
        if not -1e6 < px < 1e6 or not -1e6 < py < 1e6:  # NaN too
            return
        left, top, d = round(px - r), round(py - r), max(round(2 * r), 1)
        if fill:
            inner = min(pen // 2, (d - 1) // 2)  # so that no rim of the filling is seen around the outline
            self._ellipse(left + inner, top + inner, d - 2 * inner, fill)
        if ring:
            self._ellipse(left, top, d, ring, pen)

    def _ellipse(self, left: int, top: int, d: int, rgba: RGBA, pen: int = 0) -> None:
        ink = {"outline": 255, "width": pen} if pen else {"fill": 255}

        def rasterise(draw: ImageDraw.ImageDraw, dx: int, dy: int) -> None:
            draw.ellipse((left + dx, top + dy, left + dx + d - 1, top + dy + d - 1), **ink)

        self._paint((left, top, left + d, top + d), rgba, ("ellipse", d, pen), rasterise)

    def line(
        self, x0: float, y0: float, x1: float, y1: float, *,
        colour: str = "ink", width: float = 1.5,
    ) -> None:  # fmt: skip
        """Draw a straight line with round ends."""
        self._stroke(self._px([(x0, y0), (x1, y1)]), _rgba(colour), self._width(width))

    def lines(self, starts: ArrayLike, ends: ArrayLike, *, colour: str = "ink", width: float = 1.5) -> None:
        """Draw N straight lines with round ends from ``starts`` to ``ends``, (N, 2) each.

        They are one shape, which is painted once: many lines cost little, and do not darken each other where they
        cross. Rows with NaN or infinity are skipped.
        """
        px = np.concatenate([self._px(starts), self._px(ends)], 1)
        px = np.rint(px[(np.abs(px) < 1e6).all(1)]).astype(int)
        if not len(px):
            return
        pen = self._width(width)
        corner = px.reshape(-1, 2).min(0) - pen
        flat = (px - np.tile(corner, 2)).tolist()
        r = (pen - 1) / 2

        def rasterise(draw: ImageDraw.ImageDraw, dx: int, dy: int) -> None:
            dx, dy = dx + x0, dy + y0
            for a, b, c, d in flat:
                ends = ((a + dx, b + dy), (c + dx, d + dy))
                draw.line(ends, fill=255, width=pen)
                for x, y in ends if pen > 2 else ():
                    draw.ellipse((x - r, y - r, x + r, y + r), fill=255)

        (x0, y0), (x1, y1) = corner.tolist(), (px.reshape(-1, 2).max(0) + pen + 1).tolist()
        self._paint((x0, y0, x1, y1), _rgba(colour), ("lines", pen, *(x for row in flat for x in row)), rasterise)

    def path(
        self, points: ArrayLike, *,
        colour: str = "ink", width: float = 1.5, closed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a polyline through points (N, 2) with round joints and ends."""
        px = self._px(points)
        px = np.concatenate([px, px[:1]]) if closed else px
        self._stroke(px, _rgba(colour), self._width(width))

    def trail(self, points: ArrayLike, *, colour: str = "blue", width: float = 2.0, tail: float = 0.0) -> None:
        """Draw a polyline (N, 2), oldest point first, fading in from ``tail`` x opacity."""
        self._stroke(self._px(points), _rgba(colour), self._width(width), tail)

    def polygon(
        self, points: ArrayLike, *,
        fill: str | None = None, outline: str | None = None, width: float = 1.5,
    ) -> None:  # fmt: skip
        """Draw a polygon with corners (N, 2)."""
        px = self._px(points)
        if fill:
            self._poly(px, _rgba(fill))
        if outline:
            self.path(points, colour=outline, width=width, closed=True)

    def sector(
        self, x: float, y: float, r: float, start: float, end: float, *,
        fill: str | None = None, outline: str | None = None, width: float = 1.5,
    ) -> None:  # fmt: skip
        """Draw a pie slice from angle ``start`` to ``end``, for example a field of view."""
        a = np.linspace(start, end, max(3, math.ceil(abs(end - start) / 0.05) + 1))
        edge = np.stack([x + r * np.cos(a), y + r * np.sin(a)], axis=-1)
        points = np.concatenate([[(x, y)], edge])
        self.polygon(points, fill=fill, outline=outline, width=width)

    def arrow(
        self, x: float, y: float, angle: float, length: float, *,
        colour: str = "ink", width: float = 2.0,
    ) -> None:  # fmt: skip
        """Draw an arrow from (x, y); ``length`` includes its head."""
        self.arrows([(x, y)], angle, length, colour, width=width)

    def arrows(
        self, xy: ArrayLike, angles: ArrayLike, lengths: ArrayLike, colours: Colours = "ink", *,
        width: float = 2.0,
    ) -> None:  # fmt: skip
        """Draw arrows from xy (N, 2); ``angles`` and ``lengths`` are numbers or (N,)."""
        n = len(np.asarray(xy))
        size = np.broadcast_to(np.asarray(lengths, dtype=np.float64) * self._sx, n)
        pen = np.minimum(width * self._pt, size * 0.4)
        zero, half, wing, neck = 0 * size, pen / 2, pen * 1.6, size - np.minimum(3 * pen, size)
        along = np.stack([zero, neck, neck, size, neck, neck, zero], axis=-1)
        across = np.stack([half, half, wing, zero, -wing, -half, -half], axis=-1)
        self._glyphs(xy, angles, along, across, colours)

    def dart(self, x: float, y: float, angle: float, size: float, *, fill: str = "blue") -> None:
        """Draw an agent with a heading: an arrowhead whose tip is ``size`` from (x, y)."""
        self.darts([(x, y)], angle, size, fill)

    def darts(self, xy: ArrayLike, angles: ArrayLike, sizes: ArrayLike, colours: Colours = "blue") -> None:
        """Draw many darts at xy (N, 2); ``angles`` and ``sizes`` are numbers or (N,)."""
        size = np.broadcast_to(np.asarray(sizes) * self._sx, len(np.asarray(xy)))[:, None]
        along, across = size * (1.0, -0.8, -0.45, -0.8), size * (0.0, 0.7, 0.0, -0.7)
        self._glyphs(xy, angles, along, across, colours)

    def _glyphs(
        self, xy: ArrayLike, angles: ArrayLike,
        along: NDArray[np.float64], across: NDArray[np.float64], colours: Colours,
    ) -> None:  # fmt: skip
        """Fill N polygons given in pixels along and across each agent's heading, both (N, K)."""
        a = np.broadcast_to(np.asarray(angles, dtype=np.float64), len(along))[:, None]
        cos, sin = np.cos(a), np.sin(a)
        local = np.stack([along * cos - across * sin, along * sin + across * cos], axis=-1)
        px = self._px(xy)[:, None, :] + local * (1.0, math.copysign(1.0, self._sy))
        rgba = _rgba_list(colours, len(along))
        seen = (px.max(1) >= 0).all(1) & (px.min(1) < self._fine).all(1)
        drawn = np.flatnonzero(seen & (np.abs(px) < 1e6).all((1, 2))).tolist()
        if len(drawn) > 8 and len(set(rgba)) == 1 and rgba[0][3] == 255:  # one shape costs less than many
            self._polys(np.rint(px[drawn]).astype(int), rgba[0])
            return
        for i in drawn:
            self._poly(px[i], rgba[i])

    def _polys(self, px: NDArray[Any], fill: RGBA) -> None:
        """Paint N polygons (N, K, 2) as one shape."""
        x0, y0 = px.min((0, 1)).tolist()
        x1, y1 = (px.max((0, 1)) + 1).tolist()

        def rasterise(draw: ImageDraw.ImageDraw, dx: int, dy: int) -> None:
            for corners in np.add(px, (dx, dy)).reshape(len(px), -1).tolist():
                draw.polygon(corners, fill=255)

        key = ("polygons", px.shape[1], *np.subtract(px, (x0, y0)).ravel().tolist())
        self._paint((x0, y0, x1, y1), fill, key, rasterise)

    def grid(self, nx: int, ny: int, *, colour: str = "line", width: float = 1.0) -> None:
        """Draw the lines which split the view into nx x ny cells, border included."""
        x0, y0, x1, y1 = self._window
        for x in np.linspace(x0, x1, nx + 1).tolist():
            self.line(x, y0, x, y1, colour=colour, width=width)
        for y in np.linspace(y0, y1, ny + 1).tolist():
            self.line(x0, y, x1, y, colour=colour, width=width)

    def image(self, pixels: Frame, x0: float, y0: float, x1: float, y1: float) -> None:
        """Draw uint8 cells (h, w, 3 or 4) over a rectangle, unsmoothed; row 0 lies at y0."""
        from PIL import Image

        left, top, right, bottom = (round(side / self._ss) for side in self._box(x0, y0, x1, y1))
        cells = pixels if self._sy > 0 else pixels[::-1]
        picture = Image.fromarray(np.ascontiguousarray(cells, dtype=np.uint8)).convert("RGBA")
        picture = picture.resize((max(right - left, 1), max(bottom - top, 1)), Image.Resampling.NEAREST)
        shape = (picture.size, picture.tobytes())
        self._strokes.append(
            _Stroke(picture.convert("RGBX"), (left, top), shape, picture.size, lambda: picture.getchannel("A"))
        )

    def text(
        self, x: float, y: float, string: str, *, size: float = 12.0, colour: str = "ink",
        anchor: str = "mm", bold: bool = False, height: float | None = None,
    ) -> None:  # fmt: skip
        """Write one line at (x, y) in ``size`` points, or ``height`` world units if given.

        ``anchor`` says which part of the text lies at (x, y): ``l``, ``m`` or ``r`` followed by
        ``t`` (top), ``m`` (middle of a capital letter), ``s`` (baseline) or ``b`` (bottom).
        """
        px, py = self._ox + self._sx * x, self._oy + self._sy * y
        em = size * self._pt if height is None else height * self._sx
        self._write(px, py, string, em, colour, anchor, bold)

    def _write(self, px: float, py: float, string: str, em: float, colour: str, anchor: str, bold: bool) -> None:
        px, py, em = px / self._ss, py / self._ss, max(em / self._ss, 1.0)
        if anchor[1:] == "m":  # the optical middle: half a capital letter above the baseline
            anchor, py = anchor[0] + "s", py + _font(em)[1] / 2
        scale = self._ss if bold else 1  # a pen is whole pixels wide, so bold letters are drawn larger
        pen = max(1, round(em * scale * 0.025)) if bold else 0
        left, top, *extent = _extent(string, em, anchor, pen, scale)
        size = (extent[0], extent[1])
        rgba = _rgba(colour)

        def make() -> Image.Image:
            from PIL import Image, ImageDraw

            mask = Image.new("L", (size[0] * scale, size[1] * scale))
            place, font = (-left * scale, -top * scale), _font(em * scale)[0]
            ImageDraw.Draw(mask).text(place, string, rgba[3], font, anchor=anchor, stroke_width=pen)
            return mask.reduce(scale) if scale > 1 else mask

        key = ("text", string, em, anchor, scale, pen, rgba[3])
        self._strokes.append(_Stroke(rgba[:3], (round(px) + left, round(py) + top), key, size, make))

    def hud(self, left: str = "", right: str = "", *, colour: str = "ink", fill: str = "#ffffffd0") -> None:
        """Write status texts on a strip along the top; ``view(hud=True)`` keeps it free."""
        w, h, gap = self._fine[0], round(_HUD * self._strip_pt), 9 * self._strip_pt
        em = 12.5 * self._strip_pt
        need = _length(left + "    " + right, max(em / self._ss, 1.0)) * self._ss
        em *= min(1.0, (w - 2 * gap) / max(need, 1.0))
        self._rectangle((0, 0, w, h), _rgba(fill))
        self._rectangle((0, h - self._width(1.0), w, h), _rgba("line"))
        self._write(gap, h / 2, left, em, colour, "lm", False)
        self._write(w - gap, h / 2, right, em, colour, "rm", False)

    def array(self) -> Frame:
        """Return the picture as a new contiguous uint8 array (height_px, width_px, 3).

        What this picture and the two before begin with is kept, and painted once.
        """
        strokes, (begun, pixels, kept) = self._strokes, self._base
        pairs = zip(strokes, self._painted, strict=False)
        same = next(
            (k for k, (new, old) in enumerate(pairs) if new is not old and new != old),
            min(len(strokes), len(self._painted)),
        )
        common, self._same = min(same, self._same), same
        if len(begun) > common:
            begun = []
        if begun:
            np.copyto(self._pixels, pixels)
        if common >= len(begun) + (8 if begun else 1):  # to paint a few costs less than to keep them
            for stroke in strokes[len(begun) : common]:
                stroke.paint(self._image)
            begun, pixels = strokes[:common], self._pixels.copy()
            self._copy(kept, (0, 0, self.width_px, self.height_px))
        self._base, self._painted = (begun, pixels, kept), list(strokes)
        frame = kept.copy()
        new = strokes[len(begun) :]
        for stroke in new:
            stroke.paint(self._image)
        for box in _regions(new):
            self._copy(frame, box)
        return frame

    def _copy(self, frame: Frame, box: Box) -> None:
        """Copy what is painted in a box, one channel at a time: NumPy is five times as fast as with all at once."""
        left, top, right, bottom = box
        for channel in range(3):
            frame[top:bottom, left:right, channel] = self._pixels[top:bottom, left:right, channel]


def _regions(strokes: Iterable[_Stroke]) -> list[Box]:
    """Boxes that cover some strokes: one for all those whose rows overlap."""
    boxes: list[Box] = []
    for top, left, bottom, right in sorted(
        (s.place[1], s.place[0], s.place[1] + s.size[1], s.place[0] + s.size[0]) for s in strokes
    ):
        top, left = max(top, 0), max(left, 0)
        if boxes and top < boxes[-1][3]:
            x0, y0, x1, y1 = boxes[-1]
            boxes[-1] = (min(x0, left), y0, max(x1, right), max(y1, bottom))
        else:
            boxes.append((left, top, right, bottom))
    return boxes


def tile(
    frames: Sequence[Frame] | Frame, columns: int | None = None, *,
    gap: int = 2, colour: str = "line",
) -> Frame:  # fmt: skip
    """Lay N equal frames (H, W, 3) uint8 out row by row, ``gap`` pixels apart, as one frame.

    ``columns`` defaults to the most nearly square layout; ``colour`` fills the gaps.

    Raises:
        ValueError: No frames, frames of different shapes, or ``columns`` below 1.
    """
    if not len(frames) or len({f.shape for f in frames}) > 1 or frames[0].ndim != 3:
        raise ValueError("tile needs at least one frame, all of one shape (H, W, 3)")
    columns = math.ceil(math.sqrt(len(frames))) if columns is None else columns
    if columns < 1 or gap < 0:
        raise ValueError("columns must be at least 1 and gap at least 0")
    h, w = frames[0].shape[:2]
    rows = math.ceil(len(frames) / columns)
    sheet = np.empty((rows * (h + gap) - gap, columns * (w + gap) - gap, 3), dtype=np.uint8)
    sheet[:] = _rgba(colour)[:3]
    for i in range(rows * columns):
        y, x = (i // columns) * (h + gap), (i % columns) * (w + gap)
        sheet[y : y + h, x : x + w] = frames[i] if i < len(frames) else _rgba("mist")[:3]
    return sheet


def _codes(frame: Frame) -> NDArray[np.uint32]:
    r, g, b = (frame[..., k].astype(np.uint32) for k in range(3))
    return np.asarray(r << 16 | g << 8 | b, dtype=np.uint32)


def _rgb(codes: NDArray[Any]) -> Frame:
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1).astype(np.uint8)


def _indexed(films: Sequence[Frame]) -> list[Image.Image]:
    """Reduce frames to one palette of 255 colours: the commonest exactly, others by median cut."""
    from PIL import Image

    sample = [_codes(films[i]).ravel() for i in np.linspace(0, len(films) - 1, 16).astype(int)]
    codes, counts = np.unique(np.concatenate(sample), return_counts=True)
    codes = codes[np.argsort(-counts, kind="stable")]
    exact, rest = codes[:128], codes[128:]
    colours = _rgb(exact).tobytes()
    if len(rest):
        cut = Image.fromarray(_rgb(rest)[None]).quantize(127, Image.Quantize.MEDIANCUT)
        colours += bytes(cut.getpalette() or [])[: 3 * 127]
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours)
    seen, index = np.zeros(1 << 24, dtype=np.bool_), np.zeros(1 << 24, dtype=np.uint8)
    for film in films:
        seen[_codes(film)] = True
    used = np.flatnonzero(seen)
    nearest = Image.fromarray(_rgb(used)[None]).quantize(palette=palette, dither=Image.Dither.NONE)
    index[used] = np.asarray(nearest)[0]
    index[exact] = np.arange(len(exact))  # Pillow's own search is only approximate
    images = [Image.fromarray(index[_codes(film)]) for film in films]
    for image in images:
        image.putpalette(colours)
    return images


def _page(films: Sequence[Frame], fps: float, title: str) -> str:
    """A page with a player: equal pictures are in it once."""
    places: dict[bytes, int] = {}
    order = [places.setdefault(film.tobytes(), len(places)) for film in films]
    kept = [films[order.index(k)] for k in range(len(places))]
    pictures = []
    for image in _indexed(kept):
        data = io.BytesIO()
        image.save(data, "PNG", optimize=True)
        pictures.append(base64.b64encode(data.getvalue()).decode())
    text = Path(__file__).with_name("replay.html").read_text(encoding="utf-8")
    film = json.dumps({"fps": fps, "pictures": pictures, "order": order})
    height, width = films[0].shape[:2]
    return string.Template(text).safe_substitute(title=html.escape(title), width=width, height=height, film=film)


def save_animation(
    frames: Iterable[Frame], path: str | os.PathLike[str], fps: float = 20, *, title: str = ""
) -> None:  # fmt: skip
    """Write frames (H, W, 3) uint8 as an endless .gif or .png (APNG), an .mp4 or .webm, or an .html page.

    GIFs share one adaptive palette and store only what changes; equal neighbouring frames are
    merged into one longer frame. A page has the palette of a GIF, needs no other file, and is
    called ``title``. Videos of odd size lose their last row or column. The file appears whole or
    not at all; missing parent folders are made.

    Raises:
        ValueError: Another suffix, no frames, frames of different shapes, or ``fps`` not
            positive (for .gif: not in 1..50, the range which players honour).
        ImportError: Pillow, or for videos imageio with ffmpeg, is not installed.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"cannot write {path.name!r}: use a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file")
    if not 0 < fps < math.inf or (suffix == ".gif" and not 1 <= fps <= 50):
        raise ValueError(f"fps={fps} is out of range for {suffix}")
    video = suffix in (".mp4", ".webm")
    if video:
        install = "imageio with ffmpeg: pip install 'imageio[ffmpeg]'"
        _need("imageio_ffmpeg", f"Writing {suffix}", install)
        imageio = _need("imageio.v2", f"Writing {suffix}", install)
    else:
        _need_pillow()
    films = [np.asarray(f, dtype=np.uint8) for f in frames]
    if not films or len({f.shape for f in films}) > 1 or films[0].shape[2:] != (3,):
        raise ValueError("save_animation needs at least one frame, all of one shape (H, W, 3)")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{suffix}")
    try:
        if video:
            h, w = films[0].shape[0] & ~1, films[0].shape[1] & ~1
            codec = "libx264" if suffix == ".mp4" else "libvpx-vp9"
            options = {"fps": fps, "codec": codec, "macro_block_size": 1}
            with imageio.get_writer(part, format="FFMPEG", **options) as writer:
                for film in films:
                    writer.append_data(np.ascontiguousarray(film[:h, :w]))
        elif suffix == ".html":
            part.write_text(_page(films, fps, title or path.stem), encoding="utf-8")
        else:
            from PIL import Image

            unit = 100 if suffix == ".gif" else 1000  # ticks a second which the format knows
            ticks = [round(i * unit / fps) for i in range(len(films) + 1)]
            times = [(b - a) * 1000 // unit for a, b in itertools.pairwise(ticks)]
            images = _indexed(films) if suffix == ".gif" else [*map(Image.fromarray, films)]
            more = images[1:]
            images[0].save(part, save_all=True, append_images=more, duration=times, loop=0)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def need_display() -> ModuleType:
    """Make sure that a window can be opened, and return pygame with its display begun.

    Raises:
        ImportError: pygame is not installed.
        RuntimeError: There is no display. A driver that shows nothing is accepted where SDL_VIDEODRIVER names it.
    """
    pygame = _need("pygame", "A window", "pygame: pip install 'gpuzoo[render]'")
    problem, screens = "", ("DISPLAY", "WAYLAND_DISPLAY")
    asked = os.environ.get("SDL_VIDEODRIVER") or os.environ.get("SDL_VIDEO_DRIVER") or ""
    try:
        if sys.platform == "linux" and not asked and not any(os.environ.get(name) for name in screens):
            raise pygame.error("DISPLAY and WAYLAND_DISPLAY name no screen")  # SDL would write a line of its own
        pygame.display.init()
        driver = pygame.display.get_driver()
        if driver in ("offscreen", "dummy") and driver not in asked.split(","):
            pygame.display.quit()
            problem = "DISPLAY and WAYLAND_DISPLAY name no screen"
    except pygame.error as error:
        problem = str(error)
    if problem:
        raise RuntimeError(
            f"a window needs a display, and there is none ({problem}): use render_mode='rgb_array' and save the "
            "frames, `gpuzoo record`, or a virtual display such as xvfb-run."
        )
    return pygame


class Window:
    """A pygame window, opened by the first `show`; the constructor does nothing else.

    Attributes:
        title: its title, which may change.
        closed: whether it was closed, by its button, by Escape or by `close`.
        held: keys that are pressed, the latest first, by their names in browsers: ``"ArrowLeft"``, ``" "``, ``"a"``.
        struck: keys that were pressed since they were last taken from this list.
        pointer: where the mouse or a finger is pressed, from 0 to 1 rightwards and downwards, or None.
        clicked: where it was pressed since these places were last taken from this list.
    """

    def __init__(self, title: str = "gpuzoo", fps: float | None = None) -> None:
        """Remember the title and the rate (frames a second) to which `show` slows down."""
        self.title, self.fps = title, fps
        self.closed = False
        self.held: list[str] = []
        self.struck: list[str] = []
        self.pointer: tuple[float, float] | None = None
        self.clicked: list[tuple[float, float]] = []
        self._pygame: ModuleType | None = None
        self._screen: Any = None
        self._clock: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is another window, which is not open yet."""
        return Window, (self.title, self.fps)

    def show(self, frame: Frame) -> bool:
        """Show a frame (H, W, 3) uint8; return False once the window has been closed.

        Raises:
            ImportError: pygame is not installed.
            RuntimeError: There is no display.
        """
        if self.closed:
            return False
        if self._pygame is None:
            self._pygame = need_display()
            self._clock = self._pygame.time.Clock()
        size = (frame.shape[1], frame.shape[0])
        if self._screen is None or self._screen.get_size() != size:
            self._screen = self._pygame.display.set_mode(size)
        if self._pygame.display.get_caption()[0] != self.title:
            self._pygame.display.set_caption(self.title)
        if not self._listen():
            self.close()
            return False
        self._pygame.surfarray.blit_array(self._screen, frame.swapaxes(0, 1))
        self._pygame.display.flip()
        if self.fps:
            self._clock.tick(self.fps)
        return True

    def _listen(self) -> bool:
        """Notice keys and mouse; return False where somebody wants to close the window."""
        pygame, arrows = self._pygame, {"left", "right", "up", "down"}
        assert pygame is not None
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                return False
            if event.type in (pygame.KEYDOWN, pygame.KEYUP):
                name = pygame.key.name(event.key)
                key = f"Arrow{name.title()}" if name in arrows else " " if name == "space" else name
                self.held = [other for other in self.held if other != key]
                if event.type == pygame.KEYDOWN:
                    self.held, self.struck = [key, *self.held], [*self.struck, key]
            elif event.type == pygame.MOUSEBUTTONUP:
                self.pointer = None
            elif event.type == pygame.MOUSEBUTTONDOWN or (event.type == pygame.MOUSEMOTION and self.pointer):
                width, height = self._screen.get_size()
                self.pointer = event.pos[0] / width, event.pos[1] / height
                if event.type == pygame.MOUSEBUTTONDOWN:
                    self.struck, self.clicked = [*self.struck, ""], [*self.clicked, self.pointer]
        return True

    def close(self) -> None:
        """Close the window; later calls of `show` do nothing. Safe to call twice."""
        self.closed = True
        if self._pygame is not None:
            self._pygame.display.quit()
            self._pygame = self._screen = self._clock = None
