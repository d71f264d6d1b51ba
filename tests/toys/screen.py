"""A toy that sees a picture, for wrappers that want one."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class ScreenConfig(Config):
    """What the screen looks like."""

    picture: str = param("/".join(["........"] * 6), doc="its lines with / between them; cells with # stay dark")


class Screen(EnvDef):
    """A bright spot walks over a small screen until it leaves it."""

    id = "Screen-v0"
    Config = ScreenConfig
    max_episode_steps = 20
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def dark(self, cfg: Any) -> NDArray[Any]:
        return np.array([[c == "#" for c in line] for line in cfg.picture.split("/")], np.uint8)

    def constants(self, cfg: Any) -> dict[str, int]:
        rows, columns = self.dark(cfg).shape
        return {"ROWS": rows, "COLUMNS": columns}

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        return {"dark": self.dark(cfg).ravel()}

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        return spaces.Box(0, 255, (*self.dark(cfg).shape, 3), np.uint8)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {"row": Field("int32"), "column": Field("int32"), "seen": Field("bool", ("ROWS", "COLUMNS"))}

    def render(self, cfg: Any, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        rows, columns = self.dark(cfg).shape
        canvas.view(0, 0, columns, rows)
        canvas.circle(state["column"] + 0.5, state["row"] + 0.5, 0.5, fill="red")
