"""Contacts whose constraints share their code, and what the parts of the solver leave for each other about them.

A contact of the ground has no Jacobian. It sees the motion of its body at its point; its forces act there, and what it
adds to the solver's Hessian is a 6 x 6 matrix of that body. A contact of two moving bodies has one, over the degrees of
freedom that move one of them and not the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuzoo.physics.collision import Touch
from gpuzoo.physics.constraint import impedance, reference
from gpuzoo.physics.expressions import Array, Expr, Number, Trace, constants, dot, zeros
from gpuzoo.physics.kinematics import between
from gpuzoo.physics.shapes import Nearest
from gpuzoo.physics.spatial import cross, join, velocity_at, wrench

if TYPE_CHECKING:
    from gpuzoo.physics.contact import Contacts, Detection


@dataclasses.dataclass
class Dof:
    """A degree of freedom in the code of a contact between moving bodies.

    Attributes:
        index: its number.
        place: which one of that contact it is.
        sign: 1 if it moves the second body, -1 if the first.
    """

    index: str
    place: str
    sign: Number


class Group:
    """Contacts whose constraints share their code: one, or those of a loop.

    Attributes:
        parts: the contacts, by the code that finds them.
        members: all of them.
        looped: whether it is a loop.
        first: the number of the first one.
        index: the number of the one that is being written, in the code.
        tangents: directions of friction that each has: two to slide, one to spin, two to roll.
    """

    def __init__(self, contacts: Contacts, first: int, parts: list[list[Touch]], many: bool) -> None:
        self.contacts, self.first, self.parts = contacts, first, parts
        self.members = [touch for part in parts for touch in part]
        self.trace, self.looped = contacts.trace, many and len(self.members) > 1
        self.index = "i" if self.looped else str(first)
        self.tangents = 0
        self._kept: dict[str, Number | str] = {}
        m = contacts.model
        #: of each member: the degrees of freedom that move only one of its bodies, and which
        self.chains = [between(m, *touch.bodies) for touch in self.members]

    @property
    def touch(self) -> Touch:
        """What all of them have in common."""
        return self.members[0]

    @property
    def grounded(self) -> bool:
        """Whether the first body never moves."""
        return self.touch.bodies[0] == 0

    @property
    def end(self) -> str:
        """The variable that counts the contacts in the list."""
        return f"end_{self.first}"

    @property
    def body(self) -> str:
        """The number of the second body, in the code."""
        return self._of_member("body", [touch.bodies[1] for touch in self.members])

    def geom_body(self, side: int) -> str:
        """The number of the body that a geom belongs to, in the code: it may be welded to `body`."""
        m = self.contacts.model
        return self._of_member(f"geom_body_{side}", [int(m.geom_bodyid[touch.geoms[side]]) for touch in self.members])

    def place(self, bodies: Sequence[int]) -> str:
        """Where the second body is among some, in the code."""
        return self._of_member("place", [bodies.index(touch.bodies[1]) for touch in self.members])

    def _of_member(self, name: str, values: Sequence[int]) -> str:
        """The one of ``values``, those of all members, that the contact being written has, in the code."""
        if not self.looped:
            return str(values[0])
        return f"{self.contacts.table(f'{name}_of_{self.first}', values)}[c_member[{self.index}]]"

    @property
    def _longest(self) -> int:
        return max(len(c) for group in self.contacts.groups if not group.grounded for c in group.chains)

    def constrain(self, place: Detection, found: Nearest, hit: Expr) -> None:
        """Writes the constants of a contact's constraints, which it puts on the list."""
        t, m, touch = self.trace, self.contacts.model, place.touch
        if self.looped:
            t.write(f"const int slot = {self.end}++;")
            self.index = "slot"
            t.write(f"{self.contacts.array('member', 'int')}[slot] = j - {self.first};")
        self.store("hit", hit)
        solref, solimp = (np.array(x) for x in (touch.solref, touch.solimp))
        imp = impedance(t, place.depth, solimp)
        stiffness, damping = reference(solref, solimp, m.opt_timestep)
        for name in {_coefficient(a) for a in range(touch.condim - 1)} | {"friction"}:
            self.store(name, place.number(name))
        mu = place.number("friction")
        # The edges of a pyramid have one regularisation, so that it is as stiff as the cone around it.
        scale = 2.0 * mu * mu * (1.0 + mu * mu) / m.opt_impratio if touch.condim > 1 else 1.0
        self.store("weight", t.select(hit, imp / ((1.0 - imp) * (place.number("invweight") * scale)), 0.0))
        self.tangents = touch.condim - 1
        basis = [found.normal, *(_tangents(t, found.normal, found.axis) if self.tangents else [])]
        self.store_vector("point", found.point)
        for a, direction in enumerate(basis):
            self.store_vector("normal" if a == 0 else f"tangent{a - 1}_", direction)
        start, motions = self.contacts.start(damping)
        if not self.grounded:
            self._store_jacobian(found.point, basis)
        for a, speed in enumerate(self.speeds(start, motions) if self.grounded else self.across(start)):
            self.store(f"row{a}", speed - (place.depth * imp * stiffness if a == 0 else 0.0))
        self.index = "i" if self.looped else self.index

    def speeds(self, name: str, arrays: Sequence[Array]) -> list[Number]:
        """Along the rows of a contact with the ground. ``arrays`` are spatial motions of all bodies."""
        motion = self.contacts.shared(name, arrays, self.body) if self.looped else arrays[self.touch.bodies[1]]
        moves, basis = velocity_at(motion, self.load_vector("point")), self.basis()
        turns = [dot(basis[a - 3], motion[:3]) for a in range(3, 1 + self.tangents)]
        return [*(dot(x, moves) for x in basis), *turns]

    def screws(self, point: Array, basis: list[Array]) -> list[Array]:
        """The spatial force of a unit along each row: the normal, tangents, and turns about these three."""
        forces = [wrench(point, direction) for direction in basis]
        return forces + [join(basis[a - 3], zeros(3)) for a in range(3, 1 + self.tangents)]

    # ---- what one part of the code leaves for another ----

    def store(self, name: str, x: Number) -> None:
        """Keeps a number of each contact. One that is known is not kept if all members have it."""
        if isinstance(x, Expr) or (len(self.parts) > 1 and {x} != {touch.numbers.get(name) for touch in self.members}):
            self._kept[name] = self.contacts.array(name, x.type if isinstance(x, Expr) else "Vec")
            self.trace.write(f"{self._kept[name]}[{self.index}] = {self.trace.name(x)};")
        else:
            self._kept[name] = x

    def load(self, name: str, type_: str = "Vec") -> Number:
        """A number that was kept."""
        kept = self._kept[name]
        return self.trace.read(f"{kept}[{self.index}]", type_) if isinstance(kept, str) else kept

    def mask(self, name: str) -> Expr:
        """A mask that was kept."""
        found = self.load(name, "PackMask")
        assert isinstance(found, Expr)
        return found

    def store_vector(self, name: str, x: Array) -> None:
        """Keeps three numbers."""
        for i in range(3):
            self.store(f"{name}{i}", x[i])

    def load_vector(self, name: str) -> Array:
        """Three numbers that were kept."""
        return np.array([self.load(f"{name}{i}") for i in range(3)], object)

    def basis(self) -> list[Array]:
        """Its normal, and its tangents."""
        return [self.load_vector("normal"), *(self.load_vector(f"tangent{a}_") for a in range(min(self.tangents, 2)))]

    def edges(self, rows: Sequence[Number]) -> list[tuple[Number, tuple[Number, ...], float]]:
        """The edges of its friction pyramid: residual, direction along normal and tangents, and how often it counts.

        Args:
            rows: residuals along the normal and the tangents. Along a tangent in which nothing moves, as across the
                plane of a planar model, the two edges are the normal.
        """
        normal, *tangents = rows
        if not tangents:
            return [(normal, (1.0,), 1.0)]
        out: list[tuple[Number, tuple[Number, ...], float]] = []
        flat = 0.0
        for a, row in enumerate(tangents):
            if not isinstance(row, Expr):
                flat += 2.0
                continue
            friction = self.load(_coefficient(a))
            for mu in (friction, -friction):
                along = (mu if b == a else 0.0 for b in range(len(tangents)))
                out.append((normal + row * mu, (1.0, *along), 1.0))
        if flat:
            out.append((normal, (1.0,) + (0.0,) * len(tangents), flat))
        return out

    # ---- the Jacobian of contacts between moving bodies ----

    def dofs(self, name: str = "k", last: str | None = None) -> Iterator[Dof]:
        """Writes code for each degree of freedom between the bodies, or a loop of it; as far as ``last``, if given."""
        if not self.looped:
            for k, (d, sign) in enumerate(self.chains[0]):
                if last is None or k <= int(last):
                    yield Dof(str(d), str(k), sign)
            return
        t = self.trace
        head = f"{name} <= {last}" if last else f"{name} < {self._chain('length')}"
        with t.within(f"GZ_ROLLED for (int {name} = 0; {head}; ++{name})", loop=True):
            t.write(f"const int dof_{name} = {self._chain('dof')}[{name}];")
            yield Dof(f"dof_{name}", name, t.read(f"num((Real){self._chain('sign')}[{name}])"))

    def _chain(self, what: str) -> str:
        """The number of a contact's degrees of freedom, a row of them, or a row of their signs."""
        chains, which = self._chains()
        values: dict[str, list[Any]] = {
            "length": [len(chain) for chain in chains],
            "dof": [[d for d, _ in chain] for chain in chains],
            "sign": [[int(sign) for _, sign in chain] for chain in chains],
        }
        return f"{self.contacts.table(f'chain_{what}_{self.first}', values[what])}[{self._of_member('chain', which)}]"

    def _chains(self) -> tuple[list[list[tuple[int, float]]], list[int]]:
        """The different chains, and which one each member has."""
        different = sorted({tuple(chain) for chain in self.chains})
        return [[*chain] for chain in different], [different.index(tuple(chain)) for chain in self.chains]

    def jacobian(self, dof: Dof) -> list[Number]:
        """The column of a degree of freedom: what it does along the normal and the tangents."""
        if not self.looped:
            return [self.load(f"jacobian{a}_{dof.place}") for a in range(1 + self.tangents)]
        return [self.trace.read(f"c_jacobian{a}[{self.index}][{dof.place}]") for a in range(1 + self.tangents)]

    def _store_jacobian(self, point: Array, basis: list[Array]) -> None:
        t, cdof = self.trace, self.contacts.kinematics.cdof
        screws = self.screws(point, basis)
        for x in (x for screw in screws for x in screw):
            t.name(x)
        for dof in self.dofs():
            if not self.looped:
                for a, screw in enumerate(screws):
                    self.store(f"jacobian{a}_{dof.place}", dot(screw, cdof[int(dof.index)]) * dof.sign)
                continue
            axis = self.contacts.shared("cdof", cdof, dof.index)
            for a, screw in enumerate(screws):
                array = self.contacts.array(f"jacobian{a}", "Vec", self._longest)
                t.write(f"{array}[{self.index}][{dof.place}] = {t.name(dot(screw, axis) * dof.sign)};")

    def across(self, array: str) -> list[Number]:
        """The Jacobian times what ``array`` has of each degree of freedom."""
        t = self.trace
        sums = [t.variable(f"sum{a}", 0.0) for a in range(1 + self.tangents)]
        for dof in self.dofs():
            x = t.read(f"{array}[{dof.index}]")
            for total, entry in zip(sums, self.jacobian(dof), strict=True):
                total.add(entry * x)
        return [total.get() for total in sums]


def _coefficient(tangent: int) -> str:
    """The number that has the coefficient of friction along a tangent."""
    return ("friction", "friction", "friction_spin", "friction_roll", "friction_roll")[tangent]


def _tangents(t: Trace, normal: Array, axis: Array | None) -> list[Array]:
    """Two tangents; the first lies as far along ``axis`` as it may (``mju_makeFrame``)."""
    if axis is None:
        other = [constants([0.0, 1.0, 0.0]), constants([0.0, 0.0, 1.0])]
        if isinstance(normal[1], float):
            axis = other[abs(normal[1]) >= 0.5]
        else:
            upright = t.less(t.abs(normal[1]), 0.5)
            axis = np.array([0.0, t.select(upright, 1.0, 0.0), t.select(upright, 0.0, 1.0)], object)
    flat = axis - normal * dot(normal, axis)
    moving = [i for i in range(3) if isinstance(flat[i], Expr)]
    if not moving:
        length = np.linalg.norm(flat.astype(float))
        first = constants(flat.astype(float) / length if length > 1e-15 else [1.0, 0.0, 0.0])
    elif len(moving) == 1 and not any(flat[i] for i in range(3) if i not in moving):
        first = np.eye(3).astype(object)[moving[0]]  # of either sign: edges come in pairs
    else:
        square = dot(flat, flat)
        fine = t.less(1e-30, square)
        scale = 1.0 / t.sqrt(t.max(square, 1e-30))
        fallback = [1.0, 0.0, 0.0]  # for an axis along the normal
        first = np.array([t.select(fine, x * scale, o) for x, o in zip(flat, fallback, strict=True)], object)
    return [first, cross(normal, first)]
