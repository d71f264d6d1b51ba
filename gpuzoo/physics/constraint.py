"""Constraints of joints and tendons: limits, friction, impedance, reference accelerations (``mj_makeConstraint``)."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from gpuzoo.physics.expressions import Array, Expr, Number, Trace, across
from gpuzoo.physics.model import HINGE, SLIDE, Model
from gpuzoo.physics.tendon import Tendon

_MINIMP, _MAXIMP, _MINVAL = 0.0001, 0.9999, 1e-15  # mjMINIMP, mjMAXIMP, mjMINVAL


def impedance(t: Trace, depth: Number, solimp: Array) -> Number:
    """The impedance d(r) of a constraint that is violated by ``depth``, at least 0.

    Raises:
        ValueError: a power that is no integer.
    """
    low, high, width, middle, power = (float(x) for x in solimp)
    low, high = (min(max(x, _MINIMP), _MAXIMP) for x in (low, high))
    middle, power = min(max(middle, _MINIMP), _MAXIMP), max(power, 1.0)
    if low == high or width <= _MINVAL:
        return 0.5 * (low + high)
    if power != int(power):
        raise ValueError(f"not supported: the power {power} in solimp, which is no integer.")

    def raised(base: Number) -> Number:
        out = base
        for _ in range(int(power) - 1):
            out = out * base
        return out

    if depth == 0.0:
        return low
    x = t.min(depth * (1.0 / width), 1.0)
    y: Number = x
    if power > 1.0:
        below = raised(x) * (1.0 / middle ** (power - 1.0))
        above = 1.0 - raised(1.0 - x) * (1.0 / (1.0 - middle) ** (power - 1.0))
        y = t.select(t.less(middle, x), above, below)
    return low + y * (high - low)


def reference(solref: Array, solimp: Array, timestep: float) -> tuple[float, float]:
    """Stiffness k and damping b of a constraint: its reference acceleration is -b v - k d(r) r."""
    high = min(max(float(solimp[1]), _MINIMP), _MAXIMP)
    first, second = map(float, solref)
    if first > 0.0:
        constant = max(first, 2.0 * timestep)
        return 1.0 / (high * high * constant * constant * second * second), 2.0 / (high * constant)
    return -first / (high * high), -second / high


class Row(Protocol):
    """A constraint of one number: a joint's position, or a tendon's length.

    Attributes:
        columns: its Jacobian, by degrees of freedom.
        unit: whether that is 1 or -1 of a joint.
        hit: where it can act; None: everywhere.
        weight: 1 / R, its inverse regularisation (``efc_D``).
        offset: less its reference acceleration (``-efc_aref``).
        masks: how many masks say in which piece of its cost it is.
    """

    columns: dict[int, Number]
    hit: Expr | None
    weight: Number
    offset: Number
    masks: int
    unit: bool

    def active(self, t: Trace, row: Number) -> list[Expr]:
        """The masks at a residual."""

    def violation(self, t: Trace, row: Number) -> Number:
        """The part of a residual that costs: less the force, divided by the weight."""

    def stiffness(self, t: Trace, active: list[Expr]) -> Number:
        """The second derivative of the cost."""


@dataclasses.dataclass
class Limit:
    """A limit; only the nearer one of its two sides can be violated.

    Its ``weight`` is 0 where it is not; at the upper side its Jacobian has the other sign.
    """

    columns: dict[int, Number]
    hit: Expr | None
    weight: Number
    offset: Number
    unit: bool
    masks: int = 1

    def active(self, t: Trace, row: Number) -> list[Expr]:
        """See `Row`."""
        assert self.hit is not None
        return [t.both(t.less(row, 0.0), self.hit)]

    def violation(self, t: Trace, row: Number) -> Number:
        """See `Row`."""
        return t.min(row, 0.0)

    def stiffness(self, t: Trace, active: list[Expr]) -> Number:
        """See `Row`."""
        return t.select(active[0], self.weight, 0.0)


@dataclasses.dataclass
class FrictionLoss:
    """Dry friction of a joint: a force against its motion, which stops growing at a residual of ``bound``."""

    columns: dict[int, Number]
    weight: Number
    offset: Number
    bound: Number
    hit: Expr | None = None
    masks: int = 2
    unit: bool = True

    def active(self, t: Trace, row: Number) -> list[Expr]:
        """See `Row`."""
        return [t.less(row, -self.bound), t.less(self.bound, row)]

    def violation(self, t: Trace, row: Number) -> Number:
        """See `Row`."""
        return t.max(t.min(row, self.bound), -self.bound)

    def stiffness(self, t: Trace, active: list[Expr]) -> Number:
        """See `Row`."""
        return t.select(t.either(*active), 0.0, self.weight)


def friction_losses(t: Trace, m: Model, qvel: list[Number]) -> list[FrictionLoss]:
    """Friction of all joints that have some (``mj_instantiateFriction``)."""
    out = []
    for d, loss in enumerate(m.dof_frictionloss):
        if loss > 0.0:
            imp = impedance(t, 0.0, m.dof_solimp[d])
            assert isinstance(imp, float)
            _, damping = reference(m.dof_solref[d], m.dof_solimp[d], m.opt_timestep)
            weight = imp / ((1.0 - imp) * m.dof_weight(d))
            out.append(FrictionLoss({d: 1.0}, weight, qvel[d] * damping, float(loss) / weight))
    return out


def limits(t: Trace, m: Model, qpos: list[Number], qvel: list[Number]) -> list[Limit]:
    """All limits of joints (``mj_instantiateLimit``).

    Raises:
        ValueError: a limit of a ball joint, or both of whose sides may be violated at once.
    """
    out = []
    for j, limited in enumerate(m.jnt_limited):
        if not limited:
            continue
        (low, high), margin = map(float, m.jnt_range[j]), float(m.jnt_margin[j])
        if m.jnt_type[j] not in (SLIDE, HINGE) or high - low < 2.0 * margin:
            raise ValueError(f"not supported: the limit of joint {m.called('jnt', j)}.")
        d, x = int(m.jnt_dofadr[j]), qpos[m.jnt_qposadr[j]]
        found = Tendon(x, {d: 1.0})
        out.append(_limit(t, m, found, qvel, (low, high, margin), (m.jnt_solref[j], m.jnt_solimp[j]), m.dof_weight(d)))
    return out


def tendon_limits(t: Trace, m: Model, tendons: dict[int, Tendon], qvel: list[Number]) -> list[Limit]:
    """All limits of tendons.

    Raises:
        ValueError: both sides of a limit may be violated at once.
    """
    out = []
    for i, found in tendons.items():
        if m.tendon_limited[i]:
            (low, high), margin = map(float, m.tendon_range[i]), float(m.tendon_margin[i])
            if high - low < 2.0 * margin:
                raise ValueError(f"not supported: the limit of tendon {m.called('tendon', i)}.")
            solver = m.tendon_solref_lim[i], m.tendon_solimp_lim[i]
            out.append(_limit(t, m, found, qvel, (low, high, margin), solver, m.tendon_weight(i)))
    return out


def _limit(
    t: Trace,
    m: Model,
    found: Tendon,
    qvel: list[Number],
    bounds: tuple[float, float, float],
    solver: tuple[Array, Array],
    invweight: Number,
) -> Limit:
    """A limit of a length, whose ``bounds`` are the lower and the upper one and the margin."""
    low, high, margin = bounds
    above, below = found.length - low, high - found.length
    depth, sign = margin - t.min(above, below), t.select(t.less(above, below), 1.0, -1.0)
    hit = t.less(0.0, depth)
    imp = impedance(t, depth, solver[1])
    k, b = reference(*solver, m.opt_timestep)
    # MuJoCo's weight is 1e15 where nothing moves the length in the model's own position: the limit is hard.
    hard = isinstance(invweight, float) and invweight < _MINVAL
    weight = t.select(hit, t.read("num(Physics::HARD)") if hard else imp / ((1.0 - imp) * invweight), 0.0)
    columns = {d: sign * entry for d, entry in found.columns.items()}
    return Limit(
        columns,
        hit,
        weight,
        sign * across(found.columns, qvel) * b - depth * imp * k,
        [*found.columns.values()] == [1.0],
    )
