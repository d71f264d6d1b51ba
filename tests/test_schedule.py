"""Numbers that change over a run: their values, where they act, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys.glide import Glide

torch = pytest.importorskip("torch")

from training import small  # noqa: E402

from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.run import parse, train  # noqa: E402
from baselines.train.schedule import Change, parse_schedule  # noqa: E402

BOTH = "lr=log:1e-2:1e-4,wind=0.8:0.2"


def kept(folder: Path) -> tuple[dict[str, bytes], Any]:
    tensors, about = checkpoint.load(folder / "checkpoint.safetensors")
    return {k: x.contiguous().view(-1).view(torch.uint8).numpy().tobytes() for k, x in tensors.items()}, about["steps"]


@pytest.mark.parametrize(
    ("log", "expected"),
    [(False, [8, 6, 4, 2]), (True, [8, 8 * 0.25 ** (1 / 3), 8 * 0.25 ** (2 / 3), 2])],
)
def test_values_go_from_one_end_to_the_other(log: bool, expected: list[float]) -> None:
    change = Change("lr", 8, 2, log, of_game=False)
    values = [change.at(k, 4) for k in range(4)]
    assert values == pytest.approx(expected)
    assert (values[0], values[-1], change.at(9, 4)) == (8, 2, 2)
    assert Change("lr", 8, 2, log, of_game=False).at(0, 1) == 8
    upwards = Change("lr", 0.1, 0.3, log, of_game=False)
    assert all(0.1 <= upwards.at(k, 977) <= 0.3 for k in range(977))


def test_command_line_and_names() -> None:
    args = parse(Args, ["CartPole-v1", "--schedule", "gravity=5:15,clip_eps=0.3:0.1,lr=log:1e-3:1e-5"])
    assert parse_schedule(args) == (
        Change("gravity", 5, 15, False, True), Change("clip_eps", 0.3, 0.1, False, False),
        Change("lr", 1e-3, 1e-5, True, False),
    )  # fmt: skip


@pytest.mark.parametrize("executor", ["plain", "auto"])
def test_each_iteration_has_its_values(executor: str) -> None:
    seen: list[tuple[float, float, float, float]] = []

    class Watched(PPO):
        def on_rollout(self, learner: Any) -> Any:
            wind = self.simulator.param("wind")
            assert (wind == wind[0]).all()
            rates = self.hyper.lr * self.fraction
            seen.append((float(wind[0]), float(rates[0]), float(rates[1]), float(self.hyper.gamma[1])))
            return super().on_rollout(learner)

    args = small(Glide, population=2, sweep="gamma=0.9/0.8", schedule=BOTH, executor=executor)
    result = train(Watched, args, quiet=True)
    want = [(0.8, 1e-2, 1e-2, 0.8), (0.5, 1e-3, 1e-3, 0.8), (0.2, 1e-4, 1e-4, 0.8)]
    np.testing.assert_allclose(seen, want, rtol=1e-6)  # of float32; a rate with a schedule is not annealed as well
    assert [row["schedule/wind"] for row in result.rows] == pytest.approx([0.8, 0.5, 0.2])


def test_the_game_and_the_updates_feel_it() -> None:
    def final(**values: Any) -> Any:
        return train(PPO, small(Glide, **values), quiet=True).policies["agent"].flat.detach().clone()

    plain = final()
    assert not torch.equal(plain, final(schedule="wind=0.8:0.2"))
    assert not torch.equal(plain, final(schedule="ent_coef=0.01:0.5"))
    assert torch.equal(final(ent_coef=0.3), final(ent_coef=0.1, schedule="ent_coef=0.3:0.3"))
    assert torch.equal(final(config={"wind": 0.7}), final(schedule="wind=0.7:0.7"))


def test_the_first_episodes_begin_with_the_first_value() -> None:
    trainer = PPO(small(Glide, schedule="wind=0.8:0.2"))
    assert (trainer.simulator.param("wind") == np.float32(0.8)).all()
    trainer.close()


def test_a_stopped_update_can_be_scheduled() -> None:
    """A divergence that is allowed less and less ends updates, though none was limited by the option itself."""
    args = small("CartPole-v1", lr=0.05, anneal_lr=False)
    free, held = (train(PPO, dataclasses.replace(args, schedule=s), quiet=True) for s in ("", "target_kl=1e-9:1e-9"))
    assert not torch.equal(free.policies["agent"].flat, held.policies["agent"].flat)


def test_an_interrupted_run_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    class InterruptionError(Exception):
        pass

    def interrupt(trainer: Any) -> None:
        if trainer.iteration == 2:
            raise InterruptionError

    args = small(Glide, schedule=BOTH, out=str(tmp_path / "whole"), save_every=1e-9)
    whole = train(PPO, args, quiet=True)
    args = dataclasses.replace(args, out=str(tmp_path / "parts"))
    with pytest.raises(InterruptionError):
        train(PPO, args, quiet=True, on_iteration=interrupt)
    rest = train(PPO, dataclasses.replace(args, resume=True), quiet=True)
    assert kept(tmp_path / "parts") == kept(tmp_path / "whole")
    assert [r["schedule/lr"] for r in rest.rows] == [r["schedule/lr"] for r in whole.rows]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"schedule": "gravit=5:15"}, "float parameter of CartPole-v1 is 'gravit'; did you mean 'gravity'"),
        ({"schedule": "lr=1e-3"}, r"want NAME=FROM:TO or NAME=log:FROM:TO \(positive\), not 'lr=1e-3'"),
        ({"schedule": "lr=log:0:1"}, r"positive\), not 'lr=log:0:1'"),
        ({"schedule": "lr=0:nan"}, "not 'lr=0:nan'"),
        ({"schedule": "gamma=0.9:1.5"}, "gamma must lie between 0 and 1, not 1.5"),
        ({"schedule": "length=1:-1"}, "length must"),
        ({"schedule": "lr=1:2,lr=1:2"}, "lr is there twice"),
        ({"schedule": "lr=1:2", "sweep": "lr=1/2", "population": 2}, "lr is in sweep and in schedule"),
        ({"schedule": "gravity=5:15", "config": {"gravity": "5:15"}}, "every episode draws gravity"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_is_compiled(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small("CartPole-v1", **values).check()
