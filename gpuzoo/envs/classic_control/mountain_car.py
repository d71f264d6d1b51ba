"""MountainCar."""

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
class MountainCarConfig(Config):
    """The constants of Gymnasium's MountainCar; `low` and `high` are its options of `reset`."""

    goal_velocity: float = param(0.0, doc="smallest velocity at the goal that counts")
    min_position: float = param(-1.2, doc="place of the wall on the left")
    max_position: float = param(0.6, doc="the car gets no further to the right")
    max_speed: float = param(0.07, low=0.0, doc="largest speed, per step")
    goal_position: float = param(0.5, doc="place of the goal")
    force: float = param(0.001, doc="what the motor adds to the velocity, per step")
    gravity: float = param(0.0025, doc="what gravity adds to the velocity where the ground is steepest, per step")
    low: float = param(-0.6, doc="leftmost place of the car at the beginning")
    high: float = param(-0.4, doc="rightmost place of the car at the beginning")


class MountainCar(EnvDef):
    """A car in a valley has a motor too weak for the slope: it must swing back and forth to get up to the flag.

    **Actions.** `Discrete(3)`: 0 drives to the left, 1 does nothing, 2 drives to the right.

    **Observation.** `Box(2)`, float32: position of the car, its velocity per step.

    **Movement.** `velocity += force (action - 1) - gravity cos(3 position)`, clipped to ± `max_speed`; then
    `position += velocity`, clipped to [`min_position`, `max_position`]. At `min_position` a velocity to the left
    becomes 0. The ground's height is sin(3 position).

    **Reward.** -1 for each step.

    **Start.** Position uniform in [`low`, `high`], velocity 0.

    **End.** The car is at `goal_position` or further, with at least `goal_velocity`. Time limit: 200 steps. An action
    out of range counts as 0.
    """

    id = "MountainCar-v0"
    Config = MountainCarConfig
    max_episode_steps = 200
    reference = "gymnasium MountainCar-v0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/classic_control/mountain_car/",
        "Moore 1990": "https://www.cl.cam.ac.uk/techreports/UCAM-CL-TR-209.pdf",
    }
    reward_threshold = -110.0

    def check(self, cfg: MountainCarConfig) -> None:
        hill.check("MountainCar", cfg)

    def observation_space(self, cfg: MountainCarConfig, group: str) -> spaces.Box:
        low = np.array([cfg.min_position, -cfg.max_speed], np.float32)
        return spaces.Box(low, np.array([cfg.max_position, cfg.max_speed], np.float32), dtype=np.float32)

    def action_space(self, cfg: MountainCarConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def observation_names(self, cfg: MountainCarConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("position", "velocity per step"), 1)

    def action_names(self, cfg: MountainCarConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("drive to the left", "do nothing", "drive to the right"), 1)

    def fields(self, cfg: MountainCarConfig) -> dict[str, Field]:
        return hill.FIELDS

    def aspect(self, cfg: MountainCarConfig) -> float:
        return hill.ASPECT

    def render(self, cfg: MountainCarConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        hill.draw("MountainCar", cfg, state, canvas)
