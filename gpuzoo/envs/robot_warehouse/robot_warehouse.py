"""RobotWarehouse."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import CYCLE, Canvas, fade, mix

SIZES = {"tiny": (1, 3), "small": (2, 3), "medium": (2, 5), "large": (3, 5)}
LAYERS = ("shelves", "requests", "agents", "agent_direction", "agent_load", "goals", "accessible")
SHELF, REQUESTED, ROBOT, DIRECTION, LOADED, HIGHWAY, WALL, GOAL = 1, 2, 4, 8 | 16, 32, 64, 128, 64 | 128
TOGGLE_LOAD = 4
# where a robot looks after each action, by where it looked: 0 up, 1 down, 2 left, 3 right
TURNS = np.array([[0, 1, 2, 3], [0, 1, 2, 3], [2, 3, 1, 0], [3, 2, 0, 1], [0, 1, 2, 3]])
COLOURS = [colour for colour in CYCLE if colour != "red"]

_NAME = re.compile(
    r"rware(?P<type>-img|-imgdict)?(?P<still>-Nd)?(-(?P<sight>\d+)s)?"
    r"-((?P<size>tiny|small|medium|large)|(?P<rows>\d+)x(?P<cols>\d+))(-(?P<height>\d+)h)?"
    r"-(?P<robots>\d+)ag((?P<difficulty>-easy|-hard)|-(?P<requests>\d+)req-(?P<reward>indiv|global|twostage))?-v2"
)


@dataclasses.dataclass(frozen=True)
class RobotWarehouseConfig(Config):
    """The options of rware's Warehouse, by its names; the defaults are those of rware-tiny-2ag-v2."""

    shelf_columns: int = param(3, low=1, high=41, doc="blocks of shelves side by side; odd")
    column_height: int = param(8, low=1, high=124, doc="shelves from top to bottom of a block")
    shelf_rows: int = param(1, low=1, high=62, doc="blocks of shelves one above the other")
    n_agents: int = param(2, low=1, high=127, doc="number of robots")
    msg_bits: int = param(0, low=0, high=32, doc="bits that a robot shows to those who see it")
    sensor_range: int = param(1, low=0, high=16, doc="how many cells far a robot sees")
    request_queue_size: int = param(2, low=0, doc="how many shelves are requested at any time")
    max_inactivity_steps: int = param(0, low=0, doc="steps without a delivery after which the episode ends; 0: never")
    reward_type: Literal["global", "individual", "two_stage"] = param("individual", doc="who is rewarded for what")
    layout: str = param("", doc="a map instead of blocks: lines of x (shelf), . (corridor) and g (goal)")
    observation_type: Literal["flattened", "image", "image_dict"] = param("flattened", doc="what robots see")
    image_observation_layers: str = param("shelves,requests,agents,goals,accessible", doc="channels of an image")
    image_observation_directional: bool = param(True, doc="images are turned so that the robot looks up")
    normalised_coordinates: bool = param(False, doc="the robot's own x and y from 0 to 1")
    transposed_layers: bool = param(False, doc="x and y exchanged in two layers of an image, the bug of the original")


def blocks(shelf_rows: int, shelf_columns: int, column_height: int) -> NDArray[np.uint8]:
    """The plan of a warehouse with blocks of shelves, as `floor_plan` returns it.

    Raises:
        ValueError: an even number of blocks side by side.
    """
    if shelf_columns % 2 == 0:
        raise ValueError("RobotWarehouse: shelf_columns must be odd.")
    rows, cols = (column_height + 1) * shelf_rows + 2, 3 * shelf_columns + 1
    y, x = np.indices((rows, cols))
    middle = (x == cols // 2 - 1) | (x == cols // 2)
    queue = middle & (y > rows - column_height - 3)
    highway = (x % 3 == 0) | (y % (column_height + 1) == 0) | (y == rows - 1) | queue
    plan = np.where(highway, HIGHWAY, SHELF).astype(np.uint8)
    plan[(y == rows - 1) & middle] = GOAL
    return plan


@functools.cache
def floor_plan(cfg: RobotWarehouseConfig) -> NDArray[np.uint8]:
    """What stands where at the beginning: SHELF, HIGHWAY or GOAL, of shape (rows, columns).

    Raises:
        ValueError: a layout that is no rectangle, has other characters, no goal or more than 127 rows or columns.
    """
    if cfg.layout:
        lines = cfg.layout.strip().replace(" ", "").replace("/", "\n").lower().split("\n")
        if len({len(line) for line in lines}) != 1:
            raise ValueError("RobotWarehouse: the lines of the layout must be of the same length.")
        if set("".join(lines)) - set("xg."):
            raise ValueError("RobotWarehouse: a layout consists of x (shelf), . (corridor) and g (goal).")
        if not any("g" in line for line in lines):
            raise ValueError("RobotWarehouse: the layout must have a goal.")
        code = {"x": SHELF, ".": HIGHWAY, "g": GOAL}
        plan = np.array([[code[c] for c in line] for line in lines], np.uint8)
    else:
        plan = blocks(cfg.shelf_rows, cfg.shelf_columns, cfg.column_height)
    if max(plan.shape) > 127:
        raise ValueError(f"RobotWarehouse: at most 127 rows and columns, not {plan.shape[0]} x {plan.shape[1]}.")
    return plan


def layers(cfg: RobotWarehouseConfig) -> list[str]:
    """The channels of an image.

    Raises:
        ValueError: an unknown one, or one that comes twice.
    """
    names = [name.strip() for name in cfg.image_observation_layers.split(",")]
    if not set(names) <= set(LAYERS) or len(set(names)) < len(names):
        raise ValueError(
            f"RobotWarehouse: image_observation_layers are some of {', '.join(LAYERS)}, with commas between them."
        )
    return names


class RobotWarehouse(EnvDef):
    """Robots of a warehouse carry requested shelves to the goals and bring them back.

    The rules are those of RWARE, the package rware 2.0.0, which has an id for each of its settings. `config_of` gives
    their parameters:

    ```python
    import gpuzoo

    game = gpuzoo.get("RobotWarehouse-v0")
    envs = gpuzoo.make(game, num_envs=4, **game.config_of("rware-small-4ag-hard-v2"))
    ```

    **Warehouse.** `shelf_rows` x `shelf_columns` blocks of shelves, each two wide and `column_height` high, with
    corridors around them: (`column_height` + 1) `shelf_rows` + 2 rows and 3 `shelf_columns` + 1 columns in all. The two
    goals are in the middle of the last row, and above them, in the lowest row of blocks, two columns without shelves.
    The sizes of rware have `shelf_rows` x `shelf_columns` = 1 x 3 (tiny), 2 x 3 (small), 2 x 5 (medium) and 3 x 5
    (large). With `layout`, a map instead: lines of `x` (shelf), `.` (corridor) and `g` (goal), with line breaks or `/`
    between them.

    **Start.** Robots stand on different cells, in any direction; `request_queue_size` of the shelves are requested. All
    is uniform.

    **Agents.** `agent_0`, `agent_1`, ...

    **Actions.** `Discrete(5)`: 0 nothing, 1 forward, 2 turn to the left, 3 turn to the right, 4 load or unload. With
    `msg_bits`, `MultiDiscrete([5, 2, 2, ...])`: the robot shows these bits until its next action.

    Load: a robot on the cell of a shelf lifts it, and carries it along from then on. Unload: it sets its shelf down,
    but not in a corridor or on a goal. A robot without a shelf passes under shelves; one with a shelf cannot enter a
    cell where a shelf stands.

    All move at once. Nobody enters the cell of a robot that stays. If several want a cell that is or becomes free, the
    one with the longest queue behind it gets it; among equals, the one whose cell is named first when all robots, in
    their order, name their own cell and then the one that they want. Robots that follow each other in a circle move if
    they are three or more, and nobody else enters the circle. Two cannot change places.

    A requested shelf that is carried on a goal is delivered: the request passes to another shelf, drawn uniformly from
    those that are not requested.

    **Observation.** float32. `observation_type="flattened"`: x and y (with `normalised_coordinates` divided by their
    largest values), whether loaded, the direction as one-hot of up, down, left, right, whether in a corridor or on a
    goal; then for each of the (2 `sensor_range` + 1)² cells around the robot, in reading order: whether a robot is
    there, its direction as one-hot (up if nobody is there), its `msg_bits` bits, whether a shelf is there, whether that
    is requested.

    `"image"`: a map of (2 `sensor_range` + 1)² cells for each name in `image_observation_layers`; the robot is in the
    middle and looks up, or with `image_observation_directional=False` the map is not turned. `shelves`: all shelves.
    `requests`: those requested. `agents`: robots. `agent_direction`: 1 to 4 for a robot that faces up, down, left,
    right on the map that is not turned. `agent_load`: robots that carry a shelf. `goals`. `accessible`: cells of the
    warehouse without a robot.

    `"image_dict"`: one row of direction (4), whether in a corridor or on a goal, whether loaded, and the maps of
    `"image"`: the dictionary of the original as Gymnasium flattens it.

    **Reward.** `reward_type="individual"`: 1 for the robot that delivers. `"global"`: 1 for all. `"two_stage"`: 0.5 for
    the robot that delivers, and 0.5 when it unloads after that.

    **End.** `max_inactivity_steps` steps without a delivery. Time limit: 500 steps. (rware reports both as
    termination.)

    **As in the original.** A robot may stay on a goal with its shelf, which is delivered anew whenever it is requested.

    **Differences from the original.** Among four or more robots, the original often orders queues of equal length by
    the hash values of their cells, an effect of NetworkX and CPython. Its layers `agent_direction` and `agent_load`
    exchange x and y, and raise an error when a robot is in a row beyond the last column. `transposed_layers` exchanges
    them too, and leaves such robots out. Its observations as dictionaries are left out: they are the flattened ones
    with names, except that normalised coordinates are rounded down. Requesting all shelves at once is refused here; the
    original fails at the next delivery.
    """

    id = "RobotWarehouse-v0"
    Config = RobotWarehouseConfig
    max_episode_steps = 500
    reference = "rware==2.0.0 rware-tiny-2ag-v2"
    aliases = (r"rware-[-\w]+-v2",)
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "rware": "https://github.com/semitable/robotic-warehouse",
        "Papoudakis et al. 2021": "https://arxiv.org/abs/2006.07869",
    }
    observes_apart = True
    benchmarks = {
        "tiny-4ag": {"n_agents": 4, "request_queue_size": 4},
        "small-4ag": {"shelf_rows": 2, "n_agents": 4, "request_queue_size": 4},
        "medium-19ag": {"shelf_rows": 2, "shelf_columns": 5, "n_agents": 19, "request_queue_size": 19},
        "large-8ag-2s": {
            "shelf_rows": 3, "shelf_columns": 5, "n_agents": 8, "request_queue_size": 8, "sensor_range": 2,
        },
        "img-tiny-4ag": {"n_agents": 4, "request_queue_size": 4, "observation_type": "image"},
    }  # fmt: skip
    render_fps = 6

    @staticmethod
    def config_of(name: str) -> dict[str, Any]:
        """The parameters of an id of rware, with which this game is that one.

        `rware[-img|-imgdict][-Nd][-{sight}s]-{size}[-{height}h]-{robots}ag[-easy|-hard]-v2`, with `tiny`, `small`,
        `medium` or `large` for the size, or `{rows}x{cols}`, and then `-{requests}req-{indiv|global|twostage}` instead
        of the difficulty: `-easy` is two requests for each robot, `-hard` half a one, rounded down. `-Nd` is without
        `image_observation_directional`.

        Raises:
            ValueError: no such id.
        """
        found = _NAME.fullmatch(name)
        if not found or (found["rows"] is None) != (found["requests"] is None):
            raise ValueError(
                f"{name!r} is no id of rware 2.0.0: they look like 'rware-tiny-2ag-v2' or "
                "'rware-img-2s-1x3-8h-4ag-2req-global-v2'."
            )
        rows, cols = SIZES[found["size"]] if found["size"] else (int(found["rows"]), int(found["cols"]))
        robots = int(found["robots"])
        requests = int(robots * {"-easy": 2, None: 1, "-hard": 0.5}[found["difficulty"]])
        rewards = {None: "individual", "indiv": "individual", "global": "global", "twostage": "two_stage"}
        types = {None: "flattened", "-img": "image", "-imgdict": "image_dict"}
        return {
            "shelf_rows": rows,
            "shelf_columns": cols,
            "column_height": int(found["height"] or 8),
            "n_agents": robots,
            "sensor_range": int(found["sight"] or 1),
            "request_queue_size": int(found["requests"] or requests),
            "reward_type": rewards[found["reward"]],
            "observation_type": types[found["type"]],
            "image_observation_directional": not found["still"],
        }

    def agents(self, cfg: RobotWarehouseConfig) -> dict[str, int]:
        return {"agent": cfg.n_agents}

    def lanes(self, cfg: RobotWarehouseConfig) -> int:
        return 1 if cfg.n_agents <= 4 and cfg.sensor_range <= 1 else 32

    def check(self, cfg: RobotWarehouseConfig) -> None:
        plan = floor_plan(cfg)
        layers(cfg)
        shelves = int((plan == SHELF).sum())
        if cfg.n_agents > plan.size:
            raise ValueError(f"RobotWarehouse: {cfg.n_agents} robots do not fit on {plan.size} cells.")
        if cfg.request_queue_size >= max(shelves, 1):
            raise ValueError(f"RobotWarehouse: request_queue_size must be less than the number of shelves, {shelves}.")
        if cfg.normalised_coordinates and min(plan.shape) < 2:
            raise ValueError("RobotWarehouse: normalised_coordinates need two rows and two columns.")

    def constants(self, cfg: RobotWarehouseConfig) -> dict[str, int]:
        plan, margin = floor_plan(cfg), max(1, cfg.sensor_range)
        (rows, cols), names, side = plan.shape, layers(cfg), 2 * cfg.sensor_range + 1
        return {
            "ROWS": rows,
            "COLS": cols,
            "MARGIN": margin,
            "PADDED_ROWS": rows + 2 * margin,
            "PADDED_COLS": cols + 2 * margin,
            "SHELVES": int((plan == SHELF).sum()),
            "GOALS": int((plan == GOAL).sum()),
            "MESSAGE": max(1, cfg.msg_bits),
            # The bits of a row of cells are written together, if they fit into a word of 64.
            "CELLS_AT_ONCE": 1 if cfg.msg_bits or side > 9 else side,
            "LAYERS": len(names),
            "LAYER_CODES": sum(LAYERS.index(name) << 3 * k for k, name in enumerate(names)),
        }

    def tables(self, cfg: RobotWarehouseConfig) -> dict[str, NDArray[Any]]:
        plan, margin = floor_plan(cfg), max(1, cfg.sensor_range)
        floor = np.pad(plan, margin, constant_values=WALL)
        code = np.arange(256)
        direction, shelf, loaded, highway = code >> 3 & 3, code & SHELF > 0, code & LOADED > 0, code & HIGHWAY > 0
        facing, robot, requested = 1 << direction, code & ROBOT > 0, code & REQUESTED > 0
        after = code & ~DIRECTION | TURNS[:, direction] << 3
        after[TOGGLE_LOAD] ^= np.where(loaded, ~highway, shelf) * LOADED
        ahead = np.array([-floor.shape[1], floor.shape[1], -1, 1])[direction]
        moving = code & (ROBOT | DIRECTION | np.where(loaded, LOADED | SHELF | REQUESTED, 0))
        parts = np.stack([ahead, ahead >> 8, moving, *after]).astype(np.uint8).astype(np.uint64)
        outcome = np.bitwise_or.reduce(parts << 8 * np.arange(8, dtype=np.uint64)[:, None])
        # ROBOT where nobody may go, LOADED where nobody may go with a shelf
        stops = np.where(code & GOAL == WALL, ROBOT | LOADED, np.where(shelf & ~loaded, LOADED, 0))
        look = robot | facing << 1 | shelf << 5 | requested << 6
        own = (loaded | facing << 1 | highway << 5) << 2  # behind x and y, which are no bits
        y, x = np.indices((plan.shape[0], floor.shape[1]), np.float32)
        if cfg.normalised_coordinates:
            y, x = y / np.float32(plan.shape[0] - 1), x / np.float32(plan.shape[1] - 1)
        return {
            "floor": floor.ravel(),
            "goals": np.flatnonzero(floor == GOAL).astype(np.int32) - margin * (floor.shape[1] + 1),
            "outcome": outcome,
            "stops": stops.astype(np.uint8),
            "look": look[:32].astype(np.uint8),
            "own": own.astype(np.uint8),
            "coordinates": np.stack([x, y], axis=-1).ravel(),
        }

    def observation_space(self, cfg: RobotWarehouseConfig, group: str) -> spaces.Box:
        width = 2 * cfg.sensor_range + 1
        if cfg.observation_type == "flattened":
            return spaces.Box(-np.inf, np.inf, (8 + (7 + cfg.msg_bits) * width**2,), np.float32)
        top = np.array([4 if name == "agent_direction" else 1 for name in layers(cfg)], np.float32)
        high = np.tile(top[:, None, None], (1, width, width))
        if cfg.observation_type == "image":
            return spaces.Box(np.zeros_like(high), high, dtype=np.float32)
        endless = np.full(6, np.inf, np.float32)
        low, high = (np.concatenate([a, b]) for a, b in [(-endless, 0 * high.ravel()), (endless, high.ravel())])
        return spaces.Box(low, high, dtype=np.float32)

    def action_space(self, cfg: RobotWarehouseConfig, group: str) -> spaces.Discrete | spaces.MultiDiscrete:
        return spaces.MultiDiscrete([5] + [2] * cfg.msg_bits) if cfg.msg_bits else spaces.Discrete(5)

    def observation_names(self, cfg: RobotWarehouseConfig, group: str) -> dict[str, int]:
        maps = dict.fromkeys(layers(cfg), 1)
        if cfg.observation_type == "image":
            return maps
        cells = (2 * cfg.sensor_range + 1) ** 2
        if cfg.observation_type == "image_dict":
            own = {"direction, one-hot": 4, "whether in a corridor or on a goal": 1, "whether loaded": 1}
            return own | dict.fromkeys((f"map of {name}, row by row" for name in maps), cells)
        own = {"x": 1, "y": 1, "whether loaded": 1, "direction, one-hot of up, down, left, right": 4}
        own["whether in a corridor or on a goal"] = 1
        bits = ["its bits"] * bool(cfg.msg_bits)
        each = ("robot", "its direction, one-hot (4)", *bits, "shelf", "requested shelf")
        return own | {f"for each of {cells} cells, in reading order: {', '.join(each)}": (7 + cfg.msg_bits) * cells}

    def action_names(self, cfg: RobotWarehouseConfig, group: str) -> dict[str, int]:
        if cfg.msg_bits:
            return {"the move: nothing, forward, left, right, load or unload": 1} | {
                f"bit {k} of the message": 1 for k in range(cfg.msg_bits)
            }
        return dict.fromkeys(("nothing", "forward", "turn to the left", "turn to the right", "load or unload"), 1)

    def fields(self, cfg: RobotWarehouseConfig) -> dict[str, Field]:
        return {
            "cells": Field(
                "uint8",
                ("PADDED_ROWS", "PADDED_COLS"),
                "the warehouse in a margin of walls; bits 1 shelf, 2 requested shelf, 4 robot, 8 and 16 its direction "
                "(0 up, 1 down, 2 left, 3 right), 32 whether it carries the shelf, 64 corridor, 128 wall, both goal",
            ),
            "cell": Field("int32", ("agents",), "cell of each robot: row * (columns + 2 margins) + column"),
            "has_delivered": Field("bool", ("agents",), "two stages: delivered since it last unloaded"),
            "message": Field("int8", ("agents", "MESSAGE"), "bits that each robot shows"),
            "inactive_steps": Field("int32", doc="steps since the last delivery"),
            "target": Field("int32", ("agents",), "cell where each wants to be, then where it will be", scratch=True),
            "behind": Field("bool", ("agents",), "whether a robot is on the cell that it wants", scratch=True),
            "here": Field("int32", ("agents",), "cell of each robot, if any meet", scratch=True),
            "wanted": Field("int32", ("agents",), "cell where each wants to be, if any meet", scratch=True),
            "ahead": Field("int32", ("agents",), "robot on the cell that it wants, or -1, if any meet", scratch=True),
            "queue": Field("int32", ("agents",), "how many robots queue behind it, if any meet", scratch=True),
            "moving": Field("uint8", ("agents",), "what moves off its cell, as bits of it", scratch=True),
            "left": Field("uint8", ("agents",), "what its cell becomes before others arrive", scratch=True),
        }

    def render(self, cfg: RobotWarehouseConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        margin = max(1, cfg.sensor_range)
        cells = np.asarray(state["cells"])
        y, x = np.divmod(np.asarray(state["cell"]), cells.shape[1])
        cells = cells[margin:-margin, margin:-margin]
        codes = cells[y, x]
        columns = x, y, codes >> 3 & 3, codes & LOADED > 0
        robots = list(zip(*(column.tolist() for column in columns), strict=True))
        draw_warehouse(canvas, floor_plan(cfg), cells, robots, int(state["elapsed_steps"]))


def draw_warehouse(
    canvas: Canvas, plan: NDArray[Any], cells: NDArray[Any], robots: list[tuple[int, int, int, bool]], step: int
) -> None:
    """A picture of a warehouse.

    Args:
        canvas: what is drawn on.
        plan: as `floor_plan` returns it.
        cells: (rows, columns), with the bits SHELF and REQUESTED.
        robots: column, row, direction (0 up, 1 down, 2 left, 3 right) and whether it is loaded, of each.
        step: number of steps.
    """
    rows, cols = plan.shape
    canvas.background("mist")
    canvas.view(0, 0, cols, rows, y_down=True, pad=10, hud=True)
    canvas.rect(0, 0, cols, rows, fill="white", radius=0.2)
    for row, col in np.argwhere(plan & SHELF):
        canvas.rect(col, row, col + 1, row + 1, fill="sand")
    for row in range(rows + 1):
        canvas.line(0, row, cols, row, colour="line", width=0.6)
    for col in range(cols + 1):
        canvas.line(col, 0, col, rows, colour="line", width=0.6)
    for row, col in np.argwhere(plan == GOAL):
        canvas.rect(col + 0.04, row + 0.04, col + 0.96, row + 0.96, fill=fade("green", 0.3), radius=0.15)
        for radius in (0.36, 0.2):
            canvas.circle(col + 0.5, row + 0.5, radius, outline="green", width=1.4)
    for row, col in np.argwhere(cells & SHELF):
        colour = "red" if cells[row, col] & REQUESTED else "brown"
        canvas.rect(col + 0.1, row + 0.1, col + 0.9, row + 0.9, fill=colour, radius=0.1)
        for k in (0.3, 0.5, 0.7):
            light = mix(colour, "white", 0.45)
            canvas.line(col + 0.2, row + k, col + 0.8, row + k, colour=light, width=1.2)
    for a, (col, row, direction, carries) in enumerate(robots):
        x, y = col + 0.5, row + 0.5
        colour = COLOURS[a % len(COLOURS)]
        angle = (-np.pi / 2, np.pi / 2, np.pi, 0.0)[direction]
        size = 0.27 if carries else 0.34
        if carries:
            width = 26 / max(rows, cols)
            canvas.rect(x - 0.47, y - 0.47, x + 0.47, y + 0.47, outline=colour, width=width, radius=0.14)
        canvas.circle(x, y, size + 0.04, fill="white")
        canvas.circle(x, y, size, fill=colour)
        canvas.dart(x, y, angle, 0.72 * size, fill="white")
    loaded = sum(robot[3] for robot in robots)
    canvas.hud(left=f"Robot Warehouse   {loaded} of {len(robots)} loaded", right=f"step {step}")
