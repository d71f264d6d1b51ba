"""Run-time parameters: the spaces that hold for all their values, and changes of them, checked before they are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.configuration import PerEnv, check_relations
from gpuzoo.core.definition import Config, EnvDef
from gpuzoo.core.host import to_host
from gpuzoo.core.layout import Layout, layout
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.uniform import Uniform, extremes
from gpuzoo.core.values import checked_value, checked_values, config_types

Values = Mapping[str, NDArray[np.float32]]


def layout_of_all(env: EnvDef, cfg: Config, per_env: PerEnv) -> Layout:
    """The layout of a batch: its spaces hold the observations and actions of every env.

    A bound must rise or fall with a parameter, and may depend on three of those given per env: the spaces are looked at
    with the smallest and the largest values, and with one parameter at a time at its other end.

    Raises:
        ValueError: an env's values give no space, or a space's shape or number of choices depends on a parameter given
            per env.
    """
    low = {name: extremes(values)[0] for name, values in per_env.items()}
    high = {name: extremes(values)[1] for name, values in per_env.items()}
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
    if refused:
        check_relations(env, cfg, per_env, check=lambda own: layout(env, own))
    if not found:
        raise refused[0]
    every = [_named(lay) for lay in found]
    union = {name: _union(f"{env.id}: {name}", [named.get(name) for named in every]) for name in every[0]}
    return dataclasses.replace(
        found[0],
        observation_spaces={group: union[f"the observation space of {group}"] for group in found[0].groups},
        action_spaces={group: union[f"the action space of {group}"] for group in found[0].groups},
        state_space=union.get("the state space"),  # type: ignore[arg-type]
    )


def _named(lay: Layout) -> dict[str, spaces.Space[Any]]:
    """All spaces of a layout, as messages call them."""
    out = {f"the observation space of {group}": space for group, space in lay.observation_spaces.items()}
    out |= {f"the action space of {group}": space for group, space in lay.action_spaces.items()}
    return out if lay.state_space is None else {**out, "the state space": lay.state_space}


def _union(what: str, every: list[spaces.Space[Any] | None]) -> spaces.Space[Any]:
    first = every[0]
    assert first is not None
    if all(space == first for space in every):
        return first
    boxes = [space for space in every if isinstance(space, spaces.Box) and space.shape == first.shape]
    if len(boxes) < len(every):
        raise ValueError(f"{what}: a parameter given per env changes more than its bounds.")
    low, high = np.min([box.low for box in boxes], 0), np.max([box.high for box in boxes], 0)
    return spaces.Box(low, high, dtype=boxes[0].dtype.type)


def _wider(new: spaces.Space[Any], made: spaces.Space[Any]) -> bool:
    """Whether a space has what another one has not, by more than the rounding of a parameter to float32."""
    if not (isinstance(new, spaces.Box) and isinstance(made, spaces.Box) and new.shape == made.shape):
        return new != made
    if new.dtype.kind != "f":
        return bool((new.low < made.low).any() or (new.high > made.high).any())
    low, high = np.nextafter(made.low, -np.inf), np.nextafter(made.high, np.inf)
    return bool((new.low < low).any() or (new.high > high).any())


@dataclasses.dataclass
class Change:
    """A change of a batch's parameters, checked.

    Attributes:
        cfg: the new configuration.
        values: of the parameters that change, shaped as the present ones.
        drawn: of parameters drawn for each episode those that get other ends.
    """

    cfg: Config
    values: dict[str, NDArray[np.float32]]
    drawn: dict[str, Uniform]


def changed_parameters(
    env: EnvDef,
    cfg: Config,
    made: Layout,
    current: Values,
    drawn: Mapping[str, Uniform],
    new: Mapping[str, Any],
    envs: NDArray[Any] | None,
    n: int,
    restored: bool = False,
) -> Change:
    """Checks a change of a batch's parameters.

    Args:
        env: the game.
        cfg: the present configuration.
        made: the layout that the batch was made with.
        current: all present values: (1,) where the envs share one, otherwise (n,).
        drawn: what each episode draws.
        new: a number for each parameter that changes, or an array with a value for each of ``envs``, or a `Uniform`.
        envs: indices of the envs concerned; None: all.
        n: number of envs.
        restored: whether they are the values of a snapshot, which stay until an episode draws anew.

    Raises:
        TypeError, ValueError: see `Simulator.set_params`.
    """
    changed: dict[str, NDArray[np.float32]] = {}
    ends: dict[str, Uniform] = {}
    plain: dict[str, float] = {}
    for name, value in new.items():
        if name not in current:
            if name in config_types(env.Config):
                raise TypeError(f"{env.id}: {name} is compiled into the kernel: make a new env to change it.")
            raise TypeError(unknown(f"{env.id} has no parameter", name, current))
        if hasattr(value, "shape") and not isinstance(value, np.generic):
            value = to_host(value)
        if isinstance(value, str) and ":" in value:
            value = Uniform.parse(value)
        if (name in drawn and not restored) or isinstance(value, Uniform):
            ends[name] = _new_ends(env, name, drawn.get(name), value, envs)
            if not isinstance(value, Uniform):
                changed[name] = np.full_like(current[name], ends[name].low)
            continue
        alone = np.ndim(value) == 0
        if alone:
            value = plain[name] = checked_value(env, name, value.item() if hasattr(value, "item") else value)
        host = checked_values(env, name, value)
        if current[name].shape == (1,) and name not in drawn:
            if envs is not None or host.size != 1:
                raise ValueError(
                    f"{env.id}: {name} is shared by all envs: give an array of length {n} when making the env to have "
                    "it per env."
                )
            changed[name] = host.reshape(1)
            plain.setdefault(name, float(host.reshape(())))
            continue
        plain.pop(name, None)
        count = n if envs is None else len(envs)
        if not alone and host.shape != (count,):
            raise ValueError(f"{env.id}: {name} must be a number or have shape ({count},), not {host.shape}.")
        changed[name] = current[name].copy()
        changed[name][slice(None) if envs is None else envs] = host
    per_env: dict[str, NDArray[np.float32] | Uniform] = {
        name: values for name, values in {**current, **changed}.items() if values.shape != (1,) or name in drawn
    }
    per_env |= {name: x for name, x in {**drawn, **ends}.items() if not restored or name not in changed}
    cfg = dataclasses.replace(cfg, **plain, **{name: extremes(values)[1] for name, values in per_env.items()})
    check_relations(env, cfg, per_env)
    have = _named(made)
    for name, space in _named(layout_of_all(env, cfg, per_env)).items():
        if _wider(space, have[name]):
            raise ValueError(
                f"{env.id}: with {', '.join(sorted(new))} so, {name} would be {space}, which goes beyond {have[name]}, "
                "and spaces stay as they were made: make a new env, with the values that need the widest space."
            )
    return Change(cfg, changed, ends)


def _new_ends(env: EnvDef, name: str, now: Uniform | None, value: Any, envs: NDArray[Any] | None) -> Uniform:
    """What episodes are to draw from; a number is all that they draw."""
    if now is None:
        raise ValueError(f"{env.id}: {name} is not drawn: give a gpuzoo.Uniform when making the env.")
    if envs is not None or (not isinstance(value, Uniform) and np.ndim(value)):
        raise ValueError(
            f"{env.id}: every episode draws {name}: give a gpuzoo.Uniform for all envs, or a number for all."
        )
    if isinstance(value, Uniform):
        found = value
    else:
        only = float(checked_value(env, name, value.item() if hasattr(value, "item") else value))
        found = Uniform(only, only, now.log)
    if found.log != now.log:
        raise ValueError(f"{env.id}: {name} is drawn with log={now.log}, which is compiled into the kernel.")
    checked_values(env, name, found.ends)
    return found
