"""A toy for many agents: a grid that they share, beams, moves in a random order, and a global state of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo import Canvas, Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class OrchardConfig(Config):
    """The orchard, and what grows there."""

    num_pickers: int = param(6, low=1, high=1000, doc="number of pickers")
    rows: int = param(8, low=2, doc="height of the grid")
    columns: int = param(16, low=2, doc="width of the grid")
    sight: int = param(2, low=1, high=10, doc="how far a picker sees, in cells")
    reach: int = param(4, low=1, doc="length of a beam, in cells")
    frozen_steps: int = param(5, low=1, high=100, doc="steps that a picker stands still once a beam has hit it")
    growth: float = param(0.01, low=0.0, high=1.0, doc="chance of a new apple, for each apple around the cell")


class Orchard(EnvDef):
    """Pickers share an orchard in which apples grow beside apples; where all are taken, none comes back.

    The commons of Perolat et al., "A multi-agent reinforcement learning model of common-pool resource appropriation"
    (2017), in small.

    **Actions.** `Discrete(5)`: stay, forward, turn left, turn right, fire a beam ahead. Pickers act one after the
    other, in a random order that is drawn anew at each step.

    **Observation.** `Box(0, 1, (5, 5, 3), int8)`: the cells around the picker, turned so that it looks to the top:
    whether there is an apple, a picker, or nothing at all because it is outside.

    **State.** `Box(0, 4, (rows, columns, 2), int8)`: apples, and 1 + the direction of the picker.

    **Reward.** 1 for an apple.

    **End.** No apple is left. Time limit: 100 steps.
    """

    id = "Orchard-v0"
    Config = OrchardConfig
    max_episode_steps = 100
    render_fps = 8
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: OrchardConfig) -> dict[str, int]:
        return {"picker": cfg.num_pickers}

    def lanes(self, cfg: OrchardConfig) -> int:
        return 32

    def constants(self, cfg: OrchardConfig) -> dict[str, int]:
        return {"CELLS": cfg.rows * cfg.columns, "VIEW": 2 * cfg.sight + 1}

    def observation_space(self, cfg: OrchardConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (2 * cfg.sight + 1, 2 * cfg.sight + 1, 3), np.int8)

    def action_space(self, cfg: OrchardConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def state_space(self, cfg: OrchardConfig) -> spaces.Box:
        return spaces.Box(0, 4, (cfg.rows, cfg.columns, 2), np.int8)

    def fields(self, cfg: OrchardConfig) -> dict[str, Field]:
        return {
            "cell": Field("int32", ("pickers",), "row * columns + column"),
            "facing": Field("int32", ("pickers",), "0 up, 1 right, 2 down, 3 left"),
            "frozen": Field("int32", ("pickers",), "steps until it may act again"),
            "apple": Field("bool", ("rows", "columns"), "whether there is an apple"),
            "picker_at": Field("int32", ("CELLS",), "1 + the picker in the cell, or 0", scratch=True),
            "hit": Field("uint32", ("CELLS",), "bit of each direction from which a beam came", scratch=True),
            "around": Field("int32", ("CELLS",), "apples in the eight cells around", scratch=True),
        }

    def check(self, cfg: OrchardConfig) -> None:
        if cfg.num_pickers > cfg.rows * cfg.columns:
            raise ValueError(f"Orchard: {cfg.num_pickers} pickers do not fit on {cfg.rows} x {cfg.columns} cells.")

    def aspect(self, cfg: OrchardConfig) -> float:
        return cfg.columns / cfg.rows

    def render(self, cfg: OrchardConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("grass")
        canvas.view(0, 0, cfg.columns, cfg.rows, y_down=True)
        row, column = np.nonzero(state["apple"])
        canvas.circles(np.stack([column + 0.5, row + 0.5], 1), 0.2, "red")
        row, column = np.divmod(state["cell"], cfg.columns)
        colours = ["grey" if steps else "blue" for steps in state["frozen"]]
        canvas.darts(np.stack([column + 0.5, row + 0.5], 1), (state["facing"] - 1) * np.pi / 2, 0.4, colours)
