"""The bidding of bridge against Pgx and OpenSpiel, over whole auctions, and the table of deals.

Pgx has a hundred solved deals among its own tests' data. Both play these.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx.bridge_bidding
import pyspiel
import pytest

from gpuzoo import Simulator, get
from gpuzoo.envs.card_games.bridge_bidding import BridgeBidding, calls

pytestmark = [pytest.mark.rotates, pytest.mark.timeout(900)]
sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
RNG = np.random.default_rng(0)
GAMES = 8_000
MOVES = 100_000
GAMES_OF_SPIEL = 64
SEEN = jax.jit(jax.vmap(pgx.bridge_bidding._observe))


@pytest.fixture
def table(tmp_path: Path) -> str:
    np.save(tmp_path / "deals.npy", np.stack([np.asarray(half) for half in pgx.bridge_bidding._load_sample_hash()]))
    return str(tmp_path / "deals.npy")


def owners(hands: np.ndarray) -> np.ndarray:
    """Of cards 13 * suit + rank, spades first and aces first: who has them."""
    cards = np.arange(52)
    places = (4 * ((cards % 13 - 1) % 13) + 3 - cards // 13).astype(np.uint64)
    return (hands[:, :, None] >> places & np.uint64(1)).argmax(1)


def in_pgx(sim: Simulator, env: Any) -> Any:
    """The same deals there. The seats of its players are drawn."""
    s, n = sim.arrays, sim.num_envs
    theirs: Any = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), n))
    hand = np.argsort(owners(s["hand"]), axis=1, kind="stable")
    players = np.asarray(theirs._shuffled_players)
    return theirs.replace(
        current_player=jnp.asarray(players[np.arange(n), s["dealer"]]),
        _hand=jnp.asarray(hand, jnp.int32),
        _dds_val=jnp.asarray(s["tricks"].astype(np.int32)),
        _dealer=jnp.asarray(s["dealer"].copy()),
        _vul_NS=jnp.asarray((s["vulnerable"] & 1).astype(bool)),
        _vul_EW=jnp.asarray((s["vulnerable"] >> 1).astype(bool)),
    )


def compare(sim: Simulator, theirs: Any, live: np.ndarray) -> None:
    """Observations of all players, masks, rewards, ends and who moves, in the games that were going on."""
    s, over, rows = sim.arrays, np.asarray(theirs.terminated), np.arange(sim.num_envs)
    players = np.asarray(theirs._shuffled_players)
    going = live & ~over
    np.testing.assert_array_equal(players[rows, s["to_move"]][going], np.asarray(theirs.current_player)[going])
    for a in range(4):
        of = jnp.asarray(players[:, a])  # there all see whose side is vulnerable as the player to move does
        seen = np.asarray(SEEN(theirs.replace(current_player=of), of))
        shown = live & ~(over & (s["last_bid"] < 0))  # there the fourth pass is not seen any more
        np.testing.assert_array_equal(s["observation"][shown, a], seen[shown])
        np.testing.assert_array_equal(s["reward"][live, a], np.asarray(theirs.rewards)[rows, players[:, a]][live])
        np.testing.assert_array_equal(s["terminated"][live, a], over[live])
        mask = np.asarray(theirs.legal_action_mask) & (s["to_move"] == a)[:, None]
        np.testing.assert_array_equal(s["action_mask"][going, a], mask[going])
    assert not s["action_mask"][live & over].any()


def chosen(sim: Simulator, slow: np.ndarray) -> np.ndarray:
    """Legal calls; those who are slow mostly make low bids."""
    mask = sim.arrays["action_mask"][np.arange(sim.num_envs), sim.arrays["to_move"]].astype(float)
    rank = np.cumsum(mask[:, 3:], 1) - 1
    weights = mask * RNG.random(mask.shape)
    weights[:, 3:] *= np.exp(-slow[:, None] * rank)
    weights[:, 0] *= RNG.choice([0.3, 1.0, 4.0], len(mask))
    return weights.argmax(1)


def test_whole_auctions(table: str) -> None:
    n, moves = GAMES, 0
    sim = Simulator(BridgeBidding, n, device="cpu", autoreset_mode="disabled", table=table)
    sim.reset(seed=0)
    env: Any = pgx.bridge_bidding.BridgeBidding(table)
    theirs, step = in_pgx(sim, env), jax.jit(jax.vmap(env.step))
    live, slow = np.ones(n, bool), RNG.choice([0.0, 0.3, 1.0, 2.0], n)
    compare(sim, theirs, live)
    auctions: list[list[int]] = [[] for _ in range(n)]
    results: set[float] = set()
    while live.any():
        actions = chosen(sim, slow)
        for k in np.flatnonzero(live):
            auctions[k].append(int(actions[k]))
        sim.arrays["action"][...] = -1
        sim.arrays["action"][np.arange(n), sim.arrays["to_move"], 0] = actions
        sim.step()
        theirs = step(theirs, jnp.asarray(actions))
        compare(sim, theirs, live)
        moves += int(live.sum())
        results |= {*np.abs(sim.arrays["reward"][live, 0]).tolist()}
        live &= ~np.asarray(theirs.terminated)
    s = sim.arrays
    assert moves >= MOVES
    assert {*s["doubled"].tolist()} == {0, 1, 2}
    assert {*s["last_bid"].tolist()} == {*range(-1, 35)}
    assert len(results) > 140
    assert max(map(len, auctions)) > 60
    for k in range(0, n, 10):  # pictures show the calls in order
        assert calls({name: s[name][k] for name in sim.program.fields}) == auctions[k]


def test_an_illegal_move_ends_the_game(table: str) -> None:
    sim = Simulator(BridgeBidding, 32, device="cpu", autoreset_mode="disabled", table=table)
    sim.reset(seed=2)
    mover = sim.arrays["to_move"].copy()
    sim.arrays["action"][...] = 1
    sim.step()
    want = np.where(np.arange(4) == mover[:, None], -7600.0, 0.0)
    np.testing.assert_array_equal(sim.arrays["reward"], want)
    assert sim.arrays["terminated"].all()


def test_auctions_of_open_spiel() -> None:
    """Legal calls, ends, and results of the package's deals, which OpenSpiel solves itself."""
    n = GAMES_OF_SPIEL
    sim = Simulator(get("BridgeBidding-v0"), n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=1)
    s, states = sim.arrays, []
    for k in range(n):
        first = int(s["dealer"][k])  # the dealer is player 0 there
        own, others = (bool(s["vulnerable"][k] >> (first + side) % 2 & 1) for side in range(2))
        options = f"dealer_vul={str(own).lower()},non_dealer_vul={str(others).lower()}"
        state = pyspiel.load_game(f"bridge(use_double_dummy_result=true,{options})").new_initial_state()
        hands = [[c for c in range(52) if int(s["hand"][k, (first + p) % 4]) >> c & 1] for p in range(4)]
        for card in range(13):
            for p in range(4):
                state.apply_action(hands[p][card])
        states.append(state)
    slow, playing = RNG.choice([0.3, 1.0], n), list(range(n))
    while playing:
        actions = chosen(sim, slow)
        for k in playing:
            mover, first = int(s["to_move"][k]), int(s["dealer"][k])
            assert states[k].current_player() == (mover - first) % 4
            assert (np.flatnonzero(s["action_mask"][k, mover]) + 52).tolist() == states[k].legal_actions()
            states[k].apply_action(int(actions[k]) + 52)
        s["action"][...] = -1
        s["action"][np.arange(n), s["to_move"], 0] = actions
        sim.step()
        for k in playing:
            assert bool(s["ended"][k]) == states[k].is_terminal()
            if states[k].is_terminal():
                returns = np.roll(states[k].returns(), int(s["dealer"][k]))
                np.testing.assert_array_equal(s["reward"][k], returns)
        playing = [k for k in playing if not states[k].is_terminal()]


def test_the_table_of_deals() -> None:
    """Results of some deals of the package, solved again; and Pgx's own results of some of its deals."""
    import make_bridge_deals

    ours, theirs = BridgeBidding().table(BridgeBidding.Config()), pgx.bridge_bidding._load_sample_hash()
    assert ours.shape == (2, 1000, 4)
    for keys, results in (ours, tuple(np.asarray(half) for half in theirs)):
        for k in RNG.choice(len(keys), 20, replace=False):
            dealt = np.array([int(keys[k, suit]) >> 2 * (12 - rank) & 3 for suit in range(4) for rank in range(13)])
            assert (np.bincount(dealt) == 13).all()
            found = make_bridge_deals.tricks(dealt)
            np.testing.assert_array_equal(found @ 16 ** np.arange(4, -1, -1), results[k])
