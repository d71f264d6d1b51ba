"""Robot warehouse by Jumanji's rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.robot_warehouse.robot_warehouse import HIGHWAY, REQUESTED, SHELF, blocks, draw_warehouse
from gpuzoo.render import Canvas

UP, RIGHT, DOWN, LEFT = range(4)


@dataclasses.dataclass(frozen=True)
class RobotWarehouseConfig(Config):
    """The warehouse, its robots, and what they see."""

    shelf_rows: int = param(2, low=1, high=62, doc="blocks of shelves one above the other")
    shelf_columns: int = param(3, low=1, high=41, doc="blocks of shelves side by side; odd")
    column_height: int = param(8, low=1, high=124, doc="shelves from top to bottom of a block")
    num_agents: int = param(4, low=1, high=127, doc="number of robots")
    sensor_range: int = param(1, low=0, high=16, doc="how many cells far a robot sees")
    request_queue_size: int = param(8, low=0, doc="how many shelves are requested at any time")
    noop_keeps_load: bool = param(False, doc="a robot that does nothing keeps its shelf; in Jumanji it sets it down")


class RobotWarehouse(EnvDef):
    """Robots of a warehouse carry requested shelves to the goals and bring them back, by the rules of Jumanji.

    `RobotWarehouse-v0` has the rules of rware. The differences: robots act one after the other, and a collision ends
    the episode; a robot that does nothing sets its shelf down; all robots get all rewards; and a robot's own cell is
    left out of what it sees of robots.

    **Warehouse.** ``shelf_rows`` x ``shelf_columns`` blocks of shelves, each two wide and ``column_height`` high, with
    corridors around them: (``column_height`` + 1) ``shelf_rows`` + 2 rows and 3 ``shelf_columns`` + 1 columns in all.
    The two goals are in the middle of the last row, and above them, in the lowest row of blocks, two columns without
    shelves.

    **Start.** Robots stand on different cells, in any direction; ``request_queue_size`` of the shelves are requested.
    All is uniform.

    **Actions.** `Discrete(5)`: 0 nothing, 1 forward, 2 turn to the left, 3 turn to the right, 4 load or unload. The
    action mask forbids a loaded robot to go forward to a cell with a shelf. An illegal action does nothing. At the edge
    a robot that goes forward stays.

    Load: a robot on the cell of a shelf lifts it, and carries it along from then on. Unload: it sets its shelf down,
    but not in a corridor or on a goal. Doing nothing unloads, too, a slip of the original that
    ``noop_keeps_load=True`` corrects. A robot without a shelf passes under shelves.

    The robots act in the order of their numbers, all by the masks from before the first one. A robot thus may enter the
    cell that one of lower number has just left, but not the cell that one of higher number is about to leave.

    A requested shelf that any robot carries on a goal counts as delivered. One of the shelves that are not requested is
    then requested, each with the same chance.

    **Observation.** `Box`, float32: row; column; whether loaded; direction, one-hot of up, right, down, left; whether
    in a corridor or on a goal. Then, for each of the cells at most ``sensor_range`` rows and columns away, in reading
    order and without the robot's own cell: whether a robot is there, and its direction, one-hot. Then, for all these
    cells: whether a shelf is there, and whether it is requested.

    **Reward.** For all robots: the number of shelves that were delivered.

    **End.** A collision: two robots have come to the same cell, or one has come to the cell that one of higher number
    was about to leave. Time limit: 500 steps.

    **As in the original**, in the last observation after a collision a robot that was run over does not find itself.
    What follows in its observation is shifted by five, and what would lie beyond the end is written at the end.

    **In Jumanji** one agent acts for all robots. The time limit terminates the episode, and the number of steps is
    observed.
    """

    id = "RobotWarehouse-jumanji-v0"
    Config = RobotWarehouseConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "The masks of an env are 20 bytes, which begin and end inside of sectors.",
    }
    max_episode_steps = 500
    action_mask = True
    chooses = True
    interaction = "cooperative"
    reference = "jumanji==1.1.2 RobotWarehouse-v0"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/robot_warehouse/",
        "Papoudakis et al. 2021": "https://arxiv.org/abs/2006.07869",
    }
    similar = (r"rware.*", r"[Rr]obot_?[Ww]arehouse.*")
    render_fps = 6

    def agents(self, cfg: RobotWarehouseConfig) -> dict[str, int]:
        return {"agent": cfg.num_agents}

    def check(self, cfg: RobotWarehouseConfig) -> None:
        plan = blocks(cfg.shelf_rows, cfg.shelf_columns, cfg.column_height)
        shelves = int((plan == SHELF).sum())
        if cfg.num_agents > plan.size:
            raise ValueError(f"{self.id}: {cfg.num_agents} robots do not fit on {plan.size} cells.")
        if cfg.request_queue_size >= max(shelves, 1):
            raise ValueError(f"{self.id}: request_queue_size must be less than the number of shelves, {shelves}.")

    def constants(self, cfg: RobotWarehouseConfig) -> dict[str, int]:
        plan = blocks(cfg.shelf_rows, cfg.shelf_columns, cfg.column_height)
        shelves = int((plan == SHELF).sum())
        sizes = {"ROWS": plan.shape[0], "COLUMNS": plan.shape[1], "CELLS": plan.size, "SHELVES": shelves}
        return {**sizes, "SEEN": _seen(cfg)}

    def tables(self, cfg: RobotWarehouseConfig) -> dict[str, NDArray[Any]]:
        plan = blocks(cfg.shelf_rows, cfg.shelf_columns, cfg.column_height).ravel()
        home = np.where(plan == SHELF, np.cumsum(plan == SHELF), 0)
        return {"highway": (plan & HIGHWAY > 0).astype(np.uint8), "home": home.astype(np.int16)}

    def observation_space(self, cfg: RobotWarehouseConfig, group: str) -> spaces.Box:
        rows, columns = blocks(cfg.shelf_rows, cfg.shelf_columns, cfg.column_height).shape
        high = np.ones(_seen(cfg), np.float32)
        high[:2] = rows - 1, columns - 1
        return spaces.Box(np.zeros_like(high), high, dtype=np.float32)

    def action_space(self, cfg: RobotWarehouseConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def observation_names(self, cfg: RobotWarehouseConfig, group: str) -> dict[str, int]:
        cells = (2 * cfg.sensor_range + 1) ** 2
        names = {"row": 1, "column": 1, "whether loaded": 1, "direction, one-hot of up, right, down, left": 4}
        names["whether in a corridor or on a goal"] = 1
        if cells > 1:
            names[f"for each of {cells - 1} cells, in reading order: robot, its direction, one-hot"] = 5 * (cells - 1)
        return names | {f"for each of {cells} cells, in reading order: shelf, whether it is requested": 2 * cells}

    def action_names(self, cfg: RobotWarehouseConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("nothing", "forward", "turn to the left", "turn to the right", "load or unload"), 1)

    def fields(self, cfg: RobotWarehouseConfig) -> dict[str, Field]:
        return {
            "robots": Field("uint8", ("CELLS",), "number of the robot on each cell plus 1, or 0; row by row"),
            "shelves": Field("int16", ("CELLS",), "number of the shelf on each cell plus 1, or 0; row by row"),
            "requested": Field("bool", ("SHELVES",), "whether each shelf is requested"),
            "place": Field("int32", ("agents",), "cell of each robot"),
            "direction": Field("int8", ("agents",), "0 up, 1 right, 2 down, 3 left"),
            "carrying": Field("bool", ("agents",), "whether the robot carries the shelf that is on its cell"),
            "move": Field("int32", ("agents",), "what each robot does", scratch=True),
        }

    def aspect(self, cfg: RobotWarehouseConfig) -> float:
        rows, columns = blocks(cfg.shelf_rows, cfg.shelf_columns, cfg.column_height).shape
        return float(columns / rows)

    def render(self, cfg: RobotWarehouseConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        plan = blocks(cfg.shelf_rows, cfg.shelf_columns, cfg.column_height)
        shelves, requested = np.asarray(state["shelves"]), np.asarray(state["requested"]) != 0
        cells = np.where(shelves > 0, SHELF | REQUESTED * requested[np.maximum(shelves, 1) - 1], 0)
        there = {UP: 0, DOWN: 1, LEFT: 2, RIGHT: 3}
        robots = [
            (int(cell) % plan.shape[1], int(cell) // plan.shape[1], there[int(direction)], bool(carrying))
            for cell, direction, carrying in zip(state["place"], state["direction"], state["carrying"], strict=True)
        ]
        draw_warehouse(canvas, plan, cells.reshape(plan.shape), robots, int(state["elapsed_steps"]))


def _seen(cfg: RobotWarehouseConfig) -> int:
    """Numbers of an observation."""
    cells = (2 * cfg.sensor_range + 1) ** 2
    return 8 + 5 * (cells - 1) + 2 * cells
