"""Calls behind each other without Python in between: on a CPU what a CUDA graph is on a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.core.memory import Outputs
from gpuzoo.core.simulator import Simulator

from .native import unit
from .units import Call, Words, entry, words_of

SLICE = 100_000_000  # nanoseconds after which a plan looks for signals, such as that of Ctrl-C


class Plan:
    """Prepared calls, in the order in which they were added."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._calls: list[Call] = []
        self._run: tuple[Call, Words] | None = None

    def add(self, call: Call, offset: int = 0) -> None:
        """Adds a call of a kernel that was prepared for the CPU, with its offset."""
        self._entries += [*entry(call), offset]
        self._calls.append(call)
        self._run = None

    def run(self) -> None:
        """Makes the calls. Other threads of Python run meanwhile; Ctrl-C is heard between two slices of time."""
        if self._run is None:
            entries = (ctypes.c_longlong * len(self._entries))(*self._entries)
            call = Call(unit().bind("run", [ctypes.addressof(entries), len(self._calls), 0]), entries)
            self._run = call, words_of(call)
        call, words = self._run
        words[2] = 0
        while words[2] < len(self._calls):
            call(SLICE)


def env_step(simulator: Simulator, outputs: Outputs) -> Call | None:
    """A step of all envs into these outputs; None if the simulator's backend is not the CPU's.

    It checks nothing: `Simulator.check_usable` is for whoever runs it.
    """
    if type(simulator.backend) is not CpuBackend or simulator.debug:
        return None
    kernels: Any = simulator._kernels
    words = [kernels.address("step"), outputs.store, simulator.num_envs, simulator.backend.threads]
    return Call(unit().bind("env_step", words), (simulator, outputs))
