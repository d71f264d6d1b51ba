"""Where geoms touch (``mj_collision``): which pairs may, and the nearest points of each pair of shapes.

A `Touch` is one possible contact: a capsule on the ground has two, at its ends. Its numbers are constants of the model.
Those of touches that share the code of a loop are read from tables, so the functions here ask a `Place` for them. They
tell it as soon as they know where geoms are apart: what they write after that is skipped where all envs of a pack are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from gpuzoo.physics.expressions import Array, Expr, Number, Trace, dot
from gpuzoo.physics.model import CAPSULE, CYLINDER, PLANE, SPHERE, Model
from gpuzoo.physics.spatial import constant_rotation, cross

_NAMES = {PLANE: "plane", SPHERE: "sphere", CAPSULE: "capsule", CYLINDER: "cylinder", 6: "box"}


class Place(Protocol):
    """What a shape's function may ask while the code of one touch is written."""

    @property
    def trace(self) -> Trace:
        """Where the code goes."""

    def number(self, name: str) -> Number:
        """A constant of the touch."""

    def vector(self, name: str) -> Array:
        """Three constants of the touch."""

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


@dataclasses.dataclass
class Touch:
    """A place where two geoms may touch.

    Attributes:
        geoms: the two.
        bodies: theirs; 0 for one that never moves.
        nearest: the function of their shapes.
        alike: what touches with the same code have in common.
        numbers: what may differ between them.
        condim: 1 without friction, 3 with.
        solref: of the pair.
        solimp: of the pair.
    """

    geoms: tuple[int, int]
    bodies: tuple[int, int]
    nearest: Callable[[Place], Nearest]
    alike: tuple[object, ...]
    numbers: dict[str, float]
    condim: int
    solref: tuple[float, ...]
    solimp: tuple[float, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Touches with equal keys may share the code of a loop."""
        same = (self.condim, self.solref, self.solimp)
        return (*self.alike, *(b == 0 for b in self.bodies), *same)


def pairs(m: Model) -> Iterator[tuple[int, int]]:
    """Pairs of geoms that may touch: by their masks, and not of one body or of parent and child."""
    parent = m.body_weldid[m.body_parentid[m.body_weldid]]
    for g in range(len(m.geom_type)):
        for f in range(g):
            a, b = (int(m.body_weldid[m.geom_bodyid[x]]) for x in (f, g))
            masks = m.geom_contype[f] & m.geom_conaffinity[g] or m.geom_contype[g] & m.geom_conaffinity[f]
            related = a and b and (a == parent[b] or b == parent[a])
            if masks and a != b and not related:
                yield (g, f) if m.geom_type[f] > m.geom_type[g] else (f, g)


def _mixed(m: Model, f: int, g: int) -> dict[str, Any]:
    """Parameters of a contact: of the geom with priority, or of both (``mj_contactParam``)."""
    if m.geom_priority[f] != m.geom_priority[g]:
        one = f if m.geom_priority[f] > m.geom_priority[g] else g
        condim, friction = m.geom_condim[one], m.geom_friction[one, 0]
        solref, solimp = m.geom_solref[one], m.geom_solimp[one]
    else:
        share = m.geom_solmix[f] / (m.geom_solmix[f] + m.geom_solmix[g])
        first, second = m.geom_solref[f], m.geom_solref[g]
        standard = first[0] > 0 and second[0] > 0
        solref = share * first + (1 - share) * second if standard else np.minimum(first, second)
        solimp = share * m.geom_solimp[f] + (1 - share) * m.geom_solimp[g]
        condim, friction = m.geom_condim[[f, g]].max(), m.geom_friction[[f, g], 0].max()
    margin = m.geom_margin[f] + m.geom_margin[g] - m.geom_gap[f] - m.geom_gap[g]
    invweight = m.body_invweight0[m.geom_bodyid[[f, g]], 0]
    return {
        "condim": int(condim),
        "numbers": {"friction": float(friction), "margin": float(margin), "invweight": float(invweight.sum())},
        "solref": tuple(solref.tolist()),
        "solimp": tuple(solimp.tolist()),
    }


def touches(m: Model) -> Iterator[Touch]:
    """Every possible contact of a model.

    Raises:
        ValueError: shapes whose contact is not supported; the message names the geoms.
    """
    for f, g in pairs(m):
        shapes = int(m.geom_type[f]), int(m.geom_type[g])
        bodies = int(m.geom_bodyid[f]), int(m.geom_bodyid[g])
        common: dict[str, Any] = {
            "geoms": (f, g),
            "bodies": tuple(b if m.body_weldid[b] else 0 for b in bodies),
            **_mixed(m, f, g),
        }
        numbers = common.pop("numbers")
        halves = [float(m.geom_size[x, 1]) if m.geom_type[x] == CAPSULE else 0.0 for x in (f, g)]
        if shapes in ((PLANE, SPHERE), (PLANE, CAPSULE)) and bodies[0] == 0:
            normal, half = constant_rotation(m.geom_quat[f])[:, 2], halves[1]
            height = float(np.dot(normal.astype(float), m.geom_pos[f]))
            numbers |= {"radius": float(m.geom_size[g, 0]), "height": height}
            nearest, alike = _on_plane(normal, half > 0.0), ("on plane", half > 0.0, *normal)
            for end in (half, -half) if half else (0.0,):
                yield Touch(nearest=nearest, alike=alike, numbers=numbers | {"end": end}, **common)
        elif {*shapes} <= {SPHERE, CAPSULE}:
            for side, x in enumerate((f, g)):
                numbers |= {f"radius_{side}": float(m.geom_size[x, 0]), f"half_{side}": halves[side]}
            nearest, alike = _between_segments(*(h > 0.0 for h in halves)), ("segments", *(h > 0.0 for h in halves))
            yield Touch(nearest=nearest, alike=alike, numbers=numbers, **common)
        else:
            names = " and ".join(f"{_NAMES[s]} {m.geom_names[x]!r}" for s, x in zip(shapes, (f, g), strict=True))
            raise ValueError(f"not supported: contacts of {names}.")


def _on_plane(normal: Array, capsule: bool) -> Callable[[Place], Nearest]:
    """A sphere, or one end of a capsule, and a plane that does not move (``mjc_PlaneSphere``, ``mjc_PlaneCapsule``)."""

    def nearest(at: Place) -> Nearest:
        centre, axis = at.geom(1)
        radius, end = at.number("radius"), at.number("end")
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
        halves, radii = ([at.number(f"{name}_{side}") for side in (0, 1)] for name in ("half", "radius"))
        centres, axes = zip(*(at.geom(side) for side in (0, 1)), strict=True)
        apart = centres[0] - centres[1]
        reach = at.number("margin") + radii[0] + radii[1] + halves[0] + halves[1]
        at.only_where(t.less(dot(apart, apart), reach * reach))
        arms = [axis * half if long else None for axis, half, long in zip(axes, halves, (first, second), strict=True)]
        x, y = _parameters(t, arms[0], arms[1], apart, halves[0] * halves[0], halves[1] * halves[1])
        ends = [c if a is None else c + a * s for c, a, s in zip(centres, arms, (x, y), strict=True)]
        way = ends[1] - ends[0]
        length = t.sqrt(dot(way, way))
        distance = length - (radii[0] + radii[1])
        at.touching(distance)
        apart_at_all = t.less(t.read("num(Physics::CROSSING)"), length)
        across = _crossing(t, arms[0], arms[1])
        scale = 1.0 / t.select(apart_at_all, length, 1.0)
        normal = np.array([t.select(apart_at_all, x * scale, y) for x, y in zip(way, across, strict=True)], object)
        return Nearest(distance, ends[0] + normal * (radii[0] + distance * 0.5), normal)

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
