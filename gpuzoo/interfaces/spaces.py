"""Spaces of the interfaces, derived from a game's declared spaces."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.layout import Layout, choices, flat_size


def with_mask(space: spaces.Space[Any], action_space: spaces.Space[Any]) -> spaces.Dict:
    """PettingZoo's form of an observation with an action mask: ``{"observation", "action_mask"}``."""
    mask = spaces.Box(0, 1, (sum(choices(action_space)),), np.int8)
    return spaces.Dict({"observation": space, "action_mask": mask})


def agent_observation_space(layout: Layout, group: str) -> spaces.Space[Any]:
    """The observation space of one agent of a group, with its mask if the game has masks."""
    space = layout.observation_spaces[group]
    return with_mask(space, layout.action_spaces[group]) if layout.mask_size else space


def plain_space(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space of an observation without its mask."""
    return space["observation"] if isinstance(space, spaces.Dict) else space


def converted_dtype(layout: Layout, space: spaces.Space[Any]) -> Any:
    """The dtype of an observation space where the simulator's is another one (int32 for Discrete's int64), or None."""
    dtype = plain_space(space).dtype
    return None if dtype == np.dtype(layout.observation_dtype) else dtype


def common_spaces(layout: Layout, groups: list[str]) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """Observation and action space that fit every agent of some groups.

    Groups of equal spaces keep them. Otherwise observations are flat and padded with zeros to the longest, Discrete
    actions have the largest number of choices (the excess is replaced by the game's `invalid_action`), and the
    components of MultiDiscrete and Box actions are as many as the longest has (the excess is ignored).
    """
    observations = [layout.observation_spaces[g] for g in groups]
    actions = [layout.action_spaces[g] for g in groups]
    observation, action = observations[0], actions[0]
    if any(s != observation for s in observations[1:]):
        size = max(flat_size(s) for s in observations)
        low, high = np.zeros((2, size), layout.observation_dtype)
        for space in observations:
            n = flat_size(space)
            bounds = (
                (np.ravel(space.low), np.ravel(space.high))
                if isinstance(space, spaces.Box)
                else (np.zeros(n), np.array(choices(space)) - 1)
            )
            low[:n], high[:n] = np.minimum(low[:n], bounds[0]), np.maximum(high[:n], bounds[1])
        observation = spaces.Box(low, high, dtype=low.dtype.type)
    if any(s != action for s in actions[1:]):
        size = max(flat_size(s) for s in actions)
        if layout.action_dtype == "float32":
            low, high = np.zeros((2, size), np.float32)
            for space in actions:
                assert isinstance(space, spaces.Box)
                n = flat_size(space)
                low[:n] = np.minimum(low[:n], np.ravel(space.low))
                high[:n] = np.maximum(high[:n], np.ravel(space.high))
            action = spaces.Box(low, high, dtype=np.float32)
        else:
            padded = [choices(s) + [1] * (size - len(choices(s))) for s in actions]
            nvec = np.max(padded, axis=0)
            one = all(isinstance(s, spaces.Discrete) for s in actions)
            action = spaces.Discrete(int(nvec[0])) if one else spaces.MultiDiscrete(nvec)
    return (with_mask(observation, action) if layout.mask_size else observation), action
