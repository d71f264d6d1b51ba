"""Pictures of battles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from gpuzoo.render import Canvas


def draw_battle(canvas: Canvas, cfg: Any, state: Mapping[str, NDArray[Any]], units: Sequence[Any], allies: int) -> None:
    canvas.background("paper")
    canvas.view(0, 0, cfg.map_width, cfg.map_height)
    canvas.circles([[x, y] for x, y in zip(state["x"], state["y"])], 0.5, "red")
