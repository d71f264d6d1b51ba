"""Constants of a model, extracted from MJCF by the ``mujoco`` package (``pip install 'gpuzoo[mujoco]'``).

python -m gpuzoo.physics.mjcf robot.xml "where it is from" > robot.json
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo.physics.model import (
    AFFINE_BIAS,
    BALL,
    BOX,
    CAPSULE,
    CYLINDER,
    EULER,
    FREE,
    HINGE,
    IMPLICITFAST,
    NO_BIAS,
    OF_JOINT,
    OF_SITE,
    PLANE,
    RK4,
    SLIDE,
    SPHERE,
    Model,
)

_NAMED = {"body": "nbody", "jnt": "njnt", "geom": "ngeom", "site": "nsite", "actuator": "nu", "tendon": "ntendon"}


def _of_joints(m: Any, name: str) -> Any:
    """What is given for each degree of freedom, for each joint."""
    found = np.zeros(m.njnt, bool)
    found[m.dof_jntid[np.unique(np.nonzero(getattr(m, name, np.zeros(m.nv)))[0])]] = True
    return found


def _wrapped(m: Any) -> Any:
    """Which tendons pull, and are neither sums of joints nor straight lines between sites."""
    found = np.zeros(m.ntendon, bool)
    for i in np.flatnonzero(m.tendon_limited | (m.tendon_stiffness != 0)):
        kinds = {*m.wrap_type[m.tendon_adr[i] : m.tendon_adr[i] + m.tendon_num[i]].tolist()}
        found[i] = kinds not in ({OF_JOINT}, {OF_SITE})
    return found


def unsupported(m: Any) -> Iterator[str]:
    """What of an ``MjModel`` the generator cannot do, in words."""
    import mujoco

    for count, what in {
        "nflex": "flexes",
        "nplugin": "plugins",
        "npair": "contact pairs given one by one",
    }.items():
        if getattr(m, count, 0):
            yield what
    for kind, what, found in (
        ("equality", "equality constraint", m.eq_type >= 0),
        ("actuator", "the state of actuator", m.actuator_dyntype > 0),
        ("body", "mocap body", m.body_mocapid >= 0),
        ("body", "gravity compensation of body", m.body_gravcomp),
        ("joint", "polynomial damping of joint", _of_joints(m, "dof_dampingpoly")),
        ("joint", "a polynomial spring of joint", getattr(m, "jnt_stiffnesspoly", 0)),
        ("joint", "a yielding spring of joint", getattr(m, "jnt_springyield", 0)),
        ("joint", "a limit of actuator forces at joint", m.jnt_actfrclimited),
        ("tendon", "pulleys or geoms of tendon", _wrapped(m)),
        ("tendon", "a polynomial spring of tendon", getattr(m, "tendon_stiffnesspoly", 0)),
        ("tendon", "a yielding spring of tendon", getattr(m, "tendon_springyield", 0)),
        ("tendon", "a limit of actuator forces at tendon", m.tendon_actfrclimited),
        ("tendon", "a damper of tendon", m.tendon_damping),
        ("tendon", "friction loss of tendon", m.tendon_frictionloss),
        ("tendon", "armature of tendon", getattr(m, "tendon_armature", 0)),
        ("actuator", "armature of actuator", getattr(m, "actuator_armature", 0)),
        ("actuator", "damping of actuator", getattr(m, "actuator_damping", 0)),
        ("geom", "an ellipsoid fluid model of geom", m.geom_fluid),
    ):
        for i in np.unique(np.nonzero(np.atleast_1d(found))[0]):
            yield f"{what} {getattr(m, kind)(i).name or int(i)!r}"
    if m.opt.integrator not in (EULER, RK4, IMPLICITFAST):
        yield "the integrators implicit and discrete"
    if m.opt.cone != 0:
        yield "elliptic friction cones"
    for flags, names in ((m.opt.disableflags, mujoco.mjtDisableBit), (m.opt.enableflags, mujoco.mjtEnableBit)):
        for bit in names.__members__.values():
            if bit.name.startswith(("mjDSBL_", "mjENBL_")) and flags & int(bit):
                yield f"the flag {bit.name[7:].lower()} of <option>"
    if m.opt.noslip_iterations:
        yield "noslip iterations"
    if m.opt.disableactuator:
        yield "groups of actuators that are disabled"
    for j in range(m.njnt):
        if m.jnt_type[j] not in (FREE, BALL, SLIDE, HINGE) or (m.jnt_type[j] == BALL and m.jnt_limited[j]):
            yield f"the type or limit of joint {m.joint(j).name or j!r}"
    for i in range(m.nu):
        name = m.actuator(i).name or i
        if m.actuator_trntype[i] != 0 or m.jnt_type[m.actuator_trnid[i, 0]] not in (SLIDE, HINGE):
            yield f"actuator {name!r}, which does not act on a hinge or slide"
        if m.actuator_gaintype[i] != 0 or m.actuator_biastype[i] not in (NO_BIAS, AFFINE_BIAS):
            yield f"the gain or bias of actuator {name!r}"
    for g in range(m.ngeom):
        collides = m.geom_contype[g] or m.geom_conaffinity[g]
        if collides and m.geom_type[g] not in (PLANE, SPHERE, CAPSULE, CYLINDER, BOX):
            body = m.body(m.geom_bodyid[g]).name or int(m.geom_bodyid[g])
            yield (
                f"contacts of geom {m.geom(g).name or g!r} of body {body!r}, which is no plane, sphere, capsule, "
                "cylinder or box (contype='0' conaffinity='0' makes it one that is only seen)"
            )


def extract(m: Any, source: str) -> Model:
    """The constants of an ``MjModel``.

    Raises:
        ValueError: it has elements that are not supported; the message names them.
    """
    import mujoco

    refused = list(unsupported(m))
    if refused:
        raise ValueError(f"{source}: not supported: {'; '.join(refused)}.")
    values: dict[str, Any] = {"source": source, "version": mujoco.__version__}
    for field in dataclasses.fields(Model):
        kind, _, rest = field.name.partition("_")
        if kind == "opt":
            values[field.name] = getattr(m.opt, rest)
        elif rest == "names":
            get = getattr(m, {"jnt": "joint"}.get(kind, kind))
            values[field.name] = [get(i).name for i in range(getattr(m, _NAMED[kind]))]
        elif field.name not in values:
            values[field.name] = getattr(m, field.name)
    return Model.make(values)


def read(model: str | Path | Model, source: str | None = None) -> Model:
    """A model from a file of MJCF, from the text of one, or from a file of constants (``.json``).

    Raises:
        ImportError: MJCF is given, and the package ``mujoco`` is not installed.
        ValueError: it has elements that are not supported; the message names them.
    """
    if isinstance(model, Model):
        return model
    text = str(model)
    if text.endswith(".json"):
        return Model.from_json(Path(text).read_text(encoding="utf-8"))
    try:
        import mujoco
    except ImportError as error:
        raise ImportError("MJCF is read by the package mujoco: pip install 'gpuzoo[mujoco]'.") from error
    if text.lstrip().startswith("<"):
        return extract(mujoco.MjModel.from_xml_string(text), source or "MJCF")
    return extract(mujoco.MjModel.from_xml_path(text), source or Path(text).name)


_FOUND: dict[Path, tuple[tuple[int, int], Model]] = {}


def found(path: Path, anew: bool = False) -> Model:
    """The model of a file, which is read once.

    Args:
        path: the file.
        anew: whether to read it again if it has changed.

    Raises:
        FileNotFoundError: there is none.
        ImportError, ValueError: see `read`.
    """
    if anew or path not in _FOUND:
        if not path.is_file():
            raise FileNotFoundError(f"there is no model {path}: a path begins with ./ or / or ~.")
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        if path not in _FOUND or _FOUND[path][0] != stamp:
            _FOUND[path] = stamp, read(path)
    return _FOUND[path][1]


if __name__ == "__main__":
    sys.stdout.write(read(sys.argv[1], sys.argv[2]).to_json())
