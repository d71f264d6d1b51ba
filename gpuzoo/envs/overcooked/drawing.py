"""Pictures of kitchens. An ingredient is a number from 0 on: onions, tomatoes, and in OvercookedV2 up to eight more."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuzoo.render import CYCLE, Canvas, fade, mix

FOODS = (  # fill and outline
    ("#e9c46a", "#b98b2f"), ("#dc4b3e", "#a02c22"), ("#7cb34a", "#4c7a26"), ("#8d5ab5", "#5f3585"),
    ("#f08a3c", "#b85d17"), ("#5b8fd6", "#33619f"), ("#e58bb0", "#b2577f"), ("#8a6a4f", "#5c4330"),
    ("#4fb8a5", "#2b8071"), ("#f3efe4", "#a9a28f"),
)  # fmt: skip
WAYS = (-math.pi / 2, math.pi / 2, 0.0, math.pi)

Foods = tuple[int, ...]


def draw_kitchen(canvas: Canvas, lines: tuple[str, ...]) -> None:
    """Floor and what stands around it; a text line for each row.

    X is a counter, P a pot, D dishes, S serving, R a recipe indicator, L the button of one, 0 to 9 a crate of food.
    """
    for y, line in enumerate(lines):
        for x, cell in enumerate(line):
            if cell == " ":
                canvas.rect(x, y, x + 1, y + 1, fill="sand" if (x + y) % 2 else "#f7efdf")
                continue
            canvas.rect(x, y, x + 1, y + 1, fill="#8f6a4a")
            canvas.rect(x + 0.03, y + 0.03, x + 0.97, y + 0.97, fill="#b88a62", radius=0.07)
            canvas.rect(x + 0.08, y + 0.08, x + 0.92, y + 0.92, fill="#c89b72", radius=0.06)
            if cell.isdigit():
                _crate(canvas, x + 0.5, y + 0.5, int(cell))
            elif cell in _FACILITIES:
                _FACILITIES[cell](canvas, x + 0.5, y + 0.5)


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


def _board(canvas: Canvas, x: float, y: float) -> None:
    canvas.rect(x - 0.4, y - 0.4, x + 0.4, y + 0.4, fill="#5b4030", radius=0.06)
    canvas.rect(x - 0.34, y - 0.34, x + 0.34, y + 0.34, fill="#2f4a3f", radius=0.04)


def _button(canvas: Canvas, x: float, y: float) -> None:
    _board(canvas, x, y)
    canvas.circle(x, y, 0.2, fill="#8f2f28")
    canvas.circle(x, y - 0.03, 0.17, fill="#c94b41")


_FACILITIES: dict[str, Callable[[Canvas, float, float], None]] = {
    "P": _pot, "D": _dishes, "S": _serving, "R": _board, "L": _button,
}  # fmt: skip


def draw_food(canvas: Canvas, x: float, y: float, food: int, radius: float) -> None:
    """An onion, a tomato or another ingredient."""
    fill, outline = FOODS[food]
    canvas.circle(x, y, radius, fill=fill, outline=outline, width=1.0)
    if food == 0:
        canvas.line(x, y - 0.8 * radius, x, y - 1.35 * radius, colour=outline, width=2.0)
    else:
        canvas.circle(x, y - 0.75 * radius, 0.32 * radius, fill="#4c8a3f")


def draw_dish(canvas: Canvas, x: float, y: float) -> None:
    """An empty plate."""
    canvas.circle(x, y, 0.24, fill="#ffffff", outline="#9aa4b2", width=1.0)
    canvas.circle(x, y, 0.15, fill="#eef1f5")


def soup_colour(foods: Foods) -> str:
    """The mean of the colours of its ingredients."""
    colour = FOODS[foods[0]][0]
    for k, food in enumerate(foods[1:], start=2):
        colour = mix(colour, FOODS[food][0], 1 / k)
    return colour


def draw_object(canvas: Canvas, x: float, y: float, foods: Foods, plate: bool) -> None:
    """What lies on a counter or is held: food, a plate, or a soup on one."""
    if plate:
        draw_dish(canvas, x, y)
    elif foods:
        draw_food(canvas, x, y, foods[0], 0.19)
    if plate and foods:
        canvas.circle(x, y, 0.18, fill=soup_colour(foods), outline="#7a5638", width=0.8)
        _contents(canvas, x, y, foods, 0.1, 0.05)


def _contents(canvas: Canvas, x: float, y: float, foods: Foods, away: float, radius: float) -> None:
    for k, food in enumerate(foods):
        angle = -math.pi / 2 + 2 * math.pi * k / len(foods)
        draw_food(canvas, x + away * math.cos(angle), y + away * math.sin(angle), food, radius)


def draw_soup(canvas: Canvas, x: float, y: float, foods: Foods, left: int | None, time: int) -> None:
    """What is in a pot: its ingredients, how far it has cooked as a ring, and a green rim when it is ready.

    Args:
        canvas: what to draw on.
        x: of the middle of the pot.
        y: of the middle of the pot.
        foods: the ingredients; none: nothing is drawn.
        left: steps that it has still to cook, or None if it does not cook.
        time: steps that it cooks in all.
    """
    if not foods:
        return
    if left is not None:
        done = 1 - left / max(time, 1)
        canvas.circle(x, y, 0.27, fill=soup_colour(foods))
        canvas.sector(x, y, 0.42, -math.pi / 2, -math.pi / 2 + 2 * math.pi * min(done, 0.9999), fill="#4cae72c0")
        canvas.circle(x, y, 0.31, fill=soup_colour(foods), outline="green" if left == 0 else "#20262f", width=2.0)
    _contents(canvas, x, y, foods, 0.14, 0.1)
    if left:
        canvas.circle(x, y, 0.15, fill="#ffffffd8")
        canvas.text(x, y, str(left), height=0.2, colour="ink", bold=True)


def draw_recipe(canvas: Canvas, x: float, y: float, foods: Foods, left: int | None) -> None:
    """What is ordered, on a board; on that of a button with the steps for which it can be read."""
    if left is not None:
        canvas.rect(x - 0.34, y - 0.34, x + 0.34, y + 0.34, fill="#2f4a3f", radius=0.04)
    _contents(canvas, x, y, foods, 0.16, 0.11)
    if left is not None:
        canvas.text(x + 0.24, y + 0.24, str(left), height=0.2, colour="white", bold=True)


def draw_player(canvas: Canvas, x: float, y: float, a: int, way: int, foods: Foods, plate: bool) -> None:
    """A cook from above: the hat has the player's colour, the hands hold something in front."""
    colour, angle = CYCLE[a % len(CYCLE)], WAYS[way]
    dx, dy = math.cos(angle), math.sin(angle)
    canvas.circle(x + 0.02, y + 0.04, 0.36, fill=fade("ink", 0.2))
    for side in (-1, 1):
        canvas.circle(x + 0.28 * dx - 0.24 * side * dy, y + 0.28 * dy + 0.24 * side * dx, 0.1, fill="#f2c9a1")
    canvas.circle(x, y, 0.33, fill=colour, outline="white", width=1.5)
    canvas.circle(x - 0.05 * dx, y - 0.05 * dy, 0.2, fill="white", outline=mix(colour, "white", 0.5), width=1.0)
    canvas.dart(x + 0.22 * dx, y + 0.22 * dy, angle, 0.1, fill="white")
    draw_object(canvas, x + 0.36 * dx, y + 0.36 * dy, foods, plate)
