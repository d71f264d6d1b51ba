"""What a CPU does in prepared calls: the bits of the steps and minibatches that are taken one by one."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from training import small, toy  # noqa: E402

from baselines import native  # noqa: E402
from baselines.a2c import A2C  # noqa: E402
from baselines.a2c import Args as A2CArgs  # noqa: E402
from baselines.minibatch import Prepared  # noqa: E402
from baselines.plan import Plan  # noqa: E402
from baselines.ppo import PPO  # noqa: E402
from baselines.steps import Steps  # noqa: E402

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
    return (A2C if kind else PPO)(small(values.pop("game"), kind, **values))


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
    play = Steps.play
    monkeypatch.setattr(Steps, "play", lambda self: (used.append(self), play(self)))
    for planned in (True, False):
        if not planned:
            monkeypatch.setattr(Steps, "fits", staticmethod(lambda rollout: False))
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
    assert not Steps.fits(trainer.rollout)
    trainer.close()
    trainer = run_of(RUNS["one agent"])
    assert Steps.fits(trainer.rollout)
    trainer.rollout.looks = False  # as on a GPU
    assert not Steps.fits(trainer.rollout)
    trainer.close()


def test_a_plan_follows_the_players_and_the_state() -> None:
    trainer = run_of(RUNS["one agent"])
    rollout = trainer.rollout
    for _ in range(3):
        trainer.iterate()
    players, rollout.players = rollout.players, {}
    rollout.action.fill_(1)
    for _ in range(3):  # nobody plays: the envs go on with these actions
        rollout.play()
        assert rollout.action.all()
    rollout.players = players
    state = trainer.simulator.snapshot()
    results = []
    for _ in range(2):
        trainer.simulator.restore(state)
        rollout.begin()
        rollout.counter.fill_(5)
        rollout.play()
        results.append(rollout.observation.clone())
        assert torch.equal(rollout.observation[-1], torch.as_tensor(trainer.simulator.arrays["observation"]))
    assert torch.equal(*results)
    trainer.close()
    with pytest.raises(RuntimeError, match="closed"):
        rollout.play()


@pytest.mark.parametrize("name", RUNS)
def test_prepared_minibatches_learn_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for prepared in (True, False):
        if not prepared:
            monkeypatch.setattr(Prepared, "fits", staticmethod(lambda policy, seen: False))
        trainer = run_of(RUNS[name], normalize_advantages=False)
        for _ in range(3):
            trainer.iterate()
        assert all(bool(x._prepared) == prepared for x in trainer.learners.values())
        found.append(weights(trainer))
        trainer.close()
    assert torch.equal(*found)


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
