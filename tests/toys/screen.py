"""A toy that sees a picture, for wrappers that want one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import EnvDef, Field


class Screen(EnvDef):
    """A bright spot walks over a small screen until it leaves it."""

    id = "Screen-v0"
    max_episode_steps = 20
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        return spaces.Box(0, 255, (6, 8, 3), np.uint8)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {"row": Field("int32"), "column": Field("int32")}

    def render(self, cfg: Any, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        canvas.view(0, 0, 8, 6)
        canvas.circle(state["column"] + 0.5, state["row"] + 0.5, 0.5, fill="red")
