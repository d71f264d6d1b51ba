"""A model's step in the packed dialect.

The text declares ``struct Physics``, the state of a pack of envs, and ``physics_step(state, ctrl)``, one step of time.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo.physics.actuation import actuator_damping, actuator_forces
from gpuzoo.physics.bias import bias_forces
from gpuzoo.physics.constraint import Row, friction_losses, limits, tendon_limits
from gpuzoo.physics.contact import Contacts
from gpuzoo.physics.expressions import Number, Trace, Variable
from gpuzoo.physics.inertia import Sparse, factor, inertias, mass_matrix
from gpuzoo.physics.integrator import RUNGE_KUTTA, advance, free_acceleration, free_bodies, implicit_damping, rates
from gpuzoo.physics.kinematics import Kinematics, kinematics
from gpuzoo.physics.model import IMPLICITFAST, RK4, Factors, Model
from gpuzoo.physics.passive import fluid_damping, passive_forces
from gpuzoo.physics.solver import Problem, Solver
from gpuzoo.physics.tendon import tendon
from gpuzoo.physics.watched import Evaluation, place, sizes, write
from gpuzoo.physics.weights import needed, weights

_HEAD = """\
// Generated from {source}, compiled by MuJoCo {version}.
struct Physics {{
  static constexpr int NQ = {nq}, NV = {nv}, NU = {nu};
  static constexpr Real TIMESTEP = {timestep!r};
  static constexpr Real CROSSING = sizeof(Real) == 4 ? 1e-6 : 1e-13;  // distance of axes that counts as none
  static constexpr Real HARD = sizeof(Real) == 4 ? {hard};  // a weight that is off by the root of an ulp
  Vec qpos[NQ], qvel[NV], qacc[NV];  // qacc: where the solver starts (qacc_warmstart)
  bool watched = true;               // whether what follows is read before the next step
{watched}{varied}}};
"""


def generate(
    m: Model,
    watch: tuple[str, ...] = (),
    look: bool = False,
    vary: tuple[str, ...] = (),
    evaluate: bool = False,
) -> str:
    """The text of a model.

    Args:
        m: the model.
        watch: quantities that rules read, as of the last evaluation of the dynamics, which is where MuJoCo's `mjData`
            has them after a step: ``"xpos fingertip"``, ``"subtree_com torso"`` (of a body), ``"site_xpos tip"``,
            ``"qfrc_constraint slider"`` (of a joint); ``"cinert"``, ``"cvel"``, ``"cfrc_ext"`` (of all bodies),
            ``"qfrc_actuator"``; ``"ten_j rope"`` (a tendon's Jacobian), ``"ten_length"``, ``"ten_velocity"`` (of all
            tendons). They are members of ``Physics`` with these names, ``xpos_fingertip[3]``.
        vary: names of `model.FACTORS` that differ from env to env: members of ``Physics``, to be set before a step.
            Then ``physics_derive(state)`` computes what follows from them.
        look: whether there is also ``physics_look(state)``, which sees the places that are watched, without a step.
        evaluate: whether there is also ``physics_forward(state, qpos, qvel, ctrl)``, the dynamics without a step.

    Raises:
        ValueError: something of the model is not supported; the message names it.
    """
    watched = [(words.replace(" ", "_"), size) for words, size in sizes(m, watch).items()]
    mass = float(m.body_mass.sum()) or 1.0
    headers = (Path(__file__).with_name(name) for name in ("words.cuh", "matrix.cuh"))
    head = "".join(path.read_text(encoding="utf-8") for path in headers) + _HEAD.format(
        source=m.source,
        version=m.version,
        nq=m.nq,
        nv=m.nv,
        nu=m.nu,
        timestep=m.opt_timestep,
        watched="".join(f"  Vec {name}[{size}];\n" for name, size in watched),
        hard=f"{mass * 1e3!r} : {mass * 2e7!r}",
        varied="".join(f"  Vec {name};\n" for name in vary)
        + (f"  Vec body_weight[{m.nbody}], dof_weight[{m.nv}];\n" if "mass" in vary else "")
        + (f"  Vec tendon_weight[{m.ntendon}];\n" if "mass" in vary and m.tendon_limited.any() else ""),
    )
    runge_kutta = m.opt_integrator == RK4
    text = _accelerations(m, watch, vary) if runge_kutta or evaluate else ""
    text += _runge_kutta(m) if runge_kutta else _euler(m, watch, vary)
    if vary:
        text = _derive(m, vary) + text
    convex = Path(__file__).with_name("convex.cuh").read_text(encoding="utf-8") if "convex::" in text else ""
    return head + convex + text + (_look(m, watch) if look else "")


@functools.lru_cache(maxsize=64)
def text_of(m: Model, watch: tuple[str, ...], look: bool, vary: tuple[str, ...], evaluate: bool) -> str:
    """What `generate` returned for the same arguments, as it takes long."""
    return generate(m, watch, look, vary, evaluate)


def _look(m: Model, watch: tuple[str, ...]) -> str:
    """Writes places without a step."""
    t = Trace()
    k = kinematics(t, m, _read(t, "s.qpos", m.nq), [0.0] * m.nv)
    for words in watch:
        if (found := place(m, k, words)) is not None:
            for i, x in enumerate(found):
                t.write(f"s.{words.replace(' ', '_')}[{i}] = {t.name(x)};")
    return _function(t, "GZ_SELDOM void physics_look(Physics &s)")


def _varied(t: Trace, m: Model, vary: tuple[str, ...], derived: bool = True) -> Model:
    """The model with what differs from env to env."""
    if not vary:
        return m
    found: dict[str, Any] = {name: t.read(f"s.{name}") for name in vary}
    if "mass" in vary and derived:
        bodies, dofs = needed(m)
        found["tendon_invweight0"] = {int(i): t.read(f"s.tendon_weight[{i}]") for i in np.flatnonzero(m.tendon_limited)}
        found["body_invweight0"] = {b: t.read(f"s.body_weight[{b}]") for b in bodies}
        found["dof_invweight0"] = {d: t.read(f"s.dof_weight[{d}]") for d in dofs}
    return m.scaled(Factors(**found))


def _derive(m: Model, vary: tuple[str, ...]) -> str:
    """Computes what follows from masses."""
    t = Trace()
    if "mass" in vary:
        derived = weights(t, _varied(t, m, ("mass",), derived=False))
        for array, found in zip(("body", "dof", "tendon"), derived, strict=True):
            for i, x in found.items():
                t.write(f"s.{array}_weight[{i}] = {t.name(x)};")
    return _function(t, "GZ_SELDOM void physics_derive(Physics &s)")


def _read(t: Trace, name: str, count: int) -> list[Number]:
    return [t.read(f"{name}[{i}]") for i in range(count)]


def _warm(t: Trace, m: Model) -> list[Variable]:
    """Where the solver starts; afterwards, the acceleration that it found."""
    t.write(f"Vec qacc[{m.nv}];")
    t.write(f"for (int d = 0; d < {m.nv}; ++d) qacc[d] = s.qacc[d];")
    return [Variable(t, f"qacc[{d}]") for d in range(m.nv)]


def _function(t: Trace, signature: str) -> str:
    """A function, without the values that nobody reads."""
    kept: list[str] = []
    read: set[str] = set()
    for line in reversed(t.block.lines):
        value = re.match(r" *const \w+ (t\d+) = ", line)
        if value and value[1] not in read:
            continue
        read.update(re.findall(r"\bt\d+\b", line))
        kept.append(f"  {line}")
    return "\n".join([f"{signature} {{", *reversed(kept), "}", ""])


def _forward(
    t: Trace,
    m: Model,
    qpos: list[Number],
    qvel: list[Number],
    ctrl: list[Number],
    warm: list[Variable],
    watch: tuple[str, ...],
) -> tuple[Kinematics, Sparse, list[Number], Solver]:
    """Forces and constraints at a state (``mj_forward``).

    Returns:
        Kinematics, the mass matrix, the generalised force of all but the constraints, and the solver.
    """
    k = kinematics(t, m, qpos, qvel)
    inertia = inertias(m, k)
    mass = mass_matrix(m, k.cdof, inertia)
    motors = actuator_forces(t, m, qpos, qvel, ctrl)
    pulling = (m.tendon_limited != 0) | (m.tendon_stiffness != 0.0)
    tendons = {int(i): tendon(t, m, k, qpos, int(i)) for i in np.flatnonzero(pulling)}
    parts = (bias_forces(m, k, inertia), passive_forces(t, m, k, qpos, qvel, tendons), motors)
    smooth = [passive + actuator - bias for bias, passive, actuator in zip(*parts, strict=True)]
    rows: list[Row] = [*limits(t, m, qpos, qvel), *tendon_limits(t, m, tendons, qvel), *friction_losses(t, m, qvel)]
    contacts = Contacts(t, m, k, qvel, [x.get() for x in warm])
    solver = Solver(t, m, Problem(k.cdof, mass, smooth, rows, contacts, contacts.detect()))
    solver.write(warm, "cfrc_ext" in watch)
    write(t, m, watch, Evaluation(k, qpos, qvel, motors, solver))
    return k, mass, smooth, solver


def _euler(m: Model, watch: tuple[str, ...], vary: tuple[str, ...]) -> str:
    """Euler's method, semi-implicit in velocity and with implicit damping, and implicitfast, which has more of it."""
    t, h = Trace(), m.opt_timestep
    m = _varied(t, m, vary)
    t.write("const Vec *qvel = s.qvel;")
    qpos, qvel, ctrl = _read(t, "s.qpos", m.nq), _read(t, "qvel", m.nv), _read(t, "ctrl", m.nu)
    warm = _warm(t, m)
    k, mass, smooth, solver = _forward(t, m, qpos, qvel, ctrl, warm, watch)
    force = [a + b for a, b in zip(smooth, solver.force, strict=True)]
    fast = m.opt_integrator == IMPLICITFAST
    damping = actuator_damping(t, m, qpos, qvel, ctrl) if fast else None
    fluid = fluid_damping(t, m, k) if fast else {}
    qacc = implicit_damping(m, mass, damping, fluid).solve(force)
    for b in free_bodies(m) if fast else ():
        d = int(m.jnt_dofadr[m.body_jntadr[b]])
        qacc[d : d + 6] = free_acceleration(m, k, mass, force[d : d + 6], qvel[d + 3 : d + 6], b, fluid)
    for d, (x, solved) in enumerate(zip(qacc, warm, strict=True)):
        start = x if solver.hit is None else t.select(solver.hit, solved.get(), x)
        t.write(f"s.qacc[{d}] = {t.name(start)};")
    qvel = [v + a * h for v, a in zip(qvel, qacc, strict=True)]
    for name, values in (("qvel", qvel), ("qpos", advance(t, m, qpos, qvel, h))):
        for i, x in enumerate(values):
            t.write(f"s.{name}[{i}] = {t.name(x)};")
    return _function(t, "GZ void physics_step(Physics &s, const Vec *ctrl)")


def _accelerations(m: Model, watch: tuple[str, ...], vary: tuple[str, ...]) -> str:
    """The dynamics as a function of their own: RK4 calls them four times, and they are compiled once."""
    t = Trace()
    m = _varied(t, m, vary)
    qpos, qvel, ctrl = _read(t, "qpos", m.nq), _read(t, "qvel", m.nv), _read(t, "ctrl", m.nu)
    warm = _warm(t, m)
    _, mass, smooth, solver = _forward(t, m, qpos, qvel, ctrl, warm, watch)
    if not solver.solves_all:
        head = "" if solver.hit is None else f"if (!all({t.name(solver.hit)}))"
        with t.within(head):
            for found, x in zip(warm, factor(mass, m.nv).solve(smooth), strict=True):
                found.set(x if solver.hit is None else t.select(solver.hit, found.get(), x))
    for d, found in enumerate(warm):
        t.write(f"s.qacc[{d}] = {found.name};")
    word = "GZ_CALLED" if solver.p.contacts.on_stack else "GZ_SELDOM"
    signature = f"{word} void physics_forward(Physics &s, const Vec *qpos, const Vec *qvel, const Vec *ctrl)"
    return _function(t, signature)


def _runge_kutta(m: Model) -> str:
    """Runge and Kutta's method."""
    t = Trace()
    moved = advance(t, m, _read(t, "qpos", m.nq), _read(t, "qvel", m.nv), t.read("h"))
    for i, x in enumerate(moved):
        t.write(f"out[{i}] = {t.name(x)};")
    step = _function(t, "GZ void physics_advance(Vec *out, const Vec *qpos, const Vec *qvel, Vec h)")
    t = Trace()
    for d, x in enumerate(rates(t, m, _read(t, "rate", m.nv), _read(t, "qvel", m.nv), t.read("h"))):
        t.write(f"rate[{d}] = {t.name(x)};")
    rate = _function(t, "GZ void physics_rates(Vec *rate, const Vec *qvel, Vec h)")
    return step + rate + RUNGE_KUTTA.replace("TIMESTEP", repr(m.opt_timestep))
