"""HalfCheetah."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class HalfCheetahConfig(RobotConfig):
    """Options of Gymnasium's HalfCheetah-v5."""

    frame_skip: int = param(5, low=1, doc="steps of time, of 0.01 seconds, for each step of the env")
    forward_reward_weight: float = param(1.0, doc="weight of the velocity in the reward")
    ctrl_cost_weight: float = param(0.1, doc="weight of the actions' cost")
    reset_noise_scale: float = param(0.1, low=0.0, doc="noise of the first state")
    exclude_current_positions_from_observation: bool = param(True, doc="whether x is not observed")


class HalfCheetah(Robot):
    """A flat cheetah with two legs runs to the right as fast as it can.

    **Actions.** `Box(6)` in [-1, 1]: torques of the back thigh, shin and foot and the front thigh, shin and foot.

    **Observation.** `Box(17)`, float32: `qpos` without x (height, pitch, six joints), then `qvel` (x, height, pitch,
    six joints).

    **Motion.** MuJoCo's, 5 steps of 0.01 s.

    **Reward.** `forward_reward_weight` times the velocity in x over the step, less `ctrl_cost_weight` times the sum of
    squared actions.

    **Start.** The model's own position and rest, with uniform noise of `reset_noise_scale` in `qpos` and normal noise
    in `qvel`.

    **End.** Never, unless the state diverges. Time limit: 1000 steps.
    """

    id = "HalfCheetah-v5"
    Config = HalfCheetahConfig
    max_episode_steps = 1000
    reward_threshold = 4800.0
    reference = "gymnasium==1.4.0 HalfCheetah-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium": "https://gymnasium.farama.org/environments/mujoco/half_cheetah/"}
    render_fps = 20
    model = "half_cheetah"
    ways = 1
    told = ("x_position",)
    told_of_step = ("x_velocity", "reward_forward", "reward_ctrl")
    parts: ClassVar = {
        "x_velocity": "velocity in x over the last step",
        "reward_forward": "part of the last reward",
        "reward_ctrl": "part of the last reward",
    }

    def observation_space(self, cfg: HalfCheetahConfig, group: str) -> spaces.Box:
        m = self.model_of(cfg)
        size = m.nq + m.nv - cfg.exclude_current_positions_from_observation
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)
