"""Where chosen transitions lie in the tensors of a rollout."""

from __future__ import annotations

import torch
from torch import Tensor


class Places:
    """Where (members, n) chosen transitions lie in tensors (steps, members, rows, ...).

    Args:
        shape: (steps, members, rows) of the tensors.
        index: (members, n), number of the transition among its member's: step * rows + row.
    """

    def __init__(self, shape: tuple[int, int, int], index: Tensor) -> None:
        _, members, rows = shape
        self._shape = index.shape
        self._flat = index
        if members > 1:
            step = index.div(rows, rounding_mode="floor")
            self._flat = index + (step * (members - 1) + torch.arange(members, device=index.device)[:, None]) * rows
        self._flat = self._flat.flatten()

    def take(self, x: Tensor) -> Tensor:
        """(steps, members, rows, ...) -> (members, n, ...)."""
        return x.flatten(0, 2).index_select(0, self._flat).unflatten(0, self._shape)

    def put(self, x: Tensor, values: Tensor) -> Tensor:
        """Writes (members, n, ...) into ``x`` (steps, members, rows, ...) and returns it."""
        x.flatten(0, 2)[self._flat] = values.flatten(0, 1)
        return x
