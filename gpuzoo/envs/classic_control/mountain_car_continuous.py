"""MountainCarContinuous."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.classic_control import hill
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class MountainCarContinuousConfig(Config):
    """The constants of Gymnasium's MountainCarContinuous; `low` and `high` are its options of `reset`."""

    goal_velocity: float = param(0.0, doc="smallest velocity at the goal that counts")
    min_position: float = param(-1.2, doc="place of the wall on the left")
    max_position: float = param(0.6, doc="the car gets no further to the right")
    max_speed: float = param(0.07, low=0.0, doc="largest speed, per step")
    goal_position: float = param(0.45, doc="place of the goal")
    power: float = param(0.0015, doc="what a full action adds to the velocity, per step")
    gravity: float = param(0.0025, doc="what gravity adds to the velocity where the ground is steepest, per step")
    low: float = param(-0.6, doc="leftmost place of the car at the beginning")
    high: float = param(-0.4, doc="rightmost place of the car at the beginning")


class MountainCarContinuous(EnvDef):
    """A car in a valley must swing up to the flag with a motor too weak for the slope, and pays for what it burns.

    **Actions.** `Box(1)` in [-1, 1]: how much the motor drives to the right.

    **Observation.** `Box(2)`, float32: position of the car, its velocity per step.

    **Movement.** `velocity += power action - gravity cos(3 position)`, clipped to ± `max_speed`; then
    `position += velocity`, clipped to [`min_position`, `max_position`]. At `min_position` a velocity to the left
    becomes 0. The ground's height is sin(3 position).

    **Reward.** `-0.1 action²`, and 100 at the goal.

    **Start.** Position uniform in [`low`, `high`], velocity 0.

    **End.** The car is at `goal_position` or further, with at least `goal_velocity`. Time limit: 999 steps.

    **Differences from Gymnasium.** An action out of range is clipped first, so it costs as much as the nearest one in
    range; theirs costs what it is.
    """

    id = "MountainCarContinuous-v0"
    Config = MountainCarContinuousConfig
    max_episode_steps = 999
    reference = "gymnasium MountainCarContinuous-v0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/classic_control/mountain_car_continuous/",
        "Moore 1990": "https://www.cl.cam.ac.uk/techreports/UCAM-CL-TR-209.pdf",
    }
    reward_threshold = 90.0

    def check(self, cfg: MountainCarContinuousConfig) -> None:
        hill.check("MountainCarContinuous", cfg)

    def observation_space(self, cfg: MountainCarContinuousConfig, group: str) -> spaces.Box:
        low = np.array([cfg.min_position, -cfg.max_speed], np.float32)
        return spaces.Box(low, np.array([cfg.max_position, cfg.max_speed], np.float32), dtype=np.float32)

    def action_space(self, cfg: MountainCarContinuousConfig, group: str) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (1,), np.float32)

    def observation_names(self, cfg: MountainCarContinuousConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("position", "velocity per step"), 1)

    def action_names(self, cfg: MountainCarContinuousConfig, group: str) -> dict[str, int]:
        return {"force of the motor, positive to the right": 1}

    def fields(self, cfg: MountainCarContinuousConfig) -> dict[str, Field]:
        return hill.FIELDS

    def aspect(self, cfg: MountainCarContinuousConfig) -> float:
        return hill.ASPECT

    def render(self, cfg: MountainCarContinuousConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        hill.draw("MountainCarContinuous", cfg, state, canvas)
