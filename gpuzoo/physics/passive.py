"""Springs, dampers and fluid (``mj_passive``)."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from gpuzoo.physics.expressions import Array, Number, Trace, constants, zeros
from gpuzoo.physics.inertia import Sparse, composite
from gpuzoo.physics.kinematics import Kinematics, joint_forces
from gpuzoo.physics.model import HINGE, SLIDE, Model
from gpuzoo.physics.spatial import constant_rotation, cross, join, skew, velocity_at
from gpuzoo.physics.tendon import Tendon

_MINVAL = 1e-15  # mjMINVAL


def passive_forces(
    t: Trace, m: Model, k: Kinematics, qpos: list[Number], qvel: list[Number], tendons: dict[int, Tendon]
) -> list[Number]:
    """``qfrc_passive``.

    Raises:
        ValueError: a spring of a ball or free joint.
    """
    out: list[Number] = [-(float(m.dof_damping[d]) * m.factors.damping) * qvel[d] for d in range(m.nv)]
    for j, stiffness in enumerate(m.jnt_stiffness):
        if stiffness == 0.0:
            continue
        if m.jnt_type[j] not in (SLIDE, HINGE):
            raise ValueError(f"not supported: the spring of the ball or free joint {m.called('jnt', j)}.")
        d, a = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        out[d] = out[d] - float(stiffness) * (qpos[a] - float(m.qpos_spring[a]))
    for i, found in tendons.items():
        if stiffness := float(m.tendon_stiffness[i]):
            low, high = map(float, m.tendon_lengthspring[i])
            slack = found.length - (low if low == high else t.clamp(found.length, low, high))
            for d, entry in found.columns.items():
                out[d] = out[d] - entry * (slack * stiffness)
    if m.opt_density > 0.0 or m.opt_viscosity > 0.0:
        forces = [zeros(6), *(_fluid(t, m, k, b) for b in range(1, m.nbody))]
        out = [a + b for a, b in zip(out, joint_forces(m, k.cdof, forces), strict=True)]
    return out


@dataclasses.dataclass
class _Drag:
    """A body in the medium, as the box that has its inertia.

    Attributes:
        axes: of the box, as columns.
        centre: its place.
        angular, linear: velocities along the axes, relative to the medium.
        viscous: what they are multiplied by, of the turns and of the shifts, less the sign.
        quadratic: what their squares are.
    """

    axes: Array
    centre: Array
    angular: Array
    linear: Array
    viscous: tuple[float, float]
    quadratic: tuple[list[float], list[float]]


def _drag(m: Model, k: Kinematics, body: int) -> _Drag | None:
    """None for a body without a mass."""
    mass, (ix, iy, iz) = float(m.body_mass[body]), map(float, m.body_inertia[body])
    if mass < _MINVAL:
        return None
    x, y, z = (math.sqrt(max(_MINVAL, s) / mass * 6.0) for s in (iy + iz - ix, ix + iz - iy, ix + iy - iz))
    axes = k.xmat[body] @ constant_rotation(m.body_iquat[body])
    centre = k.point(body, m.body_ipos[body])
    linear = axes.T @ (velocity_at(k.cvel[body], centre) - constants(m.opt_wind))
    diameter, rho, beta = (x + y + z) / 3.0, m.opt_density, m.opt_viscosity
    faces = (y * z, x * z, x * y)
    edges = (x * (y**4 + z**4), y * (x**4 + z**4), z * (x**4 + y**4))
    viscous = math.pi * diameter**3 * beta, 3.0 * math.pi * diameter * beta
    quadratic = [rho * e / 64.0 for e in edges], [0.5 * rho * a for a in faces]
    return _Drag(axes, centre, axes.T @ k.cvel[body][:3], linear, viscous, quadratic)


def _fluid(t: Trace, m: Model, k: Kinematics, body: int) -> Array:
    """Force of the medium on a body (``mj_inertiaBoxFluidModel``)."""
    if (found := _drag(m, k, body)) is None:
        return zeros(6)

    def force(velocity: Array, viscous: float, quadratic: list[float]) -> Array:
        drags = [v * -viscous - t.abs(v) * v * q for v, q in zip(velocity, quadratic, strict=True)]
        return np.asarray(found.axes @ np.array(drags, object))

    torque = force(found.angular, found.viscous[0], found.quadratic[0])
    pull = force(found.linear, found.viscous[1], found.quadratic[1])
    return join(torque + cross(found.centre, pull), pull)


def fluid_damping(t: Trace, m: Model, k: Kinematics) -> Sparse:
    """Less the derivatives of the medium's generalised forces by velocity (``mjd_inertiaBoxFluid``)."""
    if m.opt_density == 0.0 and m.opt_viscosity == 0.0:
        return {}
    return composite(m, k.cdof, [zeros(6, 6), *(_fluid_damping(t, m, k, b) for b in range(1, m.nbody))])


def _fluid_damping(t: Trace, m: Model, k: Kinematics, body: int) -> Array:
    """Of one body: less the derivative of its spatial force by its spatial velocity."""
    out = zeros(6, 6)
    if (found := _drag(m, k, body)) is None:
        return out

    def damping(velocity: Array, viscous: float, quadratic: list[float]) -> Array:
        drags = [viscous + t.abs(v) * (2.0 * q) for v, q in zip(velocity, quadratic, strict=True)]
        return np.asarray((found.axes * np.array(drags, object)) @ found.axes.T)

    shifts, lever = damping(found.linear, found.viscous[1], found.quadratic[1]), skew(found.centre)
    out[3:, 3:], out[3:, :3], out[:3, 3:] = shifts, -(shifts @ lever), lever @ shifts
    out[:3, :3] = damping(found.angular, found.viscous[0], found.quadratic[0]) - lever @ shifts @ lever
    return out
