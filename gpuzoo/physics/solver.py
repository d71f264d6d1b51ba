"""Newton's method on the primal problem, with exact line search (``mj_solNewton``).

The cost of an acceleration a is 1/2 (a - a0)' M (a - a0) plus, for each violated row, 1/2 D min(0, J a - aref)^2:
convex and piecewise quadratic. Once a full step keeps the set of active rows, its end is the exact minimum, and the env
is done. A contact's part of the Hessian goes through the composite inertia, so the Hessian of a robot on the ground has
the sparsity of its mass matrix; only bodies of two branches that touch fill it in.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gpuzoo.physics.constraint import Limit
from gpuzoo.physics.contact import Contacts, Group, wrench
from gpuzoo.physics.expressions import Array, Expr, Number, Trace, Variable, constants, dot, zeros
from gpuzoo.physics.inertia import Sparse, composite, factor, multiply
from gpuzoo.physics.kinematics import body_accelerations, joint_forces
from gpuzoo.physics.model import Model
from gpuzoo.physics.spatial import skew

#: Newton steps at most; an env that is not done then keeps its last iterate
STEPS = 20
#: points of a line search at most
SEARCH = 8
#: a line search ends where the slope is this part of what it was
SLOPE = 0.05


@dataclasses.dataclass
class Problem:
    """What is solved.

    Attributes:
        cdof: motion axes.
        mass: the mass matrix.
        smooth: generalised force of all but the constraints.
        limits: of joints.
        contacts: of geoms.
        touching: envs that have a contact.
    """

    cdof: list[Array]
    mass: Sparse
    smooth: list[Number]
    limits: list[Limit]
    contacts: Contacts
    touching: Expr | None


class Solver:
    """Writes the solver's code.

    Attributes:
        hit: envs that have a constraint, or None for a model that has none.
    """

    def __init__(self, t: Trace, m: Model, problem: Problem) -> None:
        self.t, self.m, self.p = t, m, problem
        masks = [*([problem.touching] if problem.touching else []), *(x.hit for x in problem.limits)]
        self.hit: Expr | None = None
        for mask in masks:
            self.hit = mask if self.hit is None else t.either(self.hit, mask)
        live = {i for s in problem.cdof for i in range(6) if isinstance(s[i], Expr) or s[i] != 0.0}
        #: entries of a symmetric 6 x 6 matrix that matter: in a planar model, those of three directions
        self.entries = [(i, j) for i in range(6) for j in range(i, 6) if {i, j} <= live]
        self._live = sorted({i for pair in self.entries for i in pair})
        self._force: list[Variable] = []
        self._inertial: list[Variable] = []
        self._residuals: list[Variable] = []

    @property
    def force(self) -> list[Number]:
        """The generalised force of the constraints (``qfrc_constraint``), once `write` was called.

        Where an env has no constraint it is 0, and not -0, which the solver's code makes of it for a neighbour's sake.
        """
        if self.hit is None:
            return [0.0] * self.m.nv
        return [self.t.select(self.hit, x.get(), 0.0) for x in self._force]

    def write(self, warm: list[Variable]) -> None:
        """Replaces ``warm``, where the search starts, by the constrained acceleration."""
        t, p = self.t, self.p
        for i in self._live if self.p.contacts.groups else ():
            t.write(f"Vec wrench{i}[{len(p.contacts.links)}] = {{}};")
        if self.hit is None:
            return
        self._force = [t.variable(f"force{d}", 0.0) for d in range(self.m.nv)]
        for x in [*p.mass.values(), *p.smooth, *(x for s in p.cdof for x in s)]:
            t.name(x)
        for x in p.limits:
            for y in (x.weight, x.sign, x.offset):
                t.name(y)
        with t.within(f"if (any({t.name(self.hit)}))"):
            done = t.variable("done", t.invert(self.hit), "PackMask")
            for i in range(len(p.limits)):
                t.write(f"PackMask on{i} = PackMask(false);")
            self._begin([x.get() for x in warm])
            with t.within("for (int iteration = 0;; ++iteration)", loop=True):
                self._iteration(warm, done)

    def _iteration(self, warm: list[Variable], done: Variable) -> None:
        t = self.t
        residuals: list[Number] = [x.get() for x in self._residuals]
        self._update(residuals)
        t.write(f"if (all(done) || iteration == {STEPS}) break;")
        hessian = self._hessian()
        inertial: list[Number] = [x.get() for x in self._inertial]
        gradient = [a - x.get() for a, x in zip(inertial, self._force, strict=True)]
        step = [-x for x in factor(hessian, self.m.nv).solve(gradient)]
        for x in step:
            t.name(x)
        slope = t.abs(dot(gradient, step)) * SLOPE
        resistance = multiply(self.p.mass, step)
        alpha, settled = self._search(step, resistance, slope, inertial, residuals, done)
        self._move(warm, step, resistance, done.get(), alpha.get())
        done.set(t.either(done.get(), settled.get()))

    def _begin(self, qacc: list[Number]) -> None:
        """Residuals and inertial forces, M a less the smooth forces, where the search starts."""
        t, p = self.t, self.p
        cacc = body_accelerations(self.m, p.cdof, qacc)
        p.contacts.share("cacc", cacc)
        for group in p.contacts.each():
            motion = group.motion("cacc", cacc)
            for a, x in enumerate(group.basis()):
                group.store(f"row{a}", dot(x, motion) + group.load(f"offset{a}"))
        rows = [limit.sign * qacc[limit.dof] + limit.offset for limit in p.limits]
        self._residuals = [t.variable(f"residual{i}", row) for i, row in enumerate(rows)]
        inertial = [a - b for a, b in zip(multiply(p.mass, qacc), p.smooth, strict=True)]
        self._inertial = [t.variable(f"inertial{d}", x) for d, x in enumerate(inertial)]

    def _move(self, warm: list[Variable], step: list[Number], resistance: list[Number], done: Expr, size: Expr) -> None:
        """Goes along the step, with all that is linear in it. An env that is done keeps its bits: no times 0."""
        t, limits = self.t, self.p.limits
        changes = [limit.sign * step[limit.dof] for limit in limits]
        for variables, by in ((warm, step), (self._inertial, resistance), (self._residuals, changes)):
            for variable, change in zip(variables, by, strict=True):
                x = variable.get()
                variable.set(t.select(done, x, x + size * change))
        for group in self.p.contacts.each():
            for a in range(1 + group.tangents):
                row, change = group.load(f"row{a}"), group.load(f"change{a}")
                if isinstance(change, Expr):
                    group.store(f"row{a}", t.select(done, row, row + size * change))

    def _update(self, residuals: list[Number]) -> None:
        """Active rows, and the forces of the constraints."""
        t, m, p = self.t, self.m, self.p
        for i in self._live if p.contacts.groups else ():
            t.write(f"for (Vec &x : wrench{i}) x = num(0.0);")
        for group in p.contacts.each():
            basis, weight = group.basis(), group.load("weight")
            rows = [group.load(f"row{a}") for a in range(len(basis))]
            forces: list[Number] = [0.0] * len(basis)
            for r, (row, direction, copies) in enumerate(group.edges(rows)):
                group.store(f"active{r}", t.both(t.less(row, 0.0), group.mask("hit")))
                push = t.min(row, 0.0) * weight * -copies
                forces = [f + push * x for f, x in zip(forces, direction, strict=True)]
            total = zeros(3)
            for f, x in zip(forces, basis, strict=True):
                total = total + x * f
            self._add(
                group,
                "wrench",
                [(i, x) for i, x in enumerate(wrench(group.load_vector("point"), total)) if i in self._live],
            )
        force = joint_forces(m, p.cdof, self.contact_forces())
        for i, (limit, row) in enumerate(zip(p.limits, residuals, strict=True)):
            t.write(f"on{i} = {t.name(t.both(t.less(row, 0.0), limit.hit))};")
            force[limit.dof] = force[limit.dof] - limit.sign * (t.min(row, 0.0) * limit.weight)
        for variable, new in zip(self._force, force, strict=True):
            variable.set(new)

    def contact_forces(self) -> list[Array]:
        """Spatial forces of all contacts on each body, the world included."""
        out = [zeros(6) for _ in range(self.m.nbody)]
        for n, (first, second) in enumerate(self.p.contacts.links):
            found = zeros(6)
            for i in self._live:
                found[i] = self.t.read(f"wrench{i}[{n}]")
            out[second] = out[second] + found
            out[first] = out[first] - found
        return out

    def _add(self, group: Group, name: str, parts: list[tuple[int, Number]]) -> None:
        """Adds to what all contacts of a pair of bodies do together."""
        for i, x in parts:
            if isinstance(x, Expr) or x != 0.0:
                Variable(self.t, f"{name}{i}[{group.link}]").add(x)

    def _hessian(self) -> Sparse:
        """The mass matrix and what active rows add to it."""
        t, m, p = self.t, self.m, self.p
        links = p.contacts.links
        for n in range(len(self.entries) if links else 0):
            t.write(f"Vec between{n}[{len(links)}] = {{}};")
        for group in p.contacts.each():
            self._add(group, "between", self._contact_hessian(group))
        found = {}
        for n, link in enumerate(links):
            full = zeros(6, 6)
            for e, (i, j) in enumerate(self.entries):
                full[i, j] = full[j, i] = t.read(f"between{e}[{n}]")
            found[link] = full
        grounded = [
            sum((x for (a, b), x in found.items() if not a and b == body), zeros(6, 6)) for body in range(m.nbody)
        ]
        extra = composite(m, p.cdof, grounded)
        out = {key: p.mass[key] + extra[key] for key in p.mass}
        for (first, second), matrix in found.items():
            if first:
                self._couple(out, first, second, matrix)
        for i, limit in enumerate(p.limits):
            d = limit.dof
            out[d, d] = out[d, d] + t.select(t.read(f"on{i}", "PackMask"), limit.weight, 0.0)
        return out

    def _contact_hessian(self, group: Group) -> list[tuple[int, Number]]:
        t, weight, basis = self.t, group.load("weight"), group.basis()
        curvature = zeros(len(basis), len(basis))
        for r, (_, direction, copies) in enumerate(group.edges([group.load(f"row{a}") for a in range(len(basis))])):
            on = t.select(group.mask(f"active{r}"), weight, 0.0) * copies
            curvature = curvature + np.array([[on * (x * y) for y in direction] for x in direction], object)
        directions = np.array(basis, object)
        at_point = directions.T @ curvature @ directions
        jacobian = np.concatenate([-skew(group.load_vector("point")), np.eye(3).astype(object)], axis=1)
        right = at_point @ jacobian
        return [(n, dot(jacobian[:, i], right[:, j])) for n, (i, j) in enumerate(self.entries)]

    def _couple(self, out: Sparse, first: int, second: int, matrix: Array) -> None:
        """Adds what a contact of two moving bodies does to the degrees of freedom between them."""
        chains = [self.m.body_chain[b] for b in (first, second)]
        sign = {d: -1.0 for d in chains[0]}
        for d in chains[1]:
            if d in sign:
                del sign[d]  # it moves both alike
            else:
                sign[d] = 1.0
        forces = {d: matrix @ self.p.cdof[d] for d in sign}
        for i in sign:
            for j in sign:
                if j <= i:
                    out[i, j] = out.get((i, j), 0.0) + dot(self.p.cdof[j], forces[i]) * (sign[i] * sign[j])

    def _search(
        self,
        step: list[Number],
        resistance: list[Number],
        slope: Number,
        inertial: list[Number],
        residuals: list[Number],
        done: Variable,
    ) -> tuple[Variable, Variable]:
        """Looks along ``step`` for a zero of the cost's derivative, which is piecewise linear and grows.

        Returns variables: how far to go, and whether a full step keeps the active rows.
        """
        t, m, p = self.t, self.m, self.p
        constant, linear = dot(step, inertial), dot(step, resistance)
        for number in (slope, constant, linear):
            t.name(number)
        cacc = body_accelerations(m, p.cdof, step)
        p.contacts.share("step", cacc)
        for group in p.contacts.each():
            motion = group.motion("step", cacc)
            for a, direction in enumerate(group.basis()):
                group.store(f"change{a}", dot(direction, motion))
        alpha, low, high = t.variable("alpha", 1.0), t.variable("low", 0.0), t.variable("high", 1e30)
        found, settled = t.variable("found", "done", "PackMask"), t.variable("settled", "PackMask(false)", "PackMask")
        with t.within("for (int point = 0;; ++point)", loop=True):
            x = alpha.get()
            first, second = t.variable("first", constant + x * linear), t.variable("second", linear)
            flipped = t.variable("flipped", "PackMask(false)", "PackMask")
            for group in p.contacts.each():
                self._along(group, x, first, second, flipped)
            slope_here: Number = first.get()
            curvature: Number = second.get()
            flips = flipped.get()
            for i, limit in enumerate(p.limits):
                change = limit.sign * step[limit.dof]
                row = residuals[i] + x * change
                active = t.both(t.less(row, 0.0), limit.hit)
                flips = t.either(flips, t.differ(active, t.read(f"on{i}", "PackMask")))
                slope_here = slope_here + t.min(row, 0.0) * limit.weight * change
                curvature = curvature + t.select(active, limit.weight, 0.0) * (step[limit.dof] * step[limit.dof])
            t.write(f"if (point == 0) settled = {t.name(t.invert(flips))};")
            enough = t.either(t.less(t.abs(slope_here), slope), settled.get())
            found.set(t.either(found.get(), enough))
            t.write(f"if (all(found) || point == {SEARCH}) break;")
            ahead = t.less(slope_here, 0.0)
            lower, upper = t.select(ahead, x, low.get()), t.select(ahead, high.get(), x)
            low.set(lower)
            high.set(upper)
            newton = x - slope_here / curvature
            inside = t.both(t.less(lower, newton), t.less(newton, upper))
            between = (lower + t.min(upper, x * 2.0 + 1.0)) * 0.5
            alpha.set(t.select(found.get(), alpha.get(), t.select(inside, newton, between)))
        return alpha, settled

    def _along(self, group: Group, x: Number, first: Variable, second: Variable, flipped: Variable) -> None:
        """Adds a contact's part of the derivatives at a point of the line."""
        t, size = self.t, 1 + group.tangents
        changes = [group.load(f"change{a}") for a in range(size)]
        rows = [group.load(f"row{a}") + x * change for a, change in enumerate(changes)]
        one: Number = 0.0
        two: Number = 0.0
        flips: Expr | None = None
        for r, (row, direction, copies) in enumerate(group.edges(rows)):
            change = dot(constants(direction), changes) * copies
            active = t.both(t.less(row, 0.0), group.mask("hit"))
            flip = t.differ(active, group.mask(f"active{r}"))
            flips = flip if flips is None else t.either(flips, flip)
            one = one + t.min(row, 0.0) * change
            two = two + t.select(active, dot(constants(direction), changes), 0.0) * change
        weight = group.load("weight")
        first.add(weight * one)
        second.add(weight * two)
        assert flips is not None
        flipped.set(t.either(flipped.get(), flips))
