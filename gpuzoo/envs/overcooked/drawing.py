"""Pictures of kitchens."""

from __future__ import annotations

import math

from gpuzoo.envs.overcooked.kitchen import TERRAIN
from gpuzoo.render import CYCLE, Canvas, fade, mix

FOOD = {1: ("#e9c46a", "#b98b2f"), 2: ("#dc4b3e", "#a02c22")}  # onions and tomatoes: fill and outline
WAYS = (-math.pi / 2, math.pi / 2, 0.0, math.pi)


def draw_kitchen(canvas: Canvas, lines: tuple[str, ...]) -> None:
    """Floor, counters, dispensers, pots without soup and serving hatches; a text line for each row."""
    for y, line in enumerate(lines):
        for x, cell in enumerate(line):
            if cell == " ":
                canvas.rect(x, y, x + 1, y + 1, fill="sand" if (x + y) % 2 else "#f7efdf")
                continue
            canvas.rect(x, y, x + 1, y + 1, fill="#8f6a4a")
            canvas.rect(x + 0.03, y + 0.03, x + 0.97, y + 0.97, fill="#b88a62", radius=0.07)
            canvas.rect(x + 0.08, y + 0.08, x + 0.92, y + 0.92, fill="#c89b72", radius=0.06)
            _FACILITIES.get(cell, _nothing)(canvas, x + 0.5, y + 0.5)


def _nothing(canvas: Canvas, x: float, y: float) -> None:
    """A bare counter."""


def _crate(canvas: Canvas, x: float, y: float, food: int) -> None:
    canvas.rect(x - 0.36, y - 0.36, x + 0.36, y + 0.36, fill="#7a5638", radius=0.06)
    for dx, dy in ((-0.17, -0.15), (0.17, -0.15), (-0.17, 0.17), (0.17, 0.17), (0.0, 0.01)):
        draw_food(canvas, x + dx, y + dy, food, 0.16)


def _pot(canvas: Canvas, x: float, y: float) -> None:
    canvas.rect(x - 0.42, y - 0.42, x + 0.42, y + 0.42, fill="#3b4452", radius=0.08)
    canvas.rect(x - 0.42, y - 0.06, x + 0.42, y + 0.06, fill="#20262f", radius=0.05)
    canvas.circle(x, y, 0.34, fill="#9aa4b2", outline="#20262f", width=1.2)
    canvas.circle(x, y, 0.27, fill="#2a303a")


def _dishes(canvas: Canvas, x: float, y: float) -> None:
    for k in range(3):
        draw_dish(canvas, x, y + 0.12 - 0.12 * k)


def _serving(canvas: Canvas, x: float, y: float) -> None:
    canvas.rect(x - 0.42, y - 0.42, x + 0.42, y + 0.42, fill="#7d8898", radius=0.06)
    canvas.rect(x - 0.34, y - 0.34, x + 0.34, y + 0.34, fill="#dfe6ee", radius=0.05)
    canvas.sector(x, y + 0.16, 0.25, math.pi, 2 * math.pi, fill="#566273")
    canvas.rect(x - 0.3, y + 0.16, x + 0.3, y + 0.22, fill="#566273", radius=0.03)
    canvas.circle(x, y - 0.13, 0.05, fill="#566273")


_FACILITIES = {
    "O": lambda canvas, x, y: _crate(canvas, x, y, 1),
    "T": lambda canvas, x, y: _crate(canvas, x, y, 2),
    "P": _pot,
    "D": _dishes,
    "S": _serving,
}


def draw_food(canvas: Canvas, x: float, y: float, food: int, radius: float) -> None:
    """An onion or a tomato."""
    fill, outline = FOOD[food]
    canvas.circle(x, y, radius, fill=fill, outline=outline, width=1.0)
    if food == 1:
        canvas.line(x, y - 0.8 * radius, x, y - 1.35 * radius, colour=outline, width=2.0)
    else:
        canvas.circle(x, y - 0.75 * radius, 0.32 * radius, fill="#4c8a3f")


def draw_dish(canvas: Canvas, x: float, y: float) -> None:
    """An empty plate."""
    canvas.circle(x, y, 0.24, fill="#ffffff", outline="#9aa4b2", width=1.0)
    canvas.circle(x, y, 0.15, fill="#eef1f5")


def soup_colour(recipe: int) -> str:
    """Between the colours of its onions and of its tomatoes."""
    onions, tomatoes = recipe & 3, recipe >> 2
    return mix(FOOD[1][0], FOOD[2][0], tomatoes / max(onions + tomatoes, 1))


def draw_object(canvas: Canvas, x: float, y: float, thing: int) -> None:
    """What lies on a counter or is held, by its number in the rules."""
    if thing in FOOD:
        draw_food(canvas, x, y, thing, 0.19)
    elif thing:
        draw_dish(canvas, x, y)
    if thing >= 16:
        canvas.circle(x, y, 0.18, fill=soup_colour(thing - 16), outline="#7a5638", width=0.8)
        _contents(canvas, x, y, thing - 16, 0.1, 0.05)


def _contents(canvas: Canvas, x: float, y: float, recipe: int, away: float, radius: float) -> None:
    foods = [1] * (recipe & 3) + [2] * (recipe >> 2)
    for k, food in enumerate(foods):
        angle = -math.pi / 2 + 2 * math.pi * k / len(foods)
        draw_food(canvas, x + away * math.cos(angle), y + away * math.sin(angle), food, radius)


def draw_soup(canvas: Canvas, x: float, y: float, recipe: int, tick: int, time: int) -> None:
    """What is in a pot: its ingredients, how far it has cooked as a ring, and a green rim when it is ready."""
    if recipe == 0:
        return
    if tick >= 0:
        canvas.circle(x, y, 0.27, fill=soup_colour(recipe))
        canvas.sector(x, y, 0.42, -math.pi / 2, -math.pi / 2 + 2 * math.pi * min(tick / time, 0.9999), fill="#4cae72c0")
        canvas.circle(x, y, 0.31, fill=soup_colour(recipe), outline="green" if tick >= time else "#20262f", width=2.0)
    _contents(canvas, x, y, recipe, 0.14, 0.1)
    if 0 <= tick < time:
        canvas.circle(x, y, 0.15, fill="#ffffffd8")
        canvas.text(x, y, str(time - tick), height=0.2, colour="ink", bold=True)


def draw_player(canvas: Canvas, x: float, y: float, a: int, way: int, thing: int) -> None:
    """A cook from above: the hat has the player's colour, the hands hold something in front."""
    colour, angle = CYCLE[a % len(CYCLE)], WAYS[way]
    dx, dy = math.cos(angle), math.sin(angle)
    canvas.circle(x + 0.02, y + 0.04, 0.36, fill=fade("ink", 0.2))
    for side in (-1, 1):
        canvas.circle(x + 0.28 * dx - 0.24 * side * dy, y + 0.28 * dy + 0.24 * side * dx, 0.1, fill="#f2c9a1")
    canvas.circle(x, y, 0.33, fill=colour, outline="white", width=1.5)
    canvas.circle(x - 0.05 * dx, y - 0.05 * dy, 0.2, fill="white", outline=mix(colour, "white", 0.5), width=1.0)
    canvas.dart(x + 0.22 * dx, y + 0.22 * dy, angle, 0.1, fill="white")
    draw_object(canvas, x + 0.36 * dx, y + 0.36 * dy, thing)


def lines_of(terrain: list[list[int]]) -> tuple[str, ...]:
    """A layout's lines without its players."""
    return tuple("".join(TERRAIN[kind] for kind in row) for row in terrain)
