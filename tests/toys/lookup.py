"""A toy that looks numbers up in tables of all types: eight numbers, and nine."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef, Field

DTYPES = ("float32", "int32", "uint32", "uint64", "int8", "uint8")
NAMES = [f"{dtype}_{size}" for dtype in DTYPES for size in (8, 9)]


class Lookup(EnvDef):
    """The action is an index, and the observation what stands there; then the first table, whole."""

    id = "Lookup-v0"
    exempt: ClassVar = {"reference": "a toy of the tests"}
    max_episode_steps = 5

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        return spaces.Box(-9, 9e9, (len(NAMES) + 8,), np.float32)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(8)

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {"place": Field("int32")}

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        return {name: np.arange(3, 3 + int(name[-1])).astype(name[:-2]) ** 2 for name in NAMES}
