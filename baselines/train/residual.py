"""The network of AlphaZero."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Two layers and a way around them."""

    def __init__(self, layer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = layer(), layer()

    def forward(self, x: Tensor) -> Tensor:
        """As many features as it gets."""
        out: Tensor = torch.relu(x + self.second(torch.relu(self.first(x))))
        return out


class Network(nn.Module):
    """Residual, with a policy head and a value head: convolutions where an observation is (rows, columns, planes)."""

    def __init__(self, shape: tuple[int, ...], actions: int, channels: int, blocks: int) -> None:
        super().__init__()
        self.image = len(shape) == 3
        size = math.prod(shape[:2]) if self.image else 4
        if self.image:
            self.stem: nn.Module = nn.Conv2d(shape[2], channels, 3, padding=1)
            body = [Block(lambda: nn.Conv2d(channels, channels, 3, padding=1)) for _ in range(blocks)]
        else:
            self.stem = nn.Linear(math.prod(shape), 4 * channels)
            body = [Block(lambda: nn.Linear(4 * channels, 4 * channels)) for _ in range(blocks)]
        self.body = nn.Sequential(*body)
        self.policy = nn.Linear(size * channels, actions)
        self.value = nn.Sequential(nn.Linear(size * channels, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh())
        nn.init.zeros_(self.policy.weight)
        nn.Module.to(self, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, actions) and values (B,) of observations (B, ...)."""
        x = observation.to(self.policy.weight.dtype)
        x = x.permute(0, 3, 1, 2) if self.image else x.flatten(1)
        x = self.body(torch.relu(self.stem(x))).flatten(1)
        return self.policy(x), self.value(x)[:, 0]
