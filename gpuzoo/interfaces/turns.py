"""Rows of the agents to move, in games in turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuzoo import tensors
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
        self._envs = np.arange(simulator.num_envs)
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
        """What an array (num_envs, agents) has for those who made the last move, (num_envs,)."""
        if isinstance(array, np.ndarray):
            return array[self._envs, self._simulator.backend.to_numpy(self._moved)]
        if tensors.is_tensor(array):
            if self._tensor is None:
                self._tensor = tensors.as_tensor(self._moved)
            return array.gather(1, self._tensor.long()[:, None])[:, 0]
        # CuPy would compile an index by arrays when it is first used, so the rows are counted on the host.
        places = self._envs * array.shape[1] + self._simulator.backend.to_numpy(self._moved)
        with self._simulator.backend.ordered():
            where, numbers = self._simulator.xp.asarray(places), array.reshape(-1)
        return self._simulator.backend.take(numbers, where)
