"""`normal`, by a game whose reward is nothing else."""

from __future__ import annotations

import math

import numpy as np

from gpuzoo import Simulator, get


def test_normal_numbers():
    """Against the distribution function: Kolmogorov's statistic is above 1.95 in one of a thousand samples."""
    n, steps = 20_000, 9
    sim = Simulator(
        get("Catch-bsuite-v0"), n, device="cpu", autoreset_mode="disabled", reward_scale=0.0, noise_scale=1.0
    )
    sim.reset(seed=0)
    drawn = np.empty((steps, n))
    for k in range(steps):
        sim.step()
        drawn[k] = sim.arrays["reward"][:, 0]
    x = np.sort(drawn.ravel())
    below = np.array([math.erf(value / math.sqrt(2)) for value in x]) / 2 + 0.5
    rank = np.arange(len(x)) / len(x)
    assert abs(below - rank - 0.5 / len(x)).max() < 1.95 / math.sqrt(len(x))
    assert abs(x).max() < 5.8, "24 bits reach that far"
    assert (abs(np.corrcoef(drawn) - np.eye(steps)) < 5 / math.sqrt(n)).all()
