"""Writes states of Gymnasium's robots, and of `elements`, and where MuJoCo takes them in one step of time.

    pip install gymnasium[mujoco]==1.4.0 mujoco==4.0.0
    PYTHONPATH=tests python -m reference.record_mujoco

Half of the states are wild (past limits, upside down, deep in the ground), half are visited under random actions. The
solver is run to its exact minimum, and so is the search for nearest points (``nearest.py``). Arrays are called
``<model>_<qpos, qvel, ctrl, next_qpos, next_qvel>``. Files are ``mujoco_steps.npz`` and, with the models' constants,
``mujoco_elements.npz``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray
from reference import nearest
from reference.elements import ELEMENTS, near

from gpuzoo.physics.mjcf import extract
from gpuzoo.physics.model import FACTORS

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
#: model -> its MJCF
FILES = {
    "half_cheetah": "half_cheetah.xml",
    "hopper": "hopper.xml",
    "walker2d": "walker2d_v5.xml",
    "inverted_pendulum": "inverted_pendulum.xml",
    "inverted_double_pendulum": "inverted_double_pendulum.xml",
    "reacher": "reacher.xml",
    "swimmer": "swimmer.xml",
    "ant": "ant.xml",
    "humanoid": "humanoid.xml",
    "humanoid_standup": "humanoidstandup.xml",
    "pusher": "pusher_v5.xml",
}
#: the model whose constants are varied, too: it has springs, dampers, limits and contacts
VARIED = "half_cheetah"
Floats = NDArray[np.float64]


def compiled(name: str) -> Any:
    """MuJoCo's model, with a solver and a search for nearest points that go on as far as they can."""
    if name in ELEMENTS:
        return exact(mujoco.MjModel.from_xml_string(ELEMENTS[name]))
    return exact(mujoco.MjModel.from_xml_path(str(ASSETS / FILES[name])))


def exact(m: Any) -> Any:
    """A model, with a solver that goes on to the exact minimum. Humanoid's own, PGS, comes near it slowly."""
    m.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    m.opt.tolerance, m.opt.ls_tolerance = 1e-16, 1e-12
    m.opt.iterations = m.opt.ls_iterations = 200
    m.opt.ccd_tolerance, m.opt.ccd_iterations = 1e-12, 2000
    return m


def wild(m: Any, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Positions all over the place, and velocities of several scales."""
    qpos = np.tile(m.qpos0, (n, 1))
    for j in range(m.njnt):
        a, (low, high) = m.jnt_qposadr[j], m.jnt_range[j]
        if m.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            qpos[:, a : a + 3] = rng.uniform([-5, -5, -0.05], [5, 5, 1], (n, 3))
            turn = rng.normal(size=(n, 4))
            qpos[:, a + 3 : a + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        elif m.jnt_limited[j]:
            qpos[:, a] = rng.uniform(low - 0.15, high + 0.15, n)
        elif m.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE:
            qpos[:, a] += rng.uniform(-0.75, 0.5, n)
        else:
            qpos[:, a] = rng.uniform(-4, 4, n)
    if "object" in (m.body(b).name for b in range(m.nbody)):
        _bring(m, qpos, rng)
    return qpos, rng.normal(size=(n, m.nv)) * rng.choice([0.1, 1, 5, 10], (n, 1))


def _bring(m: Any, qpos: Floats, rng: np.random.Generator) -> None:
    """Pusher's arm within its limits, and its object within reach of the fingertip, in three of four positions."""
    d = mujoco.MjData(m)
    for i in np.flatnonzero(rng.random(len(qpos)) < 0.75):
        state = qpos[i]
        state[:7] = rng.uniform(*m.jnt_range[:7].T)
        d.qpos[:] = state
        mujoco.mj_kinematics(m, d)
        near = d.body("tips_arm").xpos - m.body("object").pos + rng.normal(scale=0.05, size=3)
        state[7:9] = near[1], near[0]


def visited(m: Any, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """States that random actions reach, beginning near the model's own."""
    d, found = mujoco.MjData(m), []
    while len(found) < n:
        mujoco.mj_resetData(m, d)
        d.qpos[:] += rng.uniform(-0.1, 0.1, m.nq)
        d.qvel[:] = 0.1 * rng.normal(size=m.nv)
        for _ in range(100):
            d.ctrl[:] = rng.uniform(-1, 1, m.nu)
            mujoco.mj_step(m, d, 5)
            if rng.random() < 0.1:
                found.append((d.qpos.copy(), d.qvel.copy()))
    qpos, qvel = zip(*found[:n], strict=True)
    return np.array(qpos), np.array(qvel)


def stepped(m: Any, qpos: Floats, qvel: Floats, ctrl: Floats, steps: int = 1) -> tuple[Floats, Floats]:
    """States after some steps of time."""
    d, after = mujoco.MjData(m), []
    for state in zip(qpos, qvel, ctrl, strict=True):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = state
        mujoco.mj_step(m, d, steps)
        after.append((d.qpos.copy(), d.qvel.copy()))
    next_qpos, next_qvel = zip(*after, strict=True)
    return np.array(next_qpos), np.array(next_qvel)


def varied(m: Any, factors: Mapping[str, float]) -> Any:
    """The model with some constants multiplied (`gpuzoo.physics.model.Factors`)."""
    m = copy.copy(m)
    m.opt.gravity[:] *= factors["gravity"]
    m.body_mass[:] *= factors["mass"]
    m.body_inertia[:] *= factors["mass"]
    m.geom_friction[:] *= factors["friction"]
    m.dof_damping[:] *= factors["damping"]
    m.actuator_gear[:] *= factors["gear"]
    m.geom_size[m.geom_type != mujoco.mjtGeom.mjGEOM_PLANE] *= factors["size"]
    m.geom_rbound[:] *= factors["size"]
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # its boxes have the sizes that were compiled
    mujoco.mj_setConst(m, mujoco.MjData(m))
    return m


def main() -> None:
    n = 16
    for file, names in (("mujoco_steps", FILES), ("mujoco_elements", ELEMENTS)):
        record(file, names, n)


def record(file: str, models: Iterable[str], n: int) -> None:
    """Writes a file."""
    out: dict[str, Any] = {}
    for name in models:
        rng, m = np.random.default_rng(0), compiled(name)
        if name in ELEMENTS:
            qpos, qvel = near(m, 2 * n, rng)
            out[f"{name}_model"] = extract(m, f"{name} of tests/reference/elements.py").to_json()
        else:
            qpos, qvel = (np.concatenate(x) for x in zip(wild(m, n, rng), visited(m, n, rng), strict=True))
        ctrl = rng.uniform(*m.actuator_ctrlrange.T, (2 * n, m.nu))
        # What a float32 holds, so that both precisions begin alike.
        qpos, qvel, ctrl = (x.astype(np.float32).astype(float) for x in (qpos, qvel, ctrl))
        names = ("qpos", "qvel", "ctrl", "next_qpos", "next_qvel")
        after = (nearest.stepped if nearest.searched(m) else stepped)(m, qpos, qvel, ctrl)
        arrays = zip(names, (qpos, qvel, ctrl, *after), strict=True)
        out |= {f"{name}_{key}": x for key, x in arrays}
        if name == VARIED:
            factors = rng.uniform(0.5, 2.0, (len(qpos), len(FACTORS))).astype(np.float32).astype(float)
            moved = [
                stepped(varied(m, dict(zip(FACTORS, x, strict=True))), *(y[None] for y in state))
                for x, *state in zip(factors, qpos, qvel, ctrl, strict=True)
            ]
            out |= {"varied_factors": factors}
            out |= {
                f"varied_{key}": np.concatenate(x) for key, x in zip(names[3:], zip(*moved, strict=True), strict=True)
            }
    np.savez_compressed(Path(__file__).with_name(f"{file}.npz"), version=mujoco.__version__, **out)


if __name__ == "__main__":
    main()
