"""CoupledHalfCheetah."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mujoco.factored import Factored, conf, obsk
from gpuzoo.envs.mujoco.half_cheetah import HalfCheetah
from gpuzoo.envs.mujoco.robot import ModelConfig

#: the tendon's Jacobian, by degrees of freedom that move its ends
_PULLED = (0, 1, 9, 10)


@dataclasses.dataclass(frozen=True)
class MaCoupledHalfCheetahConfig(ModelConfig):
    """Options; the original has those of the factorisation only."""

    frame_skip: int = param(5, low=1, doc="steps of time, of 0.01 seconds, for each step of the env")
    forward_reward_weight: float = param(1.0, doc="weight of the velocity in the reward")
    ctrl_cost_weight: float = param(0.1, doc="weight of the actions' cost")
    reset_noise_scale: float = param(0.1, low=0.0, doc="noise of the first state")
    agent_conf: str = conf("1p1")
    agent_obsk: int = obsk()


class CoupledHalfCheetah(HalfCheetah):
    """The two cheetahs that the agents move."""

    Config = MaCoupledHalfCheetahConfig  # type: ignore[assignment]
    model = "coupled_half_cheetah"
    evaluates = True
    watch = ("ten_j tendon0", "ten_length", "ten_velocity")
    told = ()  # type: ignore[assignment]
    told_of_step = (  # type: ignore[assignment]
        "x_position1",
        "x_position2",
        "x_velocity1",
        "x_velocity2",
        "reward_run",
        "reward_ctrl1",
        "reward_ctrl2",
    )
    parts: ClassVar = {
        "x_velocity1": "the first cheetah's velocity in x over the last step",
        "x_velocity2": "the second cheetah's",
        "reward_run": "part of the last reward",
        "reward_ctrl1": "the first cheetah's cost of control in the last step, which is at least 0",
        "reward_ctrl2": "the second cheetah's",
    }

    def xml(self, cfg: Any) -> Path | None:
        return None

    def mjcf(self, cfg: Any) -> tuple[str | Path, str | None] | None:
        found = importlib.util.find_spec("gymnasium_robotics")
        if found is None or found.origin is None:
            return None
        return Path(found.origin).parent / "envs/multiagent_mujoco/assets/coupled_half_cheetah.xml", self.id

    def constants(self, cfg: Any) -> dict[str, int]:
        return {"SAME_EVERYWHERE": 1}

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {
            **super().fields(cfg),
            "tendon_jacobian": Field("float32", (4,), "the tendon's Jacobian: x and z of each cheetah"),
            "tendon_length": Field("float32", (1,), "its length"),
            "tendon_velocity": Field("float32", (1,), "its velocity"),
        }

    def generated(self, cfg: Any) -> str:
        words = [f"s.ten_j_tendon0[{d}]" for d in _PULLED] + ["s.ten_length[0]", "s.ten_velocity[0]"]
        fields = [f"e.tendon_jacobian[{k}]" for k in range(4)] + ["e.tendon_length[0]", "e.tendon_velocity[0]"]
        body = "".join(f"  {x} = select(e.diverged, {x}, Pack({y}));\n" for x, y in zip(fields, words, strict=True))
        head = "template <class E> GZ void feel_tendon(const E &e, const Physics &s)"
        return super().generated(cfg) + f"{head} {{\n{body}}}\n"

    def number(self, cfg: Any, name: str, state: Mapping[str, Any]) -> Any:
        return state["qpos"][:, 9 * (name[-1] == "2")] if name.startswith("x_position") else state[name]

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (40,), np.float32)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        names = [name for name in self.state_names(cfg) if not name.startswith("position of rootx")]
        tendon = {"the tendon's Jacobian": 4, "the tendon's length": 1, "the tendon's velocity": 1}
        return dict.fromkeys(names, 1) | tendon


class MaCoupledHalfCheetah(Factored):
    """Two half cheetahs that an elastic tendon joins run to the right, for an agent each.

    **Agents.** `agent_conf="1p1"`: one for each cheetah. Other factorisations give the joints of each agent, with `|`
    between agents; the joints are those of HalfCheetah-v5 with 0 (first cheetah) or 1 (second) behind their names.

    **Model.** The cheetahs of HalfCheetah-v5 side by side, at y = -1 and y = 1. Each stays in its plane. A tendon
    from torso to torso has a stiffness of 0.1 about its length at rest, 2, and a limit at 3.5.

    **Actions.** `Box` in [-1, 1]: torques of the agent's joints.

    **Observation.** `Box`, float32: position and velocity of each of the agent's joints, in alphabetical order, and
    behind those of a back thigh the tendon's Jacobian (the derivatives of its length by x and z of the first cheetah
    and of the second), length and velocity; the positions of joints that are 1, 2, ... and `agent_obsk` joints away in
    the same cheetah; of the first cheetah's root and then the second's, pitch and height; of the first and then the
    second, the velocities in x, pitch and height. As in the original, both agents see the joints of the second cheetah
    where their own are meant. **State**: `Box(40)`, `qpos` without both x (16 numbers), `qvel` (18), the tendon's
    Jacobian, length and velocity. As in MuJoCo's data after a step, the tendon is that of the last evaluation of the
    dynamics, just before the state.

    **Motion.** MuJoCo's, 5 steps of 0.01 s.

    **Reward.** `forward_reward_weight` times the mean of both velocities in x over the step, less `ctrl_cost_weight`
    times half the sum of squared actions. It is the same for both agents.

    **Start.** The model's own position and rest, with uniform noise of `reset_noise_scale` in `qpos` and normal noise
    in `qvel`.

    **End.** Never, unless the state diverges. Time limit: 1000 steps.

    The original does not run with MuJoCo 4.0.0, whose Jacobians of tendons are sparse; it is meant to observe
    the entries that are observed here.
    """

    id = "MaCoupledHalfCheetah-1p1-v1"
    exempt: ClassVar[Mapping[str, str]] = {
        **HalfCheetah.exempt,
        "no_spills": "The physics of two cheetahs is more than a thread has registers for.",
    }
    Config = MaCoupledHalfCheetahConfig
    max_episode_steps = 1000
    reference = "gymnasium-robotics==1.4.2 mamujoco_v1 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium-Robotics": "https://robotics.farama.org/envs/MaMuJoCo/ma_coupled_half_cheetah/"
    }
    render_fps = HalfCheetah.render_fps
    robot = CoupledHalfCheetah
    joints = "bthigh0 bshin0 bfoot0 fthigh0 fshin0 ffoot0 bthigh1 bshin1 bfoot1 fthigh1 fshin1 ffoot1"
    edges = tuple(
        f"{a}{k} {b}{k}"
        for k in range(2)
        for a, b in (
            ("bfoot", "bshin"),
            ("bshin", "bthigh"),
            ("bthigh", "fthigh"),
            ("fthigh", "fshin"),
            ("fshin", "ffoot"),
        )
    )
    factorisations: ClassVar = {
        "1p1": "bthigh0 bshin0 bfoot0 fthigh0 fshin0 ffoot0 | bthigh1 bshin1 bfoot1 fthigh1 fshin1 ffoot1"
    }
    root = (2, 1, 11, 10), (0, 2, 1, 9, 11, 10)
    local = ("qpos", "qvel", "tendon"), ("qpos",)

    def numbers(self, cfg: Any, category: str, joint: str) -> list[str]:
        if category != "tendon":
            return [f"e.{category}[{12 + self.joints.split().index(joint) % 6}]"]
        rope = [*(f"e.tendon_jacobian[{k}]" for k in range(4)), "e.tendon_length[0]", "e.tendon_velocity[0]"]
        return rope if joint.startswith("bthigh") else []
