"""MetaMaze."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade


@dataclasses.dataclass(frozen=True)
class MetaMazeConfig(Config):
    """Gymnax's options and parameters."""

    maze_size: int = param(9, low=1, high=99, doc="rows and columns inside of the outer wall, an odd number")
    rf_size: int = param(3, low=3, high=15, doc="rows and columns that the agent sees, an odd number")
    reward: float = param(10.0, doc="for reaching the goal")
    punishment: float = param(0.0, doc="reward for walking into a wall: a penalty is a negative number")
    normalize_time: bool = param(False, doc="the observed time is 2 t / 100 - 1, otherwise t")
    end_on_goal: bool = param(True, doc="the episode is over when the agent is put onto the goal, as in gymnax")
    true_center: bool = param(False, doc="start in the centre for every rf_size; in gymnax so for rf_size 3 only")


class MetaMaze(EnvDef):
    """A maze with a hidden reward: an agent that remembers the place finds it again from anywhere.

    The maze has ``maze_size`` x ``maze_size`` cells and a wall around. Cells whose row and column are both odd are
    walls, the others are open.

    **Actions.** `Discrete(4)`: up, right, down, left. A wall stops the agent.

    **Observation.** float32, ``rf_size``² + 6 numbers: the ``rf_size`` x ``rf_size`` cells around the agent, 1 for
    walls; the last action one-hot (at the beginning 0); the last reward; the time: steps of this episode, with
    ``normalize_time`` 2 t / 100 - 1. The goal is not seen.

    **Reward.** ``reward`` when the agent is in the goal's cell after its move, and ``punishment`` for walking into a
    wall. An agent in the goal's cell moves to a random open cell.

    **Start.** The agent is in the centre, the goal in an open cell drawn at random. It stays there for the episode.

    **End.** The cell drawn for an agent who has reached the goal is the goal's. Time limit: 200 steps.

    **In gymnax** an episode ends only by the chance just told. With ``end_on_goal=False`` it has its 200 steps always,
    as in the paper. Gymnax's start is (``rf_size`` - 3) / 2 cells below and to the right of the centre, which may be in
    a wall, or out of the maze with no way in; ``true_center`` mends that. (The centre itself is in a wall where
    ``maze_size`` is 3, 7, 11, ...: it is left and not entered again.) ``normalize_time`` counts in hundreds of steps
    whatever the time limit is.
    """

    id = "MetaMaze-v0"
    Config = MetaMazeConfig
    max_episode_steps = 200
    reference = "gymnax==1.0.1 MetaMaze-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
        "Miconi et al. 2018": "https://arxiv.org/abs/1804.02464",
    }
    render_fps = 10

    def check(self, cfg: MetaMazeConfig) -> None:
        for name in ("maze_size", "rf_size"):
            if getattr(cfg, name) % 2 == 0:
                raise ValueError(f"MetaMaze: {name} must be odd, not {getattr(cfg, name)}.")

    def observation_space(self, cfg: MetaMazeConfig, group: str) -> spaces.Box:
        ones = cfg.rf_size**2 + 4
        low = np.array([0] * ones + [-np.inf, -1 if cfg.normalize_time else 0], np.float32)
        return spaces.Box(low, np.array([1] * ones + [np.inf] * 2, np.float32), dtype=np.float32)

    def action_space(self, cfg: MetaMazeConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def constants(self, cfg: MetaMazeConfig) -> dict[str, int]:
        size, radius = cfg.maze_size, cfg.rf_size // 2
        return {
            "SIZE": size,
            "WINDOW": cfg.rf_size,
            "RADIUS": radius,
            "CELLS": cfg.rf_size**2,
            "OPEN": size**2 - (size // 2) ** 2,
            "START": size // 2 + (0 if cfg.true_center else radius - 1),
        }

    def observation_names(self, cfg: MetaMazeConfig, group: str) -> dict[str, int]:
        cells = {f"walls in the {cfg.rf_size} x {cfg.rf_size} cells around the agent": cfg.rf_size**2}
        return cells | {"last action, one-hot": 4, "last reward": 1, "time": 1}

    def action_names(self, cfg: MetaMazeConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "right", "down", "left"), 1)

    def fields(self, cfg: MetaMazeConfig) -> dict[str, Field]:
        return {
            "row": Field("int32", doc="the agent's; 0 is the maze's first row"),
            "column": Field("int32", doc="the agent's"),
            "goal_row": Field("int32", doc="the goal's"),
            "goal_column": Field("int32", doc="the goal's"),
            "last_action": Field("int32", doc="0 at the beginning"),
            "last_reward": Field("float32", doc="0 at the beginning"),
        }

    def render(self, cfg: MetaMazeConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, radius = cfg.maze_size, cfg.rf_size // 2
        canvas.background("slate")
        canvas.view(-1, -1, size + 1, size + 1, y_down=True, hud=True)
        canvas.rect(0, 0, size, size, fill="sand")
        for row in range(1, size, 2):
            for column in range(1, size, 2):
                canvas.rect(column, row, column + 1, row + 1, fill="slate", radius=0.08)
        x, y = float(state["goal_column"]) + 0.5, float(state["goal_row"]) + 0.5
        angles = np.arange(10) * np.pi / 5 - np.pi / 2
        reach = np.where(np.arange(10) % 2, 0.18, 0.42)
        canvas.polygon(np.stack([x + reach * np.cos(angles), y + reach * np.sin(angles)], 1), fill="yellow")
        x, y, far = float(state["column"]) + 0.5, float(state["row"]) + 0.5, radius + 0.5
        canvas.rect(
            x - far, y - far, x + far, y + far, fill=fade("blue", 0.15), outline=fade("blue", 0.6), width=2, radius=0.1
        )
        canvas.circle(x, y, 0.33, fill="blue", outline="white", width=2)
        left = f"last reward {float(state['last_reward']):g}"
        canvas.hud(left=left, right=f"step {int(state['elapsed_steps'])}")
