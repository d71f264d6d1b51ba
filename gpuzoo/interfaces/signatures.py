"""Functions that take the arguments of another callable."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def arguments_of(other: Callable[P, Any]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Gives a function that passes its arguments on the signature of what it calls.

    Type checkers, editors and ``help`` then know each argument, which is declared in one place.

    Args:
        other: a class or function.
    """

    def decorate(function: Callable[..., T]) -> Callable[P, T]:
        returned = inspect.signature(function).return_annotation
        function.__signature__ = inspect.signature(other).replace(return_annotation=returned)  # type: ignore[attr-defined]
        return function

    return decorate
