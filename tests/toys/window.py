"""A toy that looks at bytes through windows and a table: for `window_bits`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param

BITS = 7


@dataclasses.dataclass(frozen=True)
class WindowConfig(Config):
    rows: int = param(3, low=1, high=9, doc="rows of a window")
    columns: int = param(3, low=1, high=9, doc="columns of a window")
    height: int = param(5, low=1, high=16, doc="rows of the map")
    width: int = param(6, low=1, high=16, doc="columns of the map")


class Window(EnvDef):
    """A map of random bytes, and what each of its windows shows."""

    id = "Window-v0"
    Config = WindowConfig
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def lanes(self, cfg: WindowConfig) -> int:
        return 8

    def constants(self, cfg: WindowConfig) -> dict[str, int]:
        return {
            "BITS": BITS,
            "ROWS": cfg.rows,
            "COLUMNS": cfg.columns,
            "MAP_ROWS": cfg.height,
            "MAP_COLUMNS": cfg.width,
            "DOWN": cfg.height - cfg.rows + 1,
            "ACROSS": cfg.width - cfg.columns + 1,
        }

    def tables(self, cfg: WindowConfig) -> Mapping[str, NDArray[Any]]:
        return {"shown": np.random.default_rng(0).integers(256, size=32).astype(np.uint8)}

    def observation_space(self, cfg: WindowConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (1,), np.float32)

    def action_space(self, cfg: WindowConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def fields(self, cfg: WindowConfig) -> dict[str, Field]:
        return {
            "map": Field("uint8", ("MAP_ROWS", "MAP_COLUMNS"), "random bytes"),
            "seen": Field("uint64", ("DOWN", "ACROSS"), "the bits of each window"),
        }
