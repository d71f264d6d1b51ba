"""A toy in which agents act in turns."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class NimConfig(Config):
    heap: int = param(13, low=1, doc="sticks")


class Nim(EnvDef):
    """Two players take one to three sticks in turns; who takes the last one wins."""

    id = "Nim-v0"
    Config = NimConfig
    max_episode_steps = 40
    action_mask = True
    turn = "mover"
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: NimConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: NimConfig, group: str) -> spaces.Box:
        return spaces.Box(0, cfg.heap + 3, (2,), np.int32)

    def action_space(self, cfg: NimConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def fields(self, cfg: NimConfig) -> dict[str, Field]:
        return {"left": Field("int32"), "mover": Field("int32")}

    def render(self, cfg: NimConfig, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        canvas.view(0, 0, cfg.heap + 4, 2)
        for k in range(int(state["left"])):
            canvas.line(k + 1, 0.5, k + 1, 1.5)
