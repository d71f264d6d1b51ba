"""Arrays between a caller and the simulator: actions on their way in, and outputs that the caller may keep."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.host import to_host
from gpuzoo.core.layout import flat_size
from gpuzoo.core.memory import Outputs
from gpuzoo.core.simulator import Simulator
from gpuzoo.tensors import as_tensor

Rows = tuple[Any, ...]


def presented(simulator: Simulator, output: str, array: Any) -> Any:
    """An array of the device in the kind that was asked for, which shares its memory where it can."""
    if output == "numpy":
        return simulator.backend.to_numpy(array)
    return as_tensor(array) if output == "torch" else array


def by_row(simulator: Simulator, output: str, count: int, array: Any) -> Any:
    """A value of each env, as `presented` gives it, for each of its ``count`` rows, in memory of its own."""
    if output == "torch":
        return array.repeat_interleave(count, 0)
    if output == "numpy":
        return array.repeat(count, 0)
    xp, backend = simulator.xp, simulator.backend
    rows = xp.broadcast_to(array[:, None], (len(array), count, *array.shape[1:]))
    return backend.copied(rows).reshape(len(array) * count, *array.shape[1:])


class ActionSlot:
    """The place of some agents' actions in the simulator, which takes NumPy, CuPy, torch and lists.

    Args:
        simulator: whose actions.
        first: index of the first agent.
        count: number of agents.
        space: one agent's action space.
        shape: shape in which callers give the actions, e.g. ``(num_envs, count)`` for Discrete.
        what: what a message calls them, e.g. ``"actions of 4 envs"``.
    """

    def __init__(
        self, simulator: Simulator, first: int, count: int, space: spaces.Space[Any], shape: tuple[int, ...], what: str
    ) -> None:
        self._arguments = (simulator, first, count, space, shape, what)
        self._target = simulator.arrays["action"][:, first : first + count, : flat_size(space)]
        self._part_shape = tuple(self._target.shape)
        self._shape = tuple(shape)
        self._xp = simulator.xp
        self._backend = simulator.backend
        self._floats = simulator.program.layout.action_dtype == "float32"
        self._what = what
        self._space = space
        self._debug = simulator.debug
        self._tensor: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return ActionSlot, self._arguments  # a copy writes into the copy of the simulator

    def write(self, actions: Any) -> None:
        """Copies actions in, on the device, as int32 or float32: wider integers are taken modulo 2**32.

        Raises:
            ValueError: the wrong shape; with ``debug``, an integer beyond 32 bits.
            TypeError: the wrong kind of numbers.
        """
        kind = type(actions)
        if kind is not np.ndarray and not hasattr(actions, "shape"):
            actions = np.asarray(actions)
        if tuple(actions.shape) != self._shape:
            raise ValueError(f"{self._what} must have shape {self._shape}, not {tuple(actions.shape)}.")
        if kind is np.ndarray or not hasattr(actions, "data_ptr"):
            if actions.dtype.kind not in ("fiu" if self._floats else "iu"):
                self._refuse(actions.dtype)
            if self._debug and not self._floats and actions.size:
                self._check_width(actions)
            if self._xp is np and actions.dtype != np.float64:
                np.copyto(self._target, actions.reshape(self._part_shape), casting="unsafe")
            elif self._xp is np:
                with np.errstate(over="ignore"):  # what overflows becomes infinite, which the kernel clips
                    np.copyto(self._target, actions.reshape(self._part_shape), casting="unsafe")
            elif isinstance(actions, np.ndarray):
                with np.errstate(over="ignore"):
                    self._backend.upload(self._target, actions.reshape(self._part_shape))
            else:
                with self._backend.ordered():
                    given = self._xp.asarray(actions).reshape(self._part_shape)
                self._backend.write(self._target, given)
            return
        if actions.dtype.is_floating_point > self._floats or str(actions.dtype) == "torch.bool":
            self._refuse(actions.dtype)
        if self._tensor is None:
            self._tensor = as_tensor(self._target)
        self._tensor.copy_(actions.detach().reshape(self._part_shape))

    def _check_width(self, actions: Any) -> None:
        host = to_host(actions)
        most, least = int(host.max()), int(host.min())
        if most >= 2**31 or least < -(2**31):
            raise ValueError(f"{self._what} must be in {self._space}, not beyond 32 bits.")

    def _refuse(self, dtype: Any) -> None:
        one, many = ("a number", "numbers") if self._floats else ("an integer", "integers")
        wanted = many if self._shape else one
        raise TypeError(f"{self._what} must be {wanted} in {self._space}, not {dtype}.")


def _references(objects: Sequence[Any]) -> list[int]:
    return [sys.getrefcount(x) for x in objects]


class _Slot:
    """A set of arrays, the views of them that the caller gets, and how many references these have when nobody does."""

    def __init__(self, outputs: Outputs, rows: Rows) -> None:
        self.outputs, self.rows = outputs, rows
        self.objects = [*outputs.arrays.values(), *rows]
        self.idle = _references(self.objects)


class Recycler:
    """Sets of output arrays in turn. The kernel writes into them directly; nothing is copied.

    A set is used again only when the caller holds no reference to any of its arrays or to a view of them: every view,
    tensor and memoryview of an array keeps a reference to it.

    Args:
        simulator: whose outputs; on a CPU.
        names: the outputs, all of which every step writes in full.
        rows: makes what the caller gets from the arrays.
    """

    def __init__(self, simulator: Simulator, names: Sequence[str], rows: Callable[[Mapping[str, Any]], Rows]) -> None:
        self._simulator, self._names, self._rows = simulator, names, rows
        self._slots: list[_Slot] = []
        # Without the GIL other threads' references are not all counted: then every step gets new arrays.
        self._counted = getattr(sys, "_is_gil_enabled", lambda: True)()

    def __reduce__(self) -> tuple[Any, ...]:
        return Recycler, (self._simulator, self._names, self._rows)

    def next(self) -> Rows:
        """Makes the next launch write into arrays that nobody holds, and returns their rows."""
        for slot in self._slots:
            if _references(slot.objects) == slot.idle:
                break
        else:
            arrays = self._simulator.arrays
            zeros = self._simulator.backend.zeros
            outputs = self._simulator.new_outputs({n: zeros(arrays[n].shape, arrays[n].dtype) for n in self._names})
            slot = _Slot(outputs, self._rows(outputs.arrays))
            if self._counted and len(self._slots) < 8:
                self._slots.append(slot)
        self._simulator.use_outputs(slot.outputs)
        return slot.rows

    def keep(self) -> Rows:
        """As `next`, with the present contents: the next launch changes only some envs."""
        old = {name: self._simulator.arrays[name] for name in self._names}
        rows = self.next()
        for name, array in old.items():
            np.copyto(self._simulator.arrays[name], array)
        return rows
