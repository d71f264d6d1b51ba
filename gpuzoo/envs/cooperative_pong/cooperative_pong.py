"""Cooperative Pong."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade


@dataclasses.dataclass(frozen=True)
class CooperativePongConfig(Config):
    """PettingZoo's options, and what agents observe."""

    ball_speed: float = param(9.0, low=1.0, high=1000.0, doc="pixels per step of the ball")
    left_paddle_speed: float = param(12.0, low=0.0, high=1000.0, doc="pixels per step, rounded down")
    right_paddle_speed: float = param(12.0, low=0.0, high=1000.0, doc="pixels per step, rounded down")
    cake_paddle: bool = param(True, doc="the right paddle has the shape of a cake of four tiers")
    bounce_randomness: bool = param(False, doc="a paddle turns the ball's direction by up to 0.01 radians more")
    max_reward: float = param(100.0, doc="reward of each agent if the ball stays in play until the time limit")
    off_screen_penalty: float = param(-10.0, doc="reward of each agent when the ball is lost")
    render_ratio: int = param(2, low=1, high=20, doc="divides the court of 960 x 560 pixels, and what is on it")
    observation_type: Literal["numbers", "image"] = param(
        "numbers", doc="places and velocity, or the original's picture"
    )


class CooperativePong(EnvDef):
    """Two paddles keep a ball in play, for as long as they can.

    The court has `960 // render_ratio` x `560 // render_ratio` pixels; lengths in the following are divided by
    `render_ratio` in the same way. These are the rules of PettingZoo's `butterfly.cooperative_pong_v6`, as a user of
    its parallel interface sees them.

    **Agents.** `paddle_0` at the left wall, 20 x 80 pixels; `paddle_1` at the right one. With `cake_paddle` the right
    one has four tiers, all 30 wide. The one at the wall is 120 high, the others two thirds, one third and a twelfth of
    it. Without it, the right one has 20 x 100 pixels.

    **Actions.** `Discrete(3)`: stay, up, down, by the paddle's speed. A move that would leave the court does nothing.

    **Ball.** It has 20 x 20 pixels, and begins in the middle in a direction that is at least 10 degrees off the
    horizontal and 25 off the vertical. In each step both paddles move, and then the ball by its velocity, to x and y
    that are rounded towards 0. Beyond the upper or the lower wall, it is put back to the wall and its vertical velocity
    turns round. If it is then beyond the left or the right wall, it is lost.

    Otherwise it may have met the paddle of its half of the court. Of several tiers the one nearest to the middle
    counts. The ball is put beside the tier, on the side of the middle, and its horizontal velocity leads away from the
    paddle. It came from above if it falls and its upper edge, less its vertical velocity, is above the tier's: then it
    is put on top, and its vertical velocity turns round. It came from below if it rises and its lower edge, less the
    velocity, is below the tier's: then it is put under it, one pixel deep in the tier, and turns round too.

    **Observation.** `Box(7)`: where the middles of the left paddle, of the right one (both vertically), and of the ball
    (horizontally, vertically) are, from -1 at the left or upper wall to 1; the ball's velocity divided by
    `ball_speed`; -1 for the left paddle and 1 for the right one. With `observation_type="image"`, `Box(0, 255,
    (280, 480, 3), uint8)`: the original's picture, 255 where a paddle or the ball is. The state is the same picture, or
    the first six numbers.

    **Reward.** `max_reward` divided by the time limit in each step in which the ball stays in play;
    `off_screen_penalty` when it is lost. Both agents get the same.

    **End.** The ball is lost. Time limit: 900 steps.

    Differences: the original's `max_cycles` is `max_episode_steps`. Without a `render_mode` the original observes a
    black picture; with `"rgb_array"` it observes the picture that is meant. It computes velocities in float64. A ball
    that is lost in the last step of the time limit is termination alone there; here it is truncation, too.
    """

    id = "CooperativePong-v0"
    Config = CooperativePongConfig
    max_episode_steps = 900
    reference = "pettingzoo==1.27.0 butterfly.cooperative_pong_v6"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/butterfly/cooperative_pong/",
    }
    benchmarks = {"image": {"observation_type": "image", "num_envs": 64}}
    render_fps = 15

    def agents(self, cfg: CooperativePongConfig) -> dict[str, int]:
        return {"paddle": 2}

    def lanes(self, cfg: CooperativePongConfig) -> int:
        return 256 if cfg.observation_type == "image" else 1

    def constants(self, cfg: CooperativePongConfig) -> dict[str, int]:
        right = (30, 120) if cfg.cake_paddle else (20, 100)
        sizes = {
            "COURT_WIDTH": 960,
            "COURT_HEIGHT": 560,
            "LEFT_WIDTH": 20,
            "LEFT_HEIGHT": 80,
            "RIGHT_WIDTH": right[0],
            "RIGHT_HEIGHT": right[1],
            "BALL": 20,
        }
        return {name: size // cfg.render_ratio for name, size in sizes.items()}

    def _picture(self, cfg: CooperativePongConfig) -> spaces.Box:
        known = self.constants(cfg)
        return spaces.Box(0, 255, (known["COURT_HEIGHT"], known["COURT_WIDTH"], 3), np.uint8)

    def observation_space(self, cfg: CooperativePongConfig, group: str) -> spaces.Box:
        if cfg.observation_type == "image":
            return self._picture(cfg)
        return spaces.Box(-np.inf, np.inf, (7,), np.float32)

    def state_space(self, cfg: CooperativePongConfig) -> spaces.Box:
        if cfg.observation_type == "image":
            return self._picture(cfg)
        return spaces.Box(-np.inf, np.inf, (6,), np.float32)

    def action_space(self, cfg: CooperativePongConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def observation_names(self, cfg: CooperativePongConfig, group: str) -> dict[str, int]:
        if cfg.observation_type == "image":
            return dict.fromkeys(("red", "green", "blue"), 1)
        places = (
            "left paddle's place",
            "right paddle's place",
            "ball's place from left to right",
            "ball's place downwards",
        )
        return dict.fromkeys(
            (*places, "ball's velocity to the right", "ball's velocity downwards", "-1 left, 1 right"), 1
        )

    def action_names(self, cfg: CooperativePongConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("stay", "up", "down"), 1)

    def fields(self, cfg: CooperativePongConfig) -> dict[str, Field]:
        return {
            "left": Field("int32", doc="upper edge of the left paddle, in pixels from above"),
            "right": Field("int32", doc="upper edge of the right paddle"),
            "x": Field("int32", doc="left edge of the ball"),
            "y": Field("int32", doc="upper edge of the ball"),
            "vx": Field("float32", doc="pixels per step of the ball, to the right"),
            "vy": Field("float32", doc="pixels per step of the ball, downwards"),
        }

    def aspect(self, cfg: CooperativePongConfig) -> float:
        return 1.5

    def side(self, cfg: CooperativePongConfig) -> int:
        return 640

    def render(self, cfg: CooperativePongConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        known = self.constants(cfg)
        width, height, ball = known["COURT_WIDTH"], known["COURT_HEIGHT"], known["BALL"]
        left, right, x, y = (int(state[name]) for name in ("left", "right", "x", "y"))
        vx, vy = float(state["vx"]), float(state["vy"])
        canvas.background("ink")
        canvas.view(0, 0, width, height, y_down=True, pad=6, hud=True)
        canvas.cached(_court, width, height)
        _paddle(canvas, 0, left, known["LEFT_WIDTH"], known["LEFT_HEIGHT"], "orange")
        tiers = [known["RIGHT_HEIGHT"]]
        if cfg.cake_paddle:
            tiers += [tiers[0] * 2 // 3, tiers[0] // 3, tiers[0] // 12]
        for k, (tall, colour) in enumerate(zip(tiers, ("teal", "water", "lilac", "rose"), strict=False)):
            top = right + tiers[0] // 2 - tall // 2
            _paddle(canvas, width - (k + 1) * known["RIGHT_WIDTH"], top, known["RIGHT_WIDTH"], tall, colour)
        middle = x + ball / 2, y + ball / 2
        for k in range(5, 0, -1):
            canvas.circle(
                middle[0] - k * vx / 2,
                middle[1] - k * vy / 2,
                ball * (0.5 - 0.05 * k),
                fill=fade("yellow", 0.3 - 0.05 * k),
            )
        canvas.rect(x, y, x + ball, y + ball, fill="yellow", radius=ball / 4)
        canvas.hud(left="CooperativePong", right=f"step {int(state['elapsed_steps'])}")


def _court(canvas: Canvas, width: int, height: int) -> None:
    canvas.rect(0, 0, width, height, fill="#26354a", radius=height / 60)
    for k in range(14):
        canvas.rect(
            width * 0.4975, height * (k + 0.25) / 14, width * 0.5025, height * (k + 0.75) / 14, fill=fade("white", 0.25)
        )


def _paddle(canvas: Canvas, left: int, top: int, width: int, height: int, colour: str) -> None:
    canvas.rect(left, top, left + width, top + height, fill=colour, radius=min(width, height) / 4)
