"""Sparrow mahjong against Pgx: whole games, and drawn positions in which hands lack a tile.

Pgx has shuffled a wall. Here each tile that our game draws is put where Pgx draws next.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pgx.sparrow_mahjong
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.sparrow_mahjong.sparrow_mahjong import SparrowMahjong

pytestmark = [pytest.mark.rotates, pytest.mark.timeout(900)]

ENV: Any = pgx.make("sparrow_mahjong")
STEP = jax.jit(jax.vmap(ENV.step))
SEEN = jax.jit(jax.vmap(pgx.sparrow_mahjong._observe))
NIBBLES, ONES = 4 * np.arange(11, dtype=np.uint64), np.uint64(15)
RNG = np.random.default_rng(0)
GAMES = 6_000
STATES = 10_000
MOVES = 100_000


def counts(packed: np.ndarray) -> np.ndarray:
    """Tiles of each kind."""
    return (packed[..., None] >> NIBBLES & ONES).astype(np.int32)


def packed(counted: np.ndarray) -> np.ndarray:
    return (counted.astype(np.uint64) << NIBBLES).sum(-1, dtype=np.uint64)


def in_pgx(sim: Simulator) -> Any:
    """The same positions there. Seat p is player_p's, and which number it has is drawn."""
    s, n = sim.arrays, sim.num_envs
    theirs: Any = jax.vmap(ENV.init)(jax.random.split(jax.random.key(0), n))
    hands, turn = counts(s["hand"]), s["turn"].copy()
    rivers = np.full((n, 3, 10), -1, np.int32)
    for p, k in itertools.product(range(3), range(10)):
        length = (turn + 2 - p) // 3
        there = k < length
        back = np.where(there, 4 * (length - 1 - k), 0).astype(np.uint64)
        rivers[:, p, k] = np.where(there, (s["river"][:, p] >> back & ONES).astype(int) - 1, -1)
    mover, players = turn % 3, np.asarray(theirs._shuffled_players)
    return theirs.replace(
        current_player=jnp.asarray(players[np.arange(n), mover]),
        legal_action_mask=jnp.asarray(hands[np.arange(n), mover] > 0),
        _turn=jnp.asarray(turn),
        _rivers=jnp.asarray(rivers),
        _last_discard=jnp.asarray(s["last_discard"].copy()),
        _hands=jnp.asarray(hands),
        _n_red_in_hands=jnp.asarray(counts(s["reds"])),
        _draw_ix=jnp.asarray(16 + turn),
        _dora=jnp.asarray(s["dora"].copy()),
    )


def step(sim: Simulator, theirs: Any, actions: np.ndarray) -> Any:
    s, rows = sim.arrays, np.arange(sim.num_envs)
    before, draws = s["wall"].copy(), np.asarray(theirs._draw_ix)
    s["action"][:, :, 0] = -1  # who is not to move
    s["action"][rows, s["to_move"], 0] = actions
    sim.step()
    drawn = before & ~s["wall"]
    tile = np.bitwise_count(drawn - np.uint64(1)).astype(np.int32)
    wall = np.asarray(theirs._wall).copy()
    wall[rows[drawn > 0], draws[drawn > 0]] = tile[drawn > 0]
    return STEP(theirs.replace(_wall=jnp.asarray(wall)), jnp.asarray(actions))


def compare(sim: Simulator, theirs: Any, live: np.ndarray) -> None:
    """Observations of all players, masks, rewards, ends and who moves, in the games that were going on."""
    s, over, rows = sim.arrays, np.asarray(theirs.terminated), np.arange(sim.num_envs)
    players = np.asarray(theirs._shuffled_players)
    going = live & ~over
    np.testing.assert_array_equal(players[rows, s["to_move"]][going], np.asarray(theirs.current_player)[going])
    for a in range(3):
        seen = np.asarray(SEEN(theirs, jnp.asarray(players[:, a]))).reshape(len(rows), -1)
        np.testing.assert_array_equal(s["observation"][live, a], seen[live])
        rewards = np.asarray(theirs.rewards)[rows, players[:, a]]  # XLA multiplies by 1 / 26 where Pgx divides by 26
        np.testing.assert_array_max_ulp(s["reward"][live, a], rewards[live], 1)
        np.testing.assert_array_equal(s["terminated"][live, a], over[live])
        mask = np.asarray(theirs.legal_action_mask) & (s["to_move"] == a)[:, None]
        np.testing.assert_array_equal(s["action_mask"][going, a], mask[going])
    assert not s["action_mask"][live & over].any()


def chosen(sim: Simulator, careful: np.ndarray) -> np.ndarray:
    """Legal discards; who is careful keeps what has neighbours."""
    s, n = sim.arrays, sim.num_envs
    hand = counts(s["hand"][np.arange(n), s["to_move"]])
    bamboo = np.pad(hand[:, :9], ((0, 0), (2, 2)))
    near = 2 * bamboo[:, 1:-3] + 2 * bamboo[:, 3:-1] + bamboo[:, :-4] + bamboo[:, 4:]
    worth = 3.0 * (hand - 1) + np.pad(near, ((0, 0), (0, 2)))
    return np.where(hand > 0, np.where(careful[:, None], np.exp(-worth), 1.0) * RNG.random(hand.shape), -1).argmax(1)


def test_whole_games() -> None:
    n, moves = GAMES, 0
    sim = Simulator(SparrowMahjong, n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    theirs = in_pgx(sim)
    live, careful = np.ones(n, bool), np.arange(n) % 3 > 0
    compare(sim, theirs, live)
    while live.any():
        theirs = step(sim, theirs, chosen(sim, careful))
        compare(sim, theirs, live)
        moves += int(live.sum())
        live &= ~np.asarray(theirs.terminated)
    wins = np.bitwise_count(sim.arrays["winners"])
    assert moves >= MOVES
    assert {*wins.tolist()} >= {0, 1}
    assert (wins > 0).mean() > 0.2


def drawn(n: int, turn: np.ndarray) -> dict[str, np.ndarray]:
    """Deals in which most hands are two sets without a tile, rivers of other tiles, and what is left."""
    sets = [(k, k + 1, k + 2) for k in range(7)] + [(k,) * 3 for k in range(11)] * 2
    hand, reds = np.zeros((n, 3, 11), np.int64), np.zeros((n, 3, 11), np.int64)
    river, wall, dora = np.zeros((n, 3), np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.int32)
    for k in range(n):
        while True:
            tiles = [[*RNG.permutation(4) + 4 * kind] for kind in range(11)]
            own: list[list[int]] = []
            for p in range(3):
                kinds = [*sets[RNG.integers(len(sets))], *sets[RNG.integers(len(sets))]]
                if RNG.random() < 0.2 or any(kinds.count(x) > len(tiles[x]) for x in kinds):
                    break
                own.append([int(tiles[x].pop()) for x in kinds])
                RNG.shuffle(own[p])
            if len(own) == 3:
                break
        rest = [int(x) for x in RNG.permutation([x for kind in tiles for x in kind] + [own[p].pop() for p in range(3)])]
        mover = turn[k] % 3
        dora[k] = rest.pop() // 4
        own[mover].append(rest.pop())
        for p in range(3):
            np.add.at(hand[k, p], [x // 4 for x in own[p]], 1)
            np.add.at(reds[k, p], [x // 4 for x in own[p] if (x % 4 == 0 and x != 36) or x >= 40], 1)
            for _ in range((turn[k] + 2 - p) // 3):
                river[k, p] = int(river[k, p]) << 4 | rest.pop() // 4 + 1
        wall[k] = sum(1 << x for x in rest)
    return {"hand": packed(hand), "reds": packed(reds), "river": river, "wall": wall, "dora": dora}


def test_drawn_positions() -> None:
    """Ends of many kinds: several winners, hands of all values, and wins by drawing."""
    n = STATES
    sim = Simulator(SparrowMahjong, n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=1)
    turn = RNG.integers(0, 26, n).astype(np.int32)
    state = drawn(n, turn)
    sim.set_state({**state, "turn": turn, "to_move": (turn % 3).astype(np.int32)})
    theirs, live = in_pgx(sim), np.ones(n, bool)
    for _ in range(3):
        theirs = step(sim, theirs, chosen(sim, RNG.random(n) < 0.3))
        compare(sim, theirs, live)
        live &= ~np.asarray(theirs.terminated)
    ended = ~live
    winners, last = np.bitwise_count(sim.arrays["winners"][ended]), sim.arrays["winners"][ended]
    assert {*winners.tolist()} >= {0, 1, 2}
    assert {*last.tolist()} >= {1, 2, 4}
    assert len(np.unique(sim.arrays["reward"][ended])) > 30


def test_an_illegal_move_ends_the_game() -> None:
    sim = Simulator(SparrowMahjong, 32, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=2)
    illegal = (counts(sim.arrays["hand"][:, 0]) == 0).argmax(1)
    sim.arrays["action"][:, 0, 0] = illegal
    sim.step()
    np.testing.assert_array_equal(sim.arrays["reward"], np.tile([-1.0, 0.0, 0.0], (32, 1)))
    assert sim.arrays["terminated"].all()
