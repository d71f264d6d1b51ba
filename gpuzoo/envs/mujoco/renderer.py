"""Pictures by MuJoCo's own renderer, where the package ``mujoco`` is installed and can draw."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from gpuzoo.envs.mujoco.options import ANY, Camera

Frame = NDArray[np.uint8]


def available() -> bool:
    """Whether ``mujoco`` is installed, and a GL context can be expected: from ``MUJOCO_GL``, or a display's."""
    if importlib.util.find_spec("mujoco") is None:
        return False
    wanted = os.environ.get("MUJOCO_GL", "").strip().lower()
    if wanted:
        return wanted not in ("disable", "disabled", "off", "false", "0")
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def gymnasiums_path(xml_file: str) -> Path:
    """The file of an option ``xml_file``: Gymnasium's own, unless it begins with ``.`` or ``~`` or is a whole path."""
    path = Path(xml_file).expanduser()
    if xml_file.startswith(".") or path.is_absolute():
        return path
    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / path


def default_view(id: str) -> Mapping[str, Any]:
    """Where Gymnasium's env of an id is looked at from."""
    module = str(gymnasium.spec(id).entry_point).partition(":")[0]
    found: Mapping[str, Any] = getattr(importlib.import_module(module), "DEFAULT_CAMERA_CONFIG", {})
    return found


def picture(
    mjcf: str | Path, like: str | None, qpos: NDArray[Any], width: int, height: int, chosen: Camera = ANY
) -> Frame:
    """A picture of a model at a position, (height, width, 3), from its camera ``track`` if it has one.

    Args:
        mjcf: the model's file, or the text of one.
        like: the id of Gymnasium's env whose free camera it is, if the model has none.
        qpos: the position.
        width: in pixels.
        height: in pixels.
        chosen: options of Gymnasium's renderer.

    Raises:
        ImportError: the package ``mujoco`` is not installed.
        RuntimeError: there is no GL context.
        ValueError: the model has no such camera.
    """
    renderer, model, data = _renderer(str(mjcf), width, height, chosen.max_geom, threading.get_ident())
    import mujoco

    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    names = [model.camera(k).name for k in range(model.ncam)]
    camera = chosen.name if chosen.name is not None else chosen.number
    if (isinstance(camera, str) and camera not in names) or (isinstance(camera, int) and camera >= len(names)):
        raise ValueError(f"the model has no camera {camera!r}; there are: {', '.join(names) or 'none'}.")
    if camera is None and chosen.view is None and "track" in names:
        camera = "track"
    if camera is None or camera == -1:
        view = chosen.view if chosen.view is not None else default_view(like) if like else {}
        camera = _free(mujoco, model, data, view)
    shown = mujoco.MjvOption()
    for flag, on in chosen.flags.items():
        shown.flags[flag] = on
    renderer.update_scene(data, camera, shown)
    found: Frame = renderer.render()
    return found


def _free(mujoco: Any, model: Any, data: Any, config: Mapping[str, Any]) -> Any:
    """The camera that Gymnasium's renderer begins with."""
    camera = mujoco.MjvCamera()
    camera.lookat[:] = np.median(data.geom_xpos, axis=0)
    camera.distance = model.stat.extent
    for name, value in config.items():
        if name == "lookat":
            camera.lookat[:] = value
        else:
            setattr(camera, name, value)
    camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FREE, -1
    return camera


@functools.lru_cache(maxsize=4)
def _renderer(mjcf: str, width: int, height: int, max_geom: int, thread: int) -> tuple[Any, Any, Any]:
    """Renderer, model and data. A GL context belongs to the thread that made it."""
    if importlib.util.find_spec("mujoco") is None:
        raise ImportError("MuJoCo's renderer is in the package mujoco: pip install 'gpuzoo[mujoco]'.")
    text = mjcf.lstrip().startswith("<")
    try:
        import mujoco

        model = mujoco.MjModel.from_xml_string(mjcf) if text else mujoco.MjModel.from_xml_path(mjcf)
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, height)
        return mujoco.Renderer(model, height, width, max_geom), model, mujoco.MjData(model)
    except Exception as error:  # each GL library has errors of its own, some of them while mujoco is imported
        raise RuntimeError(
            f"MuJoCo's renderer has no GL context ({error}): set MUJOCO_GL to egl or osmesa before mujoco is imported, "
            "or choose picture='canvas'."
        ) from error
