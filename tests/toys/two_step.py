"""The two-step game of the paper on QMIX, in which a sum of values cannot tell the best way."""

from __future__ import annotations

from typing import Any, ClassVar

from gymnasium import spaces

from gpuzoo.core.definition import EnvDef, Field


class TwoStep(EnvDef):
    """The first player's first move chooses a table: 7 for everything, or ((0, 1), (1, 8)) for both second moves."""

    id = "TwoStep-v0"
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {"table": Field("int32", doc="0: not chosen yet, 1: all 7, 2: the one with 8")}
