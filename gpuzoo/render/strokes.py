"""What is painted on a canvas: strokes, and the masks of recent shapes."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from PIL import Image

Box: TypeAlias = tuple[int, int, int, int]


@functools.lru_cache(maxsize=256)
def opacity(alpha: int) -> list[int]:
    """A mask's values, from 0 to 255, where the colour has an opacity below 255."""
    return [round(v * alpha / 255) for v in range(256)]


class Mask:
    """Coverage of a shape. If a large rectangle lies wholly inside it, or inside its outline, the rest is kept apart.

    Pillow fills a rectangle ten times as fast as it blends one through a mask.

    Attributes:
        solid: the rectangle to fill: left, top, right, bottom, or None.
        parts: box and mask of the rest.
        size: bytes that it takes in `Masks`, about: small shapes take less memory for pixels than for all the rest.
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


class Masks:
    """Masks of recent shapes. Games draw the same ones in every frame, so most frames rasterise next to nothing."""

    LIMIT = 16_000_000  # bytes

    def __init__(self) -> None:
        self._masks: OrderedDict[tuple[Any, ...], Mask] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...], make: Callable[[], Image.Image]) -> Mask:
        """The mask of a key, made where it is not there."""
        with self._lock:
            mask = self._masks.get(key)
            if mask is not None:
                self._masks.move_to_end(key)
                return mask
        mask = Mask(make(), key)
        with self._lock:
            if key not in self._masks:
                self._masks[key] = mask
                self._bytes += mask.size
            while self._bytes > self.LIMIT:
                self._bytes -= self._masks.popitem(last=False)[1].size
        return mask


_masks = Masks()
if hasattr(os, "register_at_fork"):  # another thread of the parent may hold the lock
    os.register_at_fork(after_in_child=_masks.__init__)  # type: ignore[misc]


@dataclasses.dataclass(slots=True)
class Stroke:
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
        """Paint it on a picture."""
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


def regions(strokes: Iterable[Stroke]) -> list[Box]:
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
