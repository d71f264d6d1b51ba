"""MAgent2's engine in C++, without its PettingZoo interface in Python; the id is a module of its environments."""

from __future__ import annotations

import importlib

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("MAgent2", original=True, one_core=True)


def peer(game: Game) -> Peer:
    import numpy as np

    made = importlib.import_module(f"magent2.environments.{game['id']}").parallel_env(**game["config"])

    def start(case: Case) -> Work:
        engine, handles, taken = made.env, made.handles, [0]
        rng = np.random.default_rng(0)
        most = [engine.get_num(handle) for handle in handles]
        actions = [engine.get_action_space(handle)[0] for handle in handles]
        drawn = [[rng.integers(0, a, n, np.int32) for a, n in zip(actions, most)] for _ in range(DRAWN)]  # noqa: B905

        def work() -> int:
            for chosen in drawn:
                for handle, values in zip(handles, chosen):  # noqa: B905
                    engine.set_action(handle, values[: engine.get_num(handle)])
                over = engine.step()
                for handle in handles:
                    engine.get_observation(handle)
                    engine.get_reward(handle)
                    engine.get_alive(handle)
                engine.clear_dead()
                taken[0] += 1
                if over or taken[0] % made.max_cycles == 0:
                    engine.reset()
                    made.generate_map()
            return DRAWN

        return work

    return [["step", 1]], start
