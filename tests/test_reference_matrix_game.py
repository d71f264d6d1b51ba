"""Matrix games against PettingZoo's rps_v2 and against the table of payoffs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pettingzoo.classic.rps import rps

import gpuzoo
from gpuzoo.envs.matrix_game.matrix_game import MatrixGame, payoffs_of

pytestmark = pytest.mark.rotates


@pytest.mark.parametrize("num_actions", [3, 5, 7, 21])
def test_rock_paper_scissors_is_pettingzoos(num_actions):
    """Whole episodes: observations, rewards and ends."""
    rounds, rng = 15, np.random.default_rng(num_actions)
    options = {"game": "rock_paper_scissors", "num_actions": num_actions}
    ours = gpuzoo.parallel_env(MatrixGame, max_cycles=rounds, device="cpu", **options)
    theirs = rps.parallel_env(num_actions=num_actions, max_cycles=rounds)
    for episode in range(250):
        seen, _ = ours.reset(seed=episode)
        theirs_seen, _ = theirs.reset(seed=episode)
        for _ in range(rounds):
            for k, agent in enumerate(theirs.agents):
                assert seen[agent][1] == theirs_seen[agent], "the other's last move"
                assert seen[agent][0] == theirs_seen[f"player_{1 - k}"], "its own last move"
            actions = {agent: int(rng.integers(num_actions)) for agent in theirs.agents}
            seen, rewards, terminations, truncations, _ = ours.step(actions)
            theirs_seen, *theirs_rest, _ = theirs.step(actions)
            assert [rewards, terminations, truncations] == theirs_rest
        assert ours.agents == theirs.agents == []


GAMES = ("prisoners_dilemma", "stag_hunt", "chicken", "matching_pennies")


@pytest.mark.parametrize("name", GAMES)
def test_two_players_get_what_the_table_says(name):
    table = payoffs_of(name)
    envs = gpuzoo.make("MatrixGame", 4, game=name, device="cpu")
    envs.reset(seed=0)
    for a, b in itertools.product(range(2), repeat=2):
        _, rewards, *_ = envs.step({"player": np.tile([a, b], (4, 1))})
        assert (rewards["player"] == table[a, b]).all()


def test_named_games_are_what_their_names_say():
    pd, hunt, chicken, pennies = (payoffs_of(g)[..., 0] for g in GAMES)
    assert pd[1, 0] > pd[0, 0] > pd[1, 1] > pd[0, 1]
    assert 2 * pd[0, 0] > pd[1, 0] + pd[0, 1]
    assert hunt[0, 0] > hunt[1, 0] >= hunt[1, 1] > hunt[0, 1]
    assert chicken[1, 0] > chicken[0, 0] > chicken[0, 1] > chicken[1, 1]
    assert (payoffs_of("matching_pennies").sum(-1) == 0).all()
    assert pennies.sum() == 0


@pytest.mark.parametrize("shape", [(2, 2), (5, 5), (3, 3, 3), (2,) * 5])
def test_any_payoffs_and_any_memory(shape):
    """Against NumPy's indexing of the table, with a list for the memory."""
    players, rng = len(shape), np.random.default_rng(7)
    table = rng.normal(size=(*shape, players)).astype(np.float32)
    game, memory, n = MatrixGame.of(table, "Any-v3"), 4, 6
    envs = gpuzoo.make(game, n, memory=memory, max_episode_steps=9, device="cpu")
    seen, _ = envs.reset(seed=0)
    past = np.full((n, memory, players), shape[0])
    for step in range(30):
        actions = rng.integers(0, shape[0], (n, players))
        seen, rewards, _, truncated, _ = envs.step({"player": actions})
        assert (rewards["player"] == table[tuple(actions.T)]).all()
        past = np.concatenate([actions[:, None], past[:, :-1]], axis=1)
        assert truncated["player"].all() == (step % 9 == 8)
        if step % 9 == 8:
            past[:] = shape[0]
        want = np.stack([np.roll(past, -a, axis=2).reshape(n, -1) for a in range(players)], axis=1)
        assert (seen["player"] == want).all()


@pytest.mark.parametrize(
    ("payoffs", "message"),
    [
        (np.zeros((2, 2)), "shape"),
        (np.zeros((2, 3, 2)), "same payoffs for several"),
        (np.zeros((2, 2, 3)), "shape"),
        (np.zeros((1, 1, 2)), "n >= 2"),
        (np.full((2, 2, 2), np.nan), "finite"),
    ],
)
def test_wrong_payoffs(payoffs, message):
    with pytest.raises(ValueError, match=message):
        MatrixGame.of(payoffs)


def test_even_number_of_actions():
    with pytest.raises(ValueError, match="must be odd"):
        gpuzoo.make("MatrixGame", game="rock_paper_scissors", num_actions=4)
