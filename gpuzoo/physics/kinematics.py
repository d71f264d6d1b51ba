"""Frames of bodies, motion axes and velocities (``mj_kinematics``, ``mj_comPos``, ``mj_comVel``).

Spatial vectors are about one point, the ``origin``. A model that is one moving tree has it at its root body, where
slides and the free joint carry it along: far from the world's origin nothing loses digits. Otherwise it is the world's.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gpuzoo.physics.expressions import Array, Number, Trace, constants, dot, zeros
from gpuzoo.physics.model import BALL, FREE, HINGE, SLIDE, Model
from gpuzoo.physics.spatial import constant_rotation, cross, join, motion_cross, rotation, turn

_ZERO: Number = 0.0


@dataclasses.dataclass
class Kinematics:
    """Frames and velocities, one of each per body unless it says otherwise.

    Attributes:
        origin: where spatial vectors are taken about, in the world.
        xpos: position, from the origin; of what never moves, in the world.
        xmat: orientation.
        cdof: motion axis of each degree of freedom.
        cvel: spatial velocity.
        cacc: spatial acceleration at zero ``qacc``, less gravity's.
    """

    origin: Array
    xpos: list[Array]
    xmat: list[Array]
    cdof: list[Array]
    cvel: list[Array]
    cacc: list[Array]

    def point(self, body: int, local: Array) -> Array:
        """Where a point of a body's frame is, from the origin; of what never moves, in the world."""
        out: Array = self.xpos[body] + self.xmat[body] @ constants(local)
        return out

    def in_world(self, m: Model, body: int, local: Array) -> Array:
        """Where a point of a body's frame is in the world."""
        out: Array = self.point(body, local)
        return self.origin + out if m.body_weldid[body] else out


def moving_root(m: Model) -> int | None:
    """The root body of a model that is one moving tree."""
    roots = {b for b in range(1, m.nbody) if m.body_parentid[b] == 0 and m.body_jntnum[b]}
    fixed = [b for b in range(1, m.nbody) if m.body_parentid[b] == 0 and not m.body_jntnum[b] and _moves(m, b)]
    return roots.pop() if len(roots) == 1 and not fixed else None


def _moves(m: Model, body: int) -> bool:
    return any(m.body_jntnum[b] and body in _above(m, b) for b in range(m.nbody))


def _above(m: Model, body: int) -> list[int]:
    out = []
    while body:
        out.append(body)
        body = int(m.body_parentid[body])
    return out


def between(m: Model, first: int, second: int) -> list[tuple[int, float]]:
    """The degrees of freedom that move one body and not the other, and which: -1 the first, 1 the second."""
    chains = [{*m.body_chain[b]} for b in (first, second)]
    return sorted([*((d, -1.0) for d in chains[0] - chains[1]), *((d, 1.0) for d in chains[1] - chains[0])])


def unit_quaternion(t: Trace, quaternion: list[Number]) -> list[Number]:
    """A quaternion of length one in the direction of the given one."""
    scale = 1.0 / t.sqrt(dot(quaternion, quaternion))
    return [x * scale for x in quaternion]


def kinematics(t: Trace, m: Model, qpos: list[Number], qvel: list[Number]) -> Kinematics:
    """Frames, axes and velocities at a state."""
    centre = moving_root(m)
    gravity = join(zeros(3), constants(-m.opt_gravity) * m.factors.gravity)
    out = Kinematics(zeros(3), [zeros(3)], [np.eye(3).astype(object)], [zeros(6)] * m.nv, [zeros(6)], [gravity])
    for b in range(1, m.nbody):
        parent = int(m.body_parentid[b])
        pos = out.point(parent, m.body_pos[b])
        mat = out.xmat[parent] @ constant_rotation(m.body_quat[b])
        vel, acc = out.cvel[parent].copy(), out.cacc[parent].copy()
        if b == centre:
            out.origin, pos = pos, zeros(3)
        steady: list[Array]
        turning: list[Array]
        for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
            kind, d, a = m.jnt_type[j], int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
            axis, offset = constants(m.jnt_axis[j]), constants(m.jnt_pos[j])
            if kind == SLIDE:
                direction = mat @ axis
                shift = direction * (qpos[a] - float(m.qpos0[a]))
                if b == centre and all(m.jnt_type[i] == SLIDE for i in range(m.body_jntadr[b], j)):
                    out.origin = out.origin + shift
                else:
                    pos = pos + shift
                steady, turning = [join(zeros(3), direction)], []
            elif kind == HINGE:
                direction, anchor = mat @ axis, pos + mat @ offset
                mat = mat @ turn(m.jnt_axis[j], *t.sincos(qpos[a] - float(m.qpos0[a])))
                pos = anchor - mat @ offset
                steady, turning = [join(direction, cross(anchor, direction))], []
            else:
                assert kind in (BALL, FREE)
                anchor = pos + mat @ offset
                q = unit_quaternion(t, qpos[a + 3 : a + 7] if kind == FREE else qpos[a : a + 4])
                if kind == FREE:
                    out.origin = np.array(qpos[a : a + 3], object) if b == centre else out.origin
                    anchor = zeros(3) if b == centre else np.array(qpos[a : a + 3], object)
                    steady, mat = [join(zeros(3), axis) for axis in np.eye(3).astype(object)], rotation(q)
                else:
                    steady, mat = [], mat @ rotation(q)
                pos = anchor - mat @ offset
                turning = [join(mat[:, i], cross(anchor, mat[:, i])) for i in range(3)]
            # Slides of a free joint do not turn, and its three turns move with what is before all of them.
            for i, column in enumerate(steady):
                out.cdof[d + i] = column
                if kind != FREE:
                    acc = acc + motion_cross(vel, column) * qvel[d + i]
                vel = vel + column * qvel[d + i]
            before = vel
            for i, column in enumerate(turning, len(steady)):
                out.cdof[d + i] = column
                acc = acc + motion_cross(before, column) * qvel[d + i]
                vel = vel + column * qvel[d + i]
        for found, x in ((out.xpos, pos), (out.xmat, mat), (out.cvel, vel), (out.cacc, acc)):
            found.append(x)
    return out


def body_accelerations(m: Model, cdof: list[Array], qacc: list[Number]) -> list[Array]:
    """Spatial acceleration of each body that ``qacc`` makes (the Jacobian times ``qacc``)."""
    out = [zeros(6)]
    for b in range(1, m.nbody):
        acc = out[m.body_parentid[b]]
        for d in m.body_dofs[b]:
            acc = acc + cdof[d] * qacc[d]
        out.append(acc)
    return out


def joint_forces(m: Model, cdof: list[Array], forces: list[Array]) -> list[Number]:
    """Generalised force of spatial forces on the bodies (the Jacobian's transpose times the forces)."""
    total, out = list(forces), [_ZERO] * m.nv
    for b in range(m.nbody - 1, 0, -1):
        for d in m.body_dofs[b]:
            out[d] = dot(cdof[d], total[b])
        parent = int(m.body_parentid[b])
        total[parent] = total[parent] + total[b]
    return out
