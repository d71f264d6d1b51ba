"""How the fused networks of ``cpu/networks.cpp`` are called: what is packed for them, and where their results go."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gpuzoo.core.backend_cpu import UNIT_SPINS, compile_host
from gpuzoo.core.headers import DEVICE

from .units import Call, Words, entry

MAX_NETWORKS, MAX_LAYERS, MAX_WIDTH = 8, 4, 512
PADDING = 16  # floats: a multiple of every machine's vectors

Shape = tuple[int, ...]  # of a network: inputs, units of each hidden layer, outputs


class Entries(NamedTuple):
    """The functions of ``networks.cpp``."""

    forward: Any
    backward: Any
    whole: Any


def pack(words: Sequence[int]) -> Words:
    """64-bit words for C."""
    return (ctypes.c_longlong * len(words))(*words)


@functools.cache
def library() -> Entries:
    """Compiled at the first call."""
    folder = Path(__file__).with_name("cpu")
    parts = (DEVICE / "base.cuh", DEVICE / "threads.cuh", folder / "products.h", folder / "networks.cpp")
    code = "\n".join(f'#line 1 "{part.name}"\n{part.read_text(encoding="utf-8")}' for part in parts)
    found = ctypes.CDLL(str(compile_host(code, "networks", ("-ffp-contract=fast", UNIT_SPINS))))
    entries = Entries(found.mlp_forward, found.mlp_backward, found.mlp_whole)
    for function in entries:
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_longlong], None
    return entries


class Sizes(NamedTuple):
    """What networks of some shapes need.

    Attributes:
        outputs: of each network.
        hidden: floats that each keeps of a row for the backward pass, in whole vectors.
        parameters: of all networks, for one member.
    """

    outputs: tuple[int, ...]
    hidden: tuple[int, ...]
    parameters: int


@functools.lru_cache(maxsize=256)
def sizes_of(shapes: tuple[Shape, ...]) -> Sizes:
    """The sizes of networks."""
    hidden = tuple(sum(-(-n // PADDING) * PADDING for n in shape[1:-1]) for shape in shapes)
    parameters = sum((n + 1) * m for shape in shapes for n, m in itertools.pairwise(shape))
    return Sizes(tuple(shape[-1] for shape in shapes), hidden, parameters)


def shape_words(
    shape: Shape,
    relu: bool,
    last: bool,
    weights: Sequence[int],
    weight_strides: Sequence[int],
    biases: Sequence[int],
    bias_strides: Sequence[int],
) -> list[int]:
    """What ``networks.cpp`` calls a `Shape`: places are bytes behind the parameters' address, strides floats."""
    gap = [0] * (MAX_LAYERS + 1 - len(shape))
    places = [*weights, *gap, *weight_strides, *gap, *biases, *gap, *bias_strides, *gap]
    return [len(shape) - 1, relu, last, *shape, *gap, *places]


@functools.lru_cache(maxsize=256)
def tower_words(shapes: tuple[Shape, ...], relu: bool, last: bool, stride: int) -> Words | None:
    """The shapes of networks whose parameters lie behind each other; None if the fused form does not serve them.

    Args:
        shapes: of each network.
        relu: the activation; else tanh.
        last: whether it follows the last layers, too.
        stride: floats from a member's parameters to those of the next.
    """
    if not shapes or any(len(shape) < 2 or shape[0] != shapes[0][0] for shape in shapes):
        raise ValueError(
            f"shapes must be (inputs, ..., outputs) of each network, all of the same inputs, not {shapes}."
        )
    if len(shapes) > MAX_NETWORKS or any(len(shape) > MAX_LAYERS + 1 for shape in shapes):
        return None
    if any(not 1 <= n <= MAX_WIDTH for shape in shapes for n in shape):
        return None
    words: list[int] = []
    place = 0
    for shape in shapes:
        weights, biases = [], []
        for n, m in itertools.pairwise(shape):
            weights.append(4 * place)
            biases.append(4 * (place + n * m))
            place += (n + 1) * m
        strides = [stride] * len(weights)
        words += shape_words(shape, relu, last, weights, strides, biases, strides)
    return pack(words)


def _call_words(x: Tensor, parameters: int, shapes: tuple[Shape, ...], words: Words) -> list[int]:
    members, rows, _ = x.shape
    layout = [ctypes.addressof(words), len(shapes), x.data_ptr(), *x.stride()[:2], parameters]
    return [members, rows, torch.get_num_threads(), *layout]


def _places(saved: Tensor, rows: int, hidden: tuple[int, ...]) -> tuple[int, ...]:
    start = saved.data_ptr()
    return tuple(start + 4 * rows * before for before in itertools.accumulate(hidden[:-1], initial=0))


def forward(
    x: Tensor, parameters: int, shapes: tuple[Shape, ...], words: Words, keep: bool
) -> tuple[list[Tensor], Tensor | None]:
    """The networks' outputs and, if they are to be saved, hidden activations.

    Args:
        x: (members, rows, inputs), contiguous within a row.
        parameters: the address that those in ``words`` count from.
        shapes: those of the networks.
        words: what ``networks.cpp`` calls a `Shape`, of each network.
        keep: whether there will be a backward pass.
    """
    members, rows, _ = x.shape
    outputs, hidden, _ = sizes_of(shapes)
    outs = [torch.empty(members, rows, n) for n in outputs]
    saved = torch.empty(members * rows * sum(hidden)) if keep else None
    library().forward(_forward_words(x, parameters, shapes, words, outs, saved), 0)
    return outs, saved


def _forward_words(
    x: Tensor, parameters: int, shapes: tuple[Shape, ...], words: Words, outs: Sequence[Tensor], saved: Tensor | None
) -> Words:
    hidden = sizes_of(shapes).hidden
    places = [0] * len(outs) if saved is None else _places(saved, x.shape[0] * x.shape[1], hidden)
    call = [*_call_words(x, parameters, shapes, words), 0, 0, 0, 0]
    for out, place in zip(outs, places, strict=True):
        call += (out.data_ptr(), place, 0, 0)
    return pack(call)


def bind_forward(
    x: Tensor, parameters: Tensor, shapes: tuple[Shape, ...], words: Words, outs: Sequence[Tensor], saved: Tensor | None
) -> Call:
    """Prepares `forward` for these tensors.

    Args:
        x: as for `forward`.
        parameters: what ``words`` count from.
        shapes: likewise.
        words: likewise.
        outs: where the outputs go, (members, rows, outputs) or as many floats, contiguous.
        saved: where the hidden activations go; None: nowhere.
    """
    call = _forward_words(x, parameters.data_ptr(), shapes, words, outs, saved)
    return Call(functools.partial(library().forward, call), (x, parameters, words, outs, saved))


def backward(
    x: Tensor,
    parameters: int,
    shapes: tuple[Shape, ...],
    words: Words,
    saved: Tensor,
    outs: Sequence[Tensor],
    grad_outs: Sequence[Tensor],
    need_x: bool,
    into: Tensor | None = None,
) -> tuple[Tensor | None, Tensor]:
    """The gradients of x and of the parameters, (members, those of all networks).

    Args:
        x: as for `forward`.
        parameters: likewise.
        shapes: likewise.
        words: likewise.
        saved: what it saved.
        outs: the outputs, if they were activated.
        grad_outs: their gradients.
        need_x: whether x needs a gradient.
        into: where to write the gradient of the parameters, contiguous within a member.
    """
    grads = torch.empty(x.shape[0], sizes_of(shapes).parameters) if into is None else into
    grad_outs = [grad.contiguous() for grad in grad_outs]
    grad_xs = [torch.empty(x.shape) for _ in shapes] if need_x else []
    library().backward(_backward_words(x, parameters, shapes, words, saved, outs, grad_outs, grad_xs, grads), 0)
    return functools.reduce(torch.add, grad_xs) if need_x else None, grads


def _backward_words(
    x: Tensor,
    parameters: int,
    shapes: tuple[Shape, ...],
    words: Words,
    saved: Tensor,
    outs: Sequence[Tensor],
    grad_outs: Sequence[Tensor],
    grad_xs: Sequence[Tensor],
    grads: Tensor,
) -> Words:
    call = [*_call_words(x, parameters, shapes, words), grads.data_ptr(), grads.stride()[0], 0, 0]
    for k, place in enumerate(_places(saved, x.shape[0] * x.shape[1], sizes_of(shapes).hidden)):
        out, grad_x = outs[k].data_ptr() if outs else 0, grad_xs[k].data_ptr() if grad_xs else 0
        call += (out, place, grad_outs[k].data_ptr(), grad_x)
    return pack(call)


def bind_backward(
    x: Tensor,
    parameters: Tensor,
    shapes: tuple[Shape, ...],
    words: Words,
    saved: Tensor,
    grad_outs: Sequence[Tensor],
    into: Tensor,
) -> Call:
    """Prepares `backward` for these tensors, without a gradient of x."""
    call = _backward_words(x, parameters.data_ptr(), shapes, words, saved, (), grad_outs, (), into)
    return Call(functools.partial(library().backward, call), (x, parameters, words, saved, grad_outs, into))


def bind_whole(
    x: Tensor,
    parameters: Tensor,
    shapes: tuple[Shape, ...],
    words: Words,
    outs: Sequence[Tensor],
    loss: Call,
    grad_outs: Sequence[Tensor],
    into: Tensor,
) -> Call:
    """Prepares both ways at once: `forward`, a loss that makes ``grad_outs`` of ``outs``, and `backward`.

    Args:
        x: as for `forward`.
        parameters: what ``words`` count from.
        shapes: as for `forward`.
        words: likewise.
        outs: where the outputs go, contiguous.
        loss: a kernel's entry for some of its rows, see ``launch.cuh``.
        grad_outs: what it writes, contiguous.
        into: where the gradient of the parameters goes, contiguous within a member.
    """
    call = [*_call_words(x, parameters.data_ptr(), shapes, words), into.data_ptr(), into.stride()[0], *entry(loss)]
    for out, grad_out in zip(outs, grad_outs, strict=True):
        call += (out.data_ptr(), 0, grad_out.data_ptr(), 0)
    return Call(functools.partial(library().whole, pack(call)), (x, parameters, words, outs, loss, grad_outs, into))
