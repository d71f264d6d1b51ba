"""Rewards are normalised where returns are large: who chooses, when, and that it stays so."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from training import small  # noqa: E402

from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.run import parse, train  # noqa: E402
from baselines.train.rewards import Normalization  # noqa: E402


def weights(game: str, **values: Any) -> Any:
    return (
        train(PPO, small(game, **{"normalize_rewards": "auto"} | values), quiet=True)
        .policies["agent"]
        .flat.detach()
        .clone()
    )


@pytest.mark.parametrize(("played", "large"), [("CartPole-v1", False), ("Pendulum-v1", True)])
def test_a_run_that_chooses_is_one_that_was_told(played: str, large: bool) -> None:
    same, other = (weights(played, normalize_rewards=x) for x in (large, not large))
    assert torch.equal(weights(played), same)
    assert not torch.equal(same, other)


def halving(mode: bool | str, members: int) -> Any:
    """A choice between rewards and half of them."""
    choice = Normalization(mode, members, 2, torch.device("cpu"))
    choice.scaled = lambda learner, reward, gamma: reward / 2  # type: ignore[method-assign]
    return choice


def test_each_member_chooses_once_by_its_first_rewards() -> None:
    """The scale of the returns is 5 for the first member and 50 for the others; the last has no reward at first."""
    choice, learner, gamma = halving("auto", 3), SimpleNamespace(name="agent"), torch.ones(3, 1)
    choice.scale.variance = torch.tensor([[25.0], [2500.0], [2500.0]])
    reward = torch.ones(4, 3, 2)
    reward[:, 2] = 0

    def factors() -> list[float]:
        out = choice.apply(learner, reward, gamma)
        assert (out == out[:1, :, :1]).all()
        return out[0, :, 0].tolist()

    assert factors() == [1, 0.5, 0]
    assert (choice.is_open, choice.chosen.tolist(), choice.news()) == (True, [0, 1, -1], "")
    choice.scale.variance = choice.scale.variance.flip(0)  # those who have chosen do not choose again
    reward[:, 2] = 1
    assert factors() == [1, 0.5, 1]
    assert (choice.is_open, choice.chosen.tolist()) == (False, [0, 1, 0])
    assert "over 10" in choice.news()
    assert choice.news() == ""


@pytest.mark.parametrize(("mode", "factor"), [(True, 0.5), (False, 1)])
def test_what_was_told_is_not_chosen(mode: bool, factor: float) -> None:
    choice = halving(mode, 1)
    assert not choice.is_open
    assert choice.apply(None, torch.ones(1, 1, 1), torch.ones(1, 1)).item() == factor


def test_a_run_that_goes_on_does_not_choose_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baselines.run.Run.draw", lambda self: None)
    args = small("Pendulum-v1", normalize_rewards="auto", out=str(tmp_path / "whole"), anneal_lr=False)
    whole = train(PPO, args, quiet=True)
    part = dataclasses.replace(args, out=str(tmp_path / "part"), total_steps=args.total_steps // 3)
    train(PPO, part, quiet=True)
    tensors, _ = checkpoint.load(tmp_path / "part" / "checkpoint.safetensors")
    assert tensors["policy/agent/normalizes_rewards"].tolist() == [1]
    monkeypatch.setattr("baselines.train.rewards.LARGE_RETURNS", 1e9)
    rest = train(PPO, dataclasses.replace(args, out=part.out, resume=True), quiet=True)
    assert torch.equal(rest.policies["agent"].flat, whole.policies["agent"].flat)


def test_options(tmp_path: Path) -> None:
    args = [parse(Args, ["Pendulum-v1", "--normalize-rewards", x]) for x in ("on", "off", "auto")]
    assert [a.normalize_rewards for a in args] == [True, False, "auto"]
    assert Args("Pendulum-v1").normalize_rewards == "auto"
    path = tmp_path / "mine.json"
    for value, want in ((True, True), (False, False), ("auto", "auto"), ("off", False)):
        path.write_text(json.dumps({"normalize_rewards": value}))
        assert Args.of("CartPole-v1", str(path)).normalize_rewards == want
    with pytest.raises(ValueError, match="normalize_rewards must be on, off or auto, not 'maybe'"):
        small("CartPole-v1", normalize_rewards="maybe").check()
