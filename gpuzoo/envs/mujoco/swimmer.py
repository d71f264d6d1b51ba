"""Swimmer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class SwimmerConfig(RobotConfig):
    """Options of Gymnasium's Swimmer-v5."""

    frame_skip: int = param(4, low=1, doc="steps of time, of 0.01 seconds, for each step of the env")
    forward_reward_weight: float = param(1.0, doc="weight of the velocity in the reward")
    ctrl_cost_weight: float = param(1e-4, doc="weight of the actions' cost")
    reset_noise_scale: float = param(0.1, low=0.0, doc="noise of the first state")
    exclude_current_positions_from_observation: bool = param(True, doc="whether x and y are not observed")


class Swimmer(Robot):
    """A chain of three links swims to the right in a viscous fluid as fast as it can.

    **Actions.** `Box(2)` in [-1, 1]: torques of the two joints.

    **Observation.** `Box(8)`, float32: `qpos` without x and y (heading, two joints), then `qvel`.

    **Motion.** MuJoCo's, 4 steps of 0.01 s.

    **Reward.** `forward_reward_weight` times the velocity in x over the step, less `ctrl_cost_weight` times the sum of
    squared actions.

    **Start.** The model's own position and rest, with uniform noise of `reset_noise_scale` in `qpos` and `qvel`.

    **End.** Never, unless the state diverges. Time limit: 1000 steps.
    """

    id = "Swimmer-v5"
    Config = SwimmerConfig
    max_episode_steps = 1000
    reward_threshold = 360.0
    reference = "gymnasium==1.4.0 Swimmer-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium": "https://gymnasium.farama.org/environments/mujoco/swimmer/"}
    render_fps = 25
    model = "swimmer"
    ways = 2
    view_height = 3.0
    view_above = True
    told = ("x_position", "y_position", "distance_from_origin")
    told_of_step = ("x_velocity", "y_velocity", "reward_forward", "reward_ctrl")
    parts: ClassVar = {
        "x_velocity": "velocity in x over the last step",
        "y_velocity": "velocity in y over the last step",
        "reward_forward": "part of the last reward",
        "reward_ctrl": "part of the last reward",
    }

    def observation_space(self, cfg: SwimmerConfig, group: str) -> spaces.Box:
        m = self.model_of(cfg)
        size = m.nq + m.nv - 2 * cfg.exclude_current_positions_from_observation
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)
