"""Vectors, rotations and spatial algebra on arrays of numbers.

A spatial motion is (angular velocity, velocity of the point at the origin), a spatial force (torque about the origin,
force), both along the world's axes, as MuJoCo has them in ``cvel`` and ``cfrc``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuzoo.physics.expressions import Array, Number, constants


def cross(a: Array, b: Array) -> Array:
    """The vector product."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], object)


def skew(a: Array) -> Array:
    """The matrix of the vector product: ``skew(a) @ b == cross(a, b)``."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]], object)


def square(a: Array, scale: Number) -> Array:
    """``scale a a'``; entries on both sides of the diagonal are one expression."""
    out = np.outer(a * scale, a)
    for i, j in zip(*np.tril_indices(len(a), -1), strict=True):
        out[i, j] = out[j, i]
    return out


def join(a: Array, b: Array) -> Array:
    """A spatial vector of its two halves."""
    return np.concatenate([a, b])


def motion_cross(a: Array, b: Array) -> Array:
    """Rate of change of a motion ``b`` that moves with ``a``."""
    return join(cross(a[:3], b[:3]), cross(a[:3], b[3:]) + cross(a[3:], b[:3]))


def force_cross(a: Array, f: Array) -> Array:
    """Rate of change of a force ``f`` that moves with ``a``."""
    return join(cross(a[:3], f[:3]) + cross(a[3:], f[3:]), cross(a[:3], f[3:]))


def wrench(point: Array, force: Array) -> Array:
    """The spatial force of a force at a point."""
    return join(cross(point, force), force)


def velocity_at(a: Array, point: Array) -> Array:
    """Velocity of the point of a body that is at ``point``."""
    return a[3:] + cross(a[:3], point)


def rotation(quaternion: Sequence[Number] | Array) -> Array:
    """The matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ],
        object,
    )


def constant_rotation(quaternion: Array) -> Array:
    """The matrix of a quaternion of the model."""
    return constants(rotation([float(x) for x in quaternion]))


def turn(axis: Array, sine: Number, cosine: Number) -> Array:
    """The matrix of a turn about a constant axis (Rodrigues)."""
    k = skew(constants(axis))
    if np.count_nonzero(k) == 2:  # about an axis of the frame: nothing to multiply
        square = np.round((k @ k).astype(float)).astype(object)
        out: Array = np.eye(3).astype(object) + square - square * cosine + k * sine
        return out
    return np.eye(3).astype(object) + k * sine + (k @ k) * (1.0 - cosine)
