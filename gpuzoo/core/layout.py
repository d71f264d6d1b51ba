"""How the spaces and fields that a game declares lie in arrays."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from gpuzoo.core.definition import C_TYPES, Config, Entities, EnvDef, Field
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.values import config_types

_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_NUMBERED = re.compile(r"_\d+$")
_CONSTANT = re.compile(r"^[A-Z][A-Z0-9_]*$")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the spaces of all groups lie in one array per kind: the facts that code generation and adapters share.

    Attributes:
        groups: agents of each group, in order.
        first: index of each group's first agent.
        agents: number of agents of one env.
        observers: rows of observations and action masks of one env: one for each agent, or 1, of the agent to move.
        observation_spaces: one agent's observation, by group.
        action_spaces: one agent's action, by group.
        observation_size: elements of the longest flat observation; shorter ones are padded with zeros.
        observation_dtype: dtype of all observations.
        action_size: elements of the longest flat action.
        action_dtype: int32, or float32 for Box actions.
        mask_size: entries of the longest action mask (0 without masks).
        state_space: of the game's own global state, or None.
        entities: between which one agent chooses, by group, or None.
        action_cells: cell and kind of each action, int64 (actions, 2), by group, or None; see `EnvDef.action_cells`.
    """

    groups: dict[str, int]
    first: dict[str, int]
    agents: int
    observers: int
    observation_spaces: dict[str, spaces.Space[Any]]
    action_spaces: dict[str, spaces.Space[Any]]
    observation_size: int
    observation_dtype: str
    action_size: int
    action_dtype: str
    mask_size: int
    state_space: spaces.Box | None
    entities: dict[str, Entities | None]
    action_cells: dict[str, NDArray[np.int64] | None] = dataclasses.field(compare=False)

    def agent_names(self) -> list[str]:
        """Names as PettingZoo wants them: ``tagger_0``, ``tagger_1``, ``runner_0``."""
        own = {group for group, count in self.groups.items() if count == 1 and _NUMBERED.search(group)}
        names = ([g] if g in own else [f"{g}_{k}" for k in range(n)] for g, n in self.groups.items())
        return [name for of_group in names for name in of_group]

    def group_of(self, agent: int) -> str:
        """The group of the agent with this index."""
        return next(g for g, n in self.groups.items() if self.first[g] <= agent < self.first[g] + n)


@dataclasses.dataclass(frozen=True, eq=False)
class Shapes:
    """Names, shapes and dtypes of the arrays of a batch. Equal only to itself."""

    names: tuple[str, ...]
    shapes: tuple[tuple[tuple[int, ...], str], ...]


def choices(space: spaces.Space[Any]) -> list[int]:
    """Number of choices of each component of a Discrete or MultiDiscrete space; empty for a Box."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in np.ravel(space.nvec)]
    return []


def flat_size(space: spaces.Space[Any]) -> int:
    """Elements of one sample: 1 for a Discrete space."""
    return math.prod(space.shape or ())


def _in_32_bits(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """A MultiDiscrete space of int32, the dtype of such observations: PettingZoo's tests want the space's own."""
    if isinstance(space, spaces.MultiDiscrete) and space.dtype != np.int32:
        return spaces.MultiDiscrete(space.nvec, dtype=np.int32, start=space.start)
    return space


def layout(env: EnvDef, cfg: Config) -> Layout:
    """Derives the layout of the arrays from the declared agents and spaces, and checks the declaration.

    Raises:
        ValueError: a declaration that breaks a rule of `EnvDef`, with the rule.
    """
    name = type(env).__name__
    groups = env.agents(cfg)
    for group, count in groups.items():
        if not _NAME.match(group) or count < 1:
            raise ValueError(f"{name}: group {group!r} with {count} agents: want a lower-case name and at least one.")
    observation_spaces = {g: _in_32_bits(env.observation_space(cfg, g)) for g in groups}
    action_spaces = {g: env.action_space(cfg, g) for g in groups}
    dtypes, kinds = set(), set()
    for space in observation_spaces.values():
        if not isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)):
            raise ValueError(f"{name}: observations must be Box, Discrete or MultiDiscrete, not {space}.")
        dtypes.add(str(space.dtype) if isinstance(space, spaces.Box) else "int32")
    for space in action_spaces.values():
        if isinstance(space, spaces.Box):
            if not space.is_bounded():
                raise ValueError(f"{name}: a Box action space must be bounded, {space} is not.")
            kinds.add("float32")
        elif isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
            if np.any(getattr(space, "start", 0)):
                raise ValueError(f"{name}: a Discrete action space must start at 0.")
            kinds.add("int32")
        else:
            raise ValueError(f"{name}: actions must be Discrete, MultiDiscrete or Box, not {space}.")
    if len(dtypes) != 1 or not dtypes <= set(C_TYPES):
        raise ValueError(f"{name}: all observations must share one dtype of {', '.join(C_TYPES)}, not {dtypes}.")
    if len(kinds) != 1:
        raise ValueError(f"{name}: the actions of all groups must be discrete, or those of all groups continuous.")
    first, total = {}, 0
    for group, count in groups.items():
        first[group] = total
        total += count
    state = env.state_space(cfg)
    if state is not None and (not isinstance(state, spaces.Box) or str(state.dtype) not in C_TYPES):
        raise ValueError(f"{name}: state_space must be a Box of {', '.join(C_TYPES)}, or None, not {state}.")
    if env.action_mask and kinds != {"int32"}:
        raise ValueError(f"{name}: action masks need discrete actions.")
    if env.chooses and not env.action_mask:
        raise ValueError(f"{name}: only games with action masks choose actions by rules.")
    lay = Layout(
        groups=dict(groups),
        first=first,
        agents=total,
        observers=total,
        observation_spaces=observation_spaces,
        action_spaces=action_spaces,
        observation_size=max(1, *(flat_size(s) for s in observation_spaces.values())),
        observation_dtype=dtypes.pop(),
        action_size=max(1, *(flat_size(s) for s in action_spaces.values())),
        action_dtype=kinds.pop(),
        mask_size=max(sum(choices(s)) for s in action_spaces.values()) if env.action_mask else 0,
        state_space=state,
        entities={g: env.entities(cfg, g) for g in groups},
        action_cells={
            g: _action_cells(name, env.action_cells(cfg, g), observation_spaces[g], action_spaces[g]) for g in groups
        },
    )
    names = lay.agent_names()
    if len({*names}) < total:
        raise ValueError(f"{name}: two agents would have the same name: {', '.join(names)}.")
    return lay


def of_mover(env: EnvDef, lay: Layout) -> Layout:
    """The layout with one row per env, of the agent to move.

    Raises:
        ValueError: there is no such agent, or agents have unlike spaces.
    """
    if env.turn is None or lay.agents == 1:
        raise ValueError(f"{env.id}: agents do not move in turn, so observers must be 'all', not 'mover'.")
    first, *others = zip(lay.observation_spaces.values(), lay.action_spaces.values(), strict=True)
    if any(other != first for other in others):
        raise ValueError(f"{env.id}: its agents have unlike spaces, so observers must be 'all', not 'mover'.")
    return dataclasses.replace(lay, observers=1)


def _action_cells(
    name: str, given: tuple[ArrayLike, ArrayLike] | None, seen: spaces.Space[Any], action: spaces.Space[Any]
) -> NDArray[np.int64] | None:
    if given is None:
        return None
    shape = seen.shape or ()
    if len(shape) not in (2, 3) or not isinstance(action, spaces.Discrete):
        raise ValueError(
            f"{name}: action_cells are for observations (rows, columns) or (rows, columns, channels) and Discrete "
            f"actions, not for {seen} and {action}."
        )
    cells = np.stack(np.broadcast_arrays(*given), 1).astype(np.int64)
    placed = cells[cells[:, 0] >= 0]
    fits = len(cells) == action.n and cells[:, 0].max() < shape[0] * shape[1] and cells[:, 1].min() >= 0
    if not fits or len(np.unique(placed, axis=0)) < len(placed):
        raise ValueError(
            f"{name}: action_cells must give each of the {action.n} actions one of the {shape[0] * shape[1]} cells, or "
            "-1, and no two actions the same cell and kind."
        )
    return cells


def resolve_constants(env: EnvDef, cfg: Config) -> dict[str, int]:
    """The game's own constants.

    Raises:
        ValueError: a bad name, or a value that is no 32-bit integer.
    """
    out = env.constants(cfg)
    for name, value in out.items():
        if not _CONSTANT.match(name):
            raise ValueError(f"{type(env).__name__}: the name of the constant {name!r} must be upper-case.")
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or abs(value) >= 2**31:
            raise ValueError(f"{type(env).__name__}: the constant {name} must be a 32-bit integer, not {value!r}.")
    return {name: int(value) for name, value in out.items()}


def resolve_fields(env: EnvDef, cfg: Config, lay: Layout) -> dict[str, Field]:
    """The fields with numbers for the names of sizes.

    Raises:
        ValueError: a bad name, or a size that does not exist.
    """
    sizes = {f"{g}s": n for g, n in lay.groups.items()} | {"agents": lay.agents}  # all, where a group is called agent
    sizes |= {n: getattr(cfg, n) for n, kind in config_types(env.Config).items() if kind is int}
    sizes |= resolve_constants(env, cfg)
    out = {}
    for name, field in env.fields(cfg).items():
        if not _NAME.match(name):
            raise ValueError(f"{type(env).__name__}: field name {name!r} must be lower-case.")
        shape = []
        for dim in field.shape:
            if isinstance(dim, str) and dim not in sizes:
                raise ValueError(unknown(f"{type(env).__name__}: field {name} has no size", dim, sizes))
            shape.append(sizes[dim] if isinstance(dim, str) else int(dim))
        out[name] = dataclasses.replace(field, shape=tuple(shape))
    return out
