"""Multi-layer perceptrons in one call: on a CPU several times as fast as layer by layer, both ways.

A block of rows passes through all layers, and its gradient back, while it is in the cache. `mlp` takes the tensors of
the layers; `Towers` are several networks of one input whose parameters lie in one tensor, and prepares calls.
``cpu/networks.cpp`` is compiled at the first call. What `available` refuses (a GPU's tensors, other dtypes, autocast,
wide layers) goes through plain torch instead, with the same results up to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..train.layers import ACTIVATIONS
from ..train.layers import mlp as plain_mlp
from .fused_calls import (
    MAX_LAYERS,
    MAX_WIDTH,
    Shape,
    backward,
    bind_backward,
    bind_forward,
    bind_whole,
    forward,
    library,
    pack,
    shape_words,
    sizes_of,
    tower_words,
)
from .units import Call, Words


def _check_activation(activation: str) -> None:
    if activation not in ACTIVATIONS:
        raise ValueError(f"there is no activation {activation!r}; choose one of {', '.join(ACTIVATIONS)}.")


# ------------------------------------------------------------------------------------------------- layer by layer


def load() -> None:
    """Compiles ``cpu/networks.cpp`` now, if it has not been, and not at the first call."""
    library()


def available(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> bool:
    """Whether the fused form serves these tensors; otherwise `mlp` goes through plain torch.

    It serves float32 on the CPU outside of autocast, 1 to 4 layers of 1 to 512 units, and weights and biases that are
    contiguous within a member.

    Raises:
        ValueError: shapes that do not fit.
    """
    return _scan(x, weights, biases)[1]


def _scan(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> tuple[Shape, bool, bool]:
    """The network's shape, whether the fused form serves it, and whether anything requires a gradient.

    One loop for all three: at small batches this is what a call costs.
    """
    if x.dim() != 3:
        raise ValueError(f"x must be (members, rows, inputs), not {tuple(x.shape)}.")
    if not weights or len(weights) != len(biases):
        raise ValueError(
            f"mlp takes at least one layer, and one bias per weight, not {len(weights)} and {len(biases)}."
        )
    members, _, n = x.shape
    shape = [n]
    served = len(weights) <= MAX_LAYERS and _serves(x) and not torch.is_autocast_enabled("cpu")
    grad = x.requires_grad
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        m = weight.shape[-1]
        if weight.shape != (members, n, m):
            raise ValueError(f"weights[{k}] must be ({members}, {n}, units), not {tuple(weight.shape)}.")
        if bias.shape != (members, 1, m):
            raise ValueError(f"biases[{k}] must be ({members}, 1, {m}), not {tuple(bias.shape)}.")
        served = served and _serves(weight) and _serves(bias)
        served = served and weight.stride()[1:] == (m, 1) and bias.stride()[2] == 1
        grad = grad or weight.requires_grad or bias.requires_grad
        shape.append(m)
        n = m
    return tuple(shape), served and min(shape) > 0 and max(shape) <= MAX_WIDTH, grad


def _serves(tensor: Tensor) -> bool:
    return tensor.is_cpu and tensor.dtype is torch.float32


def _layer_words(shape: Shape, relu: bool, last: bool, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> Words:
    places = [[t.data_ptr() for t in weights], [t.stride()[0] for t in weights]]
    places += [t.data_ptr() for t in biases], [t.stride()[0] for t in biases]
    return pack(shape_words(shape, relu, last, *places))


class _Mlp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Shape, relu: bool, last: bool, *layers: Tensor) -> Tensor:
        count = len(shape) - 1
        words = _layer_words(shape, relu, last, layers[:count], layers[count:])
        (out,), saved = forward(x, 0, (shape,), words, True)
        ctx.options = shape, relu, last
        ctx.save_for_backward(x, saved, *layers, *([out] if last else []))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        shape, relu, last = ctx.options
        count = len(shape) - 1
        x, saved, *layers = ctx.saved_tensors
        words = _layer_words(shape, relu, last, layers[:count], layers[count : 2 * count])
        need_x = ctx.needs_input_grad[0]
        grad_x, grads = backward(x, 0, (shape,), words, saved, layers[2 * count :], [grad], need_x)
        weights, biases = views(grads, (shape,))[0]
        return (grad_x, None, None, None, *weights, *biases)


def mlp(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    activation: str = "tanh",
    activate_last: bool = False,
) -> Tensor:
    """A network for each member, or one network if there is one member.

    Args:
        x: (members, rows, n_0) float32, of any strides.
        weights: of layer k (members, n_k, n_k+1), contiguous within a member.
        biases: of layer k (members, 1, n_k+1), likewise.
        activation: ``tanh`` or ``relu``.
        activate_last: whether it follows the last layer, too.

    Returns:
        (members, rows, outputs). It can be differentiated once. Its bits do not depend on the number of threads.

    Raises:
        ValueError: shapes that do not fit, or an unknown activation.
    """
    _check_activation(activation)
    shape, served, grad = _scan(x, weights, biases)
    if not served:
        return plain_mlp(x, weights, biases, activation, activate_last)
    x = x if x.stride()[2] == 1 else x.contiguous()
    relu = activation == "relu"
    if grad and torch.is_grad_enabled():
        result: Tensor = _Mlp.apply(x, shape, relu, activate_last, *weights, *biases)  # type: ignore[no-untyped-call]
        return result
    return forward(x, 0, (shape,), _layer_words(shape, relu, activate_last, weights, biases), False)[0][0]


# ------------------------------------------------------------------------------------------------- parameters in one


def views(parameters: Tensor, shapes: tuple[Shape, ...]) -> list[tuple[list[Tensor], list[Tensor]]]:
    """The weights and biases of each network, as views of the parameters that `Towers` takes."""
    sizes = [size for shape in shapes for n, m in itertools.pairwise(shape) for size in (n * m, m)]
    parts = iter(torch.split(parameters, sizes, 1))
    networks = []
    for shape in shapes:
        weights, biases = [], []
        for n, m in itertools.pairwise(shape):
            weights.append(next(parts).view(-1, n, m))
            biases.append(next(parts).unsqueeze(1))
        networks.append((weights, biases))
    return networks


def _lying(parameters: Tensor, shapes: tuple[Shape, ...], relu: bool, last: bool) -> tuple[Words | None, Tensor]:
    """Where the networks lie, None if the fused form does not serve them; parameters are contiguous in a member."""
    if parameters.dim() == 2 and parameters.stride()[1] != 1:
        parameters = parameters.contiguous()
    stride = parameters.stride()[0] if len(parameters) > 1 else 0
    return tower_words(shapes, relu, last, stride), parameters


class Towers:
    """Several networks of one input, such as an actor and a critic, for calls that are prepared.

    Args:
        parameters: (members, P or more), contiguous within a member, on the CPU: behind each other the networks, of a
            network the layers, of a layer the weight and then the bias. `views` takes them apart.
        shapes: of each network (inputs, units of the hidden layers, outputs).
        activation: ``tanh`` or ``relu``.
    """

    def __init__(self, parameters: Tensor, shapes: tuple[Shape, ...], activation: str = "tanh") -> None:
        _check_activation(activation)
        words, self.parameters = _lying(parameters, shapes, activation == "relu", False)
        assert words is not None
        self.shapes, self._words = shapes, words

    @staticmethod
    def serves(parameters: Tensor, shapes: tuple[Shape, ...]) -> bool:
        """Whether the fused form serves them."""
        return _serves(parameters) and _lying(parameters, shapes, False, False)[0] is not None

    def bind(self, x: Tensor, outs: Sequence[Tensor], saved: Tensor | None = None) -> Call:
        """Prepares the way through the networks.

        Args:
            x: (members, rows, inputs) float32, contiguous within a row.
            outs: where the outputs go, of each network contiguous (members, rows, outputs).
            saved: where hidden activations go for the backward pass, see `workspace`.
        """
        return bind_forward(x, self.parameters, self.shapes, self._words, outs, saved)

    def workspace(self, count: int) -> Tensor:
        """Memory for what so many rows of all members leave for the backward pass."""
        return torch.empty(count * sum(sizes_of(self.shapes).hidden))

    def bind_backward(self, x: Tensor, saved: Tensor, gradients: Sequence[Tensor], into: Tensor) -> Call:
        """Prepares the backward pass, to the gradient of the parameters.

        Args:
            x: as for `bind`.
            saved: what that left.
            gradients: gradients of the outputs, contiguous.
            into: (members, P or more), contiguous within a member; of each the first P are written.
        """
        return bind_backward(x, self.parameters, self.shapes, self._words, saved, gradients, into)

    def bind_whole(
        self, x: Tensor, outs: Sequence[Tensor], loss: Call, gradients: Sequence[Tensor], into: Tensor
    ) -> Call:
        """Prepares `bind`, a loss, and `bind_backward` as one call, which takes some rows through all three at a time.

        Args:
            x: as for `bind`.
            outs: likewise.
            loss: makes the gradients of the outputs; an entry for some of its rows.
            gradients: gradients of the outputs, contiguous.
            into: as for `bind_backward`.
        """
        return bind_whole(x, self.parameters, self.shapes, self._words, outs, loss, gradients, into)
