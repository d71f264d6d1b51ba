"""NewGame."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo import Canvas, Config, EnvDef, Field, param, register


@dataclasses.dataclass(frozen=True)
class NewGameConfig(Config):
    """Integers are compiled into the kernel; floats can be changed at any time and can differ from env to env."""

    num_players: int = param(2, low=2, high=64, doc="number of players")
    heap: int = param(13, low=1, high=1000, doc="sticks at the start, or up to three more")


@register
class NewGame(EnvDef):
    """Players take one to three sticks from a heap in turns; the one who takes the last stick wins.

    **Start.** A heap of `heap` to `heap` + 3 sticks. `player_0` begins.

    **Actions.** `Discrete(3)`: takes one, two or three sticks. The action mask of the player to move has what the heap
    allows; an action that it does not have counts as 0. The others' actions are not looked at.

    **Observation.** `Box(2)`, int32: the sticks that are left, and how many others move before this player.

    **Reward.** 1 for the winner, and -1 shared among the others.

    **End.** For all, when no stick is left. Time limit: 1003 steps, which only the largest heap can need.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    max_episode_steps = 1003
    action_mask = True
    turn = "mover"
    interaction = "competitive"
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}
    render_fps = 2

    def agents(self, cfg: NewGameConfig) -> dict[str, int]:
        """Groups of agents, in order, and their sizes."""
        return {"player": cfg.num_players}

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Of one agent: the heap, and how soon it is its turn."""
        return spaces.Box(0, max(cfg.heap + 3, cfg.num_players), (2,), np.int32)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Discrete:
        """Of one agent: one, two or three sticks."""
        return spaces.Discrete(3)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"sticks": 1, "players who move before": 1}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return {"take one": 1, "take two": 1, "take three": 1}

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "sticks": Field("int32", doc="sticks in the heap"),
            "mover": Field("int32", doc="index of the player to move"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env, with ten sticks in a row."""
        canvas.background("paper")
        rows = (cfg.heap + 12) // 10
        canvas.view(0, 0, 10, max(rows, 2), y_down=True, pad=10, hud=True)
        for k in range(int(state["sticks"])):
            canvas.line(k % 10 + 0.5, k // 10 + 0.15, k % 10 + 0.5, k // 10 + 0.85, colour="brown", width=4)
        mover, moves = int(state["mover"]), int(state["elapsed_steps"])
        canvas.hud(left=f"NewGame, player_{mover} to move", right=f"move {moves}")
