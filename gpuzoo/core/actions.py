"""A check of actions on the host, for debugging: the kernels themselves replace what is illegal."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.layout import Layout, choices


def illegal_action(layout: Layout, actions: np.ndarray[Any, Any]) -> str:
    """Says which action of a batch is illegal, or nothing.

    Args:
        layout: the game's spaces.
        actions: ``(num_envs, agents, action_size)``.
    """
    for group, count in layout.groups.items():
        first, space = layout.first[group], layout.action_spaces[group]
        part = actions[:, first : first + count]
        if isinstance(space, spaces.Box):
            low, high = np.ravel(space.low), np.ravel(space.high)
            part = part[..., : low.size]
            bad = ~((part >= low) & (part <= high))
        else:
            sizes = np.array(choices(space))
            part = part[..., : sizes.size]
            bad = (part < 0) | (part >= sizes)
        if bad.any():
            env, agent, k = np.argwhere(bad)[0]
            return (
                f"action {part[env, agent, k]} of {group}_{agent} in env {env} is not in {space}; "
                "without debug=True it would have been replaced."
            )
    return ""
