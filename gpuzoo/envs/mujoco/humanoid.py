"""Humanoid."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.person import Person, PersonConfig


@dataclasses.dataclass(frozen=True)
class HumanoidConfig(PersonConfig):
    """Options of Gymnasium's Humanoid-v5; its ranges are two numbers each."""

    forward_reward_weight: float = param(1.25, doc="weight of the velocity in the reward")
    contact_cost_weight: float = param(5e-7, doc="weight of the contact forces' cost")
    contact_cost_low: float = param(-1e30, doc="the cost of contact forces is clipped to this at least")
    contact_cost_high: float = param(10.0, doc="the cost of contact forces is clipped to this at most")
    healthy_reward: float = param(5.0, doc="reward of each step in a healthy state")
    terminate_when_unhealthy: bool = param(True, doc="whether the episode ends in an unhealthy state")
    healthy_z_low: float = param(1.0, doc="a healthy height is greater")
    healthy_z_high: float = param(2.0, doc="a healthy height is smaller")


class Humanoid(Person):
    """A robot with two legs and two arms walks in the direction of x as fast as it can.

    **Actions.** `Box(17)` in [-0.4, 0.4]: torques of the abdomen (y, z, x), of the right hip (x, z, y) and knee, of the
    left hip and knee, of the right shoulder (two axes) and elbow, and of the left shoulder and elbow.

    **Observation.** `Box(348)`, float32: `qpos` without x and y (height, orientation as a quaternion, 17 joints),
    `qvel` (three velocities, three angular velocities in the torso's frame, 17 joints); of the 13 bodies, about the
    centre of mass and along the world's axes, `cinert` (six entries of the inertia, mass times place, mass), `cvel`
    (angular velocity, velocity) and, at the end, `cfrc_ext` (torque and force of contacts); before that, the torques
    of the 17 actuators, `qfrc_actuator`.

    **Motion.** MuJoCo's, 5 steps of 0.003 s. The contacts' forces are those of the exact minimum, which MuJoCo's
    solver of this model (PGS, 50 rounds) comes near.

    **Reward.** `healthy_reward` in a healthy state, plus `forward_reward_weight` times the velocity in x of the centre
    of mass over the step, less `ctrl_cost_weight` times the sum of squared actions, less `contact_cost_weight` times
    the sum of squares of the contact forces, clipped. As in MuJoCo's data after a step, the centre's place, `cinert`,
    `cvel`, the forces and the tendons are those of the last evaluation of the dynamics, just before the state.

    **Start.** The model's own position and rest, with uniform noise of `reset_noise_scale`.

    **End.** The height is not between 1 and 2. Time limit: 1000 steps.
    """

    id = "Humanoid-v5"
    Config = HumanoidConfig
    max_episode_steps = 1000
    reference = "gymnasium==1.4.0 Humanoid-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium": "https://gymnasium.farama.org/environments/mujoco/humanoid/"}
    model = "humanoid"
    ways = 2
    watch = ("subtree_com 0", "cinert", "cvel", "cfrc_ext", "qfrc_actuator")
    told = ("x_position", "y_position", "distance_from_origin", "tendon_length", "tendon_velocity")
    told_of_step = (
        "x_velocity",
        "y_velocity",
        "reward_forward",
        "reward_ctrl",
        "reward_contact",
        "reward_survive",
    )
    parts: ClassVar = {
        "lag_x": "from the torso to where the centre of mass was last measured",
        "lag_y": "from the torso to where the centre of mass was last measured",
        "x_velocity": "velocity in x over the last step",
        "y_velocity": "velocity in y over the last step",
        "reward_forward": "part of the last reward",
        "reward_ctrl": "part of the last reward",
        "reward_contact": "part of the last reward",
        "reward_survive": "part of the last reward",
    }
