"""Integration in time (``mj_Euler``, ``mj_RungeKutta``)."""

from __future__ import annotations

import numpy as np

from gpuzoo.physics.expressions import Array, Number, Trace, dot
from gpuzoo.physics.inertia import Factors, Sparse, factor
from gpuzoo.physics.kinematics import unit_quaternion
from gpuzoo.physics.model import BALL, FREE, Model
from gpuzoo.physics.spatial import cross


def implicit_damping(m: Model, mass: Sparse) -> Factors:
    """Factors of M + h B: Euler's method takes the damping B at the end of the step."""
    damped = dict(mass)
    for d in range(m.nv):
        damped[d, d] = damped[d, d] + m.opt_timestep * float(m.dof_damping[d])
    return factor(damped, m.nv)


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
