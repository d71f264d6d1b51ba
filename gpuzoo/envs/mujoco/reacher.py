"""Reacher."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class ReacherConfig(RobotConfig):
    """Options of Gymnasium's Reacher-v5."""

    frame_skip: int = param(2, low=1, doc="steps of time, of 0.01 seconds, for each step of the env")
    reward_dist_weight: float = param(1.0, doc="weight of the distance in the reward")
    reward_control_weight: float = param(1.0, doc="weight of the actions' cost")


class Reacher(Robot):
    """An arm of two links brings its fingertip to a target in the plane.

    **Actions.** `Box(2)` in [-1, 1]: torques of the two joints.

    **Observation.** `Box(10)`, float32: cosines of the two angles; their sines; the target's x and y; velocities of the
    two angles; x and y from the target to the fingertip.

    **Motion.** MuJoCo's, 2 steps of 0.01 s.

    **Reward.** Minus `reward_dist_weight` times the distance from the fingertip to the target, minus
    `reward_control_weight` times the sum of squared actions. As in MuJoCo's data after a step, the fingertip is where
    the last evaluation of the dynamics had it, just before the state.

    **Start.** Angles uniform in ±0.1 and their velocities in ±0.005; the target uniform in the disc of radius 0.2.

    **End.** Never, unless the state diverges. Time limit: 50 steps.
    """

    id = "Reacher-v5"
    Config = ReacherConfig
    max_episode_steps = 50
    reward_threshold = -3.75
    reference = "gymnasium==1.4.0 Reacher-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium": "https://gymnasium.farama.org/environments/mujoco/reacher/"}
    render_fps = 50
    model = "reacher"
    needs = (4, 4, 2)
    exactly = True
    evaluates = True
    watch = ("xpos fingertip", "xpos target")
    view_height = 0.56
    view_above = True
    told_of_step = ("reward_dist", "reward_ctrl")
    parts: ClassVar = {
        "apart_x": "from the target to the fingertip",
        "apart_y": "from the target to the fingertip",
        "reward_dist": "part of the last reward",
        "reward_ctrl": "part of the last reward",
    }

    def observation_space(self, cfg: ReacherConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (10,), np.float32)

    def observation_names(self, cfg: ReacherConfig, group: str) -> dict[str, int]:
        return {"cosines of the angles": 2, "sines of the angles": 2, "the target, x and y": 2} | {
            "angular velocities": 2, "from the target to the fingertip, x and y": 2
        }  # fmt: skip
