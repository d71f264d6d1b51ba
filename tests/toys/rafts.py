"""A toy with packed rules and several agents of two groups, and its twin with ordinary rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import EnvDef, Field


class Rafts(EnvDef):
    """A pilot and two sailors row a raft; all go ashore together."""

    id = "Rafts-v0"
    max_episode_steps = 30
    packed = True
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"pilot": 1, "sailor": 2}

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (3 if group == "pilot" else 2,), np.float32)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(3 if group == "pilot" else 4)

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {"place": Field("float32", (2,)), "water": Field("float32"), "strokes": Field("int32", ("agents",))}

    def render(self, cfg: Any, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        canvas.view(-5, -5, 5, 5)
        canvas.circle(*state["place"], 0.4, fill="sand")


class OneRafts(Rafts):
    id = "OneRafts-v0"
    packed = False

    @classmethod
    def source(cls) -> Path:
        return Path(__file__).with_name("rafts_one.cuh")
