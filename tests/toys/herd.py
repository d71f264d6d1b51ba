"""A toy with what the collection's games may lack: unlike groups, masks, deaths, tables, matrices, all dtypes."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class HerdConfig(Config):
    wolfs: int = param(2, low=1, high=8, doc="wolves")
    sheeps: int = param(3, low=1, high=40, doc="sheep")
    cells: int = param(12, low=2, doc="cells of the ring")
    ring: bool = param(True, doc="whether the cells form a ring")
    mood: Literal["calm", "wild"] = param("calm", doc="wild sheep jump")
    bite: float = param(1.0, low=0.0, high=10.0, doc="reward for a catch")
    hunger: float = param(0.01, low=0.0, doc="a wolf's cost of a step")


class Herd(EnvDef):
    """Wolves chase sheep along a ring."""

    id = "Herd-v0"
    Config = HerdConfig
    max_episode_steps = 30
    action_mask = True
    invalid_action = 1
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: HerdConfig) -> dict[str, int]:
        return {"wolf": cfg.wolfs, "sheep": cfg.sheeps}

    def lanes(self, cfg: HerdConfig) -> int:
        return 8

    def observation_space(self, cfg: HerdConfig, group: str) -> spaces.Box:
        shape = (2, 2) if group == "wolf" else (3,)
        return spaces.Box(-1, max(cfg.cells, cfg.sheeps), shape, np.float32)

    def action_space(self, cfg: HerdConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5 if group == "wolf" else 3)

    def fields(self, cfg: HerdConfig) -> dict[str, Field]:
        return {
            "cell": Field("int32", ("agents",)),
            "seen": Field("float32", ("agents", 2)),
            "tired": Field("uint8", ("wolfs",)),
            "last": Field("int8", ("sheeps",)),
            "mixed": Field("uint32", ("agents",)),
            "caught": Field("int32"),
            "quiet": Field("bool"),
            "trace": Field("uint64"),
        }

    def tables(self, cfg: HerdConfig) -> dict[str, np.ndarray]:
        return {"shift": np.array([-1, 0, 1, -2, 2], np.int32), "weight": np.linspace(0, 1, 5, dtype=np.float32)}

    def render(self, cfg: HerdConfig, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        canvas.view(0, 0, cfg.cells, 2)
        for a, cell in enumerate(state["cell"]):
            canvas.circle(cell + 0.5, 1, 0.3, fill="red" if a < cfg.wolfs else "blue")
