"""MaMuJoCo: robots whose joints are shared out among several agents.

What all of them share is in ``factored.py``; here is what players read about each robot.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

from gpuzoo.envs.mujoco.ant import Ant, AntConfig
from gpuzoo.envs.mujoco.factored import Factored, clipped, conf, obsk
from gpuzoo.envs.mujoco.half_cheetah import HalfCheetah, HalfCheetahConfig
from gpuzoo.envs.mujoco.hopper import Hopper, HopperConfig
from gpuzoo.envs.mujoco.pusher import Pusher, PusherConfig
from gpuzoo.envs.mujoco.reacher import Reacher, ReacherConfig
from gpuzoo.envs.mujoco.swimmer import Swimmer, SwimmerConfig
from gpuzoo.envs.mujoco.walker2d import Walker2d, Walker2dConfig


@dataclasses.dataclass(frozen=True)
class MaReacherConfig(ReacherConfig):
    """Options of Reacher-v5, and of the factorisation."""

    agent_conf: str = conf("2x1")
    agent_obsk: int = obsk()


class MaReacher(Factored):
    """Reacher for two agents, each of which has a joint.

    **Agents.** `agent_conf="2x1"`: one for each of the joints `joint0` and `joint1`.

    **Actions.** `Box` in [-1, 1]: the torque of the agent's joint.

    **Observation.** `Box`, float32: sine and cosine of the agent's joint, and its velocity; for `joint1`, x, y and z
    from the target to the fingertip (z is 0); sine and cosine of the other joint, unless `agent_obsk=0`; the target's x
    and y. **State**: the observation of Reacher-v5.

    **Motion, reward, start and end.** Those of Reacher-v5. The reward is the same for both agents.
    """

    id = "MaReacher-2x1-v1"
    Config = MaReacherConfig
    max_episode_steps = 50
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_reacher/"}
    render_fps = Reacher.render_fps
    robot = Reacher
    joints = "joint0 joint1"
    first = (0, 0)
    edges = ("joint0 joint1",)
    factorisations: ClassVar = {"2x1": "joint0 | joint1"}
    root = (2, 3), ()
    local = ("qpos", "qvel", "fingertip_dist"), ("qpos",)

    def numbers(self, cfg: Any, category: str, joint: str) -> list[str]:
        if category == "fingertip_dist":
            return ["e.apart_x", "e.apart_y", "Pack(0.f)"] if joint == "joint1" else []
        numbers = super().numbers(cfg, category, joint)
        return [f"{turn}({numbers[0]})" for turn in ("sin", "cos")] if category == "qpos" else numbers


@dataclasses.dataclass(frozen=True)
class MaPusherConfig(PusherConfig):
    """Options of Pusher-v5, and of the factorisation."""

    agent_conf: str = conf("3p")
    agent_obsk: int = obsk()


class MaPusher(Factored):
    """Pusher for three agents: shoulder, elbow and wrist.

    **Agents.** `agent_conf="3p"`: one for `r_shoulder_pan_joint`, `r_shoulder_lift_joint` and `r_upper_arm_roll_joint`,
    one for `r_elbow_flex_joint`, one for `r_forearm_roll_joint`, `r_wrist_flex_joint` and `r_wrist_roll_joint`. Other
    factorisations give the joints of each agent, with `|` between agents.

    **Actions.** `Box` in [-2, 2]: torques of the agent's joints, in this order.

    **Observation.** `Box`, float32: position and velocity of each of the agent's joints, in alphabetical order, where
    `r_shoulder_pan_joint` and `r_shoulder_lift_joint` count as `r_wrist_roll_joint`, as in the original; the positions
    of joints that are 1, 2, ... and `agent_obsk` joints away; x, y and z of the fingertip, of the object and of the
    goal. **State**: the observation of Pusher-v5.

    **Motion, reward, start and end.** Those of Pusher-v5. The reward is the same for all agents.
    """

    id = "MaPusher-3p-v1"
    exempt: ClassVar[Mapping[str, str]] = Pusher.exempt
    Config = MaPusherConfig
    max_episode_steps = 100
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    render_fps = Pusher.render_fps
    robot = Pusher
    joints = (
        "r_shoulder_pan_joint r_shoulder_lift_joint r_upper_arm_roll_joint r_elbow_flex_joint r_forearm_roll_joint "
        "r_wrist_flex_joint r_wrist_roll_joint"
    )
    first = (0, 0)
    edges = tuple(f"{a} {b}" for a, b in itertools.pairwise(joints.split()))
    factorisations: ClassVar = {
        "3p": (
            "r_shoulder_pan_joint r_shoulder_lift_joint r_upper_arm_roll_joint | r_elbow_flex_joint | "
            "r_forearm_roll_joint r_wrist_flex_joint r_wrist_roll_joint"
        )
    }
    root = (), ()
    places = tuple(f"e.places[{k}]" for k in range(9))

    def label(self, joint: str) -> str:
        return "r_wrist_roll_joint" if "shoulder" in joint else joint


@dataclasses.dataclass(frozen=True)
class MaHalfCheetahConfig(HalfCheetahConfig):
    """Options of HalfCheetah-v5, and of the factorisation."""

    agent_conf: str = conf("2x3")
    agent_obsk: int = obsk()


class MaHalfCheetah(Factored):
    """HalfCheetah for several agents, each of which has some of the joints.

    **Agents.** `agent_conf="2x3"`: the back leg and the front leg; `"6x1"`: one for each of the joints `bthigh`,
    `bshin`, `bfoot`, `fthigh`, `fshin` and `ffoot`. Other factorisations give the joints of each agent:
    `agent_conf="bthigh fthigh | bshin fshin | bfoot ffoot"`.

    **Actions.** `Box` in [-1, 1]: torques of the agent's joints.

    **Observation.** `Box`, float32: position and velocity of each of the agent's joints, in alphabetical order; the
    positions of joints that are 1, 2, ... and `agent_obsk` joints away; the root's height and pitch, and its velocities
    in x, height and pitch. **State**: the observation of HalfCheetah-v5.

    **Motion, reward, start and end.** Those of HalfCheetah-v5. The reward is the same for all agents.
    """

    id = "MaHalfCheetah-2x3-v1"
    Config = MaHalfCheetahConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_half_cheetah/"
    }
    exempt: ClassVar[Mapping[str, str]] = {
        **HalfCheetah.exempt,
        "no_spills": "Its physics takes all registers, and what its agents observe a few values besides.",
    }
    render_fps = HalfCheetah.render_fps
    robot = HalfCheetah
    joints = "bthigh bshin bfoot fthigh fshin ffoot"
    edges = ("bfoot bshin", "bshin bthigh", "bthigh fthigh", "fthigh fshin", "fshin ffoot")
    factorisations: ClassVar = {
        "2x3": "bthigh bshin bfoot | fthigh fshin ffoot",
        "6x1": "bthigh | bshin | bfoot | fthigh | fshin | ffoot",
    }
    root = (1, 2), (0, 1, 2)

    @classmethod
    def variants(cls) -> dict[str, dict[str, Any]]:
        return {"MaHalfCheetah-6x1-v1": {"agent_conf": "6x1"}}


@dataclasses.dataclass(frozen=True)
class MaAntConfig(AntConfig):
    """Options of Ant-v5, and of the factorisation."""

    agent_conf: str = conf("4x2")
    agent_obsk: int = obsk()


class MaAnt(Factored):
    """Ant for several agents, each of which has some of the joints.

    **Agents.** `agent_conf="4x2"`: one for each leg; `"2x4"`: the legs in front and those behind; `"2x4d"`: legs that
    are diagonal to each other; `"8x1"` (which the original does not name): one for each of the joints `hip1`, `ankle1`,
    `hip2`, `ankle2`, `hip3`, `ankle3`, `hip4` and `ankle4`. Other factorisations give the joints of each agent:
    `agent_conf="hip1 hip2 hip3 hip4 | ankle1 ankle2 ankle3 ankle4"`.

    **Actions.** `Box` in [-1, 1]: torques of the agent's joints.

    **Observation.** `Box`, float32: position, velocity, and `cfrc_ext` of the joint's bodies, each body once, clipped
    to [-1, 1], of each of the agent's joints, in alphabetical order; the positions of joints that are 1, 2, ... and
    `agent_obsk` joints away, where all hips are neighbours; the torso's height, orientation and six velocities.
    **State**: the observation of Ant-v5.

    **Motion, reward, start and end.** Those of Ant-v5. The reward is the same for all agents.
    """

    id = "MaAnt-4x2-v1"
    exempt: ClassVar[Mapping[str, str]] = Ant.exempt
    Config = MaAntConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_ant/"}
    render_fps = Ant.render_fps
    robot = Ant
    joints = "hip1 ankle1 hip2 ankle2 hip3 ankle3 hip4 ankle4"
    first = (7, 6)
    actuators = "hip4 ankle4 hip1 ankle1 hip2 ankle2 hip3 ankle3"
    edges = ("hip1 ankle1", "hip2 ankle2", "hip3 ankle3", "hip4 ankle4", "hip1 hip2 hip3 hip4")
    factorisations: ClassVar = {
        "4x2": "hip1 ankle1 | hip2 ankle2 | hip3 ankle3 | hip4 ankle4",
        "2x4": "hip1 ankle1 hip2 ankle2 | hip3 ankle3 hip4 ankle4",
        "2x4d": "hip1 ankle1 hip4 ankle4 | hip2 ankle2 hip3 ankle3",
        "8x1": "hip1 | ankle1 | hip2 | ankle2 | hip3 | ankle3 | hip4 | ankle4",
    }
    root = range(2, 7), range(6)
    local = ("qpos", "qvel", "cfrc_ext"), ("qpos",)

    @classmethod
    def variants(cls) -> dict[str, dict[str, Any]]:
        return {"MaAnt-2x4-v1": {"agent_conf": "2x4"}, "MaAnt-2x4d-v1": {"agent_conf": "2x4d"}}

    def numbers(self, cfg: Any, category: str, joint: str) -> list[str]:
        if category != "cfrc_ext":
            return super().numbers(cfg, category, joint)
        leg = 3 * int(joint[-1]) - 1  # the first of its three bodies; the torso is 1
        bodies = (1, leg) if joint.startswith("hip") else (leg, leg + 1, leg + 2)
        return [clipped(f"e.cfrc_ext[{6 * (body - 1) + k}]", 1) for body in bodies for k in range(6)]


@dataclasses.dataclass(frozen=True)
class MaHopperConfig(HopperConfig):
    """Options of Hopper-v5, and of the factorisation."""

    agent_conf: str = conf("3x1")
    agent_obsk: int = obsk()


class MaHopper(Factored):
    """Hopper for three agents, each of which has a joint.

    **Agents.** `agent_conf="3x1"`: one for each of the joints `thigh_joint`, `leg_joint` and `foot_joint`. Other
    factorisations give the joints of each agent: `agent_conf="thigh_joint | leg_joint foot_joint"`.

    **Actions.** `Box` in [-1, 1]: torques of the agent's joints.

    **Observation.** `Box`, float32: position and velocity of each of the agent's joints, in alphabetical order; the
    positions of joints that are 1, 2, ... and `agent_obsk` joints away; the root's height and pitch, and its velocities
    in x, height and pitch. Velocities are clipped to [-10, 10]. **State**: the observation of Hopper-v5.

    **Motion, reward, start and end.** Those of Hopper-v5. The reward is the same for all agents.
    """

    id = "MaHopper-3x1-v1"
    Config = MaHopperConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_hopper/"}
    render_fps = Hopper.render_fps
    robot = Hopper
    joints = "thigh_joint leg_joint foot_joint"
    edges = ("foot_joint leg_joint", "leg_joint thigh_joint")
    factorisations: ClassVar = {"3x1": "thigh_joint | leg_joint | foot_joint"}
    root = (1, 2), (0, 1, 2)
    fastest = 10


@dataclasses.dataclass(frozen=True)
class MaWalker2dConfig(Walker2dConfig):
    """Options of Walker2d-v5, and of the factorisation."""

    agent_conf: str = conf("2x3")
    agent_obsk: int = obsk()


class MaWalker2d(Factored):
    """Walker2d for two agents, each of which has a leg.

    **Agents.** `agent_conf="2x3"`: one for `foot_joint`, `leg_joint` and `thigh_joint`, one for `foot_left_joint`,
    `leg_left_joint` and `thigh_left_joint`. Other factorisations give the joints of each agent, with `|` between
    agents.

    **Actions.** `Box` in [-1, 1]: torques of the agent's joints, in this order.

    **Observation.** `Box`, float32: position and velocity of each of the agent's joints, in alphabetical order; the
    positions of joints that are 1, 2, ... and `agent_obsk` joints away; the root's height and pitch, and its velocities
    in x, height and pitch. As in the original, velocities are not clipped. **State**: the observation of Walker2d-v5.

    **Motion, reward, start and end.** Those of Walker2d-v5. The reward is the same for all agents.
    """

    id = "MaWalker2d-2x3-v1"
    exempt: ClassVar[Mapping[str, str]] = Walker2d.exempt
    Config = MaWalker2dConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_walker2d/"
    }
    render_fps = Walker2d.render_fps
    robot = Walker2d
    joints = "thigh_joint leg_joint foot_joint thigh_left_joint leg_left_joint foot_left_joint"
    edges = (
        "foot_joint leg_joint",
        "leg_joint thigh_joint",
        "foot_left_joint leg_left_joint",
        "leg_left_joint thigh_left_joint",
        "thigh_joint thigh_left_joint",
    )
    factorisations: ClassVar = {
        "2x3": "foot_joint leg_joint thigh_joint | foot_left_joint leg_left_joint thigh_left_joint"
    }
    root = (1, 2), (0, 1, 2)


@dataclasses.dataclass(frozen=True)
class MaSwimmerConfig(SwimmerConfig):
    """Options of Swimmer-v5, and of the factorisation."""

    agent_conf: str = conf("2x1")
    agent_obsk: int = obsk()


class MaSwimmer(Factored):
    """Swimmer for two agents, each of which has a joint.

    **Agents.** `agent_conf="2x1"`: one for each of the joints `rot2` and `rot3`.

    **Actions.** `Box` in [-1, 1]: the torque of the agent's joint.

    **Observation.** `Box`, float32: position and velocity of the agent's joint; between these, the front tip's velocity
    in x (for `rot2`) or y (for `rot3`); the position of the other joint, unless `agent_obsk=0`; the heading, and its
    velocity. **State**: the observation of Swimmer-v5.

    **Motion, reward, start and end.** Those of Swimmer-v5. The reward is the same for both agents.
    """

    id = "MaSwimmer-2x1-v1"
    Config = MaSwimmerConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {"Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_swimmer/"}
    render_fps = Swimmer.render_fps
    robot = Swimmer
    joints = "rot2 rot3"
    edges = ("rot2 rot3",)
    factorisations: ClassVar = {"2x1": "rot2 | rot3"}
    root = (2,), (2,)

    def numbers(self, cfg: Any, category: str, joint: str) -> list[str]:
        tip = [self.velocity(self.joints.split().index(joint))] if category == "qvel" else []
        return tip + super().numbers(cfg, category, joint)
