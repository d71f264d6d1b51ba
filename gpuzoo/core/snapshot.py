"""The complete state of some envs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gpuzoo.core.host import to_host


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The complete state of some envs. Their episodes continue from it with the same bits, on any device.

    Attributes:
        id: the game.
        constants: the compile-time part of its configuration.
        arrays: every field and engine array, with the envs along the first axis.
    """

    id: str
    constants: dict[str, Any]
    arrays: dict[str, Any]

    def __len__(self) -> int:
        return len(self.arrays["elapsed_steps"])

    def numpy(self) -> Snapshot:
        """A copy in host memory, which can be pickled and restored anywhere."""
        host = {name: np.array(to_host(array)) for name, array in self.arrays.items()}
        return dataclasses.replace(self, arrays=host)
