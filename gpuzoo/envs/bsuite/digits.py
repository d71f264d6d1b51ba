"""Pictures of digits: drawn here, or read from MNIST's files.

The drawn ones are strokes with corners cut off (Chaikin, 1974), slanted, stretched and moved at random. All of it is
sums, products and quotients, which IEEE 754 rounds in one way, so the pictures are the same on every machine.
"""

from __future__ import annotations

import functools
import gzip
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Pictures = tuple[NDArray[np.uint8], NDArray[np.uint8]]

PER_DIGIT = 50
SIZE = 28
_PIXEL = 64  # lengths are in 64ths of a pixel
_STROKES: dict[int, list[str]] = {  # ways to write a digit: strokes of points x,y in a box of 100 x 140, y downwards
    0: ["50,0 12,8 0,70 12,132 50,140 88,132 100,70 88,8 50,0 40,2"],
    1: ["20,35 58,0 58,140", "55,0 50,70 45,140"],
    2: [
        "5,35 15,5 60,-5 95,25 85,60 40,105 0,138 50,136 100,138",
        "5,30 45,-8 100,20 70,80 5,140 25,105 60,135 100,130",
    ],
    3: ["5,20 40,-5 90,8 88,50 35,66 92,75 100,120 50,148 0,120", "5,5 90,5 45,58 95,70 98,125 45,145 0,125"],
    4: ["30,0 22,40 5,88 100,88;72,50 68,95 66,140", "65,140 72,0 0,95 100,95"],
    5: ["95,3 20,3 14,55 60,48 102,80 90,130 40,146 0,125", "20,5 15,60 75,50 100,95 70,140 5,138;20,5 95,0"],
    6: ["80,0 30,25 2,90 25,142 75,140 98,105 75,72 30,75 8,105"],
    7: ["0,8 98,5 60,70 40,140", "5,12 50,8 98,8 62,75 48,140;20,75 85,72"],
    8: ["92,22 50,-8 8,20 30,55 75,80 98,115 50,150 4,118 25,80 75,52 92,22"],
    9: ["92,30 60,-5 12,10 8,55 50,72 88,50 94,20 92,80 80,140", "90,35 50,-8 5,30 30,70 80,55 95,20 85,90 45,140"],
}


def _smooth(points: NDArray[np.int64]) -> NDArray[np.int64]:
    for _ in range(2):
        cut = np.stack([3 * points[:-1] + points[1:], points[:-1] + 3 * points[1:]], axis=1).reshape(-1, 2) // 4
        points = np.concatenate([points[:1], cut, points[-1:]])
    return points


def _picture(rng: np.random.RandomState, way: str) -> NDArray[np.uint8]:
    def draw(low: int, high: int, shape: tuple[int, ...] = ()) -> NDArray[np.int64]:
        return rng.randint(low, high, shape, dtype=np.int64)

    across, down = draw(1650, 2450), draw(2050, 2400)
    slant, tilt = draw(-500, 700), draw(-250, 250)
    shift, pen = draw(-96, 97, (2,)), int(draw(55, 120))
    starts, ends = [], []
    for stroke in way.split(";"):
        points = np.array([p.split(",") for p in stroke.split()], np.int64)
        points = _smooth(16 * (points + draw(-6, 7, points.shape)))
        x, y = (points - [16 * 50, 16 * 70]).T
        line = (
            np.stack([across * x - slant * y, tilt * x + down * y], axis=1) // (16 * 256) + SIZE * _PIXEL // 2 + shift
        )
        starts.append(line[:-1])
        ends.append(line[1:])
    (ax, ay), (bx, by) = np.concatenate(starts).T.astype(float), np.concatenate(ends).T.astype(float)
    middle = _PIXEL * np.arange(SIZE, dtype=float) + _PIXEL / 2
    dx, dy = bx - ax, by - ay
    px, py = (place.reshape(-1, 1) for place in np.meshgrid(middle, middle))
    square = np.maximum(dx * dx + dy * dy, 1.0)
    foot = np.clip((dx * (px - ax) + dy * (py - ay)) / square, 0.0, 1.0)
    x, y = px - ax - foot * dx, py - ay - foot * dy
    distance = (x * x + y * y).min(1)  # squared, to the nearest stroke
    inner, outer = pen**2, (pen + 70) ** 2
    ink: NDArray[np.float64] = np.clip(np.floor((outer - distance) * 255.0 / (outer - inner)), 0.0, 255.0)
    return ink.reshape(SIZE, SIZE).astype(np.uint8)


@functools.cache
def drawn() -> Pictures:
    """Drawn digits, and which ones they are: (n, 28, 28) and (n,), digits 0 to 9 in turn."""
    rng = np.random.RandomState(0)
    labels = np.tile(np.arange(10, dtype=np.uint8), PER_DIGIT)
    return np.stack([_picture(rng, _STROKES[d][rng.randint(len(_STROKES[d]))]) for d in labels.tolist()]), labels


def _idx(folder: Path, name: str, dims: int) -> NDArray[np.uint8]:
    found = [folder / (name + end) for end in ("", ".gz") if (folder / (name + end)).is_file()]
    if not found:
        raise FileNotFoundError(f"there is neither {name} nor {name}.gz in {folder}.")
    data = found[0].read_bytes()
    if found[0].suffix == ".gz":
        data = gzip.decompress(data)
    shape = tuple(int.from_bytes(data[4 + 4 * k : 8 + 4 * k], "big") for k in range(dims))
    start = 4 + 4 * dims
    if data[:4] != bytes([0, 0, 8, dims]) or len(data) != start + int(np.prod(shape)):
        raise ValueError(f"{found[0]} is not a complete idx file of {dims}-dimensional bytes.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _npz(path: Path) -> Pictures:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is neither a folder nor an .npz file.")
    with np.load(path) as file:
        for names in (("x_train", "y_train"), ("images", "labels")):
            if set(names) <= set(file.files):
                return file[names[0]], file[names[1]]
        raise ValueError(f"{path} holds {', '.join(file.files)}: want x_train and y_train, or images and labels.")


def shape(data: str) -> tuple[int, ...]:
    """Height and width of the pictures that `load` gives; drawn ones need not be drawn for that."""
    return load(data)[0].shape[1:] if data else (SIZE, SIZE)


@functools.lru_cache(maxsize=2)
def load(data: str) -> Pictures:
    """Pictures (n, height, width) and labels (n,), both uint8.

    Args:
        data: a folder with MNIST's training files, ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte``, packed
            with gzip or not; or an ``.npz`` file with ``x_train`` and ``y_train``; or nothing, for drawn digits.

    Raises:
        FileNotFoundError: a path that does not exist.
        ValueError: a file with something else in it.
    """
    if not data:
        return drawn()
    path = Path(data).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"data={data!r}: there is no such file or folder.")
    if path.is_dir():
        images, labels = _idx(path, "train-images-idx3-ubyte", 3), _idx(path, "train-labels-idx1-ubyte", 1)
    else:
        images, labels = _npz(path)
    if images.ndim != 3 or not images.size or labels.shape != images.shape[:1] or images.dtype != np.uint8:
        raise ValueError(
            f"{path}: want pictures (n, height, width) of uint8 and labels (n,), "
            f"not {images.shape} of {images.dtype} and {labels.shape}."
        )
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 9:
        raise ValueError(f"{path}: labels must be integers from 0 to 9.")
    return images, labels.astype(np.uint8)
