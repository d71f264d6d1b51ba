"""The configuration of a batch: parameters that all envs share, and those that differ between envs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.uniform import Uniform
from gpuzoo.core.values import checked, checked_values, config_types

#: parameters that differ between envs: values given, or drawn for each episode
PerEnv = Mapping[str, NDArray[np.float32] | Uniform]


def check_relations(env: EnvDef, cfg: Config, per_env: PerEnv, check: Callable[[Config], object] | None = None) -> None:
    """Calls `EnvDef.check` with the configuration of each env.

    Envs that have the same values of all that `EnvDef.check` reads are checked once. Parameters that are drawn for each
    episode are checked at all combinations of their ends.

    Args:
        env: the game.
        cfg: the configuration; what it says of parameters given per env does not matter.
        per_env: those, (num_envs,) each, or drawn.
        check: what is called in place of `EnvDef.check`.

    Raises:
        ValueError: values do not fit together; the message names the first env concerned.
    """
    if check is None:
        if not per_env or type(env).check is EnvDef.check:
            return env.check(cfg)
        check = env.check
    drawn = {name: sorted({x.low, x.high}) for name, x in per_env.items() if isinstance(x, Uniform)}
    given = {name: x for name, x in per_env.items() if not isinstance(x, Uniform)}
    for corner in itertools.product(*drawn.values()):
        _check_each(check, dataclasses.replace(cfg, **dict(zip(drawn, corner, strict=True))), given)
    return None


def _check_each(check: Callable[[Config], object], cfg: Config, per_env: Mapping[str, NDArray[np.float32]]) -> None:
    if not per_env:
        check(cfg)
        return
    reads: set[str] = set()

    class Watched(type(cfg)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            reads.add(name)
            return super().__getattribute__(name)

    def shortest(value: Any) -> Any:  # a number given for one env is equal to the same number given for all
        return float(str(np.float32(value))) if isinstance(value, (float, np.float32)) else value

    fixed = {f.name: shortest(getattr(cfg, f.name)) for f in dataclasses.fields(cfg) if f.name not in per_env}
    names: list[str] = []
    while True:
        unlike = np.unique(np.stack([per_env[n] for n in names], 1), axis=0, return_index=True)[1] if names else [0]
        for k in sorted(map(int, unlike)):
            try:
                check(Watched(**fixed, **{name: shortest(values[k]) for name, values in per_env.items()}))
            except ValueError as error:
                raise ValueError(f"env {k}: {error}") from error
        found = sorted(reads & per_env.keys())
        if found == names:
            return
        names = found


def split_config(env: EnvDef, num_envs: int, values: Mapping[str, Any]) -> tuple[Config, PerEnv]:
    """Checks configuration values and separates those that differ between envs.

    Returns:
        The configuration, in which a per-env parameter stands with its largest value, and the per-env parameters as
        float32 arrays of shape ``(num_envs,)``, or as what each episode draws from.

    Raises:
        TypeError: an unknown parameter, or a value of the wrong type.
        ValueError: a value out of range, a per-env array of the wrong length, or values that do not fit together in one
            of the envs.
    """
    kinds = config_types(env.Config)
    fields = env.Config.__dataclass_fields__
    plain: dict[str, Any] = {}
    per_env: dict[str, NDArray[np.float32] | Uniform] = {}
    for name, value in env.parameters_of(values).items():
        if name not in fields:
            raise TypeError(unknown(f"{env.id} has no parameter", name, fields))
        if isinstance(value, str) and ":" in value and kinds[name] in (int, float):
            value = Uniform.parse(value)
        if isinstance(value, Uniform):
            if kinds[name] is not float:
                raise TypeError(f"{env.id}: {name} is compiled into the kernel, so episodes cannot draw it.")
            checked_values(env, name, value.ends)
            per_env[name] = value
            value = value.high
        elif kinds[name] is float and hasattr(value, "__len__") and not isinstance(value, str):
            array = checked_values(env, name, value)
            if array.shape != (num_envs,):
                raise ValueError(f"{env.id}: {name} given per env must have shape ({num_envs},), not {array.shape}.")
            per_env[name] = array
            value = float(array.max())
        plain[name] = checked(env.id, fields[name], kinds[name], value)
    cfg = env.Config(**plain)
    check_relations(env, cfg, per_env)
    return cfg, per_env
