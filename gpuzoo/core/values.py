"""Values of a game's parameters: their types, and whether they are in range."""

from __future__ import annotations

import dataclasses
import typing
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gpuzoo.core.definition import Config, EnvDef

_LARGEST = float(np.finfo(np.float32).max)
_TYPES: dict[type[Config], dict[str, Any]] = {}


def config_types(config: type[Config]) -> dict[str, Any]:
    """Annotated type of each field of a ``Config``. The dictionary is shared: do not change it."""
    if config in _TYPES:
        return _TYPES[config]
    hints = typing.get_type_hints(config)
    return _TYPES.setdefault(config, {f.name: hints[f.name] for f in dataclasses.fields(config)})


def checked(owner: str, field: dataclasses.Field[Any], kind: Any, value: Any) -> Any:
    """A value of a parameter of a type, in this type; messages call its game ``owner``.

    Raises:
        TypeError: another type.
        ValueError: out of range, infinite or not a number.
    """
    name = f"{owner}: {field.name}"
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.")
        return value
    if kind is bool:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be a bool, not {value!r}.")
        return bool(value)
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be an int, not {value!r}.")
        value = int(value)
    elif kind is float:
        if isinstance(value, (bool, str)) or not np.isscalar(value) or not np.isreal(value):
            raise TypeError(f"{name} must be a float, not {value!r}.")
        value = float(typing.cast(float, value))
    elif kind is str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a str, not {value!r}.")
        return value
    else:
        raise TypeError(f"{name}: a Config holds int, bool, float and strings, not {kind!r}.")
    low, high = field.metadata.get("low"), field.metadata.get("high")
    finite = kind is int or abs(value) <= _LARGEST
    if not (low is None or value >= low) or not (high is None or value <= high) or not finite:
        bounds = [f"{word} {bound}" for word, bound in (("at least", low), ("at most", high)) if bound is not None]
        if not finite and len(bounds) < 2:
            bounds.append("finite in float32")
        raise ValueError(f"{name} must be {' and '.join(bounds)}, not {value!r}.")
    return value


def checked_value(env: EnvDef, name: str, value: Any) -> Any:
    """A value of a parameter, in the type of the parameter.

    Raises:
        TypeError: another type.
        ValueError: out of range, infinite or not a number.
    """
    field = next(f for f in dataclasses.fields(env.Config) if f.name == name)
    return checked(env.id, field, config_types(env.Config)[name], value)


def checked_values(env: EnvDef, name: str, values: Any) -> NDArray[np.float32]:
    """Values of a float parameter as an array, each checked by itself.

    Raises:
        ValueError: one is out of range, infinite or not a number.
    """
    with np.errstate(over="ignore"):  # what overflows becomes infinite, which is refused
        array = np.asarray(values, np.float32)
    for bound in (array.min(), array.max()) if array.size else ():  # NaN is both
        checked_value(env, name, float(bound))
    return array


def check_ranges(env: EnvDef, cfg: Any) -> None:
    """Checks the ranges among the parameters, which are two numbers each: ``NAME_low`` and ``NAME_high``.

    Raises:
        ValueError: the lower one is above the other.
    """
    for name in env.Config.__dataclass_fields__:
        if name.endswith("_low"):
            low, high = getattr(cfg, name), getattr(cfg, other := f"{name.removesuffix('_low')}_high")
            if low > high:
                raise ValueError(f"{env.id}: {name} must not be above {other}: {low} > {high}.")
