"""Actions on their way into the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.tensors import as_tensor


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
        self._floats = simulator.layout.action_dtype == "float32"
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
            else:
                with self._backend.ordered():
                    self._target[...] = self._xp.asarray(actions).reshape(self._part_shape)
            return
        if actions.dtype.is_floating_point > self._floats or str(actions.dtype) == "torch.bool":
            self._refuse(actions.dtype)
        if self._tensor is None:
            self._tensor = as_tensor(self._target)
        self._tensor.copy_(actions.detach().reshape(self._part_shape))

    def _check_width(self, actions: Any) -> None:
        if int(actions.max()) >= 2**31 or int(actions.min()) < -(2**31):
            raise ValueError(f"{self._what} must be in {self._space}, not beyond 32 bits.")

    def _refuse(self, dtype: Any) -> None:
        one, many = ("a number", "numbers") if self._floats else ("an integer", "integers")
        wanted = many if self._shape else one
        raise TypeError(f"{self._what} must be {wanted} in {self._space}, not {dtype}.")
