"""What the numbers of observations and actions are: a game's names, checked against its spaces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef
from gpuzoo.core.layout import flat_size


@dataclasses.dataclass(frozen=True)
class Part:
    """Numbers that lie side by side.

    Attributes:
        first: the index of the first one.
        last: the index of the last one.
        name: what they are; nothing where the game does not say.
        low: the smallest value that one of them may have.
        high: the largest one.
    """

    first: int
    last: int
    name: str
    low: float
    high: float


def observation_parts(env: EnvDef, cfg: Config, group: str) -> tuple[str, list[Part]]:
    """What the numbers of an agent's observation are.

    Returns:
        ``"index"``, or ``"channel"`` where the names are those of channels; and the parts.

    Raises:
        ValueError: the names do not add up to the observation.
    """
    space, names = env.observation_space(cfg, group), env.observation_names(cfg, group)
    low, high = _bounds(space)
    shape = space.shape or ()
    count = sum(names.values())
    if names and len(shape) > 1 and count in (shape[-1], shape[0]) and count != flat_size(space):
        axis = len(shape) - 1 if count == shape[-1] else 0
        low, high = (np.moveaxis(bound.reshape(shape), axis, 0).reshape(count, -1) for bound in (low, high))
        return "channel", _parts(env, group, "observation", names, low.min(1), high.max(1))
    return "index", _parts(env, group, "observation", names, low, high)


def action_parts(env: EnvDef, cfg: Config, group: str) -> tuple[str, list[Part]]:
    """What an agent's actions are.

    Returns:
        ``"action"`` for a Discrete space, whose choices are named, and else ``"index"``; and the parts.

    Raises:
        ValueError: the names do not add up to the actions.
    """
    space, names = env.action_space(cfg, group), env.action_names(cfg, group)
    if isinstance(space, spaces.Discrete):
        choices = np.arange(int(space.n), dtype=np.float64)
        return "action", _parts(env, group, "action", names, choices, choices)
    return "index", _parts(env, group, "action", names, *_bounds(space))


def _bounds(space: spaces.Space[Any]) -> tuple[Any, Any]:
    if isinstance(space, spaces.Box):
        return np.ravel(space.low).astype(np.float64), np.ravel(space.high).astype(np.float64)
    if isinstance(space, spaces.MultiDiscrete):
        high = np.ravel(space.nvec).astype(np.float64) - 1
    else:
        assert isinstance(space, spaces.Discrete)
        high = np.array([float(space.n) - 1])
    return np.zeros_like(high), high


def _parts(env: EnvDef, group: str, kind: str, names: Mapping[str, int], low: Any, high: Any) -> list[Part]:
    if not names:  # neighbours with the same range share a row
        edges = [k for k in range(len(low)) if k == 0 or (low[k], high[k]) != (low[k - 1], high[k - 1])]
        counts = [("", b - a) for a, b in zip(edges, [*edges[1:], len(low)], strict=True)]
    else:
        counts = [*names.items()]
    if sum(count for _, count in counts) != len(low) or any(count < 1 for _, count in counts):
        raise ValueError(
            f"{env.id}: the names of {kind}s of {group!r} are for {sum(count for _, count in counts)} numbers, "
            f"but the space has {len(low)}."
        )
    out, first = [], 0
    for name, count in counts:
        part = slice(first, first + count)
        out.append(Part(first, first + count - 1, name, float(low[part].min()), float(high[part].max())))
        first += count
    return out


def links(env: EnvDef) -> dict[str, str]:
    """A game's links, its own before those of its base classes."""
    found: dict[str, str] = {}
    for cls in type(env).__mro__:
        found = {**found, **{k: v for k, v in vars(cls).get("links", {}).items() if k not in found}}
    return found
