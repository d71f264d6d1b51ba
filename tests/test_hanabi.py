"""Hanabi's rules in positions that are known, its names, its state, and that it is learnt.

Whole games are compared with the original in tests/integrations/hanabi, and with JaxMARL's beside it.
"""

from __future__ import annotations

import numpy as np
import pytest
from training import small

import gpuzoo
from baselines.ppo import PPO
from baselines.report.evaluation import evaluate
from baselines.run import train
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.hanabi.hanabi import GAMES, Hanabi

DISCARD, PLAY, HINT_COLOR, HINT_RANK = 0, 5, 10, 15  # first moves of each kind for two players
RED, YELLOW, GREEN, WHITE, BLUE = range(5)


def hand(*cards: int) -> tuple[int, int, int, int]:
    """Bytes of color, rank and knowledge of cards such as 43: color 4, rank 3. Ranks count from 1 here."""
    colors = sum(1 << card // 10 << 8 * k for k, card in enumerate(cards))
    ranks = sum(1 << card % 10 - 1 << 8 * k for k, card in enumerate(cards))
    unknown = sum(31 << 8 * k for k in range(len(cards)))
    return colors, ranks, unknown, unknown


def started(*hands: tuple[int, ...], players: int = 2, **state: int) -> Simulator:
    """A game with these hands; `options` of the state replace those of the start."""
    s = Simulator(Hanabi, 1, device="cpu", autoreset_mode="disabled", players=players)
    s.reset(seed=0)
    names = ("color", "rank", "known_color", "known_rank")
    values = {name: np.array([[h[k] for h in hands]], np.uint64) for k, name in enumerate(names)} if hands else {}
    s.set_state(values | {name: np.array([value], s.arrays[name].dtype) for name, value in state.items()})
    return s


def play(s: Simulator, move: int) -> float:
    """The reward of a move of the player in turn."""
    s.arrays["action"][0, int(s.arrays["to_move"][0]), 0] = move
    s.step()
    rewards = s.arrays["reward"][0]
    assert (rewards == rewards[0]).all() or not s.arrays["action_mask"].any()
    return float(rewards[0])


def test_a_card_that_fits_scores_and_one_that_does_not_costs_a_life() -> None:
    s = started(hand(1, 2, 3, 11, 22), hand(1, 2, 3, 4, 5))
    assert play(s, PLAY) == 1.0  # red 1
    assert s.arrays["fireworks"][0] == 1
    assert play(s, PLAY) == 0.0  # red 1 again
    assert s.arrays["life_tokens"][0] == 2
    assert s.arrays["discards"][0] == 1
    assert play(s, PLAY) == 1.0  # red 2, which moved to the front
    assert s.arrays["fireworks"][0] == 0b11


@pytest.mark.parametrize(("keep_score", "last"), [(False, -3.0), (True, 0.0)])
def test_the_last_life_takes_the_score_back(keep_score: bool, last: float) -> None:
    s = Simulator(Hanabi, 1, device="cpu", autoreset_mode="disabled", keep_score=keep_score)
    s.reset(seed=0)
    s.set_state({
        "color": np.array([[1, 1]], np.uint64), "rank": np.array([[16, 16]], np.uint64),
        "fireworks": np.array([0b111], np.uint32), "life_tokens": np.array([1], np.int32),
    })  # fmt: skip
    assert play(s, PLAY) == last
    assert s.arrays["terminated"].all()


def test_a_hint_tells_all_cards_of_a_color() -> None:
    s = started(hand(1, 2, 3, 11, 22), hand(11, 21, 12, 31, 13))
    assert play(s, HINT_COLOR + YELLOW) == 0.0
    known = np.ascontiguousarray(s.arrays["known_color"][0, 1:]).view(np.uint8)[:5]
    yellow, other = 1 << YELLOW | 1 << 5, 31 & ~(1 << YELLOW)
    assert known.tolist() == [yellow, other, yellow, other, yellow]
    assert s.arrays["information_tokens"][0] == 7
    mask = s.arrays["action_mask"][0, 1]
    assert mask[HINT_COLOR : HINT_COLOR + 5].tolist() == [1, 1, 1, 0, 0]
    assert mask[HINT_RANK:].tolist() == [1, 1, 1, 0, 0]
    assert mask[DISCARD]  # a token is missing now


def test_completing_a_firework_brings_a_token_back() -> None:
    s = started(hand(5, 2, 3, 11, 22), hand(1, 2, 3, 4, 15), fireworks=0b1111, information_tokens=2)
    assert play(s, PLAY) == 1.0
    assert s.arrays["information_tokens"][0] == 3
    assert s.arrays["last_gained"][0]


def test_everybody_moves_once_when_the_deck_is_empty() -> None:
    s = started(deck=1, information_tokens=0)
    play(s, DISCARD)
    assert s.arrays["deck"][0] == 0
    for _ in range(2):
        assert not s.arrays["terminated"].any()
        play(s, DISCARD)
    assert s.arrays["terminated"].all()
    assert np.bitwise_count(s.arrays["color"][0]).tolist() == [4, 4]


def test_an_illegal_move_ends_the_game() -> None:
    s = started()
    s.arrays["action"][0, 0, 0] = DISCARD  # all tokens are there
    s.step()
    assert s.arrays["reward"][0].tolist() == [-1.0, 0.0]
    assert s.arrays["terminated"].all()


def test_the_state_has_all_hands() -> None:
    envs = gpuzoo.aec_env("Hanabi-v0")
    envs.reset(seed=0)
    state, seen = envs.state(), [envs.observe(agent)["observation"] for agent in envs.agents]
    assert envs.state_space.shape == (125 + 658 + 2,)
    np.testing.assert_array_equal(state[:125], seen[1][:125])  # player_0's cards, as player_1 sees them
    np.testing.assert_array_equal(state[125:-2], seen[0])
    assert state[-2:].tolist() == [1, 0]


@pytest.mark.parametrize(("name", "size", "moves"), [("Hanabi-Full", 658, 20), ("Hanabi-Small", 171, 11)])
def test_names_of_the_original(name: str, size: int, moves: int) -> None:
    envs = gpuzoo.make(name, 2)
    assert envs.simulator.arrays["observation"].shape == (2, 2, size)
    assert envs.simulator.arrays["action_mask"].shape == (2, 2, moves)


def test_types_of_observation_by_number() -> None:
    sizes = [gpuzoo.make("Hanabi-v0", 1, observation_type=k).simulator.arrays["observation"].shape[2] for k in (0, 1)]
    assert sizes == [308, 658]
    with pytest.raises(ValueError, match="observation_type must be 0, 1, 2 or a name, not 3"):
        gpuzoo.make("Hanabi-v0", 1, observation_type=3)


def test_hands_that_the_deck_has_not() -> None:
    with pytest.raises(ValueError, match="the hands take 20 cards, but the deck has 10"):
        gpuzoo.make("Hanabi-v0", 1, players=4, colors=1, hand_size=5)


@pytest.mark.rotates(long=True)
def test_the_very_small_game_is_learnt() -> None:
    """Three seeds end at 1 or 2, where they risk nothing. Random players get less than 0.1."""
    config = dict(GAMES["Very-Small"])
    args = small("Hanabi-v0", population=3, num_envs=64, num_steps=64, total_steps=200_000, lr=2e-3, gamma=1.0,
                 ent_coef=0.03, hidden=(64, 64), activation="tanh", encoder="mlp", critic="separate", minibatches=4,
                 config=config)  # fmt: skip
    policies = train(PPO, args, quiet=True).policies
    means = [
        evaluate("Hanabi-v0", policies, 300, member=k, greedy=True, config=config).returns["player"].mean()
        for k in range(3)
    ]
    assert min(means) > 0.8, means
    assert np.mean(means) > 1.3, means
