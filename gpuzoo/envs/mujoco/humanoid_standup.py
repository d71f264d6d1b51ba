"""HumanoidStandup."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.person import Person, PersonConfig


@dataclasses.dataclass(frozen=True)
class HumanoidStandupConfig(PersonConfig):
    """Options of Gymnasium's HumanoidStandup-v5; its ranges are two numbers each."""

    uph_cost_weight: float = param(1.0, doc="weight of the height in the reward; Gymnasium's has no effect")
    impact_cost_weight: float = param(0.5e-6, doc="weight of the contact forces' cost")
    impact_cost_low: float = param(-1e30, doc="the cost of contact forces is clipped to this at least")
    impact_cost_high: float = param(10.0, doc="the cost of contact forces is clipped to this at most")


class HumanoidStandup(Person):
    """A robot with two legs and two arms lies on its back, and stands up as fast as it can.

    **Actions.** `Box(17)` in [-0.4, 0.4]: torques, as Humanoid's.

    **Observation.** `Box(348)`, float32, as Humanoid's.

    **Motion.** MuJoCo's, 5 steps of 0.003 s. The contacts' forces are those of the exact minimum, which MuJoCo's
    solver of this model (PGS, 50 rounds) comes near.

    **Reward.** `uph_cost_weight` times the torso's height over 0.003 s, plus 1, less `ctrl_cost_weight` times the sum
    of squared actions, less `impact_cost_weight` times the sum of squares of the contact forces, clipped. As in
    MuJoCo's data after a step, the forces are those of the last evaluation of the dynamics, just before the state.

    **Start.** The model's own position and rest, with uniform noise of `reset_noise_scale`.

    **End.** Never, unless the state diverges. Time limit: 1000 steps.
    """

    id = "HumanoidStandup-v5"
    Config = HumanoidStandupConfig
    max_episode_steps = 1000
    reference = "gymnasium==1.4.0 HumanoidStandup-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/mujoco/humanoid_standup/"
    }
    model = "humanoid_standup"
    ways = 2
    watch = ("cinert", "cvel", "cfrc_ext", "qfrc_actuator")
    told = ("x_position", "y_position", "z_distance_from_origin", "tendon_length", "tendon_velocity")
    told_of_step = ("reward_linup", "reward_quadctrl", "reward_impact")
    parts: ClassVar = {
        "reward_linup": "part of the last reward",
        "reward_quadctrl": "part of the last reward",
        "reward_impact": "part of the last reward",
    }
