"""FlatPack."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.factored import Factored, FactoredConfig
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.render import CYCLE, Canvas, mix

SIDE, ROTATIONS = 3, 4
#: Jumanji's toys: the blocks as they fit, and turned
TOYS = {
    "toy": ("###/##./.#.", ".##/###/..#", "#../##./###", "##./###/.##"),
    "turned-toy": (".#./.##/###", "#../###/##.", "..#/.##/###", "##./###/.##"),
}


@dataclasses.dataclass(frozen=True)
class FlatPackConfig(FactoredConfig, InstanceConfig):
    """The grid, the blocks and the reward."""

    num_row_blocks: int = param(5, low=2, high=15, doc="blocks above each other in the solution")
    num_col_blocks: int = param(5, low=2, high=15, doc="blocks beside each other in the solution")
    generator: Literal["random", "toy", "turned-toy"] = param(
        "random", doc="drawn blocks, or always the four of Jumanji's toy, as they fit or turned"
    )
    reward: Literal["cells", "blocks"] = param("cells", doc="share of the cells that are filled, or of the blocks")
    end_when_stuck: bool = param(False, doc="whether the episode ends when no block has room")


class FlatPack(Factored, OfInstances):
    """Put blocks into a grid so that they fill it.

    The grid has 2 ``num_row_blocks`` + 1 rows and 2 ``num_col_blocks`` + 1 columns. It is divided into as many blocks:
    the block in row i and column j of blocks has the cell in row 2 i + 1 and column 2 j + 1, and all around it that
    belong to no other. A cell between two blocks belongs to either of them with the same chance. In a row between
    blocks each cell follows the cell above or below it. The blocks are shuffled, and each is turned by 0 to 3 right
    angles and moved into the upper left corner of a square of 3 x 3 cells. Each step turns a block and puts it into the
    grid, where it stays. A third of the drawn grids of 2 x 2 blocks and a tenth of those of 3 x 3 can't be filled: a
    block at an edge does not always fit there once it has been moved into the corner of its square. Of 250 larger grids
    all could be filled.

    **Instances.** ``instances`` is a dataset with `blocks`, (instances, blocks, 3, 3): 0, or the number of the block,
    from 1 on, in the cells that it fills. Each episode takes one of them at random, or always the one that ``instance``
    names, which may differ between envs. ``generator="toy"`` and ``"turned-toy"`` are instances of 2 x 2 blocks.

    **Actions.** With R = 2 ``num_row_blocks`` - 1, C = 2 ``num_col_blocks`` - 1 and B blocks, `Discrete(4 B R C)`: ((4
    block + turns) R + row) C + column, where the square's upper left cell goes. A turn is one by 90 degrees,
    clockwise. The action mask holds what puts a block that is left onto free cells. With ``action_form="parts"``,
    `MultiDiscrete([B, 4, R, C])`; the mask then holds the numbers that are a part of any legal action. An illegal
    action changes nothing, but takes a step.

    **Observation.** `Box(0, B, ((R + 2) (C + 2) + 9 B,))`, uint8: the number of the block in each cell of the grid, 0
    for none; the squares of all blocks, as in a dataset. Those that have been put into the grid stay there.

    **Reward.** With ``reward="cells"``, the cells of the block, as a part of those of the grid; with "blocks", 1 / B.

    **End.** After as many steps as there are blocks. With ``end_when_stuck``, also if there is no legal action left.

    **In Jumanji** an action is given in parts and the mask holds whole actions.
    """

    id = "FlatPack-v0"
    Config = FlatPackConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "legal_actions": "As in Jumanji, an episode goes on without them, unless end_when_stuck says otherwise.",
        "rows_are_stored_in_few_sectors": "Lanes write single bytes, of rows and masks that begin inside of sectors.",
    }
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 FlatPack-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/flat_pack/"}
    similar = (r"[Ff]lat[-_]?[Pp]ack.*",)
    expert = "gpuzoo.envs.jumanji.exact_cover:best_moves"
    render_fps = 4

    def lanes(self, cfg: FlatPackConfig) -> int:
        return 32

    def parts(self, cfg: FlatPackConfig) -> dict[str, Part]:
        blocks = cfg.num_row_blocks * cfg.num_col_blocks
        return {"blocks": Part((blocks, SIDE, SIDE), "uint8", 0, blocks)}

    def fault(self, cfg: FlatPackConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        numbers = [sorted({*block.ravel().tolist()} - {0}) for block in instance["blocks"]]
        if sorted(numbers) != [[k + 1] for k in range(len(numbers))]:
            return f"each of the numbers 1 to {len(numbers)} must belong to one block"
        return ""

    def check(self, cfg: FlatPackConfig) -> None:
        super().check(cfg)
        if cfg.generator != "random" and ((cfg.num_row_blocks, cfg.num_col_blocks) != (2, 2) or cfg.instances):
            raise ValueError(f"{self.id}: the toys need num_row_blocks=2 and num_col_blocks=2, and take no instances.")

    def constants(self, cfg: FlatPackConfig) -> dict[str, int]:
        rows, columns = 2 * cfg.num_row_blocks + 1, 2 * cfg.num_col_blocks + 1
        own = {
            "ROWS": rows, "COLUMNS": columns, "CELLS": rows * columns, "LEFTS": columns - 2,
            "PLACES": (rows - 2) * (columns - 2), "COLUMN_BLOCKS": cfg.num_col_blocks,
            "BLOCKS": cfg.num_row_blocks * cfg.num_col_blocks,
            "SHAPES": ROTATIONS * cfg.num_row_blocks * cfg.num_col_blocks,
        }  # fmt: skip
        return {**super().constants(cfg), **own, **({"INSTANCES": 1} if cfg.generator != "random" else {})}

    def tables(self, cfg: FlatPackConfig) -> dict[str, NDArray[Any]]:
        if cfg.generator == "random":
            return super().tables(cfg)
        cells = [[mark == "#" for mark in block.replace("/", "")] for block in TOYS[cfg.generator]]
        numbers = np.array(cells, np.uint8) * np.arange(1, 5, dtype=np.uint8)[:, None]
        return {"given_blocks": numbers.reshape(-1)}

    def observation_space(self, cfg: FlatPackConfig, group: str) -> spaces.Box:
        own = self.constants(cfg)
        return spaces.Box(0, own["BLOCKS"], (own["CELLS"] + SIDE * SIDE * own["BLOCKS"],), np.uint8)

    def factors(self, cfg: FlatPackConfig) -> list[int]:
        own = self.constants(cfg)
        return [own["BLOCKS"], ROTATIONS, own["ROWS"] - 2, own["COLUMNS"] - 2]

    def observation_names(self, cfg: FlatPackConfig, group: str) -> dict[str, int]:
        own = self.constants(cfg)
        return {"block in each cell": own["CELLS"], "cells of each block": SIDE * SIDE * own["BLOCKS"]}

    def action_names(self, cfg: FlatPackConfig, group: str) -> dict[str, int]:
        if cfg.action_form == "parts":
            return dict.fromkeys(("block", "turns", "row", "column"), 1)
        own = self.constants(cfg)
        return {f"place of block {k + 1} and how it is turned": ROTATIONS * own["PLACES"] for k in range(own["BLOCKS"])}

    def fields(self, cfg: FlatPackConfig) -> dict[str, Field]:
        return {
            "filled": Field("uint32", ("ROWS",), "filled cells of each row, a bit for each column"),
            "colour": Field("uint8", ("CELLS",), "number of the block in each cell, at columns * row + column"),
            "number": Field("uint8", ("BLOCKS",), "number of each block"),
            "shape": Field("int16", ("BLOCKS", ROTATIONS), "cells of each block, turned 0 to 3 times, a bit for each"),
            "placed": Field("bool", ("BLOCKS",), "whether each block is in the grid"),
            "options": Field("int16", ("SHAPES",), "places that each turned block can take"),
            "window": Field("int16", ("PLACES",), "filled cells of the square at each place", scratch=True),
        }

    def infos(self, cfg: FlatPackConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"solved": (state["placed"] != 0).all(1)}

    def aspect(self, cfg: FlatPackConfig) -> float:
        own = self.constants(cfg)
        pitch = own["ROWS"] / cfg.num_row_blocks
        return (own["COLUMNS"] + pitch * cfg.num_col_blocks + 1.2) / (own["ROWS"] + 0.6)

    def render(self, cfg: FlatPackConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        own = self.constants(cfg)
        rows, columns = own["ROWS"], own["COLUMNS"]
        pitch = rows / cfg.num_row_blocks
        canvas.background("paper")
        canvas.view(-0.3, -0.3, columns + pitch * cfg.num_col_blocks + 0.9, rows + 0.3, y_down=True, hud=True)
        canvas.cached(_grid, rows, columns)
        _cells(canvas, np.asarray(state["colour"]).reshape(rows, columns), 0.0, 0.0, 1.0)
        placed, numbers, shapes = (np.asarray(state[name]) for name in ("placed", "number", "shape"))
        side = 0.82 * pitch / SIDE
        for block in np.flatnonzero(placed == 0).tolist():
            row, column = divmod(block, cfg.num_col_blocks)
            cells = (int(shapes[block, 0]) >> np.arange(SIDE * SIDE) & 1) * int(numbers[block])
            x, y = columns + 0.6 + pitch * (column + 0.09), pitch * (row + 0.09)
            _cells(canvas, cells.reshape(SIDE, SIDE), x, y, side)
        filled = int((np.asarray(state["colour"]) > 0).sum())
        canvas.hud(
            left=f"{int(placed.sum())} of {own['BLOCKS']} blocks, {filled} of {own['CELLS']} cells",
            right=f"step {int(state['elapsed_steps'])}",
        )


def _grid(canvas: Canvas, rows: int, columns: int) -> None:
    """The empty grid."""
    canvas.rect(-0.1, -0.1, columns + 0.1, rows + 0.1, fill="line", radius=0.12)
    for row in range(rows):
        for column in range(columns):
            canvas.rect(column + 0.03, row + 0.03, column + 0.97, row + 0.97, fill="white")


def _cells(canvas: Canvas, numbers: NDArray[Any], x: float, y: float, side: float) -> None:
    """Blocks, each in its colour and with a line around it; ``numbers`` has the block of each cell, 0 for none."""
    around = np.pad(numbers, 1)
    for row, column in np.argwhere(numbers > 0).tolist():
        number = int(numbers[row, column])
        left, top = x + side * column, y + side * row
        colour = mix(CYCLE[(number - 1) % len(CYCLE)], "white", 0.28 * ((number - 1) // len(CYCLE) % 3))
        canvas.rect(left - 0.01, top - 0.01, left + side + 0.01, top + side + 0.01, fill=colour)
    for row, column in np.argwhere(numbers > 0).tolist():
        number = numbers[row, column]
        left, top = x + side * column, y + side * row
        right, bottom = left + side, top + side
        for other, line in (
            (around[row, column + 1], (left, top, right, top)),
            (around[row + 2, column + 1], (left, bottom, right, bottom)),
            (around[row + 1, column], (left, top, left, bottom)),
            (around[row + 1, column + 2], (right, top, right, bottom)),
        ):
            if other != number:
                canvas.line(*line, colour="ink", width=1.4)
