"""The packed game of docs/dialect.md, and its twin with ordinary rules and the same bits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo import EnvDef
from gpuzoo.core.definition import Config, Field, param


@dataclasses.dataclass(frozen=True)
class SpinnerConfig(Config):
    dt: float = param(0.05, low=1e-3, doc="seconds between steps")
    limit: float = param(2.0, low=1.0, doc="a faster spinner is slowed down")


class Spinner(EnvDef):
    """A pendulum without a stop: keep it slow."""

    id = "Spinner-v0"
    Config = SpinnerConfig
    max_episode_steps = 200
    packed = True
    exempt: ClassVar = {"reference": "an example"}

    def observation_space(self, cfg: SpinnerConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (3,), np.float32)

    def action_space(self, cfg: SpinnerConfig, group: str) -> spaces.Box:
        return spaces.Box(-2.0, 2.0, (1,), np.float32)

    def fields(self, cfg: SpinnerConfig) -> dict[str, Field]:
        return {"angle": Field("float32"), "speed": Field("float32")}


class OneSpinner(Spinner):
    id = "OneSpinner-v0"
    packed = False

    @classmethod
    def source(cls) -> Path:
        return Path(__file__).with_name("spinner_one.cuh")
