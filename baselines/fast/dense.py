"""Dense layers on a GPU: what `layers.mlp` does, in fewer passes over memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

IN_PLACE = {"tanh": torch.tanh_, "relu": torch.relu_}
#: gradients of what comes before an activation, from those of what comes behind it and from its values
BACKWARD: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "tanh": torch.ops.aten.tanh_backward,
    "relu": lambda gradient, y: torch.ops.aten.threshold_backward(gradient, y, 0),
}
PART = 256  #: rows of which a sum is one number; many sums at a time are faster than a long one


def product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``x @ weight + bias``; cuBLAS adds the bias to a matrix, but not to a batch of them."""
    if len(x) == 1:
        return torch.addmm(bias[0, 0], x[0], weight[0])[None]
    return torch.baddbmm(bias, x, weight)


def sum_of_rows(x: Tensor) -> Tensor:
    """(members, rows, n) -> (members, 1, n)."""
    if x.shape[1] % PART == 0:
        x = x.unflatten(1, (-1, PART)).sum(2)
    return x.sum(1, keepdim=True)


class _Dense(torch.autograd.Function):
    """A layer and its activation, which needs no memory beside its result."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")  # type: ignore[untyped-decorator]
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
        y = product(x, weight, bias)
        if activation:
            y = IN_PLACE[activation](y)
        ctx.activation = activation
        ctx.save_for_backward(x, weight, *([y] if activation else []))
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, *y = ctx.saved_tensors
        if y:
            gradient = BACKWARD[ctx.activation](gradient, y[0])
        of_x = torch.bmm(gradient, weight.mT) if ctx.needs_input_grad[0] else None
        return of_x, torch.bmm(x.mT, gradient), sum_of_rows(gradient), None


def mlp(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    activation: str = "tanh",
    activate_last: bool = False,
) -> Tensor:
    """As `baselines.train.layers.mlp`."""
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        last = k + 1 == len(weights)
        x = _Dense.apply(x, weight, bias, "" if last and not activate_last else activation)  # type: ignore[no-untyped-call]
    return x
