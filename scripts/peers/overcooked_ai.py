"""overcooked-ai. Steps of a layout with the encoding that is learned from, one kitchen; a new one every 400 steps."""

from __future__ import annotations

import random

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About(original=True, one_core=True)


def peer(game: Game) -> Peer:
    from overcooked_ai_py.mdp.actions import Action
    from overcooked_ai_py.mdp.overcooked_mdp import OvercookedGridworld

    def start(case: Case) -> Work:
        mdp = OvercookedGridworld.from_layout_name(game["id"], **game["config"])
        box = [mdp.get_standard_start_state()]
        drawn = [random.choices(Action.ALL_ACTIONS, k=mdp.num_players) for _ in range(1000)]

        def work() -> int:
            for _ in range(DRAWN):
                state, _ = mdp.get_state_transition(box[0], drawn[box[0].timestep])
                mdp.lossless_state_encoding(state)
                box[0] = state if state.timestep < 400 else mdp.get_standard_start_state()
            return DRAWN

        return work

    return [["step", 1]], start
