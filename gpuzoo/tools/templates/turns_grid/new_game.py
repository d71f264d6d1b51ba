"""NewGame."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo import Canvas, Config, EnvDef, Field, param, register

COLOURS = ("red", "blue", "yellow", "green", "purple", "orange", "teal", "pink")


@dataclasses.dataclass(frozen=True)
class NewGameConfig(Config):
    """Integers are compiled into the kernel; floats can be changed at any time and can differ from env to env."""

    num_players: int = param(2, low=2, high=64, doc="number of players")
    size: int = param(5, low=3, high=19, doc="rows and columns of the board")
    in_a_row: int = param(4, low=2, high=19, doc="stones in a row that win")


@register
class NewGame(EnvDef):
    """Players put stones on a square board in turns; the first with enough of them in a row wins.

    A row may be horizontal, vertical or diagonal.

    **Start.** An empty board. `player_0` begins.

    **Actions.** `Discrete(size * size)`: the cell, row by row. The action mask of the player to move has the free
    cells. The others' actions are not looked at.

    **Observation.** `Box(size, size, 2)`, int8: whether a cell has a stone of the observing player, of another player.

    **Reward.** 1 for the winner, and -1 shared among the others. -1 for a move to a cell that is not free.

    **End.** For all, when a player has `in_a_row` stones in a row, or the board is full, or a cell was not free.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    invalid_action = -1
    action_mask = True
    turn = "mover"
    interaction = "competitive"
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}
    render_fps = 2

    def agents(self, cfg: NewGameConfig) -> dict[str, int]:
        """Groups of agents, in order, and their sizes."""
        return {"player": cfg.num_players}

    def check(self, cfg: NewGameConfig) -> None:
        """Refuses parameters that do not fit together."""
        if cfg.in_a_row > cfg.size:
            raise ValueError(f"NewGame: in_a_row={cfg.in_a_row} needs a larger size than {cfg.size}.")

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Of one agent: the board, as a picture with two channels."""
        return spaces.Box(0, 1, (cfg.size, cfg.size, 2), np.int8)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Discrete:
        """Of one agent: a cell."""
        return spaces.Discrete(cfg.size * cfg.size)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"its own stones": 1, "stones of others": 1}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return {"cells, row by row": cfg.size * cfg.size}

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "board": Field("int8", ("size", "size"), "0 for a free cell, k + 1 for a stone of player_k"),
            "mover": Field("int32", doc="index of the player to move"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env."""
        canvas.background("paper")
        canvas.view(0, 0, cfg.size, cfg.size, y_down=True, pad=10, hud=True)
        canvas.rect(0, 0, cfg.size, cfg.size, fill="sand")
        canvas.grid(cfg.size, cfg.size, colour="brown")
        for row, column in np.argwhere(state["board"]).tolist():
            player = int(state["board"][row, column]) - 1
            canvas.circle(column + 0.5, row + 0.5, 0.4, fill=COLOURS[player % len(COLOURS)])
        mover, moves = int(state["mover"]), int(state["elapsed_steps"])
        canvas.hud(left=f"NewGame, player_{mover} to move", right=f"move {moves}")
