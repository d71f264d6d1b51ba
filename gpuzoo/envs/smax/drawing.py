"""Pictures of battles: each type of units has its shape, and looks where it shoots or walks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.render import Canvas, fade, mix

TEAMS = ("blue", "red")
GROUND, STRIPE, EDGE = "#e4e0d2", "#dcd7c6", "#b9ad94"
ROUND = [(math.cos(k * math.pi / 8), math.sin(k * math.pi / 8)) for k in range(16)]
HEXAGON = [(math.cos(k * math.pi / 3), math.sin(k * math.pi / 3)) for k in range(6)]
#: corners of each type's body, which looks along x, for a radius of 1
BODIES: tuple[Sequence[tuple[float, float]], ...] = (
    ROUND,
    HEXAGON,
    [(1.15, 0), (0.25, 0.4), (0, 1.15), (-0.35, 0.4), (-1.0, 0), (-0.35, -0.4), (0, -1.15), (0.25, -0.4)],
    [(1.1, 0), (-0.2, 1.0), (-0.85, 0.75), (-0.5, 0), (-0.85, -0.75), (-0.2, -1.0)],
    [(1.4, 0), (-0.9, 0.85), (-0.4, 0), (-0.9, -0.85)],
    [(1.2, 0), (0.6, 0.75), (-0.2, 0.65), (-1.25, 0.2), (-1.25, -0.2), (-0.2, -0.65), (0.6, -0.75)],
)
#: lines of each type, weapons and limbs: (x0, y0, x1, y1)
LIMBS: tuple[Sequence[tuple[float, float, float, float]], ...] = (
    [(0.3, -0.45, 1.55, -0.45)],
    [(0.2, 0.75, 1.3, 0.75), (0.2, -0.75, 1.3, -0.75)],
    [(0.5, 0.5, 1.1, 1.1), (-0.5, 0.5, -1.1, 1.1), (0.5, -0.5, 1.1, -1.1), (-0.5, -0.5, -1.1, -1.1)],
    [(0.0, 0.85, 1.5, 0.6), (0.0, -0.85, 1.5, -0.6)],
    [],
    [(0.5, 0.6, 1.3, 1.0), (0.5, -0.6, 1.3, -1.0)],
)
SCALE, FEW, SCALE_OF_FEW = 1.3, 20, 1.8  # of bodies in pictures, so that units can be told apart
BLUR = 0.32  # opacity of the dead


def draw_battle(canvas: Canvas, cfg: Any, state: Mapping[str, NDArray[Any]], units: Sequence[Any], allies: int) -> None:
    """Ground, attacks, the dead, the living, and a line with what is left.

    Args:
        canvas: to draw on.
        cfg: the configuration.
        state: of one env.
        units: the types.
        allies: number of allies, who are the first units.
    """
    width, height = float(cfg.map_width), float(cfg.map_height)
    canvas.background(EDGE)
    canvas.view(0, 0, width, height, pad=5, hud=True)
    canvas.cached(draw_ground, width, height)
    at = np.stack([state["x"], state["y"]], 1).astype(float)
    kinds = np.asarray(state["type"], int)
    alive = np.asarray(state["health"]) > 0
    radius = (SCALE_OF_FEW if len(at) <= FEW else SCALE) * np.array([units[kind].radius for kind in kinds])
    targets = targets_of(np.asarray(state["attack"], int), allies)
    looks = looks_of(at, np.stack([state["move_x"], state["move_y"]], 1), targets, allies)
    for u in np.flatnonzero(~alive).tolist():
        _draw_unit(canvas, at[u], radius[u], kinds[u], looks[u], fade("slate", BLUR), fade("slate", BLUR))
        canvas.cached(_draw_cross, *_near(at[u]), round(float(radius[u]), 3))
    for u in np.flatnonzero(alive & (targets >= 0)).tolist():
        kind, target = units[kinds[u]], int(targets[u])
        if np.hypot(*(at[u] - at[target])) < kind.attack_range + 0.6:
            hit = state["cooldown"][u] > kind.recharge - cfg.world_steps_per_env_step * cfg.time_per_step
            _draw_attack(canvas, at[u], at[target], TEAMS[u >= allies], bool(hit), kind.attack_range < 3)
    for u in np.flatnonzero(alive).tolist():
        colour = TEAMS[u >= allies]
        _draw_unit(canvas, at[u], radius[u], kinds[u], looks[u], colour, mix(colour, "ink", 0.45))
    for u in np.flatnonzero(alive).tolist():
        share = float(state["health"][u]) / units[kinds[u]].health
        _draw_health(canvas, at[u, 0], at[u, 1] + radius[u] + 0.3, max(0.55, radius[u]), share)
    left, right = int(alive[:allies].sum()), int(alive[allies:].sum())
    winner = ("", "   allies won", "   enemies won")[int(state["winner"])]
    canvas.hud(
        left=f"SMAX {cfg.scenario}   {left} of {allies} allies, {right} of {len(at) - allies} enemies{winner}",
        right=f"step {int(state['elapsed_steps'])}",
    )


def targets_of(attack: NDArray[np.int_], allies: int) -> NDArray[np.int_]:
    """The unit that each attack is on, or -1."""
    ours, k = np.arange(len(attack)) < allies, attack - 5
    return np.where(attack < 5, -1, np.where(ours, allies + k, allies - 1 - k))


def looks_of(
    at: NDArray[np.float64], move: NDArray[Any], targets: NDArray[np.int_], allies: int
) -> NDArray[np.float64]:
    """Where each unit looks, rad: at its target, along its move, or at the other side."""
    way = np.where(targets[:, None] >= 0, at[targets] - at, move)
    sides = np.where(np.arange(len(at)) < allies, 0.0, math.pi)
    return np.where((way == 0).all(1), sides, np.arctan2(way[:, 1], way[:, 0]))


def draw_ground(canvas: Canvas, width: float, height: float) -> None:
    """The map, whose edge is deadly."""
    canvas.rect(0, 0, width, height, fill=GROUND)
    size = width / 8
    for column in range(8):
        for row in range(column % 2, math.ceil(height / size), 2):
            canvas.rect(column * size, row * size, (column + 1) * size, min((row + 1) * size, height), fill=STRIPE)
    for x in np.arange(0.5, width, 1.0).tolist():
        for y in (0.0, height):
            canvas.circle(x, y, 0.16, fill="#8f8168")
    for y in np.arange(0.5, height, 1.0).tolist():
        for x in (0.0, width):
            canvas.circle(x, y, 0.16, fill="#8f8168")
    canvas.rect(0, 0, width, height, outline="#8f8168", width=1.5)


def _near(at: NDArray[np.float64]) -> tuple[float, float]:
    return round(float(at[0]), 3), round(float(at[1]), 3)


def _draw_unit(
    canvas: Canvas, at: NDArray[np.float64], radius: float, kind: int, angle: float, colour: str, dark: str
) -> None:
    turn = radius * np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    limbs = np.array(LIMBS[kind], float).reshape(-1, 2, 2) @ turn + at
    if len(limbs):
        canvas.lines(limbs[:, 0], limbs[:, 1], colour=dark, width=2.2)
    canvas.polygon(np.array(BODIES[kind]) @ turn + at, fill=colour, outline=dark, width=1.1)
    eye = at + np.array([0.35, 0.0]) @ turn
    canvas.circle(*_near(eye), 0.24 * radius, fill=mix(colour, "white", 0.75) if len(colour) < 8 else colour)


def _draw_cross(canvas: Canvas, x: float, y: float, radius: float) -> None:
    r = 0.45 * radius
    for side in (-1, 1):
        canvas.line(x - r, y - side * r, x + r, y + side * r, colour=fade("ink", 0.45), width=1.4)


def _draw_attack(
    canvas: Canvas, at: NDArray[np.float64], to: NDArray[np.float64], colour: str, hit: bool, melee: bool
) -> None:
    """A thin line to whom it aims at, and a bright one with a flash if it has hit."""
    canvas.line(*at, *to, colour=fade(colour, 0.55 if hit else 0.25), width=3.2 if melee and hit else 1.6)
    if not hit:
        return
    if not melee:
        canvas.line(*(at + 0.45 * (to - at)), *(at + 0.75 * (to - at)), colour="yellow", width=2.4)
    x, y = _near(to)
    canvas.circle(x, y, 0.62, fill=fade("yellow", 0.55))
    canvas.circle(x, y, 0.3, fill=fade("white", 0.8))


def _draw_health(canvas: Canvas, x: float, y: float, half: float, share: float) -> None:
    colour = mix("red", "green", min(1.0, 1.6 * share)) if share < 0.625 else "green"
    canvas.rect(x - half, y, x + half, y + 0.26, fill="#1f2937b0", radius=0.1)
    canvas.rect(x - half + 0.04, y + 0.04, x - half + 0.04 + max(2 * half - 0.08, 0.1) * share, y + 0.22, fill=colour)
