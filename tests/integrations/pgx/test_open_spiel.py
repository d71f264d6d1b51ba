"""Board and card games against OpenSpiel: legal moves, ends and results of whole random games."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
import pytest

from gpuzoo import Simulator, get

pytestmark = pytest.mark.rotates

Chance = Callable[[Simulator, int, Any], int]


def of_cards(sim: Simulator, k: int, state: Any) -> int:
    """The card that OpenSpiel deals next, out of those of env k. Leduc's deck there has two cards of each rank."""
    number = state.move_number() if state.move_number() < 2 else 2
    kinds = [*sim.arrays["card"][k], *(sim.arrays["public_card"][k : k + 1] if "public_card" in sim.arrays else ())]
    each = 2 if "public_card" in sim.arrays else 1
    left = [action for action, _ in state.chance_outcomes()]
    return next(action for action in left if action // each == kinds[number])


def nothing_drawn(sim: Simulator, k: int, state: Any) -> int:
    raise AssertionError("there is no chance in this game")


#: id -> OpenSpiel's game, its action for each of ours, how cards are dealt, our options
GAMES: dict[str, tuple[str, list[int], Chance, dict[str, Any]]] = {
    "TicTacToe-v0": ("tic_tac_toe", list(range(9)), nothing_drawn, {}),
    "ConnectFour-v0": ("connect_four", list(range(7)), nothing_drawn, {}),
    "Othello-v0": ("othello", list(range(65)), nothing_drawn, {}),
    "KuhnPoker-v0": ("kuhn_poker", [1, 0], of_cards, {}),
    "LeducHoldem-v0": ("leduc_poker", [1, 2, 0], of_cards, {}),
    "Go-v0": ("go(board_size=9,komi=7.5,max_game_length=162)", list(range(82)), nothing_drawn, {}),
    "Hex-v0": ("hex(board_size=7)", list(range(49)), nothing_drawn, {"size": 7, "swap": False}),
}


@pytest.mark.parametrize("name", GAMES)
def test_whole_games(name: str) -> None:
    spiel, of_ours, chance, options = GAMES[name]
    games, rng = 400, np.random.default_rng(0)
    sim = Simulator(get(name), games, device="cpu", autoreset_mode="disabled", **options)
    sim.reset(seed=5)
    game = pyspiel.load_game(spiel)
    states = [game.new_initial_state() for _ in range(games)]
    playing, repeats = list(range(games)), 0
    while playing:
        actions = np.full(games, -1)
        for k in playing:
            state = states[k]
            while state.is_chance_node():
                state.apply_action(chance(sim, k, state))
            mover = state.current_player()
            assert sim.arrays["to_move"][k] == mover
            mask = sim.arrays["action_mask"][k, mover].astype(bool)[: len(of_ours)]
            assert {of_ours[a] for a in np.flatnonzero(mask)} == {*state.legal_actions()}
            actions[k] = rng.choice(np.flatnonzero(mask))
        for k in playing:
            states[k].apply_action(of_ours[actions[k]])
            sim.arrays["action"][k, sim.arrays["to_move"][k], 0] = actions[k]
        sim.step()
        over = [k for k in playing if states[k].is_terminal()]
        playing = [k for k in playing if not states[k].is_terminal()]
        assert not sim.arrays["ended"][playing].any()
        if name == "Othello-v0":
            continue
        assert sim.arrays["ended"][over].all()
        for k in over:
            won = states[k].returns()  # (0, 0) in OpenSpiel's Go where a position comes again, which loses here
            if won != [0, 0] or name != "Go-v0":
                np.testing.assert_array_equal(sim.arrays["reward"][k], won)
            else:
                repeats += 1
                assert sim.arrays["reward"][k, sim.arrays["to_move"][k]] == 1
    assert repeats < games / 4
    if name == "Othello-v0":
        both_pass(sim, states)


def both_pass(sim: Simulator, states: list[Any]) -> None:
    """OpenSpiel's Othello is over when nobody can place a disc; here, as in Pgx, both pass then."""
    for _ in range(2):
        rows = np.flatnonzero(sim.arrays["ended"] == 0)
        mask = sim.arrays["action_mask"][rows, sim.arrays["to_move"][rows]]
        assert (mask == (np.arange(65) == 64)).all()
        sim.arrays["action"][...] = 64
        sim.step()
    board = [[bin(int(x)).count("1") for x in sim.arrays[f"discs_{a}"]] for a in range(2)]
    leads = np.sign(np.subtract(*board))
    np.testing.assert_array_equal(leads, [state.returns()[0] for state in states])
