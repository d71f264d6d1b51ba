"""Harvest and Cleanup of Vinitsky et al.'s sequential_social_dilemma_games. PYTHONPATH names a checkout of it.

It imports gym, ray, OpenCV and matplotlib for spaces, base classes and windows alone. Empty modules stand in for those
that are not installed. The id is a module and its class; a new episode begins every 1,000 steps.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About(original=True, one_core=True)
LENGTH = 1000
OUTSIDE = {
    "gym": ("spaces",),
    "gym.spaces": ("Box", "Dict", "Discrete"),
    "ray": (),
    "ray.rllib": (),
    "ray.rllib.agents": (),
    "ray.rllib.agents.callbacks": ("DefaultCallbacks",),
    "ray.rllib.env": ("MultiAgentEnv",),
    "matplotlib": (),
    "matplotlib.pyplot": (),
    "cv2": (),
}


def stand_in() -> None:
    """Empty modules for those of OUTSIDE that are not installed, with empty classes."""
    missing = {name for name in OUTSIDE if "." not in name and importlib.util.find_spec(name) is None}
    for name, classes in OUTSIDE.items():
        if name.partition(".")[0] in missing:
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update({kind: type(kind, (), {}) for kind in classes})


def peer(game: Game) -> Peer:
    import numpy as np

    stand_in()
    module, _, name = game["id"].partition(":")
    kind = getattr(importlib.import_module(f"social_dilemmas.envs.{module}"), name)

    def start(case: Case) -> Work:
        env, taken = kind(**game["config"]), [0]
        env.reset()
        actions = len(env.all_actions)
        rng = np.random.default_rng(0)
        drawn = [{agent: int(rng.integers(actions)) for agent in env.agents} for _ in range(LENGTH)]

        def work() -> int:
            for _ in range(DRAWN):
                env.step(drawn[taken[0] % LENGTH])
                taken[0] += 1
                if taken[0] % LENGTH == 0:
                    env.reset()
            return DRAWN

        return work

    return [["step", 1]], start
