"""The infos of a game's own: numbers that its declaration computes from the state, on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import layout, resolve_fields
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.arrays import by_row, presented


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
        found = env.infos(simulator.cfg, fields), env.step_infos(simulator.cfg, fields)
        state, step = ({name: _as_by_torch(x) for name, x in infos.items()} for infos in found)
        return state, step


def _as_by_torch(array: Any) -> Any:
    """A quotient of integers is float64 by NumPy and CuPy, and float32 by torch."""
    return array.astype(np.float32) if array.dtype == np.float64 else array


class InfosByRow:
    """The infos of a game's own for each row of a batch, and in same-step mode those of last states.

    Args:
        output: the kind of arrays.
        count: rows of an env.
        replies: whether a step of the rows may be several steps of the simulator.
    """

    def __init__(self, output: str, count: int, replies: bool = False) -> None:
        self._output, self._count, self._replies = output, count, replies
        self.forget_last()

    def forget_last(self) -> None:
        """Before a step of the rows."""
        self._last: dict[str, Any] = {}
        self._ended: Any = np.False_

    def now(self, simulator: Simulator) -> tuple[dict[str, Any], dict[str, Any]]:
        """The infos of all rows: of their state, and of their last step, which mean nothing after a reset."""
        state, step = own_infos(simulator, lambda array: presented(simulator, self._output, array))
        return self._by_row(simulator, state), self._by_row(simulator, step)

    def _by_row(self, simulator: Simulator, own: Mapping[str, Any]) -> dict[str, Any]:
        return {name: by_row(simulator, self._output, self._count, x) for name, x in own.items()}

    def keep_last(self, simulator: Simulator) -> None:
        """Keeps the infos of last states; for `Simulator.between_episodes`."""
        state, step = self.now(simulator)
        last = state | step
        if self._replies:
            waiting = simulator.backend.to_numpy(simulator.arrays["waiting"]).astype(np.bool_).repeat(self._count)
            earlier = self._ended & ~waiting
            for name, x in self._last.items():
                self._copy(simulator, last[name], x, np.flatnonzero(earlier))
            self._ended = earlier | waiting
        self._last = last

    def last(self, now: dict[str, Any]) -> dict[str, Any]:
        """The infos of the last state of each row that is done after a step, and something else for the others.

        Args:
            now: the present infos, which are those of agents that are done while their env goes on.
        """
        return self._last or now

    def _copy(self, simulator: Simulator, to: Any, source: Any, rows: Any) -> None:
        if self._output == "cupy":
            with simulator.backend.ordered():
                where = simulator.xp.asarray(rows)
            simulator.backend.put(to, where, simulator.backend.take(source, where))
        else:
            to[rows] = source[rows]


def names_of(env: EnvDef, cfg: Any = None) -> list[str]:
    """The names of a game's own infos, with its default parameters or others."""
    cfg = env.Config() if cfg is None else cfg
    fields = resolve_fields(env, cfg, layout(env, cfg))
    state = {name: np.ones((1, *field.sizes), field.dtype) for name, field in fields.items()}
    with np.errstate(all="ignore"):
        return [*env.infos(cfg, state), *env.step_infos(cfg, state)]


def infos_of_one(simulator: Simulator, stepped: bool) -> dict[str, Any]:
    """The infos of a simulator's only env, as numbers or arrays; those of the last step if there was one."""
    state, step = own_infos(simulator, simulator.backend.to_numpy)
    found = state | (step if stepped else {})
    return {name: x[0].copy() if x.ndim > 1 else x[0].item() for name, x in found.items()}
