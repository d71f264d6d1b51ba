"""What a game draws, for references that are fed with it: the engine's random numbers, written again in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.simulator import Simulator

LOW = np.uint64(0xFFFFFFFF)


def bits(sim: Simulator, draw: int, *, agent: int = -1, ahead: int = 1) -> NDArray[np.uint64]:
    """32 random bits for each env, as ``random_bits(e, agent, draw)`` gives them `ahead` steps from now."""
    arrays = sim.arrays
    seeds = np.asarray(arrays["seed"]).astype(np.uint64)
    counter = [
        np.full(len(seeds), draw >> 2, np.uint64),
        np.full(len(seeds), agent + 1, np.uint64),
        np.asarray(arrays["elapsed_steps"]).astype(np.uint64) + np.uint64(ahead),
        np.asarray(arrays["episode"]).astype(np.uint64),
    ]
    keys = [seeds & LOW, seeds >> np.uint64(32)]
    for _ in range(10):  # Philox4x32-10
        first, second = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (second >> np.uint64(32)) ^ counter[1] ^ keys[0], second & LOW,
            (first >> np.uint64(32)) ^ counter[3] ^ keys[1], first & LOW,
        ]  # fmt: skip
        keys = [keys[0] + np.uint64(0x9E3779B9) & LOW, keys[1] + np.uint64(0xBB67AE85) & LOW]
    return counter[draw & 3]


def units(sim: Simulator, draw: int, *, agent: int = -1, ahead: int = 1) -> NDArray[np.float64]:
    """Numbers in [0, 1): ``uniform(e, agent, draw, 0, 1)``."""
    return (bits(sim, draw, agent=agent, ahead=ahead) >> np.uint64(8)) / 2.0**24


def integers(sim: Simulator, draw: int, n: int, *, agent: int = -1, ahead: int = 1) -> NDArray[np.int64]:
    """Numbers in 0..n-1: ``random_int(e, agent, draw, n)``."""
    return (bits(sim, draw, agent=agent, ahead=ahead) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
