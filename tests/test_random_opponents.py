"""Random opponents: in which envs who acts by a policy, what the others do there, and what is learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys.glide import Glide
from toys.herd import Herd
from toys.nim import Nim
from training import small

from baselines import run
from baselines.executors import choose
from baselines.ppo import PPO, Args
from baselines.report.checkpoint import load_run
from baselines.train.rollout import shared_out

AGENTS = {"wolf": [0, 1], "sheep": [2, 3, 4]}
CHOICES = {"wolf": 5, "sheep": 3}
HALF = {"wolf": 0.25, "sheep": 0.25}


def herd(executor: str = "plain", **values: Any) -> PPO:
    chosen = {"num_envs": 16, "num_steps": 60, "minibatches": 1, "random_opponents": HALF}
    return PPO(small(Herd, **(chosen | values)), choose(executor, "cpu"))


def test_envs_are_shared_out_evenly() -> None:
    shares = [0.5, 0.3, 0.0, 0.2]
    found = np.array(shared_out(200, shares))
    for k, share in enumerate(shares):
        given = (found == k).cumsum()
        assert (abs(given - share * np.arange(1, 201)) <= 1).all()
    assert (np.bincount(found) == [100, 60, 0, 40]).all()


@pytest.mark.parametrize("executor", ["plain", "fast"])
@pytest.mark.parametrize(
    ("shares", "values"),
    [
        (HALF, {}),
        ({"sheep": 0.75}, {"population": 2}),
        ({"sheep": 0.5}, {"freeze": ("wolf",)}),
        ({"sheep": 0.5, "wolf": 0.5}, {"memory": 4}),
    ],
)
def test_opponents_draw_from_all_legal_choices_alike(
    executor: str, shares: dict[str, float], values: dict[str, Any]
) -> None:
    """Policies never take their last choice, which chance takes as often as any other legal one."""
    if executor == "fast":
        pytest.importorskip("baselines.fast")
    ppo = herd(executor, random_opponents=shares, **values)
    with torch.no_grad():
        for group, policy in ppo.policies.items():
            policy.actor.biases[-1][:, :, CHOICES[group] - 1] = -50
    for _ in range(3):  # the fast executor plans the third
        ppo.play()
    rollout, names = ppo.rollout, [*shares, None]
    whose = shared_out(16, [*shares.values(), 1 - sum(shares.values())]) * ppo.args.population
    assert rollout.mine is not None
    assert rollout.mask is not None
    for group, agents in AGENTS.items():
        last = CHOICES[group] - 1
        random = torch.tensor([names[k] not in (None, group) for k in whose])
        assert (rollout.mine[:, agents] == ~random[:, None]).all()
        free = rollout.mask[:-1][..., agents, : CHOICES[group]].bool()
        several = free.sum(-1) > 1
        taken = rollout.action[:, :, agents, 0].long()
        legal = free.gather(-1, taken[..., None])[..., 0]
        assert legal[free.any(-1)].all()
        could = several & free[..., last]
        assert not (taken == last)[:, ~random][could[:, ~random]].any()
        if random.any():
            here = could[:, random]
            wanted = (1 / free[:, random].sum(-1))[here]
            found = (taken == last)[:, random][here].float()
            error = (wanted * (1 - wanted)).sum().sqrt() / len(wanted)
            assert len(wanted) > 100
            assert abs(found.mean() - wanted.mean()) < 4 * error
    ppo.close()


@pytest.mark.parametrize("executor", ["plain", "fast"])
def test_nothing_is_learnt_from_their_moves(executor: str) -> None:
    """Whatever they did, and whatever it was worth, gradients are the same to the bit."""
    if executor == "fast":
        pytest.importorskip("baselines.fast")
    gradients = []
    for spoil in (False, True):
        ppo = herd(executor)
        for _ in range(3):
            ppo.play()
        rollout = ppo.rollout
        assert rollout.mine is not None
        if spoil:
            rollout.reward[:, ~rollout.mine] = 1e6
            rollout.action[:, ~rollout.mine] = 0
        for learner in ppo.learners.values():
            ppo.prepare(learner)
            acting = learner.player.rows(rollout.acting)[:-1]
            assert (learner.valid == acting).all()
            assert not learner.player.rows(rollout.acting & ~rollout.mine).any()
            (batch,) = learner.minibatches(0, 1)
            ppo.evaluate(batch)
            assert learner.policy.flat.grad is not None
            gradients.append(learner.policy.flat.grad.clone())
        ppo.close()
    assert gradients[0].any()
    assert gradients[1].any()
    assert (gradients[0] == gradients[2]).all()
    assert (gradients[1] == gradients[3]).all()


def test_logged_returns_are_those_of_policies() -> None:
    ppo = herd(random_opponents={"wolf": 0.5, "sheep": 0.5})
    numbers = ppo.iterate()
    rollout = ppo.rollout
    for first, (group, agents) in enumerate(AGENTS.items()):  # wolves act in every other env, sheep in those between
        ended, returns = rollout.ended[:, first::2], rollout.final_return[:, first::2, agents].mean(-1)
        assert ended.any()
        assert numbers[f"return/{group}"] == pytest.approx(float(returns[ended].mean()), rel=1e-5)
    ppo.close()


def test_a_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = small(Herd, random_opponents=HALF, total_steps=8 * 16 * 4, anneal_lr=False, out=str(tmp_path / "whole"))
    parts = small(Herd, random_opponents=HALF, total_steps=8 * 16 * 2, anneal_lr=False, out=str(tmp_path / "parts"))
    run.train(PPO, whole, quiet=True)
    run.train(PPO, parts, quiet=True)
    parts.total_steps, parts.resume = whole.total_steps, True
    run.train(PPO, parts, quiet=True)
    found = [load_run(tmp_path / name / "checkpoint.safetensors")[0] for name in ("whole", "parts")]
    assert found[0].keys() == found[1].keys()
    for name, x in found[0].items():
        assert (x == found[1][name]).all(), name


def test_shares_on_the_command_line() -> None:
    words = ["TagContinuous-v0", "--random-opponents", "runner=0.5,tagger=0.25"]
    assert run.parse(Args, words).random_opponents == {"runner": 0.5, "tagger": 0.25}


class Pair(Glide):
    id = "PairOfGlides-v0"

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"left": 1, "right": 1}


@pytest.mark.parametrize(
    ("toy", "shares", "values", "message"),
    [
        (Herd, {"wolf": 0.7, "sheep": 0.5}, {}, r"shares of the envs, together at most 1, not wolf=0\.7, sheep=0\.5\."),
        (Herd, {"wolf": -0.5}, {}, r"shares of the envs, together at most 1, not wolf=-0\.5"),
        (Herd, {"wulf": 0.5}, {}, r"there is no policy 'wulf'"),
        (Herd, {"wolf": 0.5}, {"freeze": ("wolf",)}, r"for policies that learn: 'wolf' is frozen\."),
        (Nim, {"player": 0.5}, {}, r"random opponents need several policies: 'player' plays everybody\."),
        (Pair, {"left": 0.5}, {}, r"random opponents are for actions that are choices, not Box"),
    ],
)
def test_messages_come_before_the_compiler(
    toy: Any, shares: dict[str, float], values: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baselines.train.trainer.Simulator", lambda *a, **k: pytest.fail("an env was made"))
    with pytest.raises(ValueError, match=message):
        PPO(small(toy, random_opponents=shares, **values))
