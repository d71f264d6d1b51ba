"""Sudoku."""

from __future__ import annotations

import dataclasses
import functools
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.factored import Factored, FactoredConfig
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.render import Canvas

SIDE = 9
JUMANJI = (
    "https://raw.githubusercontent.com/instadeepai/jumanji/590005b0fb305b1a98a4828bfb6b2ea28b47dd5b/"
    "jumanji/environments/logic/sudoku/data"
)
DUMMY = (
    "000801000", "000000043", "500000000", "000070800", "000000100", "020030000", "600000075", "003400000", "000200600",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class SudokuConfig(FactoredConfig, InstanceConfig):
    """The puzzles."""

    database: Literal["mixed", "very-easy", "dummy", "jumanji-mixed", "jumanji-very-easy"] = param(
        "mixed", doc="gpuzoo's own puzzles, a single one, or Jumanji's, which are downloaded"
    )


class Sudoku(Factored, OfInstances):
    """Sudoku: fill the board so that each row, each column and each of the nine boxes holds the digits 1 to 9 once.

    Each step writes a digit into an empty cell. It stays there, so a wrong one cannot be taken back.

    **Instances.** Each episode takes one puzzle at random, or always the one that ``instance`` names, which may differ
    between envs. There are 1000 puzzles for ``database="mixed"`` and for ``"very-easy"``, with one solution each. They
    have 25 to 77 digits at the beginning, 39 on average, or 46 to 80. "dummy" is one puzzle with 17. "jumanji-mixed"
    and "jumanji-very-easy" are Jumanji's 10,000 and 1000 puzzles, with as many digits. They are fetched when they are
    first used. ``instances`` is a dataset of others with `board`, (instances, 9, 9): the digits, 0 for an empty cell.

    **Actions.** `Discrete(729)`: 81 row + 9 column + digit - 1. The action mask holds the digits for empty cells that
    neither the row nor the column nor the box has yet. With ``action_form="parts"``, `MultiDiscrete([9, 9, 9])`: the
    row, the column and the digit - 1. The mask then holds the numbers that are a part of any legal action.

    **Observation.** `Box(-1, 8, (9, 9))`, int8: one less than the digit, -1 for an empty cell.

    **Reward.** 1 for solving the puzzle.

    **End.** There is no legal action left, or the action was illegal, which changes nothing.

    **In Jumanji** an action is given in parts and the mask holds whole actions. An illegal action is written down.
    """

    id = "Sudoku-v0"
    Config = SudokuConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "Rows are no whole sectors; masks are long, so few envs observe at a time.",
    }
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 Sudoku-v0"
    assets: ClassVar[Mapping[str, Asset]] = {
        "puzzles": Asset(
            Path(__file__).with_name("sudoku.npz"),
            size=69_787,
            sha256="ff21591d8f5bab1ea50678d6d266c5034d7d2767fe56c9b3ba8d56db30a633d6",
            licence="Apache-2.0, the authors of gpuzoo",
        ),
        "jumanji-mixed": Asset(
            f"{JUMANJI}/10000_mixed_puzzles.npy",
            size=810_128,
            sha256="15f286d3c9ecaf45f1865b9eed6f8ace7d8fede6677f24bf23f818b8455c51aa",
            licence="Apache-2.0, InstaDeep Ltd",
        ),
        "jumanji-very-easy": Asset(
            f"{JUMANJI}/1000_very_easy_puzzles.npy",
            size=81_128,
            sha256="64d9607d056cf18d543d79db3a8bf24606280251e5b16b8916f3915ba619c269",
            licence="Apache-2.0, InstaDeep Ltd",
        ),
    }
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/sudoku/"}
    similar = (r"[Ss]udoku.*",)
    render_fps = 4

    @classmethod
    def variants(cls) -> dict[str, dict[str, Any]]:
        return {
            "Sudoku-very-easy-v0": {"database": "very-easy", "reference": "jumanji==1.1.2 Sudoku-very-easy-v0"},
        }

    def parts(self, cfg: SudokuConfig) -> dict[str, Part]:
        return {"board": Part((SIDE, SIDE), "int8", 0, SIDE)}

    def _given(self, cfg: SudokuConfig) -> dict[str, NDArray[Any]]:
        return super()._given(cfg) if cfg.instances else {"board": puzzles(cfg.database)}

    def constants(self, cfg: SudokuConfig) -> dict[str, int]:
        return {"INSTANCES": len(self._given(cfg)["board"])}

    def tables(self, cfg: SudokuConfig) -> dict[str, NDArray[Any]]:
        return {"given_board": self._given(cfg)["board"].reshape(-1)}

    def check(self, cfg: SudokuConfig) -> None:
        self.check_number(cfg)

    def observation_space(self, cfg: SudokuConfig, group: str) -> spaces.Box:
        return spaces.Box(-1, SIDE - 1, (SIDE, SIDE), np.int8)

    def factors(self, cfg: SudokuConfig) -> list[int]:
        return [SIDE] * 3

    def observation_names(self, cfg: SudokuConfig, group: str) -> dict[str, int]:
        return {"digit in a cell of the row": SIDE}

    def action_names(self, cfg: SudokuConfig, group: str) -> dict[str, int]:
        if cfg.action_form == "parts":
            return dict.fromkeys(("row", "column", "digit"), 1)
        return {f"digit in row {k + 1}": SIDE**2 for k in range(SIDE)}

    def fields(self, cfg: SudokuConfig) -> dict[str, Field]:
        return {
            "board": Field(
                "int8", (SIDE * SIDE,), "one less than the digit of each cell, -1 if empty, at 9 * row + column"
            ),
            "used": Field("uint32", (3 * SIDE,), "digits in the rows, the columns and the boxes, a bit for each"),
        }

    def infos(self, cfg: SudokuConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"solved": (state["used"] == 2**SIDE - 1).all(1)}

    def render(self, cfg: SudokuConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        board = np.asarray(state["board"]).reshape(SIDE, SIDE)
        canvas.background("paper")
        canvas.view(-0.15, -0.15, SIDE + 0.15, SIDE + 0.15, y_down=True, hud=True)
        canvas.cached(_grid)
        for row in range(SIDE):
            for column in range(SIDE):
                digit = int(board[row, column]) + 1
                if digit:
                    canvas.cached(_digit, column, row, digit)
        canvas.hud(left=f"{int((board >= 0).sum())} of 81 cells", right=f"step {int(state['elapsed_steps'])}")

    def presses(
        self, cfg: SudokuConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float] | str]:
        row, column, digit = action // SIDE**2, action // SIDE % SIDE, action % SIDE
        return [(column + 0.5, row + 0.5), str(digit + 1)]


def _grid(canvas: Canvas) -> None:
    """The empty board."""
    for row in range(SIDE):
        for column in range(SIDE):
            fill = "water" if (row // 3 + column // 3) % 2 else "white"
            canvas.rect(column, row, column + 1, row + 1, fill=fill, outline="line", width=0.8)
    for k in range(0, SIDE + 1, 3):
        canvas.line(k, 0, k, SIDE, colour="ink", width=2.2)
        canvas.line(0, k, SIDE, k, colour="ink", width=2.2)


def _digit(canvas: Canvas, x: int, y: int, digit: int) -> None:
    """A digit in a cell."""
    canvas.text(x + 0.5, y + 0.5, str(digit), bold=True, height=0.55)


@functools.cache
def puzzles(database: str) -> NDArray[np.int8]:
    """The puzzles of this name, (puzzles, 9, 9), 0 for an empty cell."""
    if database == "dummy":
        return np.array([[[int(digit) for digit in row] for row in DUMMY]], np.int8)
    if database in Sudoku.assets:
        return np.ascontiguousarray(np.load(io.BytesIO(Sudoku.assets[database].read())), np.int8)
    with np.load(io.BytesIO(Sudoku.assets["puzzles"].read())) as file:
        return np.ascontiguousarray(file[database], np.int8)
