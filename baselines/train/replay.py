"""Positions that AlphaZero learns from: a memory of the latest ones, and the ways in which a board may be turned."""

from __future__ import annotations

import torch
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


def varied(observation: Tensor, policy: Tensor, symmetry: str) -> tuple[Tensor, Tensor]:
    """Equal parts of a minibatch, each turned in one of the ways of a symmetry.

    Args:
        observation: (B, rows, columns, planes).
        policy: (B, A): of the columns, or of all cells and then of actions that stay the same, such as passing.
        symmetry: a key of `SYMMETRIES`.
    """
    ways = SYMMETRIES[symmetry]
    if len(ways) == 1:
        return observation, policy
    rows, columns = observation.shape[1:3]
    moves = rows * columns if policy.shape[1] >= rows * columns else columns
    board, rest = policy[:, :moves].unflatten(1, (-1, columns)), policy[:, moves:]
    seen, board = (
        torch.cat([turned(part, *way) for part, way in zip(x.chunk(len(ways)), ways, strict=False)])
        for x in (observation, board)
    )
    return seen, torch.cat([board.flatten(1), rest], 1)


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
