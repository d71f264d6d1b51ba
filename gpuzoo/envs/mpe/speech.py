"""What the worlds in which agents speak have in common: their actions, and how words are drawn."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.envs.mpe.world import WAYS
from gpuzoo.render import Canvas


def action_space(continuous: bool, moves: int, words: int) -> spaces.Space[Any]:
    """Actions of an agent that has so many choices of how to move and of what to say; 0 for what it cannot do."""
    if continuous:
        return spaces.Box(0.0, 1.0, (moves + words,), np.float32)
    return spaces.Discrete(max(moves, 1) * max(words, 1))


def spoken(continuous: bool, moves: int, words: int) -> dict[str, int]:
    """Names of these actions."""
    ways = dict.fromkeys(WAYS, 1) if moves else {}
    if continuous or not moves or not words:
        return ways | {f"say word {k}": 1 for k in range(words)}
    return {f"say word {k}, and nothing, left, right, down or up": moves for k in range(words)}


def word(speech: NDArray[Any]) -> str:
    """The letter of the loudest word, ``-`` for silence."""
    return ascii_uppercase[int(speech.argmax())] if speech.any() else "-"


def draw_bubble(canvas: Canvas, x: float, y: float, speech: NDArray[Any], size: float, colour: str = "slate") -> None:
    """A bubble around (x, y), ``size`` high, with a word, or with bars where several are said at once."""
    speech = np.asarray(speech, np.float64)
    mixed = np.count_nonzero(speech) > 1 or 0 < speech.max() < 1
    wide = size * max(1.0, 0.16 * len(speech) + 0.3) if mixed else size
    x0, x1, y0, y1 = x - wide / 2, x + wide / 2, y - size / 2, y + size / 2
    foot = (
        (x0 + 0.3 * size, y0 + 0.05 * size),
        (x0 + 0.6 * size, y0 + 0.05 * size),
        (x0 + 0.25 * size, y0 - 0.25 * size),
    )
    canvas.polygon(foot, fill=colour)
    canvas.rect(x0, y0, x1, y1, fill="white", outline=colour, radius=0.25 * size)
    if not mixed:
        canvas.text(x, y, word(speech), height=0.75 * size, colour="ink", bold=True)
        return
    step = 0.8 * wide / len(speech)
    for k, loud in enumerate(speech):
        left, low = x - 0.4 * wide + k * step, y - 0.35 * size
        canvas.rect(left + 0.1 * step, low, left + 0.9 * step, low + (0.04 + 0.66 * loud) * size, fill="ink")
