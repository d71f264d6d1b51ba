"""Constraints of contacts: what the solver reads of them (``mj_instantiateContact``).

No constraint Jacobian is formed. A contact sees the motion of its second body against its first one at its point; its
forces act on these two bodies, and what it adds to the solver's Hessian is a 6 x 6 matrix between them.

A contact's code lies behind a guard, and is skipped where no env of the pack has that contact. Contacts that differ in
numbers only share the code of a loop, where a model has more than `UNROLLED` in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from gpuzoo.physics.collision import Nearest, Touch, touches
from gpuzoo.physics.constraint import impedance, reference
from gpuzoo.physics.expressions import Array, Expr, Number, Trace, constants, dot, zeros
from gpuzoo.physics.kinematics import Kinematics
from gpuzoo.physics.model import Model
from gpuzoo.physics.spatial import cross, join, velocity_at

#: a model with more contacts than these has loops over those that differ in numbers only
UNROLLED = 16
#: bytes of shared memory that contacts may take of each thread of a GPU: an SM has registers for eight warps of threads
#: that have as many as they can, and 228 KB of shared memory, of which rows of observations take up to 6 KB per warp
SHARED = 704


class Group:
    """Contacts that share their code: one, or those of a loop. It is the `collision.Place` of that code."""

    def __init__(self, contacts: Contacts, first: int, members: Sequence[Touch]) -> None:
        self._contacts, self._first, self.members = contacts, first, members
        self.trace = contacts.trace
        self._kept: dict[str, Number | str] = {}
        self.tangents = 0

    @property
    def touch(self) -> Touch:
        """What all of them have in common."""
        return self.members[0]

    @property
    def looped(self) -> bool:
        """Whether it is a loop."""
        return len(self.members) > 1

    @property
    def index(self) -> str:
        """The contact's number, in the code."""
        return "i" if self.looped else str(self._first)

    @property
    def link(self) -> str:
        """The number of its pair of bodies, in the code."""
        return "link_of[i]" if self.looped else str(self._contacts.links.index(self.touch.bodies))

    def number(self, name: str) -> Number:
        """See `collision.Place`."""
        values = [float(touch.numbers[name]) for touch in self.members]
        return values[0] if len({*values}) == 1 else self.trace.read(f"num({self._contacts.table(name)}[i])")

    def vector(self, name: str) -> Array:
        """See `collision.Place`."""
        return constants_of([self.number(f"{name}{i}") for i in range(3)])

    def frame(self, side: int) -> tuple[Array, Array]:
        """See `collision.Place`."""
        k = self._contacts.kinematics
        return self.of_body(side, "xpos", k.xpos), self.of_body(side, "xmat", k.xmat)

    @property
    def origin(self) -> Array:
        """See `collision.Place`."""
        return self._contacts.kinematics.origin

    def of_body(self, side: int, name: str, arrays: Sequence[Array]) -> Array:
        """What one of its bodies has in ``arrays``, of which there is one per body."""
        if not self.looped or self.touch.bodies[side] == 0:
            return arrays[self.touch.bodies[side]]
        return self._contacts.shared(name, arrays, f"body_{side}[i]")

    def motion(self, name: str, arrays: Sequence[Array]) -> Array:
        """Of its second body against its first one, at its point: ``arrays`` are spatial motions of all bodies."""
        second, first = self.of_body(1, name, arrays), self.of_body(0, name, arrays)
        return velocity_at(second - first, self.load_vector("point"))

    # ---- what one part of the code leaves for another ----

    def store(self, name: str, x: Number) -> None:
        """Keeps a number of each contact."""
        if isinstance(x, Expr):
            self._kept[name] = self._contacts.array(name, x.type)
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
        return constants_of([self.load(f"{name}{i}") for i in range(3)])

    def basis(self) -> list[Array]:
        """Its normal, and its tangents."""
        return [self.load_vector("normal"), *(self.load_vector(f"tangent{a}_") for a in range(self.tangents))]

    def edges(self, rows: Sequence[Number]) -> list[tuple[Number, tuple[float, ...], float]]:
        """The edges of its friction pyramid: residual, direction along normal and tangents, and how often it counts.

        Args:
            rows: residuals along the normal and the tangents. Along a tangent in which nothing moves, as across the
                plane of a planar model, the two edges are the normal.
        """
        normal, *tangents = rows
        if not tangents:
            return [(normal, (1.0,), 1.0)]
        out, flat = [], 0.0
        for a, row in enumerate(tangents):
            if not isinstance(row, Expr):
                flat += 2.0
                continue
            for mu in (self.touch.friction, -self.touch.friction):
                direction = [1.0] + [0.0] * len(tangents)
                direction[1 + a] = mu
                out.append((normal + row * mu, tuple(direction), 1.0))
        if flat:
            out.append((normal, (1.0,) + (0.0,) * len(tangents), flat))
        return out


def constants_of(x: Sequence[Number]) -> Array:
    """Numbers as an array."""
    return np.array(list(x), object)


class Contacts:
    """All contacts of a model.

    Attributes:
        links: the pairs of bodies that may touch; the first is 0 where it does not move.
        groups: the contacts, in the order of their code.
    """

    def __init__(self, t: Trace, m: Model, k: Kinematics) -> None:
        self.trace, self.model, self.kinematics = t, m, k
        kinds: dict[object, list[Touch]] = {}
        for touch in touches(m):
            kinds.setdefault(touch.key, []).append(touch)
        self.groups: list[Group] = []
        members: list[Touch] = []
        many = sum(map(len, kinds.values())) > UNROLLED
        for kind in kinds.values():
            for part in [kind] if many else [[x] for x in kind]:
                self.groups.append(Group(self, len(members), part))
                members += part
        self.links = sorted({touch.bodies for touch in members})
        self._members, self._looped = members, {b for g in self.groups if g.looped for t in g.members for b in t.bodies}
        self._arrays: dict[str, str] = {}
        self._bytes = 0
        self._tables: set[str] = set()
        self._shared: dict[tuple[str, int], list[str | Number]] = {}
        self._place = (t.block, len(t.block.lines))
        if self._looped:
            self._indices()

    def _indices(self) -> None:
        bodies = sorted(self._looped)
        for side in (0, 1):
            of = [bodies.index(t.bodies[side]) if t.bodies[side] in bodies else 0 for t in self._members]
            self._constant("int", f"body_{side}", of)
        self._constant("int", "link_of", [self.links.index(t.bodies) for t in self._members])

    def _constant(self, kind: str, name: str, values: Sequence[float]) -> None:
        text = ", ".join(str(x) if kind == "int" else f"(Real){x!r}" for x in values)
        block, place = self._place
        block.lines.insert(place, f"static constexpr {kind} {name}[] = {{{text}}};")

    def table(self, name: str) -> str:
        """The table of a constant of all contacts."""
        if name not in self._tables:
            self._tables.add(name)
            self._constant("Real", f"table_{name}", [float(x.numbers.get(name, 0.0)) for x in self._members])
        return f"table_{name}"

    def array(self, name: str, type_: str) -> str:
        """The array of a number of all contacts, declared where the contacts' code begins."""
        if name not in self._arrays:
            self._arrays[name] = type_
            count = len(self._members)
            size = count * (4 if type_ == "Vec" else 1)
            kept = self._bytes + size <= SHARED
            self._bytes += size * kept
            declared = f"GZ_KEPT({type_}, c_{name}, {count});" if kept else f"{type_} c_{name}[{count}];"
            block, place = self._place
            block.lines.insert(place, declared)
        return f"c_{name}"

    def share(self, name: str, arrays: Sequence[Array]) -> None:
        """Writes arrays of all bodies where loops can read them under an index. Call it in front of the loops."""
        if not self._looped:
            return
        bodies, t = sorted(self._looped), self.trace
        for place in np.ndindex(np.shape(arrays[0])):
            parts: list[Any] = [arrays[b][place] for b in bodies]
            if len({x if isinstance(x, float) else id(x) for x in parts}) > 1 or isinstance(parts[0], Expr):
                label = f"b_{name}_{'_'.join(map(str, place))}"
                t.write(f"const Vec {label}[] = {{{', '.join(map(t.name, parts))}}};")

    def shared(self, name: str, arrays: Sequence[Array], index: str) -> Array:
        """What `share` wrote, of the body with an index."""
        bodies, out = sorted(self._looped), zeros(*np.shape(arrays[0]))
        for place in np.ndindex(out.shape):
            parts = [arrays[b][place] for b in bodies]
            varied = len({x if isinstance(x, float) else id(x) for x in parts}) > 1 or isinstance(parts[0], Expr)
            label = f"b_{name}_{'_'.join(map(str, place))}"
            out[place] = self.trace.read(f"{label}[{index}]") if varied else parts[0]
        return out

    def each(self, guarded: bool = True) -> Iterator[Group]:
        """Writes the code of every group in turn, in its loop and behind its guard."""
        for group in self.groups:
            with ExitStack() as stack:
                if group.looped:
                    last = group._first + len(group.members)
                    head = f"GZ_ROLLED for (int i = {group._first}; i < {last}; ++i)"
                    stack.enter_context(self.trace.within(head, loop=True))
                if guarded:
                    stack.enter_context(self.trace.within(f"if (any(c_hit[{group.index}]))"))
                yield group

    def detect(self) -> Expr | None:
        """Finds all contacts and their constraints' constants. Returns the mask of envs that have any, or None."""
        t, k = self.trace, self.kinematics
        if not self.groups:
            return None
        for name, arrays in (("xpos", k.xpos), ("xmat", k.xmat), ("cvel", k.cvel)):
            self.share(name, arrays)
        for number in k.origin:
            t.name(number)
        touching = t.variable("touching", "PackMask(false)", "PackMask")
        for group in self.each(guarded=False):
            touch = group.touch
            found = touch.nearest(group)
            depth = touch.margin - found.distance
            hit = t.less(0.0, depth)
            group.store("hit", hit)
            touching.set(t.either(touching.get(), hit))
            with t.within(f"if (any({t.name(hit)}))"):
                self._constrain(group, found, depth, hit)
        return touching.get()

    def _constrain(self, group: Group, found: Nearest, depth: Number, hit: Expr) -> None:
        """The constants of a contact's constraints."""
        t, m, touch = self.trace, self.model, group.touch
        imp = impedance(t, depth, np.array(touch.solimp))
        stiffness, damping = reference(np.array(touch.solref), np.array(touch.solimp), m.opt_timestep)
        mu = touch.friction
        # The edges of a pyramid have one regularisation, so that it is as stiff as the cone around it.
        scale = 2.0 * mu * mu * (1.0 + mu * mu) / m.opt_impratio if touch.condim > 1 else 1.0
        group.store("weight", t.select(hit, imp / ((1.0 - imp) * (group.number("invweight") * scale)), 0.0))
        group.store_vector("point", found.point)
        tangents = _tangents(t, found.normal, found.axis) if touch.condim > 1 else []
        group.tangents = len(tangents)
        motion = group.motion("cvel", self.kinematics.cvel)
        for a, direction in enumerate([found.normal, *tangents]):
            group.store_vector("normal" if a == 0 else f"tangent{a - 1}_", direction)
            aim = depth * imp * stiffness if a == 0 else 0.0
            group.store(f"offset{a}", dot(direction, motion) * damping - aim)


def _tangents(t: Trace, normal: Array, axis: Array | None) -> list[Array]:
    """Two tangents; the first lies as far along ``axis`` as it may (``mju_makeFrame``)."""
    if axis is None:
        if not all(isinstance(x, float) for x in normal):
            raise ValueError("not supported: friction between bodies.")
        axis = constants([0.0, 1.0, 0.0] if abs(normal[1]) < 0.5 else [0.0, 0.0, 1.0])
    flat = axis - normal * dot(normal, axis)
    moving = [i for i in range(3) if isinstance(flat[i], Expr)]
    if not moving:
        first = constants(flat.astype(float) / np.linalg.norm(flat.astype(float)))
    elif len(moving) == 1 and not any(flat[i] for i in range(3) if i not in moving):
        first = np.eye(3).astype(object)[moving[0]]  # of either sign: edges come in pairs
    else:
        square = dot(flat, flat)
        fine = t.less(1e-30, square)
        scale = 1.0 / t.sqrt(t.max(square, 1e-30))
        other = [1.0, 0.0, 0.0]  # for an axis along the normal
        first = constants_of([t.select(fine, x * scale, o) for x, o in zip(flat, other, strict=True)])
    return [first, cross(normal, first)]


def wrench(point: Array, force: Array) -> Array:
    """The spatial force of a force at a point."""
    return join(cross(point, force), force)
