"""Pixels of a picture: its size, and strokes painted to a frame."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuzoo.render.strokes import Box, Stroke, regions

Frame: TypeAlias = NDArray[np.uint8]


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


class Picture:
    """Pixels that strokes are painted on."""

    def __init__(self, width_px: int, height_px: int) -> None:
        """Take memory for a picture of this size."""
        from PIL import Image

        self._size = (width_px, height_px)
        self._pixels = np.empty((height_px, width_px, 4), np.uint8)
        self._image: Image.Image = Image.frombuffer("RGBX", self._size, self._pixels, "raw", "RGBX", 0, 1)
        self._image.readonly = 0  # Pillow draws into our memory: copying out of its own takes longer than drawing
        self._painted: list[Stroke] = []  # the last picture's
        self._same = 0  # how many of them were the picture's before, too
        #: strokes that the last pictures began with, what they look like, and this as a frame
        self._base: tuple[list[Stroke], NDArray[np.uint8], Frame] = (
            [],
            self._pixels,
            np.empty((height_px, width_px, 3), np.uint8),
        )

    def frame(self, strokes: list[Stroke]) -> Frame:
        """Paint a picture, and return it as a new contiguous array (height_px, width_px, 3).

        What this picture and the two before begin with is kept, and painted once.
        """
        begun, pixels, kept = self._base
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
            self._copy(kept, (0, 0, *self._size))
        self._base, self._painted = (begun, pixels, kept), list(strokes)
        frame = kept.copy()
        new = strokes[len(begun) :]
        for stroke in new:
            stroke.paint(self._image)
        for box in regions(new):
            self._copy(frame, box)
        return frame

    def _copy(self, frame: Frame, box: Box) -> None:
        """Copy what is painted in a box, one channel at a time: NumPy is five times as fast as with all at once."""
        left, top, right, bottom = box
        for channel in range(3):
            frame[top:bottom, left:right, channel] = self._pixels[top:bottom, left:right, channel]
