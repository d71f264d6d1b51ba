"""The infos of a game's own: numbers that its declaration computes from the state, on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import layout, resolve_fields
from gpuzoo.core.simulator import Simulator


class _Fields(Mapping[str, Any]):
    """The fields of a batch by name; only those that are read are fetched."""

    def __init__(self, simulator: Simulator, read: Callable[[Any], Any]) -> None:
        self._simulator, self._read = simulator, read

    def __getitem__(self, name: str) -> Any:
        if name not in self._simulator.program.fields:
            raise KeyError(name)
        return self._read(self._simulator.arrays[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._simulator.program.fields)

    def __len__(self) -> int:
        return len(self._simulator.program.fields)


def own_infos(simulator: Simulator, read: Callable[[Any], Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The infos of all envs, (num_envs, ...) each: of their state, and of their last step.

    Args:
        simulator: the batch.
        read: makes of an array of the device what the caller wants.
    """
    env, fields = simulator.env, _Fields(simulator, read)
    with simulator.backend.ordered():
        return dict(env.infos(simulator.cfg, fields)), dict(env.step_infos(simulator.cfg, fields))


def names_of(env: EnvDef) -> list[str]:
    """The names of a game's own infos, with its default parameters."""
    cfg = env.Config()
    fields = resolve_fields(env, cfg, layout(env, cfg))
    state = {name: np.ones((1, *field.sizes), field.dtype) for name, field in fields.items()}
    with np.errstate(all="ignore"):
        return [*env.infos(cfg, state), *env.step_infos(cfg, state)]


def infos_of_one(simulator: Simulator, stepped: bool) -> dict[str, Any]:
    """The infos of a simulator's only env, as numbers or arrays; those of the last step if there was one."""
    state, step = own_infos(simulator, simulator.backend.to_numpy)
    found = state | (step if stepped else {})
    return {name: x[0].copy() if x.ndim > 1 else x[0].item() for name, x in found.items()}
