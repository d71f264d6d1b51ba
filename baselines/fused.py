"""Multi-layer perceptrons in one call: on a CPU several times as fast as layer by layer, both ways.

A block of rows passes through all layers, and its gradient back, while it is in the cache. `mlp` takes the tensors of
the layers; `towers` takes several networks of one input whose parameters lie in one tensor, which costs less per call.
``fused.cpp`` is compiled at the first call. What `available` refuses (a GPU's tensors, other dtypes, autocast, wide
layers) goes through plain torch instead, with the same results up to rounding.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.codegen import DEVICE

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}
MAX_NETWORKS, MAX_LAYERS, MAX_WIDTH = 8, 4, 512
PADDING = 16  # floats: a multiple of every machine's vectors

Shape = tuple[int, ...]  # of a network: inputs, units of each hidden layer, outputs
_Function = Callable[[bytes, bytes, int], None]
_pack_shape = struct.Struct(f"{4 + 5 * MAX_LAYERS}q").pack
_pack_call = [struct.Struct(f"{9 + 4 * networks}q").pack for networks in range(MAX_NETWORKS + 1)]


@functools.cache
def _library() -> tuple[_Function, _Function]:
    parts = (DEVICE / "base.cuh", DEVICE / "threads.cuh", Path(__file__).with_name("fused.cpp"))
    code = "\n".join(f'#line 1 "{part.name}"\n{part.read_text()}' for part in parts)
    library = ctypes.CDLL(str(compile_host(code, "fused", ("-ffp-contract=fast", "-DGZ_SPINS=500"))))
    for function in (library.mlp_forward, library.mlp_backward):
        function.argtypes, function.restype = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_longlong], None
    return library.mlp_forward, library.mlp_backward


class _Sizes(NamedTuple):
    """What networks of some shapes need.

    Attributes:
        outputs: of each network.
        hidden: floats that each keeps of a row for the way back, in whole vectors.
        parameters: of all networks, for one member.
    """

    outputs: tuple[int, ...]
    hidden: tuple[int, ...]
    parameters: int


@functools.lru_cache(maxsize=256)
def _sizes(shapes: tuple[Shape, ...]) -> _Sizes:
    hidden = tuple(sum(-(-n // PADDING) * PADDING for n in shape[1:-1]) for shape in shapes)
    parameters = sum((n + 1) * m for shape in shapes for n, m in itertools.pairwise(shape))
    return _Sizes(tuple(shape[-1] for shape in shapes), hidden, parameters)


def _shape_words(
    shape: Shape,
    relu: bool,
    last: bool,
    weights: Sequence[int],
    weight_strides: Sequence[int],
    biases: Sequence[int],
    bias_strides: Sequence[int],
) -> bytes:
    gap = (0,) * (MAX_LAYERS + 1 - len(shape))
    places = *weights, *gap, *weight_strides, *gap, *biases, *gap, *bias_strides, *gap
    return _pack_shape(len(shape) - 1, relu, last, *shape, *gap, *places)


def _forward(
    x: Tensor, parameters: int, shapes: tuple[Shape, ...], words: bytes, keep: bool
) -> tuple[list[Tensor], Tensor | None]:
    """The networks' outputs and, if they are to be kept, hidden activations.

    Args:
        x: (members, rows, inputs), contiguous within a row.
        parameters: the address that those in ``words`` count from.
        shapes: those of the networks.
        words: what ``fused.cpp`` calls a `Shape`, of each network.
        keep: whether there will be a way back.
    """
    members, rows, _ = x.shape
    outputs, hidden, _ = _sizes(shapes)
    outs = [torch.empty(members, rows, n) for n in outputs]
    kept, places = None, (0,) * len(outs)
    if keep:
        kept = torch.empty(members * rows * sum(hidden))
        places = _places(kept, members * rows, hidden)
    call = [members, rows, torch.get_num_threads(), x.data_ptr(), *x.stride()[:2], parameters, 0, 0]
    for out, place in zip(outs, places, strict=True):
        call += (out.data_ptr(), place, 0, 0)
    _library()[0](_pack_call[len(outs)](*call), words, len(outs))
    return outs, kept


def _places(kept: Tensor, rows: int, hidden: tuple[int, ...]) -> tuple[int, ...]:
    start = kept.data_ptr()
    return tuple(start + 4 * rows * before for before in itertools.accumulate(hidden[:-1], initial=0))


def _backward(
    x: Tensor,
    parameters: int,
    shapes: tuple[Shape, ...],
    words: bytes,
    kept: Tensor,
    outs: Sequence[Tensor],
    grad_outs: Sequence[Tensor],
    need_x: bool,
    into: Tensor | None = None,
) -> tuple[Tensor | None, Tensor]:
    """The gradients of x and of the parameters, (members, those of all networks).

    Args:
        x: as for `_forward`.
        parameters: likewise.
        shapes: likewise.
        words: likewise.
        kept: what it kept.
        outs: the outputs, if they were activated.
        grad_outs: their gradients.
        need_x: whether x needs a gradient.
        into: where to write the gradient of the parameters, contiguous within a member.
    """
    members, rows, _ = x.shape
    _, hidden, size = _sizes(shapes)
    grads = torch.empty(members, size) if into is None else into
    grad_outs = [grad.contiguous() for grad in grad_outs]
    grad_xs = [torch.empty(x.shape) for _ in shapes] if need_x else []
    call = [members, rows, torch.get_num_threads(), x.data_ptr(), *x.stride()[:2], parameters]
    call += (grads.data_ptr(), grads.stride()[0])
    for k, place in enumerate(_places(kept, members * rows, hidden)):
        out, grad_x = outs[k].data_ptr() if outs else 0, grad_xs[k].data_ptr() if need_x else 0
        call += (out, place, grad_outs[k].data_ptr(), grad_x)
    _library()[1](_pack_call[len(shapes)](*call), words, len(shapes))
    return functools.reduce(torch.add, grad_xs) if need_x else None, grads


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
    """Compiles ``fused.cpp`` now, if it has not been, and not at the first call."""
    _library()


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


def _layer_words(shape: Shape, relu: bool, last: bool, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> bytes:
    places = [t.data_ptr() for t in weights], [t.stride()[0] for t in weights]
    return _shape_words(shape, relu, last, *places, [t.data_ptr() for t in biases], [t.stride()[0] for t in biases])


class _Mlp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Shape, relu: bool, last: bool, *layers: Tensor) -> Tensor:
        count = len(shape) - 1
        words = _layer_words(shape, relu, last, layers[:count], layers[count:])
        (out,), kept = _forward(x, 0, (shape,), words, True)
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
        grad_x, grads = _backward(x, 0, (shape,), words, kept, layers[2 * count :], [grad], need_x)
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
    return _forward(x, 0, (shape,), _layer_words(shape, relu, activate_last, weights, biases), False)[0][0]


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


@functools.lru_cache(maxsize=256)
def _tower_words(shapes: tuple[Shape, ...], relu: bool, last: bool) -> bytes | None:
    """Where everything lies in a member's parameters; None if the fused form does not serve it."""
    if not shapes or any(len(shape) < 2 or shape[0] != shapes[0][0] for shape in shapes):
        raise ValueError(
            f"shapes must be (inputs, ..., outputs) of each network, all of the same inputs, not {shapes}."
        )
    if len(shapes) > MAX_NETWORKS or any(len(shape) > MAX_LAYERS + 1 for shape in shapes):
        return None
    if any(not 1 <= n <= MAX_WIDTH for shape in shapes for n in shape):
        return None
    words, place = b"", 0
    for shape in shapes:
        weights, biases = [], []
        for n, m in itertools.pairwise(shape):
            weights.append(4 * place)
            biases.append(4 * (place + n * m))
            place += (n + 1) * m
        strides = [_sizes(shapes).parameters] * len(weights)
        words += _shape_words(shape, relu, last, weights, strides, biases, strides)
    return words


class _Towers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, parameters: Tensor, shapes: tuple[Shape, ...], words: bytes, last: bool
    ) -> tuple[Tensor, ...]:
        outs, kept = _forward(x, parameters.data_ptr(), shapes, words, True)
        ctx.options = shapes, words
        ctx.save_for_backward(x, parameters, kept, *(outs if last else ()))
        return tuple(outs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, parameters, kept, *outs = ctx.saved_tensors
        shapes, words = ctx.options
        need_x = ctx.needs_input_grad[0]
        grad_x, grad = _backward(x, parameters.data_ptr(), shapes, words, kept, outs, grads, need_x)
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
    words = _tower_words(shapes, activation == "relu", activate_last)
    inputs = shapes[0][0]
    if x.dim() != 3 or x.shape[2] != inputs:
        raise ValueError(f"x must be (members, rows, {inputs}), not {tuple(x.shape)}.")
    members, size = x.shape[0], _sizes(shapes).parameters
    if parameters.shape != (members, size):
        raise ValueError(f"parameters of the shapes {shapes} must be {(members, size)}, not {tuple(parameters.shape)}.")
    if words is None or not (_serves(x) and _serves(parameters)) or torch.is_autocast_enabled("cpu"):
        return tuple(_plain(x, *layers, activation, activate_last) for layers in views(parameters, shapes))
    x = x if x.stride()[2] == 1 else x.contiguous()
    parameters = parameters.contiguous()
    if (parameters.requires_grad or x.requires_grad) and torch.is_grad_enabled():
        results: tuple[Tensor, ...] = _Towers.apply(x, parameters, shapes, words, activate_last)  # type: ignore[no-untyped-call]
        return results
    return tuple(_forward(x, parameters.data_ptr(), shapes, words, False)[0])


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
    words = _tower_words(shapes, activation == "relu", False)
    if words is None or not (_serves(x) and _serves(parameters)) or torch.is_autocast_enabled("cpu"):
        leaf = parameters.detach().requires_grad_()
        with torch.enable_grad():
            results = towers(x, leaf, shapes, activation)

        def plain(gradients: Sequence[Tensor], into: Tensor) -> None:
            fitting = [g.to(out.dtype) for g, out in zip(gradients, results, strict=True)]
            into.copy_(torch.autograd.grad(results, leaf, fitting)[0])

        return tuple(out.detach().float().requires_grad_() for out in results), plain
    x = x if x.stride()[2] == 1 else x.contiguous()
    weights = parameters.detach().contiguous()
    outs, kept = _forward(x, weights.data_ptr(), shapes, words, True)
    assert kept is not None

    def back(gradients: Sequence[Tensor], into: Tensor) -> None:
        _backward(x, weights.data_ptr(), shapes, words, kept, (), gradients, False, into)

    return tuple(out.requires_grad_() for out in outs), back
