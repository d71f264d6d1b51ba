"""Hanabi against DeepMind's hanabi-learning-environment, over whole episodes with the same deals. All is equal.

The original follows our deals. Its wrapper in Python can only deal at random, so a deal is written into the memory of a
move.
"""

from __future__ import annotations

import struct
import warnings

import numpy as np
import pytest

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.hanabi.hanabi import GAMES, OBSERVATION_TYPES, cards_per_color, hand_size

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ResourceWarning)  # it leaves its header open
    from hanabi_learning_environment import pyhanabi, rl_env

VARIANTS = {
    "full": {},
    "3 players": {"players": 3},
    "4 players": {"players": 4},
    "5 players": {"players": 5},
    "minimal": {"observation_type": "minimal"},
    "seer": {"observation_type": "seer", "players": 3},
    "small": dict(GAMES["Small"]),
    "very small": dict(GAMES["Very-Small"]),
    "very small, 5 players": {**GAMES["Very-Small"], "players": 5},
    "any player begins": {"players": 4, "colors": 3, "ranks": 4, "hand_size": 3, "max_information_tokens": 5,
                          "max_life_tokens": 2, "random_start_player": True},
    "one rank": {"ranks": 1, "hand_size": 3},
    "no information": {"max_information_tokens": 0, "max_life_tokens": 6},
    "large hands": {"hand_size": 8, "players": 5, "max_information_tokens": 20},
    "all cards dealt": {"colors": 2, "hand_size": 5, "players": 4, "observation_type": "seer"},
}  # fmt: skip
MANY = ("full", "5 players", "small", "very small")  # 1,000 episodes of these, 200 of the others
DEAL = 5  # HanabiMove::Type::kDeal
pytestmark = pytest.mark.timeout(1800)  # the original makes about 1,000 steps per second


class Theirs(rl_env.HanabiEnv):
    """Theirs, without the parts of an observation that are not compared."""

    def _extract_dict_from_backend(self, player_id, observation):
        return {
            "vectorized": self.observation_encoder.encode(observation),
            "legal_moves_as_int": [self.game.get_move_uid(move) for move in observation.legal_moves()],
        }


@pytest.fixture
def deals(monkeypatch):
    """Cards that the original deals next, in place of random ones."""
    queue = []

    def deal(state):
        color, rank = queue.pop(0)
        move = pyhanabi.HanabiMove.get_play_move(0)
        # the members of its class HanabiMove: type, index of a card, target, color, rank
        pyhanabi.ffi.buffer(move.c_move.move, 8)[:] = struct.pack("i4b", DEAL, -1, -1, color, rank)
        state.apply_move(move)

    monkeypatch.setattr(pyhanabi.HanabiState, "deal_random_card", deal)
    return queue


def packed(cards):
    """(color, rank) of the cards of hands, -1 where there is none: (..., 8) from bytes with one bit each."""
    bits = np.ascontiguousarray(cards).view(np.uint8).reshape(*cards.shape, 8)
    return np.where(bits == 0, -1, np.log2(np.maximum(bits, 1)).astype(int))


def theirs(cfg):
    names = ("players", "colors", "ranks", "max_information_tokens", "max_life_tokens", "random_start_player")
    return Theirs(
        {name: getattr(cfg, name) for name in names}
        | {"hand_size": hand_size(cfg), "observation_type": OBSERVATION_TYPES.index(cfg.observation_type), "seed": 1}
    )


def assert_same(sim, k, shown):
    observations, masks, mover = sim.arrays["observation"][k], sim.arrays["action_mask"][k], shown["current_player"]
    assert sim.arrays["to_move"][k] == mover
    for a, of_player in enumerate(shown["player_observations"]):
        assert observations[a].tolist() == of_player["vectorized"]
        assert np.flatnonzero(masks[a]).tolist() == of_player["legal_moves_as_int"]


def chosen(sim, rng, careful):
    """Legal moves at random; those who are careful do not play what does not fit if they can do anything else."""
    s, cfg = sim.arrays, sim.cfg
    n, hand = sim.num_envs, hand_size(cfg)
    mover, every = s["to_move"], np.arange(n)
    masks = s["action_mask"][every, mover].astype(bool)
    color, rank = packed(s["color"])[every, mover, :hand], packed(s["rank"])[every, mover, :hand]
    fireworks = s["fireworks"][:, None] >> (cfg.ranks * np.maximum(color, 0)).astype(np.uint32)
    played = np.bitwise_count(fireworks & np.uint32((1 << cfg.ranks) - 1))
    fits = (rank == played) & (color >= 0)
    weight = rng.random(masks.shape) * masks + masks
    weight[:, hand : 2 * hand] += (
        np.where(careful[:, None], np.where(fits, 0.7, -0.99), 0.0) * masks[:, hand : 2 * hand]
    )
    return weight.argmax(1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_whole_episodes(variant, deals):
    rng, n = np.random.default_rng(0), 1000 if variant in MANY else 200
    sim = Simulator(gpuzoo.get("Hanabi-v0"), n, device="cpu", autoreset_mode="disabled", **VARIANTS[variant])
    sim.reset(seed=0)
    cfg, s = sim.cfg, sim.arrays
    careful = np.arange(n) % 2 == 0
    games = []
    for k in range(n):
        game = theirs(cfg)
        while True:  # its draw of the first player is not ours
            hands = np.stack([packed(s["color"][k]), packed(s["rank"][k])], -1)[:, : hand_size(cfg)].reshape(-1, 2)
            deals[:] = hands.tolist()
            shown = game.reset()
            assert not deals
            if shown["current_player"] == s["to_move"][k]:
                break
        assert_same(sim, k, shown)
        games.append(game)
    going, ends = np.ones(n, bool), {}
    for _ in range(400):
        actions = chosen(sim, rng, careful)
        before = np.bitwise_count(s["deck"])
        mover = s["to_move"].copy()
        s["action"][np.arange(n), mover, 0] = actions
        sim.step()
        drawn = np.bitwise_count(s["deck"]) < before
        for k in np.flatnonzero(going):
            if drawn[k]:
                hands = (packed(s[name][k, mover[k]])[hand_size(cfg) - 1] for name in ("color", "rank"))
                deals[:] = [tuple(map(int, hands))]
            shown, reward, done, _ = games[k].step(int(actions[k]))
            assert not deals
            assert s["reward"][k].tolist() == [reward] * cfg.players
            assert s["terminated"][k].all() == done
            assert_same(sim, k, shown)
            if done:
                how = games[k].state.end_of_game_status().name
                ends[how] = ends.get(how, 0) + 1
                going[k] = False
        if not going.any():
            break
    assert not going.any()
    fewest = {"no information": 1, "large hands": 2, "all cards dealt": 2}.get(variant, 3)  # in the first only plays
    assert len(ends) >= fewest


def test_cards_are_drawn_alike():
    """The first card drawn in 20,000 games is of each kind as often as in the deck, within 5 standard deviations."""
    n = 20_000
    sim = Simulator(gpuzoo.get("Hanabi-v0"), n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    s, cfg = sim.arrays, sim.cfg
    left = s["deck"][:, None] >> np.arange(50, dtype=np.uint64) & np.uint64(1)
    rank_of = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 4])
    kind = np.arange(50) // cards_per_color(cfg) * cfg.ranks + rank_of[np.arange(50) % 10]
    expected = np.zeros((n, 25))
    for card in range(50):
        expected[:, kind[card]] += left[:, card] / 40
    s["action"][:, 0, 0] = 5
    sim.step()
    color, rank = packed(s["color"][:, 0])[:, 4], packed(s["rank"][:, 0])[:, 4]
    found = np.bincount(5 * color + rank, minlength=25)
    deviation = np.sqrt((expected * (1 - expected)).sum(0))
    assert (abs(found - expected.sum(0)) < 5 * deviation).all()
