"""Chessmen as outlines: for a square of width 1, y downwards, the middle at (0, 0)."""

from __future__ import annotations

import numpy as np

from gpuzoo.render import Canvas

LIGHT, DARK = "#efe1c4", "#a9774f"
FILLS, EDGES = ("#fdfbf5", "#34302d"), ("#4a3c30", "#14110f")
_BASE = [(0.27, 0.38), (0.27, 0.31), (0.21, 0.27)]
#: right halves of the symmetric men, from the foot upwards
_HALVES = {
    1: [*_BASE, (0.11, 0.16), (0.09, 0.02), (0.15, -0.02), (0.13, -0.05), (0.06, -0.07)],
    3: [*_BASE, (0.12, 0.18), (0.10, 0.10), (0.17, 0.06), (0.15, 0.02), (0.18, -0.06), (0.13, -0.17), (0.03, -0.28)],
    4: [*_BASE, (0.16, 0.18), (0.15, -0.10), (0.21, -0.14), (0.21, -0.31), (0.13, -0.31), (0.13, -0.25), (0.05, -0.25),
        (0.05, -0.31)],
    5: [*_BASE, (0.15, 0.18), (0.18, 0.10), (0.31, -0.22), (0.17, -0.07), (0.155, -0.30), (0.06, -0.10), (0.0, -0.33)],
    6: [*_BASE, (0.15, 0.18), (0.17, 0.12), (0.28, 0.00), (0.29, -0.10), (0.22, -0.17), (0.13, -0.15), (0.05, -0.08),
        (0.04, -0.20)],
}  # fmt: skip
_KNIGHT = [
    (-0.24, 0.38), (-0.24, 0.31), (-0.17, 0.27), (-0.13, 0.13), (0.02, 0.00), (0.03, -0.06), (-0.10, 0.00),
    (-0.19, 0.06), (-0.26, 0.01), (-0.25, -0.06), (-0.14, -0.20), (-0.10, -0.27), (-0.09, -0.36), (-0.02, -0.30),
    (0.12, -0.26), (0.21, -0.13), (0.24, 0.03), (0.23, 0.18), (0.22, 0.27), (0.27, 0.31), (0.27, 0.38),
]  # fmt: skip


def _outline(kind: int) -> np.ndarray:
    if kind == 2:
        return np.array(_KNIGHT)
    half = np.array(_HALVES[kind])
    return np.concatenate([half, half[::-1] * (-1, 1)])


def piece(canvas: Canvas, x: float, y: float, kind: int, colour: int) -> None:
    """A man of kind 1 (pawn) to 6 (king)."""
    fill, edge, at = FILLS[colour], EDGES[colour], np.array((x, y))
    canvas.polygon(_outline(kind) + at + np.array((0.02, 0.025)), fill="#00000030")
    canvas.polygon(_outline(kind) + at, fill=fill, outline=edge, width=1.3)
    detail = edge if colour == 0 else "#d8cfc2"
    if kind == 1:
        canvas.circle(x, y - 0.16, 0.125, fill=fill, outline=edge, width=1.3)
    elif kind == 2:
        canvas.circle(x - 0.06, y - 0.16, 0.025, fill=detail)
    elif kind == 3:
        canvas.circle(x, y - 0.31, 0.045, fill=fill, outline=edge, width=1.3)
        canvas.line(x, y - 0.17, x, y - 0.03, colour=detail, width=1.3)
        canvas.line(x - 0.06, y - 0.10, x + 0.06, y - 0.10, colour=detail, width=1.3)
    elif kind == 4:
        canvas.line(x - 0.15, y - 0.10, x + 0.15, y - 0.10, colour=detail, width=1.3)
    elif kind == 5:
        for dx, dy in ((-0.31, -0.25), (-0.155, -0.33), (0.0, -0.36), (0.155, -0.33), (0.31, -0.25)):
            canvas.circle(x + dx, y + dy, 0.04, fill=fill, outline=edge, width=1.2)
    else:
        canvas.line(x, y - 0.40, x, y - 0.20, colour=edge, width=2.4)
        canvas.line(x - 0.07, y - 0.33, x + 0.07, y - 0.33, colour=edge, width=2.4)
    canvas.line(x - 0.21, y + 0.27, x + 0.21, y + 0.27, colour=detail, width=1.3)


def squares(canvas: Canvas, size: int) -> None:
    """The board with the names of rows and columns."""
    canvas.rect(-0.4, -0.4, size + 0.4, size + 0.4, fill="#5d3f2a", radius=0.12)
    for row in range(size):
        for column in range(size):
            y = size - 1 - row
            canvas.rect(column, y, column + 1, y + 1, fill=LIGHT if (row + column) % 2 else DARK)
    for k in range(size):
        for far in (-0.2, size + 0.2):
            canvas.text(k + 0.5, far, "abcdefgh"[k], height=0.24, colour="#e9d9bd")
            canvas.text(far, size - k - 0.5, str(k + 1), height=0.24, colour="#e9d9bd")
