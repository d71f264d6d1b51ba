"""What all interfaces to a simulator share: copies, and parameters that are set or refused, but never just stored."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from gpuzoo.core.simulator import Simulator


class Interface:
    """A view of a simulator. Pickling and copying, deep or not, give an independent env in the same state.

    A game's parameters are no attributes of a batch: setting one raises AttributeError, and names what sets it.
    """

    simulator: Simulator
    #: what a copy has anew, and how it is made: windows, and caches of views of the simulator's memory
    _NOT_COPIED: ClassVar[dict[str, Callable[[], Any]]] = {}

    if not TYPE_CHECKING:  # else attributes would have no types

        def __setattr__(self, name: str, value: Any) -> None:
            if self._is_parameter(name) and not hasattr(type(self), name) and name not in vars(self):
                self._set_parameter(name, value)
            else:
                object.__setattr__(self, name, value)

    def _is_parameter(self, name: str) -> bool:
        try:  # not in vars(self): attributes are slower once it was asked for
            simulator = object.__getattribute__(self, "simulator")
        except AttributeError:
            return False
        return name in type(simulator.cfg).__dataclass_fields__

    def _set_parameter(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{name} is a parameter of {self.simulator.env.id}: set it with simulator.set_params({name}=...)."
        )

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: a picture of the envs, and a table of facts about them."""
        from gpuzoo.notebook import summary

        return summary(self)

    def __copy__(self) -> Interface:
        return copy.deepcopy(self)  # two views of one simulator would step it for each other, and close it

    def __getstate__(self) -> dict[str, Any]:
        self.simulator.check_usable()
        return {**vars(self), **{name: make() for name, make in self._NOT_COPIED.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


class OneEnv(Interface):
    """An interface to one env, whose parameters are its attributes: ``env.gravity = 5.0`` is `Simulator.set_params`.

    Batches do without, as Python looks up every attribute more slowly in a class that has ``__getattr__``.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if self._is_parameter(name):
                value = self.simulator.param(name)
                return value.item() if hasattr(value, "item") else value  # an array where it was given as one
            return object.__getattribute__(self, name)  # raises, with the message of a property if there is one

    def _set_parameter(self, name: str, value: Any) -> None:
        self.simulator.set_params(**{name: value})
