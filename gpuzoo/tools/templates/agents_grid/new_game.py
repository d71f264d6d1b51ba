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

    num_gatherers: int = param(4, low=2, high=64, doc="number of gatherers")
    size: int = param(8, low=2, high=64, doc="rows and columns of the orchard")
    apples: float = param(0.2, low=0.0, high=1.0, doc="share of the cells that have an apple at the start")
    growth: float = param(0.005, low=0.0, high=1.0, doc="probability of an apple on an empty cell, per step")


@register
class NewGame(EnvDef):
    """Gatherers walk over a square orchard and pick the apples, which grow again.

    Rows go down, columns to the right. Gatherers may share a cell; the edge stops them.

    **Start.** Each gatherer is on any cell. Each cell has an apple with probability `apples`.

    **Actions.** `Discrete(5)`: stay, up, right, down, left. All move at once. An action out of range counts as 0.

    **Observation.** `Box(size, size, 3)`, int8: where there are apples, the gatherer itself, and others.

    **Reward.** 1 for an apple. Gatherers who come to it in the same step share it.

    **End.** Time limit: 100 steps.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    max_episode_steps = 100
    interaction = "mixed"
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}
    render_fps = 10

    def agents(self, cfg: NewGameConfig) -> dict[str, int]:
        """Groups of agents, in order, and their sizes."""
        return {"gatherer": cfg.num_gatherers}

    def lanes(self, cfg: NewGameConfig) -> int:
        """So many threads of a GPU share the agents and cells of an env."""
        return 32

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Of one agent: the orchard, as a picture with three channels."""
        return spaces.Box(0, 1, (cfg.size, cfg.size, 3), np.int8)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Discrete:
        """Of one agent: stay, up, right, down, left."""
        return spaces.Discrete(5)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"apples": 1, "the gatherer itself": 1, "others": 1}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return dict.fromkeys(("stay", "up", "right", "down", "left"), 1)

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "apple": Field("bool", ("size", "size"), "cells with an apple"),
            "row": Field("int32", ("gatherers",), "where each gatherer is"),
            "column": Field("int32", ("gatherers",), "where each gatherer is"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env."""
        canvas.background("paper")
        canvas.view(0, 0, cfg.size, cfg.size, y_down=True, pad=10, hud=True)
        canvas.rect(0, 0, cfg.size, cfg.size, fill="grass")
        canvas.grid(cfg.size, cfg.size, colour="white")
        canvas.circles(np.argwhere(state["apple"])[:, ::-1] + 0.5, 0.2, "red")
        canvas.circles(np.stack([state["column"], state["row"]], 1) + 0.5, 0.35, "blue", outline="white")
        apples = int(np.count_nonzero(state["apple"]))
        canvas.hud(left=f"NewGame, {apples} apples", right=f"step {int(state['elapsed_steps'])}")
