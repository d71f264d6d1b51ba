"""Cleaner."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.envs.jumanji.maze import draw_maze
from gpuzoo.render import CYCLE, Canvas


@dataclasses.dataclass(frozen=True)
class CleanerConfig(InstanceConfig):
    """The maze, the cleaners, and what a step costs."""

    num_rows: int = param(10, low=2, high=100, doc="rows of the maze")
    num_cols: int = param(10, low=2, high=100, doc="columns of the maze")
    num_agents: int = param(3, low=1, high=64, doc="number of cleaners")
    penalty_per_timestep: float = param(0.5, doc="subtracted from the reward of each step")


class Cleaner(OfInstances):
    """Cleaners walk through a maze together until all of it is clean.

    All cells but walls are dirty at the beginning, except for the upper left one, where all cleaners begin. A cell is
    clean once a cleaner has come to it. Several cleaners may be in one cell. Mazes are drawn as those of `Maze-v0`.

    **Instances.** ``instances`` is a dataset with `walls`, (instances, num_rows, num_cols) of 0 and 1, the upper left
    cell open. Each episode takes one of them at random, or always the one that ``instance`` names, which may differ
    between envs.

    **Actions.** `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. The action mask holds the moves to cells without a wall.

    **Observation.** `Box(0, num_agents, (num_rows, num_cols, 4))`, int8: row, column, channel. The channels are 1 at
    dirty cells, at walls and at the cleaner; the last one is the number of others in each cell.

    **State.** Jumanji's observation, `Box(num_rows num_cols + 2 num_agents)`, int8: 0 for a dirty cell, 1 for a clean
    one and 2 for a wall; row and column of each cleaner.

    **Reward.** All cleaners get the number of cells that became clean, minus ``penalty_per_timestep``.

    **End.** All cells are clean, or an action was illegal. Its cleaner stays where it is, and the others move. Time
    limit: 100 steps.

    **In Jumanji** one agent acts for all cleaners. The time limit terminates the episode; by default it is the number
    of cells of the maze. The number of steps is observed. In a maze that is not square, Jumanji confuses the numbers of
    rows and of columns at the edges.
    """

    id = "Cleaner-v0"
    Config = CleanerConfig
    max_episode_steps = 100
    invalid_action = -1
    action_mask = True
    chooses = True
    interaction = "cooperative"
    reference = "jumanji==1.1.2 Cleaner-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/cleaner/"}
    similar = (r"[Cc]leaner.*",)
    render_fps = 10

    def agents(self, cfg: CleanerConfig) -> dict[str, int]:
        return {"cleaner": cfg.num_agents}

    def parts(self, cfg: CleanerConfig) -> dict[str, Part]:
        return {"walls": Part((cfg.num_rows, cfg.num_cols), "uint8", 0, 1)}

    def fault(self, cfg: CleanerConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        return "the upper left cell must be open" if instance["walls"][0, 0] else ""

    def constants(self, cfg: CleanerConfig) -> dict[str, int]:
        cells = cfg.num_rows * cfg.num_cols
        own = {"ROWS": cfg.num_rows, "COLUMNS": cfg.num_cols, "CELLS": cells, "CHAMBERS": cells // 4 + 2}
        return {**super().constants(cfg), **own}

    def observation_space(self, cfg: CleanerConfig, group: str) -> spaces.Box:
        return spaces.Box(0, max(cfg.num_agents, 1), (cfg.num_rows, cfg.num_cols, 4), np.int8)

    def state_space(self, cfg: CleanerConfig) -> spaces.Box:
        high = [2] * (cfg.num_rows * cfg.num_cols) + [cfg.num_rows - 1, cfg.num_cols - 1] * cfg.num_agents
        return spaces.Box(np.zeros(len(high), np.int8), np.array(high, np.int8), dtype=np.int8)

    def action_space(self, cfg: CleanerConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: CleanerConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("dirty", "wall", "the cleaner itself", "other cleaners"), 1)

    def action_names(self, cfg: CleanerConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: CleanerConfig) -> dict[str, Field]:
        return {
            "walls": Field("bool", ("CELLS",), "whether each cell is a wall, at num_cols * row + column"),
            "dirty": Field("bool", ("CELLS",), "whether each cell is dirty"),
            "num_dirty": Field("int32", doc="number of dirty cells"),
            "place": Field("int32", ("agents",), "cell of each cleaner"),
            "chamber": Field(
                "int32", ("CHAMBERS", 4), "chambers to be divided: left, top, width, height", scratch=True
            ),
        }

    def infos(self, cfg: CleanerConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        open_cells, dirty = (state["walls"] == 0).sum(1), state["num_dirty"]
        return {"num_dirty_tiles": dirty, "ratio_dirty_tiles": dirty / open_cells, "solved": dirty == 0}

    def aspect(self, cfg: CleanerConfig) -> float:
        return cfg.num_cols / cfg.num_rows

    def render(self, cfg: CleanerConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        columns = cfg.num_cols
        draw_maze(canvas, cfg.num_rows, columns, state["walls"])
        for cell in np.flatnonzero(state["dirty"]).tolist():
            canvas.cached(_dirt, cell % columns, cell // columns)
        places = np.asarray(state["place"])
        for a, cell in enumerate(places.tolist()):
            before, here = int((places[:a] == cell).sum()), int((places == cell).sum())
            aside = 0.3 * (before - (here - 1) / 2) / max(1.0, (here - 1) / 2)
            canvas.circle(cell % columns + 0.5 + aside, cell // columns + 0.5, 0.3, fill=CYCLE[a % len(CYCLE)])
        canvas.hud(left=f"{int(state['num_dirty'])} dirty cells", right=f"step {int(state['elapsed_steps'])}")


def _dirt(canvas: Canvas, x: int, y: int) -> None:
    """A dirty cell."""
    canvas.rect(x + 0.06, y + 0.06, x + 0.94, y + 0.94, fill="sand", radius=0.06)
    canvas.circles(np.add([[0.3, 0.35], [0.65, 0.3], [0.45, 0.68], [0.74, 0.7]], [x, y]), 0.05, "brown")
