"""Tetris."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

#: the pieces I, S, Z, O, T, L, J in their four rotations, as rows of a square of 4 x 4 cells in its upper left corner
PIECES = (
    ("#/#/#/#", "####", "#/#/#/#", "####"),
    (".##/##.", "#./##/.#", ".##/##.", "#./##/.#"),
    ("##./.##", ".#/##/#.", "##./.##", ".#/##/#."),
    ("##/##", "##/##", "##/##", "##/##"),
    ("###/.#.", ".#/##/.#", ".#./###", "#./##/#."),
    ("#./#./##", "###/#..", "##/.#/.#", "..#/###"),
    (".#/.#/##", "#../###", "##/#./#.", "###/..#"),
)
COLOURS = ("teal", "green", "red", "yellow", "purple", "orange", "blue")
ROTATIONS = 4


@dataclasses.dataclass(frozen=True)
class TetrisConfig(Config):
    """The board."""

    num_rows: int = param(10, low=4, high=100, doc="rows of the board")
    num_cols: int = param(10, low=4, high=28, doc="columns of the board")


class Tetris(EnvDef):
    """Pieces of four cells fall onto a board, and full rows vanish.

    Each step turns the piece, puts it over some columns and drops it. It stops where the next row down has no room for
    it. Rows that are full vanish, and what is above them moves down. Then a new piece comes, any of the seven with the
    same chance. Each rotation turns the piece by 90 degrees and puts its upper left corner into that of a square of 4 x
    4 cells:

    .. code-block:: text

        rotation   I     S    Z    O   T    L    J
                0  #     .##  ##.  ##  ###  #.   .#
                   #     ##.  .##  ##  .#.  #.   .#
                   #                        ##   ##
                   #

                1  ####  #.   .#   ##  .#   ###  #..
                         ##   ##   ##  ##   #..  ###
                         .#   #.       .#

                2  #     .##  ##.  ##  .#.  ##   ##
                   #     ##.  .##  ##  ###  .#   #.
                   #                        .#   #.
                   #

                3  ####  #.   .#   ##  #.   ..#  ###
                         ##   ##   ##  ##   ###  ..#
                         .#   #.       #.

    **Actions.** `Discrete(4 num_cols)`: ``num_cols`` rotation + column, where the square's left column goes. The action
    mask holds the actions that keep the piece within the columns and have room for it in the uppermost rows. The cells
    in rows 0 and 1 of the square that lie above its cells in rows 1 and 2 must be free, too.

    **Observation.** `Box(0, 1, (num_rows + 4, num_cols, 1))`, int8: the first four rows hold the piece in rotation 0,
    in their left four columns. The board follows from above, 1 where it is filled.

    **Reward.** 0, 40, 100, 300 or 1200 for 0 to 4 full rows.

    **End.** The new piece has no legal action, or the action was illegal, which changes nothing. Time limit: 400 steps.

    **In Jumanji** the time limit terminates the episode, an action is a rotation and a column, and an illegal action
    also puts the piece somewhere. The observation has a number of steps, too, which is always 0.
    """

    id = "Tetris-v0"
    Config = TetrisConfig
    max_episode_steps = 400
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 Tetris-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/tetris/"}
    similar = (r"[Tt]etris.*",)
    expert = "gpuzoo.envs.jumanji.dellacherie:best_moves"
    render_fps = 4

    def constants(self, cfg: TetrisConfig) -> dict[str, int]:
        return {"ROWS": cfg.num_rows, "COLUMNS": cfg.num_cols, "CELLS": cfg.num_rows * cfg.num_cols}

    def tables(self, cfg: TetrisConfig) -> dict[str, NDArray[Any]]:
        """The rows of each piece in each rotation: a bit for each column, 4 for each row."""
        shapes = np.zeros((len(PIECES), ROTATIONS), np.int32)
        for kind, rotations in enumerate(PIECES):
            for rotation, piece in enumerate(rotations):
                for row, line in enumerate(piece.split("/")):
                    for column, cell in enumerate(line):
                        shapes[kind, rotation] |= (cell == "#") << (4 * row + column)
        return {"shape": shapes.reshape(-1)}

    def observation_space(self, cfg: TetrisConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.num_rows + 4, cfg.num_cols, 1), np.int8)

    def action_space(self, cfg: TetrisConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(ROTATIONS * cfg.num_cols)

    def observation_names(self, cfg: TetrisConfig, group: str) -> dict[str, int]:
        return {"filled": 1}

    def action_names(self, cfg: TetrisConfig, group: str) -> dict[str, int]:
        return {f"column {column}, rotation {k}": 1 for k in range(ROTATIONS) for column in range(cfg.num_cols)}

    def fields(self, cfg: TetrisConfig) -> dict[str, Field]:
        return {
            "filled": Field("uint32", ("ROWS",), "filled cells of each row, a bit for each column"),
            "colour": Field(
                "uint8", ("CELLS",), "1 more than the piece that filled each cell, at num_cols * row + column"
            ),
            "piece": Field("int32", doc="the piece to drop: 0 to 6"),
            "legal": Field("uint32", (ROTATIONS,), "legal columns of each rotation, a bit for each"),
            "score": Field("float32", doc="sum of the rewards"),
        }

    def aspect(self, cfg: TetrisConfig) -> float:
        return (cfg.num_cols + 0.4) / (cfg.num_rows + 4.4)

    def render(self, cfg: TetrisConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        rows, columns = cfg.num_rows, cfg.num_cols
        canvas.background("paper")
        canvas.view(-0.2, -4.2, columns + 0.2, rows + 0.2, y_down=True, hud=True)
        canvas.rect(-0.08, -0.08, columns + 0.08, rows + 0.08, fill="ink", radius=0.08)
        filled = np.asarray(state["filled"])
        for cell, colour in enumerate(np.asarray(state["colour"]).tolist()):
            row, column = divmod(cell, columns)
            if int(filled[row]) >> column & 1:
                canvas.cached(_block, column, row, COLOURS[max(colour, 1) - 1])
            else:
                canvas.cached(_block, column, row, "#2b3648")
        piece = int(state["piece"])
        lines = PIECES[piece][0].split("/")
        left = (columns - len(lines[0])) // 2
        for row, line in enumerate(lines):
            for column, mark in enumerate(line):
                if mark == "#":
                    canvas.cached(_block, left + column, row - 4, COLOURS[piece])
        canvas.hud(left=f"score {int(state['score'])}", right=f"piece {int(state['elapsed_steps']) + 1}")


def _block(canvas: Canvas, x: int, y: int, fill: str) -> None:
    """A cell."""
    canvas.rect(x + 0.04, y + 0.04, x + 0.96, y + 0.96, fill=fill, radius=0.1)
