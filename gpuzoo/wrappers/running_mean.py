"""Running mean and variance on the device."""

from __future__ import annotations

from collections.abc import Mapping

import torch


class RunningMeanStd:
    """Mean and variance of all values seen so far, as ``gymnasium.wrappers.utils.RunningMeanStd`` has them.

    The tensors are float64 and updated in place, without waiting for the device.

    Args:
        shape: shape of one value.
        device: where the tensors are.
        epsilon: weight of the initial mean 0 and variance 1.

    Attributes:
        mean: float64 (shape).
        var: float64 (shape), of the population.
        count: float64 (), number of values.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device, epsilon: float = 1e-4) -> None:
        self.mean = torch.zeros(shape, dtype=torch.float64, device=device)
        self.var = torch.ones(shape, dtype=torch.float64, device=device)
        self.count = torch.full((), epsilon, dtype=torch.float64, device=device)

    def update(self, values: torch.Tensor, mask: torch.Tensor) -> None:
        """Adds some rows of a batch.

        Args:
            values: (rows, *shape), any dtype. What rows outside of the mask hold does not matter.
            mask: bool (rows,), the rows to add; there may be none.
        """
        mask = mask.reshape(-1, *(1 for _ in self.mean.shape))
        values = values.to(torch.float64)
        added = mask.sum(dtype=torch.float64)
        mean = torch.where(mask, values, 0).sum(0) / added.clamp(min=1)
        squares = torch.where(mask, values - mean, 0).square().sum(0)
        total = self.count + added
        delta = mean - self.mean
        # https://en.wikipedia.org/wiki/Algorithms_for_calculating_variance#Parallel_algorithm
        squares += self.var * self.count + delta.square() * (self.count * added / total)
        self.mean += delta * (added / total)
        self.var.copy_(squares / total)
        self.count.copy_(total)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Copies of the tensors, for `load_state_dict`."""
        return {name: getattr(self, name).clone() for name in ("mean", "var", "count")}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Goes on from what `state_dict` gave, on any device.

        Raises:
            KeyError: a tensor is missing.
            ValueError: a tensor has another shape.
        """
        for name in ("mean", "var", "count"):
            mine, other = getattr(self, name), state[name]
            if mine.shape != other.shape:
                raise ValueError(f"{name} has shape {tuple(other.shape)}, but here it must be {tuple(mine.shape)}.")
            mine.copy_(other)
