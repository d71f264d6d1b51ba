"""Impedance and reference accelerations of constraints, limits and friction of joints (``mj_makeConstraint``)."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from gpuzoo.physics.expressions import Array, Expr, Number, Trace
from gpuzoo.physics.model import HINGE, SLIDE, Model

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
    """A constraint of one degree of freedom.

    Attributes:
        dof: the degree of freedom.
        hit: where it can act; None: everywhere.
        weight: 1 / R, its inverse regularisation (``efc_D``).
        sign: its Jacobian, 1 or -1.
        offset: less its reference acceleration (``-efc_aref``).
        masks: how many masks say in which piece of its cost it is.
    """

    dof: int
    hit: Expr | None
    weight: Number
    sign: Number
    offset: Number
    masks: int

    def active(self, t: Trace, row: Number) -> list[Expr]:
        """The masks at a residual."""

    def violation(self, t: Trace, row: Number) -> Number:
        """The part of a residual that costs: less the force, divided by the weight."""

    def stiffness(self, t: Trace, active: list[Expr]) -> Number:
        """The second derivative of the cost."""


@dataclasses.dataclass
class Limit:
    """A joint's limit; only the nearer one of its two sides can be violated.

    Its ``weight`` is 0 where it is not; its ``sign`` is 1 at the lower side, -1 at the upper one.
    """

    dof: int
    hit: Expr | None
    weight: Number
    sign: Number
    offset: Number
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

    dof: int
    weight: Number
    offset: Number
    bound: Number
    hit: Expr | None = None
    sign: Number = 1.0
    masks: int = 2

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
            out.append(FrictionLoss(d, weight, qvel[d] * damping, float(loss) / weight))
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
        above, below = x - low, high - x
        depth, sign = margin - t.min(above, below), t.select(t.less(above, below), 1.0, -1.0)
        hit = t.less(0.0, depth)
        imp = impedance(t, depth, m.jnt_solimp[j])
        k, b = reference(m.jnt_solref[j], m.jnt_solimp[j], m.opt_timestep)
        weight = t.select(hit, imp / ((1.0 - imp) * m.dof_weight(d)), 0.0)
        out.append(Limit(d, hit, weight, sign, sign * qvel[d] * b - depth * imp * k))
    return out
