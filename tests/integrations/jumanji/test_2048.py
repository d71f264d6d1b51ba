"""2048 against Jumanji's, but for the place of the new tile, which is chance. Jumanji begins with one tile, not two."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, simulator
from jumanji.environments import Game2048
from jumanji.environments.logic.game_2048.types import Observation, State

pytestmark = pytest.mark.rotates

THEIRS = np.array([3, 0, 1, 2])  # our actions are left, up, right, down; Jumanji's up, right, down, left


def game(n: int) -> Against:
    env = Game2048()

    def state_of(arrays):
        return State(
            board=np.ascontiguousarray(arrays["rows"]).view(np.uint8).reshape(n, 4, 4).astype(np.int32),
            step_count=arrays["elapsed_steps"],
            action_mask=arrays["action_mask"][:, 0][:, np.argsort(THEIRS)] != 0,
            score=arrays["score"],
            key=keys(n),
        )

    def tiles(ours, theirs, live):
        one, other = ours.board.reshape(n, 16)[live], np.asarray(theirs.board).reshape(n, 16)[live]
        unlike = one != other
        assert (unlike.sum(1) <= 2).all()
        assert (np.where(unlike, one, 0) <= 2).all()
        np.testing.assert_array_equal((one > 0).sum(1), (other > 0).sum(1))

    return Against(
        simulator("Game2048-v0", n), env, state_of, lambda o: np.asarray(o.board)[..., None] == np.arange(31),
        lambda o: np.asarray(o.action_mask)[:, THEIRS], action=lambda actions: THEIRS[actions],
        observe=lambda state: Observation(state.board, env._get_action_mask(state.board)),
        chance=["board", "action_mask"], over=lambda ours, legal: ~ours.action_mask.any(1), also=tiles,
    )  # fmt: skip


def test_episodes():
    game(1000).follow(100_000, illegal=0.0)


def test_steps_from_drawn_states():
    n, rng = 20_000, np.random.default_rng(0)
    kinds = rng.integers(2, 12, (n, 1))
    board = np.where(rng.random((n, 16)) < rng.random((n, 1)), rng.integers(1, kinds + 1, (n, 16)), 0)
    rows = board.astype(np.uint8).view(np.uint32)
    sim = simulator("Game2048-v0", n)
    sim.reset(seed=0)
    sim.set_state({"rows": rows})
    some = sim.arrays["action_mask"][:, 0].any(1)
    game(int(some.sum())).from_states({"rows": rows[some]}, illegal=0.0)
