"""A compiled model's constants, by MuJoCo's names."""

from __future__ import annotations

import dataclasses
import functools
import json
import typing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.physics.expressions import Number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PLANE, SPHERE, CAPSULE, CYLINDER, BOX = 0, 2, 3, 5, 6
FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3
EULER, RK4, IMPLICIT, IMPLICITFAST = 0, 1, 2, 3
NO_BIAS, AFFINE_BIAS = 0, 1
OF_JOINT, OF_SITE = 1, 3  # parts of tendons


#: what may differ from env to env
FACTORS = ("gravity", "mass", "friction", "damping", "gear", "size")


@dataclasses.dataclass(frozen=True)
class Factors:
    """What constants of a model are multiplied by, floats or numbers of the running code.

    Attributes:
        gravity: of ``opt_gravity``.
        mass: of ``body_mass`` and ``body_inertia``.
        friction: of ``geom_friction``.
        damping: of ``dof_damping``.
        gear: of ``actuator_gear``.
        size: of ``geom_size``, of the geoms that may touch; masses stay.
        body_invweight0: what the masses make of ``body_invweight0[:, 0]``, of the bodies that need it; None: the
            model's own.
        dof_invweight0: likewise, of degrees of freedom.
        tendon_invweight0: likewise, of tendons.
    """

    gravity: Number = 1.0
    mass: Number = 1.0
    friction: Number = 1.0
    damping: Number = 1.0
    gear: Number = 1.0
    size: Number = 1.0
    body_invweight0: dict[int, Number] | None = None
    dof_invweight0: dict[int, Number] | None = None
    tendon_invweight0: dict[int, Number] | None = None


_ONES = Factors()


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """What the generator reads of ``MjModel``. Fields have the names and shapes of MuJoCo's.

    Those of ``MjModel.opt`` begin with ``opt_``. ``<kind>_names`` are the names of bodies, joints, geoms, sites and
    actuators, empty where there is none. Fields with defaults are empty in most models, and then not in their files.
    ``source`` says where the MJCF comes from, ``version`` which MuJoCo compiled
    it.
    """

    source: str
    version: str
    opt_timestep: float
    opt_integrator: int
    opt_density: float
    opt_viscosity: float
    opt_impratio: float
    opt_gravity: Floats
    opt_wind: Floats
    body_names: tuple[str, ...]
    body_parentid: Ints
    body_weldid: Ints
    body_rootid: Ints
    body_jntnum: Ints
    body_jntadr: Ints
    body_pos: Floats
    body_quat: Floats
    body_ipos: Floats
    body_iquat: Floats
    body_mass: Floats
    body_inertia: Floats
    body_invweight0: Floats
    jnt_names: tuple[str, ...]
    jnt_type: Ints
    jnt_qposadr: Ints
    jnt_dofadr: Ints
    jnt_bodyid: Ints
    jnt_pos: Floats
    jnt_axis: Floats
    jnt_stiffness: Floats
    jnt_limited: Ints
    jnt_range: Floats
    jnt_margin: Floats
    jnt_solref: Floats
    jnt_solimp: Floats
    dof_bodyid: Ints
    dof_jntid: Ints
    dof_parentid: Ints
    dof_armature: Floats
    dof_damping: Floats
    dof_frictionloss: Floats
    dof_solref: Floats
    dof_solimp: Floats
    dof_invweight0: Floats
    qpos0: Floats
    qpos_spring: Floats
    geom_names: tuple[str, ...]
    geom_type: Ints
    geom_contype: Ints
    geom_conaffinity: Ints
    geom_condim: Ints
    geom_bodyid: Ints
    geom_priority: Ints
    geom_size: Floats
    geom_pos: Floats
    geom_quat: Floats
    geom_friction: Floats
    geom_margin: Floats
    geom_gap: Floats
    geom_solmix: Floats
    geom_solref: Floats
    geom_solimp: Floats
    site_names: tuple[str, ...]
    site_bodyid: Ints
    site_pos: Floats
    actuator_names: tuple[str, ...]
    actuator_trnid: Ints
    actuator_gear: Floats
    actuator_gainprm: Floats
    actuator_biastype: Ints
    actuator_biasprm: Floats
    actuator_ctrllimited: Ints
    actuator_ctrlrange: Floats
    actuator_forcelimited: Ints
    actuator_forcerange: Floats
    exclude_signature: Ints = dataclasses.field(default_factory=lambda: _ints([]))
    tendon_names: tuple[str, ...] = ()
    tendon_adr: Ints = dataclasses.field(default_factory=lambda: _ints([]))
    tendon_num: Ints = dataclasses.field(default_factory=lambda: _ints([]))
    tendon_limited: Ints = dataclasses.field(default_factory=lambda: _ints([]))
    tendon_range: Floats = dataclasses.field(default_factory=lambda: _floats([]))
    tendon_margin: Floats = dataclasses.field(default_factory=lambda: _floats([]))
    tendon_stiffness: Floats = dataclasses.field(default_factory=lambda: _floats([]))
    tendon_lengthspring: Floats = dataclasses.field(default_factory=lambda: _floats([]))
    tendon_solref_lim: Floats = dataclasses.field(default_factory=lambda: _floats([]))
    tendon_solimp_lim: Floats = dataclasses.field(default_factory=lambda: _floats([]))
    tendon_invweight0: Floats = dataclasses.field(default_factory=lambda: _floats([]))
    wrap_type: Ints = dataclasses.field(default_factory=lambda: _ints([]))
    wrap_objid: Ints = dataclasses.field(default_factory=lambda: _ints([]))
    wrap_prm: Floats = dataclasses.field(default_factory=lambda: _floats([]))

    @property
    def nq(self) -> int:
        """Numbers of a position."""
        return len(self.qpos0)

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return len(self.dof_bodyid)

    @property
    def nu(self) -> int:
        """Controls."""
        return len(self.actuator_trnid)

    @property
    def ntendon(self) -> int:
        """Tendons."""
        return len(self.tendon_names)

    @property
    def nbody(self) -> int:
        """Bodies, the world included."""
        return len(self.body_parentid)

    @functools.cached_property
    def body_dofs(self) -> list[list[int]]:
        """Degrees of freedom between each body and its parent."""
        return [[d for d in range(self.nv) if self.dof_bodyid[d] == b] for b in range(self.nbody)]

    @functools.cached_property
    def dof_ancestors(self) -> list[list[int]]:
        """Degrees of freedom above each one, the nearest first."""
        out: list[list[int]] = []
        for parent in map(int, self.dof_parentid):
            out.append([parent, *out[parent]] if parent >= 0 else [])
        return out

    @functools.cached_property
    def body_chain(self) -> list[list[int]]:
        """Degrees of freedom that move each body, the nearest first."""
        out: list[list[int]] = [[]]
        for b in range(1, self.nbody):
            out.append([*reversed(self.body_dofs[b]), *out[self.body_parentid[b]]])
        return out

    def body_weight(self, body: int) -> Number:
        """``body_invweight0[body, 0]``."""
        own = self.factors.body_invweight0
        return float(self.body_invweight0[body, 0]) if own is None or not self.body_weldid[body] else own[body]

    def tendon_weight(self, tendon: int) -> Number:
        """``tendon_invweight0[tendon]``."""
        own = self.factors.tendon_invweight0
        return float(self.tendon_invweight0[tendon]) if own is None else own[tendon]

    def dof_weight(self, dof: int) -> Number:
        """``dof_invweight0[dof]``."""
        own = self.factors.dof_invweight0
        return float(self.dof_invweight0[dof]) if own is None else own[dof]

    def scaled(self, factors: Factors) -> Model:
        """The same model with factors."""
        out = dataclasses.replace(self)
        object.__setattr__(out, "_factors", factors)
        return out

    @property
    def factors(self) -> Factors:
        """What constants are multiplied by."""
        return typing.cast(Factors, self.__dict__.get("_factors", _ONES))

    def index(self, kind: str, name: str) -> int:
        """The number of a named element; a number stands for itself where no element has that name.

        Raises:
            ValueError: there is none; the message has those that are there.
        """
        names = getattr(self, f"{kind}_names")
        if name.isdecimal() and name not in names and int(name) < len(names):
            return int(name)
        if name not in names:
            raise ValueError(
                f"the model has no {kind} {name!r}; there are: {', '.join(filter(None, names)) or 'none'}."
            )
        return int(names.index(name))

    def called(self, kind: str, index: int) -> str:
        """An element's name, quoted, or its number where it has none."""
        return repr(getattr(self, f"{kind}_names")[index] or int(index))

    def to_json(self) -> str:
        """The text of a model's file."""
        values = {
            field.name: value.tolist() if isinstance(value := getattr(self, field.name), np.ndarray) else value
            for field in dataclasses.fields(self)
        }
        # Of a field that must be given, both are `dataclasses.MISSING`.
        optional = {f.name for f in dataclasses.fields(self) if f.default is not f.default_factory}
        values = {name: value for name, value in values.items() if name not in optional or len(value)}
        lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in values.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Model:
        """A model from the text of its file."""
        return cls.make(json.loads(text))

    @classmethod
    def make(cls, values: dict[str, Any]) -> Model:
        """A model from its constants, in whatever types they are.

        Raises:
            TypeError: a constant is missing or unknown.
        """
        convert: dict[str, Any] = {"Floats": _floats, "Ints": _ints, "float": float, "int": int, "str": str}
        convert["tuple[str, ...]"] = tuple
        kinds = {field.name: str(field.type) for field in dataclasses.fields(cls)}
        return cls(**{name: convert[kinds.get(name, "str")](value) for name, value in values.items()})


def _floats(x: Any) -> Floats:
    return np.asarray(x, np.float64)


def _ints(x: Any) -> Ints:
    return np.asarray(x, np.int64)


@functools.cache
def load(name: str) -> Model:
    """One of the models that are shipped: ``"half_cheetah"``."""
    return Model.from_json((Path(__file__).parent / "models" / f"{name}.json").read_text(encoding="utf-8"))


def travels(m: Model, way: int) -> bool:
    """Whether the coordinate ``qpos[way]`` only says where the robot is, in a world that is the same all along it.

    Then a step from 0 is a step from anywhere. Everything that moves is one tree, whose root slides along this
    coordinate; nothing pulls it to a place, and all that does not move and can be touched are planes along the way.
    """
    free = m.jnt_type[0] == FREE
    j, root = 0 if free else way, int(m.jnt_bodyid[0])
    one_tree = {*m.body_rootid[np.flatnonzero(m.body_weldid)].tolist()} == {root} and m.body_parentid[root] == 0
    slides = bool(np.all(m.jnt_type[: j + 1] == SLIDE)) and m.jnt_bodyid[j] == root
    if not (one_tree and (free or slides)) or m.jnt_limited[j] or m.jnt_stiffness[j]:
        return False
    if any(trn[0] == j and kind != NO_BIAS for trn, kind in zip(m.actuator_trnid, m.actuator_biastype, strict=True)):
        return False
    axis = np.eye(3)[way] if free else _turn(m.body_quat[root]) @ m.jnt_axis[j]
    for g in np.flatnonzero(m.geom_contype | m.geom_conaffinity):
        body = int(m.geom_bodyid[g])
        if m.body_weldid[body]:
            continue
        normal = (_turn(m.body_quat[body]) @ _turn(m.geom_quat[g]))[:, 2]
        if m.geom_type[g] != PLANE or abs(normal @ axis) > 1e-9 or m.body_parentid[body]:
            return False
    return True


def _turn(quaternion: Floats) -> Floats:
    """The rotation of a quaternion."""
    w, *v = quaternion
    x, y, z = v
    across = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    out: Floats = (w * w - np.dot(v, v)) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * across
    return out
