"""Dots and boxes against OpenSpiel: whole games of players who take boxes more or less often."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.dots_and_boxes.dots_and_boxes import DotsAndBoxes

pytestmark = pytest.mark.rotates

#: rows, columns, whether the reward is the margin, and games
CASES = [
    (5, 5, False, 500),
    (2, 2, False, 1000),
    (3, 4, True, 600),
    (7, 7, True, 250),
    (1, 31, False, 150),
    (31, 1, True, 100),
    (8, 6, False, 120),
    (1, 1, False, 100),
    (1, 2, True, 300),
]


def parts(state: Any, rows: int, columns: int) -> np.ndarray:
    """[who: nobody, player 0, player 1][row][column][horizontal line, vertical line, box], as OpenSpiel says it."""
    tensors = [np.array(state.observation_tensor(player)) for player in range(2)]
    np.testing.assert_array_equal(*tensors)
    return tensors[0].reshape(3, rows + 1, columns + 1, 3).astype(bool)


def planes(found: np.ndarray, player: int) -> np.ndarray:
    """What a player should observe, from OpenSpiel's state."""
    rows, columns = found.shape[1] - 1, found.shape[2] - 1
    out = np.zeros((2 * rows + 1, 2 * columns + 1, 4), np.int8)
    drawn = found[1] | found[2]
    out[1::2, 1::2, 0] = found[1 + player, :rows, :columns, 2]
    out[1::2, 1::2, 1] = found[2 - player, :rows, :columns, 2]
    out[::2, 1::2, 2], out[::2, 1::2, 3] = drawn[:, :columns, 0], ~drawn[:, :columns, 0]
    out[1::2, ::2, 2], out[1::2, ::2, 3] = drawn[:rows, :, 1], ~drawn[:rows, :, 1]
    return out


def number(bits: np.ndarray) -> int:
    return sum(1 << int(k) for k in np.flatnonzero(bits))


def taking(state: Any, legal: list[int]) -> list[int]:
    """The lines that close a box: the same player moves again, or the game is over."""
    after = [(action, state.child(action)) for action in legal]
    return [action for action, s in after if s.is_terminal() or s.current_player() == state.current_player()]


@pytest.mark.parametrize(("rows", "columns", "margin", "games"), CASES)
def test_whole_games(rows: int, columns: int, margin: bool, games: int) -> None:
    rng = np.random.default_rng(rows * columns)
    options = {"num_rows": rows, "num_cols": columns, "utility_margin": margin}
    text = ",".join(f"{name}={value}" for name, value in options.items()).lower()
    game = pyspiel.load_game(f"dots_and_boxes({text})")
    sim = Simulator(DotsAndBoxes, games, device="cpu", autoreset_mode="disabled", **options)
    sim.reset(seed=0)
    seen = sim.arrays["observation"].reshape(games, 2, 2 * rows + 1, 2 * columns + 1, 4)
    states = [game.new_initial_state() for _ in range(games)]
    greed = rng.choice([0.0, 0.0, 0.5, 1.0], games)  # how often a player takes a box where there is one
    lines, results = game.num_distinct_actions(), set()
    for move in range(lines):
        before = sim.arrays["to_move"].copy()
        assert not sim.arrays["ended"].any()
        sim.arrays["action"][...] = rng.integers(-1, lines, sim.arrays["action"].shape)  # who waits says anything
        for k, state in enumerate(states):
            legal = state.legal_actions()
            assert before[k] == state.current_player()
            np.testing.assert_array_equal(np.flatnonzero(sim.arrays["action_mask"][k, before[k]]), legal)
            assert not sim.arrays["action_mask"][k, 1 - before[k]].any()
            good = taking(state, legal) if rng.random() < greed[k] else []
            action = int(rng.choice(good or legal))
            sim.arrays["action"][k, before[k], 0] = action
            state.apply_action(action)
        sim.step()
        for k, state in enumerate(states):
            found = parts(state, rows, columns)
            for player in range(2):
                np.testing.assert_array_equal(seen[k, player], planes(found, player))
                assert int(sim.arrays[f"boxes_{player}"][k]) == number(found[1 + player, :, :, 2])
            assert int(sim.arrays["horizontal"][k]) == number(found[1:, :, :, 0].any(0))
            assert int(sim.arrays["vertical"][k]) == number(found[1:, :, :, 1].any(0))
            np.testing.assert_array_equal(sim.arrays["reward"][k], state.rewards())
            assert bool(sim.arrays["ended"][k]) == state.is_terminal() == (move == lines - 1)
    for k, state in enumerate(states):
        np.testing.assert_array_equal(sim.arrays["final_return"][k], state.returns())
        results.add(state.returns()[0])
    if rows * columns > 2:
        assert {np.sign(result) for result in results} >= {-1.0, 1.0}
    if rows * columns % 2 == 0:
        assert 0.0 in results
    if margin and rows * columns > 2:
        assert max(results) > 1


def test_enough_moves_are_compared() -> None:
    assert sum(games * (2 * rows * columns + rows + columns) for rows, columns, _, games in CASES) > 100_000
