"""Read the recorded transitions of WarpDrive's tag games.  The layout: ``record_warpdrive.py``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Case:
    """One configuration of a game: ``config`` is the reference's keyword arguments."""

    name: str
    config: dict[str, Any]
    note: str
    arrays: dict[str, NDArray[Any]]

    def __getitem__(self, key: str) -> NDArray[Any]:
        return self.arrays[key]

    def __len__(self) -> int:
        """The number of transitions."""
        return len(self.arrays["t"])


def load(name: str) -> list[Case]:
    """All cases of ``"tag_gridworld"`` or ``"tag_continuous"``."""
    groups: dict[str, dict[str, NDArray[Any]]] = {}
    with np.load(Path(__file__).with_name(f"warpdrive_{name}.npz")) as file:
        for key in file.files:
            case, _, array = key.partition("/")
            groups.setdefault(case, {})[array] = file[key]
    return [
        Case(case, json.loads(str(arrays.pop("config"))), str(arrays.pop("note")), arrays)
        for case, arrays in groups.items()
    ]
