"""Batches to which all happens that may happen to one."""

from __future__ import annotations

import numpy as np

from gpuzoo import Simulator


def advance(sim: Simulator, step: int, chance: np.random.Generator) -> None:
    """Steps some envs, all of them, or several times, by turns; and now and then begins some anew."""
    if step % 3 == 0:
        sim.step(chance.permutation(sim.num_envs)[: chance.integers(1, sim.num_envs)])
    elif step % 3 == 1:
        sim.step()
    else:
        sim.rollout(2)
    if step % 7 == 6:
        sim.reset(mask=chance.random(sim.num_envs) < 0.4)
