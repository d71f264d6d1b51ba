"""What an algorithm of one's own keeps and logs: `Trainer.extra`, returned numbers, and curricula by `on_iteration`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from training import small  # noqa: E402

from baselines.ppo import PPO  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.run import train  # noqa: E402
from gpuzoo import Uniform  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")


class Curious(PPO):
    """With a model of the rewards, its optimiser, noise, and a count; all of them change what is learnt."""

    def __init__(self, args: Any, executor: Any = None) -> None:
        super().__init__(args, executor)
        with torch.random.fork_rng([]):
            torch.manual_seed(args.seed)
            self.model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        self.adam = torch.optim.Adam(self.model.parameters(), 1e-2)
        self.noise, self.calls = torch.Generator().manual_seed(args.seed), torch.zeros((), dtype=torch.int64)
        self.extra |= {"model": self.model, "adam": self.adam, "noise": self.noise, "calls": self.calls}

    def on_rollout(self, learner: Any) -> Any:
        error = self.model(learner.observation.flatten(0, 2)).square().mean(-1)
        self.adam.zero_grad()
        error.mean().backward()
        self.adam.step()
        self.calls += 1
        bonus = error.detach().view_as(learner.reward) + torch.rand(learner.reward.shape, generator=self.noise)
        learner.reward = learner.reward + bonus / self.calls
        return {**super().on_rollout(learner), "bonus": bonus.mean((0, 2)), "calls": self.calls.float()}


def test_extra_state_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    args = small("CartPole-v1")
    whole = Curious(args)
    for _ in range(2):
        whole.iterate()
    whole.save(tmp_path / "a.safetensors")
    last = whole.iterate()
    for again in (Curious(args), whole):  # one whose optimiser has no state yet, and one that is further
        again.restore(tmp_path / "a.safetensors")
        assert int(again.calls) == 2
        assert {k: v.tolist() for k, v in again.iterate().items()} == {k: v.tolist() for k, v in last.items()}
    mine, wanted = again.state(), whole.state()
    checkpoint.check_tensors(mine, wanted, "")
    assert {k.split("/")[1] for k in mine if k.startswith("extra/")} == {"model", "adam", "noise", "calls"}
    assert all(torch.equal(x, wanted[k]) for k, x in mine.items())


def test_returned_numbers_are_logged() -> None:
    rows = train(Curious, small("CartPole-v1"), quiet=True).rows
    assert [row["agent/calls"] for row in rows] == [1, 2, 3]
    assert all(row["agent/bonus"] > 0 for row in rows)


def test_extra_state_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    args = small("CartPole-v1")
    saved, other = Curious(args), Curious(args)
    saved.iterate()
    saved.save(tmp_path / "a.safetensors")
    other.model = other.extra["model"] = torch.nn.Linear(4, 3)
    before = {k: x.clone() for k, x in other.state().items()}
    with pytest.raises(ValueError, match=r"does not fit this run: for the tensor 'extra/"):
        other.restore(tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match=r"for the tensor 'extra/adam/0/exp_avg' it has .*, and this run has none"):
        PPO(args).restore(tmp_path / "a.safetensors")
    assert all(torch.equal(x, before[k]) for k, x in other.state().items())
    other.extra["words"] = "none"
    with pytest.raises(TypeError, match="'words' must be a tensor, a module, an optimiser or a generator, not str"):
        other.save(tmp_path / "b.safetensors")


class InterruptionError(Exception):
    """What ends a run."""


def test_a_curriculum_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter of the game and a hyper-parameter follow the iteration, also in a run that is resumed."""
    monkeypatch.setattr("baselines.run.Run.draw", lambda self: None)

    def curriculum(trainer: Any) -> None:
        seen.append(trainer.iteration)
        trainer.simulator.set_params(gravity=9.8 + trainer.iteration)
        trainer.hyper.ent_coef.fill_(0.1 * trainer.iteration)

    def interrupted(trainer: Any) -> None:
        curriculum(trainer)
        if trainer.iteration == 3:
            raise InterruptionError

    found = []
    for folder in ("whole", "parts"):
        args = small("CartPole-v1", out=str(tmp_path / folder), save_every=1e-9, resume=True, total_steps=8 * 16 * 5)
        seen: list[int] = []
        if folder == "parts":
            with pytest.raises(InterruptionError):
                train(PPO, args, quiet=True, on_iteration=interrupted)
        train(PPO, args, quiet=True, on_iteration=curriculum)
        found.append(checkpoint.load(tmp_path / folder / "checkpoint.safetensors")[0])
    assert seen == [0, 1, 2, 3, 2, 3, 4, 5]
    plain = tmp_path / "plain"
    train(PPO, small("CartPole-v1", out=str(plain), total_steps=8 * 16 * 5), quiet=True)
    unchanged = checkpoint.load(plain / "checkpoint.safetensors")[0]
    assert all(torch.equal(x, found[1][k]) for k, x in found[0].items())
    assert not torch.equal(found[0]["policy/agent/adam/momentum"], unchanged["policy/agent/adam/momentum"])


def test_a_range_that_was_changed_is_kept(tmp_path: Path) -> None:
    """Also where there is one env, whose present value is no range."""
    for envs in (8, 1):
        args = small("CartPole-v1", num_envs=envs, config={"gravity": "9:10"}, minibatches=1)
        whole, again = PPO(args), PPO(args)
        whole.simulator.set_params(gravity=Uniform(5.0, 20.1))
        whole.iterate()
        whole.save(tmp_path / "a.safetensors")
        again.restore(tmp_path / "a.safetensors")
        assert again.simulator.drawn == {"gravity": Uniform(5.0, 20.1)} == whole.simulator.drawn
        for trainer in (whole, again):
            for _ in range(3):
                trainer.iterate()
        mine, wanted = again.state(), whole.state()
        assert all(torch.equal(x, wanted[k]) for k, x in mine.items())
    tensors, about = checkpoint.load(tmp_path / "a.safetensors")
    tensors["range/gravity"][1] = torch.nan
    checkpoint.save(tmp_path / "b.safetensors", tensors, about)
    with pytest.raises(ValueError, match=r"b\.safetensors cannot go on: the range"):
        again.restore(tmp_path / "b.safetensors")
    assert again.simulator.drawn == {"gravity": Uniform(5.0, 20.1)}
