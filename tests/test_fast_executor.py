"""The fast executor does what the plain one does, piece by piece: the same numbers up to the rounding of float32."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim

torch = pytest.importorskip("torch")

from training import small, toy  # noqa: E402

from baselines.a2c import A2C  # noqa: E402
from baselines.a2c import Args as A2CArgs  # noqa: E402
from baselines.executors import choose  # noqa: E402
from baselines.fast.executor import Fast  # noqa: E402
from baselines.ppo import PPO  # noqa: E402
from baselines.run import train  # noqa: E402
from baselines.train.executor import Plain  # noqa: E402
from baselines.train.layers import mlp  # noqa: E402

RUNS: dict[str, dict[str, Any]] = {
    "choices": {"game": "CartPole-v1", "clip_values": True, "population": 2},
    "shared critic": {"game": "CartPole-v1", "critic": "shared", "activation": "relu"},
    "box, normalised": {"game": Glide, "normalize_observations": True, "normalize_rewards": True},
    "several actions": {"game": Lamps},
    "masks and deaths": {"game": Herd, "population": 2},
    "random opponents": {"game": Herd, "random_opponents": {"wolf": 0.25, "sheep": 0.5}},
    "turns": {"game": Nim, "config": {"heap": 6}},
    "waiting": {"game": toy("Pause")},
    "memory": {"game": Glide, "memory": 6, "sequence": 8},
    "central critic": {"game": "SimpleSpread-v0", "critic": "central"},
    "images": {"game": "ConnectFour-v0", "channels": (3,)},
    "a2c": {"game": "CartPole-v1", "kind": A2CArgs},
}  # fmt: skip


def run_of(name: str, executor: Any, **more: Any) -> Any:
    values = {"num_envs": 4, "num_steps": 32, "hidden": (16, 16), "normalize_rewards": False} | RUNS[name] | more
    values.setdefault("normalize_advantages", True)
    kind = values.pop("kind", None)
    trainer = (A2C if kind else PPO)(small(values.pop("game"), kind, **values), executor)
    for learner in trainer.learners.values():  # far from uniform, and beyond the clip range of some rows
        noise = torch.randn(learner.policy.flat.shape, generator=torch.Generator().manual_seed(2))
        learner.policy.flat.data.add_(0.3 * noise)
    return trainer


def close(mine: Any, other: Any, scale: float = 1.0) -> None:
    """Sums of a few hundred numbers of float32, in two orders."""
    size = float(other.abs().max()) if other.numel() else 0.0
    torch.testing.assert_close(mine, other, rtol=1e-4, atol=scale * 2e-5 * max(size, 1e-3))


@pytest.mark.parametrize("name", RUNS)
def test_a_rollout_has_the_plain_log_probs_and_values(name: str) -> None:
    """Of the same actions in the same states, which the fast executor chose."""
    trainer = run_of(name, Fast("cpu"))
    for _ in range(3):  # the third one is planned, where that can be
        trainer.play()
    for player in trainer.rollout.players.values():
        value, log_prob = player.value.clone(), player.log_prob.clone()
        for network in player.policy.networks:
            network.mlp = mlp
        player.draw = lambda t, out, mask, p=player: p.log_prob[t].copy_(
            p.policy.actions.evaluate(out, p.policy.log_std, mask, p.draws.action[t])[0]
        )
        if player.chosen is not None:
            continue  # the action of a step is not where it was drawn any more
        with torch.no_grad():
            for t in range(trainer.rollout.steps):
                player.act(t)
            player.look_ahead()
        acting = player.rows(trainer.rollout.acting)
        close(value, player.value)
        close(log_prob[acting[:-1]], player.log_prob[acting[:-1]])
    trainer.close()


@pytest.mark.parametrize("name", RUNS)
def test_advantages_are_the_plain_ones(name: str) -> None:
    trainer = run_of(name, Fast("cpu"))
    for _ in range(2):
        trainer.play()
    for learner in trainer.learners.values():
        found, more = [], []
        for executor in (trainer.executor, Plain()):
            learner.executor = executor
            learner.normalization.running_return.zero_()
            numbers = trainer.prepare(learner)
            found.append(learner.packed.clone()[learner.valid])
            more.append([learner.valid.float(), learner.normalization.running_return.clone(), *numbers.values()])
            for x in learner.normalization.scale.state_dict().values():
                x.zero_()
        close(*found)
        for mine, other in zip(*more, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)  # differences of numbers of size 1
        learner.executor = trainer.executor
    trainer.close()


def minibatches(trainer: Any, learner: Any) -> Any:
    """Each minibatch of a pass, as both executors gather it."""
    fast, plain = trainer.executor, Plain()
    order, seen = [], []
    fast_minibatch, fast_gather = fast.minibatch, learner.gather_sequences
    fast.minibatch = lambda *given: order.append(given) or fast_minibatch(*given)
    learner.gather_sequences = lambda *given: seen.append(given) or fast_gather(*given)
    for batch in learner.minibatches(0, 2, trainer.args.sequence):
        other = fast_gather(*seen.pop()) if seen else plain.minibatch(*order.pop())
        yield batch, other
    fast.minibatch, learner.gather_sequences = fast_minibatch, fast_gather


@pytest.mark.parametrize("name", RUNS)
def test_minibatches_gradients_and_steps_are_the_plain_ones(name: str) -> None:
    trainer = run_of(name, Fast("cpu"))
    plain = Plain()
    assert trainer.executor.describe() == "fast"
    for _ in range(2):
        trainer.iterate()
    trainer.play()
    for learner in trainer.learners.values():
        trainer.prepare(learner)
        policy, rate, limit = learner.policy, 3 * trainer.hyper.lr, trainer.hyper.max_grad_norm
        policy.flat.data.add_(0.1 * torch.randn(policy.flat.shape, generator=torch.Generator().manual_seed(3)))
        for batch, other in minibatches(trainer, learner):
            for x in (batch, other):
                x.normalize("advantage")
            for field in ("observation", "action", "weight", "share", "packed", "mask"):
                mine, right = getattr(batch, field), getattr(other, field)
                if right is not None:
                    close(mine.float(), right.float())
            numbers = dict(trainer.evaluate(batch))
            gradient = policy.flat.grad.clone()
            fused = [network.mlp for network in policy.networks]
            for network in policy.networks:
                network.mlp = mlp
            want = plain.evaluate(other, trainer.loss, trainer.hyper)
            assert gradient.abs().max() > 0
            close(gradient, policy.flat.grad)
            assert numbers.keys() == want.keys()
            for key, value in want.items():
                close(numbers[key], value)
            for network, function in zip(policy.networks, fused, strict=True):
                network.mlp = function
            before = [x.clone() for x in (policy.flat.data, learner.momentum, learner.square, learner.count)]
            state = (policy.flat.data, learner.momentum, learner.square, learner.count)
            gradient.copy_(policy.flat.grad)
            trainer.executor.step(learner, rate, limit)
            after = [x.clone() for x in state]
            for x, old in zip(state, before, strict=True):
                x.copy_(old)
            policy.flat.grad.copy_(gradient)
            plain.step(learner, rate, limit)
            assert not torch.equal(policy.flat.data, before[0])
            for mine, right in zip(after, state, strict=True):
                close(mine, right, 0.1)
    trainer.close()


# ---- the choice ----


class Own(PPO):
    """A loss of its own that is not of one row alone, so that there is no formula for it."""

    def loss(self, row: Any, hyper: Any) -> Any:
        loss, numbers = super().loss(row, hyper)
        return loss + 0.01 * row.value.mean(), numbers


class Simple(PPO):
    """A loss of its own that is fused by itself."""

    def loss(self, row: Any, hyper: Any) -> Any:
        loss, numbers = super().loss(row, hyper)
        return loss + 0.01 * row.value.square(), numbers | {"size": row.value.abs()}


def test_the_executor_is_chosen_by_itself() -> None:
    found = {}
    for kind in (PPO, Own, Simple):
        trainer = kind(small("CartPole-v1"), choose("auto", "cpu"))
        found[kind] = trainer.executor.describe()
        assert {"agent/loss", "agent/kl"} <= set(trainer.iterate())
        trainer.close()
    assert found == {PPO: "fast", Own: "fast, with the loss in plain torch", Simple: "fast"}
    assert isinstance(choose("plain"), Plain)
    assert not isinstance(choose("plain"), Fast)
    with pytest.raises(ValueError, match="executor must be one of auto, plain, fast, not 'quick'"):
        choose("quick")


def test_a_trainer_that_is_made_by_hand_chooses_likewise() -> None:
    for kind, options in ((PPO, small("CartPole-v1")), (A2C, small("CartPole-v1", A2CArgs))):
        for name, chosen in (("auto", Fast), ("fast", Fast), ("plain", Plain)):
            trainer = kind(dataclasses.replace(options, executor=name))
            assert type(trainer.executor) is chosen
            trainer.close()


@pytest.mark.parametrize(("first", "second"), [("fast", "plain"), ("plain", "fast")])
def test_a_run_goes_on_with_the_other_executor(first: str, second: str, tmp_path: Path) -> None:
    """From there on as every time, and each goes on from what itself kept with the same bits, see test_resume.py."""
    for executor, steps in ((first, 128), (second, 256)):
        args = small("CartPole-v1", executor=executor, total_steps=steps, out=str(tmp_path), resume=True)
        result = train(PPO, args, quiet=True)
    assert [row["iteration"] for row in result.rows] == [1, 2]
    told = json.loads((tmp_path / "run.json").read_text())["executor"]
    assert told == f"{second} from iteration 2 on, {first} before"


@pytest.mark.rotates(long=True)
def test_both_learn_alike() -> None:
    """Other random numbers, and the same algorithm: both balance the pole for much longer than at random."""
    for name in ("plain", "fast"):
        args = small("CartPole-v1", num_envs=8, num_steps=64, total_steps=30_000, lr=2e-3, executor=name)
        result = train(PPO, args, quiet=True)
        assert result.returns["agent"].mean() > 100, name
        assert np.isfinite([row["agent/loss"] for row in result.rows]).all()
