"""Humanoid and HumanoidStandup of MaMuJoCo: the joints of a person are shared out among agents."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from gpuzoo.envs.mujoco.factored import OF_BODY, Factored, conf, obsk
from gpuzoo.envs.mujoco.humanoid import Humanoid, HumanoidConfig
from gpuzoo.envs.mujoco.humanoid_standup import HumanoidStandup, HumanoidStandupConfig


class MaPerson(Factored):
    """What Humanoid and HumanoidStandup for several agents have in common."""

    exempt: ClassVar[Mapping[str, str]] = Humanoid.exempt
    joints = (
        "abdomen_y abdomen_z abdomen_x right_hip_x right_hip_z right_hip_y right_knee left_hip_x left_hip_z left_hip_y "
        "left_knee right_shoulder1 right_shoulder2 right_elbow left_shoulder1 left_shoulder2 left_elbow"
    )
    first = (7, 6)
    edges = (
        "abdomen_x abdomen_y abdomen_z",
        "right_hip_x right_hip_y right_hip_z",
        "left_hip_x left_hip_y left_hip_z",
        "left_elbow left_shoulder1 left_shoulder2",
        "right_elbow right_shoulder1 right_shoulder2",
        "left_knee left_hip_x left_hip_y left_hip_z",
        "right_knee right_hip_x right_hip_y right_hip_z",
        "left_shoulder1 left_shoulder2 abdomen_x abdomen_y abdomen_z",
        "right_shoulder1 right_shoulder2 abdomen_x abdomen_y abdomen_z",
        "abdomen_x abdomen_y abdomen_z left_hip_x left_hip_y left_hip_z",
        "abdomen_x abdomen_y abdomen_z right_hip_x right_hip_y right_hip_z",
    )
    factorisations: ClassVar = {
        "9|8": (
            "abdomen_x abdomen_y abdomen_z right_shoulder1 right_shoulder2 right_elbow left_shoulder1 left_shoulder2 "
            "left_elbow | right_hip_x right_hip_y right_hip_z right_knee left_hip_x left_hip_y left_hip_z left_knee"
        )
    }
    root = range(2, 7), range(6)
    local = ("qpos", "qvel", "cinert", "cvel", "qfrc_actuator", "cfrc_ext"), ("qpos",)
    #: the bodies of each joint, by what its name begins with
    bodies: ClassVar[Mapping[str, str]] = {
        "abdomen_x": "pelvis right_thigh left_thigh",
        "abdomen": "torso lwaist pelvis",
        "right_hip": "right_thigh right_shin",
        "right_knee": "right_shin right_foot",
        "left_hip": "left_thigh left_shin",
        "left_knee": "left_shin left_foot",
        "right_shoulder": "torso right_upper_arm right_lower_arm",
        "right_elbow": "right_lower_arm",
        "left_shoulder": "torso left_upper_arm left_lower_arm",
        "left_elbow": "left_lower_arm",
    }

    def numbers(self, cfg: Any, category: str, joint: str) -> list[str]:
        if category == "qfrc_actuator":
            return [f"e.qfrc_actuator[{self.joints.split().index(joint)}]"]
        if category not in OF_BODY:
            return super().numbers(cfg, category, joint)
        m, size = self.robot.shipped(), OF_BODY[category]
        names = next(names for start, names in self.bodies.items() if joint.startswith(start)).split()
        return [f"e.{category}[{size * (m.index('body', name) - 1) + k}]" for name in names for k in range(size)]


@dataclasses.dataclass(frozen=True)
class MaHumanoidConfig(HumanoidConfig):
    """Options of Humanoid-v5, and of the factorisation."""

    agent_conf: str = conf("9|8")
    agent_obsk: int = obsk()


class MaHumanoid(MaPerson):
    """Humanoid for two agents: the upper and the lower half of the body.

    **Agents.** `agent_conf="9|8"`: one for `abdomen_x`, `abdomen_y`, `abdomen_z`, `right_shoulder1`, `right_shoulder2`,
    `right_elbow`, `left_shoulder1`, `left_shoulder2` and `left_elbow`; one for `right_hip_x`, `right_hip_y`,
    `right_hip_z`, `right_knee`, `left_hip_x`, `left_hip_y`, `left_hip_z` and `left_knee`. Other factorisations give the
    joints of each agent, with `|` between agents.

    **Actions.** `Box` in [-0.4, 0.4]: torques of the agent's joints, in this order.

    **Observation.** `Box`, float32: position and velocity of each of the agent's joints, in alphabetical order, with
    `cinert`, `cvel` and `cfrc_ext` of the joint's bodies, each body once, and the joint's `qfrc_actuator`; the
    positions of joints that are 1, 2, ... and `agent_obsk` joints away; the torso's height, orientation and six
    velocities. As in the original, positions, velocities and torques of `abdomen_y` and `abdomen_z` are interchanged.
    **State**: the observation of Humanoid-v5.

    **Motion, reward, start and end.** Those of Humanoid-v5. The reward is the same for both agents.
    """

    id = "MaHumanoid-9-8-v1"
    Config = MaHumanoidConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_humanoid/"
    }
    render_fps = Humanoid.render_fps
    robot = Humanoid


@dataclasses.dataclass(frozen=True)
class MaHumanoidStandupConfig(HumanoidStandupConfig):
    """Options of HumanoidStandup-v5, and of the factorisation."""

    agent_conf: str = conf("9|8")
    agent_obsk: int = obsk()


class MaHumanoidStandup(MaPerson):
    """HumanoidStandup for two agents: the upper and the lower half of the body.

    **Agents, actions and observation.** Those of MaHumanoid. **State**: the observation of HumanoidStandup-v5.

    **Motion, reward, start and end.** Those of HumanoidStandup-v5. The reward is the same for both agents.
    """

    id = "MaHumanoidStandup-9-8-v1"
    Config = MaHumanoidStandupConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_humanoid_standup/"
    }
    render_fps = HumanoidStandup.render_fps
    robot = HumanoidStandup
