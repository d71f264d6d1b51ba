"""Springs, dampers and fluid (``mj_passive``)."""

from __future__ import annotations

import math

import numpy as np

from gpuzoo.physics.expressions import Array, Number, Trace, constants, zeros
from gpuzoo.physics.kinematics import Kinematics, joint_forces
from gpuzoo.physics.model import HINGE, SLIDE, Model
from gpuzoo.physics.spatial import constant_rotation, cross, join, velocity_at

_MINVAL = 1e-15  # mjMINVAL


def passive_forces(t: Trace, m: Model, k: Kinematics, qpos: list[Number], qvel: list[Number]) -> list[Number]:
    """``qfrc_passive``.

    Raises:
        ValueError: a spring of a ball or free joint.
    """
    out: list[Number] = [-(float(m.dof_damping[d]) * m.factors.damping) * qvel[d] for d in range(m.nv)]
    for j, stiffness in enumerate(m.jnt_stiffness):
        if stiffness == 0.0:
            continue
        if m.jnt_type[j] not in (SLIDE, HINGE):
            raise ValueError(f"not supported: the spring of the ball or free joint {m.jnt_names[j]!r}.")
        d, a = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        out[d] = out[d] - float(stiffness) * (qpos[a] - float(m.qpos_spring[a]))
    if m.opt_density > 0.0 or m.opt_viscosity > 0.0:
        forces = [zeros(6), *(_fluid(t, m, k, b) for b in range(1, m.nbody))]
        out = [a + b for a, b in zip(out, joint_forces(m, k.cdof, forces), strict=True)]
    return out


def _fluid(t: Trace, m: Model, k: Kinematics, body: int) -> Array:
    """Force of the medium on a body, as on the box that has its inertia (``mj_inertiaBoxFluidModel``)."""
    mass, (ix, iy, iz) = float(m.body_mass[body]), map(float, m.body_inertia[body])
    if mass < _MINVAL:
        return zeros(6)
    x, y, z = (math.sqrt(max(_MINVAL, s) / mass * 6.0) for s in (iy + iz - ix, ix + iz - iy, ix + iy - iz))
    axes = k.xmat[body] @ constant_rotation(m.body_iquat[body])
    centre = k.point(body, m.body_ipos[body])
    angular = axes.T @ k.cvel[body][:3]
    linear = axes.T @ (velocity_at(k.cvel[body], centre) - constants(m.opt_wind))
    diameter, rho, beta = (x + y + z) / 3.0, m.opt_density, m.opt_viscosity
    faces = (y * z, x * z, x * y)
    edges = (x * (y**4 + z**4), y * (x**4 + z**4), z * (x**4 + y**4))

    def drag(v: Number, viscous: float, quadratic: float) -> Number:
        return v * -viscous - t.abs(v) * v * quadratic

    torque = [drag(w, math.pi * diameter**3 * beta, rho * e / 64.0) for w, e in zip(angular, edges, strict=True)]
    force = [drag(v, 3.0 * math.pi * diameter * beta, 0.5 * rho * a) for v, a in zip(linear, faces, strict=True)]
    pull = axes @ np.array(force, object)
    return join(axes @ np.array(torque, object) + cross(centre, pull), pull)
