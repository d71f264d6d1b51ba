"""Inertia of bodies, the mass matrix and its factorisation (``mj_crb``, ``mj_factorM``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from gpuzoo.physics.expressions import Array, Number, constants, dot
from gpuzoo.physics.kinematics import Kinematics
from gpuzoo.physics.model import Model
from gpuzoo.physics.spatial import constant_rotation, cross, join

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


def inertias(m: Model, k: Kinematics) -> list[Inertia]:
    """Inertia of each body (``cinert``, but about the origin)."""
    out = []
    for b in range(m.nbody):
        mass, axes = float(m.body_mass[b]) * m.factors.mass, constant_rotation(m.body_iquat[b])
        local: Array = constants((axes * m.body_inertia[b]) @ axes.T) * m.factors.mass
        centre = k.point(b, m.body_ipos[b])
        moment = centre * mass
        outer = np.outer(moment, centre)
        tensor = k.xmat[b] @ local @ k.xmat[b].T + np.eye(3).astype(object) * dot(moment, centre) - outer
        out.append(Inertia(mass, moment, tensor))
    return out


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
