"""Actions that consist of parts: one number for all of them, or a number for each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

from gymnasium import spaces

from gpuzoo.core.definition import Config, param


@dataclasses.dataclass(frozen=True)
class FactoredConfig(Config):
    """How actions are given."""

    action_form: Literal["flat", "parts"] = param(
        "flat", doc="one number for all parts of an action (Discrete), or one for each (MultiDiscrete)"
    )


def factored(cfg: FactoredConfig, parts: Sequence[int]) -> spaces.Discrete | spaces.MultiDiscrete:
    """The space of actions whose parts have so many choices."""
    return spaces.Discrete(math.prod(parts)) if cfg.action_form == "flat" else spaces.MultiDiscrete([*parts])
