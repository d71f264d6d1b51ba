"""A toy with continuous actions, one agent, and an array in its state."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class GlideConfig(Config):
    past: int = param(3, low=2, high=64, doc="positions that are remembered")
    wind: float = param(0.1, low=0.0, high=1.0, doc="strength of the noise")


class Glide(EnvDef):
    """A point glides over a plane, and sees where it was."""

    id = "Glide-v0"
    Config = GlideConfig
    max_episode_steps = 50
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def observation_space(self, cfg: GlideConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (cfg.past, 2), np.float32)

    def action_space(self, cfg: GlideConfig, group: str) -> spaces.Box:
        return spaces.Box(np.array([-1, -0.5], np.float32), np.array([1, 2], np.float32))

    def fields(self, cfg: GlideConfig) -> dict[str, Field]:
        return {"path": Field("float32", ("past", 2)), "speed": Field("float32", (2,)), "steps": Field("int32")}

    def render(self, cfg: GlideConfig, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        canvas.view(-3, -3, 3, 3)
        canvas.trail(state["path"])
        canvas.circle(*state["path"][0], 0.2, fill="blue")
