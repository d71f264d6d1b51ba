"""Parameters that are drawn anew for every episode."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Uniform:
    """A float parameter that every env draws anew at the beginning of each of its episodes (domain randomisation).

    ``gpuzoo.make_vec("CartPole-v1", 4096, gravity=gpuzoo.Uniform(5.0, 15.0))``

    Like all random numbers, the values follow from the env's seed and the number of the episode, so they are the same
    on every device. The kernel draws them, which costs no launch and no copy. Wherever a parameter is given as text,
    ``"5:15"`` (or ``"log:0.1:10"``) means the same.

    Args:
        low: the smallest value.
        high: the largest value.
        log: draw the logarithm uniformly, for a parameter that varies over orders of magnitude.

    Raises:
        ValueError: the ends are not finite or in the wrong order, or not positive with ``log``.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"the range {self} must have finite ends, the smaller one first.")
        if self.log and self.low <= 0:
            raise ValueError(f"the range {self} must have positive ends, since their logarithms are taken.")

    @classmethod
    def parse(cls, text: str) -> Uniform:
        """The range that ``LOW:HIGH`` or ``log:LOW:HIGH`` stands for.

        Raises:
            ValueError: another text, or as the constructor.
        """
        log, ends = text.startswith("log:"), text.removeprefix("log:").split(":")
        try:
            low, high = map(float, ends)
        except ValueError:
            raise ValueError(f"a range is LOW:HIGH or log:LOW:HIGH, not {text!r}.") from None
        return cls(low, high, log)

    def __str__(self) -> str:
        """As `parse` reads it."""
        return f"{'log:' * self.log}{self.low:g}:{self.high:g}"

    @property
    def ends(self) -> NDArray[np.float32]:
        """Both ends, as float32 (2,)."""
        return np.array([self.low, self.high], np.float32)


def extremes(values: NDArray[np.float32] | Uniform) -> tuple[float, float]:
    """The smallest and the largest value of a parameter that differs between envs."""
    ends = values.ends if isinstance(values, Uniform) else values
    return float(ends.min()), float(ends.max())
