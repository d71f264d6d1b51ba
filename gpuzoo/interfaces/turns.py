"""Rows of the agents to move, in games in turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuzoo import tensors
from gpuzoo.core.host import to_host
from gpuzoo.core.simulator import Simulator


def check_all_observe(kwargs: dict[str, Any], where: str) -> None:
    """Refuses ``observers="mover"`` where each agent has a view of its own.

    Raises:
        ValueError: it is there.
    """
    if kwargs.get("observers", "all") == "mover":
        raise ValueError(f"{where} has an observation for each agent: observers='mover' is for make_vec and Simulator.")


class Turns:
    """Says who moved in a step, and takes the actions of those who move.

    Args:
        simulator: of a game in turns, whose observers are the movers.
    """

    def __init__(self, simulator: Simulator) -> None:
        assert simulator.env.turn is not None
        self._simulator, self._turn = simulator, simulator.env.turn
        #: names of infos, and of the arrays that they are
        self.told = {"player": self._turn, "rewards": "reward"}
        self._moved = simulator.backend.copied(simulator.arrays[self._turn])
        self._tensor: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Turns, (self._simulator,)  # a copy reads the copy of the simulator

    def step(self) -> None:
        """A step with the actions that were written for agent 0, and are the movers'."""
        sim = self._simulator
        action = sim.arrays["action"]
        with sim.backend.ordered():
            given = sim.xp.broadcast_to(action[:, :1], action[:, 1:].shape)
        sim.backend.write(action[:, 1:], given)
        sim.backend.write(self._moved, sim.arrays[self._turn])
        sim.step()

    def of_mover(self, array: Any) -> Any:
        """What an array (num_envs, agents) has for those who made the last move, (num_envs, 1)."""
        if isinstance(array, np.ndarray):
            return np.take_along_axis(array, to_host(self._moved)[:, None].astype(np.int64), 1)
        if tensors.is_tensor(array):
            if self._tensor is None:
                self._tensor = tensors.as_tensor(self._moved)
            return array.gather(1, self._tensor.long()[:, None])
        with self._simulator.backend.ordered():
            return self._simulator.xp.take_along_axis(array, self._moved[:, None].astype("int64"), 1)
