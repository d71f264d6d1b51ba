"""Pusher."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class PusherConfig(RobotConfig):
    """Options of Gymnasium's Pusher-v5."""

    frame_skip: int = param(5, low=1, doc="steps of time, of 0.01 seconds, for each step of the env")
    reward_near_weight: float = param(0.5, doc="weight of the distance from the fingertip to the object")
    reward_dist_weight: float = param(1.0, doc="weight of the distance from the object to the goal")
    reward_control_weight: float = param(0.1, doc="weight of the actions' cost")


class Pusher(Robot):
    """An arm of seven joints pushes a cylinder over a table to a goal.

    **Actions.** `Box(7)` in [-2, 2]: torques of shoulder pan, shoulder lift, upper arm roll, elbow flex, forearm roll,
    wrist flex and wrist roll.

    **Observation.** `Box(23)`, float32: the seven angles; their velocities; x, y and z of the fingertip, of the object
    and of the goal.

    **Motion.** MuJoCo's, 5 steps of 0.01 s.

    **Reward.** Minus `reward_near_weight` times the distance from the fingertip to the object, minus
    `reward_dist_weight` times the distance from the object to the goal, minus `reward_control_weight` times the sum of
    squared actions. As in MuJoCo's data after a step, the places are those of the last evaluation of the dynamics, just
    before the state.

    **Start.** The arm straight, its velocities uniform in ±0.005. The object is uniform within 0.3 in front of the goal
    and 0.2 to its sides, but not nearer to it than 0.17.

    **End.** Never, unless the state diverges. Time limit: 100 steps.
    """

    id = "Pusher-v5"
    exempt: ClassVar = {
        **Robot.exempt,
        "no_spills": "Its physics keeps more than registers and a thread's part of shared memory hold.",
    }
    Config = PusherConfig
    max_episode_steps = 100
    reward_threshold = 0.0
    reference = "gymnasium==1.4.0 Pusher-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium": "https://gymnasium.farama.org/environments/mujoco/pusher/"}
    render_fps = 20
    model = "pusher"
    needs = (11, 11, 7)
    exactly = True
    watch = ("xpos tips_arm", "xpos object", "xpos goal")
    looks = True
    view_height = 1.9
    view_above = True
    told_of_step = ("reward_dist", "reward_ctrl", "reward_near")
    parts: ClassVar = {
        "reward_near": "part of the last reward",
        "reward_dist": "part of the last reward",
        "reward_ctrl": "part of the last reward",
    }

    def observation_names(self, cfg: PusherConfig, group: str) -> dict[str, int]:
        return {"angles of the seven joints": 7, "their velocities": 7} | dict.fromkeys(
            ("the fingertip, x, y and z", "the object, x, y and z", "the goal, x, y and z"), 3
        )

    def fields(self, cfg: PusherConfig) -> dict[str, Field]:
        return {**super().fields(cfg), "places": Field("float32", (3, 3), "of the fingertip, the object and the goal")}

    def observation_space(self, cfg: PusherConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (23,), np.float32)
