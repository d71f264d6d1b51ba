"""A game of OpenSpiel, one state, and legal moves at random; the id is OpenSpiel's name of the game."""

from __future__ import annotations

import random

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("OpenSpiel", one_core=True)


def peer(game: Game) -> Peer:
    import pyspiel

    def start(case: Case) -> Work:
        played = pyspiel.load_game(game["id"], game["config"])
        state, observes = played.new_initial_state(), played.get_type().provides_observation_tensor

        def work() -> int:
            nonlocal state
            for _ in range(DRAWN):
                state.apply_action(random.choice(state.legal_actions()))
                if state.is_terminal():
                    state.returns()
                    state = played.new_initial_state()
                if observes:
                    state.observation_tensor()
            return DRAWN

        return work

    return [["step", 1]], start
