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

    size: int = param(8, low=2, high=64, doc="rows and columns of the floor")
    dirt: float = param(0.3, low=0.0, high=1.0, doc="share of the cells that are dirty at the start")
    step_cost: float = param(0.02, doc="taken from the reward in every step that cleans nothing")


@register
class NewGame(EnvDef):
    """A robot sweeps a floor of square cells, as fast as it can.

    Rows go down, columns to the right. The edge stops the robot.

    **Start.** The robot is on any cell. Each cell is dirty with probability `dirt`.

    **Actions.** `Discrete(4)`: up, right, down, left. An action out of range counts as 0.

    **Observation.** `Box(size, size, 2)`, int8: whether a cell is dirty, and whether the robot is on it.

    **Reward.** 1 for a dirty cell, which is clean from then on; -`step_cost` for any other.

    **End.** The floor is clean. Time limit: 200 steps.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    max_episode_steps = 200
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}
    render_fps = 10

    def lanes(self, cfg: NewGameConfig) -> int:
        """So many threads of a GPU share the cells of an env."""
        return 32

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """The floor, as a picture with two channels."""
        return spaces.Box(0, 1, (cfg.size, cfg.size, 2), np.int8)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Discrete:
        """Up, right, down, left."""
        return spaces.Discrete(4)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"dirty cells": 1, "the robot": 1}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "dirty": Field("bool", ("size", "size"), "cells that are to be swept"),
            "row": Field("int32", doc="the robot's"),
            "column": Field("int32", doc="the robot's"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env."""
        canvas.background("paper")
        canvas.view(0, 0, cfg.size, cfg.size, y_down=True, pad=10, hud=True)
        canvas.rect(0, 0, cfg.size, cfg.size, fill="white")
        for row, column in np.argwhere(state["dirty"]).tolist():
            canvas.rect(column, row, column + 1, row + 1, fill="brown")
        canvas.grid(cfg.size, cfg.size)
        canvas.circle(int(state["column"]) + 0.5, int(state["row"]) + 0.5, 0.4, fill="blue", outline="white")
        left = int(np.count_nonzero(state["dirty"]))
        canvas.hud(left=f"NewGame, {left} to sweep", right=f"step {int(state['elapsed_steps'])}")
