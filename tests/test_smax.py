"""SMAX: how scenarios are written, and who has won."""

from __future__ import annotations

import numpy as np
import pytest

import gpuzoo
from gpuzoo.envs.smax.battle import SCENARIOS, armies


@pytest.mark.parametrize(
    ("scenario", "allies", "enemies"),
    [
        ("2s3z", [2, 2, 3, 3, 3], [2, 2, 3, 3, 3]),
        ("3s_vs_5z", [2, 2, 2], [3, 3, 3, 3, 3]),
        ("1M1h_vs_2zg1z", [1, 5], [4, 4, 3]),
        ("smacv2_2_vs_3_units", [0, 0], [0, 0, 0]),
    ],
)
def test_scenarios(scenario, allies, enemies):
    found = armies(scenario)
    assert found.allies == tuple(allies)
    assert found.enemies == tuple(enemies)
    assert found.random == scenario.startswith("smacv2")


@pytest.mark.parametrize(
    "scenario", ["", "3x", "m3", "3m_vs", "0m", "3m_vs_0m", "smacv2_0_units", "513m", "1025m_vs_1m"]
)
def test_other_scenarios_are_refused(scenario):
    with pytest.raises(ValueError, match=r"^SMAX: .*scenario"):
        gpuzoo.make("SMAX-v0", 1, scenario=scenario)


@pytest.mark.parametrize("name", SCENARIOS)
def test_names_of_maps(name):
    game = gpuzoo.get(name)
    assert game.id == "SMAX-v0"
    assert game.Config().scenario == name


@pytest.mark.parametrize("ally_wins", [True, False])
def test_infos_say_who_won(ally_wins):
    """A marine has 9 health left, which one attack of the other takes."""
    env = gpuzoo.parallel_env("SMAX-v0", scenario="1m", device="cpu", infos=True)
    env.reset(seed=0)
    health = [45, 9] if ally_wins else [9, 45]
    env.simulator.set_state({
        "health": np.array([health], np.float32),
        "x": np.array([[14, 18]], np.float32),
        "y": np.full((1, 2), 16, np.float32),
    })  # fmt: skip
    _, rewards, terminations, _, infos = env.step({"ally_0": 5 if ally_wins else 4})
    assert terminations["ally_0"]
    assert rewards["ally_0"] == pytest.approx(1.2 if ally_wins else 0.0)
    assert bool(infos["ally_0"]["won"]) == ally_wins
    assert bool(infos["ally_0"]["lost"]) != ally_wins
