"""Which agents of which envs are the rows of a batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuzoo.core.configuration import split_config
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout, layout
from gpuzoo.core.suggestions import unknown


def layout_of(definition: EnvDef, kwargs: dict[str, Any]) -> Layout:
    """The layout of a game, whose agents are the same for all values that parameters have per env."""
    names = {f.name for f in dataclasses.fields(definition.Config)}
    many = {k for k, v in kwargs.items() if hasattr(v, "__len__") and not isinstance(v, (str, Mapping))}
    plain = {k: v[0] if k in many else v for k, v in kwargs.items() if k in names and (k not in many or len(v))}
    cfg, _ = split_config(definition, 1, plain)
    return layout(definition, cfg)


def rows_of(definition: EnvDef, layout: Layout, group: str | None) -> tuple[int, int, list[str]]:
    """First agent, number of agents, and groups of the rows.

    Raises:
        ValueError: there is no such group or agent.
    """
    if group is None:
        return 0, layout.agents, list(layout.groups)
    if group in layout.groups:
        return layout.first[group], layout.groups[group], [group]
    names = layout.agent_names()
    if group in names:
        index = names.index(group)
        return index, 1, [layout.group_of(index)]
    raise ValueError(unknown(f"{definition.id} has no group or agent", group, [*layout.groups, *names]))


def worlds_of(definition: EnvDef, num_envs: int, count: int) -> int:
    """The number of envs that have ``num_envs`` rows, of which each has ``count``.

    Raises:
        TypeError: no integer.
        ValueError: no multiple of ``count``, or less than 1.
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)):
        raise TypeError(f"num_envs must be an int, not {num_envs!r}.")
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, not {num_envs}.")
    if num_envs % count:
        below, above = num_envs // count * count, -(-num_envs // count) * count
        near = f"{below} or {above}" if below else str(above)
        raise ValueError(
            f"{definition.id} has {count} rows per env (one per agent), so num_envs must be a multiple of {count}, "
            f"not {num_envs}: take {near}, or gpuzoo.make_vec(..., num_worlds=...)."
        )
    return int(num_envs) // count
