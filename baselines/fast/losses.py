"""Losses as kernels: one call gives a minibatch's losses and the gradients by what the networks said.

A formula, which `trace` makes of a loss in torch, is that of one row, with numbers that carry their derivatives along.
It makes the loss of the action's log-probability, the entropy, the value, the row's columns and hyper-parameters; of
distributions it knows nothing. The kernel is compiled from one source for CUDA and for the CPU and gives the same bits
on both. Nothing in it waits for the device, so a call can be part of a CUDA graph.

    loss = Loss(Formula(code, ("advantage", ...), ("clip_eps", ...), ("kl", ...), actions), "cpu")
    gradients = loss(out, value, log_std, None, action, columns, weight, hyper)
    torch.autograd.backward([out, value], [gradients.out, gradients.value])
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..train.actions import Actions
from .units import Call, check, compile_unit, device_name, shape_of, unit_code

#: what a formula knows of a row besides its columns
KNOWN = ("log_prob", "entropy", "value")


def _struct(name: str, fields: Sequence[str]) -> str:
    """A struct of floats that is made of ``f(k)`` and gives its fields to ``f(k, field)``."""
    given = ", ".join(f"f({k})" for k in range(len(fields)))
    each = " ".join(f"f({k}, {field});" for k, field in enumerate(fields))
    return (
        f"struct {name} {{ {''.join(f'float {field}; ' for field in fields)}"
        f"template <class F> GZ_MEMBER static {name} of(F f) {{ (void)f; return {{{given}}}; }} "
        f"template <class F> GZ_MEMBER void each(F f) const {{ (void)f; {each} }} }};"
    )


@dataclasses.dataclass(frozen=True)
class Formula:
    """What a `Loss` is compiled from.

    Attributes:
        code: C++ that defines ``loss(Transition, Hyper, Numbers)``; see `trace`.
        columns: names of what is known of a row: members of ``Transition`` beside its ``log_prob``, ``entropy`` and
            ``value``.
        hyper: names of the hyper-parameters: members of ``Hyper``.
        numbers: names of what the formula notes: members of ``Numbers``. What it does not note is 0.
        actions: what the outputs of the network mean.
        masked: whether there are masks of legal choices.

    Raises:
        ValueError: names that cannot be those of members, or masks for a Box.
    """

    code: str
    columns: Sequence[str]
    hyper: Sequence[str]
    numbers: Sequence[str]
    actions: Actions
    masked: bool = False

    def __post_init__(self) -> None:
        for what, taken in (("columns", KNOWN), ("hyper", ()), ("numbers", ("loss",))):
            names = getattr(self, what)
            fit = [n for n in names if n.isascii() and n.isidentifier() and n not in taken]
            if len(set(fit)) < len(names):
                but = f" other than {', '.join(taken)}" if taken else ""
                raise ValueError(f"{what} must be different names{but}, not {tuple(names)}.")
        if not self.columns or not self.hyper:
            raise ValueError("a loss needs at least one column and one hyper-parameter.")
        if self.masked and not self.actions.discrete:
            raise ValueError("only choices can be masked: for a Box, masked must be False.")

    def program(self) -> str:
        """The translation unit."""
        actions = self.actions
        read = [name for name in self.hyper if re.search(rf"\bh\.{name}\b", self.code)] or [*self.hyper[:1]]
        places = "".join(f"k == {k} ? {self.hyper.index(name)} : " for k, name in enumerate(read))
        nvec = actions.nvec
        cases = "".join(f"part == {p} ? {n} : " for p, n in enumerate(nvec[:-1])) if len(set(nvec)) > 1 else ""
        lines = [
            '#line 1 "generated"',
            "namespace gz {",
            _struct("Columns", self.columns),
            _struct("Hyper", read),
            _struct("Numbers", self.numbers),
            f"constexpr int COLUMNS = {len(self.columns)}, HYPERS = {len(read)}, HYPER_TABLE = {len(self.hyper)}, "
            f"NUMBERS = {len(self.numbers) + 1};",
            f"constexpr int OUTPUTS = {actions.outputs}, PARTS = {actions.parts}, WIDTH = {actions.width};",
            f"using Action = {'i32' if nvec else 'float'};",
            f"GZ int hyper_place(int k) {{ return {places}0; }}",
        ]
        if nvec:
            lines.append(f"constexpr int MASK_SIZE = {sum(nvec) if self.masked else 0};")
            lines.append(f"GZ int choices(int part) {{ (void)part; return {cases}{nvec[-1]}; }}")
        distribution = "categorical_loss.cuh" if nvec else "normal_loss.cuh"
        return unit_code(
            "dual.cuh", f'#line 1 "formula"\n{self.code}', "loss.cuh", distribution, constants="\n".join([*lines, "}"])
        )


class Gradients(NamedTuple):
    """Gradients of the members' losses, and what the formula noted. The memory is used again by later calls.

    Attributes:
        out: (members, rows, outputs).
        value: (members, rows).
        log_std: (members, parts); (members, 0) if the actions are choices.
        numbers: (members, rows, 1 + noted): the loss and what the formula notes, in the order of `Loss.numbers`, times
            the row's weight, so that the sum over the rows is the member's mean.
    """

    out: Tensor
    value: Tensor
    log_std: Tensor
    numbers: Tensor


class _Plan(NamedTuple):
    """What is the same in all calls with tensors of the same shapes and strides."""

    items: int
    words: tuple[int, ...]
    gradients: Gradients
    log_std: Tensor  # (members, rows, parts)


class Loss:
    """The loss ``sum(weight * loss(row))`` of each member of a population, differentiated.

    Actions are distributed as `Actions.evaluate` says. A log-probability has the bits that the samplers give. The
    gradients at corners (``min``, ``max``, ``clamp``) are those of torch.

    Args:
        formula: what it is compiled from.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:k"``.

    Attributes:
        numbers: ``"loss"`` and the names of what the formula notes, as they stand in `Gradients.numbers`.

    Raises:
        ValueError: another device.
        RuntimeError, ImportError: it cannot be compiled on this machine; the message says why.
    """

    def __init__(self, formula: Formula, device: str | torch.device) -> None:
        self.device, self.formula = device_name(device), formula
        self.numbers = ("loss", *formula.numbers)
        entries = ("gradients", "gradients_rows") if self.device == "cpu" else ("gradients",)
        self._unit = compile_unit(formula.program(), self.device, *entries)
        self._plans: dict[tuple[object, ...], _Plan] = {}

    def __call__(
        self,
        out: Tensor,
        value: Tensor,
        log_std: Tensor,
        mask: Tensor | None,
        action: Tensor,
        columns: Tensor,
        weight: Tensor,
        hyper: Tensor,
    ) -> Gradients:
        """Losses and gradients of one minibatch.

        Rows of weight 0 do not count: their gradients and numbers are 0, whatever their values, NaN included.

        Args:
            out: float32 (M, B, outputs) of the network.
            value: float32 (M, B).
            log_std: float32 (M, parts); (M, 0) if the actions are choices.
            mask: int8 (M, B, sum(nvec)), nonzero where legal; None if the loss has no masks.
            action: (M, B, parts), int32 for choices, float32 for a Box.
            columns: float32 (M, B, columns), in the order of their names.
            weight: float32 (M, B), divided by their sum if the loss is to be a mean.
            hyper: float32 (M, hyper), contiguous, in the order of their names.

        All but ``hyper`` may have any strides, if their last axis is contiguous: a slice of a shared network's outputs
        will do. So will any strides of ``value`` and ``weight``.

        Returns:
            The gradients, ready for ``torch.autograd.backward``. Their memory is that of the next call with the same
            shapes: use them before.

        Raises:
            TypeError: a wrong dtype.
            ValueError: a wrong shape, device or stride, or a mask where there must be none.
        """
        return self.bind(out, value, log_std, mask, action, columns, weight, hyper)()

    def bind(
        self,
        out: Tensor,
        value: Tensor,
        log_std: Tensor,
        mask: Tensor | None,
        action: Tensor,
        columns: Tensor,
        weight: Tensor,
        hyper: Tensor,
    ) -> Callable[[], Gradients]:
        """Prepares a call for the memory that these tensors have now, which it keeps alive; see `__call__`."""
        inputs = (out, value, log_std, mask, action, columns, weight, hyper)
        plan, words = self._prepared(*inputs)
        return functools.partial(self._launch, self._unit.bind("gradients", words), plan, inputs)

    def bind_rows(self, *inputs: Tensor | None) -> tuple[Call, Callable[[], Gradients]]:
        """`bind` for host code: an entry that does some of the rows, and what is to be called after all of them."""
        plan, words = self._prepared(*inputs)
        return Call(self._unit.bind("gradients_rows", words), inputs), functools.partial(self._finish, plan)

    def _prepared(self, *inputs: Tensor | None) -> tuple[_Plan, list[int]]:
        """A plan for what `bind` takes, and the arguments of its kernel."""
        out, value, log_std, mask, action, columns, weight, hyper = inputs
        inputs = (out, value, weight, columns, hyper, log_std, action, mask)
        key = tuple([None if x is None else (x.shape, x.stride(), x.dtype, x.device) for x in inputs])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(*inputs)  # type: ignore[arg-type]
            # Batches of ever new sizes; not on a GPU, where a graph may write into the memory of a plan.
            if len(self._plans) == 8 and self.device == "cpu":
                self._plans.clear()
            self._plans[key] = plan
        addresses = [0 if x is None else x.data_ptr() for x in inputs]
        return plan, [plan.items, torch.get_num_threads(), *addresses, *plan.words]

    def _launch(self, call: Callable[[int], None], plan: _Plan, kept: object) -> Gradients:
        if plan.items:
            call(0)
        return self._finish(plan)

    def _finish(self, plan: _Plan) -> Gradients:
        if not self.formula.actions.discrete:
            torch.sum(plan.log_std, 1, out=plan.gradients.log_std)
        return plan.gradients

    def _plan(
        self,
        out: Tensor,
        value: Tensor,
        weight: Tensor,
        columns: Tensor,
        hyper: Tensor,
        log_std: Tensor,
        action: Tensor,
        mask: Tensor | None,
    ) -> _Plan:
        actions, device, real = self.formula.actions, self.device, torch.float32
        M, B, _ = shape_of("out", out, f"members, rows, {actions.outputs}")
        scales = 0 if actions.discrete else actions.parts
        check("out", out, real, (M, B, actions.outputs), device, strided=2)
        check("value", value, real, (M, B), device, strided=2)
        check("weight", weight, real, (M, B), device, strided=2)
        check("columns", columns, real, (M, B, len(self.formula.columns)), device, strided=2)
        check("hyper", hyper, real, (M, len(self.formula.hyper)), device)
        check("log_std", log_std, real, (M, scales), device, strided=1)
        check("action", action, torch.int32 if actions.discrete else real, (M, B, actions.parts), device, strided=2)
        masked = self.formula.masked
        if masked is (mask is None):
            raise ValueError(f"this loss was made with masked={masked}: mask must {'not ' * masked}be None.")
        if mask is not None:
            check("mask", mask, torch.int8, (M, B, sum(actions.nvec)), device, strided=2)
        strides = [s for x in (out, value, weight, columns, action) for s in x.stride()[:2]]
        strides += (0, 0) if mask is None else mask.stride()[:2]
        new = [torch.empty(*shape, device=device) for shape in (
            (M, B, actions.outputs), (M, B), (M, scales), (M, B, len(self.numbers)), (M, B, scales)
        )]  # fmt: skip
        gradients, rows = Gradients(*new[:4]), new[4]
        words = [x.data_ptr() for x in (gradients.out, gradients.value, rows, gradients.numbers)]
        return _Plan(M * B, (B, *strides, log_std.stride(0), *words), gradients, rows)
