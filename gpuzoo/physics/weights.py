"""What a model's masses make of its constants (``mj_setConst``), where they differ from env to env."""

from __future__ import annotations

import numpy as np

from gpuzoo.physics.collision import pairs
from gpuzoo.physics.expressions import Number, Trace, added
from gpuzoo.physics.inertia import Factors, factor, inertias, mass_matrix
from gpuzoo.physics.kinematics import kinematics
from gpuzoo.physics.model import BALL, FREE, Model
from gpuzoo.physics.tendon import tendon


def needed(m: Model) -> tuple[list[int], list[int]]:
    """Bodies and degrees of freedom whose weights a step reads: those that touch, and joints with constraints."""
    touching = {int(m.geom_bodyid[x]) for pair in pairs(m) for x in pair}
    bound = {int(m.jnt_dofadr[j]) for j, limited in enumerate(m.jnt_limited) if limited}
    bound |= {d for d, loss in enumerate(m.dof_frictionloss) if loss > 0.0}
    return sorted(b for b in touching if m.body_weldid[b]), sorted(bound)


def weights(t: Trace, m: Model) -> tuple[dict[int, Number], dict[int, Number], dict[int, Number]]:
    """``body_invweight0[:, 0]`` and ``dof_invweight0`` of what is `needed`, and ``tendon_invweight0`` of limited ones.

    That is the inverse inertia that a force at the centre of a body, in a joint or along a tendon meets in the model's
    own position, on the average of its directions.
    """
    k = kinematics(t, m, [float(x) for x in m.qpos0], [0.0] * m.nv)
    factors = factor(mass_matrix(m, k.cdof, inertias(m, k)), m.nv)
    bodies, dofs = needed(m)
    of_bodies: dict[int, Number] = {}
    for b in bodies:
        x, y, z = k.point(b, m.body_ipos[b])
        rows: list[list[Number]] = []
        for turning in ((0.0, z, -y), (-z, 0.0, x), (y, -x, 0.0)):
            rows.append([0.0] * m.nv)
            for d in m.body_chain[b]:
                pull = (float(a) * float(c) for a, c in zip(turning, k.cdof[d][:3], strict=True))
                rows[-1][d] = float(k.cdof[d][2 + len(rows)]) + added(pull)
        of_bodies[b] = added(_square(factors, row) for row in rows) * (1.0 / 3.0)
    of_dofs: dict[int, Number] = {}
    for d in dofs:
        alike = _alike(m, d)
        units: list[list[Number]] = [[float(i == j) for j in range(m.nv)] for i in alike]
        of_dofs[d] = added(_square(factors, unit) for unit in units) * (1.0 / len(alike))
    of_tendons: dict[int, Number] = {}
    for i in np.flatnonzero(m.tendon_limited):
        columns = tendon(Trace(), m, k, [float(x) for x in m.qpos0], int(i)).columns
        of_tendons[int(i)] = _square(factors, [columns.get(d, 0.0) for d in range(m.nv)])
    return of_bodies, of_dofs, of_tendons


def _alike(m: Model, d: int) -> list[int]:
    """The degrees of freedom that share a weight: the slides of a free joint, or the turns of it or of a ball."""
    j = int(m.dof_jntid[d])
    first = int(m.jnt_dofadr[j])
    if m.jnt_type[j] == BALL or (m.jnt_type[j] == FREE and d < first + 3):
        return [first, first + 1, first + 2]
    return [first + 3, first + 4, first + 5] if m.jnt_type[j] == FREE else [d]


def _square(factors: Factors, row: list[Number]) -> Number:
    """A row times the inverse matrix times the row."""
    x: list[Number] = list(row)
    for d in range(len(x) - 1, -1, -1):
        for i, entry in factors.lower[d].items():
            x[i] = x[i] - entry * x[d]
    out: Number = 0.0
    for a, inverse in zip(x, factors.inverse, strict=True):
        out = out + a * a * inverse
    return out
