"""NewGame."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo import Canvas, Config, EnvDef, Field, param, register


@dataclasses.dataclass(frozen=True)
class NewGameConfig(Config):
    """Integers are compiled into the kernel; floats can be changed at any time and can differ from env to env."""

    length: int = param(11, low=3, high=1000, doc="number of cells")
    wind: float = param(0.1, low=0.0, high=1.0, doc="probability of a random move in place of the chosen one")
    step_cost: float = param(0.01, doc="taken from the reward in every step")


@register
class NewGame(EnvDef):
    """A walker in a windy corridor wants to get home, to the right end, and must not fall off the left end.

    **Start.** In the middle.

    **Actions.** `Discrete(3)`: 0 walks to the left, 1 stays, 2 walks to the right. An action out of range counts as 1.

    **Observation.** `Box(1)`, float32: the walker's cell, from 0 (left end) to 1 (right end).

    **Reward.** 1 for getting home, -1 for falling off, -`step_cost` in every other step.

    **End.** The walker is at either end. Time limit: 100 steps.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    max_episode_steps = 100
    invalid_action = 1
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}
    render_fps = 10

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Where the walker is."""
        return spaces.Box(0.0, 1.0, (1,), np.float32)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Discrete:
        """Left, stay, right."""
        return spaces.Discrete(3)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"the cell": 1}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return {"left": 1, "stay": 1, "right": 1}

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {"cell": Field("int32", doc="where the walker is, 0..length-1")}

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env."""
        canvas.background("paper")
        canvas.view(0, -1, cfg.length, 2, hud=True)
        for k in range(cfg.length):
            fill = "rose" if k == 0 else "grass" if k == cfg.length - 1 else "white"
            canvas.rect(k, 0, k + 1, 1, fill=fill, outline="line")
        canvas.circle(int(state["cell"]) + 0.5, 0.5, 0.35, fill="blue")
        canvas.hud(left="NewGame", right=f"step {int(state['elapsed_steps'])}")
