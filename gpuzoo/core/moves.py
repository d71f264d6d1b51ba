"""Copies of arrays on a GPU by a kernel of its own. CuPy would compile one for each kind of copy at its first use."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from gpuzoo.core.backend import Backend, Unit
from gpuzoo.core.headers import DEVICE

COPY, IS_ZERO, OR = range(3)  #: the enum Way of moves.cuh
_KINDS = {"f": 0, "i": 1, "u": 2, "b": 2}  #: its enum Kind
_AXES = 4


def code() -> str:
    """The translation unit."""
    texts = [(DEVICE / name).read_text(encoding="utf-8") for name in ("base.cuh", "moves.cuh")]
    return "\n".join(["#define LANES 1", *texts])


class Moves:
    """Copies between arrays of any strides.

    Args:
        backend: of the GPU.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @functools.cached_property
    def _unit(self) -> Unit:
        return self._backend.compile_unit(code(), "moves", ("move",))

    def __call__(self, to: Any, source: Any, way: int = COPY, to_envs: Any = None, source_envs: Any = None) -> None:
        """Writes what ``source`` has into ``to``, in the dtype of ``to``.

        Args:
            to: an array of any strides.
            source: an array of the same shape, but for the first axis where envs are chosen.
            way: `COPY`; `IS_ZERO`: whether a number is 0; `OR`: true where it is not 0, and what was there elsewhere.
            to_envs: places along the first axis of ``to``, int64 indices on the device; None for all.
            source_envs: likewise.
        """
        shape = (len(to) if to_envs is None else len(to_envs), *to.shape[1:])
        sizes, *strides = _axes(shape, (to.strides, source.strides))
        words, address = [math.prod(shape), *sizes[1:], way], self._backend.address
        for array, envs, steps in zip((to, source), (to_envs, source_envs), strides, strict=True):
            words += [address(array), *steps, _KINDS[array.dtype.kind], array.itemsize]
            words += [0 if envs is None else address(envs)]
        self._unit.bind("move", words)(0)


def _axes(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[list[int]]:
    """Four axes with the same numbers in the same order: their sizes, and the strides of each array.

    Neighbours that are like one axis in memory become one. The first stays, as envs may be chosen along it.
    """
    first, *others = ([size, *steps] for size, *steps in zip(shape, *strides, strict=True))
    found: list[list[int]] = []
    for size, *steps in others:
        if found and found[-1][1:] == [step * size for step in steps]:
            found[-1] = [found[-1][0] * size, *steps]
        elif size != 1:
            found.append([size, *steps])
    assert len(found) < _AXES, f"an array of {1 + len(found)} axes that are apart in memory"
    found += [[1, *[0] * len(strides)]] * (_AXES - 1 - len(found))
    return [list(column) for column in zip(first, *found, strict=True)]
