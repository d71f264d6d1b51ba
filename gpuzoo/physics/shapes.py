"""The nearest points of two shapes (``mjraw_*``): each pair of shapes has a function that says where they may touch.

Its numbers are constants of the model. Those of contacts that share the code of a loop are read from tables, so what is
written here asks a `Place` for them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

import numpy as np

from gpuzoo.physics.expressions import Array, Expr, Number, Trace, constants, dot, zeros
from gpuzoo.physics.model import BOX, CAPSULE, CYLINDER, PLANE, SPHERE, Model
from gpuzoo.physics.spatial import constant_rotation, cross


class Place(Protocol):
    """What a shape's function may ask while the code of one touch is written."""

    @property
    def trace(self) -> Trace:
        """Where the code goes."""

    def number(self, name: str) -> Number:
        """A constant of the touch."""

    def vector(self, name: str) -> Array:
        """Three constants of the touch."""

    def frame(self, side: int) -> tuple[Array, Array]:
        """Position and orientation of a body of the touch: 0 the first geom's, 1 the second's."""

    @property
    def origin(self) -> Array:
        """What positions are relative to, in the world."""


@dataclasses.dataclass
class Nearest:
    """The nearest points of two geoms.

    Attributes:
        distance: between their surfaces; negative where they overlap.
        point: in the middle.
        normal: from the first geom to the second.
        axis: what the first tangent lies along, as far as it may.
    """

    distance: Number
    point: Array
    normal: Array
    axis: Array | None = None


_MINVAL = 1e-15  # mjMINVAL

#: a place of a pair where it may touch: the function, what touches with the same code have in common, and numbers
Part: TypeAlias = tuple[Callable[[Place], Nearest], tuple[object, ...], dict[str, float]]


def _vector(name: str, x: Array) -> dict[str, float]:
    return {f"{name}{i}": float(x[i]) for i in range(3)}


def _frame(m: Model, geom: int, side: int) -> dict[str, float]:
    """Where a geom lies in its body: its centre and three axes."""
    axes = constant_rotation(m.geom_quat[geom])
    out = _vector(f"centre_{side}_", constants(m.geom_pos[geom]))
    for i, name in enumerate("xyz"):
        out |= _vector(f"{name}_{side}_", axes[:, i])
    return out


def _plane(m: Model, f: int) -> tuple[Array, dict[str, float]]:
    """The normal of a plane that does not move, and how far along it the plane is."""
    normal = constant_rotation(m.geom_quat[f])[:, 2]
    return normal, {"height": float(np.dot(normal.astype(float), m.geom_pos[f]))}


def _plane_round(m: Model, f: int, g: int) -> Iterator[Part]:
    normal, numbers = _plane(m, f)
    axis, capsule = constant_rotation(m.geom_quat[g])[:, 2], m.geom_type[g] == CAPSULE
    half = float(m.geom_size[g, 1]) if capsule else 0.0
    numbers |= {"radius": float(m.geom_size[g, 0]), **_vector("axis", axis)}
    for end in (half, -half) if half else (0.0,):
        place = _vector("end", constants(m.geom_pos[g]) + axis * end)
        yield _on_plane(normal, half > 0.0), ("on plane", half > 0.0, *normal), numbers | place


def _round_round(m: Model, f: int, g: int) -> Iterator[Part]:
    halves = [float(m.geom_size[x, 1]) if m.geom_type[x] == CAPSULE else 0.0 for x in (f, g)]
    numbers: dict[str, float] = {}
    for side, x in enumerate((f, g)):
        axis = constant_rotation(m.geom_quat[x])[:, 2]
        numbers |= _vector(f"centre_{side}_", constants(m.geom_pos[x])) | {f"radius_{side}": m.geom_size[x, 0]}
        numbers |= _vector(f"axis_{side}_", axis * halves[side]) | {f"square_{side}": halves[side] ** 2}
    long = tuple(h > 0.0 for h in halves)
    yield _between_segments(*long), ("segments", *long), numbers


def _plane_cylinder(m: Model, f: int, g: int) -> Iterator[Part]:
    normal, numbers = _plane(m, f)
    numbers |= _frame(m, g, 1) | {"radius": float(m.geom_size[g, 0]), "half": float(m.geom_size[g, 1])}
    for corner in range(4):
        yield _cylinder_on_plane(normal, corner), ("cylinder on plane", corner, *normal), numbers


def _plane_box(m: Model, f: int, g: int) -> Iterator[Part]:
    normal, numbers = _plane(m, f)
    axes, centre = constant_rotation(m.geom_quat[g]), constants(m.geom_pos[g])
    numbers |= _vector("centre", centre)
    # Of two opposite corners only the lower one may touch.
    for signs in itertools.product((-1.0, 1.0), repeat=2):
        corner = _vector("corner", axes @ (np.array([*signs, 1.0]) * m.geom_size[g]))
        yield _corners_on_plane(normal), ("corners on plane", *normal), numbers | corner


def _sphere_cylinder(m: Model, f: int, g: int) -> Iterator[Part]:
    numbers = _frame(m, f, 0) | _frame(m, g, 1) | {"radius_0": float(m.geom_size[f, 0])}
    numbers |= {"radius_1": float(m.geom_size[g, 0]), "half_1": float(m.geom_size[g, 1])}
    yield _sphere_and_cylinder, ("sphere and cylinder",), numbers


def _sphere_box(m: Model, f: int, g: int) -> Iterator[Part]:
    numbers = _frame(m, f, 0) | _frame(m, g, 1) | {"radius": float(m.geom_size[f, 0])}
    yield _sphere_and_box, ("sphere and box",), numbers | _vector("size", m.geom_size[g])


def _capsule_cylinder(m: Model, f: int, g: int) -> Iterator[Part]:
    sizes = [*m.geom_size[f, :2], *m.geom_size[g, :2], m.geom_margin[f] + m.geom_margin[g]]
    both = _CapsuleAndCylinder(f"pair_{f}_{g}", [float(x) for x in sizes])
    numbers = _frame(m, f, 0) | _frame(m, g, 1)
    for n in (0, 1):
        yield functools.partial(both.nearest, n), ("capsule and cylinder", f, g, n), numbers


def _on_plane(normal: Array, capsule: bool) -> Callable[[Place], Nearest]:
    """A sphere, or one end of a capsule, and a plane that does not move (``mjc_PlaneSphere``, ``mjc_PlaneCapsule``)."""

    def nearest(at: Place) -> Nearest:
        pos, mat = at.frame(1)
        centre, radius = pos + mat @ at.vector("end"), at.number("radius")
        distance = dot(normal, centre + at.origin) - (at.number("height") + radius)
        point = centre - normal * (distance * 0.5 + radius)
        return Nearest(distance, point, normal, mat @ at.vector("axis") if capsule else None)

    return nearest


def _between_segments(first: bool, second: bool) -> Callable[[Place], Nearest]:
    """Two spheres or capsules (``mjc_CapsuleCapsule``). A sphere is a segment of length 0.

    Parallel capsules have one contact here, at one of the many nearest points, where MuJoCo may have two.
    """

    def nearest(at: Place) -> Nearest:
        t = at.trace
        centres, axes = [], []
        for side, long in ((0, first), (1, second)):
            pos, mat = at.frame(side)
            centres.append(pos + mat @ at.vector(f"centre_{side}_"))
            axes.append(mat @ at.vector(f"axis_{side}_") if long else None)
        apart = centres[0] - centres[1]
        x, y = _parameters(t, axes[0], axes[1], apart, at.number("square_0"), at.number("square_1"))
        ends = [c if a is None else c + a * s for c, a, s in zip(centres, axes, (x, y), strict=True)]
        way = ends[1] - ends[0]
        length = t.sqrt(dot(way, way))
        apart_at_all = t.less(t.read("num(Physics::CROSSING)"), length)
        across = _crossing(t, axes[0], axes[1])
        scale = 1.0 / t.select(apart_at_all, length, 1.0)
        normal = np.array([t.select(apart_at_all, x * scale, y) for x, y in zip(way, across, strict=True)], object)
        distance = length - (at.number("radius_0") + at.number("radius_1"))
        return Nearest(distance, ends[0] + normal * (at.number("radius_0") + distance * 0.5), normal)

    return nearest


def _crossing(t: Trace, a: Array | None, b: Array | None) -> Array:
    """The normal of segments that cross, as those of a planar model do."""
    if a is None or b is None:
        return np.array([1.0, 0.0, 0.0], object)
    normal = cross(a, b)
    scale = 1.0 / t.sqrt(t.max(dot(normal, normal), 1e-30))
    return normal * scale


def _parameters(
    t: Trace, a: Array | None, b: Array | None, apart: Array, a_square: Number, b_square: Number
) -> tuple[Number, Number]:
    """Where on two segments, from -1 to 1, they are nearest. The segments' centres are ``apart``, b's to a's."""
    if a is None and b is None:
        return 0.0, 0.0
    if a is None:
        assert b is not None
        return 0.0, t.clamp(dot(b, apart) / b_square, -1.0, 1.0)
    if b is None:
        return t.clamp(-dot(a, apart) / a_square, -1.0, 1.0), 0.0
    ab, u, v = -dot(a, b), -dot(a, apart), dot(b, apart)
    determinant = t.max(a_square * b_square - ab * ab, 1e-15)
    x = (b_square * u - ab * v) / determinant
    y = t.select(
        t.less(1.0, t.abs(x)), (v - ab * t.clamp(x, -1.0, 1.0)) / b_square, (a_square * v - ab * u) / determinant
    )
    outside = t.less(1.0, t.abs(y))
    y = t.clamp(y, -1.0, 1.0)
    x = t.select(outside, (u - ab * y) / a_square, x)
    return t.clamp(x, -1.0, 1.0), y


def _cylinder_on_plane(normal: Array, corner: int) -> Callable[[Place], Nearest]:
    """A cylinder on a plane (``mjc_PlaneCylinder``): the lowest point of each rim, and two more of the lower rim."""

    def nearest(at: Place) -> Nearest:
        t, (pos, mat) = at.trace, at.frame(1)
        radius, centre = at.number("radius"), pos + mat @ at.vector("centre_1_")
        axis: Array = mat @ at.vector("z_1_")
        side = mat @ at.vector("x_1_")
        rises = dot(normal, axis)
        flip: Number = t.select(t.less(0.0, rises), -1.0, 1.0)
        down: Array = axis * flip
        level = -(down * t.abs(rises)) - normal
        square = dot(level, level)
        tilted = t.less(_MINVAL**2, square)
        scale = radius / t.sqrt(t.max(square, _MINVAL**2))
        lowest = np.array([t.select(tilted, a * scale, b * radius) for a, b in zip(level, side, strict=True)], object)
        to_rim = down * at.number("half")
        aside = math.copysign(math.sqrt(0.75), 2.5 - corner)
        if corner == 1:
            point = centre + lowest - to_rim
        elif corner == 0:
            point = centre + lowest + to_rim
        else:
            point = centre + cross(lowest, down) * aside + to_rim - lowest * 0.5
        distance = dot(normal, point + at.origin) - at.number("height")
        return Nearest(distance, point - normal * (distance * 0.5), normal)

    return nearest


def _corners_on_plane(normal: Array) -> Callable[[Place], Nearest]:
    """A corner of a box, or the one opposite to it, on a plane (``mjc_PlaneBox``)."""

    def nearest(at: Place) -> Nearest:
        t, (pos, mat) = at.trace, at.frame(1)
        corner = mat @ at.vector("corner")
        towards: Number = t.select(t.less(0.0, dot(normal, corner)), -1.0, 1.0)
        lower = corner * towards
        point = pos + mat @ at.vector("centre") + lower
        distance = dot(normal, point + at.origin) - at.number("height")
        return Nearest(distance, point - normal * (distance * 0.5), normal)

    return nearest


def _chosen(t: Trace, mask: Expr, a: Array, b: Array) -> Array:
    return np.array([t.select(mask, x, y) for x, y in zip(a, b, strict=True)], object)


def _sphere_and_cylinder(at: Place) -> Nearest:
    """A sphere beside a cylinder, on its cap or at its rim (``mjc_SphereCylinder``)."""
    t = at.trace
    (pos, mat), (there, turned) = at.frame(0), at.frame(1)
    radius, wide, half = at.number("radius_0"), at.number("radius_1"), at.number("half_1")
    centre, axis = pos + mat @ at.vector("centre_0_"), turned @ at.vector("z_1_")
    away = centre - (there + turned @ at.vector("centre_1_"))
    along = dot(axis, away)
    level = away - axis * along
    apart = t.sqrt(dot(level, level))
    upwards = t.select(t.less(0.0, along), 1.0, -1.0)
    beside, above = t.less(t.abs(along), half), t.less(apart, wide)
    to_cap = t.less(half - t.abs(along), wide - apart)
    cap = t.both(above, t.either(t.invert(beside), to_cap))
    side = t.both(beside, t.invert(cap))
    outward = level * (1.0 / t.max(apart, _MINVAL))
    corner = outward * (wide - apart) + axis * (upwards * half - along)  # from the centre to the rim
    length = t.sqrt(dot(corner, corner))
    normal = _chosen(t, side, -outward, corner * (1.0 / t.max(length, _MINVAL)))
    normal = _chosen(t, cap, axis * -upwards, normal)
    distance = t.select(cap, t.abs(along) - half, t.select(side, apart - wide, length)) - radius
    return Nearest(distance, centre + normal * (radius + distance * 0.5), normal)


def _sphere_and_box(at: Place) -> Nearest:
    """A sphere outside of a box, or with its centre in it (``mjraw_SphereBox``)."""
    t = at.trace
    (pos, mat), (there, turned) = at.frame(0), at.frame(1)
    axes = np.stack([turned @ at.vector(f"{name}_1_") for name in "xyz"])
    radius, size = at.number("radius"), at.vector("size")
    centre = pos + mat @ at.vector("centre_0_")
    local = axes @ (centre - (there + turned @ at.vector("centre_1_")))
    way = np.array([t.max(t.min(x, s), -s) - x for x, s in zip(local, size, strict=True)], object)
    length = t.sqrt(dot(way, way))
    outside = t.less(_MINVAL, length)
    inward = zeros(3)
    closest: Number = 1e30
    for i in range(3):
        for face, direction in ((-size[i], 1.0), (size[i], -1.0)):
            gap = t.abs(face - local[i])
            nearer = t.less(gap, closest)
            to_here = np.eye(3).astype(object)[i] * direction
            inward = _chosen(t, nearer, to_here, inward)
            closest = t.min(gap, closest)
    normal = _chosen(t, outside, way * (1.0 / t.max(length, _MINVAL)), inward)
    distance = t.select(outside, length, -closest) - radius
    normal = normal @ axes
    return Nearest(distance, centre + normal * (radius + distance * 0.5), normal)


class _CapsuleAndCylinder:
    """Up to two contacts of a pair, which ``convex.cuh`` finds together."""

    def __init__(self, name: str, sizes: list[float]) -> None:
        self._name, self._sizes, self._written = name, sizes, False

    def nearest(self, n: int, at: Place) -> Nearest:
        t, name = at.trace, self._name
        if not self._written:
            self._written = True
            for side, columns in ((0, "z"), (1, "zx")):
                pos, mat = at.frame(side)
                parts = [pos + mat @ at.vector(f"centre_{side}_")]
                parts += [mat @ at.vector(f"{column}_{side}_") for column in columns]
                t.write(f"const Vec {name}_{side}[] = {{{', '.join(t.name(x) for part in parts for x in part)}}};")
            t.write(f"static constexpr Real {name}_sizes[] = {{{', '.join(f'(Real){x!r}' for x in self._sizes)}}};")
            t.write(f"Vec {name}[14];")
            t.write(f"convex::capsule_cylinder({name}, {name}_0, {name}_1, {name}_sizes);")
        distance, *rest = (t.read(f"{name}[{7 * n + i}]") for i in range(7))
        return Nearest(distance, np.array(rest[:3], object), np.array(rest[3:], object))


#: types of two geoms, the smaller one first -> where they may touch
PARTS: dict[tuple[int, int], Callable[[Model, int, int], Iterator[Part]]] = {
    (PLANE, SPHERE): _plane_round,
    (PLANE, CAPSULE): _plane_round,
    (PLANE, CYLINDER): _plane_cylinder,
    (PLANE, BOX): _plane_box,
    (SPHERE, SPHERE): _round_round,
    (SPHERE, CAPSULE): _round_round,
    (CAPSULE, CAPSULE): _round_round,
    (SPHERE, CYLINDER): _sphere_cylinder,
    (CAPSULE, CYLINDER): _capsule_cylinder,
    (SPHERE, BOX): _sphere_box,
}
