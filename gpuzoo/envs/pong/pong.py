"""Pong."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade


@dataclasses.dataclass(frozen=True)
class PongConfig(Config):
    """Gymnax's options and parameters."""

    width: int = param(40, low=4, high=128, doc="columns of the court")
    height: int = param(30, low=3, high=128, doc="rows of the court")
    paddle_half_height: int = param(2, low=1, high=63, doc="a paddle covers twice as many cells, and one more")
    ball_max_y_speed: int = param(3, low=0, high=64, doc="rows per step that a paddle can make the ball move")
    paddle_y_speed: int = param(1, low=0, high=64, doc="rows per step of a paddle")
    ball_x_speed: int = param(1, low=-64, high=64, doc="columns per step of the ball; below 0 it begins to the left")
    use_ai_policy: bool = param(True, doc="the right paddle follows the ball; False: it moves as the left one does")
    use_visual_obs: bool = param(True, doc="the court is observed, otherwise the numbers of the state")
    both_borders: bool = param(False, doc="the ball bounces off the upper border too; in gymnax it is lost there")


class Pong(EnvDef):
    """Keep the ball in play: the agent moves the left paddle, and the right one follows the ball.

    **Actions.** `Discrete(3)`: stay, up, down.

    **Observation.** `Box(30, 40, 3)`, int8: channel 0 is 1 where a paddle is (columns 0 and 39), channel 1 at the
    ball, channel 2 where the ball was one step ago. Places are rounded down; what is off the court is
    shown at its border.
    With ``use_visual_obs=False`` `Box(8)`, float32: the paddles' rows, left and right; row and column of the ball, and
    those one step ago; its velocity in rows and columns per step.

    **Motion.** In each step: the left paddle moves by ``paddle_y_speed``, and so does the right one, to where it is
    nearer to the ball's row, down on ties; both stay on the court. Then the ball moves by its velocity. If its row is
    beyond the last one, it is reflected there (row = 2 (height - 1) - row) and the velocity in rows turns round. It is
    hit by the left paddle in columns up to 1, if it is at most ``paddle_half_height`` rows off its centre; by the right
    one in columns beyond width - 2, if it is less than ``paddle_half_height + 1`` rows off. Then it is reflected at
    column 1 or width - 2, and to its velocity in rows is added (its row - the paddle's) / ``paddle_half_height``; the
    sum is clipped to ``ball_max_y_speed`` and rounded, halves to the even number.

    **Reward.** 1 for each step in which the ball stays in play, whoever misses it.

    **End.** The ball's column is below 0, or ``width`` or more. Time limit: 1000 steps.

    **Start.** Paddles and ball in the middle, the ball on its way to the right. Nothing is random.

    **In gymnax** the ball leaves the court above row 0 and does not come back; so it does here, unless ``both_borders``
    reflects it (row = -row). Gymnax's picture is float32.
    """

    id = "Pong-v0"
    Config = PongConfig
    max_episode_steps = 1000
    reference = "gymnax==1.0.1 Pong-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
    }
    benchmarks = {"numbers": {"use_visual_obs": False}}
    render_fps = 20

    def lanes(self, cfg: PongConfig) -> int:
        return 32 if cfg.use_visual_obs else 1

    def check(self, cfg: PongConfig) -> None:
        if cfg.height < 2 * cfg.paddle_half_height + 1:
            raise ValueError(f"Pong: paddles of {2 * cfg.paddle_half_height + 1} rows on a court of {cfg.height}.")

    def observation_space(self, cfg: PongConfig, group: str) -> spaces.Box:
        if cfg.use_visual_obs:
            return spaces.Box(0, 1, (cfg.height, cfg.width, 3), np.int8)
        return spaces.Box(-np.inf, np.inf, (8,), np.float32)

    def action_space(self, cfg: PongConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def constants(self, cfg: PongConfig) -> dict[str, int]:
        return {"COLUMNS": cfg.width, "ROWS": cfg.height, "HALF": cfg.paddle_half_height}

    def observation_names(self, cfg: PongConfig, group: str) -> dict[str, int]:
        if cfg.use_visual_obs:
            return dict.fromkeys(("paddles", "ball", "where the ball was one step ago"), 1)
        names = ("row of the left paddle", "row of the right paddle", "row of the ball", "column of the ball")
        last = ("row of the ball one step ago", "column of the ball one step ago")
        return dict.fromkeys((*names, *last, "rows of the ball per step", "columns of the ball per step"), 1)

    def action_names(self, cfg: PongConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("stay", "up", "down"), 1)

    def fields(self, cfg: PongConfig) -> dict[str, Field]:
        return {
            "left_paddle": Field("float32", doc="row of its centre"),
            "right_paddle": Field("float32", doc="row of its centre"),
            "ball_row": Field("float32", doc="counted from above"),
            "ball_column": Field("float32", doc="counted from the left"),
            "last_ball_row": Field("float32", doc="one step ago"),
            "last_ball_column": Field("float32", doc="one step ago"),
            "row_velocity": Field("float32", doc="rows per step"),
            "column_velocity": Field("float32", doc="columns per step"),
        }

    def render(self, cfg: PongConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        width, height, half = cfg.width, cfg.height, cfg.paddle_half_height
        canvas.background("ink")
        canvas.view(0, 0, width, height, y_down=True, hud=True)
        canvas.rect(0, 0, width, height, fill="#26354a")
        for row in np.arange(0.5, height, 2):
            canvas.rect(width / 2 - 0.12, row, width / 2 + 0.12, row + 1, fill="#ffffff40")
        for side, column, colour in (("left", 0, "orange"), ("right", width - 1, "teal")):
            row = float(np.floor(state[f"{side}_paddle"]))
            canvas.rect(column + 0.1, row - half, column + 0.9, row + half + 1, fill=colour, radius=0.35)
        ball = float(state["ball_column"]) + 0.5, float(state["ball_row"]) + 0.5
        last = float(state["last_ball_column"]) + 0.5, float(state["last_ball_row"]) + 0.5
        for k in range(4):
            x, y = (a + (b - a) * k / 4 for a, b in zip(last, ball, strict=True))
            canvas.circle(x, y, 0.3 + 0.04 * k, fill=fade("white", 0.12 + 0.08 * k))
        canvas.circle(ball[0], ball[1], 0.5, fill="white")
        canvas.hud(left="Pong", right=f"step {int(state['elapsed_steps'])}")
