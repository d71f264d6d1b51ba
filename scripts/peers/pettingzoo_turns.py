"""A Python env of PettingZoo's turn-based interface, one by one, and legal moves at random; the id is its module."""

from __future__ import annotations

import importlib
import random

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("PettingZoo", original=True, one_core=True)


def peer(game: Game) -> Peer:
    import numpy as np

    def start(case: Case) -> Work:
        env = importlib.import_module(game["id"]).raw_env(**game["config"])
        env.reset(seed=0)

        def work() -> int:
            for _ in range(DRAWN):
                observation, _, over, cut, _ = env.last()
                if over or cut:
                    env.reset()
                    observation = env.last()[0]
                env.step(random.choice(np.flatnonzero(observation["action_mask"])))
            return DRAWN

        return work

    return [["step", 1]], start
