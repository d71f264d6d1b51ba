"""Quoridor against OpenSpiel: legal moves, turns, results, and what players see, in whole games.

Random moves soon use up all walls and seldom bring a pawn home. So games are drawn with different chances that a player
builds, and that its pawn hurries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest
from numpy.typing import NDArray

from gpuzoo import Simulator, get
from gpuzoo.envs.quoridor.quoridor import STEPS, Quoridor

pytestmark = pytest.mark.rotates

Walls = NDArray[np.int64]

#: rows and columns, walls of each player (None: the default), games
OPTIONS = [
    (9, None, 260),
    (9, 32, 100),
    (8, 12, 140),
    (7, None, 200),
    (6, 9, 220),
    (5, None, 360),
    (4, 4, 500),
    (3, 2, 500),
    (3, 0, 100),
]


def spiel_action(action: int, size: int, mover: int) -> int:
    """OpenSpiel's number of an action: an edge of a board of cells and edges, or a pawn's step from the cell (1, 1)."""
    n, wide = size - 1, 2 * size - 1
    if action < len(STEPS):
        rows, columns = STEPS[action]
        return wide * (2 + 2 * (rows if mover == 0 else -rows)) + 2 + 2 * columns
    kind, place = divmod(action - len(STEPS), n * n)
    row, column = divmod(place, n)
    row = row if mover == 0 else n - 1 - row
    return wide * (2 * row + (kind == 0)) + 2 * column + (kind == 1)


def add_wall(walls: Walls, action: int) -> None:
    """Adds a wall that OpenSpiel's action places: horizontal or vertical, row and column of the cell before it."""
    y, x = divmod(action, 2 * walls.shape[1] - 1)
    if y % 2 or x % 2:
        walls[0 if y % 2 else 1, y // 2, x // 2] += 1


def planes(state: Any, walls: Walls, first: int, player: int) -> NDArray[np.float32]:
    """A player's observation. OpenSpiel's has the pawns and the walls that are left, but not those of the board."""
    size = walls.shape[1]
    tensor = np.array(state.observation_tensor(player)).reshape(5, 2 * size - 1, 2 * size - 1)[:, ::2, ::2]
    pawns, left = tensor[[player, 1 - player]], tensor[[3 + player, 4 - player]] / max(first, 1)
    if player == 1:
        pawns, walls = pawns[:, ::-1], np.roll(walls[:, ::-1], -1, 1)
    return np.concatenate([pawns, walls, left]).transpose(1, 2, 0).astype(np.float32)


@pytest.mark.parametrize(("size", "walls", "games"), OPTIONS)
def test_whole_games(size: int, walls: int | None, games: int) -> None:
    rng = np.random.default_rng(size)
    options = {"board_size": size} if walls is None else {"board_size": size, "walls": walls}
    sim = Simulator(get("Quoridor-v0"), games, device="cpu", autoreset_mode="disabled", **options)
    sim.reset(seed=5)
    game = pyspiel.load_game("quoridor", {"board_size": size} | ({} if walls is None else {"wall_count": walls}))
    first = size * size // 8 if walls is None else walls
    assert Quoridor.Config(**options).first_walls == first
    states = [game.new_initial_state() for _ in range(games)]
    placed = np.zeros((games, 2, size, size), np.int64)
    builds, hurries = rng.choice([0.05, 0.3, 0.9], games), rng.choice([0.0, 0.3, 0.8], games)
    numbers = [{spiel_action(a, size, m): a for a in range(sim.arrays["action_mask"].shape[-1])} for m in range(2)]
    playing, moves, diagonal, draws = [*range(games)], 0, 0, 0
    while playing:
        moves += len(playing)
        for k in playing:
            state, mover, mask = states[k], states[k].current_player(), sim.arrays["action_mask"][k]
            assert sim.arrays["to_move"][k] == mover
            assert not mask[1 - mover].any()
            legal = np.flatnonzero(mask[mover])
            spiel = state.legal_actions()
            assert {*legal} == {numbers[mover][a] for a in spiel}
            for player in range(2):
                seen = sim.arrays["observation"][k, player].reshape(size, size, 6)
                np.testing.assert_array_equal(seen, planes(state, placed[k], first, player))
            pawn, built = legal[legal < len(STEPS)], legal[legal >= len(STEPS)]
            diagonal += pawn[-1] > 3
            if len(built) and rng.random() < builds[k]:
                action = rng.choice(built)
            else:
                action = 0 if pawn[0] == 0 and rng.random() < hurries[k] else rng.choice(pawn)
            sim.arrays["action"][k, :, 0] = -1
            sim.arrays["action"][k, mover, 0] = action
            chosen = spiel_action(int(action), size, mover)
            state.apply_action(chosen)
            if action >= len(STEPS):
                add_wall(placed[k], chosen)
        sim.step()
        over = [k for k in playing if states[k].is_terminal()]
        playing = [k for k in playing if not states[k].is_terminal()]
        assert not sim.arrays["ended"][playing].any()
        assert sim.arrays["ended"][over].all()
        for k in over:
            assert str(states[k]).count("---") + str(states[k]).count("|") == 2 * placed[k].sum()
            np.testing.assert_array_equal(sim.arrays["reward"][k], states[k].returns())
            draws += states[k].returns() == [0, 0]
    print(f"size {size}: {moves} moves, {diagonal} times a diagonal jump, {draws} draws")
    assert diagonal > 10
