"""What the particle worlds have in common."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade, mix

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

    num_agent_neighbors: int = param(0, low=0, doc="how many other agents an agent sees, the nearest first; 0 for all")
    num_landmark_neighbors: int = param(0, low=0, doc="how many landmarks an agent sees, the nearest first; 0 for all")


#: how an agent may move
WAYS = ("nothing", "left (-x)", "right (+x)", "down (-y)", "up (+y)")


class World(EnvDef):
    """Agents that push themselves through the plane."""

    max_episode_steps = 25
    render_fps = 10
    links: ClassVar[Mapping[str, str]] = {"Lowe et al. 2017": "https://arxiv.org/abs/1706.02275"}

    def lanes(self, cfg: Any) -> int:
        agents = sum(self.agents(cfg).values())
        return 1 if agents <= 4 else min(32, 1 << (agents - 1).bit_length())

    def action_space(self, cfg: Any, group: str) -> spaces.Space[Any]:
        return spaces.Box(0.0, 1.0, (5,), np.float32) if cfg.continuous_actions else spaces.Discrete(5)

    def action_names(self, cfg: Any, group: str) -> dict[str, int]:
        return dict.fromkeys(WAYS, 1)


def seen(size: int) -> spaces.Box:
    """The space of an observation of so many numbers."""
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def draw_plane(canvas: Canvas, xy: ArrayLike, margin: float = 0.0) -> None:
    """Draws the square in which all begin, and shows it together with all the points, which are free to leave it."""
    reach = float(np.abs(np.asarray(xy, np.float64)).max()) + margin
    edge = 1.25 + 0.5 * max(0.0, np.ceil((reach - 1.25) / 0.5))  # in steps, so that a film does not flicker
    canvas.background("paper")
    canvas.view(-edge, -edge, edge, edge, hud=True)
    canvas.cached(_plane)


def _plane(canvas: Canvas) -> None:
    """The square, and a grid over all that is in the picture: what moves is seen to move."""
    x0, y0, x1, y1 = canvas.seen()
    for x in np.arange(np.ceil(x0 / 0.5), np.floor(x1 / 0.5) + 1) * 0.5:
        canvas.line(x, y0, x, y1, colour="mist", width=1.0)
    for y in np.arange(np.ceil(y0 / 0.5), np.floor(y1 / 0.5) + 1) * 0.5:
        canvas.line(x0, y, x1, y, colour="mist", width=1.0)
    canvas.rect(-1, -1, 1, 1, fill="#ffffffc0", outline="line", radius=0.04)


def draw_agent(canvas: Canvas, xy: NDArray[Any], velocity: NDArray[Any], radius: float, colour: str) -> None:
    """Draws a disc that looks where it goes, with a wake as long as the way of three steps at this speed."""
    x, y = (float(v) for v in xy)
    vx, vy = (float(v) for v in velocity)
    speed = math.hypot(vx, vy)
    moves = speed > 0.05
    if moves:
        cos, sin, far = vx / speed, vy / speed, radius + 0.3 * min(speed, 2.0)
        side = 0.8 * radius
        canvas.polygon(
            [(x - sin * side, y + cos * side), (x + sin * side, y - cos * side), (x - cos * far, y - sin * far)],
            fill=fade(colour, 0.22),
        )
    canvas.circle(x, y, radius, fill=colour, outline="white", width=1.0)
    if moves:
        canvas.circle(x + 0.5 * radius * cos, y + 0.5 * radius * sin, 0.3 * radius, fill="white")


def draw_landmark(canvas: Canvas, xy: NDArray[Any], radius: float, colour: str) -> None:
    """Draws a solid disc with a rim."""
    canvas.circle(float(xy[0]), float(xy[1]), radius, fill=colour, outline=mix(colour, "black", 0.25))


def draw_goal(canvas: Canvas, xy: NDArray[Any], radius: float, colour: str) -> None:
    """Draws a place to go to: a dot with a ring of a radius around it."""
    x, y = float(xy[0]), float(xy[1])
    canvas.circle(x, y, radius, fill=fade(colour, 0.16), outline=colour, width=1.5)
    canvas.circle(x, y, 0.4 * radius, fill=colour)


# ---- worlds in which each agent has a place of its own to go to ----

ARRIVED = 0.05


@dataclasses.dataclass(frozen=True)
class AssignmentConfig(WorldConfig):
    """The options of MPE2's simple_formation and simple_line."""

    N: int = param(4, low=1, high=64, doc="number of agents")
    terminate_on_success: bool = param(False, doc="end the episode when all agents have arrived at their targets")


class AssignmentWorld(World):
    """Agents with targets."""

    Config = AssignmentConfig
    title: ClassVar[str]
    radius: ClassVar[float]
    landmarks: ClassVar[int]

    def agents(self, cfg: AssignmentConfig) -> dict[str, int]:
        return {"agent": cfg.N}

    def observation_space(self, cfg: AssignmentConfig, group: str) -> spaces.Box:
        return seen(4 + 2 * self.landmarks)

    def observation_names(self, cfg: AssignmentConfig, group: str) -> dict[str, int]:
        landmarks = {"landmarks, x and y of each, relative": 2 * self.landmarks}
        return {"own velocity, x and y": 2, "own position, x and y": 2} | landmarks

    def fields(self, cfg: AssignmentConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", (self.landmarks, 2), doc="positions of the landmarks"),
            "target": Field("float32", ("agents", 2), doc="positions of the targets"),
            "owner": Field("int8", ("agents",), doc="the agent that has each target"),
            "price": Field("float32", ("agents",), doc="of the targets, in the search for the best assignment"),
            "reach": Field("float32", ("agents",), doc="of each target from the agent that is assigned last"),
            "way": Field("int8", ("agents",), doc="the target before each one on the shortest path, or -1"),
            "reached": Field("bool", ("agents",), doc="whether the shortest path to a target is known"),
        }

    def backdrop(self, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws what the targets lie on."""
        raise NotImplementedError(f"{type(self).__name__} must draw what its targets lie on")

    def render(self, cfg: AssignmentConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents, targets = np.asarray(state["position"], np.float64), np.asarray(state["target"], np.float64)
        landmarks = np.asarray(state["landmark"], np.float64)
        owners = np.asarray(state["owner"])
        arrived = np.linalg.norm(agents[owners] - targets, axis=1) < ARRIVED
        draw_plane(canvas, np.concatenate([agents, targets, landmarks]), self.radius)
        self.backdrop(state, canvas)
        for k, xy in enumerate(targets):
            colour = "green" if arrived[k] else "grey"
            canvas.line(*agents[owners[k]], *xy, colour="line", width=1.2)
            canvas.circle(float(xy[0]), float(xy[1]), ARRIVED, fill="white", outline=colour)
        for xy in landmarks:
            draw_landmark(canvas, xy, 0.03, "ink")
        for a, xy in enumerate(agents):
            there = arrived[owners == a].any()
            draw_agent(canvas, xy, state["velocity"][a], self.radius, "green" if there else "blue")
        canvas.hud(
            left=f"{self.title}   {int(arrived.sum())} of {cfg.N} in place",
            right=f"step {int(state['elapsed_steps'])}",
        )
