"""Board and card games against Pgx: over whole random games, at least 100,000 moves each, all that a player can see.

Pgx draws who begins. Its player p is ours a, where ours is player_0 if it begins there.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

from gpuzoo import Simulator, get

pytestmark = [
    pytest.mark.rotates,
    pytest.mark.timeout(1800),  # a move of shogi takes Pgx a millisecond, and XLA compiles it for ten minutes
    pytest.mark.filterwarnings("ignore:.*player_id"),
]
MOVES = 100_000
#: id -> Pgx's id, and how many games
GAMES = {
    "TicTacToe-v0": ("tic_tac_toe", 15_000),
    "ConnectFour-v0": ("connect_four", 6_000),
    "Othello-v0": ("othello", 2_000),
    "KuhnPoker-v0": ("kuhn_poker", 50_000),
    "LeducHoldem-v0": ("leduc_holdem", 50_000),
    "Hex-v0": ("hex", 1_200),
    "Chess-v0": ("chess", 400),
    "GardnerChess-v0": ("gardner_chess", 1_500),
    "AnimalShogi-v0": ("animal_shogi", 4_000),
    "Shogi-v0": ("shogi", 700),
    "go_9x9": ("go_9x9", 1_000),
    "go_19x19": ("go_19x19", 200),
}


@functools.cache
def compiled(name: str) -> tuple[Any, Any, Any]:
    """Pgx's functions, which begin games, move and observe."""
    env: Any = pgx.make(GAMES[name][0])
    return jax.vmap(env.init), jax.jit(jax.vmap(env.step)), jax.jit(jax.vmap(env._observe))


class Both:
    """As many games here and in Pgx, with the same cards."""

    def __init__(self, name: str) -> None:
        self.n = num_envs = GAMES[name][1]
        begin, self._step, self._seen = compiled(name)
        self.sim = Simulator(get(name), num_envs, device="cpu", autoreset_mode="disabled")
        self.sim.reset(seed=0)
        self.theirs: Any = begin(jax.random.split(jax.random.key(0), num_envs))
        #: Pgx's number of player_0
        self.first = np.asarray(self.theirs.current_player)
        if hasattr(self.theirs, "_cards"):
            cards, rows = np.asarray(self.sim.arrays["card"]).copy(), np.arange(num_envs)
            of_pgx = np.zeros_like(cards)
            of_pgx[rows, self.first], of_pgx[rows, 1 - self.first] = cards.T
            if "public_card" in self.sim.arrays:
                of_pgx = np.concatenate([of_pgx, self.sim.arrays["public_card"][:, None]], 1)
            self.theirs = self.theirs.replace(_cards=jnp.asarray(of_pgx))
        self.rows = np.arange(num_envs)

    def of_player(self, a: int) -> np.ndarray:
        """Pgx's number of our player."""
        return self.first if a == 0 else 1 - self.first

    def step(self, actions: np.ndarray) -> None:
        given = self.sim.arrays["action"]
        given[:, :, 0] = -1  # who is not to move
        given[self.rows, self.sim.arrays["to_move"], 0] = actions
        self.sim.step()
        # Nobody moves any more in a game that is over, here and there.
        self.theirs = self._step(self.theirs, jnp.asarray(np.maximum(actions, 0)))

    def compare(self, live: np.ndarray) -> None:
        """The games that were going on before this step."""
        arrays, over = self.sim.arrays, np.asarray(self.theirs.terminated)
        to_move = np.where(np.asarray(self.theirs.current_player) == self.first, 0, 1)
        np.testing.assert_array_equal(arrays["to_move"][live], to_move[live])
        for a in range(2):
            want = np.asarray(self._seen(self.theirs, jnp.asarray(self.of_player(a))))
            seen = arrays["observation"][:, a, : want[0].size].reshape(want.shape)
            if seen.dtype == np.float32:  # XLA multiplies by 1 / 100 where Pgx divides by 100
                np.testing.assert_array_max_ulp(seen[live], want[live], 1)
            else:
                np.testing.assert_array_equal(seen[live], want[live])
            rewards = np.asarray(self.theirs.rewards)[self.rows, self.of_player(a)]
            np.testing.assert_array_equal(arrays["reward"][live, a], rewards[live])
            np.testing.assert_array_equal(arrays["terminated"][live, a], over[live])
            playing = live & ~over
            mask = np.asarray(self.theirs.legal_action_mask) & (to_move == a)[:, None]
            np.testing.assert_array_equal(arrays["action_mask"][playing, a], mask[playing])


@pytest.mark.parametrize("name", GAMES)
def test_whole_games(name: str) -> None:
    both, rng, moves = Both(name), np.random.default_rng(1), 0
    both.compare(np.ones(both.n, bool))
    results = set()
    for _ in range(800):
        over = np.asarray(both.theirs.terminated)
        if over.all():
            break
        mask = np.asarray(both.theirs.legal_action_mask)
        actions = (rng.random(mask.shape) * mask).argmax(1)
        both.step(actions)
        both.compare(~over)
        moves += int((~over).sum())
        ended = ~over & np.asarray(both.theirs.terminated)
        results |= set(both.sim.arrays["reward"][ended, 0].tolist())
    assert np.asarray(both.theirs.terminated).all()
    assert moves >= MOVES
    assert {np.sign(x) for x in results} >= {-1.0, 1.0}


@pytest.mark.parametrize("name", GAMES)
def test_an_illegal_move_ends_the_game(name: str) -> None:
    """The offender loses one here and there; the other one has 0 here and 1 there."""
    both = Both(name)
    size = both.sim.layout.action_spaces["player"].n
    mask = np.asarray(both.theirs.legal_action_mask)
    illegal = np.where(mask.all(1), size, mask.argmin(1))  # where all are legal, a number that is no action
    both.sim.arrays["action"][:, 0, 0] = illegal
    both.sim.step()
    np.testing.assert_array_equal(both.sim.arrays["reward"], np.tile([-1.0, 0.0], (both.n, 1)))
    assert both.sim.arrays["terminated"].all()
    if mask.all():
        return
    theirs: Any = both._step(both.theirs, jnp.asarray(illegal))
    assert np.asarray(theirs.terminated).all()
    np.testing.assert_array_equal(np.asarray(theirs.rewards)[both.rows, both.first], -1.0)
