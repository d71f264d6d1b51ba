"""Inertia of bodies, the mass matrix and its factorisation (``mj_crb``, ``mj_factorM``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from gpuzoo.physics.expressions import TINY, Array, Number, added, constants, dot, zeros
from gpuzoo.physics.kinematics import Kinematics
from gpuzoo.physics.model import Model
from gpuzoo.physics.spatial import constant_rotation, cross, join, square

#: a symmetric matrix over degrees of freedom: entries (row, column) with row >= column; what is missing is zero
Sparse = dict[tuple[int, int], Number]


@dataclasses.dataclass
class Inertia:
    """Spatial inertia about the origin.

    Attributes:
        mass: of the body.
        moment: mass times the place of its centre.
        tensor: rotational inertia about the origin.
    """

    mass: Number
    moment: Array
    tensor: Array

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(self.mass + other.mass, self.moment + other.moment, self.tensor + other.tensor)

    def __matmul__(self, motion: Array) -> Array:
        """Momentum of a motion."""
        angular, linear = motion[:3], motion[3:]
        return join(
            self.tensor @ angular + cross(self.moment, linear), linear * self.mass - cross(self.moment, angular)
        )


def body_inertia(m: Model, k: Kinematics, body: int) -> Inertia:
    """Inertia of a body (``cinert``, but about the origin)."""
    axes = constant_rotation(m.body_iquat[body])
    return _moved(m, k, body, float(m.body_mass[body]), m.body_ipos[body], axes, m.body_inertia[body])


def inertias(m: Model, k: Kinematics) -> list[Inertia]:
    """Inertia of each body that moves, with those that are welded to it; these have none of their own."""
    out = [Inertia(0.0, zeros(3), zeros(3, 3)) for _ in range(m.nbody)]
    for root in sorted({*m.body_weldid[1:].tolist()} - {0}):
        members = [b for b in range(m.nbody) if m.body_weldid[b] == root]
        if len(members) == 1:
            out[root] = body_inertia(m, k, root)
        elif any(m.body_mass[b] for b in members):
            out[root] = _moved(m, k, root, *_welded(m, root, members))
    return out


def _moved(m: Model, k: Kinematics, body: int, mass: float, centre: Array, axes: Array, moments: Array) -> Inertia:
    """Inertia that is constant in a body's frame, about the origin.

    Args:
        m: the model.
        k: its kinematics.
        body: whose frame it is.
        mass: not scaled yet.
        centre: of the mass, in the frame.
        axes: principal axes, as columns.
        moments: about them.
    """
    # L = b 1 + sum of (a - b) u u' over the axes whose moment a is not b: one for a body of revolution.
    base = min(moments, key=lambda b: sum(abs(a - b) > TINY * a for a in moments))
    scale = m.factors.mass
    place = k.point(body, centre)
    weight = mass * scale
    tensor = np.eye(3).astype(object) * (float(base) * scale + dot(place * weight, place)) - square(place, weight)
    for a, axis in zip(moments, axes.T, strict=True):
        if abs(a - base) > TINY * a:
            tensor = tensor + square(k.xmat[body] @ axis, float(a - base) * scale)
    return Inertia(weight, place * weight, tensor)


def _welded(m: Model, root: int, members: list[int]) -> tuple[float, Array, Array, Array]:
    """Mass, centre, principal axes and moments of bodies that move as one, in the frame of the first of them."""
    frames = {root: (np.zeros(3), np.eye(3))}
    parts = []
    for b in members:
        if b != root:
            pos, mat = frames[int(m.body_parentid[b])]
            frames[b] = (pos + mat @ m.body_pos[b], mat @ constant_rotation(m.body_quat[b]).astype(float))
        pos, mat = frames[b]
        axes = mat @ constant_rotation(m.body_iquat[b]).astype(float)
        parts.append((float(m.body_mass[b]), pos + mat @ m.body_ipos[b], axes * m.body_inertia[b] @ axes.T))
    mass = added(part[0] for part in parts)
    centre = sum((part[0] * part[1] for part in parts), np.zeros(3)) / mass
    tensor = np.zeros((3, 3))
    for weight, place, own in parts:
        away = place - centre
        tensor += own + weight * (away @ away * np.eye(3) - np.outer(away, away))
    moments, axes = np.linalg.eigh(tensor)
    return mass, centre, constants(axes), moments


def composite(m: Model, cdof: list[Array], inertia: Iterable[Inertia | Array]) -> Sparse:
    """The sum over bodies of J' I J, where I is the inertia of a body or another 6 x 6 matrix."""
    total, out = list(inertia), {}
    for b in range(m.nbody - 1, 0, -1):
        for d in reversed(m.body_dofs[b]):
            force = total[b] @ cdof[d]
            for j in [d, *m.dof_ancestors[d]]:
                out[d, j] = dot(cdof[j], force)
        parent = int(m.body_parentid[b])
        total[parent] = total[parent] + total[b]
    return out


def mass_matrix(m: Model, cdof: list[Array], inertia: list[Inertia]) -> Sparse:
    """The joint-space inertia ``M``, armature included."""
    out = composite(m, cdof, inertia)
    for d in range(m.nv):
        out[d, d] = out[d, d] + float(m.dof_armature[d])
    return out


@dataclasses.dataclass
class Factors:
    """L' D L of a symmetric matrix.

    Attributes:
        lower: L without its diagonal of ones, by rows: row -> column -> entry.
        inverse: 1 / D.
    """

    lower: list[dict[int, Number]]
    inverse: list[Number]

    def solve(self, x: list[Number]) -> list[Number]:
        """The matrix's inverse times ``x``."""
        out = list(x)
        for d in range(len(out) - 1, -1, -1):
            for i, entry in self.lower[d].items():
                out[i] = out[i] - entry * out[d]
        out = [a * b for a, b in zip(out, self.inverse, strict=True)]
        for d in range(len(out)):
            for i, entry in self.lower[d].items():
                out[d] = out[d] - entry * out[i]
        return out


def factor(matrix: Sparse, size: int) -> Factors:
    """Factorises from the last row to the first. A tree's matrix has no fill-in; others get what they need."""
    rows: list[dict[int, Number]] = [{} for _ in range(size)]
    diagonal: list[Number] = [0.0] * size
    for (i, j), entry in matrix.items():
        if i == j:
            diagonal[i] = entry
        else:
            rows[i][j] = entry
    out = Factors([{}] * size, [0.0] * size)
    for d in range(size - 1, -1, -1):
        inverse = out.inverse[d] = 1.0 / diagonal[d]
        columns = sorted(rows[d], reverse=True)
        scaled = {i: rows[d][i] * inverse for i in columns}
        for n, i in enumerate(columns):
            diagonal[i] = diagonal[i] - scaled[i] * rows[d][i]
            for j in columns[n + 1 :]:
                rows[i][j] = rows[i].get(j, 0.0) - scaled[i] * rows[d][j]
        out.lower[d] = scaled
    return out


def multiply(matrix: Sparse, x: list[Number]) -> list[Number]:
    """A symmetric matrix times ``x``."""
    out: list[Number] = [0.0] * len(x)
    for (i, j), entry in matrix.items():
        out[i] = out[i] + entry * x[j]
        if i != j:
            out[j] = out[j] + entry * x[i]
    return out
