"""The parts of policies: networks and scales of a population. The first axis of everything is the member."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}


def mlp(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    activation: str = "tanh",
    activate_last: bool = False,
) -> Tensor:
    """Dense layers, of all members at once.

    Args:
        x: (members, rows, n_0).
        weights: of layer k (members, n_k, n_k+1).
        biases: of layer k (members, 1, n_k+1).
        activation: one of `ACTIVATIONS`.
        activate_last: whether it follows the last layer, too.
    """
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = torch.baddbmm(bias, x, weight)
        if activate_last or k + 1 < len(weights):
            x = ACTIVATIONS[activation](x)
    return x


MANY_ROWS = 128  # of a member; so many make the better order of images worth its cost


def orthogonal(m: int, n: int, gain: float, generator: torch.Generator) -> Tensor:
    """(m, n), of the same bits however many threads torch has, which its decompositions have not by themselves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return nn.init.orthogonal_(torch.empty(m, n), gain, generator)
    finally:
        torch.set_num_threads(threads)


def convolve(x: Tensor, kernels: Sequence[Tensor], offsets: Sequence[Tensor]) -> Tensor:
    """3x3 convolutions of each member's images with 0 around them, and a ReLU behind each.

    On a CPU members with many rows take turns: oneDNN's convolution with the channels last is up to twice as fast as
    one whose groups are the members, and 2 to 4 times as fast as patches multiplied by the kernels.
    ``scripts/bench_conv.py`` measures it.

    Args:
        x: (members, rows, height, width, channels).
        kernels: of each layer (members, channel x row x column, filters).
        offsets: of each layer (members, 1, filters).

    Returns:
        (members, rows, filters, height, width), of any strides.
    """
    members, rows = x.shape[:2]
    if members > 1 and rows >= MANY_ROWS and x.is_cpu:
        split = x.split(1), [k.split(1) for k in kernels], [o.split(1) for o in offsets]
        alone = [convolve(split[0][m], [k[m] for k in split[1]], [o[m] for o in split[2]]) for m in range(members)]
        return torch.cat([y.permute(0, 1, 3, 4, 2) for y in alone]).permute(0, 1, 4, 2, 3)
    x = x.permute(1, 0, 4, 2, 3).flatten(1, 2)  # a group of channels for each member
    for kernel, offset in zip(kernels, offsets, strict=True):
        filters = kernel.mT.reshape(-1, kernel.shape[1] // 9, 3, 3)
        x = functional.conv2d(x, filters, offset.flatten(), padding=1, groups=members).relu_()
    return x.unflatten(1, (members, -1)).transpose(0, 1)


class Network(nn.Module):
    """Convolutions where the input is an image, dense layers, a GRU if it has a memory, and linear outputs.

    Everything has the members as its first axis: a layer of all members is one batched product.

    Args:
        generators: of the initial weights, one for each member.
        shape: of one input: (n,) or (height, width, channels).
        hidden: sizes of the dense layers.
        outputs: (columns, gain of their initial weights) of each part of the output.
        channels: of the 3x3 convolutions, if ``shape`` is an image's.
        memory: size of the GRU; 0 for none.
        activation: ``"tanh"`` or ``"relu"``.

    Attributes:
        mlp: computes dense layers; an executor may put a faster function in its place.
    """

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        shape: Sequence[int],
        hidden: Sequence[int],
        outputs: Sequence[tuple[int, float]],
        channels: Sequence[int] = (),
        memory: int = 0,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.memory, self.activation, self.image, self.mlp = memory, activation, len(shape) == 3, mlp

        def weight(n: int, *parts: tuple[int, float]) -> nn.Parameter:
            """(members, n, sum of the parts): orthogonal columns, scaled by the gain of their part."""
            return nn.Parameter(torch.stack([
                torch.cat([orthogonal(m, n, gain, g) for m, gain in parts]).T for g in generators
            ]))  # fmt: skip

        def bias(m: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(len(generators), 1, m))

        size, root = int(np.prod(shape)), math.sqrt(2)
        self.kernels, self.offsets = nn.ParameterList(), nn.ParameterList()
        if self.image:
            for n, m in itertools.pairwise([shape[2], *channels]):
                self.kernels.append(weight(9 * n, (m, root)))  # (members, channel x row x column, m)
                self.offsets.append(bias(m))
            size = shape[0] * shape[1] * (channels[-1] if channels else shape[2])
        sizes = [size, *hidden]
        last = memory or sizes[-1]
        self.weights = nn.ParameterList(weight(n, (m, root)) for n, m in itertools.pairwise(sizes))
        self.biases = nn.ParameterList(bias(m) for m in hidden)
        if memory:
            self.gates = nn.ParameterList([weight(sizes[-1], *[(memory, 1.0)] * 3), bias(3 * memory),
                                           weight(memory, *[(memory, 1.0)] * 3), bias(3 * memory)])  # fmt: skip
        self.weights.append(weight(last, *outputs))
        self.biases.append(bias(sum(m for m, _ in outputs)))
        self.layers = list(self.weights), list(self.biases)  # a ParameterList takes microseconds to go through

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, units of the dense layers, outputs."""
        return (self.layers[0][0].shape[1], *(b.shape[2] for b in self.layers[1]))

    @property
    def plain(self) -> bool:
        """Whether it is nothing but dense layers."""
        return not self.image and not self.memory

    def _columns(self, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Images as rows of numbers behind the convolutions, and the next layer's weight in the order of the numbers.

        The weight's inputs are channel x row x column. Of many rows it is cheaper to put the weight in the order of
        the images than the images in the order of the weight.
        """
        if not self.image:
            return x, weight
        x = convolve(x, list(self.kernels), list(self.offsets))
        if x.shape[1] < MANY_ROWS or x.stride(2) != 1:
            return x.flatten(2), weight
        return x.permute(0, 1, 3, 4, 2).flatten(2), weight.unflatten(1, (x.shape[2], -1)).transpose(1, 2).flatten(1, 2)

    def forward(self, x: Tensor, memory: Tensor | None = None, begins: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs and new memory.

        Args:
            x: (members, rows, *shape), or with a memory (steps, members, rows, *shape).
            memory: (members, rows, size) before the first step.
            begins: (steps, members, rows), 1 where an episode begins, before which nothing is remembered.

        Returns:
            (members, rows, outputs), and an empty tensor; with a memory, (steps, members, rows, outputs) and the
            memory after the last step.
        """
        weights, biases = self.layers
        if memory is None:
            x, first = self._columns(x, weights[0])
            return self.mlp(x, [first, *weights[1:]], biases, self.activation), x.new_empty(0)
        steps, rows = len(x), x.shape[2]
        x = x.transpose(0, 1).flatten(1, 2)
        wi, bi, wh, bh = self.gates
        if len(weights) > 1:
            x, first = self._columns(x, weights[0])
            x = self.mlp(x, [first, *weights[1:-1]], biases[:-1], self.activation, True)
        else:
            x, wi = self._columns(x, wi)
        inputs = torch.baddbmm(bi, x, wi).unflatten(1, (steps, rows)).unbind(1)
        remembered = []
        for t, gate in enumerate(inputs):
            if begins is not None:
                memory = memory * (1 - begins[t].unsqueeze(-1))
            own = torch.baddbmm(bh, memory, wh)
            i, h = gate.chunk(3, -1), own.chunk(3, -1)
            reset, keep = (i[0] + h[0]).sigmoid(), (i[1] + h[1]).sigmoid()
            new = (i[2] + reset * h[2]).tanh()
            memory = torch.lerp(new.to(memory.dtype), memory, keep.to(memory.dtype))  # in float32 whatever the products
            remembered.append(memory)
        out = mlp(torch.cat(remembered, 1), weights[-1:], biases[-1:], self.activation)
        return out.unflatten(1, (steps, rows)).transpose(0, 1), memory


def together(mean: Tensor, variance: Tensor, alike: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance, (members, kinds) each, of all numbers of a kind, from those of each number.

    Args:
        mean: (members, size).
        variance: (members, size).
        alike: (size,), the kind of each number.
    """
    moments = torch.stack([torch.ones_like(mean), mean, variance + mean.square()])
    count, first, second = moments.new_zeros(3, len(mean), mean.shape[1] + 1).index_add_(-1, alike, moments)
    mean = first / count.clamp(min=1)
    return mean, (second / count.clamp(min=1) - mean.square()).clamp(min=0)


class Scale(nn.Module):
    """Running mean and variance of what each member saw, (members, size) each (Chan, Golub, LeVeque 1979)."""

    def __init__(self, members: int, size: int, device: torch.device | str) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(members, size, device=device))
        self.register_buffer("variance", torch.ones(members, size, device=device))
        self.register_buffer("seen", torch.zeros(members, 1, dtype=torch.float64, device=device))
        self.mean: Tensor
        self.variance: Tensor
        self.seen: Tensor

    def forward(self, x: Tensor, alike: Tensor | None = None) -> Tensor:
        """``x`` (..., members, rows, size) with mean 0 and deviation 1, limited to 10 deviations.

        Args:
            x: the numbers.
            alike: (size,) int64; columns of equal numbers have one mean and deviation, and those of 0 stay as they are.
        """
        if alike is None:
            return ((x - self.mean.unsqueeze(1)) * self.factor().unsqueeze(1)).clamp(-10, 10)
        mean, variance = (m[..., alike] for m in together(self.mean, self.variance, alike))
        scaled = ((x - mean.unsqueeze(1)) * (variance + 1e-8).rsqrt().unsqueeze(1)).clamp(-10, 10)
        return torch.where(alike == 0, x, scaled)

    def factor(self) -> Tensor:
        """One by the deviation."""
        return (self.variance + 1e-8).rsqrt()

    def learn(self, x: Tensor, weight: Tensor, all_reduce: Callable[[Tensor], Tensor] = lambda x: x) -> None:
        """Updates mean and variance by some values.

        Args:
            x: (members, rows, size).
            weight: (members, rows), 0 for rows that do not count.
            all_reduce: sums over all processes.
        """
        weight = weight.double().unsqueeze(-1)
        count = all_reduce(weight.sum(1))
        mean = all_reduce((x * weight).sum(1)) / count.clamp(min=1)
        spread = all_reduce(((x - mean.unsqueeze(1)).square() * weight).sum(1))
        both = (self.seen + count).clamp(min=1)
        delta = mean - self.mean
        spread = self.variance * self.seen + spread + delta.square() * self.seen * count / both
        self.variance.copy_(torch.where(self.seen + count > 0, spread / both, self.variance.double()))
        self.mean.add_(delta * count / both)
        self.seen.add_(count)
