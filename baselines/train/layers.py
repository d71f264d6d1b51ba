"""What policies are made of: networks and scales of a population, with the member as the first axis of everything."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..fast.fused import mlp


def _orthogonal(m: int, n: int, gain: float, generator: torch.Generator) -> Tensor:
    """(m, n), of the same bits however many threads torch has, which its decompositions have not by themselves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return nn.init.orthogonal_(torch.empty(m, n), gain, generator)
    finally:
        torch.set_num_threads(threads)


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
        self.memory, self.activation, self.image = memory, activation, len(shape) == 3

        def weight(n: int, *parts: tuple[int, float]) -> nn.Parameter:
            """(members, n, sum of the parts): orthogonal columns, scaled by the gain of their part."""
            return nn.Parameter(torch.stack([
                torch.cat([_orthogonal(m, n, gain, g) for m, gain in parts]).T for g in generators
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

    def _convolve(self, x: Tensor) -> Tensor:
        members = len(x)
        x = x.permute(1, 0, 4, 2, 3).flatten(1, 2)  # a group of channels for each member
        for kernel, offset in zip(self.kernels, self.offsets, strict=True):
            n = kernel.shape[1] // 9
            filters = kernel.mT.reshape(-1, n, 3, 3)
            x = functional.conv2d(x, filters, offset.flatten(), padding=1, groups=members).relu_()
        return x.unflatten(1, (members, -1)).transpose(0, 1).flatten(2)

    def _encode(self, x: Tensor, activate_last: bool, layers: slice) -> Tensor:
        weights, biases = self.layers
        return mlp(x, weights[layers], biases[layers], self.activation, activate_last)

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
        if memory is None:
            x = self._convolve(x) if self.image else x
            return mlp(x, *self.layers, self.activation), x.new_empty(0)
        steps, rows = len(x), x.shape[2]
        x = x.transpose(0, 1).flatten(1, 2)
        x = self._convolve(x) if self.image else x
        x = self._encode(x, True, slice(-1)) if len(self.weights) > 1 else x
        wi, bi, wh, bh = self.gates
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
        out = self._encode(torch.cat(remembered, 1), False, slice(-1, None))
        return out.unflatten(1, (steps, rows)).transpose(0, 1), memory


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

    def forward(self, x: Tensor) -> Tensor:
        """``x`` (..., members, rows, size) with mean 0 and deviation 1, limited to 10 deviations."""
        return ((x - self.mean.unsqueeze(1)) * self.factor().unsqueeze(1)).clamp(-10, 10)

    def factor(self) -> Tensor:
        """One by the deviation."""
        return (self.variance + 1e-8).rsqrt()

    def learn(self, x: Tensor, weight: Tensor, total: Any = lambda x: x) -> None:
        """Lets values enter the mean and variance.

        Args:
            x: (members, rows, size).
            weight: (members, rows), 0 for rows that do not count.
            total: sums over all processes.
        """
        weight = weight.double().unsqueeze(-1)
        count = total(weight.sum(1))
        mean = total((x * weight).sum(1)) / count.clamp(min=1)
        spread = total(((x - mean.unsqueeze(1)).square() * weight).sum(1))
        both = (self.seen + count).clamp(min=1)
        delta = mean - self.mean
        spread = self.variance * self.seen + spread + delta.square() * self.seen * count / both
        self.variance.copy_(torch.where(self.seen + count > 0, spread / both, self.variance.double()))
        self.mean.add_(delta * count / both)
        self.seen.add_(count)
