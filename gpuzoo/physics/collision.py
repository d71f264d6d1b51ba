"""Where geoms touch (``mj_collision``): which pairs may, and the nearest points of each pair of shapes.

A `Touch` is one possible contact: a capsule on the ground has two, at its ends. Its numbers are constants of the model.
What the shapes are is in `shapes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpuzoo.physics.expressions import Number, Trace
from gpuzoo.physics.kinematics import Kinematics, kinematics
from gpuzoo.physics.model import BOX, CAPSULE, CYLINDER, PLANE, SPHERE, Model
from gpuzoo.physics.shapes import PARTS, Nearest, Place
from gpuzoo.physics.spatial import constant_rotation

_MINMU, _MINVAL = 1e-5, 1e-15  # mjMINMU, mjMINVAL
_NAMES = {PLANE: "plane", SPHERE: "sphere", CAPSULE: "capsule", CYLINDER: "cylinder", BOX: "box"}


@dataclasses.dataclass
class Touch:
    """A place where two geoms may touch.

    Attributes:
        geoms: the two.
        bodies: those with joints that move them; 0 for one that never moves.
        nearest: the function of their shapes.
        alike: what touches with the same code have in common.
        numbers: what may differ between them.
        condim: 1 without friction, 3 where it slides, 4 where it also spins, 6 where it also rolls.
        solref: of the pair.
        solimp: of the pair.
    """

    geoms: tuple[int, int]
    bodies: tuple[int, int]
    nearest: Callable[[Place], Nearest]
    alike: tuple[object, ...]
    numbers: dict[str, Number]
    condim: int
    solref: tuple[float, ...]
    solimp: tuple[float, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Touches with equal keys may share the code of a loop."""
        same = (self.condim, self.solref, self.solimp)
        return (*self.alike, *(b == 0 for b in self.bodies), *same)


def pairs(m: Model) -> Iterator[tuple[int, int]]:
    """Pairs of geoms that may touch: by their masks, and not of one body, parent and child, or excluded bodies."""
    excluded = {*m.exclude_signature.tolist()}
    parent = m.body_weldid[m.body_parentid[m.body_weldid]]
    for g in range(len(m.geom_type)):
        for f in range(g):
            a, b = (int(m.body_weldid[m.geom_bodyid[x]]) for x in (f, g))
            masks = m.geom_contype[f] & m.geom_conaffinity[g] or m.geom_contype[g] & m.geom_conaffinity[f]
            related = a and b and (a == parent[b] or b == parent[a])
            first, second = sorted(int(m.geom_bodyid[x]) for x in (f, g))
            if masks and a != b and not related and (first << 16) + second not in excluded:
                yield (g, f) if m.geom_type[f] > m.geom_type[g] else (f, g)


def _mixed(m: Model, f: int, g: int) -> dict[str, Any]:
    """Parameters of a contact: of the geom with priority, or of both (``mj_contactParam``)."""
    if m.geom_priority[f] != m.geom_priority[g]:
        one = f if m.geom_priority[f] > m.geom_priority[g] else g
        condim, friction = m.geom_condim[one], m.geom_friction[one]
        solref, solimp = m.geom_solref[one], m.geom_solimp[one]
    else:
        share = m.geom_solmix[f] / (m.geom_solmix[f] + m.geom_solmix[g])
        first, second = m.geom_solref[f], m.geom_solref[g]
        standard = first[0] > 0 and second[0] > 0
        solref = share * first + (1 - share) * second if standard else np.minimum(first, second)
        solimp = share * m.geom_solimp[f] + (1 - share) * m.geom_solimp[g]
        condim, friction = m.geom_condim[[f, g]].max(), m.geom_friction[[f, g]].max(0)
    margin = m.geom_margin[f] + m.geom_margin[g] - m.geom_gap[f] - m.geom_gap[g]
    invweight = m.body_weight(int(m.geom_bodyid[f])) + m.body_weight(int(m.geom_bodyid[g]))
    names = {1: ("friction",), 3: ("friction",)}.get(condim, ("friction", "friction_spin", "friction_roll"))
    coefficients = {name: max(float(x), _MINMU) * m.factors.friction for name, x in zip(names, friction, strict=False)}
    return {
        "condim": int(condim),
        "numbers": {**coefficients, "margin": float(margin), "invweight": invweight},
        "solref": tuple(solref.tolist()),
        "solimp": tuple(solimp.tolist()),
    }


def _lifts(k: Kinematics, m: Model, plane: int, body: int) -> bool:
    """Whether a motion takes a body along the normal of a plane.

    One that only slides on it needs no contact without friction: its force would do nothing.
    """
    normal = constant_rotation(m.geom_quat[plane])[:, 2].astype(float)
    axes = np.array([k.cdof[d] for d in m.body_chain[body]], float).reshape(-1, 6)
    return bool(np.any(abs(axes[:, 3:] @ normal) > 1e-9) or np.any(abs(np.cross(normal, axes[:, :3])) > 1e-9))


def touches(m: Model) -> Iterator[Touch]:
    """Every possible contact of a model.

    Raises:
        ValueError: shapes whose contact is not supported; the message names the geoms.
    """
    rng = np.random.default_rng(0)
    sampled = [kinematics(Trace(), m, [*map(float, rng.uniform(-1, 1, m.nq))], [0.0] * m.nv) for _ in range(2)]
    for f, g in pairs(m):
        shapes = int(m.geom_type[f]), int(m.geom_type[g])
        bodies = int(m.geom_bodyid[f]), int(m.geom_bodyid[g])
        common: dict[str, Any] = {
            "geoms": (f, g),
            "bodies": tuple(int(m.body_weldid[b]) for b in bodies),
            **_mixed(m, f, g),
        }
        same = common.pop("numbers")
        parts = PARTS.get(shapes)
        names = " and ".join(
            f"{_NAMES[s]} {m.called('geom', x)} of body {m.called('body', b)}"
            for s, x, b in zip(shapes, (f, g), bodies, strict=True)
        )
        if parts is None or (shapes[0] == PLANE and bodies[0]):
            raise ValueError(f"not supported: contacts of {names}.")
        if common["condim"] == 1 and shapes[0] == PLANE and not any(_lifts(k, m, f, bodies[1]) for k in sampled):
            continue
        if m.body_invweight0[list(bodies), 0].sum() < _MINVAL:
            raise ValueError(
                f"not supported: contacts of {names}, as only turns about its centre of mass move it: MuJoCo finds no "
                "weight for them. Shapes with contype='0' conaffinity='0' do not touch."
            )
        for nearest, alike, numbers in parts(m, f, g):
            yield Touch(nearest=nearest, alike=alike, numbers=numbers | same, **common)
