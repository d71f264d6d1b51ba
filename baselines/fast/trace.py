"""A loss that is written in torch, as the C++ formula of a kernel.

`trace` calls the Python function once, with symbols in place of tensors, and prints the operations that it sees. So the
loss stands in one place, where people read it, and a loss of anybody's own is fused by itself. It serves functions of
one row: arithmetic, comparisons, and the functions of `FUNCTIONS`. Anything else, such as a mean over the rows, makes
`trace` return None, and the loss is differentiated by autograd.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from .losses import KNOWN

#: functions of one number that `kernels/dual.cuh` differentiates
FUNCTIONS = ("abs", "exp", "log", "relu", "sigmoid", "sqrt", "square", "tanh")
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "truediv": "/", "true_divide": "/"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
LOGIC = {"and": "&&", "or": "||", "logical_and": "&&", "logical_or": "||"}
CHOICES = {"minimum": "min", "min": "min", "maximum": "max", "max": "max"}


class Traced(NamedTuple):
    """A loss as a formula.

    Attributes:
        code: C++ that defines ``loss(Transition, Hyper, Numbers)``.
        numbers: names of what the loss notes.
        constants: attributes of ``self`` that the loss read, by their path, with the values that are part of the code.
    """

    code: str
    numbers: tuple[str, ...]
    constants: Mapping[str, Any]


def trace(loss: Callable[..., Any], columns: Sequence[str], hyper: Sequence[str]) -> Traced | None:
    """The formula of a loss, or None if it has no such form.

    Args:
        loss: a function or bound method: ``loss(row, hyper)`` returns the loss of a row and a dictionary of numbers
            to log.
        columns: names of what is known of a row besides ``log_prob``, ``entropy`` and ``value``.
        hyper: names of the hyper-parameters.
    """
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    symbols: dict[fx.Node, _Value] = {}

    def symbol(name: str, value: _Value) -> fx.Proxy:
        node = graph.placeholder(name)
        symbols[node] = value
        return fx.Proxy(node, tracer)

    row = types.SimpleNamespace(**{x: symbol(f"row_{x}", _Value("t." + x, "Dual")) for x in KNOWN})
    vars(row).update({x: symbol(f"row_{x}", _Value("t." + x, "float")) for x in columns})
    rates = types.SimpleNamespace(**{x: symbol(f"hyper_{x}", _Value("h." + x, "float")) for x in hyper})
    read: dict[str, Any] = {}
    try:
        result, numbers = _watched(loss, read)(row, rates)
        return Traced(_code(graph, symbols, result, numbers), tuple(numbers), read)
    except Exception:  # whatever the function did with a symbol: autograd either does it, or says what is wrong
        return None


def unchanged(traced: Traced, loss: Callable[..., Any]) -> bool:
    """Whether what the loss read of its object when it was traced is still what it was."""
    owner = getattr(loss, "__self__", None)
    return all(_getter(path)(owner) == value for path, value in traced.constants.items())


_getter = functools.cache(operator.attrgetter)  # asked at each minibatch


# ---- what a loss reads ----


class _Watch:
    """An object whose numbers are noted as they are read, since they become a part of the code."""

    def __init__(self, watched: object, read: dict[str, Any], path: str = "") -> None:
        object.__setattr__(self, "inside", (watched, read, path))

    def __getattribute__(self, name: str) -> Any:
        watched, read, path = object.__getattribute__(self, "inside")
        if name == "__class__":  # `super()` asks for it
            return type(watched)
        value = getattr(watched, name)
        if isinstance(value, types.MethodType) and value.__self__ is watched:
            return types.MethodType(value.__func__, self)
        if isinstance(value, types.FunctionType):
            return value
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _Watch(value, read, f"{path}{name}.")
        if not isinstance(value, bool | int | float | str | None):
            raise TypeError(f"{path}{name} is no constant")
        read[f"{path}{name}"] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("a loss that changes its object cannot be traced")


def _watched(loss: Callable[..., Any], read: dict[str, Any]) -> Callable[..., Any]:
    if isinstance(loss, types.MethodType):
        return types.MethodType(loss.__func__, _Watch(loss.__self__, read))
    return loss


# ---- printing ----


class _Value(NamedTuple):
    """An expression of C++, and its type there: ``Dual``, ``float`` or ``bool``."""

    text: str
    kind: str

    def number(self) -> _Value:
        """As torch has it in arithmetic, where true is 1."""
        return _Value(f"({self.text} ? 1.f : 0.f)", "float") if self.kind == "bool" else self

    def dual(self) -> str:
        return self.text if self.kind == "Dual" else f"constant({self.number().text})"

    def plain(self) -> str:
        """Without derivatives."""
        return f"{self.text}.x" if self.kind == "Dual" else self.number().text


def _constant(x: object) -> _Value:
    if isinstance(x, bool):
        return _Value(str(x).lower(), "bool")
    if isinstance(x, int | float) and abs(x) <= torch.finfo(torch.float32).max:
        return _Value(f"{float(x)!r}f", "float")
    raise TypeError(f"{x!r} is no number")


def _code(graph: fx.Graph, symbols: dict[fx.Node, _Value], result: Any, numbers: Mapping[str, Any]) -> str:
    def value(x: Any) -> _Value:
        x = x.node if isinstance(x, fx.Proxy) else x
        return symbols[x] if isinstance(x, fx.Node) else _constant(x)

    lines: list[str] = []
    for node in graph.nodes:
        if node in symbols:
            continue
        options = {k: value(x) for k, x in node.kwargs.items() if (k, x) != ("inplace", False)}
        found = _operation(node, [value(x) for x in node.args], options)
        name = f"v{len(lines)}"
        lines.append(f"  const {found.kind} {name} = {found.text};")
        symbols[node] = _Value(name, found.kind)
    lines += [f"  n.{name} = {value(x).plain()};" for name, x in numbers.items()]
    inside = "\n".join([*lines, f"  return {value(result).dual()};"])
    return (
        "namespace gz {\n"
        "GZ Dual loss(const Transition &t, const Hyper &h, Numbers &n) {\n"
        f"  (void)t, (void)h, (void)n;\n{inside}\n}}\n"
        "}  // namespace gz\n"
    )


def _operation(node: fx.Node, args: list[_Value], options: dict[str, _Value]) -> _Value:
    """What an operation of torch, a method of a tensor, or an operator is in C++.

    Raises:
        NotImplementedError: there is no such thing; `trace` then leaves the loss to autograd.
    """
    target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    raw = node.args
    name, count = target.rstrip("_") if target.endswith("_") and node.op == "call_function" else target, len(args)
    if node.op not in ("call_function", "call_method"):
        raise NotImplementedError(name)
    if name in ("clamp", "clip"):
        low, high = [*args[1:], *[None] * (3 - count)] if count <= 3 else (None, None)
        return _clamped(args[0], options.get("min", low), options.get("max", high))
    if options:
        raise NotImplementedError(f"{name} with {', '.join(options)}")
    kind = "Dual" if any(x.kind == "Dual" for x in args) else "float"
    texts = [x.number().text for x in args]
    if name in ARITHMETIC and count == 2:
        return _Value(f"{texts[0]} {ARITHMETIC[name]} {texts[1]}", kind)
    if name in COMPARISONS and count == 2:
        return _Value(f"{args[0].plain()} {COMPARISONS[name]} {args[1].plain()}", "bool")
    if name in LOGIC and count == 2 and all(x.kind == "bool" for x in args):
        return _Value(f"{args[0].text} {LOGIC[name]} {args[1].text}", "bool")
    if name in ("invert", "logical_not") and count == 1 and args[0].kind == "bool":
        return _Value(f"!{args[0].text}", "bool")
    if name in CHOICES and count == 2 and isinstance(raw[1], fx.Node):  # not an axis
        return _Value(f"{CHOICES[name]}({args[0].dual()}, {args[1].dual()})", "Dual")
    if name == "where" and count == 3:
        if node.op == "call_method":  # x.where(condition, other)
            args = [args[1], args[0], args[2]]
        if args[0].kind == "bool":
            return _Value(f"{args[0].text} ? {args[1].dual()} : {args[2].dual()}", "Dual")
    if name == "pow" and count == 2 and isinstance(raw[1], int) and not isinstance(raw[1], bool) and 1 <= raw[1] <= 8:
        return _Value(" * ".join([texts[0]] * raw[1]), kind)
    if name in ("neg", "negative") and count == 1:
        return _Value(f"-{texts[0]}", kind)
    if name in FUNCTIONS and count == 1:
        return _Value(f"{name}({texts[0]})", kind)
    if name == "detach" and count == 1:
        return _Value(args[0].plain(), "float")
    if name == "float" and count == 1:
        return args[0].number()
    raise NotImplementedError(name)


def _clamped(x: _Value, low: _Value | None, high: _Value | None) -> _Value:
    if "Dual" in {bound.kind for bound in (low, high) if bound is not None}:
        raise NotImplementedError("a bound that has a gradient")
    texts = [fallback if bound is None else bound.number().text
             for bound, fallback in ((low, "-infinity()"), (high, "infinity()"))]  # fmt: skip
    return _Value(f"clamp({x.number().text}, {texts[0]}, {texts[1]})", "Dual" if x.kind == "Dual" else "float")
