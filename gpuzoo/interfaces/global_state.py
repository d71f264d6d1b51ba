"""The global state, as a central critic sees it: the game's own, or the observations of all agents together."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.layout import Layout, flat_size
from gpuzoo.core.simulator import Simulator


def global_state_space(layout: Layout) -> spaces.Box:
    """Space of one env's `global_state`."""
    if layout.state_space is not None:
        return layout.state_space
    low, high = [], []
    for group, count in layout.groups.items():
        space = layout.observation_spaces[group]
        n = flat_size(space)
        low += [np.ravel(space.low) if isinstance(space, spaces.Box) else np.zeros(n)] * count
        high += [np.ravel(space.high) if isinstance(space, spaces.Box) else np.full(n, 2.0**31 - 1)] * count
    return spaces.Box(np.concatenate(low).astype(np.float32), np.concatenate(high).astype(np.float32), dtype=np.float32)


def global_state(simulator: Simulator) -> Any:
    """The global state of each env on the device, (num_envs, *shape of `global_state_space`).

    A game's own state lies in memory that the next call writes again. Otherwise the observations of all agents follow
    each other, without padding, as float32.
    """
    layout = simulator.layout
    if layout.state_space is not None:
        return simulator.global_state()
    n, backend, seen = simulator.num_envs, simulator.backend, simulator.arrays["observation"]
    sizes = {g: (count, flat_size(layout.observation_spaces[g])) for g, count in layout.groups.items()}
    state, begin = backend.empty((n, sum(count * size for count, size in sizes.values())), "float32"), 0
    for group, (count, size) in sizes.items():
        place = state[:, begin : begin + count * size].reshape(n, count, size)
        first = layout.first[group]
        backend.write(place, seen[:, first : first + count, :size])
        begin += count * size
    return state
