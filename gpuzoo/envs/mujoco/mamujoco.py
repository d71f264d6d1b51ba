"""MaMuJoCo: robots whose joints are shared out among several agents.

One file, as half of it is what players read about each robot, and the rest is one declaration that all of them share.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef, Field, param
from gpuzoo.core.dialect import inline_includes
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.values import check_ranges
from gpuzoo.envs.mujoco.ant import Ant, AntConfig
from gpuzoo.envs.mujoco.half_cheetah import HalfCheetah, HalfCheetahConfig
from gpuzoo.envs.mujoco.hopper import Hopper, HopperConfig
from gpuzoo.envs.mujoco.humanoid import Humanoid, HumanoidConfig
from gpuzoo.envs.mujoco.humanoid_standup import HumanoidStandup, HumanoidStandupConfig
from gpuzoo.envs.mujoco.options import parameters_of
from gpuzoo.envs.mujoco.pusher import Pusher, PusherConfig
from gpuzoo.envs.mujoco.reacher import Reacher, ReacherConfig
from gpuzoo.envs.mujoco.robot import Robot, check_picture, check_varied
from gpuzoo.envs.mujoco.swimmer import Swimmer, SwimmerConfig
from gpuzoo.envs.mujoco.walker2d import Walker2d, Walker2dConfig
from gpuzoo.render import Canvas

#: numbers of a body, by category
_OF_BODY = {"cinert": 10, "cvel": 6, "cfrc_ext": 6}
#: what the robot's own rules see in place of the Env of several agents
_ROBOT = """\
namespace robot {
struct Controls {
  Pack of[Physics::NU];
  GZ_MEMBER Pack operator[](int k) const { return of[k]; }
};
struct Env : gz::Env {
  Pack &reward;
  Controls action;
  Row observation;
  GZ_MEMBER Env(const gz::Env &e, Pack &sum, const Controls &controls)
      : gz::Env(e), reward(sum), action(controls), observation(e.state) {}
};
"""


def conf(default: str) -> Any:
    """The option of the agents."""
    return param(default, doc="the agents: the name of a factorisation, or the joints of each, with | between agents")


def obsk() -> Any:
    """The option of what they observe."""
    return param(1, low=0, doc="how many joints away from its own an agent observes")


class Factored(EnvDef):
    """A robot's game for several agents, each of which has some of the joints."""

    packed = True
    exempt: ClassVar[Mapping[str, str]] = Robot.exempt
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {"Peng et al. 2021": "https://arxiv.org/abs/2003.06709"}
    #: the game of one agent
    robot: ClassVar[type[Robot]]
    #: the joints that are moved, in their order
    joints: ClassVar[str]
    #: where the first of them is in ``qpos`` and ``qvel``
    first: ClassVar[tuple[int, int]] = (3, 3)
    #: the joints in the order of their actuators, if that is another one
    actuators: ClassVar[str] = ""
    #: joints that lie side by side
    edges: ClassVar[tuple[str, ...]]
    #: the joints of each agent, with | between agents, by names
    factorisations: ClassVar[Mapping[str, str]]
    #: what every agent observes of the robot's root: indices into ``qpos`` and ``qvel``
    root: ClassVar[tuple[Sequence[int], Sequence[int]]]
    #: what an agent observes of its own joints, and of those further away
    local: ClassVar[tuple[tuple[str, ...], ...]] = (("qpos", "qvel"), ("qpos",))
    #: what every agent observes besides, as expressions of the rules
    places: ClassVar[Sequence[str]] = ()
    #: velocities are observed within this
    fastest: ClassVar[int | None] = None

    @classmethod
    def source(cls) -> Path:
        return Path(__file__).with_suffix(".cuh")

    def joints_of(self, cfg: Any) -> list[str]:
        """The joints that are moved, in their order."""
        return self.joints.split()

    def actuators_of(self, cfg: Any) -> list[str]:
        """The joints in the order of their actuators."""
        return self.actuators.split() or self.joints_of(cfg)

    def partition(self, cfg: Any) -> list[list[str]]:
        """The joints of each agent.

        Raises:
            ValueError: no such factorisation, or one that does not give each joint to one agent.
        """
        text = self.factorisations.get(cfg.agent_conf, cfg.agent_conf)
        parts = [part.split() for part in text.split("|")]
        found, joints = [joint for part in parts for joint in part], self.joints_of(cfg)
        if not {*found} & {*joints}:
            raise ValueError(unknown(f"{self.id} has no factorisation", cfg.agent_conf, self.factorisations))
        if sorted(found) != sorted(joints) or not all(parts):
            raise ValueError(
                f"{self.id}: agent_conf={cfg.agent_conf!r} must give each joint to one agent, as in "
                f"{next(iter(self.factorisations.values()))!r}; the joints are {self.joints}."
            )
        return parts

    def check(self, cfg: Any) -> None:
        check_ranges(self, cfg)
        check_varied(self.id, cfg)
        check_picture(self.id, cfg)
        self.robot().check(cfg)
        m, own = self.robot().model_of(cfg), self.robot().shipped()
        if (m.jnt_names, m.body_names, m.nu) != (own.jnt_names, own.body_names, own.nu):
            name = own.source.split()[0]
            raise ValueError(f"{self.id}: xml_file must have the joints and bodies of {name}, which the agents share.")

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return parameters_of(cls.Config, options)

    def agents(self, cfg: Any) -> dict[str, int]:
        return {f"agent_{k}": 1 for k in range(len(self.partition(cfg)))}

    def within(self, cfg: Any, own: Iterable[str], distance: int) -> list[list[str]]:
        """The joints by their distance from some of them, in the order in which they are observed."""
        levels = [{*own}]
        while len(levels) <= distance:
            near = {j for edge in self.edges for j in edge.split() if levels[-1] & {*edge.split()}}
            levels.append(near.difference(*levels))
        order = self.joints_of(cfg)
        return [sorted(level, key=lambda joint: (self.label(joint), order.index(joint))) for level in levels]

    def label(self, joint: str) -> str:
        """What joints are sorted by."""
        return joint

    def numbers(self, cfg: Any, category: str, joint: str) -> list[str]:
        """What is observed of a joint, as expressions of the rules."""
        k = self.joints_of(cfg).index(joint)
        return [f"e.qpos[{self.first[0] + k}]"] if category == "qpos" else [self.velocity(self.first[1] + k)]

    def velocity(self, k: int) -> str:
        """A velocity as it is observed, as an expression of the rules."""
        return f"e.qvel[{k}]" if self.fastest is None else clipped(f"e.qvel[{k}]", self.fastest)

    def observed(self, cfg: Any, agent: int) -> list[str]:
        """An agent's observation, as expressions of the rules."""
        out: list[str] = []
        for distance, joints in enumerate(self.within(cfg, self.partition(cfg)[agent], cfg.agent_obsk)):
            for joint in joints:
                for category in self.local[min(distance, len(self.local) - 1)]:
                    found = self.numbers(cfg, category, joint)
                    # A body that belongs to several joints is observed once.
                    out += [x for x in found if x not in out] if category in _OF_BODY else found
        qpos, qvel = self.root
        return [*out, *(f"e.qpos[{k}]" for k in qpos), *(self.velocity(k) for k in qvel), *self.places]

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        size = len(self.observed(cfg, int(group.removeprefix("agent_"))))
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def state_space(self, cfg: Any) -> spaces.Box:
        space = self.robot().observation_space(cfg, "agent")
        assert isinstance(space, spaces.Box)
        return space

    def action_space(self, cfg: Any, group: str) -> spaces.Box:
        one = self.robot().action_space(cfg, "agent")
        size = len(self.partition(cfg)[int(group.removeprefix("agent_"))])
        return spaces.Box(one.low[0], one.high[0], (size,), np.float32)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        names = [*self.robot().state_names(cfg)]
        first = {"qpos": 0, "qvel": self.robot().model_of(cfg).nq}
        found: dict[str, int] = {}
        last = ""
        for number in self.observed(cfg, int(group.removeprefix("agent_"))):
            match = re.search(r"e\.(\w+)(?:\[(\d+)\])?", number)
            what, k = (match[1], int(match[2] or 0)) if match else (number, 0)
            turned = re.match(r"(sin|cos)\(", number)
            if what in first:
                name = f"{turned[1]} of the {names[k]}" if turned else names[first[what] + k]
            else:
                name = f"{what}, part {k // 6}" if match and match[2] else what
            while name in found and name != last:  # what is observed twice has two names
                name += ", again"
            last = name
            found[name] = found.get(name, 0) + 1
        return found

    def action_names(self, cfg: Any, group: str) -> dict[str, int]:
        joints = self.partition(cfg)[int(group.removeprefix("agent_"))]
        return dict.fromkeys((f"control of {joint}" for joint in joints), 1)

    def fields(self, cfg: Any) -> dict[str, Field]:
        return self.robot().fields(cfg)

    def constants(self, cfg: Any) -> dict[str, int]:
        return self.robot().constants(cfg)

    def infos(self, cfg: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.robot().infos(cfg, state)

    def step_infos(self, cfg: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.robot().step_infos(cfg, state)

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        return self.robot().tables(cfg)

    def generated(self, cfg: Any) -> str:
        actuators = self.actuators_of(cfg)
        parts = self.partition(cfg)
        moved = [(actuators.index(j), a, k) for a, part in enumerate(parts) for k, j in enumerate(part)]
        return "\n".join(
            [
                self.robot().generated(cfg),
                _ROBOT,
                *(piece.text for piece in inline_includes(self.robot.source())),
                "}  // namespace robot",
                f'#line 1 "{self.id}, generated"',
                "GZ robot::Controls controls_of(const Env &e) {\n  robot::Controls c;",
                *(f"  c.of[{u}] = e.action({a}, {k});" for u, a, k in moved),
                "  return c;\n}\nGZ void sense(const Env &e) {",
                *(
                    f"  e.observation[{a}][{k}] = {number};"
                    for a in range(len(parts))
                    for k, number in enumerate(self.observed(cfg, a))
                ),
                "}\n",
            ]
        )

    def aspect(self, cfg: Any) -> float:
        return self.robot().aspect(cfg)

    def side(self, cfg: Any) -> int:
        return self.robot().side(cfg)

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        self.robot().render(cfg, state, canvas)


def clipped(number: str, limit: int) -> str:
    """A number within a limit, as an expression of the rules."""
    return f"clamp(Pack({number}), Pack(-{limit}.f), Pack({limit}.f))"


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
        if category not in _OF_BODY:
            return super().numbers(cfg, category, joint)
        m, size = self.robot.shipped(), _OF_BODY[category]
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
