"""Which parts an action can be chosen in. Imports no torch, so that a mistake is told at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gymnasium import spaces

from gpuzoo.core.layout import choices


def refusal(space: spaces.Space[Any], parts: Sequence[int]) -> str:
    """Why an action cannot be chosen in these parts; empty if it can.

    Args:
        space: of the action.
        parts: choices of each.
    """
    nvec = choices(space)
    if not nvec:
        return f"action_parts are for actions that are choices, not for {space}: leave them away."
    if isinstance(space, spaces.MultiDiscrete):
        wanted = ",".join(map(str, nvec))
        return "" if list(parts) == nvec else f"action_parts of {space} can only be {wanted}, not {list(parts)}."
    if min(parts) > 1 and math.prod(parts) == nvec[0]:
        return ""
    return (
        f"action_parts must be numbers above 1 whose product is {nvec[0]}, the choices of {space}, not {list(parts)}."
    )
