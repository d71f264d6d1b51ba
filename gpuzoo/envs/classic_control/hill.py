"""What the two mountain cars share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.render import Canvas

FIELDS = {
    "position": Field("float32", doc="place of the car along the horizontal axis"),
    "velocity": Field("float32", doc="velocity of the car, per step"),
}


ASPECT = 1.5


def check(game: str, cfg: Any) -> None:
    """Raises ValueError where the car would begin outside of the walls."""
    order = ("min_position", "low", "high", "max_position")
    for low, high in itertools.pairwise(order):
        if getattr(cfg, low) > getattr(cfg, high):
            raise ValueError(f"{game}: {low} must not be above {high}: {getattr(cfg, low)} > {getattr(cfg, high)}.")


def height(x: Any) -> Any:
    """Of the ground."""
    return 0.45 * np.sin(3 * x) + 0.55


def draw(title: str, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
    """The valley, the flag at the goal, the car."""
    low, high = cfg.min_position, cfg.max_position
    half = (high - low) / 2
    canvas.background("water")
    canvas.view(low, 0.67 - half / ASPECT, high, 0.67 + half / ASPECT, hud=True)
    ground = np.linspace(low - half, high + half, 120)
    line = np.stack([ground, height(ground)], 1)
    foot = 0.45 - 2 * half
    canvas.polygon([(ground[0], foot), *line.tolist(), (ground[-1], foot)], fill="grass")
    canvas.path(line, colour="green", width=4)
    goal = cfg.goal_position
    pole = height(goal) + 0.26
    canvas.line(goal, height(goal), goal, pole, colour="ink", width=3)
    canvas.polygon([(goal, pole), (goal, pole - 0.11), (goal - 0.15, pole - 0.055)], fill="red")

    x = float(state["position"])
    slope = math.atan(1.35 * math.cos(3 * x))
    cosine, sine = math.cos(slope), math.sin(slope)
    base_x, base_y = x - 0.045 * sine, float(height(x)) + 0.045 * cosine

    def at(along: float, above: float) -> tuple[float, float]:
        return base_x + along * cosine - above * sine, base_y + along * sine + above * cosine

    body = [(-0.11, 0.0), (0.11, 0.0), (0.11, 0.045), (0.06, 0.055), (0.03, 0.105), (-0.06, 0.105), (-0.09, 0.055)]
    window = [(-0.06, 0.06), (0.042, 0.06), (0.022, 0.092), (-0.05, 0.092)]
    canvas.polygon([at(*corner) for corner in body], fill="blue")
    canvas.polygon([at(*corner) for corner in window], fill="water")
    for wheel in (-0.065, 0.065):
        canvas.circle(*at(wheel, 0.0), 0.034, fill="ink")
        canvas.circle(*at(wheel, 0.0), 0.014, fill="grey")
    speed = float(state["velocity"]) / cfg.max_speed if cfg.max_speed else 0.0
    if abs(speed) > 0.02:
        angle = slope if speed > 0 else slope + math.pi
        canvas.arrow(*at(0.0, 0.2), angle, 0.25 * abs(speed), colour="orange", width=4)
    canvas.hud(left=title, right=f"step {int(state['elapsed_steps'])}")
