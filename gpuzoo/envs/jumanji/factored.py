"""Actions that consist of parts: one number for all of them, or a number for each."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from gymnasium import spaces

from gpuzoo.core.definition import Config, param


@dataclasses.dataclass(frozen=True)
class FactoredConfig(Config):
    """How actions are given."""

    action_form: Literal["flat", "parts"] = param(
        "flat", doc="one number for all parts of an action (Discrete), or one for each (MultiDiscrete)"
    )


class Factored:
    """What games share whose actions consist of parts."""

    def factors(self, cfg: Any) -> list[int]:
        """Choices of each part."""
        raise NotImplementedError(f"{type(self).__name__} must define factors(cfg)")

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete | spaces.MultiDiscrete:
        factors = self.factors(cfg)
        return spaces.Discrete(math.prod(factors)) if cfg.action_form == "flat" else spaces.MultiDiscrete(factors)
