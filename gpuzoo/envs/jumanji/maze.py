"""Maze."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.render import Canvas

TOY = """
 #
 # ##
 #
   ##

"""


@dataclasses.dataclass(frozen=True)
class MazeConfig(InstanceConfig):
    """The maze."""

    num_rows: int = param(10, low=2, high=100, doc="rows of the maze")
    num_cols: int = param(10, low=2, high=100, doc="columns of the maze")
    generator: Literal["random", "toy"] = param("random", doc="a drawn maze, or always Jumanji's toy of 5 x 5 cells")


class Maze(OfInstances):
    """A walker looks for the target in a maze, which it sees from above.

    Mazes are drawn by recursive division. A chamber of at least 2 x 2 cells gets a wall across its longer side, or its
    width if it is a square, at an odd row or column of the chamber. The wall has one gap, at an even place. All places
    have the same chance. Both parts are divided in turn. The walker and the target are put into two open cells.

    **Instances.** ``instances`` is a dataset with `walls`, (instances, num_rows, num_cols) of 0 and 1, `agent` and
    `target`, (instances, 2) each: row and column of open cells. Each episode takes one of them at random, or always the
    one that ``instance`` names, which may differ between envs. ``generator="toy"`` always has this maze, with the
    walker in the upper left and the target in the upper right corner:

    .. code-block:: text

        .#...
        .#.##
        .#...
        ...##
        .....

    **Actions.** `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. The action mask holds the moves to open cells. An illegal
    action changes nothing.

    **Observation.** `Box(0, 1, (num_rows, num_cols, 3))`, int8: row, column, channel. The channels are 1 at walls, at
    the walker and at the target.

    **Reward.** 1 for the target.

    **End.** The target, or a cell that the walker cannot leave. Time limit: 100 steps.

    **In Jumanji** the time limit terminates the episode; by default it is the number of cells of the maze. Walker and
    target are observed as rows and columns there, and the number of steps is observed, too.
    """

    id = "Maze-v0"
    Config = MazeConfig
    max_episode_steps = 100
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 Maze-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/maze/"}
    similar = (r"[Mm]aze.*",)
    render_fps = 10

    def parts(self, cfg: MazeConfig) -> dict[str, Part]:
        place = Part((2,), "int32", 0, max(cfg.num_rows, cfg.num_cols) - 1)
        return {"walls": Part((cfg.num_rows, cfg.num_cols), "uint8", 0, 1), "agent": place, "target": place}

    def fault(self, cfg: MazeConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        for name in ("agent", "target"):
            row, column = instance[name]
            if row >= cfg.num_rows or column >= cfg.num_cols or instance["walls"][row, column]:
                return f"the {name}'s cell ({row}, {column}) is not an open cell"
        return ""

    def check(self, cfg: MazeConfig) -> None:
        super().check(cfg)
        if cfg.generator == "toy" and (cfg.num_rows, cfg.num_cols) != (5, 5):
            raise ValueError(f"{self.id}: generator='toy' needs num_rows=5 and num_cols=5.")
        if cfg.generator == "toy" and cfg.instances:
            raise ValueError(f"{self.id}: give either instances or generator='toy', not both.")

    def constants(self, cfg: MazeConfig) -> dict[str, int]:
        cells, toy = cfg.num_rows * cfg.num_cols, cfg.generator == "toy"
        own = {"ROWS": cfg.num_rows, "COLUMNS": cfg.num_cols, "CELLS": cells, "CHAMBERS": cells // 4 + 2}
        return {**super().constants(cfg), **own, **({"INSTANCES": 1} if toy else {})}

    def tables(self, cfg: MazeConfig) -> dict[str, NDArray[Any]]:
        if cfg.generator != "toy":
            return super().tables(cfg)
        walls = [[cell == "#" for cell in line.ljust(5)] for line in TOY.split("\n")[1:6]]
        corners = {"given_agent": np.array([0, 0], np.int32), "given_target": np.array([0, 4], np.int32)}
        return {"given_walls": np.array(walls, np.uint8).reshape(-1), **corners}

    def observation_space(self, cfg: MazeConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.num_rows, cfg.num_cols, 3), np.int8)

    def action_space(self, cfg: MazeConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: MazeConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("wall", "walker", "target"), 1)

    def action_names(self, cfg: MazeConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: MazeConfig) -> dict[str, Field]:
        return {
            "walls": Field("bool", ("CELLS",), "whether each cell is a wall, at num_cols * row + column"),
            "agent": Field("int32", doc="cell of the walker"),
            "target": Field("int32", doc="cell of the target"),
            "chamber": Field(
                "int32", ("CHAMBERS", 4), "chambers to be divided: left, top, width, height", scratch=True
            ),
        }

    def infos(self, cfg: MazeConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"solved": state["agent"] == state["target"]}

    def aspect(self, cfg: MazeConfig) -> float:
        return cfg.num_cols / cfg.num_rows

    def render(self, cfg: MazeConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        columns = cfg.num_cols
        draw_maze(canvas, cfg.num_rows, columns, state["walls"])
        row, column = divmod(int(state["target"]), columns)
        canvas.rect(column + 0.12, row + 0.12, column + 0.88, row + 0.88, fill="green", radius=0.12)
        row, column = divmod(int(state["agent"]), columns)
        canvas.circle(column + 0.5, row + 0.5, 0.34, fill="blue")
        canvas.hud(right=f"step {int(state['elapsed_steps'])}")


def draw_maze(canvas: Canvas, rows: int, columns: int, walls: NDArray[Any]) -> None:
    """The floor and its walls, of which ``walls`` (rows * columns,) says where they are."""
    canvas.background("paper")
    canvas.view(-0.25, -0.25, columns + 0.25, rows + 0.25, y_down=True, hud=True)
    canvas.rect(-0.2, -0.2, columns + 0.2, rows + 0.2, fill="slate")
    canvas.rect(0, 0, columns, rows, fill="white")
    canvas.cached(_draw_walls, rows, columns, np.asarray(walls).astype(np.uint8).tobytes())


def _draw_walls(canvas: Canvas, rows: int, columns: int, walls: bytes) -> None:
    """The walls."""
    for cell in np.flatnonzero(np.frombuffer(walls, np.uint8)):
        row, column = divmod(int(cell), columns)
        canvas.rect(column - 0.02, row - 0.02, column + 1.02, row + 1.02, fill="slate")
