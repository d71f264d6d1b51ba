"""Texas hold'em against PettingZoo and RLCard: whole games with the same cards, and showdowns with drawn hands.

RLCard draws from a generator of its own. Here a stand-in gives it the cards, dealers and odd chips of our game.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draws import bits
from pettingzoo.classic import texas_holdem_no_limit_v6, texas_holdem_v4
from rlcard.games.base import Card
from rlcard.games.limitholdem import Judger, PlayerStatus
from rlcard.games.limitholdem.utils import compare_hands

from gpuzoo import Simulator, get

pytestmark = [
    pytest.mark.rotates,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*precision lowered by casting"),
]
ODD_CHIPS = 8  # the first of their draws
GAMES = 1000
STATES_OF_TWO = 100_000
STATES_OF_SIX = 10_000
CASES = {
    "limit": ("TexasHoldem-v0", {}),
    "limit, 3 players": ("TexasHoldem-v0", {"num_players": 3}),
    "limit, 6 players": ("TexasHoldem-v0", {"num_players": 6}),
    "no limit": ("TexasHoldemNoLimit-v0", {}),
    "no limit, 3 players": ("TexasHoldemNoLimit-v0", {"num_players": 3}),
    "no limit, 6 players": ("TexasHoldemNoLimit-v0", {"num_players": 6}),
    "no limit, few chips": ("TexasHoldemNoLimit-v0", {"num_players": 4, "chips": 9}),
}


def cards_of(cards: int) -> list[Card]:
    return [Card("SHDC"[k // 13], "A23456789TJQK"[k % 13]) for k in range(52) if int(cards) >> k & 1]


class Chance:
    """RLCard's generator: what ours has drawn."""

    def __init__(self) -> None:
        self.hands: list[list[Card]] = []
        self.dealer = 0
        self.odd_bits: list[int] = []
        self.layers = 0

    def shuffle(self, deck: list[Card]) -> None:
        """Cards are dealt from the end, one to each player in turn."""
        order = [hand[k] for k in range(2) for hand in self.hands]
        deck[:] = [card for card in deck if card not in order] + order[::-1]

    def randint(self, low: int, high: int) -> int:
        return self.dealer

    def choice(self, of: list[int]) -> int:
        return of[self.odd_bits[self.layers - 1] * len(of) >> 32]


class Counting(Judger):
    """Counts the layers of a pot."""

    def split_pot_among_players(self, in_chips: list[int], winners: list[int]) -> Any:
        self.np_random.layers += 1
        return super().split_pot_among_players(in_chips, winners)


def odd_bits(sim: Simulator) -> np.ndarray:
    """Of each env: the numbers by which odd chips are drawn in the next step, one for each layer."""
    return np.stack([bits(sim, ODD_CHIPS + layer) for layer in range(sim.layout.agents)], 1)


class Theirs:
    """A game of PettingZoo's with the cards of one of ours."""

    def __init__(self, module: Any, config: dict[str, Any], sim: Simulator, k: int, first: int) -> None:
        players = sim.layout.agents
        self.env = module.raw_env(num_players=players)
        self.chance = Chance()
        self.chance.hands = [cards_of(hand) for hand in sim.arrays["hand"][k]]
        self.chance.dealer = first
        game = self.env.env.game
        game.np_random = self.chance
        if "chips" in config:
            game.init_chips = [config["chips"]] * players
        game.dealer_id = None
        self.env.reset()
        game.judger = Counting(self.chance)
        self.game = game

    def show(self, cards: int) -> None:
        """The cards that come next."""
        deck = self.game.dealer.deck
        new = cards_of(cards)
        deck[:] = [card for card in deck if card not in new] + new


@pytest.mark.parametrize("case", CASES)
def test_whole_games(case: str) -> None:
    """Observations of all players, masks, rewards, ends and who moves, in every step."""
    name, config = CASES[case]
    module = texas_holdem_v4 if name == "TexasHoldem-v0" else texas_holdem_no_limit_v6
    n, rng = GAMES, np.random.default_rng(0)
    sim = Simulator(get(name), n, device="cpu", autoreset_mode="disabled", **config)
    sim.reset(seed=0)
    s, players = sim.arrays, sim.layout.agents
    first = s["dealer"] if "dealer" in s else (s["chips"] == 1).argmax(1)
    games = [Theirs(module, config, sim, k, int(first[k])) for k in range(n)]
    fold, raising = (2, [1]) if name == "TexasHoldem-v0" else (0, [2, 3, 4])
    folds = rng.choice([0.02, 0.2, 1.0], n)  # how likely, beside other moves
    raises = rng.choice([0.05, 1.0], n)
    playing, steps, ends = list(range(n)), 0, {1: 0, 2: 0}
    for k in playing:
        assert_same(sim, games[k], k, False)
    while playing:
        mask = s["action_mask"][np.arange(n), s["to_move"]].astype(float)
        weights = mask * rng.random(mask.shape)
        weights[:, fold] *= folds
        weights[:, raising] *= raises[:, None]
        actions = weights.argmax(1)
        s["action"][...] = -1
        s["action"][np.arange(n), s["to_move"], 0] = actions
        before, odd = s["public_cards"].copy(), odd_bits(sim)
        sim.step()
        for k in playing:
            games[k].chance.odd_bits = odd[k].tolist()
            games[k].show(int(s["public_cards"][k]) & ~int(before[k]))
            games[k].env.step(int(actions[k]))
            over = games[k].env.env.is_over()
            assert_same(sim, games[k], k, over)
            if over:
                ends[min(players - int(s["folded"][k]).bit_count(), 2)] += 1
        steps += len(playing)
        playing = [k for k in playing if not games[k].env.env.is_over()]
    assert steps > 4 * n
    assert min(ends.values()) > n / 10


def assert_same(sim: Simulator, theirs: Theirs, k: int, over: bool) -> None:
    s, env = sim.arrays, theirs.env
    assert s["terminated"][k].tolist() == [over] * sim.layout.agents
    mover = int(s["to_move"][k])
    assert env.env.get_player_id() == mover
    for a, agent in enumerate(env.possible_agents):
        seen = env.observe(agent)
        assert s["observation"][k, a].tolist() == seen["observation"].tolist()
        assert s["reward"][k, a] == env.rewards[agent]
        mask = seen["action_mask"] if a == mover else 0 * seen["action_mask"]
        assert s["action_mask"][k, a].tolist() == mask.tolist()


def hands(rng: np.random.Generator, n: int, players: int) -> tuple[np.ndarray, np.ndarray]:
    """Public cards and hands, as sets: of all cards, or of few ranks or suits, so that rare hands come often."""
    public, own = np.zeros(n, np.uint64), np.zeros((n, players), np.uint64)
    decks = [
        list(range(52)), list(range(26)), [13 * s + r for s in range(4) for r in (0, 1, 2, 3, 4, 9, 12)],
        [*range(13), 20, 21, 33, 34, 46, 47, 13, 26, 39], [13 * s + r for s in range(4) for r in range(5)],
    ]  # fmt: skip
    for k in range(n):
        deck = rng.permutation(decks[k % len(decks)])
        public[k] = sum(1 << int(c) for c in deck[:5])
        own[k] = [sum(1 << int(c) for c in deck[5 + 2 * p : 7 + 2 * p]) for p in range(players)]
    return public, own


@pytest.mark.parametrize(("players", "n"), [(2, STATES_OF_TWO), (6, STATES_OF_SIX)])
def test_showdowns(players: int, n: int) -> None:
    """Who wins, and what: with six players some have folded with fewer chips, so that pots are uneven."""
    rng = np.random.default_rng(1)
    sim = Simulator(get("TexasHoldemNoLimit-v0"), n, device="cpu", autoreset_mode="disabled", num_players=players)
    sim.reset(seed=1)
    public, own = hands(rng, n, players)
    last = rng.integers(0, players, n)
    folded = np.zeros(n, np.uint32)
    chips = np.repeat(rng.integers(2, 90, n)[:, None], players, 1).astype(np.int32)
    if players > 2:
        out = rng.random((n, players)) < 0.4
        out[np.arange(n), last] = out[np.arange(n), (last + 1) % players] = False
        folded = (out << np.arange(players)).sum(1).astype(np.uint32)
        chips = np.where(out, rng.integers(0, chips + 1), chips).astype(np.int32)
    state = {"public_cards": public, "hand": own, "folded": folded, "chips": chips, "round": np.full(n, 3, np.int32)}
    acted = (players - 1 - np.bitwise_count(folded)).astype(np.int32)
    sim.set_state({**state, "to_move": last.astype(np.int32), "acted": acted})
    sim.arrays["action"][np.arange(n), last, 0] = 1
    odd = odd_bits(sim)
    sim.step()
    assert sim.arrays["terminated"].all()
    chance, shared, uneven = Chance(), 0, 0
    judge = Counting(chance)
    for k in range(n):
        alive = [not int(folded[k]) >> p & 1 for p in range(players)]
        given = [cards_of(int(own[k, p]) | int(public[k])) if alive[p] else None for p in range(players)]
        there = [_Player(int(chips[k, p]), alive[p]) for p in range(players)]
        chance.odd_bits, chance.layers = odd[k].tolist(), 0
        payoffs = judge.judge_game(there, given)
        assert sim.arrays["reward"][k].tolist() == payoffs
        shared += sum(compare_hands([hand and [c.get_index() for c in hand] for hand in given])) > 1
        uneven += chance.layers > 1
    assert shared > n / 50
    assert players == 2 or uneven > n / 2


class _Player:
    def __init__(self, chips: int, alive: bool) -> None:
        self.in_chips, self.status = chips, PlayerStatus.ALIVE if alive else PlayerStatus.FOLDED


@pytest.mark.parametrize("case", ["limit, 3 players", "no limit"])
def test_an_illegal_move_ends_the_game(case: str) -> None:
    name, config = CASES[case]
    module = texas_holdem_v4 if name == "TexasHoldem-v0" else texas_holdem_no_limit_v6
    sim = Simulator(get(name), 1, device="cpu", autoreset_mode="disabled", **config)
    sim.reset(seed=0)
    env = module.env(num_players=sim.layout.agents)
    env.reset(seed=0)
    illegal = 3  # to check while behind
    if name == "TexasHoldemNoLimit-v0":  # to raise when the other one has bet all
        sim.arrays["action"][...] = 4
        sim.step()
        env.step(4)
    mover, agent = int(sim.arrays["to_move"][0]), env.agent_selection
    sim.arrays["action"][...] = illegal
    sim.step()
    env.step(illegal)
    want = [0.0] * sim.layout.agents
    want[mover] = -1.0
    assert sim.arrays["reward"][0].tolist() == want
    assert sim.arrays["terminated"].all()
    assert all(env.terminations.values())
    assert env.rewards[agent] == -1
    assert sum(env.rewards.values()) == -1
