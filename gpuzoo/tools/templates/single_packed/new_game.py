"""NewGame."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo import Canvas, Config, EnvDef, Field, param, register


@dataclasses.dataclass(frozen=True)
class NewGameConfig(Config):
    """Integers are compiled into the kernel; floats can be changed at any time and can differ from env to env."""

    speed: float = param(0.05, low=0.0, doc="way of the paddle from a full action, per step")
    gravity: float = param(0.002, low=0.0, doc="speed that the ball gains downwards, per step")
    bounce: float = param(0.06, low=0.0, doc="speed of the ball from the paddle, per step")


@register
class NewGame(EnvDef):
    """A paddle keeps a ball in the air. The rules are packed: they move many envs at once.

    The paddle is at the bottom, at height 0; walls are at -1 and 1.

    **Start.** The paddle is in the middle, the ball at rest or slow at height 1, up to 0.5 from the middle.

    **Actions.** `Box(2)` in [-1, 1]: way of the paddle, and its tilt, which sends the ball to the side.

    **Observation.** `Box(6)`, float32: way from the paddle to the ball, the paddle's place, the ball's position and
    velocity.

    **Reward.** 1 for catching the ball, -1 for losing it, otherwise 0.

    **End.** The ball comes down more than 0.2 from the paddle's middle. Time limit: 500 steps.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    packed = True
    max_episode_steps = 500
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Paddle, ball."""
        return spaces.Box(-np.inf, np.inf, (6,), np.float32)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Way, tilt."""
        return spaces.Box(-1.0, 1.0, (2,), np.float32)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"way to the ball": 1, "the paddle": 1, "the ball's position": 2, "the ball's velocity": 2}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return {"way of the paddle": 1, "its tilt": 1}

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "paddle": Field("float32", doc="the paddle's place along x"),
            "x": Field("float32", doc="the ball's position"),
            "y": Field("float32", doc="the ball's height"),
            "vx": Field("float32", doc="the ball's velocity, per step"),
            "vy": Field("float32", doc="the ball's velocity upwards, per step"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env."""
        paddle, x, y = (float(state[name]) for name in ("paddle", "x", "y"))
        canvas.background("paper")
        canvas.view(-1.1, -0.2, 1.1, 2.0, hud=True)
        canvas.rect(-1, -0.1, 1, 2, fill="mist")
        canvas.rect(paddle - 0.2, -0.05, paddle + 0.2, 0, fill="blue")
        canvas.circle(x, y, 0.05, fill="orange")
        canvas.hud(left="NewGame", right=f"step {int(state['elapsed_steps'])}")
