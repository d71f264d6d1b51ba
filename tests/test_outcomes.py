"""Infos that are true or false, such as a victory, are counted over whole episodes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")

import gpuzoo
from baselines import run
from baselines.ppo import PPO, Args
from baselines.report.evaluation import evaluate
from gpuzoo.tools import cli

FIGHT = {"scenario": "3m_vs_2m", "max_episode_steps": 30}  # battles of which some are won, lost and neither


def test_outcomes_are_those_of_each_episodes_last_step() -> None:
    seen = evaluate("SMAX-v0", {}, episodes=300, seed=5, config=FIGHT)
    assert list(seen.outcomes) == ["won", "lost"]
    won, lost = seen.outcomes["won"], seen.outcomes["lost"]
    assert (won.dtype, won.shape) == (np.bool_, (300,))
    paid = seen.returns["ally"][:, 0]
    np.testing.assert_array_equal(won, paid > 1.5)  # 1 for all damage and 1 for the victory
    over = seen.terminated["ally"].any(1)
    np.testing.assert_array_equal(won | lost, over)
    assert not (won & lost).any()
    assert 0 < won.mean() < over.mean() < 1
    assert seen.rates == {"won": won.mean(), "lost": lost.mean()}


def test_outcomes_are_the_infos_of_the_vector_env() -> None:
    envs = gpuzoo.make_vec("SMAX-v0", num_worlds=64, infos=True, autoreset_mode="next_step", **FIGHT)
    envs.reset(seed=1)
    first, over = np.zeros(3 * 64, bool), np.zeros(3 * 64, bool)
    for _ in range(30):
        *_, terminations, truncations, infos = envs.step(envs.action_space.sample())
        done = (terminations | truncations) & ~over
        first |= infos["won"] & done
        over |= done
    assert over.all()
    envs.close()
    many = evaluate("SMAX-v0", {}, episodes=600, config=FIGHT).rates["won"]
    # Two samples of one rate: its standard error with 64 of them is below 0.0625.
    assert abs(first.mean() - many) < 4 * 0.0625


@pytest.mark.parametrize("evaporating", [False, True])
def test_outcomes_of_agents_are_those_of_their_last_steps(evaporating: bool) -> None:
    field = {"num_agents": 3, "evaporating": evaporating, "max_episode_steps": 100, "lidar_num_beams": 8}
    seen = evaluate("JaxNav-v0", {}, episodes=200, config=field)
    reached, crashed = seen.outcomes["goal_reached"], seen.outcomes["crashed"]
    assert reached.shape == crashed.shape == (200, 3)
    done = seen.terminated["robot"] if evaporating else seen.terminated["robot"].all(1)
    np.testing.assert_array_equal(reached | crashed if evaporating else (reached | crashed).all(1), done)
    assert 0 < seen.rates["goal_reached"] < seen.rates["crashed"] < 1
    assert seen.returns["robot"][reached & ~crashed].mean() > seen.returns["robot"][crashed].mean()


def test_a_game_without_such_infos_has_no_outcomes() -> None:
    assert evaluate("Overcooked-v0", {}, episodes=2, config={"max_episode_steps": 5}).outcomes == {}  # numbers only
    assert evaluate("CartPole-v1", {}, episodes=2).rates == {}


def test_an_episode_that_is_cut_off_has_the_outcomes_of_then() -> None:
    seen = evaluate("SMAX-v0", {}, episodes=8, config=FIGHT, max_steps=2)
    assert seen.rates == {"won": 0.0, "lost": 0.0}


def test_training_logs_the_rates_of_its_evaluations() -> None:
    args = Args(
        "SMAX-v0", num_envs=4, num_steps=8, total_steps=64, config=FIGHT, eval_every=2, eval_episodes=50, population=2
    )
    row = run.train(PPO, args, quiet=True).rows[-1]
    assert 0 < row["eval/lost"] + row["eval/won"] < 1
    assert row["eval/ally"] > row["eval/won"] * 1.5


def test_play_tells_the_shares() -> None:
    words = ["play", "SMAX-v0", "--episodes", "40", "-c", "scenario=3m_vs_2m", "-c", "max_episode_steps=30"]
    told, table = (CliRunner().invoke(cli.app, [*words, *more], env={"NO_COLOR": "1"}) for more in (["--json"], []))
    rates = json.loads(told.stdout)["outcomes"]
    assert rates == evaluate("SMAX-v0", {}, 40, config=FIGHT).rates
    assert f"Shares: won {rates['won']:.1%}, lost {rates['lost']:.1%}." in table.stdout
