"""The nearest points of two shapes (``mjraw_*``): each pair of shapes has a function that says where they may touch.

Its numbers are constants of the model. Those of contacts that share the code of a loop are read from tables, so what is
written here asks a `Place` for them. It tells it as soon as it knows where geoms are apart: what is written after that
is skipped where all envs of a pack are.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

import numpy as np

from gpuzoo.physics.expressions import Array, Expr, Number, Trace, dot, zeros
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

    def size(self, name: str) -> Number:
        """A constant of the touch that grows with its geoms."""

    def frame(self, side: int) -> tuple[Array, ...]:
        """Position and orientation of a body of the touch: 0 the first geom's, 1 the second's."""

    def geom(self, side: int) -> tuple[Array, ...]:
        """Centre of a geom of the touch, and its z axis."""

    def only_where(self, near: Expr) -> None:
        """Skips what follows unless the mask holds for an env of the pack; elsewhere the geoms are apart."""

    def touching(self, distance: Number) -> Expr:
        """Skips what follows unless geoms at a distance are in contact in an env of the pack; returns where."""

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


def _plane(m: Model, f: int) -> tuple[Array, dict[str, float]]:
    """The normal of a plane that does not move, and how far along it the plane is."""
    normal = constant_rotation(m.geom_quat[f])[:, 2]
    return normal, {"height": float(np.dot(normal.astype(float), m.geom_pos[f]))}


def _half(m: Model, geom: int) -> float:
    return float(m.geom_size[geom, 1]) if m.geom_type[geom] == CAPSULE else 0.0


def _plane_round(m: Model, f: int, g: int) -> Iterator[Part]:
    normal, numbers = _plane(m, f)
    half = _half(m, g)
    numbers |= {"radius": float(m.geom_size[g, 0])}
    for end in (half, -half) if half else (0.0,):
        yield _on_plane(normal, half > 0.0), ("on plane", half > 0.0, *normal), numbers | {"end": end}


def _round_round(m: Model, f: int, g: int) -> Iterator[Part]:
    numbers: dict[str, float] = {}
    halves = _half(m, f), _half(m, g)
    for side, x in enumerate((f, g)):
        numbers |= {f"radius_{side}": float(m.geom_size[x, 0]), f"half_{side}": halves[side]}
    long = halves[0] > 0.0, halves[1] > 0.0
    yield _between_segments(*long), ("segments", *long), numbers


def _cylinder(m: Model, g: int) -> dict[str, float]:
    """Radius, half height and an axis across the cylinder."""
    across = _vector("across", constant_rotation(m.geom_quat[g])[:, 0])
    return {"wide": float(m.geom_size[g, 0]), "tall": float(m.geom_size[g, 1]), **across}


def _plane_cylinder(m: Model, f: int, g: int) -> Iterator[Part]:
    normal, numbers = _plane(m, f)
    for corner in range(4):
        yield _cylinder_on_plane(normal, corner), ("cylinder on plane", corner, *normal), numbers | _cylinder(m, g)


def _plane_box(m: Model, f: int, g: int) -> Iterator[Part]:
    normal, numbers = _plane(m, f)
    # Of two opposite corners only the lower one may touch.
    for signs in itertools.product((-1.0, 1.0), repeat=2):
        corner = constant_rotation(m.geom_quat[g]) @ (np.array([*signs, 1.0]) * m.geom_size[g])
        yield _corners_on_plane(normal), ("corners on plane", *normal), numbers | _vector("corner", corner)


def _sphere_cylinder(m: Model, f: int, g: int) -> Iterator[Part]:
    yield _sphere_and_cylinder, ("sphere and cylinder",), _cylinder(m, g) | {"radius": float(m.geom_size[f, 0])}


def _capsule_cylinder(m: Model, f: int, g: int) -> Iterator[Part]:
    numbers = _cylinder(m, g) | {"radius": float(m.geom_size[f, 0]), "half": float(m.geom_size[f, 1])}
    numbers["around"] = float(m.geom_margin[f] + m.geom_margin[g])
    for n in (0.0, 1.0):
        yield _capsule_and_cylinder, ("capsule and cylinder",), numbers | {"second": n}


def _sphere_box(m: Model, f: int, g: int) -> Iterator[Part]:
    numbers = {"radius": float(m.geom_size[f, 0])} | _vector("size", m.geom_size[g])
    for i, name in enumerate("xyz"):
        numbers |= _vector(f"axis_{name}", constant_rotation(m.geom_quat[g])[:, i])
    yield _sphere_and_box, ("sphere and box",), numbers


def _on_plane(normal: Array, capsule: bool) -> Callable[[Place], Nearest]:
    """A sphere, or one end of a capsule, and a plane that does not move (``mjc_PlaneSphere``, ``mjc_PlaneCapsule``)."""

    def nearest(at: Place) -> Nearest:
        centre, axis = at.geom(1)
        radius, end = at.size("radius"), at.size("end")
        distance = dot(normal, centre + at.origin + axis * end) - (at.number("height") + radius)
        at.touching(distance)
        point = centre + axis * end - normal * (distance * 0.5 + radius)
        return Nearest(distance, point, normal, axis if capsule else None)

    return nearest


def _between_segments(first: bool, second: bool) -> Callable[[Place], Nearest]:
    """Two spheres or capsules (``mjc_CapsuleCapsule``). A sphere is a segment of length 0.

    Parallel capsules have one contact here, at one of the many nearest points, where MuJoCo may have two.
    """

    def nearest(at: Place) -> Nearest:
        t = at.trace
        halves, radii = ([at.size(f"{name}_{side}") for side in (0, 1)] for name in ("half", "radius"))
        centres, axes = zip(*(at.geom(side) for side in (0, 1)), strict=True)
        apart = centres[0] - centres[1]
        reach = at.number("margin") + radii[0] + radii[1] + halves[0] + halves[1]
        at.only_where(t.less(dot(apart, apart), reach * reach))
        arms = [axis * half if long else None for axis, half, long in zip(axes, halves, (first, second), strict=True)]
        x, y = _parameters(t, arms[0], arms[1], apart, halves[0] * halves[0], halves[1] * halves[1])
        ends = [c if a is None else c + a * s for c, a, s in zip(centres, arms, (x, y), strict=True)]
        way = ends[1] - ends[0]
        length = t.sqrt(dot(way, way))
        if first and second and _in_a_plane(way, *arms):
            crossing = t.both(t.less(t.abs(x), 1.0), t.less(t.abs(y), 1.0))
            length = t.select(crossing, 0.0, length)
        distance = length - (radii[0] + radii[1])
        at.touching(distance)
        apart_at_all = t.less(t.read("num(Physics::CROSSING)"), length)
        across = _crossing(t, arms[0], arms[1])
        scale = 1.0 / t.select(apart_at_all, length, 1.0)
        normal = np.array([t.select(apart_at_all, x * scale, y) for x, y in zip(way, across, strict=True)], object)
        return Nearest(distance, ends[0] + normal * (radii[0] + distance * 0.5), normal)

    return nearest


def _in_a_plane(*vectors: Array | None) -> bool:
    """Whether they have no part along one of the axes, whatever the state. Then segments may cross exactly."""
    return any(all(v is None or (not isinstance(v[i], Expr) and v[i] == 0.0) for v in vectors) for i in range(3))


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
        t, (centre, axis) = at.trace, at.geom(1)
        radius, side = at.size("wide"), at.frame(1)[1] @ at.vector("across")
        rises = dot(normal, axis)
        flip: Number = t.select(t.less(0.0, rises), -1.0, 1.0)
        down: Array = axis * flip
        level: Array = -(down * t.abs(rises)) - normal
        square = dot(level, level)
        tilted = t.less(_MINVAL**2, square)
        scale = radius / t.sqrt(t.max(square, _MINVAL**2))
        lowest = _chosen(t, tilted, level * scale, side * radius)
        to_rim = down * at.size("tall")
        aside = math.copysign(math.sqrt(0.75), 2.5 - corner)
        if corner == 1:
            point = centre + lowest - to_rim
        elif corner == 0:
            point = centre + lowest + to_rim
        else:
            point = centre + cross(lowest, down) * aside + to_rim - lowest * 0.5
        distance = dot(normal, point + at.origin) - at.number("height")
        at.touching(distance)
        return Nearest(distance, point - normal * (distance * 0.5), normal)

    return nearest


def _corners_on_plane(normal: Array) -> Callable[[Place], Nearest]:
    """A corner of a box, or the one opposite to it, on a plane (``mjc_PlaneBox``)."""

    def nearest(at: Place) -> Nearest:
        t, (centre, _) = at.trace, at.geom(1)
        corner = at.frame(1)[1] @ _sizes(at, "corner")
        towards: Number = t.select(t.less(0.0, dot(normal, corner)), -1.0, 1.0)
        point = centre + corner * towards
        distance = dot(normal, point + at.origin) - at.number("height")
        at.touching(distance)
        return Nearest(distance, point - normal * (distance * 0.5), normal)

    return nearest


def _sizes(at: Place, name: str) -> Array:
    return np.array([at.size(f"{name}{i}") for i in range(3)], object)


def _chosen(t: Trace, mask: Expr, a: Array, b: Array) -> Array:
    return np.array([t.select(mask, x, y) for x, y in zip(a, b, strict=True)], object)


def _sphere_and_cylinder(at: Place) -> Nearest:
    """A sphere beside a cylinder, on its cap or at its rim (``mjc_SphereCylinder``)."""
    t = at.trace
    (centre, _), (there, axis) = at.geom(0), at.geom(1)
    radius, wide, half = at.size("radius"), at.size("wide"), at.size("tall")
    away = centre - there
    along = dot(axis, away)
    level: Array = away - axis * along
    apart = t.sqrt(dot(level, level))
    upwards: Number = t.select(t.less(0.0, along), 1.0, -1.0)
    beside, above = t.less(t.abs(along), half), t.less(apart, wide)
    to_cap = t.less(half - t.abs(along), wide - apart)
    cap = t.both(above, t.either(t.invert(beside), to_cap))
    side = t.both(beside, t.invert(cap))
    outward: Array = level * (1.0 / t.max(apart, _MINVAL))
    corner = outward * (wide - apart) + axis * (upwards * half - along)  # from the centre to the rim
    length = t.sqrt(dot(corner, corner))
    distance = t.select(cap, t.abs(along) - half, t.select(side, apart - wide, length)) - radius
    at.touching(distance)
    normal = _chosen(t, side, -outward, corner * (1.0 / t.max(length, _MINVAL)))
    normal = _chosen(t, cap, axis * -upwards, normal)
    return Nearest(distance, centre + normal * (radius + distance * 0.5), normal)


def _sphere_and_box(at: Place) -> Nearest:
    """A sphere outside of a box, or with its centre in it (``mjraw_SphereBox``)."""
    t = at.trace
    (centre, _), (there, _), (_, turned) = at.geom(0), at.geom(1), at.frame(1)
    axes = np.stack([turned @ at.vector(f"axis_{name}") for name in "xyz"])
    radius, size = at.size("radius"), _sizes(at, "size")
    local = axes @ (centre - there)
    way = np.array([t.max(t.min(x, s), -s) - x for x, s in zip(local, size, strict=True)], object)
    length = t.sqrt(dot(way, way))
    outside = t.less(_MINVAL, length)
    inward = zeros(3)
    closest: Number = 1e30
    for i in range(3):
        for face, direction in ((-size[i], 1.0), (size[i], -1.0)):
            gap = t.abs(face - local[i])
            inward = _chosen(t, t.less(gap, closest), np.eye(3).astype(object)[i] * direction, inward)
            closest = t.min(gap, closest)
    distance = t.select(outside, length, -closest) - radius
    at.touching(distance)
    normal = _chosen(t, outside, way * (1.0 / t.max(length, _MINVAL)), inward) @ axes
    return Nearest(distance, centre + normal * (radius + distance * 0.5), normal)


def _capsule_and_cylinder(at: Place) -> Nearest:
    """One of up to two contacts, which ``convex.cuh`` finds."""
    t = at.trace
    capsule, (there, axis) = at.geom(0), at.geom(1)
    sizes = [*(at.size(name) for name in ("radius", "half", "wide", "tall")), at.number("around")]
    apart = capsule[0] - there
    reach = sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4]
    at.only_where(t.less(dot(apart, apart), reach * reach))
    cylinder = there, axis, at.frame(1)[1] @ at.vector("across")
    name = f"pair{t.count()}"
    t.write(f"Vec {name}[14];")
    for label, vectors in (("a", capsule), ("b", cylinder), ("sizes", [sizes])):
        t.write(f"const Vec {name}_{label}[] = {{{', '.join(t.name(x) for vector in vectors for x in vector)}}};")
    t.write(f"convex::capsule_cylinder({name}, {name}_a, {name}_b, {name}_sizes);")
    first = t.less(at.number("second"), 0.5)
    found = [t.select(first, *(t.read(f"{name}[{7 * n + i}]") for n in (0, 1))) for i in range(7)]
    at.touching(found[0])
    return Nearest(found[0], np.array(found[1:4], object), np.array(found[4:], object))


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
