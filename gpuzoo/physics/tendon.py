"""Lengths of tendons and their Jacobians (``mj_tendon``): of joints, and of straight lines between sites."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from gpuzoo.physics.expressions import Number, Trace, dot
from gpuzoo.physics.kinematics import Kinematics, between
from gpuzoo.physics.model import OF_JOINT, OF_SITE, Model
from gpuzoo.physics.spatial import velocity_at

_TINY = 1e-30  # the square of a length that counts as none


@dataclasses.dataclass
class Tendon:
    """A tendon at a state.

    Attributes:
        length: ``ten_length``.
        columns: its Jacobian, ``ten_J``, by degrees of freedom.
    """

    length: Number
    columns: dict[int, Number]


def tendon(t: Trace, m: Model, k: Kinematics, qpos: list[Number], index: int) -> Tendon:
    """A tendon by its number.

    Raises:
        ValueError: it has pulleys, or wraps around geoms.
    """
    first = int(m.tendon_adr[index])
    parts = range(first, first + int(m.tendon_num[index]))
    kinds = {int(m.wrap_type[i]) for i in parts}
    objects = [int(m.wrap_objid[i]) for i in parts]
    if kinds == {OF_JOINT}:
        found = Tendon(0.0, {})
        for i, j in zip(parts, objects, strict=True):
            d, coefficient = int(m.jnt_dofadr[j]), float(m.wrap_prm[i])
            found.length = found.length + qpos[m.jnt_qposadr[j]] * coefficient
            found.columns[d] = found.columns.get(d, 0.0) + coefficient
        return found
    if kinds != {OF_SITE}:
        raise ValueError(f"not supported: pulleys or geoms of tendon {m.called('tendon', index)}.")
    found = Tendon(0.0, {})
    for pair in itertools.pairwise(objects):
        _stretch(t, m, k, found, pair)
    return found


def _stretch(t: Trace, m: Model, k: Kinematics, found: Tendon, sites: tuple[int, int]) -> None:
    """Adds the straight line between two sites."""
    bodies = [int(m.site_bodyid[site]) for site in sites]
    ends = [k.point(b, m.site_pos[site]) for b, site in zip(bodies, sites, strict=True)]
    ends = [x if m.body_weldid[b] else x - k.origin for b, x in zip(bodies, ends, strict=True)]
    line = ends[1] - ends[0]
    length = t.sqrt(t.max(dot(line, line), _TINY))
    found.length = found.length + length
    line = np.array([x / length for x in line], object)
    for d, sign in between(m, *(int(m.body_weldid[b]) for b in bodies)):
        moves = dot(line, velocity_at(k.cdof[d], ends[sign > 0])) * sign
        found.columns[d] = found.columns.get(d, 0.0) + moves
