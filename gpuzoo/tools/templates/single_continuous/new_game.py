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

    thrust: float = param(0.01, low=0.0, doc="speed from a full action, per step")
    drag: float = param(0.05, low=0.0, high=1.0, doc="share of the speed that the water takes, per step")
    wind: float = param(0.002, low=0.0, doc="speed from the strongest gust, per step")


@register
class NewGame(EnvDef):
    """A boat sails through gusts of wind to a buoy.

    The sea goes from -1 to 1 along x and y.

    **Start.** The boat is at rest in the middle, the buoy 0.8 away from it in any direction.

    **Actions.** `Box(2)` in [-1, 1]: thrust along x and y.

    **Observation.** `Box(6)`, float32: the boat's position and velocity, and the way to the buoy.

    **Reward.** 1 at the buoy, -1 for leaving the sea, in every other step what the boat came nearer to the buoy.

    **End.** The boat is within 0.1 of the buoy, or off the sea. Time limit: 200 steps.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    max_episode_steps = 200
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Position, velocity, way to the buoy."""
        return spaces.Box(-np.inf, np.inf, (6,), np.float32)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Thrust."""
        return spaces.Box(-1.0, 1.0, (2,), np.float32)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"position": 2, "velocity": 2, "way to the buoy": 2}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return {"thrust along x": 1, "thrust along y": 1}

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "x": Field("float32", doc="the boat's position"),
            "y": Field("float32", doc="the boat's position"),
            "vx": Field("float32", doc="the boat's velocity, per step"),
            "vy": Field("float32", doc="the boat's velocity, per step"),
            "buoy_x": Field("float32", doc="the buoy's position"),
            "buoy_y": Field("float32", doc="the buoy's position"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env."""
        x, y, vx, vy, buoy_x, buoy_y = (float(state[name]) for name in ("x", "y", "vx", "vy", "buoy_x", "buoy_y"))
        canvas.background("paper")
        canvas.view(-1.1, -1.1, 1.1, 1.1, hud=True)
        canvas.rect(-1, -1, 1, 1, fill="water")
        canvas.circle(buoy_x, buoy_y, 0.1, fill="orange", outline="white")
        canvas.dart(x, y, float(np.arctan2(vy, vx)), 0.08, fill="blue")
        canvas.hud(left="NewGame", right=f"step {int(state['elapsed_steps'])}")
