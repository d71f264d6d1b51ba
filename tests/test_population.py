"""Populations: members train as they would alone, differ as a sweep says, and do not spoil each other."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd

torch = pytest.importorskip("torch")

from training import small  # noqa: E402

from baselines import a2c  # noqa: E402
from baselines.a2c import A2C  # noqa: E402
from baselines.ppo import PPO  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.run import train  # noqa: E402
from baselines.train.sweep import parse_sweep  # noqa: E402

# The gradients of a population's parameters lie apart from each other, so that those of a member are neighbours.
pytestmark = pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")


# ---- members ----


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("kind", "played", "values"),
    [
        (PPO, Herd, {"normalize_observations": True, "normalize_rewards": True}),
        (PPO, Herd, {"memory": 4, "critic": "shared", "sequence": 8}),
        (PPO, Glide, {"sweep": "lr=log:1e-4:1e-2,gamma=0.9/0.99,clip_eps=0.1:0.3,target_kl=0.001/0/0.1"}),
        (A2C, "SimpleSpread-v0", {"critic": "central", "sweep": "ent_coef=0:0.1,max_grad_norm=0.1/1"}),
    ],
    ids=["deaths", "memory", "sweep", "central"],
)
def test_members_train_as_they_would_alone(kind: Any, played: Any, values: dict[str, Any]) -> None:
    args = small(played, kind=a2c.Args if kind is A2C else None, num_envs=4, seed=5, population=3, **values)
    together = kind(args)
    logs = [together.iterate() for _ in range(3)]
    for k in range(3):
        hyper = {name: float(x[k]) for name, x in together.hyper.items()}
        alone = kind(dataclasses.replace(args, seed=5 + k, population=1, sweep="", **hyper))
        begun = {name: x.policy.flat[0].detach().clone() for name, x in alone.learners.items()}
        for log in logs:
            for name, value in alone.iterate().items():
                if name.startswith("return/"):  # the same actions, and so the same returns
                    np.testing.assert_allclose(value[0], log[name][k], rtol=1e-6)  # sums of float32
        for name, learner in alone.learners.items():
            have, want = together.learners[name].policy.flat[k].detach(), learner.policy.flat[0].detach()
            assert (want - begun[name]).abs().max() > 1e-4
            # Batched products of float32 add in another order, and Adam divides small gradients by their size.
            torch.testing.assert_close(have, want, rtol=1e-3, atol=0.02 * float((want - begun[name]).abs().max()))
        alone.close()
    together.close()


@pytest.mark.parametrize("played", [Glide, Herd], ids=["box", "choices"])
def test_a_member_that_diverges_spoils_no_other(played: Any) -> None:
    args = small(played, population=4, num_envs=4, normalize_observations=True, normalize_rewards=True)
    runs = [train(PPO, dataclasses.replace(args, sweep=f"lr=0.001/{lr}"), quiet=True) for lr in (0.002, 1e38)]
    for group in runs[0].policies:
        good, spoilt = (r.policies[group].flat for r in runs)
        assert good.isfinite().all()
        # With other numbers of rows in a minibatch, float32 adds in another order.
        torch.testing.assert_close(good[::2], spoilt[::2], rtol=1e-3, atol=1e-4)
        assert not spoilt[1::2].isfinite().all(1).any()
    assert len(runs[1].rows) == 3
    for name, value in runs[1].rows[-1].items():  # of those that are sound
        assert math.isfinite(value), name


def test_a_population_that_diverges_as_a_whole_stops(tmp_path: Path) -> None:
    args = small("CartPole-v1", population=2, lr=1e38, out=str(tmp_path))
    with pytest.raises(
        FloatingPointError, match=r"policy 'agent' .* last good checkpoint is .*checkpoint\.safetensors"
    ):
        train(PPO, args, quiet=True)
    tensors, _ = checkpoint.load(tmp_path / "checkpoint.safetensors")
    assert all(x.isfinite().all() for k, x in tensors.items() if "/weights/" in k)


def test_what_a_population_leaves(tmp_path: Path) -> None:
    args = small("CartPole-v1", population=3, sweep="lr=log:1e-4:1e-2", num_steps=64, out=str(tmp_path), eval_every=3,
                 eval_episodes=2)  # fmt: skip
    result = train(PPO, args, quiet=True)
    assert result.returns["agent"].shape == (3,)
    with np.load(tmp_path / "members.npz") as found:
        assert found["agent"].shape == (3, 3)
        last = found["agent"][-1]
    np.testing.assert_array_equal(result.returns["agent"], last)
    assert result.rows[-1]["return/agent"] == pytest.approx(np.nanmean(last))
    assert "eval/agent" in result.rows[-1]
    assert (tmp_path / "sweep.png").stat().st_size > 5000
    assert (tmp_path / "learning_curve.png").stat().st_size > 5000
    for k in range(3):
        alone = PPO(small("CartPole-v1", load={"agent": f"{result.checkpoint}#{k}"}))
        assert torch.equal(alone.policies["agent"].flat[0], result.policies["agent"].flat[k])
        alone.close()
    for wrong in ("3", "-1", "x"):
        with pytest.raises(ValueError, match=rf"has 3 members, numbered from 0, and no '{wrong}'"):
            PPO(small("CartPole-v1", load={"agent": f"{result.checkpoint}#{wrong}"}))


# ---- sweeps ----


def swept(text: str, population: int = 8, **values: Any) -> dict[str, list[float]]:
    return parse_sweep(small("CartPole-v1", population=population, sweep=text, **values))


def test_ranges_are_covered_evenly() -> None:
    """One member in each of as many equal parts, in another order for each hyper-parameter (a Latin hypercube)."""
    found = swept("ent_coef=0:0.08,lr=log:1e-4:1e-2,vf_coef=1:0")
    assert list(found) == ["ent_coef", "lr", "vf_coef"]
    np.testing.assert_allclose(sorted(found["ent_coef"]), 0.08 * (np.arange(8) + 0.5) / 8)
    # Between the points of a grid of 10,000 the logarithm is taken for linear.
    np.testing.assert_allclose(sorted(found["lr"]), 10 ** (-4 + 2 * (np.arange(8) + 0.5) / 8), rtol=1e-6)
    np.testing.assert_allclose(sorted(found["vf_coef"]), (np.arange(8) + 0.5) / 8)
    orders = {tuple(np.argsort(v)) for v in found.values()}
    assert len(orders) == 3
    assert found == swept("ent_coef=0:0.08,lr=log:1e-4:1e-2,vf_coef=1:0")
    assert found != swept("ent_coef=0:0.08,lr=log:1e-4:1e-2,vf_coef=1:0", seed=2)


def test_lists_are_taken_in_turn() -> None:
    assert swept("gamma=0.9/0.99/0.5", 5) == {"gamma": [0.9, 0.99, 0.5, 0.9, 0.99]}
    assert swept("gamma=0.9", 2) == {"gamma": [0.9, 0.9]}
    assert swept("", 1) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rate=0:1", r"sweep: there is no hyper-parameter 'learning_rate'"),
        ("gama=0:1", r"sweep: there is no hyper-parameter 'gama'; did you mean 'gamma'"),
        ("num_envs=1/2", r"sweep: there is no hyper-parameter 'num_envs'"),
        *((text, rf": want NAME=LOW:HIGH, NAME=log:LOW:HIGH \(positive\) or NAME=A/B/C, not '{text}'") for text in (
            "lr", "lr=", "lr=fast", "lr=1:", "lr=1:2:3", "lr=exp:1:2", "lr=log:0:1", "lr=log:1:0", "lr=log:1:-1",
            "lr=1/", "lr=1e-3/x")),
        ("gamma=0.9:1.5", r"gamma must lie between 0 and 1, not 1\.4"),
        ("lr=-1:0", r"lr must not be negative: -0\.9"),
        ("clip_eps=0/0.1", r"clip_eps must be positive, not 0"),
    ],
)  # fmt: skip
def test_sweeps_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        swept(text)


def test_a_sweep_needs_members() -> None:
    with pytest.raises(ValueError, match=r"a sweep needs members that differ: give population=N with N of at least 2"):
        swept("lr=1e-4:1e-2", 1)
