"""Connect Four."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field
from gpuzoo.render import Canvas

ROWS, COLUMNS = 6, 7
LINES = tuple(
    tuple((row + k * down, column + k * right) for k in range(4))
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
    for row in range(ROWS - 3 * down)
    for column in range(COLUMNS)
    if 0 <= column + 3 * right < COLUMNS
)
"""The 69 places for four in a row, each as four cells (row, column)."""


@dataclasses.dataclass(frozen=True)
class ConnectFourConfig(Config):
    """Connect Four has no options."""


class ConnectFour(EnvDef):
    """Two players in turn drop discs into the seven columns of a board; four in a row win.

    The board has six rows. A disc falls to the lowest free cell of its column. Four discs of one
    player side by side in a row, a column or a diagonal win; a full board without them is a draw.

    **Agents.** `player_0`, who begins, and `player_1`. They move in turn: a step is one move, and
    the action of the player who is not to move is ignored.

    **Actions.** `Discrete(7)`: the column, from the left. The action mask holds the columns that
    are not full for the player to move, and zeros for the other one. When a game is won or drawn
    the turn passes on as after any other move, so the mask is then that of the player who would
    come next.

    **Observation.** `Box(0, 1, (6, 7, 2), int8)`: row (0 is the top), column, and plane: 0 holds
    the observing player's own discs, 1 the opponent's.

    **Reward.** 1 for the winner and -1 for the loser at the end, 0 otherwise.

    **End.** Four in a row or a full board, after 42 moves at the latest: there is no time limit.
    An illegal action of the player to move (a full column or no column) ends the game at once with
    -1 for that player and 0 for the other; the board and the turn stay as they were.
    """

    id = "ConnectFour-v0"
    Config = ConnectFourConfig
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "pettingzoo connect_four_v3"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/classic/connect_four/",
    }
    render_fps = 2

    def agents(self, cfg: ConnectFourConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: ConnectFourConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (6, 7, 2), np.int8)

    def action_space(self, cfg: ConnectFourConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(7)

    def observation_names(self, cfg: ConnectFourConfig, group: str) -> dict[str, int]:
        return {"discs of the observing player": 1, "discs of the opponent": 1}

    def action_names(self, cfg: ConnectFourConfig, group: str) -> dict[str, int]:
        return {f"drop a disc into column {k}": 1 for k in range(7)}

    def action_cells(self, cfg: ConnectFourConfig, group: str) -> tuple[range, int]:
        return range(7), 0  # the top cell of a column

    def fields(self, cfg: ConnectFourConfig) -> dict[str, Field]:
        cells = "bit 7 * row + column, row 0 is the top"
        return {
            "discs_0": Field("uint64", doc=f"discs of player_0: {cells}"),
            "discs_1": Field("uint64", doc=f"discs of player_1: {cells}"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_move": Field("int32", doc="column of the last disc, -1 before the first"),
        }

    def render(self, cfg: ConnectFourConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        colours = ("red", "yellow")
        bits = np.arange(ROWS * COLUMNS, dtype=np.uint64)
        boards = [
            (np.uint64(state[f"discs_{k}"]) >> bits & np.uint64(1)).astype(bool).reshape(ROWS, COLUMNS)
            for k in range(2)
        ]
        lines = [(k, line) for k in range(2) for line in LINES if all(boards[k][c] for c in line)]
        taken = boards[0] | boards[1]
        to_move, last = int(state["to_move"]), int(state["last_move"])

        canvas.background("paper")
        canvas.view(-0.25, -0.95, COLUMNS + 0.25, ROWS + 0.25, y_down=True, hud=True)
        canvas.rect(-0.15, -0.15, COLUMNS + 0.15, ROWS + 0.15, fill="blue", radius=0.3)
        for row in range(ROWS):
            for column in range(COLUMNS):
                x, y = column + 0.5, row + 0.5
                if not taken[row, column]:
                    canvas.circle(x, y, 0.4, fill="paper", outline="#2f6cc0", width=1.5)
                    continue
                player = int(boards[1][row, column])
                canvas.circle(x, y, 0.4, fill=colours[player], outline="#00000030", width=1.5)
                canvas.circle(x, y, 0.29, outline="#00000028", width=1.5)
        if last >= 0:
            row = int(taken[:, last].argmax())
            canvas.polygon([(last + 0.36, -0.5), (last + 0.64, -0.5), (last + 0.5, -0.26)], fill="slate")
            canvas.circle(last + 0.5, row + 0.5, 0.1, fill="white")
        for row, column in {cell for _, line in lines for cell in line}:
            canvas.circle(column + 0.5, row + 0.5, 0.44, outline="white", width=5)
        names = [f"player_{k} ({colours[k]})" for k in range(2)]
        over = f"{names[lines[0][0]]} wins" if lines else "draw" if taken.all() else ""
        status = over or f"{names[to_move]} to move"
        canvas.hud(left="Connect Four", right=f"{status}   move {int(state['elapsed_steps'])}")
