"""A robot for several agents: which joints each of them has, and what it observes."""

from __future__ import annotations

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
from gpuzoo.envs.mujoco.options import parameters_of
from gpuzoo.envs.mujoco.robot import Robot, check_picture, check_varied
from gpuzoo.render import Canvas

#: numbers of a body, by category
OF_BODY = {"cinert": 10, "cvel": 6, "cfrc_ext": 6}
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
        return Path(__file__).with_name("mamujoco.cuh")

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
                    out += [x for x in found if x not in out] if category in OF_BODY else found
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
