"""What the particle worlds have in common."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade

#: the state of the agents' bodies
BODIES = {
    "position": Field("float32", ("agents", 2), doc="centres of the agents"),
    "velocity": Field("float32", ("agents", 2), doc="velocities of the agents"),
    "force": Field("float32", ("agents", 2), doc="force on each agent in the last step"),
}


@dataclasses.dataclass(frozen=True)
class WorldConfig(Config):
    """The option of all particle worlds."""

    continuous_actions: bool = param(False, doc="Box instead of Discrete actions")


@dataclasses.dataclass(frozen=True)
class PartialConfig(WorldConfig):
    """Worlds in which agents may see only what is near."""

    num_agent_neighbors: int = param(
        0, low=0, high=64, doc="how many other agents an agent sees, the nearest first; 0 for all"
    )
    num_landmark_neighbors: int = param(
        0, low=0, high=64, doc="how many landmarks an agent sees, the nearest first; 0 for all"
    )


class World(EnvDef):
    """Agents that push themselves through the plane."""

    max_episode_steps = 25
    render_fps = 10

    def lanes(self, cfg: Any) -> int:
        agents = sum(self.agents(cfg).values())
        return 1 if agents <= 4 else min(32, 1 << (agents - 1).bit_length())

    def action_space(self, cfg: Any, group: str) -> spaces.Space[Any]:
        return spaces.Box(0.0, 1.0, (5,), np.float32) if cfg.continuous_actions else spaces.Discrete(5)


def seen(size: int) -> spaces.Box:
    """The space of an observation of so many numbers."""
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def draw_plane(canvas: Canvas, xy: ArrayLike, margin: float = 0.0) -> None:
    """Draws the square in which all begin, and shows it together with all the points, which are free to leave it."""
    reach = float(np.abs(np.asarray(xy, np.float64)).max()) + margin
    edge = 1.25 + 0.5 * max(0.0, np.ceil((reach - 1.25) / 0.5))  # in steps, so that a film does not flicker
    canvas.background("paper")
    canvas.view(-edge, -edge, edge, edge, hud=True)
    canvas.rect(-1, -1, 1, 1, fill="white", outline="line", radius=0.04)


def draw_agent(canvas: Canvas, xy: NDArray[Any], velocity: NDArray[Any], radius: float, colour: str) -> None:
    """Draws a disc with an arrow in the direction of its motion."""
    x, y = (float(v) for v in xy)
    canvas.circle(x, y, radius, fill=fade(colour, 0.28), outline=colour)
    speed = float(np.hypot(*velocity))
    if speed > 0.05:
        angle = float(np.arctan2(velocity[1], velocity[0]))
        canvas.arrow(x, y, angle, min(speed, 2.0) * 0.25, colour=colour, width=2.0)
