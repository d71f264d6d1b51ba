"""hanabi-learning-environment with all that its interface for learning gives, and legal moves at random."""

from __future__ import annotations

import random

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About(original=True, one_core=True)


def peer(game: Game) -> Peer:
    from hanabi_learning_environment import rl_env

    def start(case: Case) -> Work:
        env = rl_env.make(game["id"], **game["config"])
        box = [env.reset()]

        def work() -> int:
            for _ in range(DRAWN):
                shown = box[0]
                legal = shown["player_observations"][shown["current_player"]]["legal_moves_as_int"]
                box[0], _, done, _ = env.step(random.choice(legal))
                if done:
                    box[0] = env.reset()
            return DRAWN

        return work

    return [["step", 1]], start
