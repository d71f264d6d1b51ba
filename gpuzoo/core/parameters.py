"""Run-time parameters: the spaces that hold for all their values, and changes of them, checked before they are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import (
    Config,
    EnvDef,
    Layout,
    check_relations,
    checked_value,
    checked_values,
    config_types,
    layout,
    unknown,
)

Values = Mapping[str, NDArray[np.float32]]


def layout_of_all(env: EnvDef, cfg: Config, per_env: Values) -> Layout:
    """The layout of a batch: its spaces hold the observations and actions of every env.

    A bound must rise or fall with a parameter, and may depend on three of those given per env: the spaces are looked at
    with the smallest and the largest values, and with one parameter at a time at its other end.

    Raises:
        ValueError: a space's shape or number of choices depends on a parameter given per env.
    """
    low = {name: float(values.min()) for name, values in per_env.items()}
    high = {name: float(values.max()) for name, values in per_env.items()}
    varied = [name for name in per_env if low[name] != high[name]]
    corners = [high, low] if varied else [high]
    corners += [{**one, name: other[name]} for one, other in ((high, low), (low, high)) for name in varied]
    found: list[Layout] = []
    refused: list[ValueError] = []
    for corner in corners:
        try:
            found.append(layout(env, dataclasses.replace(cfg, **corner)))
        except ValueError as error:  # perhaps its values do not fit together, and no env has them
            refused.append(error)
    if not found:
        raise refused[0]
    return dataclasses.replace(
        found[0],
        observation_spaces=_unions(env, [lay.observation_spaces for lay in found]),
        action_spaces=_unions(env, [lay.action_spaces for lay in found]),
    )


def _unions(env: EnvDef, found: list[dict[str, spaces.Space[Any]]]) -> dict[str, spaces.Space[Any]]:
    out = {}
    for group, first in found[0].items():
        every = [by_group[group] for by_group in found]
        if all(space == first for space in every):
            out[group] = first
            continue
        boxes = [space for space in every if isinstance(space, spaces.Box) and space.shape == first.shape]
        if len(boxes) < len(every):
            raise ValueError(f"{env.id}: a parameter given per env changes more than the bounds of a space of {group}.")
        low, high = np.min([box.low for box in boxes], 0), np.max([box.high for box in boxes], 0)
        out[group] = spaces.Box(low, high, dtype=boxes[0].dtype.type)
    return out


def _wider(new: spaces.Space[Any], made: spaces.Space[Any]) -> bool:
    """Whether a space has what another one has not, by more than the rounding of a parameter to float32."""
    if not (isinstance(new, spaces.Box) and isinstance(made, spaces.Box) and new.shape == made.shape):
        return new != made
    if new.dtype.kind != "f":
        return bool((new.low < made.low).any() or (new.high > made.high).any())
    low, high = np.nextafter(made.low, -np.inf), np.nextafter(made.high, np.inf)
    return bool((new.low < low).any() or (new.high > high).any())


def changed_parameters(
    env: EnvDef, cfg: Config, made: Layout, current: Values, new: Mapping[str, Any], envs: NDArray[Any] | None, n: int
) -> tuple[Config, dict[str, NDArray[np.float32]]]:
    """A change of a batch's parameters, checked.

    Args:
        env: the game.
        cfg: the present configuration.
        made: the layout that the batch was made with.
        current: all present values: (1,) where the envs share one, otherwise (n,).
        new: a number for each parameter that changes, or an array with a value for each of ``envs``.
        envs: indices of the envs concerned; None: all.
        n: number of envs.

    Returns:
        The new configuration, and the values of the parameters that change, shaped as the present ones.

    Raises:
        TypeError, ValueError: see `Simulator.set_params`.
    """
    count, plain, changed = n if envs is None else len(envs), {}, {}
    for name, value in new.items():
        if name not in current:
            if name in config_types(env.Config):
                raise TypeError(f"{env.id}: {name} is compiled into the kernel: make a new env to change it.")
            raise TypeError(unknown(f"{env.id} has no parameter", name, current))
        value = value.get() if hasattr(value, "get") else value
        alone = np.ndim(value) == 0
        if alone:
            value = plain[name] = checked_value(env, name, value.item() if hasattr(value, "item") else value)
        host = checked_values(env, name, value)
        if current[name].shape == (1,):
            if envs is not None or host.size != 1:
                raise ValueError(
                    f"{env.id}: {name} is shared by all envs: give an array of length {n} when making the env to have "
                    "it per env."
                )
            changed[name] = host.reshape(1)
            plain.setdefault(name, float(host.reshape(())))
            continue
        plain.pop(name, None)
        if not alone and host.shape != (count,):
            raise ValueError(f"{env.id}: {name} must be a number or have shape ({count},), not {host.shape}.")
        changed[name] = current[name].copy()
        changed[name][slice(None) if envs is None else envs] = host
    per_env = {name: values for name, values in {**current, **changed}.items() if values.shape != (1,)}
    cfg = dataclasses.replace(cfg, **plain, **{name: float(values.max()) for name, values in per_env.items()})
    check_relations(env, cfg, per_env)
    after = layout_of_all(env, cfg, per_env)
    for kind in ("observation", "action"):
        have, want = getattr(made, f"{kind}_spaces"), getattr(after, f"{kind}_spaces")
        for group, space in want.items():
            if _wider(space, have[group]):
                raise ValueError(
                    f"{env.id}: with {', '.join(sorted(new))} so, the {kind} space of {group} would be {space}, which "
                    f"goes beyond {have[group]}, and spaces stay as they were made: make a new env, with the values "
                    "that need the widest space."
                )
    return cfg, changed
