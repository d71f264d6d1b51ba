"""What ``games_peers.py`` steps: a module for each library, with `ABOUT` and `peer(game)`.

`peer` gives the cases of a game and `start(case)`, which makes a batch and returns a function that makes some steps
of it and says how many env steps they were, and how many seconds of it do not count, if any: drawing legal actions in
Python takes longer than a step. Finished episodes start anew within them. A case has the batch size as its last entry.
A library is imported in these functions only, so that `ABOUT` can be read without it. A new library is a new module
here.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import time
from collections.abc import Callable
from typing import Any

Work = Callable[[], "int | tuple[int, float]"]
Case = list[Any]
Game = dict[str, Any]
Peer = tuple[list[Case], Callable[[Case], Work]]
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
DRAWN = 16  # random actions are drawn before, for so many steps, unless the library draws them in its own loop


@dataclasses.dataclass(frozen=True)
class About:
    """How a library is measured.

    title: its name in tables.
    original: the games' own package, in the interpreter of --originals.
    one_core: a process uses one core, so there are as many processes as cores.
    compiled_loop: it draws its actions and makes its steps in one compiled loop.
    """

    title: str = "the original"
    original: bool = False
    one_core: bool = False
    compiled_loop: bool = False


def module(library: str) -> Any:
    return importlib.import_module(f"{__name__}.{library}")


def libraries() -> dict[str, About]:
    """Every module here that has a library."""
    found = {info.name: module(info.name) for info in pkgutil.iter_modules(__path__)}
    return {name: found[name].ABOUT for name in found if hasattr(found[name], "ABOUT")}
