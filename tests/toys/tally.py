"""A toy that notes who came when, and counts votes in cells: for `in_random_order` and the scatters."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class TallyConfig(Config):
    num_voters: int = param(100, low=1, doc="number of voters")
    cells: int = param(7, low=1, doc="number of cells")
    kinds: int = param(0, low=0, doc="how many different keys the order has, or 0 for as many as there are numbers")
    every: int = param(1, low=1, doc="only the last one of so many voters takes part in the order")


class Tally(EnvDef):
    """Voters name cells, one after the other."""

    id = "Tally-v0"
    Config = TallyConfig
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: TallyConfig) -> dict[str, int]:
        return {"voter": cfg.num_voters}

    def lanes(self, cfg: TallyConfig) -> int:
        return 8

    def observation_space(self, cfg: TallyConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (1,), np.float32)

    def action_space(self, cfg: TallyConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.cells)

    def fields(self, cfg: TallyConfig) -> dict[str, Field]:
        ways = ("add", "min", "max", "any")
        return {
            "turn_of": Field("int32", ("voters",), "how many came before, or -1 without a turn"),
            "came": Field("int32"),
            "cell_of": Field("int32", ("voters",), scratch=True),
            "vote_of": Field("int32", ("voters",), scratch=True),
            **{f"{way}_int": Field("int32", ("cells",)) for way in ways},
            **{f"{way}_word": Field("uint32", ("cells",)) for way in ways},
            **{f"{way}_long": Field("uint64", ("cells",)) for way in ways},
        }
