"""Digests of whole episodes of Harvest and Cleanup: a record of all that is compared would be too large."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

LENGTH = 100
#: shares of the actions: four moves, staying, two turns, and the beams
ACTIONS = {
    "Harvest-v0": np.array([3, 3, 4, 3, 2, 2, 2, 2]) / 21,
    "Cleanup-v0": np.array([3, 3, 4, 3, 2, 2, 2, 2, 2]) / 23,
}
#: game -> case -> (parameters, episodes): 1,000 of each game
EPISODES: dict[str, dict[str, tuple[dict[str, Any], int]]] = {
    "Harvest-v0": {
        "default": ({}, 400),
        "nine": ({"num_agents": 9, "beam_length": 3}, 300),
        "collective": ({"num_agents": 3, "view_len": 4, "use_collective_reward": True}, 300),
    },
    "Cleanup-v0": {
        "default": ({}, 400),
        "nine": ({"num_agents": 9, "beam_length": 3}, 300),
        "collective": ({"num_agents": 3, "view_len": 4, "use_collective_reward": True}, 300),
    },
}
TYPES = {"next_place": np.int32, "rewards": np.float64}  # bytes, all the others
NAMES = ("next_cells", "next_beams", "next_place", "next_facing", "rewards", "views")


class Digests:
    """A digest for each episode, of what its steps leave.

    Args:
        count: of the episodes.
    """

    def __init__(self, count: int) -> None:
        self._digests = [hashlib.blake2b(digest_size=8) for _ in range(count)]

    def add(self, k: int, step: Mapping[str, np.ndarray]) -> None:
        """Adds a step of episode k."""
        for name in NAMES:
            self._digests[k].update(np.ascontiguousarray(step[name], TYPES.get(name, np.uint8)).tobytes())

    def done(self) -> np.ndarray:
        """uint8 (episodes, 8)."""
        return np.array([list(digest.digest()) for digest in self._digests], np.uint8)
