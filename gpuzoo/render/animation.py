"""Frames side by side, and animations of them: GIF, PNG, videos and pages."""

from __future__ import annotations

import base64
import html
import io
import itertools
import json
import math
import os
import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.render.colours import rgba_of
from gpuzoo.render.libraries import need, need_pillow
from gpuzoo.render.picture import Frame

if TYPE_CHECKING:
    from PIL import Image

#: what `save_animation` writes
SUFFIXES = (".gif", ".png", ".mp4", ".webm", ".html")


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
    sheet[:] = rgba_of(colour)[:3]
    for i in range(rows * columns):
        y, x = (i // columns) * (h + gap), (i % columns) * (w + gap)
        sheet[y : y + h, x : x + w] = frames[i] if i < len(frames) else rgba_of("mist")[:3]
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
        need("imageio_ffmpeg", f"Writing {suffix}", install)
        imageio = need("imageio.v2", f"Writing {suffix}", install)
    else:
        need_pillow()
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
