"""The picture of a bandit with two arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from gpuzoo.render import Canvas


def draw(canvas: Canvas, state: Mapping[str, NDArray[Any]], title: str, chances: Sequence[str], best: int) -> None:
    """Two slot machines: what is written on them, and what the last pull gave."""
    t, last, reward = int(state["elapsed_steps"]), int(state["last_action"]), float(state["last_reward"])
    canvas.background("sand")
    canvas.view(0, 0, 10, 10, hud=True)
    canvas.rect(-1, 0, 11, 1.2, fill="brown")
    for arm, x in enumerate((2.6, 7.0)):
        pulled = t > 0 and arm == last
        colour = ("blue", "purple")[arm]
        canvas.rect(x - 1.7, 1.0, x + 1.7, 7.2, fill=colour, outline="ink", width=2, radius=0.4)
        canvas.circle(x, 7.2, 1.2, fill="yellow" if arm == best else "mist", outline="ink", width=2)
        canvas.rect(x - 1.25, 5.9, x + 1.25, 7.15, fill=colour)
        canvas.text(x, 7.75, chances[arm], size=12, bold=True)
        canvas.rect(x - 1.25, 4.0, x + 1.25, 6.4, fill="white", outline="ink", width=2, radius=0.2)
        canvas.text(x, 5.2, f"{reward:.3g}" if pulled else "-", size=24, bold=True,
                    colour="grey" if not pulled else "green" if reward > 0 else "red")  # fmt: skip
        canvas.rect(x - 1.2, 1.5, x + 1.2, 2.4, fill="ink", radius=0.15)
        if pulled and reward > 0:
            for k in range(3):
                canvas.circle(x - 0.7 + 0.7 * k, 1.9, 0.3, fill="yellow", outline="brown")
        y = 3.6 if pulled else 6.4
        canvas.line(x + 1.7, 4.6, x + 2.15, 4.6, colour="slate", width=7)
        canvas.line(x + 2.15, 4.6, x + 2.15, y, colour="slate", width=5)
        canvas.circle(x + 2.15, y, 0.32, fill="red", outline="ink")
    canvas.hud(left=title, right=f"step {t}")
