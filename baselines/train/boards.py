"""A network for boards, which says of each cell what to do there. The first axis is the member."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .layers import ACTIVATIONS, convolve, orthogonal
from .sets import Dense


class Chosen(torch.autograd.Function):
    """Columns of the last axis, each at most once: the gradient is a selection, too, not a sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, columns: Tensor, back: Tensor) -> Tensor:
        """``x[..., columns]``; ``back`` has the place of each column of ``x`` in it, or ``len(columns)``."""
        ctx.save_for_backward(back)
        return x.gather(-1, columns.expand(*x.shape[:-1], -1))  # half the time of index_select

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Of the columns that are left out, 0."""
        (back,), (gradient,) = ctx.saved_tensors, gradients
        padded = nn.functional.pad(gradient, (0, 1)) if len(back) > gradient.shape[-1] else gradient
        return padded.gather(-1, back.expand(*gradient.shape[:-1], -1)), None, None


class BoardNetwork(nn.Module):
    """Convolutions, then logits of the actions at each cell by one dense layer for all cells, as in AlphaZero.

    A cell is first described by a dense layer of its own channels. Behind the convolutions, mean and maximum over all
    cells go through dense layers. They say what the whole board is worth, and each cell learns of them before it is
    asked for its actions (global pooling, Wu 2019, "Accelerating self-play learning in Go").

    Args:
        generators: of the initial weights, one for each member.
        shape: (height, width, channels) of an observation.
        cells: of each action the cell, counted row by row, and its place among the cell's actions, (actions, 2). Cell
            -1 is for actions without one, such as a pass.
        channels: of the cells' description, and of each 3x3 convolution behind it.
        hidden: sizes of the dense layers of the whole board.
        choices: (outputs for the actions, gain of their initial weights); 0 outputs for none.
        values: the same, of the outputs for the whole board.
        activation: of the dense layers, ``"tanh"`` or ``"relu"``.
    """

    #: what a `Network` says of itself: there are more than dense layers here
    plain, image, sizes = False, True, ()

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        shape: Sequence[int],
        cells: NDArray[np.int64],
        channels: Sequence[int],
        hidden: Sequence[int],
        choices: tuple[int, float],
        values: tuple[int, float],
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.activation, root, height, width = activation, math.sqrt(2), shape[0], shape[1]
        self.describe = Dense(generators, shape[2], channels[0], root)
        self.kernels, self.offsets = nn.ParameterList(), nn.ParameterList()
        for n, m in itertools.pairwise(channels):
            self.kernels.append(nn.Parameter(torch.stack([orthogonal(m, 9 * n, root, g).T for g in generators])))
            self.offsets.append(nn.Parameter(torch.zeros(len(generators), 1, m)))
        sizes = [2 * channels[-1], *hidden]
        self.dense = nn.ModuleList(Dense(generators, n, m, root) for n, m in itertools.pairwise(sizes))
        self.tell = self.each = self.elsewhere = self.whole = None
        if choices[0]:
            here, kinds = cells[:, 0] >= 0, int(cells[:, 1].max()) + 1
            columns = np.where(here, cells[:, 0] * kinds + cells[:, 1], height * width * kinds + np.cumsum(~here) - 1)
            count = height * width * kinds + int((~here).sum())
            back = np.full(count, len(columns))
            back[columns] = np.arange(len(columns))
            self.register_buffer("_columns", torch.from_numpy(columns), persistent=False)
            self.register_buffer("_back", torch.from_numpy(back), persistent=False)
            self.tell = Dense(generators, sizes[-1], channels[-1], root)
            self.each = Dense(generators, channels[-1], kinds, choices[1])
            if not here.all():
                self.elsewhere = Dense(generators, sizes[-1], int((~here).sum()), choices[1])
        if values[0]:
            self.whole = Dense(generators, sizes[-1], *values)
        self._columns: Tensor
        self._back: Tensor
        self.layers: tuple[list[Tensor], list[Tensor]] = ([], [])

    def forward(self, x: Tensor, memory: Tensor | None = None, begins: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits of the actions and the outputs for the whole board, (members, rows, ...); and an empty tensor.

        Args:
            x: (members, rows, height, width, channels).
            memory: unused, as it remembers nothing.
            begins: unused.
        """
        rows, act = x.shape[1], ACTIVATIONS[self.activation]
        y = torch.relu(self.describe(x.flatten(1, 3))).view(*x.shape[:4], -1)
        y = convolve(y, list(self.kernels), list(self.offsets)).permute(0, 1, 3, 4, 2).flatten(2, 3)
        z = torch.cat([y.mean(2), y.amax(2)], -1)
        for layer in self.dense:
            z = act(layer(z))
        out = []
        if self.tell is not None and self.each is not None:
            y = act(y + self.tell(z).unsqueeze(2))
            logits = [self.each(y.flatten(1, 2)).unflatten(1, (rows, -1)).flatten(2)]
            logits += [] if self.elsewhere is None else [self.elsewhere(z)]
            out.append(Chosen.apply(torch.cat(logits, -1), self._columns, self._back))  # type: ignore[no-untyped-call]
        if self.whole is not None:
            out.append(self.whole(z))
        return torch.cat(out, -1), x.new_empty(0)
