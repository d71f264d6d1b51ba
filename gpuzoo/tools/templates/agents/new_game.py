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

    num_fishers: int = param(4, low=2, high=64, doc="number of fishers")
    catchability: float = param(0.1, low=0.0, high=0.3, doc="share of the fish that all catch with an effort of 1")
    growth: float = param(0.3, low=0.0, high=1.0, doc="growth of a small stock of fish, per step")


@register
class NewGame(EnvDef):
    """Fishers share a lake: whoever catches more gets more, until all have caught too much.

    The stock of fish, 1 when the lake is full, grows by `growth` * stock * (1 - stock) in each step (Schaefer, 1954).

    **Start.** A stock between 0.5 and 1.

    **Actions.** `Discrete(4)`: the effort, 0 to 3. An action out of range counts as 0.

    **Observation.** `Box(3)` in [0, 1], float32: the stock, the fisher's last catch, the mean of all last catches.

    **Reward.** The catch: `catchability` * effort * stock / number of fishers.

    **End.** For all, when the stock is below 0.05. Time limit: 200 steps.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    max_episode_steps = 200
    interaction = "mixed"
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}
    render_fps = 10

    def agents(self, cfg: NewGameConfig) -> dict[str, int]:
        """Groups of agents, in order, and their sizes."""
        return {"fisher": cfg.num_fishers}

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Of one agent: the stock, its own catch, the mean catch."""
        return spaces.Box(0.0, 1.0, (3,), np.float32)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Discrete:
        """Of one agent: its effort."""
        return spaces.Discrete(4)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"the stock": 1, "its last catch": 1, "the mean of all last catches": 1}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return {f"effort {k}": 1 for k in range(4)}

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "stock": Field("float32", doc="fish in the lake, at most 1"),
            "haul": Field("float32", ("fishers",), "what each fisher caught in the last step"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env: the lake, and a bar for each fisher's catch."""
        canvas.background("paper")
        canvas.view(0, 0, 1, 1, pad=10, hud=True)
        canvas.rect(0, 0, 1, 0.5 * float(state["stock"]), fill="water")
        canvas.rect(0, 0, 1, 0.5, outline="slate")
        width, largest = 1 / cfg.num_fishers, max(1e-6, 3 * cfg.catchability / cfg.num_fishers)
        for k, caught in enumerate(state["haul"].tolist()):
            height = 0.4 * caught / largest
            canvas.rect((k + 0.1) * width, 0.55, (k + 0.9) * width, 0.56 + height, fill="blue")
        stock, steps = float(state["stock"]), int(state["elapsed_steps"])
        canvas.hud(left=f"NewGame, stock {stock:.2f}", right=f"step {steps}")
