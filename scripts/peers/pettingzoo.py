"""A Python env of PettingZoo's parallel interface, one by one; the id is the module with `parallel_env`."""

from __future__ import annotations

import importlib

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("PettingZoo", original=True, one_core=True)


def peer(game: Game) -> Peer:
    parallel_env = importlib.import_module(game["id"]).parallel_env

    def start(case: Case) -> Work:
        env = parallel_env(**game["config"])
        env.reset(seed=0)
        agents = env.possible_agents
        drawn = [{agent: env.action_space(agent).sample() for agent in agents} for _ in range(100)]

        def work() -> int:
            for actions in drawn[:DRAWN]:
                env.step({agent: actions[agent] for agent in env.agents})
                if not env.agents:
                    env.reset()
            return DRAWN

        return work

    return [["step", 1]], start
