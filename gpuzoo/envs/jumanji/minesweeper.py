"""Minesweeper."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part, members
from gpuzoo.render import Canvas

#: of the numbers 1 to 8
COLOURS = ("blue", "green", "red", "purple", "brown", "teal", "ink", "grey")


@dataclasses.dataclass(frozen=True)
class MinesweeperConfig(InstanceConfig):
    """The board and the rewards."""

    num_rows: int = param(10, low=2, high=100, doc="rows of the board")
    num_cols: int = param(10, low=2, high=100, doc="columns of the board")
    num_mines: int = param(10, low=0, doc="mines on the board")
    revealed_empty_square_reward: float = param(1.0, doc="reward for a cell without mine")
    revealed_mine_reward: float = param(0.0, doc="reward for a mine")
    invalid_action_reward: float = param(0.0, doc="reward for a cell that was uncovered before")


class Minesweeper(OfInstances):
    """Uncover all cells without a mine; each of them says how many mines are beside it.

    The mines lie in any cells, all sets of cells with the same chance. Each step uncovers one cell; cells beside it
    stay covered even if there is no mine.

    **Instances.** ``instances`` is a dataset with `mines`, (instances, num_rows, num_cols) of 0 and 1, with
    ``num_mines`` in each. Each episode takes one of them at random, or always the one that ``instance`` names, which
    may differ between envs.

    **Actions.** `Discrete(num_rows num_cols)`: the cell to uncover, ``num_cols`` row + column. The action mask holds
    the covered cells.

    **Observation.** `Box(-1, 8, (num_rows, num_cols))`, int8: -1 for a covered cell, otherwise how many of the eight
    cells around it have a mine.

    **Reward.** 1 for a cell without a mine, 0 for a mine and for an illegal action; the parameters can change that.

    **End.** A mine, an illegal action, or all cells without a mine are uncovered.

    **In Jumanji** an action is a row and a column, and the numbers of mines and of steps are observed.
    """

    id = "Minesweeper-v0"
    Config = MinesweeperConfig
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 Minesweeper-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/minesweeper/"}
    similar = (r"[Mm]inesweeper.*",)
    render_fps = 4

    def parts(self, cfg: MinesweeperConfig) -> dict[str, Part]:
        return {"mines": Part((cfg.num_rows, cfg.num_cols), "uint8", 0, 1)}

    def fault(self, cfg: MinesweeperConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        count = int(instance["mines"].sum())
        return "" if count == cfg.num_mines else f"it has {count} mines, and num_mines is {cfg.num_mines}"

    def check(self, cfg: MinesweeperConfig) -> None:
        super().check(cfg)
        if cfg.num_mines >= cfg.num_rows * cfg.num_cols:
            raise ValueError(f"{self.id}: num_mines must be less than the number of cells, not {cfg.num_mines}.")

    def constants(self, cfg: MinesweeperConfig) -> dict[str, int]:
        cells = cfg.num_rows * cfg.num_cols
        own = {"ROWS": cfg.num_rows, "COLUMNS": cfg.num_cols, "CELLS": cells, "WORDS": -(-cells // 64)}
        return {**super().constants(cfg), **own}

    def observation_space(self, cfg: MinesweeperConfig, group: str) -> spaces.Box:
        return spaces.Box(-1, 8, (cfg.num_rows, cfg.num_cols), np.int8)

    def action_space(self, cfg: MinesweeperConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_rows * cfg.num_cols)

    def observation_names(self, cfg: MinesweeperConfig, group: str) -> dict[str, int]:
        return {"mines beside a cell of the row": cfg.num_cols}

    def action_cells(self, cfg: MinesweeperConfig, group: str) -> tuple[range, int]:
        return range(cfg.num_rows * cfg.num_cols), 0

    def action_names(self, cfg: MinesweeperConfig, group: str) -> dict[str, int]:
        return {"cell": cfg.num_rows * cfg.num_cols}

    def fields(self, cfg: MinesweeperConfig) -> dict[str, Field]:
        return {
            "board": Field("int8", ("CELLS",), "-1 for a covered cell, otherwise how many mines are beside it"),
            "covered": Field("uint64", ("WORDS",), "covered cells, a bit for each"),
            "mines": Field("uint64", ("WORDS",), "cells with a mine, a bit for each"),
        }

    def infos(self, cfg: MinesweeperConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"solved": (state["covered"] == state["mines"]).all(1)}

    def aspect(self, cfg: MinesweeperConfig) -> float:
        return cfg.num_cols / cfg.num_rows

    def render(self, cfg: MinesweeperConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        rows, columns = cfg.num_rows, cfg.num_cols
        board, mines = np.asarray(state["board"]), members(np.asarray(state["mines"]), rows * columns)
        canvas.background("paper")
        canvas.view(-0.15, -0.15, columns + 0.15, rows + 0.15, y_down=True, hud=True)
        canvas.rect(-0.06, -0.06, columns + 0.06, rows + 0.06, fill="grey")
        over = bool(((board >= 0) & mines).any())
        for cell, number in enumerate(board.tolist()):
            mine = bool(mines[cell]) and (over or number >= 0)
            canvas.cached(_cell, cell % columns, cell // columns, int(number), mine)
        left = f"{int((board >= 0).sum())} of {rows * columns - cfg.num_mines} cells"
        canvas.hud(left=left, right=f"{cfg.num_mines} mines")

    def presses(
        self, cfg: MinesweeperConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float]]:
        return [(action % cfg.num_cols + 0.5, action // cfg.num_cols + 0.5)]


def _cell(canvas: Canvas, x: int, y: int, number: int, mine: bool) -> None:
    """A cell."""
    fill = "water" if number < 0 else "rose" if mine else "white"
    canvas.rect(x + 0.03, y + 0.03, x + 0.97, y + 0.97, fill=fill, radius=0.08)
    if mine:
        canvas.circle(x + 0.5, y + 0.5, 0.27, fill="ink")
    elif number > 0:
        canvas.text(x + 0.5, y + 0.5, str(number), colour=COLOURS[number - 1], bold=True, height=0.5)
