"""SlidingTilePuzzle."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class SlidingTilePuzzleConfig(InstanceConfig):
    """The board, how it is mixed, and what is rewarded."""

    grid_size: int = param(5, low=2, high=50, doc="rows and columns of the board")
    num_random_moves: int = param(200, low=0, high=100_000, doc="moves that mix the solved board")
    reward: Literal["dense", "sparse"] = param("dense", doc="tiles that come to their places, or the solution only")


class SlidingTilePuzzle(OfInstances):
    """Tiles slide into the one empty cell of a board until they are in order: the fifteen puzzle with any size.

    In the solution the tiles 1 to ``grid_size`` squared - 1 stand in reading order, and the empty cell is the last one.
    ``num_random_moves`` random legal moves mix them at the beginning.

    **Instances.** ``instances`` is a dataset with `puzzle`, (instances, grid_size, grid_size): the tiles, each once, 0
    for the empty cell. Each episode takes one of them at random, or always the one that ``instance`` names, which may
    differ between envs.

    **Actions.** `Discrete(4)`: the empty cell moves 0 up, 1 right, 2 down, 3 left. The action mask holds the moves that
    stay on the board. An illegal action changes nothing.

    **Observation.** `Box(0, grid_size squared - 1, (grid_size, grid_size))`, int32: the tile in each cell, 0 for the
    empty one.

    **Reward.** Tiles that come to their place minus tiles that leave it, where the empty cell counts as one. With
    ``reward="sparse"``, 1 for solving the puzzle.

    **End.** All tiles are in order. Time limit: 500 steps.

    **In Jumanji** the time limit terminates the episode. The place of the empty cell and the number of steps are
    observed. Here `infos` have `prop_correctly_placed`, the part of the cells that hold the right tile.
    """

    id = "SlidingTilePuzzle-v0"
    Config = SlidingTilePuzzleConfig
    max_episode_steps = 500
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 SlidingTilePuzzle-v0"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/sliding_tile_puzzle/"
    }
    similar = (r"[Ss]liding.*", r"(8|15|24)[-_]?puzzle", r"[Ff]ifteen.*")
    expert = "gpuzoo.envs.jumanji.tile_by_tile:best_moves"
    render_fps = 8

    def parts(self, cfg: SlidingTilePuzzleConfig) -> dict[str, Part]:
        return {"puzzle": Part((cfg.grid_size, cfg.grid_size), "int32", 0, cfg.grid_size**2 - 1)}

    def fault(self, cfg: SlidingTilePuzzleConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        each = np.sort(instance["puzzle"], axis=None) == np.arange(cfg.grid_size**2)
        return "" if each.all() else f"the puzzle must hold each number from 0 to {cfg.grid_size**2 - 1} once"

    def constants(self, cfg: SlidingTilePuzzleConfig) -> dict[str, int]:
        return {**super().constants(cfg), "SIZE": cfg.grid_size, "CELLS": cfg.grid_size**2}

    def observation_space(self, cfg: SlidingTilePuzzleConfig, group: str) -> spaces.Box:
        return spaces.Box(0, cfg.grid_size**2 - 1, (cfg.grid_size, cfg.grid_size), np.int32)

    def action_space(self, cfg: SlidingTilePuzzleConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: SlidingTilePuzzleConfig, group: str) -> dict[str, int]:
        return {"tile in a cell of the row": cfg.grid_size}

    def action_names(self, cfg: SlidingTilePuzzleConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: SlidingTilePuzzleConfig) -> dict[str, Field]:
        return {
            "puzzle": Field("int16", ("CELLS",), "tile in each cell, 0 in the empty one, at grid_size * row + column"),
            "empty": Field("int32", doc="the empty cell"),
            "correct": Field("int32", doc="cells that hold what they should"),
        }

    def infos(self, cfg: SlidingTilePuzzleConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        correct, cells = state["correct"], cfg.grid_size**2
        return {"prop_correctly_placed": correct / cells, "solved": correct == cells}

    def render(self, cfg: SlidingTilePuzzleConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size = cfg.grid_size
        puzzle = np.asarray(state["puzzle"])
        canvas.background("paper")
        canvas.view(-0.2, -0.2, size + 0.2, size + 0.2, y_down=True, hud=True)
        canvas.rect(-0.12, -0.12, size + 0.12, size + 0.12, fill="slate", radius=0.12)
        for cell, tile in enumerate(puzzle.tolist()):
            if tile:
                canvas.cached(_tile, cell % size, cell // size, tile, tile == cell + 1)
        canvas.hud(
            left=f"{int(state['correct'])} of {size * size} in place", right=f"move {int(state['elapsed_steps'])}"
        )


def _tile(canvas: Canvas, x: int, y: int, tile: int, right: bool) -> None:
    """A tile; green in its place."""
    fill = "green" if right else "sand"
    canvas.rect(x + 0.05, y + 0.05, x + 0.95, y + 0.95, fill=fill, radius=0.1)
    canvas.text(x + 0.5, y + 0.5, str(tile), colour="white" if right else "ink", bold=True, height=0.4)
