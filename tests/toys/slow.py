"""A toy whose step takes as long as its configuration says."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class SlowConfig(Config):
    work: int = param(1000, low=0, high=100_000_000, doc="random numbers that a step draws one after another")


class Slow(EnvDef):
    """Counts what it was told, slowly."""

    id = "Slow-v0"
    Config = SlowConfig
    max_episode_steps = 50
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def observation_space(self, cfg: SlowConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def action_space(self, cfg: SlowConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def fields(self, cfg: SlowConfig) -> dict[str, Field]:
        return {"total": Field("int32"), "noise": Field("uint32"), "past": Field("int32", (2,))}
