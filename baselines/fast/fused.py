"""Multi-layer perceptrons in one call: on a CPU several times as fast as layer by layer, both ways.

A block of rows passes through all layers, and its gradient back, while it is in the cache. `mlp` takes the tensors of
the layers; `towers` takes several networks of one input whose parameters lie in one tensor, which costs less per call.
``cpu/networks.cpp`` is compiled at the first call. What `available` refuses (a GPU's tensors, other dtypes, autocast,
wide layers) goes through plain torch instead, with the same results up to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .fused_calls import (
    MAX_LAYERS,
    MAX_WIDTH,
    Shape,
    backward,
    bind_backward,
    bind_descent,
    bind_forward,
    forward,
    library,
    pack,
    shape_words,
    sizes_of,
    tower_words,
)
from .units import Call, Words

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}


def _check_activation(activation: str) -> None:
    if activation not in ACTIVATIONS:
        raise ValueError(f"there is no activation {activation!r}; choose one of {', '.join(ACTIVATIONS)}.")


def _plain(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], activation: str, activate_last: bool
) -> Tensor:
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = torch.baddbmm(bias, x, weight)
        if activate_last or k + 1 < len(weights):
            x = ACTIVATIONS[activation](x)
    return x


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
        raise ValueError(f"mlp takes one bias per weight, of one layer or more: {len(weights)} and {len(biases)} came.")
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
        (out,), kept = forward(x, 0, (shape,), words, True)
        ctx.options = shape, relu, last
        ctx.save_for_backward(x, kept, *layers, *([out] if last else []))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        shape, relu, last = ctx.options
        count = len(shape) - 1
        x, kept, *layers = ctx.saved_tensors
        words = _layer_words(shape, relu, last, layers[:count], layers[count : 2 * count])
        need_x = ctx.needs_input_grad[0]
        grad_x, grads = backward(x, 0, (shape,), words, kept, layers[2 * count :], [grad], need_x)
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
        return _plain(x, weights, biases, activation, activate_last)
    x = x if x.stride()[2] == 1 else x.contiguous()
    relu = activation == "relu"
    if grad and torch.is_grad_enabled():
        result: Tensor = _Mlp.apply(x, shape, relu, activate_last, *weights, *biases)  # type: ignore[no-untyped-call]
        return result
    return forward(x, 0, (shape,), _layer_words(shape, relu, activate_last, weights, biases), False)[0][0]


# ------------------------------------------------------------------------------------------------- parameters in one


def views(parameters: Tensor, shapes: tuple[Shape, ...]) -> list[tuple[list[Tensor], list[Tensor]]]:
    """The weights and biases of each network, as views of the parameters that `towers` takes."""
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


class _Towers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, parameters: Tensor, shapes: tuple[Shape, ...], words: Words, last: bool
    ) -> tuple[Tensor, ...]:
        outs, kept = forward(x, parameters.data_ptr(), shapes, words, True)
        ctx.options = shapes, words
        ctx.save_for_backward(x, parameters, kept, *(outs if last else ()))
        return tuple(outs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, parameters, kept, *outs = ctx.saved_tensors
        shapes, words = ctx.options
        need_x = ctx.needs_input_grad[0]
        grad_x, grad = backward(x, parameters.data_ptr(), shapes, words, kept, outs, grads, need_x)
        return grad_x, grad, None, None, None


def towers(
    x: Tensor, parameters: Tensor, shapes: tuple[Shape, ...], activation: str = "tanh", activate_last: bool = False
) -> tuple[Tensor, ...]:
    """Several networks of one input, such as an actor and a critic, in one call.

    Args:
        x: (members, rows, inputs) float32, of any strides.
        parameters: (members, P): behind each other the networks, of a network the layers, of a layer the weight and
            then the bias. `views` takes them apart.
        shapes: of each network (inputs, units of the hidden layers, outputs).
        activation: ``tanh`` or ``relu``.
        activate_last: whether it follows the last layers, too.

    Returns:
        Of each network (members, rows, outputs). Otherwise like `mlp`.

    Raises:
        ValueError: shapes that do not fit, or an unknown activation.
    """
    _check_activation(activation)
    words, parameters = _lying(parameters, shapes, activation == "relu", activate_last)
    inputs = shapes[0][0]
    if x.dim() != 3 or x.shape[2] != inputs:
        raise ValueError(f"x must be (members, rows, {inputs}), not {tuple(x.shape)}.")
    members, size = x.shape[0], sizes_of(shapes).parameters
    if parameters.shape != (members, size):
        raise ValueError(f"parameters of the shapes {shapes} must be {(members, size)}, not {tuple(parameters.shape)}.")
    if words is None or not (_serves(x) and _serves(parameters)) or torch.is_autocast_enabled("cpu"):
        return tuple(_plain(x, *layers, activation, activate_last) for layers in views(parameters, shapes))
    x = x if x.stride()[2] == 1 else x.contiguous()
    if (parameters.requires_grad or x.requires_grad) and torch.is_grad_enabled():
        results: tuple[Tensor, ...] = _Towers.apply(x, parameters, shapes, words, activate_last)  # type: ignore[no-untyped-call]
        return results
    return tuple(forward(x, parameters.data_ptr(), shapes, words, False)[0])


def towers_and_back(
    x: Tensor, parameters: Tensor, shapes: tuple[Shape, ...], activation: str = "tanh"
) -> tuple[tuple[Tensor, ...], Callable[[Sequence[Tensor], Tensor], None]]:
    """`towers`, with the way back as a function: half the time of a small minibatch is autograd's.

    Args:
        x: as for `towers`; it gets no gradient.
        parameters: likewise.
        shapes: likewise.
        activation: likewise.

    Returns:
        The outputs, which are leaves for autograd, and ``back(gradients of the outputs, into)``, which writes the
        gradient of the parameters into (members, P), contiguous within a member. It is to be called once at most.
    """
    _check_activation(activation)
    words, parameters = _lying(parameters, shapes, activation == "relu", False)
    if words is None or not (_serves(x) and _serves(parameters)) or torch.is_autocast_enabled("cpu"):
        leaf = parameters.detach().requires_grad_()
        with torch.enable_grad():
            results = towers(x, leaf, shapes, activation)

        def plain(gradients: Sequence[Tensor], into: Tensor) -> None:
            fitting = [g.to(out.dtype) for g, out in zip(gradients, results, strict=True)]
            into.copy_(torch.autograd.grad(results, leaf, fitting)[0])

        return tuple(out.detach().float().requires_grad_() for out in results), plain
    x = x if x.stride()[2] == 1 else x.contiguous()
    weights = parameters.detach()
    outs, kept = forward(x, weights.data_ptr(), shapes, words, True)
    assert kept is not None

    def back(gradients: Sequence[Tensor], into: Tensor) -> None:
        backward(x, weights.data_ptr(), shapes, words, kept, (), gradients, False, into)

    return tuple(out.requires_grad_() for out in outs), back


class Towers:
    """Networks as `towers` has them, for calls that are prepared.

    Args:
        parameters: (members, P or more), contiguous within a member, on the CPU.
        shapes: as for `towers`.
        activation: likewise.
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

    def bind(self, x: Tensor, outs: Sequence[Tensor], kept: Tensor | None = None) -> Call:
        """Prepares the way through the networks.

        Args:
            x: (members, rows, inputs) float32, contiguous within a row.
            outs: where the outputs go, of each network contiguous (members, rows, outputs).
            kept: where hidden activations go for the way back, see `room`.
        """
        return bind_forward(x, self.parameters, self.shapes, self._words, outs, kept)

    def room(self, count: int) -> Tensor:
        """Memory for what so many rows of all members leave for the way back."""
        return torch.empty(count * sum(sizes_of(self.shapes).hidden))

    def bind_back(self, x: Tensor, kept: Tensor, slopes: Sequence[Tensor], into: Tensor) -> Call:
        """Prepares the way back, to the gradient of the parameters.

        Args:
            x: as for `bind`.
            kept: what that left.
            slopes: gradients of the outputs, contiguous.
            into: (members, P or more), contiguous within a member; of each the first P are written.
        """
        return bind_backward(x, self.parameters, self.shapes, self._words, kept, slopes, into)

    def bind_descent(
        self, x: Tensor, outs: Sequence[Tensor], loss: Call, slopes: Sequence[Tensor], into: Tensor
    ) -> Call:
        """Prepares `bind`, a loss, and `bind_back` as one call, which goes through them with some rows after the other.

        Args:
            x: as for `bind`.
            outs: likewise.
            loss: makes the slopes of the outputs; an entry for some of its rows.
            slopes: gradients of the outputs, contiguous.
            into: as for `bind_back`.
        """
        return bind_descent(x, self.parameters, self.shapes, self._words, outs, loss, slopes, into)
