"""2048."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

SIZE = 4
CHANNELS = 31
#: of tiles, by exponent; larger ones have the last
COLOURS = (
    "#cdc1b4", "#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b", "#edcf72", "#edcc61", "#edc850",
    "#edc53f", "#edc22e", "#3c3a32",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Game2048Config(Config):
    """What new tiles are."""

    probability_of_4: float = param(0.1, low=0.0, high=1.0, doc="probability that a new tile is 4 and not 2")


class Game2048(EnvDef):
    """Tiles slide over a board of 4 x 4 cells; two that are alike and meet become one of twice their value.

    The game by Gabriele Cirulli (2014). All tiles slide as far as they go. In each line the tiles nearest to the side
    that they move to join first, and a tile that a join has made does not join again in the same move. Then a new tile
    appears in an empty cell, each with the same chance: 2, or 4 with `probability_of_4`. There are two at the
    beginning.

    **Actions.** `Discrete(4)`: 0 left, 1 up, 2 right, 3 down. The action mask holds the actions that move a tile.

    **Observation.** `Box(0, 1, (4, 4, 31), int8)`: row, column, and the tile, one-hot: 0 for an empty cell, k for 2 to
    the power of k.

    **Reward.** The sum of the values of the tiles that joins have made.

    **End.** No tile can move. An illegal action ends the game at once with -1; the board stays as it was. There is no
    time limit. `infos` have `solved`: whether there is a tile of 2048 or more.
    """

    id = "Game2048-v0"
    Config = Game2048Config
    aliases = (r"2048", r"[Pp]lay2048")
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "pgx==2.6.0 2048"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/play2048/",
        "the original": "https://github.com/gabrielecirulli/2048",
    }
    expert = "gpuzoo.envs.game_2048.expectimax:best_moves"
    render_fps = 6

    def constants(self, cfg: Game2048Config) -> dict[str, int]:
        return {"CHANNELS": CHANNELS}

    def observation_space(self, cfg: Game2048Config, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (SIZE, SIZE, CHANNELS), np.int8)

    def action_space(self, cfg: Game2048Config, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: Game2048Config, group: str) -> dict[str, int]:
        return {"empty": 1} | {f"a tile of {2**k:,}": 1 for k in range(1, CHANNELS)}

    def action_names(self, cfg: Game2048Config, group: str) -> dict[str, int]:
        return dict.fromkeys(("left", "up", "right", "down"), 1)

    def fields(self, cfg: Game2048Config) -> dict[str, Field]:
        return {
            "rows": Field(
                "uint32", (SIZE,), "exponents of each row's tiles, 0 for none: a byte for each, the first lowest"
            ),
            "score": Field("float32", doc="values of all tiles that have come about"),
        }

    def infos(self, cfg: Game2048Config, state: Mapping[str, Any]) -> Mapping[str, Any]:
        # an exponent from 11 on has all bits of 16, of 12 or of 11
        masks = [mask << 8 * k for mask in (0b10000, 0b1100, 0b1011) for k in range(SIZE)]
        there = [state["rows"] & mask == mask for mask in masks]
        return {"solved": functools.reduce(operator.or_, there).any(1)}

    def render(self, cfg: Game2048Config, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        tiles = np.asarray(state["rows"])[:, None] >> 8 * np.arange(SIZE) & 255
        canvas.background("#faf8ef")
        canvas.view(-0.15, -0.15, SIZE + 0.15, SIZE + 0.15, y_down=True, hud=True)
        canvas.rect(-0.08, -0.08, SIZE + 0.08, SIZE + 0.08, fill="#bbada0", radius=0.12)
        for row in range(SIZE):
            for column in range(SIZE):
                canvas.cached(_tile, column, row, int(tiles[row, column]))
        canvas.hud(left=f"2048   score {int(state['score']):,}", right=f"move {int(state['elapsed_steps'])}")


def _tile(canvas: Canvas, x: int, y: int, exponent: int) -> None:
    """A cell, with its tile if it has one."""
    fill = COLOURS[min(exponent, len(COLOURS) - 1)]
    canvas.rect(x + 0.06, y + 0.06, x + 0.94, y + 0.94, fill=fill, radius=0.08)
    if exponent:
        text = str(2**exponent)
        colour = "#776e65" if exponent < 3 else "#f9f6f2"
        canvas.text(x + 0.5, y + 0.5, text, colour=colour, bold=True, height=0.42 if len(text) < 4 else 0.3)
