"""MaMuJoCo's robots of many segments: a swimmer of any length, and ants in a row."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from gpuzoo.envs.mujoco.ant import Ant, AntConfig
from gpuzoo.envs.mujoco.factored import Factored, clipped, conf, obsk
from gpuzoo.envs.mujoco.segments_mjcf import ant, swimmer
from gpuzoo.envs.mujoco.swimmer import Swimmer, SwimmerConfig
from gpuzoo.physics.mjcf import read
from gpuzoo.physics.model import Model, load

#: segments of the models that are shipped
SHIPPED = {"many_segment_swimmer": 20, "many_segment_ant": 6}
#: more would make a text that takes minutes to compile
MOST = {"many_segment_swimmer": 28, "many_segment_ant": 12}
_TEXT = {"many_segment_swimmer": swimmer, "many_segment_ant": ant}


def numbers_of(agent_conf: str) -> tuple[int, int]:
    """Agents and segments of each.

    Raises:
        ValueError: it is not of the form "2x3".
    """
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", agent_conf)
    if match is None:
        raise ValueError(f"agent_conf={agent_conf!r} must be agents and segments of each, as in '2x3'.")
    return int(match[1]), int(match[2])


@functools.lru_cache(maxsize=16)
def model_of_size(kind: str, segments: int) -> Model:
    """The model of a number of segments: the one that is shipped, or another one, which MuJoCo compiles.

    Raises:
        ImportError: it is another one, and the package ``mujoco`` is not installed.
    """
    if SHIPPED[kind] == segments:
        return load(kind)
    return read(_TEXT[kind](segments), f"{kind} of {segments} segments")


def segments_of(cfg: Any) -> int:
    """How many segments all agents have together."""
    agents, each = numbers_of(cfg.agent_conf)
    return agents * each


class OfSegments:
    """What makes a robot's model follow from the number of segments."""

    id: ClassVar[str]
    model: ClassVar[str]

    def xml(self, cfg: Any) -> Path | None:
        return None

    def model_of(self, cfg: Any) -> Model:
        return model_of_size(self.model, segments_of(cfg))

    def mjcf(self, cfg: Any) -> tuple[str | Path, str | None] | None:
        return _TEXT[self.model](segments_of(cfg)), self.id


class Segmented(Factored):
    """A game whose model has as many segments as its agents have together."""

    #: the least number of segments
    fewest: ClassVar[int] = 1
    factorisations: ClassVar[Mapping[str, str]] = {}

    def check(self, cfg: Any) -> None:
        try:
            segments, most = segments_of(cfg), MOST[self.robot.model]
        except ValueError as error:
            raise ValueError(f"{self.id}: {error}") from error
        if not self.fewest <= segments <= most:
            raise ValueError(f"{self.id}: there may be {self.fewest} to {most} segments, not {segments}.")
        if cfg.xml_file:
            raise ValueError(f"{self.id}: the model follows from agent_conf, so there is no xml_file.")
        super().check(cfg)

    def of_segment(self, segment: int) -> list[str]:
        """The joints of a segment."""
        raise NotImplementedError(f"{type(self).__name__} must define of_segment(segment)")

    def joints_of(self, cfg: Any) -> list[str]:
        return [joint for k in range(segments_of(cfg)) for joint in self.of_segment(k)]

    def partition(self, cfg: Any) -> list[list[str]]:
        agents, each = numbers_of(cfg.agent_conf)
        return [[j for k in range(a * each, (a + 1) * each) for j in self.of_segment(k)] for a in range(agents)]


@dataclasses.dataclass(frozen=True)
class MaManySegmentSwimmerConfig(SwimmerConfig):
    """Options of Swimmer-v5, and of the factorisation."""

    agent_conf: str = conf("10x2")
    agent_obsk: int = obsk()


class LongSwimmer(OfSegments, Swimmer):
    """The swimmer that the agents move."""

    Config = MaManySegmentSwimmerConfig
    model = "many_segment_swimmer"
    view_height = 12.0
    source = Swimmer.source


class MaManySegmentSwimmer(Segmented):
    """A swimmer of many links for several agents, each of which has some joints that follow each other.

    **Agents.** `agent_conf="10x2"`: ten with two joints each. Any other `AGENTSxJOINTS`, of 2 to 28 joints in all, has
    a model of its own, which the package `mujoco` compiles.

    **Model.** A chain of capsules of length 1 and radius 0.1 (density 1000), one more than joints, in the plane of a
    fluid (density 4000, viscosity 0.1). Joints `rot0`, `rot1`, ... turn by 100 degrees at most; their motors have gear
    150, and the second, fourth, ... joint but the last turns the other way round. Joints have an armature of 0.1.

    **Actions.** `Box` in [-1, 1]: torques of the agent's joints.

    **Observation.** `Box`, float32: position and velocity of each of the agent's joints, in alphabetical order
    (`rot10` before `rot9`); the positions of joints that are 1, 2, ... and `agent_obsk` joints away. **State**: the
    observation of Swimmer-v5 with this model.

    **Motion, reward, start and end.** Those of Swimmer-v5. The reward is the same for all agents.
    """

    id = "MaManySegmentSwimmer-10x2-v1"
    exempt: ClassVar[Mapping[str, str]] = {
        **Swimmer.exempt,
        "no_spills": "The mass matrix of its chain has more numbers than a thread has registers.",
    }
    Config = MaManySegmentSwimmerConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_many_segment_swimmer/"
    }
    render_fps = Swimmer.render_fps
    robot = LongSwimmer
    fewest = 2
    root = (), ()

    def of_segment(self, segment: int) -> list[str]:
        return [f"rot{segment}"]

    def within(self, cfg: Any, own: Iterable[str], distance: int) -> list[list[str]]:
        places = [int(joint[3:]) for joint in own]
        far = {k: min(abs(k - place) for place in places) for k in range(segments_of(cfg))}
        return [sorted(f"rot{k}" for k in far if far[k] == away) for away in range(distance + 1)]


@dataclasses.dataclass(frozen=True)
class MaManySegmentAntConfig(AntConfig):
    """Options of Ant-v5, and of the factorisation."""

    agent_conf: str = conf("2x3")
    agent_obsk: int = obsk()


class LongAnt(OfSegments, Ant):
    """The ant that the agents move."""

    Config = MaManySegmentAntConfig
    model = "many_segment_ant"
    view_height = 5.0
    source = Ant.source


class MaManySegmentAnt(Segmented):
    """Ants in a row for several agents, each of which has some segments that follow each other.

    **Agents.** `agent_conf="2x3"`: two with three segments each. Any other `AGENTSxSEGMENTS`, of 1 to 12 segments in
    all, has a model of its own, which the package `mujoco` compiles.

    **Model.** Segment k has a torso, one metre behind the one before, to which a capsule joins it, and two legs with
    joints `hip1_k`, `ankle1_k`, `hip2_k` and `ankle2_k`. All torsos are one rigid body. Legs of the first segment point
    forwards, those of the others backwards; sizes, frictions and dampings are those of Ant-v5.

    **Actions.** `Box` in [-1, 1]: torques. Those of a segment are called `hip1_k`, `ankle1_k`, `hip2_k`, `ankle2_k`;
    as in the original, the first two move leg 2 and the other two leg 1.

    **Observation.** `Box`, float32. Of each of the agent's joints, in alphabetical order: position, velocity, and
    `cfrc_ext` of the joint's bodies, each body once, clipped to [-1, 1]. Then, unless `agent_obsk` is 0, the positions
    of the hips of the segment before each of the agent's segments; joints further away or behind are never observed.
    At the end the torso's height, orientation and six velocities. As in the original, positions and velocities are
    those of other numbers of `qpos` and `qvel` for all segments but the last: for the k-th from behind (0 is the last)
    of those that begin with number `4 k - 4`, counted from the end if it is negative. **State**: the observation of
    Ant-v5 with this model.

    **Motion, reward, start and end.** Those of Ant-v5. The reward is the same for all agents.
    """

    id = "MaManySegmentAnt-2x3-v1"
    exempt: ClassVar[Mapping[str, str]] = Ant.exempt
    Config = MaManySegmentAntConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_many_segment_ant/"
    }
    render_fps = Ant.render_fps
    robot = LongAnt
    root = range(2, 7), range(6)
    local = ("qpos", "qvel", "cfrc_ext"), ("qpos",)

    def of_segment(self, segment: int) -> list[str]:
        return [f"{joint}_{segment}" for joint in ("hip1", "ankle1", "hip2", "ankle2")]

    def actuators_of(self, cfg: Any) -> list[str]:
        pairs = (self.of_segment(k) for k in range(segments_of(cfg)))
        return [joint for one in pairs for joint in (*one[2:], *one[:2])]

    def within(self, cfg: Any, own: Iterable[str], distance: int) -> list[list[str]]:
        owned = [*own]
        before = sorted({int(joint.split("_")[1]) - 1 for joint in owned} - {-1})
        hips = [f"hip{leg}_{k}" for k in before for leg in (1, 2)]
        return [sorted(owned), sorted(hips), *([] for _ in range(distance))][: distance + 1]

    def numbers(self, cfg: Any, category: str, joint: str) -> list[str]:
        name, segment = joint.split("_")[0], int(joint.split("_")[1])
        if category == "cfrc_ext":
            torso, leg = 7 * segment, 7 * segment + (1 if name.endswith("1") else 4)  # the world is left out
            bodies = (torso, leg) if name.startswith("hip") else (leg, leg + 1, leg + 2)
            return [clipped(f"e.cfrc_ext[{6 * body + k}]", 1) for body in bodies for k in range(6)]
        count = segments_of(cfg)
        k = 4 * (count - 1 - segment) - 4 + ["hip1", "ankle1", "hip2", "ankle2"].index(name)
        size = 4 * count + (7 if category == "qpos" else 6)
        return [f"e.{category}[{k % size}]"]
