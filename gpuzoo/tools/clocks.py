"""Clocks that take turns, so that a machine that slows down slows all contestants."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

REPEATS = 5


class Clock:
    """Times units of one piece of work, turn by turn.

    Args:
        work: does as many units as it is told, and waits until they are done.
        seconds: how long a turn should take.
    """

    def __init__(self, work: Callable[[int], None], seconds: float) -> None:
        self._work = work
        self.samples: list[float] = []
        work(1)
        count = 1
        while True:
            start = time.perf_counter()
            work(count)
            taken = time.perf_counter() - start
            if taken > seconds / 4 or taken * 4 > seconds:
                break
            count *= 2 if taken > seconds / 64 else 8
        self.count = max(1, round(count * seconds / taken))

    def turn(self) -> None:
        """Measures once more."""
        start = time.perf_counter()
        self._work(self.count)
        self.samples.append((time.perf_counter() - start) / self.count)

    @property
    def seconds(self) -> float:
        """Median seconds per unit."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """(Slowest - fastest turn) / median."""
        return (max(self.samples) - min(self.samples)) / self.seconds


def take_turns(clocks: Sequence[Clock], repeats: int = REPEATS) -> None:
    """Lets clocks measure in turn, so that drift of the machine is fair to all."""
    for _ in range(repeats):
        for clock in clocks:
            clock.turn()
