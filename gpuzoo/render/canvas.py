"""A canvas: one method for each shape that games draw.

One class: all shapes share the view, which turns a game's coordinates into pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpuzoo.render.colours import RGBA, Colours, rgba_list, rgba_of
from gpuzoo.render.libraries import need_pillow
from gpuzoo.render.picture import Frame, Picture
from gpuzoo.render.strokes import Box, Stroke, opacity
from gpuzoo.render.text import extent_of, font_of, length_of

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

_HUD = 24.0  # height of the text strip, in points of its own
_MOST_DRAWN = 2000  # calls whose strokes a canvas remembers; the oldest are forgotten


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
        need_pillow()
        self.width_px, self.height_px, self._ss = width_px, height_px, supersample
        self.seat: int | None = None
        self._pt = min(width_px, height_px) * supersample / 400
        self._strip_pt = min(width_px, 1.5 * height_px) * supersample / 400  # wide pictures have a legible strip, too
        self._fine = (width_px * supersample, height_px * supersample)
        self._picture = Picture(width_px, height_px)
        self._drawn: dict[Hashable, list[Stroke]] = {}  # by call and view
        self._strokes: list[Stroke] = []
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
            return mask if rgba[3] == 255 else mask._new(mask.im.point(opacity(rgba[3]), None))

        key = (ss, size, box[0] + dx, box[1] + dy, rgba[3], *shape)
        self._strokes.append(Stroke(rgba[:3], (left, top), key, size, make))

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
        self._strokes = [Stroke(rgba_of(colour)[:3], (0, 0), (), (self.width_px, self.height_px))]

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
            self._rectangle(inset, rgba_of(fill), max(radius * self._sx - rim, 0.0))
        if outline:
            self._rectangle(box, rgba_of(outline), radius * self._sx, pen)

    def circle(
        self, x: float, y: float, r: float, *,
        fill: str | None = None, outline: str | None = None, width: float = 1.5,
    ) -> None:  # fmt: skip
        """Draw a circle of radius ``r`` around (x, y)."""
        px, py, radius = self._ox + self._sx * x, self._oy + self._sy * y, r * self._sx
        ring, pen = (rgba_of(outline), self._width(width)) if outline else (None, 0)
        self._disc(px, py, radius, rgba_of(fill) if fill else None, ring, pen)

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
        fills = None if colours is None else rgba_list(colours, len(centres))
        ring, pen = (rgba_of(outline), self._width(width)) if outline else (None, 0)
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
        self._stroke(self._px([(x0, y0), (x1, y1)]), rgba_of(colour), self._width(width))

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
        self._paint((x0, y0, x1, y1), rgba_of(colour), ("lines", pen, *(x for row in flat for x in row)), rasterise)

    def path(
        self, points: ArrayLike, *,
        colour: str = "ink", width: float = 1.5, closed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a polyline through points (N, 2) with round joints and ends."""
        px = self._px(points)
        px = np.concatenate([px, px[:1]]) if closed else px
        self._stroke(px, rgba_of(colour), self._width(width))

    def trail(self, points: ArrayLike, *, colour: str = "blue", width: float = 2.0, tail: float = 0.0) -> None:
        """Draw a polyline (N, 2), oldest point first, fading in from ``tail`` x opacity."""
        self._stroke(self._px(points), rgba_of(colour), self._width(width), tail)

    def polygon(
        self, points: ArrayLike, *,
        fill: str | None = None, outline: str | None = None, width: float = 1.5,
    ) -> None:  # fmt: skip
        """Draw a polygon with corners (N, 2)."""
        px = self._px(points)
        if fill:
            self._poly(px, rgba_of(fill))
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
        rgba = rgba_list(colours, len(along))
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
            Stroke(picture.convert("RGBX"), (left, top), shape, picture.size, lambda: picture.getchannel("A"))
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
            anchor, py = anchor[0] + "s", py + font_of(em)[1] / 2
        scale = self._ss if bold else 1  # a pen is whole pixels wide, so bold letters are drawn larger
        pen = max(1, round(em * scale * 0.025)) if bold else 0
        left, top, *extent = extent_of(string, em, anchor, pen, scale)
        size = (extent[0], extent[1])
        rgba = rgba_of(colour)

        def make() -> Image.Image:
            from PIL import Image, ImageDraw

            mask = Image.new("L", (size[0] * scale, size[1] * scale))
            place, font = (-left * scale, -top * scale), font_of(em * scale)[0]
            ImageDraw.Draw(mask).text(place, string, rgba[3], font, anchor=anchor, stroke_width=pen)
            return mask.reduce(scale) if scale > 1 else mask

        key = ("text", string, em, anchor, scale, pen, rgba[3])
        self._strokes.append(Stroke(rgba[:3], (round(px) + left, round(py) + top), key, size, make))

    def hud(self, left: str = "", right: str = "", *, colour: str = "ink", fill: str = "#ffffffd0") -> None:
        """Write status texts on a strip along the top; ``view(hud=True)`` keeps it free."""
        w, h, gap = self._fine[0], round(_HUD * self._strip_pt), 9 * self._strip_pt
        em = 12.5 * self._strip_pt
        need = length_of(left + "    " + right, max(em / self._ss, 1.0)) * self._ss
        em *= min(1.0, (w - 2 * gap) / max(need, 1.0))
        self._rectangle((0, 0, w, h), rgba_of(fill))
        self._rectangle((0, h - self._width(1.0), w, h), rgba_of("line"))
        self._write(gap, h / 2, left, em, colour, "lm", False)
        self._write(w - gap, h / 2, right, em, colour, "rm", False)

    def array(self) -> Frame:
        """Return the picture as a new contiguous uint8 array (height_px, width_px, 3)."""
        return self._picture.frame(self._strokes)
