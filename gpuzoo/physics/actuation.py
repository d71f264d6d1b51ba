"""From controls to forces (``mj_fwdActuation``): motors, and position and velocity servos, of hinges and slides."""

from __future__ import annotations

from gpuzoo.physics.expressions import Number, Trace
from gpuzoo.physics.model import AFFINE_BIAS, Model


def actuator_forces(t: Trace, m: Model, qpos: list[Number], qvel: list[Number], ctrl: list[Number]) -> list[Number]:
    """``qfrc_actuator``: gear times (gain ctrl + bias), where the bias may depend on length and velocity."""
    out: list[Number] = [0.0] * m.nv
    for i in range(m.nu):
        j, gear = int(m.actuator_trnid[i, 0]), float(m.actuator_gear[i, 0])
        d, a = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        control = t.clamp(ctrl[i], *map(float, m.actuator_ctrlrange[i])) if m.actuator_ctrllimited[i] else ctrl[i]
        force = control * float(m.actuator_gainprm[i, 0])
        if m.actuator_biastype[i] == AFFINE_BIAS:
            constant, of_length, of_velocity = map(float, m.actuator_biasprm[i, :3])
            force = force + constant + qpos[a] * (gear * of_length) + qvel[d] * (gear * of_velocity)
        if m.actuator_forcelimited[i]:
            force = t.clamp(force, *map(float, m.actuator_forcerange[i]))
        out[d] = out[d] + force * gear
    return out
