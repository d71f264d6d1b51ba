"""Gin rummy against PettingZoo and RLCard: whole games with the same cards, and drawn hands; against OpenSpiel, hands.

RLCard draws from a generator of its own. Here a stand-in gives it the cards of our game.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest
from pettingzoo.classic import gin_rummy_v4
from rlcard.games.gin_rummy import judge
from rlcard.games.gin_rummy.utils import melding, utils

from gpuzoo import Simulator, get

pytestmark = [pytest.mark.rotates, pytest.mark.timeout(900)]
GIN, DISCARD, KNOCK = 5, 6, 58
GAMES = 1000
STATES = 10_000


def ids(cards: int) -> list[int]:
    return [k for k in range(52) if int(cards) >> k & 1]


def cards_of(cards: int) -> list[Any]:
    return [utils.get_card(k) for k in ids(cards)]


class Chance:
    """RLCard's generator: it deals what ours has dealt."""

    def __init__(self, hands: np.ndarray, first: int) -> None:
        self.hands, self.first = hands, first

    def choice(self, of: list[int]) -> int:
        return 1 - self.first  # the dealer

    def shuffle(self, deck: list[Any]) -> None:
        order = cards_of(self.hands[self.first]) + cards_of(self.hands[1 - self.first])
        deck[:] = [card for card in deck if card not in order] + order[::-1]


def theirs(sim: Simulator, k: int, **options: Any) -> Any:
    env = gin_rummy_v4.raw_env(**options)
    env.env.game.np_random = Chance(sim.arrays["hand"][k], int(sim.arrays["to_move"][k]))
    env.reset()
    return env


def assert_same(sim: Simulator, env: Any, k: int) -> None:
    s, game, over = sim.arrays, env.env.game, env.env.is_over()
    mover = int(s["to_move"][k])
    assert s["terminated"][k].tolist() == [over, over]
    assert env.env.get_player_id() == mover
    for a, agent in enumerate(env.possible_agents):
        game.round.current_player_id = a  # whose view it is, there for both players
        env.env._get_legal_actions = dict  # whoever does not move may hold too few cards for it
        seen = env.observe(agent)
        game.round.current_player_id = mover
        del env.env._get_legal_actions
        np.testing.assert_array_equal(s["observation"][k, a], seen["observation"].ravel())
        np.testing.assert_array_equal(s["action_mask"][k, a], seen["action_mask"] * (a == mover))
        assert s["reward"][k, a] == np.float32(env.rewards[agent])


def chosen(sim: Simulator, careful: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Legal moves at random. Who is careful keeps cards that have neighbours, and goes out when it can."""
    s, n = sim.arrays, sim.num_envs
    mask = s["action_mask"][np.arange(n), s["to_move"]].astype(float)
    weights = mask * (rng.random(mask.shape) + 0.01)
    hand = s["hand"][np.arange(n), s["to_move"]][:, None] >> np.arange(52, dtype=np.uint64) & np.uint64(1)
    hand = hand.reshape(n, 4, 13).astype(int)
    same = hand.sum(1, keepdims=True) - hand
    padded = np.pad(hand, ((0, 0), (0, 0), (2, 2)))
    near = 2 * padded[:, :, 1:-3] + 2 * padded[:, :, 3:-1] + padded[:, :, :-4] + padded[:, :, 4:]
    needless = (1.0 / (1 + 2 * same + near) ** 3 * (1 + 0.1 * np.minimum(np.arange(13), 9))).reshape(n, 52)
    weights[:, DISCARD:KNOCK] *= np.where(careful[:, None], needless, 1.0)
    weights[:, KNOCK:] *= np.where(careful > 1, 0.0, np.where(careful, 100.0, 1.0))[:, None]
    return weights.argmax(1)


@pytest.mark.parametrize("options", [{}, {"opponents_hand_visible": True, "knock_reward": 0.2, "gin_reward": 2.0}])
def test_whole_games(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both players' views, masks, rewards, ends and who moves, in every step."""
    n, rng = GAMES, np.random.default_rng(0)
    sim = Simulator(get("GinRummy-v0"), n, device="cpu", autoreset_mode="disabled", **options)
    sim.reset(seed=0)
    s = sim.arrays
    careful = rng.choice(3, n, p=[0.2, 0.4, 0.4])  # 1 knocks, 2 waits for gin
    games = [theirs(sim, k, **options) for k in range(n)]
    for k in range(n):
        assert_same(sim, games[k], k)
    thrown: list[Any] = []
    of_judge = judge.get_going_out_cards

    def get_going_out_cards(hand: list[Any], count: int) -> tuple[list[Any], list[Any]]:
        knocks, gins = of_judge(hand, count)
        assert thrown[0] in gins
        return knocks, thrown

    monkeypatch.setattr(judge, "get_going_out_cards", get_going_out_cards)
    playing, steps, ends = list(range(n)), 0, {"knock": 0, "gin": 0, "dead": 0}
    while playing:
        actions = chosen(sim, careful, rng)
        s["action"][...] = -1
        s["action"][np.arange(n), s["to_move"], 0] = actions
        held, mover = s["hand"].copy(), s["to_move"].copy()
        sim.step()
        for k in playing:
            new = int(s["hand"][k, mover[k]]) & ~int(held[k, mover[k]])
            stock = games[k].env.game.round.dealer.stock_pile
            if actions[k] == 2:
                (card,) = cards_of(new)
                stock.remove(card)
                stock.append(card)
            if actions[k] == GIN:
                thrown[:] = cards_of(int(held[k, mover[k]]) & ~int(s["hand"][k, mover[k]]))
            games[k].step(int(actions[k]))
            assert_same(sim, games[k], k)
        steps += len(playing)
        for k in playing:
            if games[k].env.is_over():
                ends["gin" if s["gin"][k] else "knock" if s["went_out"][k] >= 0 else "dead"] += 1
        playing = [k for k in playing if not games[k].env.is_over()]
    assert steps > 30_000
    assert min(ends.values()) > 20


def hands(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Hands of cards that lie near each other, in part, so that there are many melds."""
    found = np.zeros(n, np.uint64)
    for k in range(n):
        of = rng.permutation(rng.integers(11, 53) if k % 4 else 52)[:52]
        low, wide = int(rng.integers(0, 8)), int(rng.integers(4, 7))
        few = [c for c in range(52) if low <= c % 13 < low + wide] if k % 2 else [int(c) for c in of]
        few = few if len(few) >= size else list(range(52))
        found[k] = sum(1 << int(c) for c in rng.choice(few, size, replace=False))
    return found


def test_cards_to_knock_with() -> None:
    """Those of hands of eleven cards, of which the last is picked up, and those that leave no deadwood."""
    n, rng = STATES, np.random.default_rng(1)
    sim = Simulator(get("GinRummy-v0"), n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    eleven = hands(rng, n, 11)
    top = np.array([rng.choice(ids(hand)) for hand in eleven], np.int32)
    own = np.array([int(hand) & ~(1 << int(c)) for hand, c in zip(eleven, top, strict=True)], np.uint64)
    mover = rng.integers(0, 2, n, np.int32)
    both = np.zeros((n, 2), np.uint64)
    both[np.arange(n), mover] = own
    sim.set_state({"hand": both, "top": top, "discards": np.uint64(1) << top.astype(np.uint64), "to_move": mover,
                   "phase": np.zeros(n, np.int32)})  # fmt: skip
    sim.arrays["action"][...] = 3
    sim.step()
    knocks = gins = 0
    for k in range(n):
        hand = cards_of(eleven[k])
        to_knock, to_gin = judge.get_going_out_cards(hand, 10)
        mask = sim.arrays["action_mask"][k, mover[k]]
        if to_gin:
            assert np.flatnonzero(mask).tolist() == [GIN]
            thrown = int(sim.arrays["gins"][k])
            assert {utils.get_card_id(c) for c in to_gin} >= {*ids(thrown & -thrown)}
        else:
            want = sorted(utils.get_card_id(card) + KNOCK for card in to_knock)
            assert (np.flatnonzero(mask[KNOCK:]) + KNOCK).tolist() == want
        knocks += bool(to_knock) and not to_gin
        gins += bool(to_gin)
    assert knocks > n / 20
    assert gins > n / 100


def test_deadwood() -> None:
    """That of RLCard and OpenSpiel."""
    n, rng = STATES, np.random.default_rng(2)
    sim = Simulator(get("GinRummy-v0"), n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    ten = np.stack([hands(rng, n, 10), hands(rng, n, 10)], 1)
    state = {"hand": ten, "phase": np.full(n, 3, np.int32), "to_move": np.ones(n, np.int32)}
    sim.set_state({**state, "went_out": np.full(n, -1, np.int32)})
    sim.arrays["action"][...] = 1
    sim.step()
    found = np.rint(sim.arrays["reward"] * -100).astype(int)
    spiel = pyspiel.gin_rummy.GinRummyUtils(13, 4, 10)
    for k in range(n):
        for a in range(2):
            hand = cards_of(ten[k, a])
            best = melding.get_best_meld_clusters(hand)
            assert found[k, a] == utils.get_deadwood_count(hand, best[0] if best else [])
            # OpenSpiel's suits are spades, clubs, diamonds, hearts
            order = [13 * (0, 3, 2, 1)[c // 13] + c % 13 for c in ids(ten[k, a])]
            assert found[k, a] == spiel.min_deadwood(order)
    assert len(np.unique(found)) > 60


def test_an_illegal_move_ends_the_game() -> None:
    sim = Simulator(get("GinRummy-v0"), 1, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    env = gin_rummy_v4.env()
    env.reset(seed=0)
    mover, agent = int(sim.arrays["to_move"][0]), env.agent_selection
    sim.arrays["action"][...] = 0
    sim.step()
    env.step(0)
    assert sim.arrays["reward"][0].tolist() == [-1.0 if a == mover else 0.0 for a in range(2)]
    assert sim.arrays["terminated"].all()
    assert all(env.terminations.values())
    assert env.rewards == {a: -1 if a == agent else 0 for a in env.possible_agents}
