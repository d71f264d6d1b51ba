"""Dots and boxes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

NAMES = ("blue", "orange")
PALE, STRONG = ("#cfe0f8", "#fbdcc2"), ("#4285e0", "#f08c42")
MOST_DOTS = 64


@dataclasses.dataclass(frozen=True)
class DotsAndBoxesConfig(Config):
    """The board, and what a victory is worth."""

    num_rows: int = param(
        5, low=1, high=31, doc="rows of boxes; the board has at most 64 dots, so 7x7 boxes are the most"
    )
    num_cols: int = param(5, low=1, high=31, doc="columns of boxes")
    utility_margin: bool = param(False, doc="the reward at the end is the lead in boxes, not 1, 0 or -1")


class DotsAndBoxes(EnvDef):
    """Two players in turn draw lines between dots; who closes a box owns it and moves again; more boxes win.

    The board has ``num_rows`` x ``num_cols`` boxes, so (num_rows + 1) x (num_cols + 1) dots, at most 64. A line joins
    two dots that are neighbours in a row or a column. A box belongs to the player who draws the last of its four sides.
    A line may close two boxes. A player who closes a box must draw another line; otherwise it is the opponent's turn.

    **Agents.** `player_0` (blue), who begins, and `player_1` (orange). A step is one line, and the action of the player
    who is not to move is ignored. The same player may move several times in a row.

    **Actions.** `Discrete`, one for each line, as in OpenSpiel. First come the horizontal lines, by row of dots from
    the top and then by column: num_cols * row + column joins dots (row, column) and (row, column + 1). Then come the
    vertical lines, by row of boxes and then by column: (num_rows + 1) * num_cols + (num_cols + 1) * row + column joins
    dots (row, column) and (row + 1, column). The action mask holds the lines that are not drawn for the player to move,
    and zeros for the other one.

    **Observation.** `Box(0, 1, (2 * num_rows + 1, 2 * num_cols + 1, 4), int8)`: row, column, and plane. The board is a
    grid of cells, because then a line lies beside its two boxes, and a box beside its four lines. Dot (row, column) is
    cell (2 row, 2 column), with horizontal lines, vertical lines and boxes between the dots. Plane 0 holds the
    observing player's own boxes, 1 the opponent's, 2 the lines that are drawn, and 3 those that are not. All planes are
    0 at dots and at open boxes. Only planes 0 and 1 differ between the players.

    **Reward.** At the end 1 for the player with more boxes and -1 for the other one, 0 for both if they have as many.
    With ``utility_margin`` it is the player's boxes minus the opponent's. 0 before.

    **End.** All lines are drawn. There is no time limit: a game has as many moves as the board has lines. The last line
    closes a box, so ``to_move`` stays at the player who drew it. An illegal action (a line that is drawn already) ends
    the game at once with -1 for the player to move and 0 for the other; the board and the turn stay as they were.

    **Differences from OpenSpiel.** There the board has 2 x 2 boxes by default, and an illegal action is an error. Its
    observation has no view of its own for each player, and also shows who drew each line, which does not matter to the
    game.
    """

    id = "DotsAndBoxes-v0"
    Config = DotsAndBoxesConfig
    aliases = (r"[Dd]ots[ _][Aa]nd[ _][Bb]oxes",)
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "open_spiel 2.0.2 dots_and_boxes"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "OpenSpiel": "https://github.com/google-deepmind/open_spiel/tree/master/open_spiel/games/dots_and_boxes",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"7x7": {"num_rows": 7, "num_cols": 7}}
    render_fps = 3

    def agents(self, cfg: DotsAndBoxesConfig) -> dict[str, int]:
        return {"player": 2}

    def lanes(self, cfg: DotsAndBoxesConfig) -> int:
        return 8

    def check(self, cfg: DotsAndBoxesConfig) -> None:
        dots = (cfg.num_rows + 1) * (cfg.num_cols + 1)
        if dots > MOST_DOTS:
            raise ValueError(
                f"{self.id}: a board may have {MOST_DOTS} dots, but num_rows={cfg.num_rows} and "
                f"num_cols={cfg.num_cols} make {dots}: take a smaller board, such as 7 by 7 boxes."
            )

    def constants(self, cfg: DotsAndBoxesConfig) -> dict[str, int]:
        return {
            "ROWS": cfg.num_rows,
            "COLUMNS": cfg.num_cols,
            "STRIDE": cfg.num_cols + 1,
            "GRID_ROWS": 2 * cfg.num_rows + 1,
            "GRID_COLUMNS": 2 * cfg.num_cols + 1,
            "PLANES": 4,
            "FIRST_VERTICAL": _horizontals(cfg),
            "LINES": _lines(cfg),
        }

    def observation_space(self, cfg: DotsAndBoxesConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (2 * cfg.num_rows + 1, 2 * cfg.num_cols + 1, 4), np.int8)

    def action_space(self, cfg: DotsAndBoxesConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(_lines(cfg))

    def observation_names(self, cfg: DotsAndBoxesConfig, group: str) -> dict[str, int]:
        return {
            "boxes of the observing player": 1,
            "boxes of the opponent": 1,
            "lines that are drawn": 1,
            "lines that are not drawn": 1,
        }

    def action_names(self, cfg: DotsAndBoxesConfig, group: str) -> dict[str, int]:
        across = {f"horizontal line in row {r}, column {c}": 1 for r, c in np.ndindex(cfg.num_rows + 1, cfg.num_cols)}
        down = {f"vertical line in row {r}, column {c}": 1 for r, c in np.ndindex(cfg.num_rows, cfg.num_cols + 1)}
        return {**across, **down}

    def action_cells(self, cfg: DotsAndBoxesConfig, group: str) -> tuple[list[int], int]:
        width = 2 * cfg.num_cols + 1
        return [round(width * 2 * y + 2 * x) for x, y in (_middle(cfg, action) for action in range(_lines(cfg)))], 0

    def fields(self, cfg: DotsAndBoxesConfig) -> dict[str, Field]:
        dots = "bit (num_cols + 1) * row + column"
        return {
            "horizontal": Field("uint64", doc=f"horizontal lines that are drawn, by their left dots: {dots}"),
            "vertical": Field("uint64", doc="vertical lines that are drawn, by their upper dots, likewise"),
            "boxes_0": Field("uint64", doc="boxes of player_0, by their upper left dots, likewise"),
            "boxes_1": Field("uint64", doc="boxes of player_1, likewise"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
        }

    def aspect(self, cfg: DotsAndBoxesConfig) -> float:
        return (cfg.num_cols + 1) / (cfg.num_rows + 1)

    def render(self, cfg: DotsAndBoxesConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        rows, columns, last, mover = cfg.num_rows, cfg.num_cols, int(state["last_move"]), int(state["to_move"])
        boxes = [int(state[f"boxes_{k}"]) for k in range(2)]
        drawn = [int(state["horizontal"]), int(state["vertical"])]
        canvas.background("paper")
        canvas.view(-0.5, -0.5, columns + 0.5, rows + 0.5, y_down=True, hud=True)
        canvas.cached(_board, rows, columns)
        for row, column in np.ndindex(rows, columns):
            bit = (columns + 1) * row + column
            owner = next((k for k in range(2) if boxes[k] >> bit & 1), None)
            if owner is not None:
                canvas.cached(_box, column, row, owner)
        for action in range(_lines(cfg)):
            (x0, y0), (x1, y1) = _ends(cfg, action)
            if drawn[action >= _horizontals(cfg)] >> (columns + 1) * y0 + x0 & 1:
                _line(canvas, x0, y0, x1, y1, 0.05, "red" if action == last else "slate")
        canvas.circles([(x, y) for y, x in np.ndindex(rows + 1, columns + 1)], 0.1, "ink")
        counts = [bin(x).count("1") for x in boxes]
        over = sum(counts) == rows * columns
        lead = counts[0] - counts[1]
        won = "draw" if lead == 0 else f"player_{int(lead < 0)} ({NAMES[lead < 0]}) wins"
        canvas.hud(
            left=f"Dots and boxes   blue {counts[0]}, orange {counts[1]}",
            right=won if over else f"player_{mover} ({NAMES[mover]}) to move",
        )

    def presses(
        self, cfg: DotsAndBoxesConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float]]:
        return [_middle(cfg, action)]


def _horizontals(cfg: DotsAndBoxesConfig) -> int:
    return (cfg.num_rows + 1) * cfg.num_cols


def _lines(cfg: DotsAndBoxesConfig) -> int:
    return _horizontals(cfg) + cfg.num_rows * (cfg.num_cols + 1)


def _ends(cfg: DotsAndBoxesConfig, action: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two dots (x, y) of a line."""
    if action < _horizontals(cfg):
        y, x = divmod(action, cfg.num_cols)
        return (x, y), (x + 1, y)
    y, x = divmod(action - _horizontals(cfg), cfg.num_cols + 1)
    return (x, y), (x, y + 1)


def _middle(cfg: DotsAndBoxesConfig, action: int) -> tuple[float, float]:
    (x0, y0), (x1, y1) = _ends(cfg, action)
    return (x0 + x1) / 2, (y0 + y1) / 2


def _board(canvas: Canvas, rows: int, columns: int) -> None:
    """The paper, and faint lines where lines can be drawn."""
    canvas.rect(-0.35, -0.35, columns + 0.35, rows + 0.35, fill="white", outline="line", radius=0.2, width=1.5)
    for row in range(rows + 1):
        _line(canvas, 0, row, columns, row, 0.025, "mist")
    for column in range(columns + 1):
        _line(canvas, column, 0, column, rows, 0.025, "mist")


def _line(canvas: Canvas, x0: int, y0: int, x1: int, y1: int, half: float, colour: str) -> None:
    """A line that is twice ``half`` thick on any board."""
    canvas.rect(x0 - half, y0 - half, x1 + half, y1 + half, fill=colour)


def _box(canvas: Canvas, x: int, y: int, owner: int) -> None:
    """A box in its owner's colour, with a disc or a ring, which tell the players apart without colours."""
    canvas.rect(x, y, x + 1, y + 1, fill=PALE[owner])
    if owner == 0:
        canvas.circle(x + 0.5, y + 0.5, 0.2, fill=STRONG[owner])
    else:
        canvas.circle(x + 0.5, y + 0.5, 0.2, fill=STRONG[owner])
        canvas.circle(x + 0.5, y + 0.5, 0.11, fill=PALE[owner])
