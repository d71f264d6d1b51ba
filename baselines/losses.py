"""Losses as kernels: one call gives a minibatch's losses and the gradients by what the networks said.

A formula, such as ``kernels/ppo.cuh``, is written for one row, with numbers that carry their derivatives along. It
makes the loss of the action's log-probability, the entropy, the value, the row's columns and hyper-parameters; of
distributions it knows nothing. The kernel is compiled from one source for CUDA and for the CPU and gives the same bits
on both. Nothing in it waits for the device, so a call can be part of a CUDA graph.

    loss = Loss("ppo.cuh", ("advantage", ...), ("clip_eps", ...), ("kl", ...), actions, False, "cpu", clip_values=False)
    slopes = loss(out, value, log_std, None, action, columns, weight, hyper)
    torch.autograd.backward([out, value], [slopes.out, slopes.value])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from baselines.actions import Actions
from baselines.kernels import _check, _device, _shape, _unit, unit_code

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


def loss_code(
    formula: str,
    columns: Sequence[str],
    hyper: Sequence[str],
    numbers: Sequence[str],
    actions: Actions,
    masked: bool,
    **constants: bool | int,
) -> str:
    """The program of a `Loss`, which says what the arguments are."""
    nvec = actions.nvec
    cases = "".join(f"part == {p} ? {n} : " for p, n in enumerate(nvec[:-1])) if len(set(nvec)) > 1 else ""
    lines = [
        '#line 1 "generated"',
        "namespace gz {",
        _struct("Columns", columns),
        _struct("Hyper", hyper),
        _struct("Numbers", numbers),
        f"constexpr int COLUMNS = {len(columns)}, HYPERS = {len(hyper)}, NUMBERS = {len(numbers) + 1};",
        f"constexpr int OUTPUTS = {actions.outputs}, PARTS = {actions.parts}, WIDTH = {actions.width};",
        f"using Action = {'i32' if nvec else 'float'};",
        *(f"constexpr int {name.upper()} = {int(value)};" for name, value in constants.items()),
    ]
    if nvec:
        lines.append(f"constexpr int MASK_SIZE = {sum(nvec) if masked else 0};")
        lines.append(f"GZ int choices(int part) {{ (void)part; return {cases}{nvec[-1]}; }}")
    distribution = "categorical_loss.cuh" if nvec else "normal_loss.cuh"
    return unit_code("dual.cuh", formula, "loss.cuh", distribution, constants="\n".join([*lines, "}"]))


class Slopes(NamedTuple):
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
    slopes: Slopes
    log_std: Tensor  # (members, rows, parts)


class Loss:
    """The loss ``sum(weight * loss(row))`` of each member of a population, differentiated.

    Actions are distributed as `Actions.evaluate` says, but for a component without a legal choice: its action cannot
    matter, and its log-probability and entropy are 0, as for `CategoricalSampler`. A log-probability has the bits that
    the samplers give. The slopes at corners (``min``, ``max``, ``clamp``) are those of torch.

    Args:
        formula: a file in ``kernels``, or the path of another one, that defines ``loss(Transition, Hyper, Numbers)``.
        columns: names of what is known of a row: members of ``Transition`` beside its ``log_prob``, ``entropy`` and
            ``value``.
        hyper: names of the hyper-parameters: members of ``Hyper``.
        numbers: names of what the formula notes: members of ``Numbers``. What it does not note is 0.
        actions: what the outputs of the network mean.
        masked: whether there are masks of legal choices.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:k"``.
        **constants: what the formula is compiled for, under their names in capitals.

    Attributes:
        numbers: ``"loss"`` and the names of what the formula notes, as they stand in `Slopes.numbers`.

    Raises:
        ValueError: names that cannot be those of members, masks for a Box, or another device.
        RuntimeError, ImportError: it cannot be compiled on this machine; the message says why.
    """

    def __init__(
        self,
        formula: str,
        columns: Sequence[str],
        hyper: Sequence[str],
        numbers: Sequence[str],
        actions: Actions,
        masked: bool,
        device: str | torch.device,
        **constants: bool | int,
    ) -> None:
        for what, names, taken in (("columns", columns, KNOWN), ("hyper", hyper, ()), ("numbers", numbers, ("loss",))):
            fit = [n for n in names if n.isascii() and n.isidentifier() and n not in taken]
            if len(set(fit)) < len(names):
                but = f" other than {', '.join(taken)}" if taken else ""
                raise ValueError(f"{what} must be different names{but}, not {tuple(names)}.")
        if not columns or not hyper:
            raise ValueError("a loss needs at least one column and one hyper-parameter.")
        if masked and not actions.discrete:
            raise ValueError("only choices can be masked: for a Box, masked must be False.")
        self.device, self.actions, self.masked = _device(device), actions, masked
        self.columns, self.hyper, self.numbers = tuple(columns), tuple(hyper), ("loss", *numbers)
        code = loss_code(formula, columns, hyper, numbers, actions, masked, **constants)
        self._unit = _unit(code, self.device, "slopes")
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
    ) -> Slopes:
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
        inputs = (out, value, weight, columns, hyper, log_std, action, mask)
        key = tuple([None if x is None else (x.shape, x.stride(), x.dtype, x.device) for x in inputs])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(*inputs)
            # Batches of ever new sizes; not on a GPU, where a graph may write into the memory of a plan.
            if len(self._plans) == 8 and self.device == "cpu":
                self._plans.clear()
            self._plans[key] = plan
        if plan.items:
            addresses = [0 if x is None else x.data_ptr() for x in inputs]
            self._unit.bind("slopes", [plan.items, torch.get_num_threads(), *addresses, *plan.words])(0)
        if not self.actions.discrete:
            torch.sum(plan.log_std, 1, out=plan.slopes.log_std)
        return plan.slopes

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
        actions, device, real = self.actions, self.device, torch.float32
        M, B, _ = _shape("out", out, f"members, rows, {actions.outputs}")
        scales = 0 if actions.discrete else actions.parts
        _check("out", out, real, (M, B, actions.outputs), device, strided=2)
        _check("value", value, real, (M, B), device, strided=2)
        _check("weight", weight, real, (M, B), device, strided=2)
        _check("columns", columns, real, (M, B, len(self.columns)), device, strided=2)
        _check("hyper", hyper, real, (M, len(self.hyper)), device)
        _check("log_std", log_std, real, (M, scales), device, strided=1)
        _check("action", action, torch.int32 if actions.discrete else real, (M, B, actions.parts), device, strided=2)
        if self.masked is (mask is None):
            raise ValueError(f"this loss was made with masked={self.masked}: mask must {'not ' * self.masked}be None.")
        if mask is not None:
            _check("mask", mask, torch.int8, (M, B, sum(actions.nvec)), device, strided=2)
        strides = [s for x in (out, value, weight, columns, action) for s in x.stride()[:2]]
        strides += (0, 0) if mask is None else mask.stride()[:2]
        new = [torch.empty(*shape, device=device) for shape in (
            (M, B, actions.outputs), (M, B), (M, scales), (M, B, len(self.numbers)), (M, B, scales)
        )]  # fmt: skip
        slopes, rows = Slopes(*new[:4]), new[4]
        words = [x.data_ptr() for x in (slopes.out, slopes.value, rows, slopes.numbers)]
        return _Plan(M * B, (B, *strides, log_std.stride(0), *words), slopes, rows)
