"""Forces of gravity and of velocity (``mj_rne``): what keeps the acceleration at zero."""

from __future__ import annotations

from gpuzoo.physics.expressions import Number, zeros
from gpuzoo.physics.inertia import Inertia
from gpuzoo.physics.kinematics import Kinematics, joint_forces
from gpuzoo.physics.model import Model
from gpuzoo.physics.spatial import force_cross


def bias_forces(m: Model, k: Kinematics, inertia: list[Inertia]) -> list[Number]:
    """``qfrc_bias``, by the recursive Newton-Euler algorithm: f = I a + v x I v of each body, summed up to the root."""
    forces = [zeros(6)]
    for b in range(1, m.nbody):
        forces.append(inertia[b] @ k.cacc[b] + force_cross(k.cvel[b], inertia[b] @ k.cvel[b]))
    return joint_forces(m, k.cdof, forces)
