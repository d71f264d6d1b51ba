"""Who plays a game that runs: the names of policies, and those that need no training."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.tools import controls

Array = NDArray[Any]
#: of a group: observations, action masks or None, and the number of the step -> actions (num_envs, agents, parts)
Policy = Callable[[Array, "Array | None", int], Any]

#: who may play any game, but for ``"trained"``, agents which come with the package, and ``"search"``, for games of two
POLICIES = RANDOM, TRAINED, SEARCH, STILL, IN_TURN = "random", "trained", "search", "still", "in turn"
EXPERT = "expert"  #: a game's own, where agents of a checkpoint may play, too


def still(parts: list[controls.Part], space: spaces.Space[Any]) -> Array:
    """The action of someone who does nothing, or the first one where a game has no such action."""
    return np.asarray(controls.action(space, parts, [part.low if part.still is None else part.still for part in parts]))


def in_turn(space: spaces.Space[Any]) -> Policy:
    """A policy that takes each action in turn, or sweeps over the ranges; of masked actions the next legal one."""

    def act(seen: Array, mask: Array | None, step: int) -> Array:
        lead = seen.shape[:2]
        if isinstance(space, spaces.Box):
            share = 0.5 + 0.5 * np.sin(0.2 * step + np.arange(space.low.size))
            return np.broadcast_to(
                space.low.ravel() + share * (space.high - space.low).ravel(), (*lead, space.low.size)
            )
        sizes = [int(space.n)] if isinstance(space, spaces.Discrete) else [int(n) for n in space.nvec]  # type: ignore[attr-defined]
        out = np.empty((*lead, len(sizes)), np.int64)
        first = 0
        for k, n in enumerate(sizes):
            order = (np.arange(n) + step // (4 if n > 1 else 1)) % n
            legal = np.ones((*lead, n), bool) if mask is None else mask[..., first : first + n] != 0
            out[..., k] = order[legal[..., order].argmax(-1)]
            first += n
        return out

    return act


def imported(name: str, what: str = "policy") -> Any:
    """A function of one's own, from ``module:function``.

    Args:
        name: of it.
        what: it is, for messages.

    Raises:
        ValueError: there is no such module or function.
    """
    if "" not in sys.path:  # as with --import, a file of the present folder is found
        sys.path.insert(0, "")
    module, colon, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function) if colon and module and function else None
    except (ImportError, AttributeError) as error:
        raise ValueError(f"there is no {what} {name!r}: {error}.") from None
    if not callable(found):
        raise ValueError(f"a{'n' if what[0] in 'aeiou' else ''} {what} is given as module:function, not as {name!r}.")
    return found
