"""Newton's method on the primal problem, with exact line search (``mj_solNewton``).

The cost of an acceleration a is 1/2 (a - a0)' M (a - a0) plus, for each violated row, 1/2 D min(0, J a - aref)^2:
convex and piecewise quadratic. Once a full step keeps the set of active rows, its end is the exact minimum, and the
env is done. What a contact with the ground adds to the Hessian goes through the composite inertia, so the Hessian of a
robot on the ground has the sparsity of its mass matrix. Only bodies of two branches that touch fill it in: with entries
that are known here, or in loops over what the contacts of a pack need (``matrix.cuh``).

One file: its parts are those of one iteration, and read what the others leave in the code.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gpuzoo.physics.constraint import Row
from gpuzoo.physics.contact import Contacts
from gpuzoo.physics.expressions import Array, Expr, Number, Trace, Variable, across, dot, zeros
from gpuzoo.physics.group import Group
from gpuzoo.physics.inertia import Sparse, composite, factor, multiply
from gpuzoo.physics.kinematics import body_accelerations, joint_forces
from gpuzoo.physics.model import RK4, Model
from gpuzoo.physics.spatial import join, skew, wrench

#: Newton steps at most; an env that is not done then keeps its last iterate
STEPS = 20
#: points of a line search at most
SEARCH = 8
#: a line search ends where the slope is this part of what it was: looking closer saves no Newton step
SLOPE = 0.7
#: constraints that may all be absent in all envs of a pack
FEW = 2


@dataclasses.dataclass
class Problem:
    """What is solved.

    Attributes:
        cdof: motion axes.
        mass: the mass matrix.
        smooth: generalised force of all but the constraints.
        rows: limits of joints and tendons, and friction of joints.
        contacts: of geoms.
        touching: envs that have a contact.
    """

    cdof: list[Array]
    mass: Sparse
    smooth: list[Number]
    rows: list[Row]
    contacts: Contacts
    touching: Expr | None


class Solver:
    """Writes the solver's code.

    Attributes:
        hit: envs that have a constraint, or None for a model that has none.
        solves_all: whether `write` also finds the acceleration of envs without a constraint: one Newton step does.
    """

    def __init__(self, t: Trace, m: Model, problem: Problem) -> None:
        self.t, self.m, self.p = t, m, problem
        #: Under RK4 nothing else needs these. Where constraints are many, some env of a pack has one nearly always.
        self.solves_all = m.opt_integrator == RK4 and len(problem.rows) + len(problem.contacts.touches) > FEW
        masks = [*([problem.touching] if problem.touching else []), *(x.hit for x in problem.rows if x.hit)]
        self.hit: Expr | None = None
        for mask in masks:
            self.hit = mask if self.hit is None else t.either(self.hit, mask)
        if any(x.hit is None for x in problem.rows):
            self.hit = t.read("PackMask(true)", "PackMask")
        live = {i for s in problem.cdof for i in range(6) if isinstance(s[i], Expr) or s[i] != 0.0}
        #: entries of a symmetric 6 x 6 matrix that matter: in a planar model, those of three directions
        self.entries = [(i, j) for i in range(6) for j in range(i, 6) if {i, j} <= live]
        self._live = sorted({i for pair in self.entries for i in pair})
        #: bodies that may touch the ground
        self._grounded = sorted({x.bodies[1] for g in problem.contacts.groups if g.grounded for x in g.members})
        #: whether contacts between moving bodies are in loops
        self._joined = any(g.looped and not g.grounded for g in problem.contacts.groups)
        #: whether contacts spin or roll: their edges are nearly parallel, so float32 leaves an error in a step, which
        #: one more takes away.
        self._rolls = any(x.condim > 3 for group in problem.contacts.groups for x in group.members)
        #: whether forces are summed up over the constraints
        self._summed = m.opt_integrator != RK4
        self._residuals: list[Variable] = []

    def _array(self, name: str) -> list[Variable]:
        """A variable for each degree of freedom."""
        return [Variable(self.t, f"{name}[{d}]") for d in range(self.m.nv)]

    @property
    def force(self) -> list[Number]:
        """The generalised force of the constraints (``qfrc_constraint``), once `write` was called.

        At the minimum it is what the acceleration needs beside the smooth forces. Where it is integrated with implicit
        damping that loses digits, so it is summed up over the constraints. Where an env has no constraint it is 0, and
        not -0, which the solver's code makes of it for a neighbour's sake.
        """
        if self.hit is None:
            return [0.0] * self.m.nv
        return [self.t.select(self.hit, x.get(), 0.0) for x in self._array("force" if self._summed else "inertial")]

    def write(self, warm: list[Variable], wrenches: bool = False) -> None:
        """Replaces ``warm``, where the search starts, by the constrained acceleration.

        Args:
            warm: the variables ``qacc[0]``, ...
            wrenches: whether `contact_forces` will be read.
        """
        t, p, nv = self.t, self.p, self.m.nv
        if wrenches:
            t.write(f"Vec cfrc[6][{self.m.nbody}] = {{}};")
        if self.hit is None:
            return
        t.write(f"Vec inertial[{nv}] = {{}};")
        if self._summed:
            t.write(f"Vec force[{nv}] = {{}};")
        for x in [*p.mass.values(), *p.smooth, *(x for s in p.cdof for x in s)]:
            t.name(x)
        for x in p.rows:
            for y in (x.weight, *x.columns.values(), x.offset):
                t.name(y)
        with t.within("" if self.solves_all else f"if (any({t.name(self.hit)}))"):
            done = t.variable("done", "PackMask(false)" if self.solves_all else t.invert(self.hit), "PackMask")
            if self._rolls:
                t.write("PackMask settled_before = PackMask(false);")
            if wrenches or self._summed:
                t.write("PackMask done_before = done;")
            t.write(f"Vec step[{nv}], alpha = num(0.0);")
            if self._joined:
                self._pattern()
            qacc: list[Number] = [x.get() for x in warm]
            rows = [across(row.columns, qacc) + row.offset for row in p.rows]
            self._residuals = [t.variable(f"residual{i}", row) for i, row in enumerate(rows)]
            for variable, x, smooth in zip(self._array("inertial"), multiply(p.mass, qacc), p.smooth, strict=True):
                variable.set(x - smooth)
            with t.within("for (int iteration = 1;; ++iteration)", loop=True):
                self._iteration(warm, done, wrenches or self._summed)
            if self._summed:
                self._sum_forces()
            if wrenches:
                with t.within("if (s.watched)"):
                    self._contact_forces()

    def _iteration(self, warm: list[Variable], done: Variable, ends: bool) -> None:
        t, p = self.t, self.p
        residuals: list[Number] = [x.get() for x in self._residuals]
        active = [row.active(t, x) for row, x in zip(p.rows, residuals, strict=True)]
        inertial: list[Number] = [x.get() for x in self._array("inertial")]
        force, hessian = self._smooth(residuals, active)
        step, gradient = self._newton([a - b for a, b in zip(inertial, force, strict=True)], hessian)
        resistance = multiply(p.mass, step)
        for x in resistance:
            t.name(x)
        settled = self._search(step, resistance, gradient, inertial, residuals, active, done)
        frozen = done.get()
        self._move(warm, step, resistance, frozen)
        now = settled
        if self._rolls:
            now = t.both(settled, t.read("settled_before", "PackMask"))
            t.write(f"settled_before = {t.name(settled)};")
        if ends:
            t.write(f"done_before = {t.name(frozen)};")
        done.set(t.either(frozen, now))
        t.write(f"if (all(done) || iteration == {STEPS}) break;")
        size = t.read("alpha")
        for group in p.contacts.each():
            for a, row in enumerate(self._moved(group, frozen, size)):
                group.store(f"row{a}", row)

    def _speeds(self, group: Group, name: str, cacc: list[Array], array: str) -> list[Number]:
        """A contact's Jacobian times accelerations: those of the bodies, or an array of the degrees of freedom."""
        if not group.grounded:
            return group.across(array)
        return group.speeds(name, cacc)

    def _move(self, warm: list[Variable], step: list[Number], resistance: list[Number], frozen: Expr) -> None:
        """Goes along the step, with all that is linear in it. An env that is done keeps its bits: no times 0."""
        t = self.t
        size = t.read("alpha")
        changes = [across(row.columns, step) for row in self.p.rows]
        for variables, by in ((warm, step), (self._array("inertial"), resistance), (self._residuals, changes)):
            for variable, change in zip(variables, by, strict=True):
                x = variable.get()
                variable.set(t.select(frozen, x, x + size * change))

    def _moved(self, group: Group, frozen: Expr, size: Number) -> list[Number]:
        """A contact's residuals at the end of the step."""
        out = []
        for a in range(1 + group.tangents):
            row, change = group.load(f"row{a}"), group.load(f"change{a}")
            out.append(self.t.select(frozen, row, row + size * change) if isinstance(change, Expr) else row)
        return out

    def _pushes(self, group: Group, rows: list[Number]) -> list[Number]:
        """A contact's force along its normal and tangents, from its residuals."""
        t, weight = self.t, group.load("weight")
        forces: list[Number] = [0.0] * len(rows)
        for row, direction, copies in group.edges(rows):
            push = t.min(row, 0.0) * weight * -copies
            forces = [f + push * x for f, x in zip(forces, direction, strict=True)]
        return forces

    def _wrench(self, group: Group, forces: list[Number]) -> Array:
        """The spatial force of a contact on its second body."""
        basis, total = group.basis(), zeros(3)
        for f, x in zip(forces, basis, strict=False):
            total = total + x * f
        out = wrench(group.load_vector("point"), total)
        for f, x in zip(forces[3:], basis, strict=False):
            out = out + join(x * f, zeros(3))
        return out

    def _smooth(self, residuals: list[Number], active: list[list[Expr]]) -> tuple[list[Number], Sparse]:
        """Forces of the constraints, and the Hessian, both without contacts of two moving bodies."""
        t, m, p = self.t, self.m, self.p
        size = len(self._grounded)
        if size:
            t.write(f"Vec wrench[{len(self._live)}][{size}] = {{}}, curvature[{len(self.entries)}][{size}] = {{}};")
        for group in p.contacts.each():
            if group.grounded:
                rows, place = self._rows(group), group.place(self._grounded)
                pushed = self._wrench(group, self._pushes(group, rows))
                for n, i in enumerate(self._live):
                    Variable(t, f"wrench[{n}][{place}]").add(pushed[i])
                for n, x in enumerate(self._contact_hessian(group, rows)):
                    Variable(t, f"curvature[{n}][{place}]").add(x)
        forces = [zeros(6) for _ in range(m.nbody)]
        full = [zeros(6, 6) for _ in range(m.nbody)]
        for k, body in enumerate(self._grounded):
            for n, i in enumerate(self._live):
                forces[body][i] = t.read(f"wrench[{n}][{k}]")
            for n, (i, j) in enumerate(self.entries):
                full[body][i, j] = full[body][j, i] = t.read(f"curvature[{n}][{k}]")
        total, extra = joint_forces(m, p.cdof, forces), composite(m, p.cdof, full)
        hessian = {key: p.mass[key] + extra[key] for key in p.mass}
        for row, x, masks in zip(p.rows, residuals, active, strict=True):
            push, stiffness = row.violation(t, x) * row.weight, row.stiffness(t, masks)
            for d, entry in row.columns.items():
                total[d] = total[d] - entry * push
                for i, other in row.columns.items():
                    if i <= d:
                        both = 1.0 if row.unit else entry * other
                        hessian[d, i] = hessian.get((d, i), 0.0) + stiffness * both
        return total, hessian

    def _rows(self, group: Group) -> list[Number]:
        """A contact's residuals where the search is."""
        return [group.load(f"row{a}") for a in range(1 + group.tangents)]

    def _sum_forces(self) -> None:
        """Forces of the constraints, from the residuals at the minimum."""
        t, m, p = self.t, self.m, self.p
        frozen, size, force = t.read("done_before", "PackMask"), t.read("alpha"), self._array("force")
        if self._grounded:
            t.write(f"Vec wrench[{len(self._live)}][{len(self._grounded)}] = {{}};")
        for group in p.contacts.each():
            if group.grounded:
                pushed = self._wrench(group, self._pushes(group, self._moved(group, frozen, size)))
                for n, i in enumerate(self._live):
                    Variable(t, f"wrench[{n}][{group.place(self._grounded)}]").add(pushed[i])
        forces = [zeros(6) for _ in range(m.nbody)]
        for k, body in enumerate(self._grounded):
            for n, i in enumerate(self._live):
                forces[body][i] = t.read(f"wrench[{n}][{k}]")
        total = joint_forces(m, p.cdof, forces)
        for row, residual in zip(p.rows, self._residuals, strict=True):
            push = row.violation(t, residual.get()) * row.weight
            for d, entry in row.columns.items():
                total[d] = total[d] - entry * push
        for variable, value in zip(force, total, strict=True):
            variable.set(value)
        for group in p.contacts.each():
            if not group.grounded:
                pushes = self._pushes(group, self._moved(group, frozen, size))
                for x in pushes:
                    t.name(x)
                for dof in group.dofs():
                    Variable(t, f"force[{dof.index}]").add(dot(group.jacobian(dof), pushes))

    def _contact_forces(self) -> None:
        """Spatial forces of contacts on the bodies."""
        t, contacts = self.t, self.p.contacts
        frozen, size = t.read("done_before", "PackMask"), t.read("alpha")
        for group in contacts.each():
            found = self._wrench(group, self._pushes(group, self._moved(group, frozen, size)))
            for i, x in enumerate(found):
                t.name(x)
                Variable(t, f"cfrc[{i}][{group.geom_body(1)}]").add(x)
                if not group.grounded:
                    Variable(t, f"cfrc[{i}][{group.geom_body(0)}]").add(-x)

    def contact_forces(self) -> list[Array]:
        """Spatial forces of all contacts on each body; zero for the world."""
        return [
            np.array([self.t.read(f"cfrc[{i}][{b}]") if b else 0.0 for i in range(6)], object)
            for b in range(self.m.nbody)
        ]

    def _newton(self, gradient: list[Number], hessian: Sparse) -> tuple[list[Number], list[Number]]:
        """The step to the minimum of the cost with the rows that are active now, which is left in ``step``, too.

        Args:
            gradient: without contacts of two moving bodies.
            hessian: likewise.

        Returns:
            The step, and the whole gradient.
        """
        t, p, nv = self.t, self.p, self.m.nv
        out = self._array("step")
        between = [group for group in p.contacts.groups if not group.grounded]
        touched = {(i, j) for g in between for chain in g.chains for i, _ in chain for j, _ in chain if j <= i}
        if between and not self._joined:
            t.write(f"Vec entry[{nv}][{nv}];")
        if self._joined:
            with t.within(f"for (int d = 0; d < {nv}; ++d)"):
                zero = "hessian.entry[d][lowest_bit(left)] = num(0.0);"
                t.write(f"for (u32 left = hessian.columns[d] & ~tree[d]; left; left &= left - 1) {zero}")
        for i, j in sorted(hessian if self._joined else touched):
            t.write(f"{self._entry(i, j)} = {t.name(hessian.get((i, j), 0.0))};")
        if between:
            t.write(f"Vec gradient[{nv}];")
            for variable, value in zip(self._array("gradient"), gradient, strict=True):
                variable.set(value)
        for group in p.contacts.each():
            if not group.grounded:
                self._join(group)
        if between:
            gradient = [x.get() for x in self._array("gradient")]
        if self._joined:
            for variable, value in zip(out, gradient, strict=True):
                variable.set(-value)
            t.write("factor(hessian);")
            t.write("solve(hessian, step);")
            return [x.get() for x in out], gradient
        for i, j in sorted(touched):
            hessian[i, j] = t.read(self._entry(i, j))
        step = [-x for x in factor(hessian, nv).solve(gradient)]
        for variable, value in zip(out, step, strict=True):
            variable.set(value)
        return step, gradient

    def _entry(self, i: int | str, j: int | str) -> str:
        """An entry of the Hessian, in the code."""
        return f"{'hessian.' if self._joined else ''}entry[{i}][{j}]"

    def _pattern(self) -> None:
        """Which entries of the Hessian differ from zero in an env of the pack: those of the tree, and of contacts."""
        t, nv, contacts = self.t, self.m.nv, self.p.contacts
        if nv > 32:
            raise ValueError(f"not supported: so many contacts of a model with {nv} degrees of freedom, more than 32.")
        below: list[set[int]] = [{*self.m.dof_ancestors[d]} for d in range(nv)]
        for row in self.p.rows:
            for d in row.columns:
                below[d] |= {i for i in row.columns if i < d}
        tree = [sum(1 << j for j in columns) for columns in below]
        t.write(f"Symmetric<{nv}> hessian;")
        t.write(f"for (int d = 0; d < {nv}; ++d) hessian.columns[d] = {contacts.table('tree', tree, 'u32')}[d];")
        for group in contacts.each():
            if not group.grounded:
                t.write("u32 before = 0;")
                for dof in group.dofs():
                    t.write(f"hessian.columns[{dof.index}] |= before;")
                    t.write(f"before |= 1u << {dof.index};")
        t.write("fill_in(hessian);")

    def _curvature(self, group: Group, rows: list[Number]) -> Array:
        """Second derivatives of a contact's cost along its normal and tangents."""
        t, weight, size = self.t, group.load("weight"), len(rows)
        out = zeros(size, size)
        for row, direction, copies in group.edges(rows):
            on = t.select(t.less(row, 0.0), weight, 0.0) * copies
            out = out + np.array([[on * (x * y) for y in direction] for x in direction], object)
        return out

    def _contact_hessian(self, group: Group, residuals: list[Number]) -> list[Number]:
        """What a contact with the ground adds to its body's 6 x 6 matrix: `entries` of it."""
        if group.tangents > 2:
            rows = np.array(group.screws(group.load_vector("point"), group.basis()), object)
            right = self._curvature(group, residuals) @ rows
            return [dot(rows[:, i], right[:, j]) for i, j in self.entries]
        directions = np.array(group.basis(), object)
        at_point = directions.T @ self._curvature(group, residuals) @ directions
        jacobian = np.concatenate([-skew(group.load_vector("point")), np.eye(3).astype(object)], axis=1)
        right = at_point @ jacobian
        return [dot(jacobian[:, i], right[:, j]) for i, j in self.entries]

    def _join(self, group: Group) -> None:
        """Adds what a contact of two moving bodies does to the degrees of freedom between them."""
        t, residuals = self.t, self._rows(group)
        pushes, curvature = self._pushes(group, residuals), self._curvature(group, residuals)
        for x in [*pushes, *curvature.flat]:
            t.name(x)
        for dof in group.dofs("k"):
            column = group.jacobian(dof)
            gradient = Variable(t, f"gradient[{dof.index}]")
            gradient.set(gradient.get() - dot(column, pushes))
            right = curvature @ np.array(column, object)
            for x in right:
                t.name(x)
            for other in group.dofs("l", dof.place):
                Variable(t, self._entry(dof.index, other.index)).add(dot(group.jacobian(other), right))

    def _search(
        self,
        step: list[Number],
        resistance: list[Number],
        gradient: list[Number],
        inertial: list[Number],
        residuals: list[Number],
        active: list[list[Expr]],
        done: Variable,
    ) -> Expr:
        """Looks along ``step`` for a zero of the cost's derivative, which is piecewise linear and grows.

        The variable ``alpha`` is then how far to go. Returns the mask of whether a full step keeps the active rows.
        """
        t, m, p = self.t, self.m, self.p
        cacc = body_accelerations(m, p.cdof, step)
        flipped = t.variable("flipped", "PackMask(false)", "PackMask")
        for group in p.contacts.each():
            changes = self._speeds(group, "step", cacc, "step")
            for a, x in enumerate(changes):
                group.store(f"change{a}", x)
            flipped.set(t.either(flipped.get(), self._flips(group, changes)))
        flips = flipped.get()
        changes = [across(row.columns, step) for row in p.rows]
        for row, x, change, masks in zip(p.rows, residuals, changes, active, strict=True):
            for now, before in zip(row.active(t, x + change), masks, strict=True):
                flips = t.either(flips, t.differ(now, before))
        settled = t.invert(flips)
        t.write("alpha = num(1.0);")
        found = t.either(done.get(), settled)
        with t.within(f"if (!all({t.name(found)}))"):
            self._look(step, resistance, gradient, inertial, residuals, found)
        return settled

    def _flips(self, group: Group, changes: list[Number]) -> Expr:
        """Where a full step changes which edges of a contact are active."""
        t, flips = self.t, None
        before = self._rows(group)
        after = [row + change for row, change in zip(before, changes, strict=True)]
        for (x, *_), (y, *_) in zip(group.edges(before), group.edges(after), strict=True):
            flip = t.differ(t.less(x, 0.0), t.less(y, 0.0))
            flips = flip if flips is None else t.either(flips, flip)
        assert flips is not None
        return t.both(flips, group.mask("hit"))

    def _look(
        self,
        step: list[Number],
        resistance: list[Number],
        gradient: list[Number],
        inertial: list[Number],
        residuals: list[Number],
        known: Expr,
    ) -> None:
        """The search of envs where a full step changes active rows."""
        t, p = self.t, self.p
        slope = t.abs(dot(gradient, step)) * SLOPE
        constant, linear = dot(step, inertial), dot(step, resistance)
        for number in (slope, constant, linear):
            t.name(number)
        alpha = Variable(t, "alpha")
        low, high = t.variable("low", 0.0), t.variable("high", 1e30)
        found = t.variable("found", t.name(known), "PackMask")
        with t.within("for (int point = 0;; ++point)", loop=True):
            x = alpha.get()
            first, second = t.variable("first", constant + x * linear), t.variable("second", linear)
            for group in p.contacts.each():
                self._along(group, x, first, second)
            slope_here: Number = first.get()
            curvature: Number = second.get()
            for row, residual in zip(p.rows, residuals, strict=True):
                change = across(row.columns, step)
                here = residual + x * change
                slope_here = slope_here + row.violation(t, here) * row.weight * change
                curvature = curvature + row.stiffness(t, row.active(t, here)) * (change * change)
            found.set(t.either(found.get(), t.less(t.abs(slope_here), slope)))
            t.write(f"if (all(found) || point == {SEARCH}) break;")
            ahead = t.less(slope_here, 0.0)
            lower, upper = t.select(ahead, x, low.get()), t.select(ahead, high.get(), x)
            low.set(lower)
            high.set(upper)
            newton = x - slope_here / curvature
            inside = t.both(t.less(lower, newton), t.less(newton, upper))
            between = (lower + t.min(upper, x * 2.0 + 1.0)) * 0.5
            alpha.set(t.select(found.get(), alpha.get(), t.select(inside, newton, between)))

    def _along(self, group: Group, x: Number, first: Variable, second: Variable) -> None:
        """Adds a contact's part of the derivatives at a point of the line."""
        t, size = self.t, 1 + group.tangents
        changes = [group.load(f"change{a}") for a in range(size)]
        rows = [row + x * change for row, change in zip(self._rows(group), changes, strict=True)]
        one: Number = 0.0
        two: Number = 0.0
        for row, direction, copies in group.edges(rows):
            along = dot(direction, changes)
            change = along * copies
            one = one + t.min(row, 0.0) * change
            two = two + t.select(t.less(row, 0.0), along, 0.0) * change
        weight = group.load("weight")
        first.add(weight * one)
        second.add(weight * two)
