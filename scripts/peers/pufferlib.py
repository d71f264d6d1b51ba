"""PufferLib. The id is a module and its class."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("PufferLib", one_core=True)


def peer(game: Game) -> Peer:
    import numpy as np

    sys.setdlopenflags(os.RTLD_LAZY)  # what is drawn with need not be there
    module, name = game["id"].split(":")
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # it leaves a link where it is imported
        kind = getattr(importlib.import_module(f"pufferlib.ocean.{module}"), name)
        os.chdir(here)

    def start(case: Case) -> Work:
        env = kind(num_envs=case[-1], render_mode=None, **game["config"])
        env.reset(0)
        rng = np.random.default_rng(0)
        space, agents = env.single_action_space, env.num_agents
        drawn = [rng.integers(0, space.n, agents).astype(env.actions.dtype) for _ in range(DRAWN)]

        def work() -> int:
            for actions in drawn:
                env.step(actions)
            return DRAWN * case[-1]

        return work

    return [["step", batch] for batch in (64, 512, 2048, 4096)], start
