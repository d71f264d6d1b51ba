"""PointRobot."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade


@dataclasses.dataclass(frozen=True)
class PointRobotConfig(Config):
    """Gymnax's parameters."""

    max_force: float = param(0.1, low=0.0, doc="longest move along x and along y")
    circle_radius: float = param(1.0, low=0.0, doc="radius of the semi-circle of goals")
    dense_reward: bool = param(False, doc="the reward is minus the distance to the goal")
    goal_radius: float = param(0.2, low=0.0, doc="so near to it the goal is reached")
    center_init: bool = param(False, doc="begin at the origin, otherwise anywhere in the half-disc")
    normalize_time: bool = param(True, doc="the observed time is 2 t / 100 - 1, otherwise t")


class PointRobot(EnvDef):
    """A point looks for a hidden goal on a semi-circle, and then runs to it again and again.

    **Actions.** `Box(2)` in [-``max_force``, ``max_force``]: the move along x and along y.

    **Observation.** `Box(6)`, float32: position x, y; the last reward; the last action x, y; the time: steps of this
    episode, with ``normalize_time`` 2 t / 100 - 1. At the beginning the last reward and action are 0. The goal is not
    seen.

    **Reward.** 1 if the goal is within ``goal_radius``, otherwise 0. With ``dense_reward`` minus the distance to it.

    **Start.** The goal is on the upper half of the circle of ``circle_radius`` around the origin, its angle uniform in
    [0, π], and stays there for the episode. The point begins at a radius uniform in [0, ``circle_radius``] and an angle
    uniform in [0, π]; with ``center_init`` at the origin. A robot that reaches the goal begins so again, in place of
    its move.

    **End.** Never. Time limit: 100 steps.

    **In gymnax**, and here, reward and new beginning go by the distance *before* the move of that step, and
    ``normalize_time`` counts in hundreds of steps whatever the time limit is. Actions out of the box are observed
    clipped here, in gymnax as they were given.
    """

    id = "PointRobot-v0"
    Config = PointRobotConfig
    max_episode_steps = 100
    reference = "gymnax==1.0.1 PointRobot-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
        "Dorfman et al. 2021": "https://arxiv.org/abs/2008.02598",
    }
    exempt = {"parameters": "max_force is the range of actions, so random actions follow from the largest of a batch"}
    render_fps = 15

    def observation_space(self, cfg: PointRobotConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (6,), np.float32)

    def action_space(self, cfg: PointRobotConfig, group: str) -> spaces.Box:
        return spaces.Box(-cfg.max_force, cfg.max_force, (2,), np.float32)

    def observation_names(self, cfg: PointRobotConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("position x", "position y", "last reward", "last action x", "last action y", "time"), 1)

    def action_names(self, cfg: PointRobotConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("move along x", "move along y"), 1)

    def fields(self, cfg: PointRobotConfig) -> dict[str, Field]:
        return {
            "x": Field("float32", doc="position"),
            "y": Field("float32", doc="position"),
            "goal_x": Field("float32", doc="place of the goal"),
            "goal_y": Field("float32", doc="place of the goal"),
            "last_action_x": Field("float32", doc="0 at the beginning"),
            "last_action_y": Field("float32", doc="0 at the beginning"),
            "last_reward": Field("float32", doc="0 at the beginning"),
            "goals_reached": Field("int32", doc="how often, in this episode"),
        }

    def render(self, cfg: PointRobotConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size = max(cfg.circle_radius, 0.1)
        x, y = float(state["x"]), float(state["y"])
        far = max(1.35 * size, abs(x) + 0.2 * size, abs(y - 0.3 * size) + 0.2 * size)
        canvas.background("paper")
        canvas.view(-far, 0.3 * size - far, far, 0.3 * size + far, hud=True)
        canvas.sector(0, 0, size, 0, np.pi, fill="water")
        for part in (0.25, 0.5, 0.75):
            angles = np.linspace(0, np.pi, 80)
            ring = part * size * np.stack([np.cos(angles), np.sin(angles)], 1)
            canvas.path(ring, colour=fade("white", 0.8), width=1)
        angles = np.linspace(0, np.pi, 120)
        canvas.path(size * np.stack([np.cos(angles), np.sin(angles)], 1), colour="slate", width=2.5)
        canvas.line(-size, 0, size, 0, colour="slate", width=2.5)
        goal = float(state["goal_x"]), float(state["goal_y"])
        canvas.circle(goal[0], goal[1], cfg.goal_radius, fill=fade("green", 0.3), outline="green", width=2)
        canvas.circle(goal[0], goal[1], 0.03 * size, fill="green")
        push = np.array([float(state["last_action_x"]), float(state["last_action_y"])])
        length = float(np.hypot(*push))
        if length > 0.01 * size:
            canvas.arrow(x, y, float(np.arctan2(push[1], push[0])), 2 * length, colour="ink", width=3)
        canvas.circle(x, y, 0.06 * size, fill="red", outline="white", width=2)
        canvas.hud(left=f"reached {int(state['goals_reached'])} times", right=f"step {int(state['elapsed_steps'])}")
