"""Reacher."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import CYCLE, Canvas, fade

#: up to so many joints, each has fields of its own, such as ``angle_0``
SCALARS = 8


@dataclasses.dataclass(frozen=True)
class ReacherConfig(Config):
    """Gymnax's options and parameters."""

    num_joints: int = param(2, low=1, high=32, doc="number of joints, each with an arm of length 1")
    torque_scale: float = param(1.0, doc="angular acceleration by a full action, rad/s²")
    dt: float = param(0.05, low=0.0, doc="seconds between steps")


class Reacher(EnvDef):
    """An arm with motors in its joints reaches for a point. There is no friction and no mass: torques turn joints.

    **Actions.** `Box(num_joints)` in [-1, 1]: the torque of each joint.

    **Observation.** `Box(3 num_joints + 2)`, float32: cosines of all angles, their sines, the angular velocities, the
    goal's x and y. Angles are those against the x axis, not against the arm before.

    **Motion.** velocity += dt torque_scale action, then angle += dt velocity. The hand is at the sum of
    (cos angle, sin angle).

    **Reward.** exp(-d²), d the distance of the hand to the goal, after the move.

    **Start.** Angles uniform in [-π, π], angular velocities in [-1, 1], the goal in the square
    [-``num_joints``, ``num_joints``]², whose corners are out of reach.

    **End.** Never. Time limit: 100 steps.

    **In gymnax** only two joints can be observed; other numbers of joints raise an error there.
    """

    id = "Reacher-misc-v0"
    Config = ReacherConfig
    max_episode_steps = 100
    reference = "gymnax==1.0.1 Reacher-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
        "Lenton et al. 2021": "https://arxiv.org/abs/2102.02886",
    }
    render_fps = 20

    def observation_space(self, cfg: ReacherConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (3 * cfg.num_joints + 2,), np.float32)

    def action_space(self, cfg: ReacherConfig, group: str) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (cfg.num_joints,), np.float32)

    def constants(self, cfg: ReacherConfig) -> dict[str, int]:
        return {"JOINTS": cfg.num_joints}

    def observation_names(self, cfg: ReacherConfig, group: str) -> dict[str, int]:
        n = cfg.num_joints
        return {"cosines of the angles": n, "sines of the angles": n, "angular velocities": n, "the goal, x and y": 2}

    def action_names(self, cfg: ReacherConfig, group: str) -> dict[str, int]:
        return {f"torque of joint {k}": 1 for k in range(cfg.num_joints)}

    def fields(self, cfg: ReacherConfig) -> dict[str, Field]:
        joints: dict[str, Field] = {}
        for name, doc in (("angle", "against the x axis, rad"), ("velocity", "of the angle, rad/s")):
            if cfg.num_joints > SCALARS:
                joints[name] = Field("float32", ("JOINTS",), doc)
            else:
                joints |= {f"{name}_{k}": Field("float32", doc=doc) for k in range(cfg.num_joints)}
        return {
            **joints,
            "goal_x": Field("float32", doc="place of the goal"),
            "goal_y": Field("float32", doc="place of the goal"),
        }

    def render(self, cfg: ReacherConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        n = cfg.num_joints
        canvas.background("paper")
        canvas.view(-1.1 * n, -1.1 * n, 1.1 * n, 1.1 * n, hud=True)
        canvas.circle(0, 0, n, fill="mist", outline="line", width=2)
        goal = float(state["goal_x"]), float(state["goal_y"])
        for size, alpha in ((0.4, 0.15), (0.26, 0.3), (0.12, 1.0)):
            canvas.circle(goal[0], goal[1], size * n / 2, fill=fade("green", alpha))
        angles = state["angle"] if n > SCALARS else np.array([float(state[f"angle_{k}"]) for k in range(n)])
        arms = np.stack([np.cos(angles), np.sin(angles)], 1)
        joints = np.concatenate([np.zeros((1, 2)), np.cumsum(arms, 0)])
        for k in range(n):
            canvas.path(joints[k : k + 2], colour=CYCLE[k % len(CYCLE)], width=12)
        canvas.circles(joints[:-1], 0.055 * n, "ink", outline="white", width=2)
        canvas.circle(joints[-1, 0], joints[-1, 1], 0.05 * n, fill="red", outline="white", width=2)
        distance = float(np.hypot(*(joints[-1] - goal)))
        canvas.hud(left=f"distance {distance:.2f}", right=f"step {int(state['elapsed_steps'])}")
