"""Pictures of robots: their spheres and capsules, seen from the side or from above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.physics.expressions import Trace
from gpuzoo.physics.kinematics import kinematics
from gpuzoo.physics.model import CAPSULE, CYLINDER, PLANE, Model
from gpuzoo.physics.spatial import constant_rotation
from gpuzoo.render import Canvas, mix

Floats = NDArray[np.float64]

_COLOURS = ("orange", "red", "purple", "blue", "teal", "green", "yellow", "pink")


def shapes(m: Model, qpos: NDArray[Any]) -> list[tuple[int, Floats, Floats, float]]:
    """(geom, one end, the other end, radius) of what can be drawn at a position."""
    k = kinematics(Trace(), m, [float(x) for x in qpos], [0.0] * m.nv)
    out = []
    for g, kind in enumerate(m.geom_type):
        if kind == PLANE:
            continue
        body = int(m.geom_bodyid[g])
        centre = np.asarray(k.origin + k.point(body, m.geom_pos[g]), float)
        axis = np.asarray(k.xmat[body] @ constant_rotation(m.geom_quat[g])[:, 2], float)
        half = axis * (m.geom_size[g, 1] if kind in (CAPSULE, CYLINDER) else 0.0)
        out.append((g, centre - half, centre + half, float(m.geom_size[g, 0])))
    return out


def draw(m: Model, state: Mapping[str, NDArray[Any]], canvas: Canvas, height: float, above: bool) -> None:
    """Draws a robot.

    Args:
        m: its model.
        state: of the env.
        canvas: of an aspect of 1.6.
        height: of what is seen, in metres.
        above: whether it is seen from above instead of from the side.
    """
    found = shapes(m, state["qpos"])
    across = 1 if above else 2
    ends = np.array([end for _, *pair, _ in found for end in pair])
    middle = 0.0 if above and not _travels(m) else float(ends[:, 0].mean())
    low = -height / 2 + (float(ends[:, 1].mean()) if above and _travels(m) else 0.0) if above else -0.14 * height
    left = middle - 0.8 * height
    canvas.background("paper" if above else "water")
    canvas.view(left, low, left + 1.6 * height, low + height, hud=True)
    step = 10.0 ** np.floor(np.log10(height))
    if above:
        for x in np.arange(np.floor(left / step), left / step + 1.7 * height / step):
            canvas.line(x * step, low, x * step, low + height, colour="line")
        for y in np.arange(np.floor(low / step), low / step + 1.1 * height / step):
            canvas.line(left, y * step, left + 1.6 * height, y * step, colour="line")
    else:
        canvas.rect(left, low, left + 1.6 * height, 0.0, fill="sand")
        for x in np.arange(np.floor(left / step), left / step + 1.7 * height / step):
            if int(x) % 2:
                canvas.rect(x * step, low, (x + 1) * step, 0.0, fill=mix("sand", "brown", 0.12))
        canvas.line(left, 0.0, left + 1.6 * height, 0.0, colour="brown", width=2)
    far = 2 if above else 1
    for n, (_, a, b, radius) in sorted(
        enumerate(found), key=lambda x: (x[1][1][far] + x[1][2][far]) * (1 if above else -1)
    ):
        colour = _COLOURS[n % len(_COLOURS)] if m.geom_bodyid[found[n][0]] else "grey"  # what is of the world
        _capsule(canvas, a[[0, across]], b[[0, across]], radius, colour)
    canvas.hud(
        left=f"x {float(state['qpos'][0]):.2f}" if _travels(m) else "", right=f"step {int(state['elapsed_steps'])}"
    )


def _travels(m: Model) -> bool:
    """Whether the robot moves away from where it starts."""
    return bool(m.jnt_type[0] != 3 and not m.jnt_limited[0])


def _capsule(canvas: Canvas, a: Floats, b: Floats, radius: float, colour: str) -> None:
    along = b - a
    length = float(np.hypot(*along))
    angle = float(np.arctan2(along[1], along[0])) if length > 0 else 0.0
    for grown, fill in ((radius, mix(colour, "ink", 0.35)), (0.82 * radius, colour)):
        turns = np.linspace(-np.pi / 2, np.pi / 2, 13)
        front = b + grown * np.stack([np.cos(angle + turns), np.sin(angle + turns)], 1)
        back = a - grown * np.stack([np.cos(angle + turns), np.sin(angle + turns)], 1)
        canvas.polygon(np.concatenate([front, back]), fill=fill)
