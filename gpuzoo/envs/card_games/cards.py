"""Playing cards: their names, and how they are drawn."""

from __future__ import annotations

import functools
import math

from gpuzoo.render import Canvas

SUITS, RANKS = ("spades", "hearts", "diamonds", "clubs"), "A23456789TJQK"
INKS = ("#26303c", "#cf3f45", "#cf3f45", "#26303c")
FELT = "#2b6f52"
WIDTH = 0.7  # of a card, in heights


def names(what: str) -> dict[str, int]:
    """A set of cards in an observation or among actions: 13 numbers for each suit."""
    return {f"{what}: {suit}, ace to king": 13 for suit in SUITS}


def name(card: int) -> str:
    """Rank and suit."""
    return f"{RANKS[card % 13].replace('T', '10')} of {SUITS[card // 13]}"


def of_set(cards: int) -> list[int]:
    """The cards of a set, by suits and ranks."""
    return [card for card in range(52) if cards >> card & 1]


def draw_card(canvas: Canvas, x: float, y: float, height: float, card: int, faint: bool = False) -> None:
    """A card whose middle is at x and y."""
    _blank(canvas, x, y, height, "#fdfcf8", "#b9b4a6")
    suit, ink = card // 13, INKS[card // 13] + ("70" if faint else "")
    rank = RANKS[card % 13].replace("T", "10")
    canvas.text(x - 0.17 * height, y - 0.28 * height, rank, height=0.3 * height, colour=ink, bold=True)
    draw_suit(canvas, x + 0.08 * height, y + 0.16 * height, 0.36 * height, suit, ink)


def draw_back(canvas: Canvas, x: float, y: float, height: float) -> None:
    """The back of a card."""
    _blank(canvas, x, y, height, "#f3efe6", "#b9b4a6")
    w, h = 0.29 * height, 0.44 * height
    canvas.rect(x - w, y - h, x + w, y + h, fill="#7a4a86", outline="#5c3467", radius=0.03 * height)
    for k in range(3):
        canvas.polygon(_diamond(x, y + 0.26 * height * (k - 1), 0.22 * height), outline="#c9a6d3", width=1)


def draw_suit(canvas: Canvas, x: float, y: float, size: float, suit: int, ink: str) -> None:
    """The sign of a suit, of one colour."""
    r = 0.24 * size
    if suit == 2:
        canvas.polygon(_diamond(x, y, size), fill=ink)
    elif suit == 1:
        canvas.polygon([(x + a * size, y + b * size) for a, b in _heart()], fill=ink)
    else:
        canvas.polygon([(x, y), (x + 0.16 * size, y + 0.5 * size), (x - 0.16 * size, y + 0.5 * size)], fill=ink)
        if suit == 0:
            canvas.polygon([(x + a * size, y - (b + 0.06) * size) for a, b in _heart()], fill=ink)
        else:
            for a, b in ((0.0, -0.24), (-0.25, 0.1), (0.25, 0.1)):
                canvas.circle(x + a * size, y + b * size, r, fill=ink)
            canvas.circle(x, y, 0.12 * size, fill=ink)


def _blank(canvas: Canvas, x: float, y: float, height: float, fill: str, outline: str) -> None:
    w, h = WIDTH * height / 2, height / 2
    canvas.rect(x - w, y - h + 0.03 * height, x + w, y + h + 0.03 * height, radius=0.08 * height, fill="#00000040")
    canvas.rect(x - w, y - h, x + w, y + h, radius=0.08 * height, fill=fill, outline=outline, width=1)


def _diamond(x: float, y: float, size: float) -> list[tuple[float, float]]:
    return [(x, y - 0.5 * size), (x + 0.36 * size, y), (x, y + 0.5 * size), (x - 0.36 * size, y)]


@functools.cache
def _heart() -> tuple[tuple[float, float], ...]:
    """The outline of a heart of size 1 around the middle, y downwards."""
    turns = [2 * math.pi * k / 48 for k in range(48)]
    return tuple(
        (
            16 * math.sin(t) ** 3 / 34,
            -(13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 32 - 0.04,
        )
        for t in turns
    )
