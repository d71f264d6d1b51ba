"""Options under Gymnasium's names and in its types, turned into parameters."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuzoo.core.definition import Config
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.values import config_types

#: what a free camera has, by the names of MuJoCo's ``MjvCamera``
_VIEW = ("type", "fixedcamid", "trackbodyid", "lookat", "distance", "azimuth", "elevation", "orthographic")
#: in place of a bound that is infinite
_FAR = 1e30


@dataclasses.dataclass(frozen=True)
class Camera:
    """How MuJoCo's renderer draws.

    Attributes:
        size: width and height of a picture in pixels, if they are given.
        number: of one of the model's cameras; -1 is a free one.
        name: of one of the model's cameras.
        view: of a free camera, by the names of ``MjvCamera``.
        max_geom: how many geoms may be drawn.
        flags: of ``MjvOption``.
    """

    size: tuple[int, int] | None = None
    number: int | None = None
    name: str | None = None
    view: Mapping[str, Any] | None = None
    max_geom: int = 1000
    flags: Mapping[int, bool] = dataclasses.field(default_factory=dict)


ANY = Camera()
#: options of Gymnasium's renderer
RENDERING = (
    "width",
    "height",
    "camera_id",
    "camera_name",
    "default_camera_config",
    "max_geom",
    "visual_options",
)


@functools.lru_cache(maxsize=64)
def camera_of(text: str) -> Camera:
    """The parameter ``camera``, read.

    Raises:
        ValueError: it is no JSON, has an unknown option, or one of the wrong kind.
    """
    try:
        options = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise ValueError(f"camera={text!r} is no JSON: {error}.") from error
    if not isinstance(options, dict):
        raise ValueError(f"camera={text!r} is no JSON object of options.")
    for name in options:
        if name not in RENDERING:
            raise ValueError(unknown("camera has no option", name, RENDERING))
    for name in ("width", "height", "max_geom"):
        if name in options and (type(options[name]) is not int or options[name] < 1):
            raise ValueError(f"{name} must be a positive int, not {options[name]!r}.")
    number, name, view = (options.get(key) for key in ("camera_id", "camera_name", "default_camera_config"))
    if number is not None and name is not None:
        raise ValueError("camera_id and camera_name cannot be given both: choose one.")
    if number is not None and (type(number) is not int or number < -1):
        raise ValueError(f"camera_id must be the number of a camera, or -1 for a free one, not {number!r}.")
    for key in view or ():
        if key not in _VIEW:
            raise ValueError(unknown("default_camera_config has no entry", key, _VIEW))
    size = (options.get("width", 480), options.get("height", 480)) if {"width", "height"} & {*options} else None
    flags = {int(flag): bool(on) for flag, on in (options.get("visual_options") or {}).items()}
    return Camera(size, number, name, view, options.get("max_geom", ANY.max_geom), flags)


def check_camera(owner: str, text: str) -> None:
    """Checks the parameter ``camera``.

    Raises:
        ValueError: see `camera_of`.
    """
    try:
        camera_of(text)
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from error


def parameters_of(config: type[Config], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters of a robot, from options that may have Gymnasium's names and types.

    ``NAME_range=(low, high)`` is ``NAME_low`` and ``NAME_high``; options of the renderer are parts of ``camera``; a
    path and the number of a body are texts.

    Raises:
        ValueError: a range that is not two numbers.
    """
    known = config_types(config)
    out: dict[str, Any] = {}
    drawing: dict[str, Any] = {}
    for name, value in options.items():
        stem = name.removesuffix("_range")
        if name in known:
            out[name] = _text(value) if known[name] is str else value
        elif stem != name and f"{stem}_low" in known:
            if np.shape(value) != (2,):
                raise ValueError(f"{name} must be two numbers, the lowest and the highest, not {value!r}.")
            out[f"{stem}_low"], out[f"{stem}_high"] = (float(np.clip(x, -_FAR, _FAR)) for x in value)
        elif name in RENDERING and "camera" in known:
            drawing |= {} if value is None else {name: value}
        else:
            out[name] = value
    if drawing:
        drawing = json.loads(out.get("camera") or "{}") | drawing
        out["camera"] = json.dumps(drawing, default=_plain)
    return out


def _text(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else value


def _plain(value: Any) -> Any:
    """Of what `json` does not know."""
    return np.asarray(value).tolist()
