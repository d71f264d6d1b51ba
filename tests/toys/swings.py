"""A toy with packed rules and all that they may have, and its twin with ordinary rules and the same bits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class SwingsConfig(Config):
    swings: int = param(3, low=1, high=20, doc="how many hang in a row")
    dt: float = param(0.05, low=1e-3, doc="seconds between steps")
    spring: float = param(2.0, low=0.0, doc="between neighbours")
    limit: float = param(1.5, low=0.1, doc="the episode ends where a swing is further out")


class Swings(EnvDef):
    """Swings in a row, joined by springs; the first and the last are pushed."""

    id = "Swings-v0"
    Config = SwingsConfig
    max_episode_steps = 40
    packed = True
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def observation_space(self, cfg: SwingsConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (3 * cfg.swings + 2,), np.float32)

    def action_space(self, cfg: SwingsConfig, group: str) -> spaces.Box:
        return spaces.Box(np.array([-1, -0.5], np.float32), np.array([1, 2], np.float32))

    def state_space(self, cfg: SwingsConfig) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (3,), np.float32)

    def fields(self, cfg: SwingsConfig) -> dict[str, Field]:
        return {
            "angle": Field("float32", ("swings",)),
            "speed": Field("float32", ("swings",)),
            "energy": Field("float32"),
            "gusts": Field("int32"),
            "windy": Field("bool"),
            "bent": Field("bool", ("swings",)),
            "force": Field("float32", ("swings",), scratch=True),
        }

    def tables(self, cfg: SwingsConfig) -> dict[str, Any]:
        return {"length": np.linspace(1, 1.4, cfg.swings).astype(np.float32)}

    def render(self, cfg: SwingsConfig, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        canvas.view(-1, -2, 2 * cfg.swings, 1)
        for k, angle in enumerate(state["angle"]):
            canvas.line(2 * k, 0, 2 * k + np.sin(angle), -np.cos(angle), colour="orange", width=5)


class OneSwings(Swings):
    id = "OneSwings-v0"
    packed = False

    @classmethod
    def source(cls) -> Path:
        return Path(__file__).with_name("swings_one.cuh")
