"""Hex."""

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
HIGH = 3**0.5 / 2  # of a row, where a cell is 1 wide


@dataclasses.dataclass(frozen=True)
class HexConfig(Config):
    """The size of the board, and whether the second player may swap."""

    size: int = param(11, low=2, high=26, doc="rows and columns")
    swap: bool = param(True, doc="the second player may take over the first stone")


class Hex(EnvDef):
    """Two players in turn place stones on a rhombus of hexagons; the one who connects two opposite edges wins.

    Black connects top and bottom, white left and right. A cell has six neighbours: those beside it in its row and its
    column, and (row + 1, column - 1) and (row - 1, column + 1). There is no draw (Hein 1942, Nash 1948).

    **Agents.** `player_0` (black), who begins, and `player_1` (white). They move in turn: a step is one move, and the
    action of the player who is not to move is ignored.

    **Actions.** `Discrete(size * size + 1)`: the cell size * row + column, or the last one to swap. Swapping is legal
    as the second move only: the black stone is removed, and a white one is placed on the mirrored cell, with row and
    column exchanged. The action mask holds the legal moves of the player to move, and zeros for the other one.

    **Observation.** `Box(0, 1, (size, size, 4), int8)`: row, column, and plane: 0 holds the observing player's own
    stones, 1 the opponent's, 2 is 1 everywhere for white, and 3 is 1 everywhere where the next move may be a swap.

    **Reward.** 1 for the winner and -1 for the loser at the end, 0 otherwise.

    **End.** A connection, after size * size + 1 moves at the latest: there is no time limit. An illegal action of the
    player to move ends the game at once with -1 for that player and 0 for the other; the board and the turn stay as
    they were.

    **Differences from Pgx.** Pgx draws the seats: either player may be black. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal.
    """

    id = "Hex-v0"
    Config = HexConfig
    aliases = (r"[Hh]ex",)
    invalid_action = -1
    action_mask = True
    turn = "to_move"
    reference = "pgx==2.6.0 hex"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {"Pgx": "https://www.sotets.uk/pgx/hex/"}
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"19x19": {"size": 19}}
    render_fps = 4

    def agents(self, cfg: HexConfig) -> dict[str, int]:
        return {"player": 2}

    def lanes(self, cfg: HexConfig) -> int:
        return 32

    def constants(self, cfg: HexConfig) -> dict[str, int]:
        return {"SIZE": cfg.size, "CELLS": cfg.size * cfg.size, "NODES": cfg.size * cfg.size + 4}

    def observation_space(self, cfg: HexConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.size, cfg.size, 4), np.int8)

    def action_space(self, cfg: HexConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.size * cfg.size + 1)

    def observation_names(self, cfg: HexConfig, group: str) -> dict[str, int]:
        return {
            "stones of the observing player": 1,
            "stones of the opponent": 1,
            "everywhere 1: the observing player is white": 1,
            "everywhere 1: the next move may be a swap": 1,
        }

    def action_names(self, cfg: HexConfig, group: str) -> dict[str, int]:
        cells = {f"row {k // cfg.size}, column {k % cfg.size}": 1 for k in range(cfg.size * cfg.size)}
        return {**cells, "swap": 1}

    def action_cells(self, cfg: HexConfig, group: str) -> tuple[list[int], int]:
        return [*range(cfg.size**2), -1], 0

    def fields(self, cfg: HexConfig) -> dict[str, Field]:
        return {
            "stone": Field("int8", ("CELLS",), "of each cell: 0 none, 1 black, 2 white"),
            "parent": Field("int16", ("NODES",), "of cells and edges (top, bottom, left, right) in trees"),
            "to_move": Field("int32", doc="index of the player to move"),
            "moves": Field("int32", doc="made so far"),
            "last_move": Field("int32", doc="cell of the last stone, -1 before the first"),
        }

    def aspect(self, cfg: HexConfig) -> float:
        return (1.5 * cfg.size + 1.5) / (HIGH * cfg.size + 2)

    def render(self, cfg: HexConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, last, mover = cfg.size, int(state["last_move"]), int(state["to_move"])
        stones = state["stone"].reshape(size, size)
        canvas.background("paper")
        canvas.view(-1, -1, 1.5 * size + 0.5, HIGH * size + 1, y_down=True, hud=True)
        canvas.cached(_board, size)
        for row in range(size):
            for column in range(size):
                x, y = _centre(row, column)
                if stones[row, column]:
                    canvas.circle(
                        x, y, 0.36, fill=("#20242b", "#ffffff")[stones[row, column] - 1], outline="slate", width=1.5
                    )
                if row * size + column == last:
                    canvas.circle(x, y, 0.12, fill="red")
        canvas.hud(left="Hex   black: top to bottom", right=f"player_{mover} ({COLOURS[mover]}) to move")

    def presses(self, cfg: HexConfig, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float]]:
        return [] if action == cfg.size**2 else [_centre(action // cfg.size, action % cfg.size)]


def _centre(row: int, column: int) -> tuple[float, float]:
    return column + row / 2 + 0.5, HIGH * row + 0.5


def _board(canvas: Canvas, size: int) -> None:
    """The hexagons, and the edges in the colours of who connects them."""
    corners = [(0.0, -1.0), (0.5, -0.5), (0.5, 0.5), (0.0, 1.0), (-0.5, 0.5), (-0.5, -0.5)]
    scale = 1 / 3**0.5 * 2
    for k in range(size):
        for row, column, colour in ((-1, k, "#20242b"), (size, k, "#20242b"), (k, -1, "#ffffff"), (k, size, "#ffffff")):
            x, y = _centre(row, column)
            canvas.circle(x, y, 0.22, fill=colour, outline="line")
    for row in range(size):
        for column in range(size):
            x, y = _centre(row, column)
            cell = [(x + dx, y + dy * scale * 0.5) for dx, dy in corners]
            canvas.polygon(cell, fill="#e8dcc0", outline="#b8a888")
