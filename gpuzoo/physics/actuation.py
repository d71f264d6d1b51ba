"""From controls to forces (``mj_fwdActuation``): motors, and position and velocity servos, of hinges and slides."""

from __future__ import annotations

from gpuzoo.physics.expressions import Number, Trace
from gpuzoo.physics.model import AFFINE_BIAS, Model


def _force(t: Trace, m: Model, i: int, qpos: list[Number], qvel: list[Number], ctrl: list[Number]) -> Number:
    """An actuator's force before its limits: gain ctrl + bias, where the bias may depend on length and velocity."""
    j, gear = int(m.actuator_trnid[i, 0]), float(m.actuator_gear[i, 0]) * m.factors.gear
    d, a = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
    control = t.clamp(ctrl[i], *map(float, m.actuator_ctrlrange[i])) if m.actuator_ctrllimited[i] else ctrl[i]
    force = control * float(m.actuator_gainprm[i, 0])
    if m.actuator_biastype[i] == AFFINE_BIAS:
        constant, of_length, of_velocity = map(float, m.actuator_biasprm[i, :3])
        force = force + constant + qpos[a] * (gear * of_length) + qvel[d] * (gear * of_velocity)
    return force


def actuator_forces(t: Trace, m: Model, qpos: list[Number], qvel: list[Number], ctrl: list[Number]) -> list[Number]:
    """``qfrc_actuator``: gear times the force."""
    out: list[Number] = [0.0] * m.nv
    for i in range(m.nu):
        force, d = _force(t, m, i, qpos, qvel, ctrl), int(m.jnt_dofadr[m.actuator_trnid[i, 0]])
        if m.actuator_forcelimited[i]:
            force = t.clamp(force, *map(float, m.actuator_forcerange[i]))
        out[d] = out[d] + force * (float(m.actuator_gear[i, 0]) * m.factors.gear)
    return out


def actuator_damping(t: Trace, m: Model, qpos: list[Number], qvel: list[Number], ctrl: list[Number]) -> list[Number]:
    """Less derivatives of ``qfrc_actuator`` by velocity (``mjd_actuator_vel``); none where a force is at a limit."""
    out: list[Number] = [0.0] * m.nv
    for i in range(m.nu):
        gear = float(m.actuator_gear[i, 0]) * m.factors.gear
        damping: Number = gear * gear * -float(m.actuator_biasprm[i, 2])
        if m.actuator_biastype[i] != AFFINE_BIAS or m.actuator_biasprm[i, 2] == 0.0:
            continue
        if m.actuator_forcelimited[i]:
            low, high = map(float, m.actuator_forcerange[i])
            force = _force(t, m, i, qpos, qvel, ctrl)
            damping = t.select(t.both(t.less(low, force), t.less(force, high)), damping, 0.0)
        d = int(m.jnt_dofadr[m.actuator_trnid[i, 0]])
        out[d] = out[d] + damping
    return out
