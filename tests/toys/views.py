"""A toy whose agents look at a map through windows: for `lanes_of_views`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param

KINDS, LENSES, UNWRITTEN = 6, 2, 111
#: numbers of a row before the view, and in all beside it
BEFORE, BESIDE = 3, 5


@dataclasses.dataclass(frozen=True)
class ViewsConfig(Config):
    num_agents: int = param(5, low=1, high=64, doc="agents")
    side: int = param(13, low=1, high=40, doc="side of the windows")
    channels: int = param(5, low=1, high=20, doc="numbers for each cell")
    numbers: int = param(0b10100, low=0, doc="a bit for each channel that shows numbers")
    height: int = param(30, low=1, high=60, doc="rows of the map")
    width: int = param(31, low=1, high=60, doc="columns of the map")


class ViewsToy(EnvDef):
    """Random maps, places, and lenses."""

    id = "Views-v0"
    Config = ViewsConfig
    dtype = "float32"
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: ViewsConfig) -> dict[str, int]:
        return {"agent": cfg.num_agents}

    def lanes(self, cfg: ViewsConfig) -> int:
        return 8

    def constants(self, cfg: ViewsConfig) -> dict[str, int]:
        return {
            "SIDE": cfg.side,
            "NUMBERS_OF_ROW": cfg.side * cfg.side * cfg.channels + BESIDE,
            "BEFORE": BEFORE,
            "CHANNELS": cfg.channels,
            "NUMBERS": cfg.numbers,
            "MAP_ROWS": cfg.height,
            "MAP_COLUMNS": cfg.width,
            "KINDS": KINDS,
            "LENSES": LENSES,
            "UNWRITTEN": UNWRITTEN,
        }

    def tables(self, cfg: ViewsConfig) -> Mapping[str, NDArray[Any]]:
        rng = np.random.default_rng(0)
        shows = rng.integers(1, KINDS + 1, (LENSES, cfg.channels))
        visible = rng.integers(0, 4, (LENSES, cfg.side * cfg.side)) * 64  # 0 in one of four
        return {"shows": shows.astype(np.uint8).ravel(), "visible": visible.astype(np.uint8).ravel()}

    def observation_space(self, cfg: ViewsConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 255, (cfg.side * cfg.side * cfg.channels + BESIDE,), self.dtype)

    def action_space(self, cfg: ViewsConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def fields(self, cfg: ViewsConfig) -> dict[str, Field]:
        return {
            "kind": Field("uint8", ("MAP_ROWS", "MAP_COLUMNS"), "what stands in a cell"),
            "number": Field("float32", ("MAP_ROWS", "MAP_COLUMNS"), "its number; NaN where nothing stands"),
            "first": Field("int32", ("agents",), "first cell of a window"),
            "lens": Field("int32", ("agents",), "what it looks through"),
        }


class ByteViewsToy(ViewsToy):
    """The same in bytes."""

    id = "ByteViews-v0"
    dtype = "uint8"
