"""`observers="mover"`: a row of observations and masks for the agent to move, and nothing else is different."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from batches import advance
from toys.nim import Nim

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.search import Search

ENVS = 37
GAMES = [game for game in gpuzoo.ids() if gpuzoo.get(game).turn is not None]
SEEN = ("observation", "action_mask")
LAST_SEEN = tuple(f"final_{name}" for name in SEEN)


def both(game, mode="same_step", device="cpu", **kwargs):
    """A batch in which all observe, and one in which the agent to move does."""
    return [
        Simulator(
            gpuzoo.get(game), ENVS, device=device, autoreset_mode=mode, observers=observers,
            **({"threads": 1} if device == "cpu" else {}), **kwargs,
        )
        for observers in ("all", "mover")
    ]  # fmt: skip


def read(sim):
    return {name: np.array(array) for name, array in sim.arrays.items()}


def assert_alike(game, step, every, movers, ended):
    """That one of two batches has the rows of movers, and all else is the same."""
    envs, turn = np.arange(ENVS), every[gpuzoo.get(game).turn]
    for name, want in every.items():
        got = movers[name]
        if name in SEEN:
            assert got.shape[1] == 1
            want, got = want[envs, turn], got[:, 0]
        elif name in LAST_SEEN:  # whose turn it was when the episode ended is not known any more
            alike = (want == got).all(2).any(1)
            assert alike[ended].all(), f"step {step}: {name}"
            continue
        np.testing.assert_array_equal(got, want, err_msg=f"step {step}: {name}")


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("name", GAMES)
def test_bits_are_the_same(name, mode):
    every, movers = both(name, mode, max_episode_steps=9)
    chances = [np.random.default_rng(0) for _ in range(2)]
    for sim in (every, movers):
        sim.reset(seed=3)
    for step in range(24):
        for sim, chance in zip((every, movers), chances, strict=True):
            sim.random_actions()
            advance(sim, step, chance)
        one, other = read(every), read(movers)
        assert_alike(name, step, one, other, one["ended"] if mode == "same_step" else np.zeros(ENVS, bool))


@pytest.mark.one_case
@pytest.mark.parametrize("name", ["Chess-v0", "Go-v0", "LeducHoldem-v0"])
def test_pettingzoos_observations(name):
    every, movers = both(name, observation_type="pettingzoo")
    for sim in (every, movers):
        sim.reset(seed=3)
        sim.rollout(17)
    assert_alike(name, 17, read(every), read(movers), np.zeros(ENVS, bool))


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("name", ["TicTacToe-v0", "AnimalShogi-v0", "Hanabi-v0"])
def test_rollouts_are_the_same(name, device):
    every, movers = both(name, "next_step", device)
    for sim in (every, movers):
        sim.reset(seed=5)
        sim.rollout(33)
    assert_alike(name, 33, read(every), read(movers), np.zeros(ENVS, bool))


def test_illegal_actions_and_the_checked_form():
    every, movers = both("Hex-v0", debug=True)
    for sim in (every, movers):
        sim.reset(seed=0)
        sim.arrays["action"][...] = np.arange(ENVS)[:, None, None] % 3 * 60
        sim.step()
        sim.step()  # the same cell again is illegal
    one = read(every)
    assert one["ended"].any()
    assert_alike("Hex-v0", 2, one, read(movers), one["ended"])


def test_snapshots_fit_both():
    every, movers = both("ConnectFour-v0")
    every.reset(seed=1)
    every.rollout(5)
    movers.restore(every.snapshot())
    kept = read(every).keys() & every.snapshot().arrays.keys()
    one, other = ({name: read(sim)[name] for name in kept} for sim in (every, movers))
    assert_alike("ConnectFour-v0", 0, one, other, np.zeros(ENVS, bool))
    movers.rollout(3)
    want = read(movers)
    every.restore(movers.snapshot([4, 2]), [0, 7])
    for name in SEEN:
        got = every.arrays[name][[0, 7], every.arrays["to_move"][[0, 7]]]
        np.testing.assert_array_equal(got, want[name][[4, 2], 0])


def test_copies():
    _, movers = both("ConnectFour-v0")
    movers.reset(seed=1)
    other = copy.deepcopy(movers)
    assert other.arrays["observation"].shape[1] == 1
    for sim in (movers, other):
        sim.rollout(3)
    np.testing.assert_array_equal(movers.arrays["observation"], other.arrays["observation"])


def test_a_search_finds_the_same():
    weights = torch.randn(128, 66, generator=torch.Generator().manual_seed(0))

    def evaluate(boards, legal):
        found = boards.float().flatten(1) @ weights
        return found[:, :65], torch.tanh(found[:, 65] / 10)

    envs = Simulator(gpuzoo.get("Othello-v0"), 6, device="cpu")
    envs.reset(seed=0)
    envs.rollout(9)
    one, other = (
        Search("Othello-v0", 6, simulations=24, device="cpu", observers=observers).run(envs, evaluate)
        for observers in ("all", "mover")
    )
    assert torch.equal(one.visits, other.visits)
    assert torch.equal(one.q, other.q)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("ConnectFour-v0", "one", "observers must be 'all' or 'mover', not 'one'"),
        ("SimpleTag-v0", "mover", "agents do not move in turn"),
        ("CartPole-v1", "mover", "agents do not move in turn"),
    ],
)
def test_what_is_refused(name, given, message):
    with pytest.raises(ValueError, match=message):
        Simulator(gpuzoo.get(name), 2, device="cpu", observers=given)


def test_rules_that_write_all_rows_are_refused():
    with pytest.raises(ValueError, match="its rules write a row for each agent"):
        Simulator(Nim, 2, device="cpu", observers="mover")
