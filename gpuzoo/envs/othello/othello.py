"""Othello."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

COLOURS = ("black", "white")


@dataclasses.dataclass(frozen=True)
class OthelloConfig(Config):
    """The board."""

    size: int = param(8, low=4, high=8, doc="rows and columns of the board: 4, 6 or 8")


class Othello(EnvDef):
    """Two players in turn place discs on a board and turn those that they enclose; the player with more discs wins.

    The board has eight rows and eight columns, or ``size`` of both, and four discs at first. A disc must enclose at
    least one unbroken line of the opponent's discs, in a row, a column or a diagonal, between itself and a disc of its
    own colour. All discs in such lines turn over.

    **Agents.** `player_0` (black), who begins, and `player_1` (white). They move in turn: a step is one move, and the
    action of the player who is not to move is ignored.

    **Actions.** `Discrete(size * size + 1)`: the cell ``size`` * row + column, or the last action to pass, which is
    legal only if no disc can be placed. The action mask holds the legal moves of the player to move, and zeros for
    the other one.

    **Observation.** `Box(0, 1, (size, size, 2), int8)`: row, column, and plane: 0 holds the observing player's own
    discs, 1 the opponent's.

    **Reward.** At the end 1 for the player with more discs and -1 for the other one, 0 for both if they have as many;
    0 before.

    **End.** A full board, a player without discs, or two passes in a row. There is no time limit. An illegal action
    of the player to move ends the game at once with -1 for that player and 0 for the other; the board and the turn
    stay as they were.

    **Differences from Pgx.** Pgx draws the seats: either player may be black. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal.
    """

    id = "Othello-v0"
    Config = OthelloConfig
    aliases = (r"[Oo]thello", r"[Rr]eversi")
    invalid_action = -1
    action_mask = True
    turn = "to_move"
    reference = "pgx==2.6.0 othello"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {"Pgx": "https://www.sotets.uk/pgx/othello/"}
    render_fps = 2

    def agents(self, cfg: OthelloConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: OthelloConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.size, cfg.size, 2), np.int8)

    def action_space(self, cfg: OthelloConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.size**2 + 1)

    def observation_names(self, cfg: OthelloConfig, group: str) -> dict[str, int]:
        return {"discs of the observing player": 1, "discs of the opponent": 1}

    def action_names(self, cfg: OthelloConfig, group: str) -> dict[str, int]:
        cells = {f"row {k // cfg.size}, column {k % cfg.size}": 1 for k in range(cfg.size**2)}
        return {**cells, "pass": 1}

    def check(self, cfg: OthelloConfig) -> None:
        if cfg.size % 2:
            raise ValueError(f"{self.id}: size must be 4, 6 or 8, not {cfg.size}.")

    def constants(self, cfg: OthelloConfig) -> dict[str, int]:
        return {"SIZE": cfg.size, "PASS": cfg.size**2}

    def action_cells(self, cfg: OthelloConfig, group: str) -> tuple[list[int], int]:
        return [*range(cfg.size**2), -1], 0

    def fields(self, cfg: OthelloConfig) -> dict[str, Field]:
        return {
            "discs_0": Field("uint64", doc="discs of player_0: bit size * row + column"),
            "discs_1": Field("uint64", doc="discs of player_1, likewise"),
            "legal": Field("uint64", doc="where the player to move can place a disc"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
        }

    def render(self, cfg: OthelloConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size = cfg.size
        discs = [int(state[f"discs_{k}"]) for k in range(2)]
        legal, last, mover = int(state["legal"]), int(state["last_move"]), int(state["to_move"])
        canvas.background("paper")
        canvas.view(-0.3, -0.3, size + 0.3, size + 0.3, y_down=True, hud=True)
        canvas.cached(_board, size)
        for cell in range(size**2):
            y, x = divmod(cell, size)
            owner = next((k for k in range(2) if discs[k] >> cell & 1), None)
            if owner is not None:
                canvas.cached(_disc, x + 0.5, y + 0.5, owner)
            elif legal >> cell & 1:
                canvas.circle(x + 0.5, y + 0.5, 0.09, fill="#00000045")
            if cell == last:
                canvas.circle(x + 0.5, y + 0.5, 0.08, fill="red")
        counts = [bin(x).count("1") for x in discs]
        passed = "   pass" if last == size**2 else ""
        canvas.hud(
            left=f"Othello   black {counts[0]}, white {counts[1]}{passed}",
            right=f"player_{mover} ({COLOURS[mover]}) to move",
        )

    def presses(self, cfg: OthelloConfig, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float]]:
        return [] if action == cfg.size**2 else [(action % cfg.size + 0.5, action // cfg.size + 0.5)]


def _board(canvas: Canvas, size: int) -> None:
    """The cells and the four dots."""
    canvas.rect(-0.15, -0.15, size + 0.15, size + 0.15, fill="#1d4a35", radius=0.15)
    canvas.rect(0, 0, size, size, fill="#2f7d57")
    for k in range(size + 1):
        canvas.line(k, 0, k, size, colour="#1d4a35", width=1.5)
        canvas.line(0, k, size, k, colour="#1d4a35", width=1.5)
    for x in (size // 4, size - size // 4):
        for y in (size // 4, size - size // 4):
            canvas.circle(x, y, 0.07, fill="#1d4a35")


def _disc(canvas: Canvas, x: float, y: float, owner: int) -> None:
    """A disc with a shadow."""
    canvas.circle(x + 0.03, y + 0.05, 0.4, fill="#00000040")
    canvas.circle(x, y, 0.4, fill=("#20242b", "#f5f3ee")[owner], outline=("#3b424d", "#cfcbc2")[owner], width=1.5)
