"""Positions that AlphaZero learns from: a memory of the latest ones, and the ways in which a board may be turned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: by name: quarter turns of a board, and whether it is then seen in a mirror
SYMMETRIES = {
    "none": [(0, False)],
    "mirror": [(0, False), (0, True)],
    "turn": [(0, False), (2, False)],
    "square": [(turns, mirrored) for mirrored in (False, True) for turns in range(4)],
}


def turned(board: Tensor, turns: int, mirrored: bool) -> Tensor:
    """Boards (B, rows, columns, ...) after some quarter turns, and seen in a mirror."""
    board = board.rot90(turns, (1, 2))
    return board.flip(2) if mirrored else board


class Symmetry:
    """Ways to turn the boards of a game that change nothing in it.

    Args:
        name: a key of `SYMMETRIES`.
        shape: of an observation: (rows, columns, planes).
        cells: where actions lie on the board, (actions, 2), as `Layout.action_cells` has it.
        device: of the minibatches.

    Raises:
        ValueError: actions of this game cannot be turned in this way.
    """

    def __init__(
        self, name: str, shape: Sequence[int], cells: NDArray[np.int64] | None, device: torch.device | str = "cpu"
    ) -> None:
        self.ways, self._orders = SYMMETRIES[name], list[Tensor]()
        if len(self.ways) == 1:
            return
        if cells is None or len(shape) != 3 or cells[:, 1].any():
            raise ValueError(
                f"symmetry {name!r} is for games with at most one action on each cell (`action_cells`): use 'none'."
            )
        self._orders = [self._order(name, shape, cells[:, 0], *way).to(device) for way in self.ways]

    @staticmethod
    def _order(name: str, shape: Sequence[int], cells: NDArray[np.int64], turns: int, mirrored: bool) -> Tensor:
        """Which action becomes the k-th. Actions without a cell stay as they are."""
        rows, columns, _ = shape
        there = turned(torch.arange(rows * columns).view(1, rows, columns), turns, mirrored)[0]
        action_at = {int(cell): action for action, cell in enumerate(cells) if cell >= 0}
        came_from = there.flatten().tolist()
        if there.shape != (rows, columns) or any(came_from[cell] not in action_at for cell in action_at):
            raise ValueError(f"symmetry {name!r} does not fit this game: a turned action is no action there.")
        return torch.tensor([action_at[came_from[cell]] if cell >= 0 else k for k, cell in enumerate(cells)])

    def varied(self, observation: Tensor, policy: Tensor) -> tuple[Tensor, Tensor]:
        """Equal parts of a minibatch, each turned in one of the ways.

        Args:
            observation: (B, rows, columns, planes).
            policy: (B, A).
        """
        if len(self.ways) == 1:
            return observation, policy
        parts = zip(observation.chunk(len(self.ways)), self.ways, strict=False)
        policies = zip(policy.chunk(len(self.ways)), self._orders, strict=False)
        return torch.cat([turned(x, *way) for x, way in parts]), torch.cat([x[:, order] for x, order in policies])


class Replay:
    """The latest positions, in a ring: what was seen, what search made of the policy, and how the game went on."""

    def __init__(self, capacity: int, observation: Tensor, actions: int) -> None:
        device = observation.device
        self.observation = torch.zeros((capacity, *observation.shape[1:]), dtype=observation.dtype, device=device)
        self.policy = torch.zeros((capacity, actions), device=device)
        self.value = torch.zeros(capacity, device=device)
        self.capacity, self.count = capacity, 0

    def add(self, observation: Tensor, policy: Tensor, value: Tensor) -> None:
        """Puts positions (B, ...) in the place of the oldest."""
        rows = torch.arange(self.count, self.count + len(value), device=value.device) % self.capacity
        self.observation[rows], self.policy[rows], self.value[rows] = observation, policy, value
        self.count += len(value)

    def sample(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Observations, policies and values of some positions, each of them drawn from all."""
        rows = torch.randint(min(self.count, self.capacity), (size,), device=self.value.device)
        return self.observation[rows], self.policy[rows], self.value[rows]
