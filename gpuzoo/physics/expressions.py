"""Python arithmetic becomes straight-line code: constants are folded, zeros pruned, equal expressions shared.

A number is a Python float, known when the code is generated, or an `Expr`, known when it runs. Both mix in NumPy arrays
of objects, with ``+ - * / @``. A sum with a product is one ``fma``.

A block is a scope of the generated code: its body, a loop or a guarded part. An expression belongs to the block in
which it was made, or to the one around a loop where nothing in it changes from round to round. It is written when
somebody needs its name, so what nobody needs costs nothing.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "both": "&", "either": "|", "differ": "^"}
_COMMUTATIVE = {"+", "*", "both", "either", "differ"}

#: smallest constant that is not rounding
TINY = 1e-12


class Block:
    """A scope of the generated code.

    Attributes:
        parent: the block around it.
        loop: whether it runs several times.
        lines: its statements.
        known: its expressions, by operation and operands.
    """

    def __init__(self, parent: Block | None, loop: bool) -> None:
        self.parent, self.loop = parent, loop
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.lines: list[str] = []
        self.known: dict[tuple[Any, ...], Expr] = {}


class Expr:
    """A value of the running code: an operation and its operands.

    Attributes:
        operation: its name; ``read`` for a value from elsewhere.
        operands: floats and expressions.
        block: where it is computed.
        type: ``Vec`` or ``PackMask``.
        name: its name in the code, once it is written there.
    """

    __slots__ = ("block", "name", "number", "operands", "operation", "trace", "type")

    def __init__(self, trace: Trace, operation: str, operands: Sequence[Number], block: Block, type_: str) -> None:
        self.trace, self.operation, self.operands, self.block, self.type = trace, operation, operands, block, type_
        self.name: str | None = None
        self.number: int = trace.count()

    def __add__(self, other: Number) -> Number:
        return self.trace.add(self, other)

    def __radd__(self, other: Number) -> Number:
        return self.trace.add(other, self)

    def __sub__(self, other: Number) -> Number:
        return self.trace.subtract(self, other)

    def __rsub__(self, other: Number) -> Number:
        return self.trace.subtract(other, self)

    def __mul__(self, other: Number) -> Number:
        return self.trace.multiply(self, other)

    def __rmul__(self, other: Number) -> Number:
        return self.trace.multiply(other, self)

    def __truediv__(self, other: Number) -> Number:
        return self.trace.divide(self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return self.trace.divide(other, self)

    def __neg__(self) -> Number:
        return self.trace.negate(self)


Number: TypeAlias = "float | Expr"
#: an array of numbers
Array: TypeAlias = NDArray[Any]


def _is(x: Number, operation: str) -> bool:
    return isinstance(x, Expr) and x.operation == operation


class Trace:
    """What has been written so far, and the block that is being written."""

    def __init__(self) -> None:
        self._count = 0
        self.block = Block(None, False)

    def count(self) -> int:
        """A number of its own for each expression."""
        self._count += 1
        return self._count

    # ---- operations ----

    def apply(self, operation: str, *operands: Number, type_: str = "Vec") -> Expr:
        """An expression, or the equal one that is there already."""
        if operation in _COMMUTATIVE:
            operands = tuple(sorted(operands, key=lambda x: (x.number, 0.0) if isinstance(x, Expr) else (-1, x)))
        key = (operation, *(("#", x.number) if isinstance(x, Expr) else float(x) for x in operands))
        block: Block | None = self.block
        while block is not None:
            if key in block.known:
                return block.known[key]
            block = block.parent
        home = self.block
        inner = max((x.block.depth for x in operands if isinstance(x, Expr)), default=0)
        while home.loop and home.parent is not None and inner < home.depth:
            home = home.parent
        found = Expr(self, operation, operands, home, type_)
        home.known[key] = found
        return found

    def add(self, a: Number, b: Number) -> Number:
        """``a + b``."""
        if isinstance(a, (int, float)):
            a, b = b, a
        if isinstance(b, (int, float)):
            if isinstance(a, (int, float)):
                return float(a + b)
            if b == 0.0:
                return a
        if _is(a, "neg"):
            return self.subtract(b, a.operands[0])  # type: ignore[union-attr]
        if _is(b, "neg"):
            return self.subtract(a, b.operands[0])  # type: ignore[union-attr]
        if isinstance(b, Expr) and isinstance(a, Expr) and a.number > b.number:
            a, b = b, a
        if _is(b, "*"):
            return self.apply("fma", *b.operands, a)  # type: ignore[union-attr]
        if _is(a, "*"):
            return self.apply("fma", *a.operands, b)  # type: ignore[union-attr]
        return self.apply("+", a, b)

    def subtract(self, a: Number, b: Number) -> Number:
        """``a - b``."""
        if isinstance(b, (int, float)):
            return self.add(a, -float(b))
        if isinstance(a, (int, float)) and a == 0.0:
            return self.negate(b)
        if a is b:
            return 0.0
        if _is(b, "neg"):
            return self.add(a, b.operands[0])
        if _is(a, "neg"):
            return self.negate(self.add(a.operands[0], b))  # type: ignore[union-attr]
        if _is(b, "*"):
            return self.apply("fnma", *b.operands, a)
        if _is(a, "*"):
            return self.apply("fms", *a.operands, b)  # type: ignore[union-attr]
        return self.apply("-", a, b)

    def multiply(self, a: Number, b: Number) -> Number:
        """``a * b``. Zero times anything is zero."""
        if isinstance(b, (int, float)):
            a, b = b, a
        if isinstance(a, (int, float)):
            a = float(a)
            if isinstance(b, (int, float)):
                return a * float(b)
            if a in (0.0, 1.0, -1.0):
                return 0.0 if a == 0.0 else b if a == 1.0 else self.negate(b)
            if b.operation == "neg":
                return self.multiply(-a, b.operands[0])
            if b.operation == "*" and isinstance(b.operands[0], float):
                return self.multiply(a * b.operands[0], b.operands[1])
        if _is(a, "neg"):
            return self.negate(self.multiply(a.operands[0], b))  # type: ignore[union-attr]
        if isinstance(b, Expr) and b.operation == "neg":
            return self.negate(self.multiply(a, b.operands[0]))
        return self.apply("*", a, b)

    def divide(self, a: Number, b: Number) -> Number:
        """``a / b``; by a constant it is a product with the reciprocal."""
        if isinstance(b, (int, float)):
            return self.multiply(a, 1.0 / b)
        if isinstance(a, (int, float)) and a == 0.0:
            return 0.0
        return self.apply("/", a, b)

    def negate(self, a: Number) -> Number:
        """``-a``."""
        if isinstance(a, (int, float)):
            return -float(a)
        if a.operation == "neg":
            return a.operands[0]
        if a.operation == "*" and isinstance(a.operands[0], float):
            return self.multiply(-a.operands[0], a.operands[1])
        return self.apply("neg", a)

    def sqrt(self, a: Number) -> Number:
        """Square root."""
        return self.apply("sqrt", a) if isinstance(a, Expr) else math.sqrt(a)

    def abs(self, a: Number) -> Number:
        """Absolute value."""
        return self.apply("abs", a) if isinstance(a, Expr) else abs(a)

    def min(self, a: Number, b: Number) -> Number:
        """The smaller one."""
        return self.apply("min", a, b) if isinstance(a, Expr) or isinstance(b, Expr) else min(a, b)

    def max(self, a: Number, b: Number) -> Number:
        """The larger one."""
        return self.apply("max", a, b) if isinstance(a, Expr) or isinstance(b, Expr) else max(a, b)

    def clamp(self, a: Number, low: float, high: float) -> Number:
        """``a``, but not below ``low`` or above ``high``."""
        return self.max(self.min(a, high), low)

    def select(self, mask: Expr, a: Number, b: Number) -> Number:
        """``a`` where the mask holds, else ``b``."""
        return a if a is b or (isinstance(a, float) and a == b) else self.apply("select", mask, a, b)

    def sincos(self, a: Number) -> tuple[Number, Number]:
        """Sine and cosine."""
        if isinstance(a, (int, float)):
            return math.sin(a), math.cos(a)
        sine, cosine = self._named(self.block), self._named(self.block)
        self.write(f"Vec {sine.name}, {cosine.name}; sincos({self.name(a)}, {sine.name}, {cosine.name});")
        return sine, cosine

    def less(self, a: Number, b: Number) -> Expr:
        """The mask ``a < b``."""
        return self.apply("less", a, b, type_="PackMask")

    def both(self, a: Expr, b: Expr) -> Expr:
        """The mask ``a & b``."""
        return self.apply("both", a, b, type_="PackMask")

    def either(self, a: Expr, b: Expr) -> Expr:
        """The mask ``a | b``."""
        return self.apply("either", a, b, type_="PackMask")

    def invert(self, a: Expr) -> Expr:
        """The mask ``!a``."""
        return self.apply("not", a, type_="PackMask")

    def differ(self, a: Expr, b: Expr) -> Expr:
        """The mask of where only one of two masks holds."""
        return self.apply("differ", a, b, type_="PackMask")

    # ---- statements ----

    def write(self, line: str) -> None:
        """Adds a statement."""
        self.block.lines.append(line)

    def _named(self, block: Block, type_: str = "Vec") -> Expr:
        out = Expr(self, "read", (), block, type_)
        out.name = f"t{out.number}"
        return out

    def read(self, place: str, type_: str = "Vec") -> Expr:
        """The value that a place has now."""
        out = self._named(self.block, type_)
        self.write(f"const {type_} {out.name} = {place};")
        return out

    def name(self, x: Number) -> str:
        """What the code calls a number. What it is computed from is written first, if it was not before."""
        if not isinstance(x, Expr):
            return f"num({float(x)!r})"
        pending = [x]  # no recursion: long sums are deep
        while pending:
            top = pending[-1]
            missing = [y for y in top.operands if isinstance(y, Expr) and y.name is None]
            if top.name is not None or not missing:
                pending.pop()
                if top.name is None:
                    self._compute(top)
            else:
                pending += reversed(missing)
        assert x.name is not None
        return x.name

    def _compute(self, x: Expr) -> None:
        words = [y.name if isinstance(y, Expr) else f"num({float(y)!r})" for y in x.operands]
        if x.operation in _INFIX:
            text = f"{words[0]} {_INFIX[x.operation]} {words[1]}"
        elif x.operation in ("neg", "not"):
            text = f"{'-' if x.operation == 'neg' else '!'}{words[0]}"
        elif x.operation == "fnma":
            text = f"fma(-{words[0]}, {words[1]}, {words[2]})"
        elif x.operation == "fms":
            text = f"fma({words[0]}, {words[1]}, -{words[2]})"
        else:
            text = f"{x.operation}({', '.join(str(word) for word in words)})"
        x.name = f"t{x.number}"
        x.block.lines.append(f"const {x.type} {x.name} = {text};")

    @contextmanager
    def within(self, head: str, loop: bool = False) -> Iterator[Block]:
        """Writes a block with a head, such as ``if (any(hit))``."""
        block = self.block = Block(self.block, loop)
        yield block
        assert block.parent is not None
        self.block = block.parent
        self.block.lines += [f"{head} {{", *(f"  {line}" for line in block.lines), "}"]

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Writes at the end of a block around this one for a while."""
        here, self.block = self.block, block
        yield
        self.block = here

    def variable(self, name: str, start: Number | str, type_: str = "Vec") -> Variable:
        """Declares a variable."""
        self.write(f"{type_} {name} = {start if isinstance(start, str) else self.name(start)};")
        return Variable(self, name, type_)


class Variable:
    """A name that the code assigns to: what loops and guarded blocks hand on."""

    def __init__(self, trace: Trace, name: str, type_: str = "Vec") -> None:
        self.trace, self.name, self.type = trace, name, type_

    def get(self) -> Expr:
        """Its value at this place."""
        return self.trace.read(self.name, self.type)

    def set(self, x: Number) -> None:
        """Assigns."""
        self.trace.write(f"{self.name} = {self.trace.name(x)};")

    def add(self, x: Number) -> None:
        """Adds to it."""
        if isinstance(x, Expr) or x != 0.0:
            self.set(self.get() + x)


def constants(x: Any) -> Array:
    """An array of floats as one of numbers; rounding of the model's compiler counts as zero."""
    found = np.asarray(x, float)
    return np.where(abs(found) < TINY, 0.0, found).astype(object)


def zeros(*shape: int) -> Array:
    """An array of zeros."""
    return np.zeros(shape).astype(object)


def added(numbers: Iterable[Any]) -> Any:
    """Their sum, one number after the other.

    Since Python 3.12 its own `sum` rounds floats otherwise, and a robot's rules must be the same in all versions.
    """
    return functools.reduce(operator.add, numbers, 0.0)


def across(columns: Mapping[int, Number], x: Sequence[Number]) -> Number:
    """A row of a Jacobian, by degrees of freedom, times what ``x`` has of each."""
    out: Number = added(entry * x[d] for d, entry in columns.items())
    return out


def dot(a: Sequence[Number] | Array, b: Sequence[Number] | Array) -> Number:
    """Inner product."""
    out: Number = 0.0
    for x, y in zip(a, b, strict=True):
        out = out + x * y
    return out
