"""MuJoCo's step with the nearest points of a capsule and a cylinder exact.

MuJoCo searches them by comparing distances. A point that is `e` off is farther by about `e` squared, which rounding
hides from 1e-8 on, whatever the tolerance; so normals are 1e-8 off, and velocities. Here MuJoCo finds the contact, and
its normal is then put where a derivative is zero, which rounding hides from 1e-16 on only.

Where a capsule lies along a cap, MuJoCo puts two contacts above the cap in the place of the one that it has found. They
follow from that one's normal; here they follow from the exact one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mujoco
import numpy as np

CAPSULE, CYLINDER = int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_CYLINDER)
#: a normal of MuJoCo's is not more off, nor a place
NEAR = 1e-4
#: corners of the polygon that a cap is clipped by
CORNERS = 16


class Pair(NamedTuple):
    """A capsule's centre and half of its segment, where the cylinder's axis is z and its centre 0, and sizes."""

    centre: np.ndarray
    half: np.ndarray
    radius: float
    wide: float
    tall: float


def root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that grows is zero, or the end that is nearest to it."""
    if slope(low) >= 0:
        return low
    if slope(high) <= 0:
        return high
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return middle


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)  # type: ignore[no-any-return]


def into(pair: Pair, x: np.ndarray) -> np.ndarray:
    """The cylinder's point that is nearest."""
    across = max(np.hypot(x[0], x[1]), pair.wide) or 1.0
    return np.array([*(x[:2] * pair.wide / across), np.clip(x[2], -pair.tall, pair.tall)])


def way_out(pair: Pair, out: np.ndarray) -> tuple[np.ndarray, float]:
    """The direction in which the segment leaves the cylinder soonest, near one that is given, and where on the segment.

    It is the cylinder's axis or lies across it, and lies across the segment or meets one of its ends.
    """
    centre, half, z = pair.centre, pair.half, np.array([0.0, 0.0, 1.0])
    foot = -float(np.sign(half @ out))
    if 1 - abs(out[2]) < NEAR**2:
        return z * np.sign(out[2]), foot
    crosses = abs(unit(half) @ out) < NEAR
    if abs(out[2]) < NEAR:
        if not crosses:
            return unit((centre + half * foot) * [1, 1, 0]), foot
        across = unit(np.cross(z, half))
        return across * np.sign(across @ out), float(-(centre[:2] @ half[:2]) / (half[:2] @ half[:2]))
    assert crosses
    # Over the rim: turned about the segment until the depth is least.
    aside = unit(np.cross(half, out))
    upright = np.cross(aside, unit(half))
    point = np.zeros(3)

    def slope(angle: float) -> float:
        m, turn = upright * np.cos(angle) + aside * np.sin(angle), aside * np.cos(angle) - upright * np.sin(angle)
        point[:] = *(pair.wide * unit(m[:2])), pair.tall * np.sign(m[2])
        return float((point - centre) @ turn)

    angle = root(slope, -NEAR, NEAR)
    return upright * np.cos(angle) + aside * np.sin(angle), float((point - centre) @ half / (half @ half))


def refined(pair: Pair, normal: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Distance, place and normal of the contact, near whose normal is given."""
    centre, half = pair.centre, pair.half
    t = root(lambda t: float(half @ (centre + half * t - into(pair, centre + half * t))), -1.0, 1.0)
    way = into(pair, centre + half * t) - (centre + half * t)
    distance = float(np.linalg.norm(way))
    if distance > 1e-7:
        exact = way / distance
    else:
        out, t = way_out(pair, -normal)
        exact = -out
        distance = -float(pair.wide * np.hypot(*out[:2]) + pair.tall * abs(out[2]) - out @ (centre + half * t))
    distance -= pair.radius
    return distance, centre + half * t + exact * (pair.radius + distance / 2), exact


def over_a_cap(pair: Pair, up: float) -> np.ndarray:
    """Roughly the direction in which the segment leaves the cylinder soonest over this cap or its rim."""
    aside = unit(np.cross(pair.half, [0.0, 0.0, 1.0]))
    upright = np.cross(aside, unit(pair.half))
    upright *= np.sign(upright[2]) * up
    best = np.array([0.0, 0.0, up])

    def depth(m: np.ndarray) -> np.ndarray:
        beside, above = pair.wide * np.hypot(m[..., 0], m[..., 1]), pair.tall * abs(m[..., 2])
        return beside + above - m @ pair.centre + abs(m @ pair.half)  # type: ignore[no-any-return]

    low, high = -np.pi / 2, np.pi / 2
    for _ in range(2):
        angle = np.linspace(low, high, 4001)
        m = np.outer(np.cos(angle), upright) + np.outer(np.sin(angle), aside)
        k = int(depth(m).argmin())
        low, high = angle[max(k - 1, 0)], angle[min(k + 1, 4000)]
    return m[k] if depth(m[k]) < depth(best) - NEAR**2 else best


def along_the_cap(pair: Pair, margin: float, normal: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Distances, places and normals of the contacts above a cap, where those of the nearest points have this normal.

    They are the ends of a line, clipped by the cap: the capsule's surface where it faces the cylinder. Both are grown
    by half of the margin.
    """
    out = pair.half @ pair.half
    surface = pair.centre + (normal - pair.half * (normal @ pair.half) / out) * (pair.radius + margin / 2)
    begin, way, up = surface - pair.half, 2 * pair.half, np.array([0.0, 0.0, -np.sign(normal[2])])
    angle = (2 * np.arange(CORNERS) + 1) * np.pi / CORNERS
    sides = np.stack([np.cos(angle), np.sin(angle)])
    rate, room = way[:2] @ sides, pair.wide * np.cos(np.pi / CORNERS) - begin[:2] @ sides
    enters, leaves = rate < 0, rate > 0
    first = max(0.0, *(room[enters] / rate[enters]))
    last = min(1.0, *(room[leaves] / rate[leaves]))
    contacts = []
    for at in (first, last):
        place = begin + way * at
        distance = float(place @ up - pair.tall + margin / 2)
        contacts.append((distance, place + up * (margin - distance) / 2, -up))
    return contacts


def searched(m: Any) -> bool:
    """Whether a model has capsules and cylinders that may touch."""
    round_, flat = (
        np.flatnonzero((m.geom_type == kind) & (m.geom_contype | m.geom_conaffinity > 0))
        for kind in (CAPSULE, CYLINDER)
    )
    return bool(len(round_) and len(flat))


def refine(m: Any, d: Any) -> bool:
    """Writes exact contacts of capsules and cylinders. Returns whether there are any."""
    pairs = [tuple(c.geom) for c in d.contact]
    done = False
    for contact, (f, g) in zip(d.contact, pairs, strict=True):
        if (m.geom_type[f], m.geom_type[g]) != (CAPSULE, CYLINDER):
            continue
        turn = d.geom_xmat[g].reshape(3, 3).T
        half = turn @ d.geom_xmat[f].reshape(3, 3)[:, 2] * m.geom_size[f, 1]
        pair = Pair(turn @ (d.geom_xpos[f] - d.geom_xpos[g]), half, m.geom_size[f, 0], *m.geom_size[g, :2])
        place, normal = turn @ (contact.pos - d.geom_xpos[g]), turn @ contact.frame[:3]
        found = refined(pair, normal)
        if pairs.count((f, g)) > 1 or abs(found[0] - contact.dist) > NEAR**2:
            found = refined(pair, -over_a_cap(pair, -float(np.sign(normal[2]))))
            ends = along_the_cap(pair, float(m.geom_margin[[f, g]].sum()), found[2])
            found = min(ends, key=lambda end: float(np.linalg.norm(end[1] - place)))
            assert abs(found[1] - place).max() < NEAR, (found, place)
        assert abs(found[0] - contact.dist) < NEAR, (found, contact.dist)
        assert abs(found[2] - normal).max() < NEAR, (found, normal)
        assert contact.dim == 1  # without friction the tangents do nothing
        contact.dist, contact.pos[:], contact.frame[:3] = found[0], found[1] @ turn + d.geom_xpos[g], found[2] @ turn
        done = True
    return done


def step(m: Any, d: Any) -> None:
    """``mj_step`` under Euler."""
    mujoco.mj_fwdPosition(m, d)
    if refine(m, d):
        mujoco.mj_makeConstraint(m, d)
        mujoco.mj_island(m, d)
        mujoco.mj_projectConstraint(m, d)
    for stage in (mujoco.mj_fwdVelocity, mujoco.mj_fwdActuation, mujoco.mj_fwdAcceleration, mujoco.mj_fwdConstraint):
        stage(m, d)
    mujoco.mj_Euler(m, d)


def stepped(m: Any, qpos: np.ndarray, qvel: np.ndarray, ctrl: np.ndarray, steps: int = 1) -> tuple[np.ndarray, ...]:
    """States after some steps of time."""
    d, after = mujoco.MjData(m), []
    for state in zip(qpos, qvel, ctrl, strict=True):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = state
        for _ in range(steps):
            step(m, d)
        after.append((d.qpos.copy(), d.qvel.copy()))
    next_qpos, next_qvel = zip(*after, strict=True)
    return np.array(next_qpos), np.array(next_qvel)
