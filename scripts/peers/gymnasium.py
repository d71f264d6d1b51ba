"""A Python env of Gymnasium's interface, one by one; the module that registers it stands before the id."""

from __future__ import annotations

import importlib

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About(original=True, one_core=True)


def peer(game: Game) -> Peer:
    import gymnasium

    module, _, name = game["id"].rpartition(":")
    if module:
        importlib.import_module(module)

    def start(case: Case) -> Work:
        env = gymnasium.make(name, disable_env_checker=True, **game["config"]).unwrapped
        env.reset(seed=0)
        limit, taken = gymnasium.spec(name).max_episode_steps or 10**9, [0]
        drawn = [env.action_space.sample() for _ in range(1000)]

        def work() -> int:
            for _ in range(DRAWN):
                taken[0] += 1
                _, _, terminated, truncated, _ = env.step(drawn[taken[0] % 1000])
                if terminated or truncated or taken[0] % limit == 0:
                    env.reset()
            return DRAWN

        return work

    return [["step", 1]], start
