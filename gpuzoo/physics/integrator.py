"""Integration in time (``mj_Euler``, ``mj_implicit``, ``mj_RungeKutta``)."""

from __future__ import annotations

import numpy as np

from gpuzoo.physics.expressions import Array, Number, Trace, constants, dot, zeros
from gpuzoo.physics.inertia import Factors, Sparse, factor
from gpuzoo.physics.kinematics import Kinematics, unit_quaternion
from gpuzoo.physics.model import BALL, FREE, Model
from gpuzoo.physics.spatial import constant_rotation, cross, skew


def implicit_damping(m: Model, mass: Sparse, more: list[Number] | None = None, fluid: Sparse | None = None) -> Factors:
    """Factors of M + h B: Euler's method takes the damping B at the end of the step.

    Args:
        m: the model.
        mass: the mass matrix.
        more: damping of the actuators, which implicitfast takes so, too.
        fluid: that of the medium, likewise.
    """
    damped = dict(mass)
    for d in range(m.nv):
        damping = float(m.dof_damping[d]) * m.factors.damping + (more[d] if more else 0.0)
        damped[d, d] = damped[d, d] + damping * m.opt_timestep
    for place, entry in (fluid or {}).items():
        damped[place] = damped[place] + entry * m.opt_timestep
    return factor(damped, m.nv)


def free_bodies(m: Model) -> list[int]:
    """Bodies with a free joint and nothing else."""
    trees = {b: [c for c in range(m.nbody) if m.body_rootid[c] == b] for b in range(1, m.nbody)}
    return [
        b
        for b, tree in trees.items()
        if m.body_jntnum[b] == 1
        and m.jnt_type[m.body_jntadr[b]] == FREE
        and not any(c != b and (m.body_jntnum[c] or m.body_mass[c] > 0.0) for c in tree)
    ]


def free_acceleration(
    m: Model, k: Kinematics, mass: Sparse, force: list[Number], turn: list[Number], b: int, fluid: Sparse
) -> Array:
    """The acceleration of a free body under implicitfast, which takes its gyroscopic forces at the end of the step.

    Args:
        m: the model.
        k: its kinematics.
        mass: the mass matrix.
        force: generalised force on the body, six numbers.
        turn: its angular velocity, in its frame.
        b: the body.
        fluid: damping of the medium.
    """
    h, d = m.opt_timestep, int(m.jnt_dofadr[m.body_jntadr[b]])
    weight, frame = float(m.body_mass[b]) * m.factors.mass, k.xmat[b]
    axes = frame @ constant_rotation(m.body_iquat[b])
    inertia = (axes * m.body_inertia[b]) @ axes.T * m.factors.mass
    centre, w = frame @ constants(m.body_ipos[b]), frame @ np.array(turn, object)
    # Derivatives of the centre's acceleration, and of the torque about the joint's origin, by w.
    push = (skew(cross(w, centre)) + skew(w) @ skew(centre)) * -weight
    torque = skew(centre) @ push + skew(w) @ inertia - skew(inertia @ w)
    matrix = zeros(6, 6)
    for i in range(6):
        for j in range(6):
            place = d + max(i, j), d + min(i, j)
            matrix[i, j] = mass.get(place, 0.0) + fluid.get(place, 0.0) * h
        matrix[i, i] = matrix[i, i] + h * (float(m.dof_damping[d + i]) * m.factors.damping)
    matrix[:3, 3:] = matrix[:3, 3:] + push @ frame * h
    matrix[3:, 3:] = matrix[3:, 3:] + frame.T @ torque @ frame * h
    return eliminate(matrix, np.array(force, object))


def eliminate(matrix: Array, x: Array) -> Array:
    """The inverse of a matrix times ``x``, by elimination from the last row, whose diagonal is known to be large."""
    matrix, x, size = matrix.copy(), x.copy(), len(x)
    for p in range(size - 1, -1, -1):
        inverse = 1.0 / matrix[p, p]
        for i in range(p):
            scale = matrix[i, p] * inverse
            matrix[i, :p] = matrix[i, :p] - matrix[p, :p] * scale
            x[i] = x[i] - x[p] * scale
    for p in range(size):
        x[p] = (x[p] - dot(matrix[p, :p], x[:p])) / matrix[p, p]
    return x


def advance(t: Trace, m: Model, qpos: list[Number], qvel: list[Number], h: Number) -> list[Number]:
    """Positions after a time ``h`` at velocities ``qvel`` (``mj_integratePos``)."""
    out = list(qpos)
    for j, kind in enumerate(m.jnt_type):
        d, a = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        if kind == BALL:
            out[a : a + 4] = _turned(t, qpos[a : a + 4], qvel[d : d + 3], h)
            continue
        for i in range(3 if kind == FREE else 1):
            out[a + i] = qpos[a + i] + qvel[d + i] * h
        if kind == FREE:
            out[a + 3 : a + 7] = _turned(t, qpos[a + 3 : a + 7], qvel[d + 3 : d + 6], h)
    return out


def _turned(t: Trace, quaternion: list[Number], velocity: list[Number], h: Number) -> list[Number]:
    """A quaternion after turning for a time ``h`` (``mju_quatIntegrate``)."""
    speed = t.sqrt(t.max(dot(velocity, velocity), 1e-30))
    sine, cosine = t.sincos(speed * h * 0.5)
    i, j, k = (x * (sine / speed) for x in velocity)
    w, x, y, z = unit_quaternion(t, quaternion)
    return [
        w * cosine - x * i - y * j - z * k,
        w * i + x * cosine + y * k - z * j,
        w * j - x * k + y * cosine + z * i,
        w * k + x * j - y * i + z * cosine,
    ]


def rates(t: Trace, m: Model, before: list[Number], qvel: list[Number], h: Number) -> list[Number]:
    """Rates of position at velocities ``qvel``, in the coordinates of the last full position.

    Those of a rotation are its logarithm, after Munthe-Kaas: MuJoCo 4 integrates them so.

    Args:
        t: the code.
        m: the model.
        before: rates of the stage before, which led here from the last full position in a time ``h``.
        qvel: velocities.
        h: that time.
    """
    out = list(qvel)
    for kind, d in zip(m.jnt_type, map(int, m.jnt_dofadr), strict=True):
        if kind in (BALL, FREE):
            first = d + 3 * (kind == FREE)
            turned = np.array(before[first : first + 3], object) * h
            velocity = np.array(qvel[first : first + 3], object)
            out[first : first + 3] = _logarithmic_rate(t, turned, velocity)
    return out


def _logarithmic_rate(t: Trace, u: Array, velocity: Array) -> list[Number]:
    """Rate of the rotation vector ``u`` that an angular velocity in the turned frame makes: dexp inverse.

    v + u x v / 2 + c u x (u x v) with c = (1 - a/2 cot(a/2)) / a^2, a = |u|; for small angles its series.
    """
    square = dot(u, u)
    small = t.less(square, 0.09)
    angle = t.sqrt(t.select(small, 1.0, square))
    sine, cosine = t.sincos(angle * 0.5)
    closed = (1.0 - angle * 0.5 * cosine / sine) / (angle * angle)
    series: Number = 0.0
    for term in (1 / 47900160, 1 / 1209600, 1 / 30240, 1 / 720, 1 / 12):
        series = series * square + term
    once = cross(u, velocity)
    return [*(velocity + once * 0.5 + cross(u, once) * t.select(small, series, closed))]


#: Runge and Kutta's method of order 4; TIMESTEP stands for its number. The rates of a stage lead to the next positions.
RUNGE_KUTTA = """
GZ void physics_step(Physics &s, const Vec *ctrl) {
  Vec qpos[Physics::NQ], qvel[Physics::NV], rate[Physics::NV], last[Physics::NV], dq[Physics::NV];
  GZ_KEPT(Vec, dv, Physics::NV);  // nothing reads it within a stage
  for (int d = 0; d < Physics::NV; ++d) last[d] = dq[d] = dv[d] = rate[d] = num(0.0);
  const bool watched = s.watched;
  GZ_ROLLED for (int stage = 0; stage < 4; ++stage) {
    s.watched = watched && stage == 3;
    const Vec h = stage == 0 ? num(0.0) : stage == 3 ? num(TIMESTEP) : num(TIMESTEP / 2.0);
    const Vec weight = stage % 3 == 0 ? num(1.0 / 6.0) : num(1.0 / 3.0);
    physics_advance(qpos, s.qpos, rate, h);
    for (int d = 0; d < Physics::NV; ++d) qvel[d] = fma(h, last[d], s.qvel[d]);
    physics_rates(rate, qvel, h);
    physics_forward(s, qpos, qvel, ctrl);
    for (int d = 0; d < Physics::NV; ++d) {
      last[d] = s.qacc[d];
      dq[d] = fma(weight, rate[d], dq[d]);
      dv[d] = fma(weight, last[d], dv[d]);
    }
  }
  physics_advance(qpos, s.qpos, dq, num(TIMESTEP));
  for (int i = 0; i < Physics::NQ; ++i) s.qpos[i] = qpos[i];
  for (int d = 0; d < Physics::NV; ++d) s.qvel[d] = fma(num(TIMESTEP), dv[d], s.qvel[d]);
}
"""
