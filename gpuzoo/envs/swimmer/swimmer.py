"""Swimmer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade

#: up to so many urchins, each has fields of its own, such as ``urchin_x_0``
SCALARS = 8


@dataclasses.dataclass(frozen=True)
class SwimmerConfig(Config):
    """Gymnax's options and parameters."""

    num_urchins: int = param(5, low=1, high=64, doc="number of sea urchins")
    dt: float = param(0.05, low=0.0, doc="seconds between steps")


def urchins(cfg: SwimmerConfig, state: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Positions of all urchins, of shape ``(num_urchins, 2)``."""
    many = cfg.num_urchins > SCALARS
    rows = [
        state[name] if many else [float(state[f"{name}_{k}"]) for k in range(cfg.num_urchins)]
        for name in ("urchin_x", "urchin_y")
    ]
    return np.stack(rows, 1)


class Swimmer(EnvDef):
    """A fish swims to its goal and keeps away from sea urchins. The water has no drag, so it must brake.

    **Actions.** `Box(2)` in [-1, 1]: acceleration along x and y.

    **Observation.** `Box(2 num_urchins + 6)`, float32: x and y of each urchin; position x, y; velocity x, y; the goal's
    x, y.

    **Motion.** velocity += dt action, then position += dt velocity. There are no walls.

    **Reward.** exp(-d² / 2), d the distance to the goal after the move, times 1 - exp(-30 u²) for each urchin, u the
    distance to it.

    **Start.** Urchins, fish and goal uniform in [-1, 1]², the velocity 0.

    **End.** Never. Time limit: 500 steps.
    """

    id = "Swimmer-misc-v0"
    Config = SwimmerConfig
    max_episode_steps = 500
    reference = "gymnax==1.0.1 Swimmer-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
        "Lenton et al. 2021": "https://arxiv.org/abs/2102.02886",
    }
    render_fps = 30

    def observation_space(self, cfg: SwimmerConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (2 * cfg.num_urchins + 6,), np.float32)

    def action_space(self, cfg: SwimmerConfig, group: str) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (2,), np.float32)

    def constants(self, cfg: SwimmerConfig) -> dict[str, int]:
        return {"URCHINS": cfg.num_urchins}

    def observation_names(self, cfg: SwimmerConfig, group: str) -> dict[str, int]:
        urchins = {"sea urchins, x and y of each": 2 * cfg.num_urchins}
        return urchins | {"position, x and y": 2, "velocity, x and y": 2, "the goal, x and y": 2}

    def action_names(self, cfg: SwimmerConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("acceleration along x", "acceleration along y"), 1)

    def fields(self, cfg: SwimmerConfig) -> dict[str, Field]:
        urchins: dict[str, Field] = {}
        for name in ("urchin_x", "urchin_y"):
            if cfg.num_urchins > SCALARS:
                urchins[name] = Field("float32", ("URCHINS",), "position")
            else:
                urchins |= {f"{name}_{k}": Field("float32", doc="position") for k in range(cfg.num_urchins)}
        return {
            **urchins,
            "x": Field("float32", doc="position"),
            "y": Field("float32", doc="position"),
            "x_velocity": Field("float32", doc="per second"),
            "y_velocity": Field("float32", doc="per second"),
            "goal_x": Field("float32", doc="place of the goal"),
            "goal_y": Field("float32", doc="place of the goal"),
        }

    def render(self, cfg: SwimmerConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        x, y, vx, vy = (float(state[name]) for name in ("x", "y", "x_velocity", "y_velocity"))
        far = max(1.25, abs(x) + 0.2, abs(y) + 0.2)
        canvas.background("water")
        canvas.view(-far, -far, far, far, hud=True)
        along = np.linspace(-1.1 * far, 1.1 * far, 99)
        for height in np.arange(-far, far + 0.1, far / 5):
            wave = height + 0.015 * far * np.sin(11 * along / far + 9 * height)
            canvas.path(np.stack([along, wave], 1), colour="#ffffff90", width=2)
        goal = float(state["goal_x"]), float(state["goal_y"])
        for size, alpha in ((0.34, 0.12), (0.2, 0.25), (0.07, 1.0)):
            canvas.circle(goal[0], goal[1], size, fill=fade("green", alpha))
        angles = np.arange(28) * np.pi / 14
        spikes = np.where(np.arange(28) % 2, 0.055, 0.13)[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
        for centre in urchins(cfg, state):
            canvas.polygon(centre + spikes, fill="purple")
            canvas.circle(centre[0], centre[1], 0.055, fill="ink")
        speed = float(np.hypot(vx, vy))
        ahead = np.array([vx, vy]) / speed if speed > 0 else np.array([1.0, 0.0])
        aside = np.array([-ahead[1], ahead[0]])
        tail = np.array([x, y]) - 0.09 * ahead
        canvas.polygon([tail, tail - 0.09 * ahead + 0.07 * aside, tail - 0.09 * ahead - 0.07 * aside], fill="red")
        turns = np.linspace(0, 2 * np.pi, 40)[:, None]
        canvas.polygon(np.array([x, y]) + 0.11 * np.cos(turns) * ahead + 0.06 * np.sin(turns) * aside, fill="orange")
        canvas.circles([np.array([x, y]) + 0.06 * ahead + 0.02 * aside], 0.015, "ink")
        canvas.hud(left=f"speed {speed:.2f}", right=f"step {int(state['elapsed_steps'])}")
