"""Snake."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class SnakeConfig(Config):
    """The board."""

    num_rows: int = param(12, low=1, high=100, doc="rows of the board")
    num_cols: int = param(12, low=1, high=100, doc="columns of the board")


class Snake(EnvDef):
    """A snake eats fruit, grows, and must not bite itself.

    The head moves by one cell per step, and the body follows. If the head comes to the fruit, the snake grows by one
    cell: its tail stays where it is, and a new fruit appears in any cell without snake, each with the same chance. The
    snake begins with one cell anywhere.

    **Actions.** `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. The action mask holds the moves that stay on the board
    and do not bite the body. The cell of the tail counts as free, since the tail moves on.

    **Observation.** `Box(0, 1, (num_rows, num_cols, 5))`, float32: row, column, channel. The channels are 1 at the
    body, with head and tail; at the head; at the tail; at the fruit. The last one is k/n in the k-th cell of n from the
    tail, and 0 elsewhere.

    **Reward.** 1 for a fruit.

    **End.** An illegal action, or the snake fills the board. Time limit: 4000 steps.

    **In Jumanji** the time limit terminates the episode, and the number of steps is observed. A snake that cannot move
    has only illegal actions. After an illegal action Jumanji shows the head beyond the edge or on the body; here the
    snake stays where it is. Here `infos` have `solved`: whether the snake fills the board.
    """

    id = "Snake-v1"
    Config = SnakeConfig
    max_episode_steps = 4000
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 Snake-v1"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/snake/"}
    similar = (r"[Ss]nake.*",)
    expert = "gpuzoo.envs.jumanji.hamiltonian_cycle:best_moves"
    render_fps = 10

    def constants(self, cfg: SnakeConfig) -> dict[str, int]:
        return {"ROWS": cfg.num_rows, "COLUMNS": cfg.num_cols, "CELLS": cfg.num_rows * cfg.num_cols}

    def observation_space(self, cfg: SnakeConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.num_rows, cfg.num_cols, 5), np.float32)

    def action_space(self, cfg: SnakeConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: SnakeConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("body", "head", "tail", "fruit", "place in the body"), 1)

    def action_names(self, cfg: SnakeConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: SnakeConfig) -> dict[str, Field]:
        return {
            "until": Field(
                "int32", ("CELLS",), "clock at which the body has left each cell, at num_cols * row + column"
            ),
            "clock": Field("int32", doc="steps without a fruit"),
            "length": Field("int32", doc="cells of the snake"),
            "head": Field("int32", doc="cell of the head"),
            "fruit": Field("int32", doc="cell of the fruit"),
        }

    def infos(self, cfg: SnakeConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"solved": state["length"] == cfg.num_rows * cfg.num_cols}

    def aspect(self, cfg: SnakeConfig) -> float:
        return cfg.num_cols / cfg.num_rows

    def render(self, cfg: SnakeConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        rows, columns = cfg.num_rows, cfg.num_cols
        canvas.background("paper")
        canvas.view(-0.1, -0.1, columns + 0.1, rows + 0.1, y_down=True, hud=True)
        canvas.cached(_board, rows, columns)
        place = np.asarray(state["until"]) - int(state["clock"])
        body = np.flatnonzero(place > 0)
        body = body[np.argsort(place[body])]
        centres = np.stack([body % columns, body // columns], 1) + 0.5
        for k, (one, other) in enumerate(itertools.pairwise(centres)):
            if abs(one - other).sum() == 1:
                (x0, x1), (y0, y1) = sorted((one[0], other[0])), sorted((one[1], other[1]))
                radius = 0.24 + 0.14 * (k + 1) / len(body)
                canvas.rect(x0 - radius, y0 - radius, x1 + radius, y1 + radius, fill="green", radius=radius)
        head = int(state["head"])
        x, y = head % columns + 0.5, head // columns + 0.5
        fruit = int(state["fruit"])
        if len(body) < rows * columns:
            canvas.circle(fruit % columns + 0.5, fruit // columns + 0.5, 0.3, fill="red")
        canvas.circle(x, y, 0.42, fill="teal")
        dx, dy = (centres[-1] - centres[-2]) if len(body) > 1 else (0.0, -1.0)
        for side in (-1, 1):
            canvas.circle(x + 0.15 * dx - 0.18 * side * dy, y + 0.15 * dy + 0.18 * side * dx, 0.1, fill="white")
            canvas.circle(x + 0.2 * dx - 0.18 * side * dy, y + 0.2 * dy + 0.18 * side * dx, 0.05, fill="ink")
        canvas.hud(left=f"length {int(state['length'])}", right=f"step {int(state['elapsed_steps'])}")


def _board(canvas: Canvas, rows: int, columns: int) -> None:
    """The cells."""
    for row in range(rows):
        for column in range(columns):
            fill = "grass" if (row + column) % 2 else "white"
            canvas.rect(column, row, column + 1, row + 1, fill=fill)
