"""Hopper."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class HopperConfig(RobotConfig):
    """Options of Gymnasium's Hopper-v5; its ranges are two numbers each."""

    frame_skip: int = param(4, low=1, doc="steps of time, of 0.002 seconds, for each step of the env")
    forward_reward_weight: float = param(1.0, doc="weight of the velocity in the reward")
    ctrl_cost_weight: float = param(1e-3, doc="weight of the actions' cost")
    healthy_reward: float = param(1.0, doc="reward of each step in a healthy state")
    terminate_when_unhealthy: bool = param(True, doc="whether the episode ends in an unhealthy state")
    healthy_state_low: float = param(-100.0, doc="what all of the state but x and height must be above")
    healthy_state_high: float = param(100.0, doc="what all of the state but x and height must be below")
    healthy_z_low: float = param(0.7, doc="what the height must be above")
    healthy_z_high: float = param(1e30, doc="what the height must be below")
    healthy_angle_low: float = param(-0.2, doc="what the pitch must be above")
    healthy_angle_high: float = param(0.2, doc="what the pitch must be below")
    reset_noise_scale: float = param(5e-3, low=0.0, doc="noise of the first state")
    exclude_current_positions_from_observation: bool = param(True, doc="whether x is not observed")


class Hopper(Robot):
    """A flat robot with one leg hops to the right as fast as it can.

    **Actions.** `Box(3)` in [-1, 1]: torques of thigh, leg and foot.

    **Observation.** `Box(11)`, float32: `qpos` without x (height, pitch, three joints), then `qvel` clipped to [-10,
    10].

    **Motion.** MuJoCo's, 4 steps of 0.002 s.

    **Reward.** `healthy_reward` in a healthy state, plus `forward_reward_weight` times the velocity in x over the step,
    less `ctrl_cost_weight` times the sum of squared actions.

    **Start.** The model's own position and rest, with uniform noise of `reset_noise_scale` in `qpos` and `qvel`.

    **End.** The state is unhealthy: height, pitch or another number of the state is outside of its range. Time limit:
    1000 steps.
    """

    id = "Hopper-v5"
    Config = HopperConfig
    max_episode_steps = 1000
    reward_threshold = 3800.0
    reference = "gymnasium==1.4.0 Hopper-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium": "https://gymnasium.farama.org/environments/mujoco/hopper/"}
    render_fps = 125
    model = "hopper"
    ways = 1
    told = ("x_position", "z_distance_from_origin")
    told_of_step = ("x_velocity", "reward_forward", "reward_ctrl", "reward_survive")
    parts: ClassVar = {
        "x_velocity": "velocity in x over the last step",
        "reward_forward": "part of the last reward",
        "reward_ctrl": "part of the last reward",
        "reward_survive": "part of the last reward",
    }

    def observation_space(self, cfg: HopperConfig, group: str) -> spaces.Box:
        m = self.model_of(cfg)
        size = m.nq + m.nv - cfg.exclude_current_positions_from_observation
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)
