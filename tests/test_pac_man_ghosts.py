"""PacMan whose ghosts agents move, against PacMan whose ghosts move by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from gpuzoo import Simulator, get

pytestmark = pytest.mark.rotates
MOVES = np.array([1, 0, 3, 2, 4])  # of the ways of ghosts


def test_ghosts_that_move_as_pac_mans_do_play_the_same_game():
    n, rng = 64, np.random.default_rng(0)
    alone, game = (
        Simulator(get(name), n, device="cpu", autoreset_mode="disabled", **options)
        for name, options in (("PacMan-v1", {}), ("PacManGhosts-v0", {"catch_reward": 0.0}))
    )
    for sim in (alone, game):
        sim.reset(seed=0)
    live, compared = np.ones(n, bool), 0
    for _ in range(300):
        moves = (rng.random((n, 5)) * alone.arrays["action_mask"][:, 0]).argmax(1)
        alone.arrays["action"][...] = moves.reshape(alone.arrays["action"].shape)
        alone.step()
        ghosts = MOVES[alone.arrays["ghost_way"]]
        masks = game.arrays["action_mask"]
        legal = np.take_along_axis(masks[:, 1:], ghosts[..., None], 2)[..., 0] != 0
        live &= (legal | (ghosts == 4)).all(1)  # theirs may run into a wall
        game.arrays["action"][...] = np.concatenate([moves[:, None], ghosts], 1).reshape(game.arrays["action"].shape)
        game.step()
        for name in ("player", "ghost", "old_ghost", "num_pellets", "frightened", "score", "dead", "wait", "edible"):
            np.testing.assert_array_equal(game.arrays[name][live], alone.arrays[name][live], name)
        np.testing.assert_array_equal(game.arrays["reward"][live, 0], alone.arrays["reward"][live, 0])
        np.testing.assert_array_equal(game.arrays["reward"][live, 1:], -game.arrays["reward"][live, :1].repeat(4, 1))
        ours = game.arrays["observation"].reshape(n, 5, -1, 8)[live]
        seen = alone.arrays["observation"].reshape(n, -1, 8)[live]
        np.testing.assert_array_equal(ours[:, 0], seen)
        for g in range(4):
            others = [4 + k for k in range(4) if k != g]
            np.testing.assert_array_equal(ours[:, 1 + g], seen[..., [0, 1, 2, 3, 4 + g, *others]])
        compared += int(live.sum())
        live &= ~game.arrays["terminated"][:, 0].astype(bool)
    assert compared > 500, compared


def test_ghosts_win_what_the_player_loses():
    sim = Simulator(get("PacManGhosts-v0"), 1, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    player, ghosts = np.array(sim.arrays["player"]), np.array(sim.arrays["ghost"])
    ghosts[0, 0] = player[0] - 1
    sim.set_state({"ghost": ghosts, "old_ghost": ghosts - 1, "wait": np.array([[-1, 5, 5, 5]], np.int32)})
    sim.arrays["action"][...] = np.array([4, 3, 4, 4, 4]).reshape(sim.arrays["action"].shape)
    sim.step()
    assert sim.arrays["dead"][0]
    assert sim.arrays["reward"][0].tolist() == [-190.0, 190.0, 190.0, 190.0, 190.0]
    assert sim.arrays["terminated"].all()
