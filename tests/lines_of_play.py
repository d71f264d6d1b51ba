"""Counts lines of play of games for two (perft): every legal move of every position, to a depth."""

from __future__ import annotations

import numpy as np

from gpuzoo.core.simulator import Simulator


def after_every_move(s: Simulator) -> Simulator:
    """A batch with an env for each legal move of each env of `s`, after that move."""
    envs, actions = s.arrays["action_mask"][np.arange(s.num_envs), s.arrays["to_move"]].nonzero()
    after = Simulator(s.env, len(envs), device="cpu", autoreset_mode="disabled")
    after.reset(seed=0)
    after.set_state({key: value[envs] for key, value in s.state().items()})
    after.arrays["action"][...] = actions[:, None, None]
    after.step()
    return after


def counts(s: Simulator, depth: int) -> list[int]:
    """How many lines of 1, 2, ..., `depth` moves begin in the positions of `s`. The last move is counted, not made."""
    found = []
    for k in range(depth):
        s = after_every_move(s) if k else s
        found.append(int(s.arrays["action_mask"][np.arange(s.num_envs), s.arrays["to_move"]].sum()))
    return found
