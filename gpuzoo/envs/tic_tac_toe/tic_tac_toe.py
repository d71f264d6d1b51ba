"""Tic-tac-toe."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field
from gpuzoo.render import Canvas

#: cells 3 * column + row, by columns, rows and diagonals
LINES = (*((k, k + 1, k + 2) for k in (0, 3, 6)), *((k, k + 3, k + 6) for k in (0, 1, 2)), (0, 4, 8), (2, 4, 6))


@dataclasses.dataclass(frozen=True)
class TicTacToeConfig(Config):
    """Tic-tac-toe has no options."""


class TicTacToe(EnvDef):
    """Two players in turn mark the nine cells of a board; three in a line win.

    Three marks of one player in a row, a column or a diagonal win; a full board without them is a draw.

    **Agents.** `player_0`, who draws crosses and begins, and `player_1`. They move in turn: a step is one move, and the
    action of the player who is not to move is ignored.

    **Actions.** `Discrete(9)`: the cell, 3 * column + row. The action mask holds the free cells for the player to move,
    and zeros for the other one. When a game is won or drawn the turn passes on as after any other move.

    **Observation.** `Box(0, 1, (3, 3, 2), int8)`: column, row, and plane: 0 holds the observing player's own marks, 1
    the opponent's.

    **Reward.** 1 for the winner and -1 for the loser at the end, 0 otherwise.

    **End.** Three in a line or a full board, after 9 moves at the latest: there is no time limit. An illegal action of
    the player to move (a cell that is taken, or none) ends the game at once with -1 for that player and 0 for the
    other; the board and the turn stay as they were.
    """

    id = "TicTacToe-v0"
    Config = TicTacToeConfig
    aliases = (r"tictactoe(_v\d+)?", r"tic_tac_toe")
    invalid_action = -1
    action_mask = True
    chooses = True
    short_episodes = True
    turn = "to_move"
    reference = "pettingzoo tictactoe_v3"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/classic/tictactoe/",
    }
    render_fps = 2

    def agents(self, cfg: TicTacToeConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: TicTacToeConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (3, 3, 2), np.int8)

    def action_space(self, cfg: TicTacToeConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(9)

    def observation_names(self, cfg: TicTacToeConfig, group: str) -> dict[str, int]:
        return {"marks of the observing player": 1, "marks of the opponent": 1}

    def action_names(self, cfg: TicTacToeConfig, group: str) -> dict[str, int]:
        return {f"mark column {k // 3}, row {k % 3}": 1 for k in range(9)}

    def action_cells(self, cfg: TicTacToeConfig, group: str) -> tuple[range, int]:
        return range(9), 0

    def fields(self, cfg: TicTacToeConfig) -> dict[str, Field]:
        return {
            "marks_0": Field("uint32", doc="marks of player_0: bit 3 * column + row"),
            "marks_1": Field("uint32", doc="marks of player_1, likewise"),
            "to_move": Field("int32", doc="index of the player to move"),
        }

    def render(self, cfg: TicTacToeConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        boards = [[bool(int(state[f"marks_{k}"]) >> cell & 1) for cell in range(9)] for k in range(2)]
        lines = [(k, line) for k in range(2) for line in LINES if all(boards[k][cell] for cell in line)]
        canvas.background("paper")
        canvas.view(-0.2, -0.2, 3.2, 3.2, y_down=True, hud=True)
        canvas.cached(_board)
        for cell in range(9):
            x, y = cell // 3 + 0.5, cell % 3 + 0.5
            if boards[0][cell]:
                canvas.cached(_cross, x, y)
            if boards[1][cell]:
                canvas.circle(x, y, 0.3, outline="blue", width=10)
        for _, line in lines:
            (x0, y0), (x1, y1) = ((cell // 3 + 0.5, cell % 3 + 0.5) for cell in (line[0], line[-1]))
            canvas.line(x0, y0, x1, y1, colour="slate", width=5)
        names = ("player_0 (crosses)", "player_1 (circles)")
        full = all(a or b for a, b in zip(*boards, strict=True))
        over = f"{names[lines[0][0]]} wins" if lines else "draw" if full else ""
        canvas.hud(left="Tic-tac-toe", right=over or f"{names[int(state['to_move'])]} to move")

    def presses(
        self, cfg: TicTacToeConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float]]:
        return [(action // 3 + 0.5, action % 3 + 0.5)]


def _board(canvas: Canvas) -> None:
    """The cells."""
    for cell in range(9):
        x, y = divmod(cell, 3)
        canvas.rect(x + 0.04, y + 0.04, x + 0.96, y + 0.96, radius=0.1, fill="white", outline="line")


def _cross(canvas: Canvas, x: float, y: float) -> None:
    """The mark of the player who begins."""
    for side in (-1, 1):
        canvas.line(x - 0.27, y - 0.27 * side, x + 0.27, y + 0.27 * side, colour="red", width=10)
