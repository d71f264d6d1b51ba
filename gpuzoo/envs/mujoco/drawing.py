"""Pictures of robots: their spheres, capsules and boxes, seen from the side or from above."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.physics.expressions import Trace
from gpuzoo.physics.kinematics import kinematics
from gpuzoo.physics.model import BOX, CAPSULE, CYLINDER, PLANE, Model
from gpuzoo.physics.spatial import constant_rotation
from gpuzoo.render import Canvas, mix

Floats = NDArray[np.float64]

_COLOURS = ("orange", "red", "purple", "blue", "teal", "green", "yellow", "pink")


def shapes(m: Model, qpos: NDArray[Any]) -> list[tuple[int, Floats, float]]:
    """(geom, points, radius) of what can be drawn at a position: all that is within the radius of the points' hull."""
    k = kinematics(Trace(), m, [float(x) for x in qpos], [0.0] * m.nv)
    out = []
    for g, kind in enumerate(m.geom_type):
        if kind == PLANE:
            continue
        body, size = int(m.geom_bodyid[g]), m.geom_size[g]
        centre = np.asarray(k.in_world(m, body, m.geom_pos[g]), float)
        axes = np.asarray(k.xmat[body] @ constant_rotation(m.geom_quat[g]), float)
        if kind == BOX:
            corners = np.array([*itertools.product((-1, 1), repeat=3)]) * size
            out.append((g, centre + corners @ axes.T, 0.0))
            continue
        half = axes[:, 2] * (size[1] if kind in (CAPSULE, CYLINDER) else 0.0)
        out.append((g, np.array([centre - half, centre + half]), float(size[0])))
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
    ends = np.concatenate([points for _, points, _ in found])
    middle = 0.0 if above and not _travels(m) else float(ends[:, 0].mean())
    low = -height / 2 + (float(ends[:, 1].mean()) if above and _travels(m) else 0.0) if above else -0.14 * height
    left = middle - 0.8 * height
    canvas.background("paper" if above else "water")
    canvas.view(left, low, left + 1.6 * height, low + height, hud=True)
    step = 10.0 ** np.floor(np.log10(height))
    left, low, right, high = canvas.seen()
    columns = np.arange(np.floor(left / step), right / step)
    if above:
        for x in columns:
            canvas.line(x * step, low, x * step, high, colour="line")
        for y in np.arange(np.floor(low / step), high / step):
            canvas.line(left, y * step, right, y * step, colour="line")
    else:
        canvas.rect(left, low, right, 0.0, fill="sand")
        for x in columns:
            if int(x) % 2:
                canvas.rect(x * step, low, (x + 1) * step, 0.0, fill=mix("sand", "brown", 0.12))
        canvas.line(left, 0.0, right, 0.0, colour="brown", width=2)
    far = 2 if above else 1
    nearness = [float(points[:, far].mean()) * (1 if above else -1) for _, points, _ in found]
    for n in np.argsort(nearness, kind="stable"):
        geom, points, radius = found[n]
        colour = _COLOURS[n % len(_COLOURS)] if m.geom_bodyid[geom] else "grey"  # what is of the world
        (_capsule if radius else _box)(canvas, points[:, [0, across]], radius, colour)
    canvas.hud(
        left=f"x {float(state['qpos'][0]):.2f}" if _travels(m) else "", right=f"step {int(state['elapsed_steps'])}"
    )


def _travels(m: Model) -> bool:
    """Whether the robot moves away from where it starts."""
    return bool(m.jnt_type[0] != 3 and not m.jnt_limited[0])


def _capsule(canvas: Canvas, ends: Floats, radius: float, colour: str) -> None:
    a, b = ends
    along = b - a
    length = float(np.hypot(*along))
    angle = float(np.arctan2(along[1], along[0])) if length > 0 else 0.0
    for grown, fill in ((radius, mix(colour, "ink", 0.35)), (0.82 * radius, colour)):
        turns = np.linspace(-np.pi / 2, np.pi / 2, 13)
        front = b + grown * np.stack([np.cos(angle + turns), np.sin(angle + turns)], 1)
        back = a - grown * np.stack([np.cos(angle + turns), np.sin(angle + turns)], 1)
        canvas.polygon(np.concatenate([front, back]), fill=fill)


def _box(canvas: Canvas, corners: Floats, radius: float, colour: str) -> None:
    canvas.polygon(_hull(corners), fill=colour, outline=mix(colour, "ink", 0.35), width=2)


def _hull(points: Floats) -> Floats:
    """The convex hull of some points, in order."""
    ordered = sorted({(float(x), float(y)) for x, y in points.round(9)})
    hull: list[tuple[float, float]] = []
    for row in (ordered, ordered[::-1]):
        first = len(hull)
        for x, y in row:
            while len(hull) > first + 1:
                (ax, ay), (bx, by) = hull[-2:]
                if (bx - ax) * (y - ay) > (by - ay) * (x - ax):
                    break
                hull.pop()
            hull.append((x, y))
        hull.pop()
    return np.array(hull)
