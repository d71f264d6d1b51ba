"""Warnings about runs that learn nothing: when they come, that they come once, and that they do not come otherwise."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from training import small  # noqa: E402

from baselines.ppo import PPO  # noqa: E402
from baselines.report.health import Facts, Health  # noqa: E402
from baselines.run import train  # noqa: E402

ITERATIONS = 200
FACTS = Facts(ITERATIONS, 128, 500, {"cat": ("cat",)}, {"cat": math.log(4)})
NOISE = np.random.default_rng(0).normal(0, 1, (ITERATIONS, 2))


def said(count: int = ITERATIONS, facts: Facts = FACTS, **columns: Any) -> list[str]:
    """The warnings about a log; of each metric an array, or a number that stays; None: it is not there."""
    names = {"explained": "cat/explained_variance", "error": "cat/value_loss", "entropy": "cat/entropy",
             "returns": "return/cat"}  # fmt: skip
    usual = {"explained": 0.6, "error": 1.0, "entropy": 1.0, "returns": 20 + NOISE[:, 0]} | columns
    table = {names[k]: np.broadcast_to(v, ITERATIONS) for k, v in usual.items() if v is not None}
    health, rows, out = Health(facts), [], []
    for k in range(count):
        rows.append({"steps": k * 100} | {name: float(values[k]) for name, values in table.items()})
        out += health.look(rows)
    assert Health(facts).again(rows) == out, "a run that goes on has said the same"
    return out


def test_a_run_that_learns_is_left_alone() -> None:
    rising = np.linspace(0, 1, ITERATIONS)
    assert said() == []
    assert (
        said(explained=rising, returns=20 * rising + NOISE[:, 0], entropy=1 - 0.9 * rising, error=9 - 8 * rising) == []
    )


def test_a_critic_that_foresees_nothing() -> None:
    (text,) = said(explained=0.01 * NOISE[:, 1])
    assert "the critic of cat explains no variance" in text
    assert "--normalize-rewards on and a higher --lr" in text
    normalized = Facts(ITERATIONS, 128, 500, FACTS.groups, FACTS.entropy, lambda name: True)
    (text,) = said(explained=-0.5, facts=normalized)
    assert "normalize" not in text
    assert said(69, explained=0.0) == []  # a tenth of the run, and a quarter
    assert len(said(70, explained=0.0)) == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"error": np.geomspace(50, 1e-3, ITERATIONS)},  # nothing is left to foresee
        {"error": 0.0},
        {"returns": 20 + np.linspace(0, 30, ITERATIONS)},  # chance decides, and the policy improves all the same
        {"explained": np.where(np.arange(ITERATIONS) % 3, 0.2, -4.0)},  # outliers
        {"explained": math.nan},
        {"explained": None},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_critic_with_an_excuse(columns: dict[str, Any]) -> None:
    assert said(**{"explained": 0.0} | columns) == []


def test_entropy_that_collapses() -> None:
    fallen = np.where(np.arange(ITERATIONS) < 12, 1.3, 0.002)
    (text,) = said(entropy=fallen)
    assert "the entropy of cat fell to 0.002 of 1.4 early" in text
    assert "--ent-coef" in text
    assert said(entropy=fallen, returns=np.where(np.arange(ITERATIONS) < 12, 3.0, 20.0)) == []  # solved
    assert said(entropy=np.where(np.arange(ITERATIONS) < 100, 1.3, 0.002)) == []  # late, as it should be
    box = Facts(ITERATIONS, 128, 500, FACTS.groups, {})
    assert said(entropy=-9.0, facts=box) == []  # a density


def test_no_episode_ends() -> None:
    (text,) = said(returns=None)
    assert "no episode has ended in 2560 steps of each env" in text
    assert "max_episode_steps is 500, and num_steps is 128" in text
    late = np.full(ITERATIONS, 1.0)
    assert said(19, returns=None) == []
    assert said(returns=late) == []
    (text,) = said(facts=Facts(ITERATIONS, 128, 0, FACTS.groups, FACTS.entropy), returns=None)
    assert "max_episode_steps is not set" in text


def test_what_is_said_is_shown_and_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr("baselines.run.Run.draw", lambda self: None)
    values: dict[str, Any] = {
        "num_envs": 4,
        "num_steps": 4,
        "minibatches": 1,
        "epochs": 1,
        "config": {"max_episode_steps": 1000},
    }
    values["normalize_rewards"] = "auto"
    args = small("Pendulum-v1", **values, total_steps=16 * 12, out=str(tmp_path))
    train(PPO, args, quiet=False)
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Pendulum-v1: ")]
    assert [("rewards of agent are normalised" in line, "no episode has ended" in line) for line in shown] == [
        (True, False), (False, True)
    ]  # fmt: skip
    notes = (tmp_path / "notes.txt").read_text().splitlines()
    assert [note.partition(": ")[2] for note in notes] == [line.partition(": ")[2] for line in shown]
    assert notes[1].startswith("160 steps: no episode has ended in 40 steps of each env")
    args.resume, args.total_steps = True, 16 * 14
    train(PPO, args, quiet=True)
    assert capsys.readouterr().err == ""
    assert (tmp_path / "notes.txt").read_text().splitlines() == notes
    args.resume = False
    train(PPO, args, quiet=True)
    assert len((tmp_path / "notes.txt").read_text().splitlines()) == 2
