"""Ant."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class AntConfig(RobotConfig):
    """Options of Gymnasium's Ant-v5; its ranges are two numbers each."""

    frame_skip: int = param(5, low=1, doc="steps of time, of 0.01 seconds, for each step of the env")
    forward_reward_weight: float = param(1.0, doc="weight of the velocity in the reward")
    ctrl_cost_weight: float = param(0.5, doc="weight of the actions' cost")
    contact_cost_weight: float = param(5e-4, doc="weight of the contact forces' cost")
    healthy_reward: float = param(1.0, doc="reward of each step in a healthy state")
    main_body: str = param("1", doc="number or name of the body whose velocity is rewarded")
    terminate_when_unhealthy: bool = param(True, doc="whether the episode ends in an unhealthy state")
    healthy_z_low: float = param(0.2, doc="the lowest healthy height")
    healthy_z_high: float = param(1.0, doc="the greatest healthy height")
    contact_force_low: float = param(-1.0, doc="contact forces are clipped to this at least")
    contact_force_high: float = param(1.0, doc="contact forces are clipped to this at most")
    reset_noise_scale: float = param(0.1, low=0.0, doc="noise of the first state")
    exclude_current_positions_from_observation: bool = param(True, doc="whether x and y are not observed")
    include_cfrc_ext_in_observation: bool = param(True, doc="whether contact forces are observed")


class Ant(Robot):
    """A robot with four legs walks in the direction of x as fast as it can.

    **Actions.** `Box(8)` in [-1, 1]: torques of hip and ankle of the fourth, first, second and third leg.

    **Observation.** `Box(105)`, float32: `qpos` without x and y (height, orientation as a quaternion, eight joints),
    `qvel` (three velocities, three angular velocities in the torso's frame, eight joints), and `cfrc_ext` of the 13
    bodies (torque and force of contacts, along the world's axes, about the centre of mass), clipped to [-1, 1].

    **Motion.** MuJoCo's, 5 steps of 0.01 s.

    **Reward.** `healthy_reward` in a healthy state, plus `forward_reward_weight` times the velocity of `main_body` (the
    torso) in x over the step, less `ctrl_cost_weight` times the sum of squared actions, less `contact_cost_weight`
    times the sum of squares of the clipped contact forces. As in MuJoCo's data after a step, the body's place and the
    forces are those of the last evaluation of the dynamics, just before the state.

    **Start.** The model's own position and rest, with uniform noise of `reset_noise_scale` in `qpos` and normal noise
    in `qvel`.

    **End.** The height is not in [0.2, 1]. Time limit: 1000 steps.
    """

    id = "Ant-v5"
    exempt: ClassVar = {
        **Robot.exempt,
        "no_spills": "Its contacts, which a loop goes through, are more than a thread's part of shared memory holds.",
    }
    Config = AntConfig
    max_episode_steps = 1000
    reward_threshold = 6000.0
    reference = "gymnasium==1.4.0 Ant-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium": "https://gymnasium.farama.org/environments/mujoco/ant/"}
    render_fps = 20
    model = "ant"
    ways = 2
    looks = True
    needs = (3, 3, 1)
    view_height = 2.4
    told = ("x_position", "y_position", "distance_from_origin")
    told_of_step = ("x_velocity", "y_velocity", "reward_forward", "reward_ctrl", "reward_contact", "reward_survive")
    parts: ClassVar = {
        "lag_x": "from the root to where the main body was last measured",
        "lag_y": "from the root to where the main body was last measured",
        "x_velocity": "velocity in x over the last step",
        "y_velocity": "velocity in y over the last step",
        "reward_forward": "part of the last reward",
        "reward_ctrl": "part of the last reward",
        "reward_contact": "part of the last reward",
        "reward_survive": "part of the last reward",
    }

    def watch_of(self, cfg: AntConfig) -> tuple[str, ...]:
        return f"xpos {self.model_of(cfg).index('body', cfg.main_body)}", "cfrc_ext"

    def check(self, cfg: AntConfig) -> None:
        super().check(cfg)
        try:
            self.watch_of(cfg)
        except ValueError as error:
            raise ValueError(f"{self.id}: main_body: {error}") from error

    def generated(self, cfg: AntConfig) -> str:
        member = self.watch_of(cfg)[0].replace(" ", "_")
        return (
            super().generated(cfg) + f"GZ Pack main_body(const Physics &s, int i) {{ return Pack(s.{member}[i]); }}\n"
        )

    def observation_names(self, cfg: AntConfig, group: str) -> dict[str, int]:
        forces = {f"contact torque and force on {body}": 6 for body in self.bodies(cfg)}
        state = self.state_names(cfg, 2 * cfg.exclude_current_positions_from_observation)
        return state | forces if cfg.include_cfrc_ext_in_observation else state

    def fields(self, cfg: AntConfig) -> dict[str, Field]:
        doc = "clipped contact forces on the bodies"
        return {**super().fields(cfg), "cfrc_ext": Field("float32", (self.model_of(cfg).nbody - 1, 6), doc)}

    def observation_space(self, cfg: AntConfig, group: str) -> spaces.Box:
        m = self.model_of(cfg)
        size = m.nq + m.nv - 2 * cfg.exclude_current_positions_from_observation
        size += 6 * (m.nbody - 1) * cfg.include_cfrc_ext_in_observation
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def constants(self, cfg: Any) -> dict[str, int]:
        return {**super().constants(cfg), "BODIES": self.model_of(cfg).nbody}
