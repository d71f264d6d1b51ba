"""Agents by their names, for libraries that have a dictionary entry for each of them; what adapters share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout
from gpuzoo.interfaces.batch import BatchEnv


def batch_of(env: str | EnvDef | type[EnvDef], num_envs: int, adapter: str, **kwargs: Any) -> BatchEnv:
    """A batch in same-step mode of a game with several agents, whose arrays are the caller's own.

    Raises:
        TypeError: ``env`` is a ready environment, or an argument that the adapter gives itself.
        ValueError: the game has one agent, takes turns, or `BatchEnv` refuses an argument.
    """
    if not isinstance(env, (str, EnvDef, type)):
        raise TypeError(f"{adapter} makes its batch itself, from the id of a game or an EnvDef, not from {env!r}.")
    for name in ("autoreset_mode", "copy"):
        if name in kwargs:
            raise TypeError(f"{adapter} chooses {name} itself: leave it out, or use gpuzoo.make.")
    batch = BatchEnv(env, num_envs, autoreset_mode="same_step", copy=True, **kwargs)
    game = batch.simulator.env
    if game.single():
        batch.close()
        raise ValueError(f"{game.id} has one agent: use gpuzoo.make_vec, which {adapter.split('.')[0]} can wrap.")
    if game.turn is not None:
        batch.close()
        raise ValueError(f"{game.id} is played in turns, and {adapter} is for agents that act at the same time.")
    return batch


def by_agent(layout: Layout, by_group: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays (num_envs, agents of the group, ...) as (num_envs, ...) by agent; dictionaries of arrays likewise."""
    out: dict[str, Any] = {}
    for agent, (group, k) in places(layout).items():
        value = by_group[group]
        out[agent] = {n: x[:, k] for n, x in value.items()} if isinstance(value, dict) else value[:, k]
    return out


def places(layout: Layout) -> dict[str, tuple[str, int]]:
    """The group of each agent, and which of its agents it is."""
    names = layout.agent_names()
    return {names[layout.first[g] + k]: (g, k) for g, n in layout.groups.items() for k in range(n)}
