"""CliffWalking."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

ROWS, COLUMNS = 4, 12


@dataclasses.dataclass(frozen=True)
class CliffWalkingConfig(Config):
    """The argument of Gymnasium's CliffWalking."""

    is_slippery: bool = param(False, doc="whether steps may go to the side")


class CliffWalking(EnvDef):
    """A walk along a cliff, from one end to the other: the shortest way is at its very edge.

    **Map.** 4 rows of 12 cells. The bottom row has the start at its left end, the goal at its right end, and the cliff
    between them.

    **Actions.** `Discrete(4)`: 0 up, 1 right, 2 down, 3 left.

    **Observation.** `Discrete(48)`: 12 row + column of the player's cell, counted from the top left.

    **Movement.** One cell in the direction; at the edge of the map the player stays. With `is_slippery` (Gymnasium's
    CliffWalkingSlippery-v1) the direction is the wanted one or one of the two at right angles to it, with
    probabilities 1/3. A step off the cliff leads back to the start, and the episode continues.

    **Reward.** -1 for each step, -100 for one off the cliff.

    **End.** The player is at the goal. No time limit. An action out of range counts as 0.
    """

    id = "CliffWalking-v1"
    Config = CliffWalkingConfig
    reference = "gymnasium CliffWalking-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/toy_text/cliff_walking/",
        "Sutton and Barto, example 6.6": "http://incompleteideas.net/book/the-book-2nd.html",
    }
    render_fps = 4

    def constants(self, cfg: CliffWalkingConfig) -> dict[str, int]:
        return {"ROWS": ROWS, "COLUMNS": COLUMNS}

    def observation_space(self, cfg: CliffWalkingConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(ROWS * COLUMNS)

    def action_space(self, cfg: CliffWalkingConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: CliffWalkingConfig, group: str) -> dict[str, int]:
        return {"12 row + column of the player's cell": 1}

    def action_names(self, cfg: CliffWalkingConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: CliffWalkingConfig) -> dict[str, Field]:
        return {
            "row": Field("int32", doc="the player's row, 0 at the top"),
            "column": Field("int32", doc="the player's column"),
        }

    def render(self, cfg: CliffWalkingConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("water")
        canvas.view(0, -1.5, COLUMNS, ROWS + 1.5, y_down=True, pad=6, hud=True)
        canvas.rect(-1, -9, COLUMNS + 1, 0, fill="grass")
        for x, size in ((0.9, 0.42), (2.3, 0.3), (5.2, 0.38), (8.1, 0.32), (9.4, 0.44), (11.2, 0.34)):
            canvas.polygon([(x - size, -0.3), (x + size, -0.3), (x, -0.5 - 2 * size)], fill="green")
            canvas.rect(x - 0.05, -0.3, x + 0.05, -0.12, fill="brown")
        for side in (-1, COLUMNS - 1):
            canvas.rect(side, 0, side + 2, ROWS, fill="grass")
            canvas.rect(side, ROWS, side + 2, ROWS + 0.7, fill="brown")
        for y in range(ROWS):
            for x in range(COLUMNS):
                canvas.rect(x, y, x + 1, y + 1, fill="grass" if (x + y) % 2 else "#cfe4ca")
        edge = ROWS - 1
        canvas.rect(1, edge, COLUMNS - 1, edge + 1, fill="brown")
        for x in range(1, COLUMNS - 1):
            corners = [
                (x, edge),
                (x + 1, edge),
                (x + 0.78, edge + 0.32),
                (x + 0.5, edge + 0.18),
                (x + 0.25, edge + 0.4),
            ]
            canvas.polygon(corners, fill="#c49a78")
            canvas.line(x + 0.35, edge + 0.55, x + 0.35, edge + 0.85, colour="#7c5a40", width=2)
            canvas.line(x + 0.75, edge + 0.45, x + 0.75, edge + 0.8, colour="#7c5a40", width=2)
        for k in range(-1, 9):
            waves = np.linspace(0, 1, 20)
            level = edge + 1.95 + 0.3 * (k % 2)
            canvas.path(
                np.stack([1.5 * k + waves, level + 0.06 * np.sin(4 * np.pi * waves)], 1), colour="white", width=2
            )
        canvas.text(0.5, edge + 0.82, "start", height=0.26, colour="slate")
        goal = COLUMNS - 0.65
        canvas.line(goal, edge + 0.85, goal, edge + 0.15, width=2.5)
        canvas.polygon([(goal, edge + 0.15), (goal + 0.42, edge + 0.3), (goal, edge + 0.45)], fill="red")
        right, down = int(state["column"]) + 0.5, int(state["row"]) + 0.5
        canvas.circle(right, down + 0.17, 0.21, fill="blue")
        canvas.circle(right, down - 0.1, 0.16, fill="#f3cfa9")
        canvas.rect(right - 0.24, down - 0.19, right + 0.24, down - 0.14, fill="brown", radius=0.02)
        canvas.rect(right - 0.12, down - 0.31, right + 0.12, down - 0.15, fill="brown", radius=0.04)
        canvas.hud(left="CliffWalking", right=f"step {int(state['elapsed_steps'])}")
