"""Catch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef, Field, param
from gpuzoo.envs.bsuite.rewards import RewardConfig
from gpuzoo.render import Canvas, mix


@dataclasses.dataclass(frozen=True)
class CatchConfig(RewardConfig):
    """The board, and what is done with the rewards."""

    rows: int = param(10, low=2, high=255, doc="height of the board")
    columns: int = param(5, low=1, high=255, doc="width of the board")


class Catch(EnvDef):
    """A ball falls; a paddle at the bottom has to be under it when it arrives.

    Osband et al., "Behaviour suite for reinforcement learning" (2019): the experiments `catch`, `catch_noise` and
    `catch_scale`.

    **Actions.** `Discrete(3)`: move the paddle to the left, leave it, move it to the right. It stops at the walls.

    **Observation.** `Box(rows, columns)`, float32: 1 in the cells of the ball and of the paddle, 0 elsewhere.

    **Beginning.** The ball is in the top row, in a column drawn at random; the paddle is in the bottom row, in column
    `columns` // 2. In each step first the paddle moves, then the ball falls by one row.

    **Reward.** When the ball reaches the bottom row: 1 if the paddle is there, -1 if it is not. In all other steps 0.
    Then `reward_scale` times the reward, plus `noise_scale` times a number of the standard normal distribution.

    **End.** The ball is in the bottom row, after `rows` - 1 steps.

    An action out of range counts as 0.
    """

    id = "Catch-bsuite-v0"
    Config = CatchConfig
    short_episodes = True
    reference = "bsuite 0.3.6 Catch"
    links: ClassVar[Mapping[str, str]] = {
        "bsuite": "https://github.com/google-deepmind/bsuite",
        "Osband et al. 2019": "https://arxiv.org/abs/1908.03568",
    }
    render_fps = 6

    def observation_space(self, cfg: CatchConfig, group: str) -> spaces.Box:
        return spaces.Box(0.0, 1.0, (cfg.rows, cfg.columns), np.float32)

    def action_space(self, cfg: CatchConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def observation_names(self, cfg: CatchConfig, group: str) -> dict[str, int]:
        return {"1 in the cells of the ball and of the paddle, row by row": cfg.rows * cfg.columns}

    def action_names(self, cfg: CatchConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("move the paddle to the left", "leave it", "move it to the right"), 1)

    def fields(self, cfg: CatchConfig) -> dict[str, Field]:
        return {
            "ball_x": Field("int32", doc="column of the ball"),
            "ball_y": Field("int32", doc="row of the ball, from the top"),
            "paddle_x": Field("int32", doc="column of the paddle"),
        }

    def render(self, cfg: CatchConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        rows, columns = cfg.rows, cfg.columns
        x, y, paddle = (int(state[name]) for name in ("ball_x", "ball_y", "paddle_x"))
        canvas.background("paper")
        canvas.view(-0.3, -0.3, columns + 0.3, rows + 0.3, y_down=True, hud=True)
        for row in range(rows):
            sky = mix("water", "white", row / max(rows - 1, 1))
            canvas.rect(0, row, columns, row + 1.02 if row < rows - 1 else row + 1, fill=sky)
        canvas.rect(0, 0, columns, rows, outline="line", width=2)
        for column in range(1, columns):
            canvas.line(column, 0, column, rows, colour="#ffffff90", width=1)
        if y < rows - 1:
            canvas.line(x + 0.5, 0.1, x + 0.5, y + 0.5, colour="#e5575a50", width=3)
        canvas.rect(paddle + 0.06, rows - 0.32, paddle + 0.94, rows - 0.08, fill="slate", radius=0.1)
        caught = x == paddle
        canvas.circle(x + 0.5, min(y + 0.5, rows - 0.63), 0.3, fill="red", outline="#b93f43")
        words = "" if y < rows - 1 else "caught" if caught else "missed"
        canvas.hud(left=f"Catch   {words}", right=f"step {int(state['elapsed_steps'])}")
