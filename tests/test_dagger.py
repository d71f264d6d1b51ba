"""DAgger."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from toys.nim import Nim
from typer.testing import CliRunner

from baselines import ppo
from baselines.dagger import Args, DAgger, chosen
from baselines.report.evaluation import evaluate
from baselines.run import train
from gpuzoo.tools import cli

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def wide(group: str, observation: Tensor) -> Tensor:
    """Has one action too many."""
    return torch.ones(len(observation), 3)


def balance(group: str, observation: Tensor) -> Tensor:
    """Pushes a cart to the side to which the pole falls."""
    assert group == "agent"
    return one_hot((observation[:, 2] + observation[:, 3] > 0).long(), 2)


def ignorant(group: str, observation: Tensor) -> Tensor:
    """Knows only what to do on the left."""
    return balance(group, observation) * (observation[:, :1] < 0)


def take_one(group: str, observation: Tensor) -> Tensor:
    """Takes one stick, or three, where only one may be there."""
    return torch.tensor([[1, 0, 1]]).expand(len(observation), 3)


def small(game: Any = "CartPole-v1", expert: str = "balance", **values: Any) -> Args:
    chosen: dict[str, Any] = {"num_envs": 16, "num_steps": 16, "total_steps": 16 * 16 * 4, "device": "cpu"}
    return Args(game, **{**chosen, "threads": 1, "expert": f"{__name__}:{expert}", **values})


# ---- the algorithm ----


def test_what_is_learnt_is_the_own_action_where_it_is_right_and_else_one_of_the_right_ones() -> None:
    best = torch.tensor([[1, 0, 0, 1, 1], [0, 1, 1, 0, 1], [0, 1, 1, 0, 0]]) != 0  # parts of three and two choices
    action = torch.tensor([[2, 0], [2, 1], [0, 1]])
    rows = 4000
    found = chosen(
        best.repeat(1, rows, 1).view(1, -1, 5), action.repeat(rows, 1).view(1, -1, 2), [3, 2], torch.Generator()
    )
    first, second, third = found.view(rows, 3, 2).unbind(1)
    assert first.unique(dim=0).tolist() == [[0, 0]], (
        "the only right choice of the first part, the own one of the second"
    )
    assert second.unique(dim=0).tolist() == [[2, 1]], "both parts were right"
    ones = (third[:, 0] == 1).float().mean()
    assert sorted(third[:, 0].unique().tolist()) == [1, 2]
    assert abs(ones - 0.5) < 4 * 0.5 / rows**0.5
    assert third[:, 1].unique().numel() <= 2, "nothing is right for the second part, and something is drawn"


def test_half_of_the_envs_are_the_policys_alone_and_the_others_get_ever_more_help() -> None:
    run = DAgger(small(num_envs=64, num_steps=200, total_steps=12800))
    with torch.no_grad():  # a policy that always takes what is wrong
        for layer in (run.policies["agent"].actor,):
            for x in layer.parameters():
                x.zero_()
    run.play()
    own = run.rollout.action[:, :, 0, 0]
    seen = run.rollout.observation[:-1, :, 0]
    right = (own.long() == balance("agent", seen.flatten(0, 1)).argmax(-1).view(200, 64)).float().mean(0)
    assert abs(right[:32].mean() - 0.5) < 0.04, "a policy that knows nothing is right in half of its steps"
    assert right[-1] == 1, "the last env is the expert's"
    for first in (32, 48):
        want = 0.5 + 0.5 * run.help[first : first + 16].mean()
        assert abs(right[first : first + 16].mean() - want) < 0.04
    assert run.rollout.counted is not None
    assert run.rollout.counted.tolist() == [True] * 32 + [False] * 32
    alone = DAgger(small(num_envs=64, num_steps=200, total_steps=12800, beta=0.0))
    alone.play()
    assert torch.equal(
        alone.wanted["agent"] == alone.rollout.action[None, :, :, 0].transpose(0, 1),
        alone.agreed["agent"][..., None] > 0,
    )


def test_returns_are_those_of_the_policy_alone() -> None:
    run = DAgger(small(num_envs=64, num_steps=128, total_steps=64 * 128 * 3, lr=1e-9))
    told = [run.iterate()["return/agent"][0] for _ in range(3)]
    assert max(told) < 60, "the envs of the expert last 500 steps"


def test_rows_without_an_answer_teach_nothing() -> None:
    run = DAgger(small(expert="ignorant"))
    run.play()
    learner = run.learners["agent"]
    run.prepare(learner)
    left = learner.observation[..., 0] < 0
    assert torch.equal(learner.columns["taught"] > 0, left)
    (batch,) = learner.minibatches(0, 1)
    row = batch.row(*batch.forward())
    _, numbers = run.loss(row, run.hyper)
    assert torch.equal(numbers["imitation_loss"] != 0, row.taught > 0)
    assert 0.2 < float(row.taught.mean()) < 0.8


def test_nothing_is_learnt_from_agents_that_wait() -> None:
    run = DAgger(small(Nim, "take_one", config={"heap": 6}, num_steps=32))
    run.play()
    assert torch.equal(run.taught["player"].view(32, 16, 2) > 0, run.rollout.acting[:-1])


def test_an_expert_takes_legal_actions_only() -> None:
    run = DAgger(small(Nim, "take_one", config={"heap": 6}, num_steps=32))
    run.play()
    mask, action = run.rollout.mask, run.rollout.action.long()
    assert mask is not None
    acting = run.rollout.acting[:-1]
    assert mask[:-1].gather(-1, action)[acting].all()
    wanted = run.wanted["player"].view(32, 16, 2, 1).long()
    assert mask[:-1].gather(-1, wanted)[acting].all()
    assert set(wanted[acting].unique().tolist()) == {0, 2}


@pytest.mark.rotates
@pytest.mark.parametrize("executor", ["plain", "fast"])
def test_policies_learn_what_the_expert_does(executor: str) -> None:
    for seed in (1, 2, 3):
        args = small(num_envs=32, num_steps=32, total_steps=32 * 32 * 60, lr=3e-3, seed=seed, executor=executor)
        result = train(DAgger, args, quiet=True)
        assert result.rows[0]["agent/agreement"] < 0.65
        assert result.rows[-1]["agent/agreement"] > 0.85
        returns = evaluate("CartPole-v1", result.policies, 32, seed=9, greedy=True).returns["agent"]
        assert returns.mean() > 400


def test_a_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, half = small(total_steps=16 * 16 * 6), small(total_steps=16 * 16 * 6)
    first = DAgger(whole)
    for _ in range(6):
        first.iterate()
    again = DAgger(half)
    for _ in range(3):
        again.iterate()
    again.save(tmp_path / "checkpoint.safetensors", seconds=0.0)
    third = DAgger(half)
    third.restore(tmp_path / "checkpoint.safetensors")
    for _ in range(3):
        third.iterate()
    assert torch.equal(first.policies["agent"].flat, third.policies["agent"].flat)


def test_ppo_goes_on_from_there(tmp_path: Path) -> None:
    train(DAgger, small(out=str(tmp_path)), quiet=True)
    file = str(tmp_path / "checkpoint.safetensors")
    args = ppo.Args("CartPole-v1", num_envs=16, num_steps=16, total_steps=256, threads=1, load={"agent": file})
    train(ppo.PPO, args, quiet=True)


def test_a_game_has_its_own_expert() -> None:
    run = DAgger(dataclasses.replace(small("SlidingTilePuzzle-v0"), expert="", config={"grid_size": 3}))
    assert run.expert.name == "gpuzoo.envs.jumanji.tile_by_tile:best_moves"
    run.iterate()


def test_the_command_line_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["train", "CartPole-v1", "--algorithm", "dagger", "--expert", f"{__name__}:balance", "--out", str(tmp_path)]
    found = CliRunner().invoke(cli.app, [*words, "--total-steps", "8192", "--num-envs", "16", "--device", "cpu"])
    assert found.exit_code == 0, found.output
    assert json.loads((tmp_path / "run.json").read_text())["algorithm"] == "dagger"


@pytest.mark.parametrize(
    ("of", "values", "message"),
    [
        (
            "CartPole-v1",
            {"expert": ""},
            "DAgger needs an expert, and CartPole-v1 has none: give --expert MODULE:FUNCTION.",
        ),
        ("CartPole-v1", {"expert": "nothing:here"}, "there is no expert 'nothing:here': No module named 'nothing'"),
        ("CartPole-v1", {"expert": "math"}, "an expert is given as module:function, not as 'math'."),
        ("CartPole-v1", {"beta": 1.5}, "beta must lie between 0 and 1, not 1.5."),
        ("CartPole-v1", {"epochs": 0}, "epochs must be positive, not 0."),
        ("Pendulum-v1", {}, "DAgger is for actions that are choices, but those of 'agent' are Box"),
        ("TicTacToe-v0", {"pool": 2}, "DAgger has no pool of past selves: take pool=0."),
    ],
)
def test_what_cannot_work_is_refused(of: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        DAgger(dataclasses.replace(small(of), **values))


def test_an_expert_that_answers_something_else_is_told_what_is_wanted() -> None:
    run = DAgger(small(expert="wide"))
    with pytest.raises(ValueError, match=r"test_dagger:wide must return shape \(16, 2\), not \(16, 3\)\."):
        run.iterate()
