"""What a CPU does in prepared calls: the bits of the steps and minibatches that are taken one by one."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from training import small, toy  # noqa: E402

from baselines.a2c import A2C  # noqa: E402
from baselines.a2c import Args as A2CArgs  # noqa: E402
from baselines.fast import native  # noqa: E402
from baselines.fast.executor import Fast  # noqa: E402
from baselines.fast.plan import Plan  # noqa: E402
from baselines.fast.steps import Steps  # noqa: E402
from baselines.ppo import PPO  # noqa: E402

pytestmark = pytest.mark.rotates  # about these modules of the trainers

TAG = {"num_taggers": 2, "num_runners": 3, "num_other_agents_observed": 2, "max_episode_steps": 9}
RUNS: dict[str, dict[str, Any]] = {
    "one agent": {"game": "CartPole-v1"},
    "population": {"game": "CartPole-v1", "population": 3},
    "time limit": {"game": "CartPole-v1", "config": {"max_episode_steps": 7}},
    "three agents": {"game": "SimpleSpread-v0", "config": {"max_episode_steps": 5}},
    "masks and turns": {"game": "ConnectFour-v0", "encoder": "mlp", "population": 2},
    "waiting": {"game": toy("Pause")},
    "leaving": {"game": toy("Clock")},
    "shared critic": {"game": "SimpleSpread-v0", "critic": "shared", "population": 2, "activation": "relu"},
    "normalised groups": {"game": "TagContinuous-v0", "config": TAG, "population": 2, "normalize_observations": True,
                          "normalize_rewards": True},
    "one policy of two groups": {"game": "TagGridWorld-v0", "config": {"num_taggers": 3, "max_episode_steps": 9},
                                 "policies": {"tagger": "all", "runner": "all"}},
    "frozen": {"game": "TagGridWorld-v0", "config": {"num_taggers": 3}, "freeze": ("runner",)},
    "a2c": {"game": "SimpleSpread-v0", "kind": A2CArgs},
    "many rows": {"game": "CartPole-v1", "num_envs": 64, "minibatches": 2, "population": 2,
                  "total_steps": 4 * 64 * 24},
}  # fmt: skip
UNLIKE: dict[str, dict[str, Any]] = {
    "image": {"game": "ConnectFour-v0", "channels": (2,), "hidden": (8,)},
    "memory": {"game": "CartPole-v1", "memory": 4},
    "central critic": {"game": "SimpleSpread-v0", "critic": "central"},
    "past selves": {"game": "ConnectFour-v0", "encoder": "mlp", "pool": 2},
    "wide": {"game": "CartPole-v1", "hidden": (600,)},
}


def run_of(values: dict[str, Any], **more: Any) -> Any:
    """A trainer of four iterations."""
    values = {"num_envs": 8, "num_steps": 24, "total_steps": 4 * 8 * 24, "hidden": (16, 16), **values, **more}
    kind = values.pop("kind", None)
    return (A2C if kind else PPO)(small(values.pop("game"), kind, **values), Fast("cpu"))


def weights(trainer: Any) -> Any:
    return torch.cat([p.policy.flat.detach().flatten() for p in trainer.rollout.players.values()])


def contents(trainer: Any) -> dict[str, Any]:
    """All that a rollout leaves, and all weights."""
    found = {k: v for k, v in vars(trainer.rollout).items() if isinstance(v, torch.Tensor)}
    found |= {f"now/{k}": v for k, v in trainer.rollout.now.items()}
    for name, player in trainer.rollout.players.items():
        found |= {f"{name}/{k}": v for k, v in vars(player).items() if isinstance(v, torch.Tensor)}
    return found | {"weights": weights(trainer)}


@pytest.mark.parametrize("name", RUNS)
def test_a_planned_rollout_gives_the_bits_of_single_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, used = [], []
    run = Steps.run
    monkeypatch.setattr(Steps, "run", lambda self: (used.append(self), run(self)))
    for planned in (True, False):
        if not planned:
            monkeypatch.setattr(Steps, "serves", staticmethod(lambda rollout: False))
        trainer = run_of(RUNS[name])
        for _ in range(4):
            trainer.iterate()
        found.append({k: v.clone() for k, v in contents(trainer).items()})
        assert len(used) == 3, "the first rollout is played step by step, and no other where it fits"
        trainer.close()
    for key, value in found[0].items():
        assert torch.equal(value.nan_to_num(7), found[1][key].nan_to_num(7)), key


@pytest.mark.parametrize("name", UNLIKE)
def test_other_rollouts_are_played_step_by_step(name: str) -> None:
    trainer = run_of(UNLIKE[name])
    assert not Steps.serves(trainer.rollout)
    trainer.close()
    trainer = run_of(RUNS["one agent"])
    assert Steps.serves(trainer.rollout)
    trainer.close()


def test_a_plan_follows_the_players_and_the_state() -> None:
    trainer = run_of(RUNS["one agent"])
    rollout = trainer.rollout
    for _ in range(3):
        trainer.iterate()
    players, rollout.players = rollout.players, {}
    rollout.action.fill_(1)
    for _ in range(3):  # nobody plays: the envs go on with these actions
        trainer.play()
        assert rollout.action.all()
    rollout.players = players
    state = trainer.simulator.snapshot()
    results = []
    for _ in range(2):
        trainer.simulator.restore(state)
        rollout.begin()
        rollout.counter.fill_(5)
        trainer.play()
        results.append(rollout.observation.clone())
        assert torch.equal(rollout.observation[-1], torch.as_tensor(trainer.simulator.arrays["observation"]))
    assert torch.equal(*results)
    trainer.close()
    with pytest.raises(RuntimeError, match="closed"):
        trainer.play()


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_standardizing_gives_mean_0_and_deviation_1(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    packed = 5 + 3 * torch.randn(3, rows, 4, generator=generator)
    share = torch.rand(3, rows, generator=generator)
    share /= share.sum(1, keepdim=True)
    x, weight, before = packed[..., 2].double(), share.double(), packed.clone()
    x -= (x * weight).sum(1, keepdim=True)
    x /= (x.square() * weight).sum(1, keepdim=True).sqrt() + 1e-8
    native.standardize(packed, 2, share)()
    if rows > 1:  # alone it is its own mean, but for rounding
        torch.testing.assert_close(packed[..., 2], x.float(), rtol=1e-4, atol=1e-5)
    assert torch.equal(packed[..., [0, 1, 3]], before[..., [0, 1, 3]])


def test_clipping_is_that_of_torch() -> None:
    gradient = torch.randn(4, 1001, generator=torch.Generator().manual_seed(0))
    gradient[1] *= 1e-4
    gradient[2, 5] = torch.nan
    gradient[3] = 0
    limit, factor, count = torch.tensor([[0.5], [0.5], [0.5], [0.5]]), torch.zeros(4, 1), torch.full((4,), 7.0)
    native.clip(gradient, limit, factor, count)()
    expected = (limit / (gradient.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1)
    torch.testing.assert_close(factor, expected, equal_nan=True)
    assert factor[0] < 1
    assert factor[1] == factor[3] == 1
    assert count.tolist() == [8] * 4


def test_a_plan_hears_a_signal_and_begins_anew() -> None:
    """Its calls take a second altogether, and each some milliseconds."""
    source, target = torch.ones(2, 1 << 22)
    call = native.copy(native.Rows(target.view(1, -1)), native.Rows(source.view(1, -1)), 1 << 22)
    call()  # the first one meets memory that is new
    start = time.perf_counter()
    call()
    count = int(2 / (time.perf_counter() - start)) + 1
    plan = Plan()
    for _ in range(count):
        plan.add(call)
    plan.add(native.copy(native.Rows(source.view(1, -1)), native.Rows(target.view(1, -1)), 1))
    threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        plan.run()
    assert time.perf_counter() - start < 1
    target.zero_()
    source[0] = 3
    plan.run()
    assert target[0] == 3
