"""Sokoban."""

from __future__ import annotations

import dataclasses
import functools
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset, kept
from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.render import Canvas

SIDE, BOXES = 10, 4
EMPTY, WALL, TARGET, WORKER, BOX = range(5)
#: walls or targets, and worker or boxes, of each mark in a text
MARKS = {
    "#": (WALL, EMPTY), ".": (TARGET, EMPTY), "@": (EMPTY, WORKER), "$": (EMPTY, BOX), " ": (EMPTY, EMPTY),
    "+": (TARGET, WORKER), "*": (TARGET, BOX),
}  # fmt: skip
TOYS = """; 0
##########
# @      #
# $    . #
#  $# .  #
#  .#$  #\x20
# . # $ #\x20
#        #
##########
##########
##########
; 1
##########
#        #
#$ #   . #
# # $ # .#
#  .# $  #
# @ # . $#
#        #
##########
##########
##########
"""
SIMPLE = """; 0
##########
#       ##
# ....   #
# $$$$  ##
# @    # #
#   #   #\x20
#        #
##########
##########
##########
"""
BOXOBAN = "https://raw.githubusercontent.com/google-deepmind/boxoban-levels/d5ca5614a803b604740ed9095ded127e8e3d5255"


def _boxoban(name: str, sha256: str, size: int = 116_890) -> Asset:
    return Asset(f"{BOXOBAN}/{name}.txt", size=size, sha256=sha256, licence="Apache-2.0, DeepMind (Boxoban)")


#: files of each of Boxoban's sets: all of the test and the hard levels, the first thousand of the others
SETS: Mapping[str, Mapping[str, Asset]] = {
    "boxoban-unfiltered-train": {
        "unfiltered-train-000": _boxoban(
            "unfiltered/train/000", "674dda499261deface252c90077ae67181b5c7704c235baf0dd0bd2d16bf072e"
        )
    },
    "boxoban-unfiltered-valid": {
        "unfiltered-valid-000": _boxoban(
            "unfiltered/valid/000", "52cd811af721d69eef71a4e3cfc40cd4f635269a8e26d42ec017aa43af02b8a9"
        )
    },
    "boxoban-unfiltered-test": {
        "unfiltered-test-000": _boxoban(
            "unfiltered/test/000", "272928a4e7c185fdf84daa523b298750b6ff08703cb0c20d3be7eff93acc5256"
        )
    },
    "boxoban-medium-train": {
        "medium-train-000": _boxoban(
            "medium/train/000", "b44e6dac95d03c0f29158252eafe7b1d97a3f3b447743a23617efa66e735167b"
        )
    },
    "boxoban-medium-valid": {
        "medium-valid-000": _boxoban(
            "medium/valid/000", "b30ccde2aeb8192a0b49e53a016fe744ae4a67eb01560b1d0bec251695e03e5b"
        )
    },
    "boxoban-hard": {
        "hard-000": _boxoban("hard/000", "c320e8b1f5a26be7a85dff18147a7decae3c5e765c38ff56e30ebf8551d331f4"),
        "hard-001": _boxoban("hard/001", "713f1b629f44e5203eb129948778439f4ab417680a4c65d58bb7c6530d4988fb"),
        "hard-002": _boxoban("hard/002", "4e151e4e45fa3d1b2f2863d170b66fa97e103436cef7b98fd9cc23d1ddeec8bc"),
        "hard-003": _boxoban("hard/003", "ed472bfcdcc06bb1c9a8ceeb2a6611842b182c019c04e95a4851fcdf70170e25", 38_734),
    },
}


@dataclasses.dataclass(frozen=True)
class SokobanConfig(InstanceConfig):
    """The levels and the reward."""

    levels: Literal[
        "generated", "toy", "simple", "boxoban-unfiltered-train", "boxoban-unfiltered-valid", "boxoban-unfiltered-test",
        "boxoban-medium-train", "boxoban-medium-valid", "boxoban-hard",
    ] = param("generated", doc="gpuzoo's own, Jumanji's, or Boxoban's, which are downloaded")  # fmt: skip
    reward: Literal["dense", "sparse"] = param("dense", doc="whether each box and step counts, or the solution alone")
    num_rows: int = param(SIDE, low=3, high=100, doc="rows of a level")
    num_cols: int = param(SIDE, low=3, high=100, doc="columns of a level")
    num_boxes: int = param(BOXES, low=1, high=100, doc="boxes and targets of a level")


class Sokoban(OfInstances):
    """A worker pushes boxes onto targets.

    The worker goes into an open cell beside it. It pushes a box that is there, if the cell behind the box is open and
    has no box. Otherwise nothing changes.

    **Instances.** Each episode takes one level at random, or always the one that ``instance`` names, which may differ
    between envs. ``levels="generated"`` are 1000 levels of 10 x 10 cells with four boxes. They were drawn by random
    walks that pull the boxes away from the targets, so all can be solved. "toy" and "simple" are Jumanji's two levels
    and its single one. The others are Boxoban's, which are fetched when they are first used: all levels of
    "boxoban-unfiltered-test" (1000) and "boxoban-hard" (3332), and the first 1000 of the other sets. For more of them
    give a folder of Boxoban's files, or one of its files, as ``instances``: levels as text, with ``#`` for walls,
    ``.`` for targets, ``@`` for the worker, ``$`` for boxes, ``+`` and ``*`` for both on a target. ``instances`` may
    also be a dataset with `fixed` and `variable`, (instances, num_rows, num_cols) each, as they are observed.

    **Actions.** `Discrete(4)`: 0 up, 1 right, 2 down, 3 left.

    **Observation.** `Box(0, 4, (num_rows, num_cols, 2))`, uint8: row, column, channel. The first channel is 3 for the
    worker and 4 for a box, the second one 1 for a wall and 2 for a target.

    **Reward.** With ``reward="dense"``, 1 for a box that comes onto a target, -1 for one that leaves it, 10 for the
    solution, and -0.1 per step. With "sparse", 10 for the solution.

    **End.** All boxes are on targets. Time limit: 120 steps.

    **In Jumanji** the time limit terminates the episode, the number of steps is observed, and levels come from all
    files of Boxoban's unfiltered training set.
    """

    id = "Sokoban-v0"
    Config = SokobanConfig
    max_episode_steps = 120
    reference = "jumanji==1.1.2 Sokoban-v0"
    assets: ClassVar[Mapping[str, Asset]] = {
        "levels": Asset(
            Path(__file__).with_name("sokoban.npz"),
            size=19_447,
            sha256="c5254d032eace0ea38ee2e391282dcbadd69d9752620a7e698dfee5aa3a06c69",
            licence="Apache-2.0, the authors of gpuzoo",
        ),
        **{name: asset for files in SETS.values() for name, asset in files.items()},
    }
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/sokoban/",
        "Boxoban": "https://github.com/google-deepmind/boxoban-levels",
        "Racanière et al. 2017": "https://arxiv.org/abs/1707.06203",
        "Guez et al. 2019": "https://arxiv.org/abs/1901.03559",
    }
    similar = (r"[Ss]okoban.*", r"[Bb]oxoban.*")
    render_fps = 10

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        given = options.get("instances")
        if given and isinstance(given, (str, Path)) and (Path(given).is_dir() or Path(given).suffix == ".txt"):
            return {**options, "instances": str(kept(levels_of(Path(given))))}
        return super().parameters_of(options)

    def parts(self, cfg: SokobanConfig) -> dict[str, Part]:
        shape = (cfg.num_rows, cfg.num_cols)
        return {"fixed": Part(shape, "uint8", EMPTY, TARGET), "variable": Part(shape, "uint8", EMPTY, BOX)}

    def fault(self, cfg: SokobanConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        fixed, variable = instance["fixed"], instance["variable"]
        if (variable == WORKER).sum() != 1 or ((variable > EMPTY) & ((variable < WORKER) | (fixed == WALL))).any():
            return "there must be one worker (3) and boxes (4), none of them in a wall"
        if (variable == BOX).sum() != cfg.num_boxes or (fixed == TARGET).sum() != cfg.num_boxes:
            return f"there must be {cfg.num_boxes} boxes and targets, as num_boxes says"
        return ""

    def _given(self, cfg: SokobanConfig) -> dict[str, NDArray[Any]]:
        return super()._given(cfg) if cfg.instances else levels(cfg.levels)

    def constants(self, cfg: SokobanConfig) -> dict[str, int]:
        sizes = {"ROWS": cfg.num_rows, "COLUMNS": cfg.num_cols, "CELLS": cfg.num_rows * cfg.num_cols}
        return {**sizes, "INSTANCES": len(self._given(cfg)["fixed"])}

    def tables(self, cfg: SokobanConfig) -> dict[str, NDArray[Any]]:
        return {f"given_{name}": array.reshape(-1) for name, array in self._given(cfg).items()}

    def check(self, cfg: SokobanConfig) -> None:
        if not cfg.instances and (cfg.num_rows, cfg.num_cols, cfg.num_boxes) != (SIDE, SIDE, BOXES):
            raise ValueError(f"{self.id}: other sizes than 10 x 10 cells and 4 boxes need instances.")
        self.check_number(cfg)

    def observation_space(self, cfg: SokobanConfig, group: str) -> spaces.Box:
        return spaces.Box(0, BOX, (cfg.num_rows, cfg.num_cols, 2), np.uint8)

    def action_space(self, cfg: SokobanConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: SokobanConfig, group: str) -> dict[str, int]:
        return {"3 for the worker, 4 for a box": 1, "1 for a wall, 2 for a target": 1}

    def action_names(self, cfg: SokobanConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: SokobanConfig) -> dict[str, Field]:
        return {
            "fixed": Field("uint8", ("CELLS",), "1 for a wall, 2 for a target, at num_cols * row + column"),
            "variable": Field("uint8", ("CELLS",), "3 for the worker, 4 for a box"),
            "worker": Field("int32", doc="cell of the worker"),
            "on_target": Field("int32", doc="number of boxes on targets"),
        }

    def infos(self, cfg: SokobanConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "prop_correct_boxes": state["on_target"] / cfg.num_boxes, "solved": state["on_target"] == cfg.num_boxes
        }  # fmt: skip

    def aspect(self, cfg: SokobanConfig) -> float:
        return cfg.num_cols / cfg.num_rows

    def render(self, cfg: SokobanConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        rows, columns = cfg.num_rows, cfg.num_cols
        fixed, variable = (np.asarray(state[name]) for name in ("fixed", "variable"))
        canvas.background("paper")
        canvas.view(-0.1, -0.1, columns + 0.1, rows + 0.1, y_down=True, hud=True)
        canvas.cached(_room, rows, columns, fixed.astype(np.uint8).tobytes())
        for cell in np.flatnonzero(variable == BOX).tolist():
            canvas.cached(_box, cell % columns, cell // columns, bool(fixed[cell] == TARGET))
        canvas.cached(_worker, int(state["worker"]) % columns, int(state["worker"]) // columns)
        left = f"{int(state['on_target'])} of {cfg.num_boxes} boxes"
        canvas.hud(left=left, right=f"step {int(state['elapsed_steps'])}")


def _room(canvas: Canvas, rows: int, columns: int, fixed: bytes) -> None:
    """Floor, walls and targets."""
    canvas.rect(0, 0, columns, rows, fill="sand")
    for cell, kind in enumerate(fixed):
        x, y = cell % columns, cell // columns
        if kind == WALL:
            canvas.rect(x - 0.01, y - 0.01, x + 1.01, y + 1.01, fill="slate")
            canvas.rect(x + 0.05, y + 0.06, x + 0.95, y + 0.46, fill="grey", radius=0.06)
            canvas.rect(x + 0.05, y + 0.54, x + 0.46, y + 0.94, fill="grey", radius=0.06)
            canvas.rect(x + 0.54, y + 0.54, x + 0.95, y + 0.94, fill="grey", radius=0.06)
        elif kind == TARGET:
            canvas.circle(x + 0.5, y + 0.5, 0.32, outline="red", width=2.5)
            canvas.circle(x + 0.5, y + 0.5, 0.12, fill="red")


def _box(canvas: Canvas, x: int, y: int, on_target: bool) -> None:
    """A box."""
    fill, edge = ("green", "white") if on_target else ("orange", "brown")
    canvas.rect(x + 0.1, y + 0.1, x + 0.9, y + 0.9, fill=fill, outline=edge, width=2.0, radius=0.08)
    canvas.line(x + 0.22, y + 0.22, x + 0.78, y + 0.78, colour=edge, width=2.0)
    canvas.line(x + 0.22, y + 0.78, x + 0.78, y + 0.22, colour=edge, width=2.0)


def _worker(canvas: Canvas, x: int, y: int) -> None:
    """The worker."""
    canvas.rect(x + 0.22, y + 0.45, x + 0.78, y + 0.92, fill="blue", radius=0.16)
    canvas.circle(x + 0.5, y + 0.34, 0.23, fill="sand", outline="ink", width=1.2)
    canvas.rect(x + 0.24, y + 0.08, x + 0.76, y + 0.28, fill="yellow", radius=0.1)


def arrays_of(text: str, name: str) -> dict[str, NDArray[np.uint8]]:
    """Levels as arrays `fixed` and `variable` from a text, where a line with a semicolon stands before each.

    Raises:
        ValueError: levels of unlike size, none at all, or a character that is no mark.
    """
    found: list[list[str]] = []
    for line in text.splitlines():
        if ";" in line:
            found.append([])
        elif "#" in line:
            if not found:
                found.append([])
            found[-1].append(line)
    width = max((len(line) for level in found for line in level), default=0)
    shapes = {len(level) for level in found if level}
    if len(shapes) != 1 or not {mark for level in found for line in level for mark in line} <= MARKS.keys():
        raise ValueError(f"{name}: levels must be texts of equal size, of the characters {' '.join(MARKS)}.")
    marks = np.array([[MARKS[m] for line in level for m in line.ljust(width)] for level in found if level], np.uint8)
    whole = marks.reshape(-1, shapes.pop(), width, 2)
    return {"fixed": np.ascontiguousarray(whole[..., 0]), "variable": np.ascontiguousarray(whole[..., 1])}


def joined(levels: Sequence[Mapping[str, NDArray[np.uint8]]]) -> dict[str, NDArray[np.uint8]]:
    """One dataset of several."""
    return {name: np.concatenate([part[name] for part in levels]) for name in ("fixed", "variable")}


def levels_of(path: Path) -> dict[str, NDArray[np.uint8]]:
    """The levels in a text file, or in all of a folder.

    Raises:
        ValueError: there is no such file in the folder, or what `arrays_of` raises.
    """
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    files = [file for file in files if file == path or file.stem.isdigit()]
    if not files:
        raise ValueError(f"Sokoban-v0: there are no files of levels (000.txt, 001.txt, ...) in {path}.")
    return joined([arrays_of(file.read_text(encoding="utf-8"), str(file)) for file in files])


@functools.cache
def levels(name: str) -> dict[str, NDArray[np.uint8]]:
    """The levels of this name: `fixed` and `variable`, (levels, 10, 10) each."""
    if name in SETS:
        return joined([arrays_of(asset.read().decode(), str(asset.source)) for asset in SETS[name].values()])
    if name != "generated":
        return arrays_of(TOYS if name == "toy" else SIMPLE, name)
    with np.load(io.BytesIO(Sokoban.assets["levels"].read())) as file:
        return {part: np.ascontiguousarray(file[part], np.uint8) for part in ("fixed", "variable")}
