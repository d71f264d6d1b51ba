"""Experts: programs that say what they would do. DAgger learns from them, and they can play."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.tools.players import EXPERT, imported

from .actions import Actions

UNWANTED = -1e3  # the logit of what an expert would not do: it is done where there is nothing else


class Expert:
    """A program that says which actions it would take.

    The program is called with the name of a group and observations (rows, ...). It returns a tensor or an array (rows,
    choices) that is nonzero where it would take an action, the parts of actions side by side as in a mask. A row of
    zeros says nothing. If it is a class, an instance of it is called, which may remember what it saw: the rows of each
    step are in the same order.

    Args:
        game: which is played.
        name: of the program, ``"module:function"``; by default the game's own.

    Raises:
        ValueError: there is no such program, or the game has none of its own.
    """

    def __init__(self, game: str | type[EnvDef], name: str = "") -> None:
        env = registry.get(game)
        self.name = name or env.expert
        if not self.name:
            raise ValueError(f"{env.id} has no expert of its own: choose another player than {EXPERT!r}.")
        program = imported(self.name, "expert")
        self._program = program() if isinstance(program, type) else program

    def __call__(self, group: str, observation: Tensor, choices: int) -> Tensor:
        """Which actions it would take, bool (rows, choices).

        Args:
            group: of the agents.
            observation: (rows, ...).
            choices: of an action, those of all parts together.

        Raises:
            ValueError: it returned another shape.
        """
        found = torch.as_tensor(self._program(group, observation), device=observation.device)
        if found.shape != (len(observation), choices):
            expected = (len(observation), choices)
            raise ValueError(f"the expert {self.name} must return shape {expected}, not {tuple(found.shape)}.")
        return found != 0


class ExpertPlayer:
    """An expert in the place of a policy: it takes any of the actions that it would take, and elsewhere a legal one.

    Args:
        expert: who plays.
        group: of agents.
        space: of one agent's action.
        device: of the observations.

    Raises:
        ValueError: actions that are not choices.
    """

    memory_size, recurrent = 0, False

    def __init__(
        self, expert: Expert, group: str, space: spaces.Space[Any], device: torch.device | str = "cpu"
    ) -> None:
        self.expert, self.group, self.actions = expert, group, Actions(space, device)
        self.log_std = torch.zeros(1, 0, device=device)
        if not self.actions.discrete:
            raise ValueError(f"an expert plays where actions are choices, but those of {group!r} are {space}.")

    def act(
        self, observation: Tensor, memory: Tensor | None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """Logits (1, rows, outputs) for observations (1, rows, ...), and no memory."""
        wanted = self.expert(self.group, observation[0], sum(self.actions.nvec))
        return self.actions.padded(torch.where(wanted, 0.0, UNWANTED)).unsqueeze(0), None
