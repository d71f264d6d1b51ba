"""Quantities of the last evaluation of the dynamics that rules read, where MuJoCo's ``mjData`` has them."""

from __future__ import annotations

import dataclasses

import numpy as np

from gpuzoo.physics.expressions import Array, Number, Trace, across, zeros
from gpuzoo.physics.inertia import Inertia, body_inertia
from gpuzoo.physics.kinematics import Kinematics
from gpuzoo.physics.model import Model
from gpuzoo.physics.solver import Solver
from gpuzoo.physics.spatial import cross, join, velocity_at
from gpuzoo.physics.tendon import tendon

#: of a body, site, joint or tendon that is named after them
_OF_ONE = {"xpos": 3, "subtree_com": 3, "site_xpos": 3, "qfrc_constraint": 1}
_OF_TENDONS = ("ten_length", "ten_velocity")


def sizes_of(m: Model) -> dict[str, int]:
    """What can be watched, and how many numbers each has."""
    out = _OF_ONE | {"cfrc_ext": 6 * m.nbody, "cvel": 6 * m.nbody, "cinert": 10 * m.nbody, "qfrc_actuator": m.nv}
    return out | ({"ten_j": m.nv} | dict.fromkeys(_OF_TENDONS, m.ntendon) if m.ntendon else {})


def sizes(m: Model, watch: tuple[str, ...]) -> dict[str, int]:
    """How many numbers each quantity has.

    Raises:
        ValueError: one of them cannot be watched.
    """
    known = sizes_of(m)
    for words in watch:
        if words.split()[0] not in known:
            raise ValueError(f"{words!r} cannot be watched: {', '.join(known)} can.")
    return {words: known[words.split()[0]] for words in watch}


@dataclasses.dataclass
class Evaluation:
    """What an evaluation of the dynamics has found.

    Attributes:
        kinematics: frames and velocities.
        qpos, qvel: the state.
        actuator: generalised force of the actuators.
        solver: it has the forces of the constraints.
    """

    kinematics: Kinematics
    qpos: list[Number]
    qvel: list[Number]
    actuator: list[Number]
    solver: Solver


def write(t: Trace, m: Model, watch: tuple[str, ...], found: Evaluation) -> None:
    """Writes quantities to the state, if somebody will read them before the next evaluation."""
    if not watch:
        return
    with t.within("if (s.watched)"):
        for words in watch:
            for i, x in enumerate(_values(t, m, words, found)):
                t.write(f"s.{words.replace(' ', '_')}[{i}] = {t.name(x)};")


def place(m: Model, k: Kinematics, words: str) -> Array | None:
    """Where a body or a site is; None for other quantities."""
    kind, _, name = words.partition(" ")
    if kind == "xpos":
        return k.in_world(m, m.index("body", name), np.zeros(3))
    if kind == "site_xpos":
        site = m.index("site", name)
        return k.in_world(m, int(m.site_bodyid[site]), m.site_pos[site])
    return None


def _values(t: Trace, m: Model, words: str, found: Evaluation) -> list[Number]:
    kind, _, name = words.partition(" ")
    k, values = found.kinematics, []
    if (there := place(m, k, words)) is not None:
        return [*there]
    if kind == "subtree_com":
        body = m.index("body", name)
        if body == 0:
            return [*_centre_of_all(m, k)]
        return [*(_centre(m, k, body) + (k.origin if m.body_weldid[body] else 0.0))]
    if kind == "qfrc_constraint":
        return [found.solver.force[m.jnt_dofadr[m.index("jnt", name)]]]
    if kind == "ten_j":
        columns = tendon(t, m, k, found.qpos, m.index("tendon", name)).columns
        return [columns.get(d, 0.0) for d in range(m.nv)]
    if kind in _OF_TENDONS:
        tendons = [tendon(t, m, k, found.qpos, i) for i in range(m.ntendon)]
        return [x.length if kind == "ten_length" else across(x.columns, found.qvel) for x in tendons]
    if kind == "qfrc_actuator":
        return found.actuator
    # The rest is about the centre of mass of each body's tree. MuJoCo leaves the world's at zero.
    centres = {root: _centre(m, k, root) for root in {*m.body_rootid[1:].tolist()}}
    forces = found.solver.contact_forces() if kind == "cfrc_ext" else []
    values += zeros(10 if kind == "cinert" else 6).tolist()
    for b in range(1, m.nbody):
        centre = centres[int(m.body_rootid[b])]
        if kind == "cfrc_ext":
            torque, push = forces[b][:3], forces[b][3:]
            values += [*join(torque - cross(centre, push), push)]
        elif kind == "cvel":
            values += [*join(k.cvel[b][:3], velocity_at(k.cvel[b], centre))]
        else:
            values += _about(body_inertia(m, k, b), centre)
    return values


def _centre(m: Model, k: Kinematics, body: int) -> Array:
    """The centre of mass of a body and all below it."""
    below = [body]
    for b in range(body + 1, m.nbody):
        if m.body_parentid[b] in below:
            below.append(b)
    total = body_inertia(m, k, body)
    for b in below[1:]:
        total = total + body_inertia(m, k, b)
    if total.mass == 0.0:
        return k.point(body, m.body_ipos[body])
    return total.moment * (1.0 / total.mass)


def _centre_of_all(m: Model, k: Kinematics) -> Array:
    """The centre of all mass, in the world."""
    total = float(m.body_mass.sum())
    return sum(
        (k.in_world(m, b, m.body_ipos[b]) * (float(m.body_mass[b]) / total) for b in range(m.nbody)), start=zeros(3)
    )


def _about(inertia: Inertia, centre: Array) -> list[Number]:
    """Inertia about a point as ``cinert`` has it: xx, yy, zz, xy, xz, yz, mass times place, mass."""
    outer = np.outer(inertia.moment, centre)
    square = np.trace(outer) * 2.0 - inertia.mass * (centre @ centre)
    tensor = inertia.tensor + outer + outer.T - np.outer(centre, centre) * inertia.mass
    diagonal = [tensor[i, i] - square for i in range(3)]
    return [
        *diagonal,
        tensor[0, 1],
        tensor[0, 2],
        tensor[1, 2],
        *(inertia.moment - centre * inertia.mass),
        inertia.mass,
    ]
