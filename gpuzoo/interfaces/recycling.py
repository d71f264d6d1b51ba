"""Output arrays that a caller may keep, without a copy and mostly without an allocation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpuzoo.core.simulator import Outputs, Simulator

Rows = tuple[Any, ...]


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
