"""A toy in which agents move in turns and leave one after the other."""

from __future__ import annotations

from typing import Any, ClassVar

from gymnasium import spaces

from gpuzoo.core.definition import EnvDef, Field


class Relay(EnvDef):
    """Two runners; the first leaves with its first move, the second with its own second one."""

    id = "Relay-v0"
    turn = "mover"
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"runner": 2}

    def observation_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {"mover": Field("int32")}
