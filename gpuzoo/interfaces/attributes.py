"""Attributes of the envs of a batch, by the methods that Gymnasium's vector envs have for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuzoo.core.host import to_host
from gpuzoo.core.suggestions import unknown
from gpuzoo.interfaces.interface import Interface

#: of one env under this name, and of the batch under that one
_SINGLE = {"observation_space": "single_observation_space", "action_space": "single_action_space"}


class BatchAttributes(Interface):
    """`call`, `get_attr` and `set_attr` as ``SyncVectorEnv`` has them: a value for each of ``num_envs``."""

    num_envs: int

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A parameter or attribute of each of ``num_envs``, or what ``"render"`` returns for each.

        Raises:
            AttributeError: no such attribute, or another method: they are methods of the whole batch.
        """
        if name == "render":
            frames = self.render(*args, **kwargs)  # type: ignore[attr-defined]
            return (None,) * self.num_envs if frames is None else tuple(frames)
        if self._is_parameter(name):
            by_env = np.broadcast_to(self.simulator.param(name), self.simulator.num_envs)
            return tuple(by_env.repeat(self.num_envs // len(by_env)).tolist())
        value = getattr(self, _SINGLE.get(name, name))
        if callable(value) and not hasattr(value, "contains"):  # a space can be called too
            raise AttributeError(
                f"the envs of a batch have no method {name!r} of their own: only 'render' can be called for each; "
                f"call {name}() of the batch itself."
            )
        return (value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """As `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets a run-time parameter of the game.

        Args:
            name: of the parameter.
            values: one for all, or a sequence or array (num_envs,). The rows of one env share its parameters.

        Raises:
            AttributeError: the game has no such parameter.
            TypeError: it is compiled into the kernel.
            ValueError: out of range, the wrong number of values, unlike ones within an env, or unlike ones for a
                parameter that was not given per env when the batch was made.
        """
        sim = self.simulator
        if not self._is_parameter(name):
            raise AttributeError(unknown(f"{sim.env.id} has no parameter", name, type(sim.cfg).__dataclass_fields__))
        if np.ndim(values):
            by_row = to_host(values)
            if by_row.shape != (self.num_envs,):
                raise ValueError(f"{name} must be one value or {self.num_envs} of them, not {by_row.shape}.")
            by_env = by_row.reshape(sim.num_envs, -1)
            if (by_env != by_env[:, :1]).any():
                raise ValueError(f"{name} belongs to an env: its {by_env.shape[1]} rows must have the same value.")
            same = (by_row == by_row[0]).all()
            values = by_row[0].item() if same else by_env[:, 0]
        sim.set_params(**{name: values})
