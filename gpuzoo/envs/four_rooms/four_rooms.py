"""FourRooms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

MAP = """
#############
#     #     #
#     #     #
#           #
#     #     #
#     #     #
## ####     #
#     ### ###
#     #     #
#     #     #
#           #
#     #     #
#############
"""
WALLS = np.array([[c == "#" for c in line] for line in MAP.strip("\n").split("\n")], bool)
SIZE = len(WALLS)


@dataclasses.dataclass(frozen=True)
class FourRoomsConfig(Config):
    """Gymnax's options and parameters."""

    use_visual_obs: bool = param(False, doc="the map is observed, otherwise the two cells")
    goal_row: int = param(8, low=1, high=SIZE - 2, doc="gymnax's goal_fixed[0]: where the goal is unless resampled")
    goal_column: int = param(9, low=1, high=SIZE - 2, doc="gymnax's goal_fixed[1]")
    start_row: int = param(4, low=1, high=SIZE - 2, doc="gymnax's pos_fixed[0]: where the agent begins")
    start_column: int = param(1, low=1, high=SIZE - 2, doc="gymnax's pos_fixed[1]")
    fail_prob: float = param(
        1 / 3, low=0.0, high=0.75, doc="probability of a move in another than the chosen direction"
    )
    resample_init_pos: bool = param(False, doc="the agent begins in any open cell but the goal's")
    resample_goal_pos: bool = param(False, doc="the goal is in any open cell")
    transposed: bool = param(True, doc="the map's agent is at (column, row), as in gymnax; False: at (row, column)")


class FourRooms(EnvDef):
    """One agent looks for a goal in four rooms with four doors, and often slips.

    The map has 13 x 13 cells, 104 of them open; rows go down, columns to the right:

    .. code-block:: text

        #############
        #     #     #
        #     #     #
        #           #
        #     #     #
        #     #     #
        ## ####     #
        #     ### ###
        #     #     #
        #     #     #
        #           #
        #     #     #
        #############

    **Actions.** `Discrete(4)`: up, right, down, left. With probability 4/3 ``fail_prob`` the action is replaced by one
    of the four at random, so another direction than the chosen one is taken with probability ``fail_prob``. A wall
    stops the agent.

    **Observation.** `Box(4)`, float32: row and column of the agent, row and column of the goal. With ``use_visual_obs``
    `Box(13, 13, 2)`, int8: channel 0 is 1 at walls, channel 1 at the agent; the goal is not shown.

    **Reward.** 1 in the goal, otherwise 0.

    **End.** The goal is reached. Time limit: 500 steps.

    **Start.** The agent at (4, 1), the goal at (8, 9), or at random by ``resample_init_pos`` and ``resample_goal_pos``.
    Where only the goal is drawn, it may be drawn onto the agent, who then has to stay or come back.

    **In gymnax** the map's channel 1 has the agent at (column, row), where there may be a wall; so it is here, unless
    ``transposed`` is False. Gymnax's map is float32.
    """

    id = "FourRooms-v0"
    Config = FourRoomsConfig
    max_episode_steps = 500
    reference = "gymnax==1.0.1 FourRooms-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
        "Sutton, Precup and Singh 1999": "https://doi.org/10.1016/S0004-3702(99)00052-1",
    }
    benchmarks = {"map": {"use_visual_obs": True}}
    render_fps = 10

    def lanes(self, cfg: FourRoomsConfig) -> int:
        return 32 if cfg.use_visual_obs else 1

    def check(self, cfg: FourRoomsConfig) -> None:
        for what, cell in (("goal", (cfg.goal_row, cfg.goal_column)), ("start", (cfg.start_row, cfg.start_column))):
            if WALLS[cell]:
                raise ValueError(f"FourRooms: the {what} {cell} is a wall.")

    def observation_space(self, cfg: FourRoomsConfig, group: str) -> spaces.Box:
        if cfg.use_visual_obs:
            return spaces.Box(0, 1, (SIZE, SIZE, 2), np.int8)
        return spaces.Box(1.0, SIZE - 2.0, (4,), np.float32)

    def action_space(self, cfg: FourRoomsConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def constants(self, cfg: FourRoomsConfig) -> dict[str, int]:
        return {"SIZE": SIZE, "OPEN": int((~WALLS).sum())}

    def tables(self, cfg: FourRoomsConfig) -> dict[str, NDArray[Any]]:
        return {
            "open": np.flatnonzero(~WALLS).astype(np.int32),
            "walls": np.stack([WALLS, np.zeros_like(WALLS)], 2).astype(np.uint8).ravel(),
        }

    def observation_names(self, cfg: FourRoomsConfig, group: str) -> dict[str, int]:
        if cfg.use_visual_obs:
            return {"walls": 1, "the agent": 1}
        return dict.fromkeys(("row of the agent", "column of the agent", "row of the goal", "column of the goal"), 1)

    def action_names(self, cfg: FourRoomsConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: FourRoomsConfig) -> dict[str, Field]:
        return {
            "row": Field("int32", doc="the agent's"),
            "column": Field("int32", doc="the agent's"),
            "goal_row": Field("int32", doc="the goal's"),
            "goal_column": Field("int32", doc="the goal's"),
        }

    def render(self, cfg: FourRoomsConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("slate")
        canvas.view(0, 0, SIZE, SIZE, y_down=True, hud=True)
        rooms = {(True, True): "grass", (True, False): "sand", (False, True): "water", (False, False): "lilac"}
        for row, column in np.argwhere(~WALLS):
            door = WALLS[row - 1, column] & WALLS[row + 1, column] | WALLS[row, column - 1] & WALLS[row, column + 1]
            colour = "paper" if door else rooms[bool(row < (6 if column < 6 else 7)), bool(column < 6)]
            canvas.rect(column, row, column + 1, row + 1, fill=colour)
            canvas.rect(column + 0.03, row + 0.03, column + 0.97, row + 0.97, outline="#ffffff80", width=1)
        row, column = int(state["goal_row"]), int(state["goal_column"])
        canvas.line(column + 0.35, row + 0.15, column + 0.35, row + 0.9, colour="ink", width=3)
        canvas.polygon(
            [(column + 0.38, row + 0.12), (column + 0.88, row + 0.32), (column + 0.38, row + 0.52)], fill="green"
        )
        row, column = int(state["row"]), int(state["column"])
        canvas.circle(column + 0.5, row + 0.5, 0.36, fill="red", outline="white", width=2)
        canvas.hud(left="Four rooms", right=f"step {int(state['elapsed_steps'])}")
