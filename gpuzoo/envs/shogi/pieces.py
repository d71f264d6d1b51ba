"""Shogi's board and tiles."""

from __future__ import annotations

import numpy as np

from gpuzoo.envs.shogi.sfen import LETTERS
from gpuzoo.render import Canvas

WIDTH, HEIGHT, LEFT, TOP = 13.4, 10.4, 2.2, 0.7
WOOD, LINE, TILE, EDGE, INK, PROMOTED = "#e3b567", "#6e4f22", "#f7e3b4", "#8a6a35", "#2a2118", "#b3261e"
STAND = (5, 4, 6, 3, 2, 1, 0)  # kinds in the order in which they are held
_TILE = np.array([(0.0, -0.43), (0.26, -0.32), (0.36, 0.40), (-0.36, 0.40), (-0.26, -0.32)])


def table(canvas: Canvas) -> None:
    """The board, the names of columns and rows, and both stands."""
    canvas.rect(LEFT - 0.55, TOP - 0.55, LEFT + 9.55, TOP + 9.55, fill="#00000022", radius=0.12)
    canvas.rect(LEFT - 0.6, TOP - 0.6, LEFT + 9.5, TOP + 9.5, fill="#d29f4e", radius=0.12)
    canvas.rect(LEFT, TOP, LEFT + 9, TOP + 9, fill=WOOD)
    for k in range(10):
        canvas.line(LEFT, TOP + k, LEFT + 9, TOP + k, colour=LINE, width=1.3)
        canvas.line(LEFT + k, TOP, LEFT + k, TOP + 9, colour=LINE, width=1.3)
    for column in (3, 6):
        for row in (3, 6):
            canvas.circle(LEFT + column, TOP + row, 0.07, fill=LINE)
    for k in range(9):
        canvas.text(LEFT + 8.5 - k, TOP - 0.3, str(k + 1), height=0.27, colour=LINE)
        canvas.text(LEFT + 9.25, TOP + k + 0.5, "abcdefghi"[k], height=0.27, colour=LINE)
    for x, y in ((LEFT + 9.65, TOP + 1.9), (0.1, TOP - 0.6)):
        canvas.rect(x, y, x + 1.4, y + 8.2 - 0.6, fill="#c98f43", radius=0.1)


def middle(column: int, row: int) -> tuple[float, float]:
    """The middle of a cell."""
    return LEFT + 8.5 - column, TOP + row + 0.5


def stand(k: int, owner: int) -> tuple[float, float]:
    """Where the k-th kind lies that a player holds: black's stand is on the right, white's on the left."""
    return (LEFT + 10.2, TOP + 9.0 - k) if owner == 0 else (0.65, TOP - 0.1 + k)


def tile(canvas: Canvas, x: float, y: float, kind: int, owner: int) -> None:
    """A tile points to the opponent. A promoted piece is red, with a +."""
    sign = 1 if owner == 0 else -1
    size = (0.84, 0.86, 0.88, 0.93, 0.98, 0.98, 0.93, 1.03)[kind % 8]
    corners = _TILE * (sign * size, sign * size)
    canvas.polygon(corners + np.array((x + 0.03, y + 0.05)), fill="#00000040")
    canvas.polygon(corners + np.array((x, y)), fill=TILE if owner == 0 else "#ecd0a0", outline=EDGE, width=1.2)
    name = ("+" if kind > 7 else "") + LETTERS[kind % 8]
    colour = PROMOTED if kind > 7 else INK
    canvas.text(x, y + 0.04 * sign, name, height=0.42, colour=colour, bold=owner == 0)


def on_board(canvas: Canvas, column: int, row: int, kind: int, owner: int) -> None:
    """A tile in a cell."""
    tile(canvas, *middle(column, row), kind, owner)


def in_hand(canvas: Canvas, k: int, kind: int, owner: int, count: int) -> None:
    """The k-th kind that a player holds."""
    x, y = stand(k, owner)
    tile(canvas, x, y, kind, owner)
    if count > 1:
        canvas.text(x + 0.44, y + 0.28, str(count), height=0.34, colour="#3a2410", bold=True)


def mark(canvas: Canvas, column: int, row: int) -> None:
    """Where the last move ended."""
    canvas.rect(LEFT + 8 - column, TOP + row, LEFT + 9 - column, TOP + row + 1, fill="#f6d34490")
