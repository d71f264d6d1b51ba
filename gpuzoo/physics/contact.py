"""Contacts: which code finds them, and which code their constraints have (``mj_instantiateContact``).

A contact's code lies behind a guard, and is skipped where no env of the pack has that contact. In a model with more
contacts than `UNROLLED`, those that differ in numbers only share the code of a loop; the ones that an env of the pack
has are then listed, and what follows goes over the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from gpuzoo.physics.collision import Touch, touches
from gpuzoo.physics.expressions import Array, Block, Expr, Number, Trace, constants, zeros
from gpuzoo.physics.group import Group
from gpuzoo.physics.kinematics import Kinematics, body_accelerations
from gpuzoo.physics.model import Model
from gpuzoo.physics.spatial import constant_rotation

#: a model with more contacts than these has loops over those that differ in numbers only
UNROLLED = 16
#: bytes of shared memory that contacts may take of each thread of a GPU: an SM has registers for eight warps of threads
#: that have as many as they can, and 228 KB of shared memory, of which rows of observations take up to 6 KB per warp
SHARED = 640


class Contacts:
    """All contacts of a model.

    Attributes:
        touches: the contacts, in the order of their code.
        groups: the same, by the code of their constraints.
        geom_xpos: centres of geoms, from the origin.
        geom_axis: their z axes.
        body_xpos: positions of bodies, from the origin.
        on_stack: whether a loop goes through more than a GPU's shared memory holds.
    """

    def __init__(self, t: Trace, m: Model, k: Kinematics, qvel: list[Number], qacc: list[Number]) -> None:
        self.trace, self.model, self.kinematics, self._qvel, self._qacc = t, m, k, qvel, qacc
        self.body_xpos = [k.xpos[b] if m.body_weldid[b] else k.xpos[b] - k.origin for b in range(m.nbody)]
        bodies = [int(b) for b in m.geom_bodyid]
        self.geom_xpos = [self.body_xpos[b] + k.xmat[b] @ constants(x) for b, x in zip(bodies, m.geom_pos, strict=True)]
        self.geom_axis = [(k.xmat[b] @ constant_rotation(x))[:, 2] for b, x in zip(bodies, m.geom_quat, strict=True)]
        kinds: dict[object, list[Touch]] = {}
        for touch in touches(m):
            kinds.setdefault(touch.key, []).append(touch)
        self.many = sum(map(len, kinds.values())) > UNROLLED
        self.groups = self._grouped([*kinds.values()] if self.many else [[x] for kind in kinds.values() for x in kind])
        self.touches = [touch for group in self.groups for touch in group.members]
        self._arrays: set[str] = set()
        self._bytes = 0
        self.on_stack = False
        self._tables: set[str] = set()
        self._shared: set[tuple[str, Block]] = set()
        self._starts: dict[float, tuple[str, list[Array]]] = {}
        self._place = (t.block, len(t.block.lines))
        self._outside = t.block

    def _grouped(self, parts: list[list[Touch]]) -> list[Group]:
        """Contacts of moving bodies share the code of their constraints, whatever their shapes."""
        together: dict[object, list[list[Touch]]] = {}
        for part in parts:
            condim = part[0].condim
            together.setdefault(condim if self.many and part[0].bodies[0] else id(part), []).append(part)
        groups: list[Group] = []
        for gathered in together.values():
            groups.append(Group(self, sum(len(group.members) for group in groups), gathered, self.many))
        return groups

    # ---- what contacts read ----

    def _declare(self, line: str) -> None:
        block, place = self._place
        block.lines.insert(place, line)

    def table(self, name: str, values: Sequence[object], type_: str = "int") -> str:
        """A table of constants, declared where the contacts' code begins: a value, or a row, for each of something."""
        if name not in self._tables:
            self._tables.add(name)
            rows = [[*x] if isinstance(x, (list, tuple)) else x for x in values]
            width = max((len(x) for x in rows if isinstance(x, list)), default=0)
            words = [_braces(x + [0] * (width - len(x))) if isinstance(x, list) else str(x) for x in rows]
            self._declare(f"static constexpr {type_} {name}[]{f'[{width}]' if width else ''} = {_braces(words)};")
        return name

    def array(self, name: str, type_: str, width: int = 0) -> str:
        """The array of a number, or of some, of all contacts, declared where the contacts' code begins."""
        if name not in self._arrays:
            self._arrays.add(name)
            count = len(self.touches)
            size = count * (1 if type_ == "PackMask" else 4)
            kept = not width and self._bytes + size <= SHARED
            self._bytes += size * kept
            self.on_stack |= self.many and not kept
            place = f"c_{name}[{count}]{f'[{width}]' if width else ''}"
            self._declare(f"GZ_KEPT({type_}, c_{name}, {count});" if kept else f"{type_} {place};")
        return f"c_{name}"

    def shared(self, name: str, arrays: Sequence[Array], index: str) -> Array:
        """What one of ``arrays`` holds: the one of the body, geom, ... that has an index in the code."""
        t, out = self.trace, zeros(*np.shape(arrays[0]))
        for place in np.ndindex(out.shape):
            parts: list[Any] = [x[place] for x in arrays]
            if all(isinstance(x, (int, float)) and x == parts[0] for x in parts):
                out[place] = parts[0]
                continue
            label = "_".join(["b", name, *map(str, place)])
            if (label, self._outside) not in self._shared:
                self._shared.add((label, self._outside))
                with t.inside(self._outside):
                    t.write(f"const Vec {label}[] = {_braces([t.name(x) for x in parts])};")
            out[place] = t.read(f"{label}[{index}]")
        return out

    def start(self, damping: float) -> tuple[str, list[Array]]:
        """Accelerations where the solver starts, less those of a damper: its part of residuals.

        Returns:
            The name of an array of all degrees of freedom, and spatial motions of the bodies.
        """
        if damping not in self._starts:
            name = f"start{len(self._starts)}"
            with self.trace.inside(self._outside):
                motion = [a + damping * v for a, v in zip(self._qacc, self._qvel, strict=True)]
                if any(not group.grounded for group in self.groups):
                    values = _braces(self.trace.name(x) for x in motion)
                    self.trace.write(f"const Vec {name}[] = {values};")
                self._starts[damping] = name, body_accelerations(self.model, self.kinematics.cdof, motion)
        return self._starts[damping]

    # ---- code ----

    @contextmanager
    def _loop(self, head: str | None) -> Iterator[None]:
        """Writes the code of one contact, or of the loop with this head over several."""
        self._outside = self.trace.block
        if head is None:
            yield
            return
        with self.trace.within(f"GZ_ROLLED for (int {head})", loop=True):
            yield

    def each(self) -> Iterator[Group]:
        """Writes the code of every group in turn: in a loop over its list, or behind its guard."""
        for group in self.groups:
            with ExitStack() as stack:
                head = f"i = {group.first}; i < {group.end}; ++i" if group.looped else None
                stack.enter_context(self._loop(head))
                if not group.looped:
                    stack.enter_context(self.trace.within(f"if (any(c_hit[{group.index}]))"))
                yield group

    def detect(self) -> Expr | None:
        """Finds all contacts and their constraints' constants. Returns the mask of envs that have any, or None."""
        t = self.trace
        if not self.groups:
            return None
        touching = t.variable("touching", "PackMask(false)", "PackMask")
        for group in self.groups:
            first = group.first
            if group.looped:
                t.write(f"int {group.end} = {first};")
            else:
                t.write(f"{self.array('hit', 'PackMask')}[{group.index}] = PackMask(false);")
            for part in group.parts:
                last = first + len(part)
                with self._loop(f"j = {first}; j < {last}; ++j" if group.looped else None), ExitStack() as stack:
                    place = Detection(self, part, group.looped, stack)
                    found = part[0].nearest(place)
                    hit = place.touching(found.distance)
                    touching.set(t.either(touching.get(), hit))
                    group.constrain(place, found, hit)
                first = last
        return touching.get()


def _braces(words: Iterable[object]) -> str:
    return f"{{{', '.join(map(str, words))}}}"


class Detection:
    """The `shapes.Place` of touches that share their code, while it is written.

    Attributes:
        depth: how deep they are in contact, once that is known.
    """

    def __init__(self, contacts: Contacts, members: list[Touch], looped: bool, stack: ExitStack) -> None:
        self.trace, self._contacts, self._members = contacts.trace, contacts, members
        self._looped, self._stack = looped, stack
        self._near: Expr | None = None
        self._hit: Expr | None = None
        self.depth: Number = 0.0

    @property
    def touch(self) -> Touch:
        """What all of them have in common, but for the numbers."""
        return self._members[0]

    @property
    def origin(self) -> Array:
        """See `shapes.Place`."""
        return self._contacts.kinematics.origin

    def number(self, name: str) -> Number:
        """See `shapes.Place`."""
        values = [touch.numbers[name] for touch in self._members]
        if len({*values}) == 1:
            return values[0]
        table = [touch.numbers.get(name, 0.0) for touch in self._contacts.touches]
        if any(isinstance(x, Expr) for x in values):
            return self._contacts.shared(name, [np.array([x], object) for x in table], "j")[0]  # type: ignore[no-any-return]
        return self.trace.read(f"num({self._contacts.table(f'table_{name}', table, 'Real')}[j])")

    def vector(self, name: str) -> Array:
        """See `shapes.Place`."""
        return np.array([self.number(f"{name}{i}") for i in range(3)], object)

    def size(self, name: str) -> Number:
        """See `shapes.Place`."""
        return self.number(name) * self._contacts.model.factors.size

    def _of(self, kind: str, side: int, **arrays: Sequence[Array]) -> tuple[Array, ...]:
        """What a geom of the touch, or its body, has in each of the arrays."""
        m = self._contacts.model

        def number(touch: Touch) -> int:
            geom = touch.geoms[side]
            return geom if kind == "geom" else int(m.geom_bodyid[geom])

        if not self._looped:
            return tuple(x[number(self._members[0])] for x in arrays.values())
        index = f"{self._contacts.table(f'{kind}_{side}', [number(x) for x in self._contacts.touches])}[j]"
        return tuple(self._contacts.shared(name, x, index) for name, x in arrays.items())

    def frame(self, side: int) -> tuple[Array, ...]:
        """See `shapes.Place`."""
        return self._of("body", side, xpos=self._contacts.body_xpos, xmat=self._contacts.kinematics.xmat)

    def geom(self, side: int) -> tuple[Array, ...]:
        """See `shapes.Place`."""
        return self._of("geom", side, geom_xpos=self._contacts.geom_xpos, geom_axis=self._contacts.geom_axis)

    def only_where(self, near: Expr) -> None:
        """See `shapes.Place`."""
        self._near = near if self._near is None else self.trace.both(self._near, near)
        self._stack.enter_context(self.trace.within(f"if (any({self.trace.name(near)}))"))

    def touching(self, distance: Number) -> Expr:
        """See `shapes.Place`."""
        if self._hit is None:
            t = self.trace
            # Of an env without the contact nothing is read, but it must be finite.
            depth = self.number("margin") - distance
            hit = t.less(0.0, depth)
            self._hit = hit if self._near is None else t.both(hit, self._near)
            self._stack.enter_context(t.within(f"if (any({t.name(self._hit)}))"))
            self.depth = t.max(depth, 0.0)
        return self._hit
