"""A run that was interrupted goes on with the same bits."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd
from toys.nim import Nim

torch = pytest.importorskip("torch")

from training import ROOT, small  # noqa: E402

from baselines import a2c  # noqa: E402
from baselines.a2c import A2C  # noqa: E402
from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.run import train  # noqa: E402
from baselines.train.executor import Plain  # noqa: E402

# The gradients of a population's parameters lie apart from each other, so that those of a member are neighbours.
pytestmark = pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")

ITERATIONS = 4


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer than these runs."""
    monkeypatch.setattr("baselines.run.Run.draw", lambda self: None)


class InterruptionError(Exception):
    """What ends a run."""


def bits(folder: Path) -> tuple[dict[str, bytes], Any]:
    """All tensors of a folder's checkpoint, and where it stands."""
    tensors, about = checkpoint.load(folder / "checkpoint.safetensors")
    return {k: x.contiguous().view(-1).view(torch.uint8).numpy().tobytes() for k, x in tensors.items()}, (
        about["steps"], about["iteration"], about["policies"], about["config"]
    )  # fmt: skip


def timeless(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{k: v for k, v in row.items() if k not in ("seconds", "speed")} for row in rows]


RUNS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "deaths": (PPO, Herd, {"normalize_observations": True, "normalize_rewards": True}),
    "memory": (PPO, Herd, {"memory": 5, "sequence": 4, "freeze": ("sheep",)}),
    "population": (PPO, Glide, {"population": 2, "sweep": "lr=log:1e-4:1e-2", "normalize_rewards": True}),
    "central": (PPO, "SimpleSpread-v0", {"critic": "central", "memory": 5, "normalize_observations": True}),
    "turns": (PPO, Nim, {"stagger": True}),
    "a2c": (A2C, Herd, {"normalize_observations": True, "normalize_rewards": True, "memory": 5}),
    "a2c, population": (A2C, "CartPole-v1", {"population": 2}),
}


def arguments(name: str, folder: Path, **values: Any) -> Any:
    kind, game, more = RUNS[name]
    chosen = {"num_envs": 4, "num_steps": 12, "total_steps": 48 * ITERATIONS, "out": str(folder), "save_every": 1e-9}
    return small(game, a2c.Args if kind is A2C else None, **chosen | more | values)


@pytest.mark.one_case
@pytest.mark.parametrize("name", RUNS)
def test_an_interrupted_run_goes_on_with_the_same_bits(name: str, tmp_path: Path) -> None:
    kind = RUNS[name][0]
    whole = train(kind, arguments(name, tmp_path / "whole"), quiet=True)
    for end in (1, ITERATIONS - 1, ITERATIONS):
        folder = tmp_path / str(end)

        def interrupt(trainer: Any, end: int = end) -> None:
            if trainer.iteration == end:
                raise InterruptionError

        with pytest.raises(InterruptionError):
            train(kind, arguments(name, folder), quiet=True, on_iteration=interrupt)
        assert checkpoint.load(folder / "checkpoint.safetensors")[1]["iteration"] == end - 1
        result = train(kind, arguments(name, folder, resume=True), quiet=True)
        assert bits(folder) == bits(tmp_path / "whole")
        assert timeless(result.rows) == timeless(whole.rows)
        assert result.seconds >= result.rows[-1]["seconds"] > 0
        for group, returns in whole.returns.items():
            np.testing.assert_array_equal(result.returns[group], returns)
        for file in ("progress.jsonl", "progress.csv"):
            assert len((folder / file).read_text().splitlines()) == ITERATIONS + (file == "progress.csv")
        if "population" in name:
            with np.load(folder / "members.npz") as mine, np.load(tmp_path / "whole" / "members.npz") as want:
                assert all(np.array_equal(mine[g], want[g], equal_nan=True) for g in want.files)


def test_a_run_can_be_made_longer(tmp_path: Path) -> None:
    first = train(PPO, arguments("deaths", tmp_path, anneal_lr=False), quiet=True)
    longer = arguments("deaths", tmp_path, anneal_lr=False, resume=True, total_steps=48 * (ITERATIONS + 2))
    result = train(PPO, longer, quiet=True)
    assert timeless(result.rows[:ITERATIONS]) == timeless(first.rows)
    assert [row["iteration"] for row in result.rows] == list(range(1, ITERATIONS + 3))
    at_once = train(PPO, dataclasses.replace(longer, out=str(tmp_path / "at once")), quiet=True)
    assert timeless(at_once.rows) == timeless(result.rows)
    assert bits(tmp_path) == bits(tmp_path / "at once")


class Other(Plain):
    """An executor that keeps no random numbers in checkpoints."""

    name = "other"

    def state(self) -> dict[str, Any]:
        return {}

    def describe(self) -> str:
        return self.name


@pytest.mark.parametrize("name", ["deaths", "population"])
def test_a_run_goes_on_with_another_executor(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its random numbers are then those of the run's seed and counter: the same each time, and others than before."""
    kind = RUNS[name][0]
    half = {"total_steps": 24 * ITERATIONS, "anneal_lr": False}
    first = arguments(name, tmp_path / "begun", **half)
    begun = train(lambda args, _: kind(args, Other()), first, quiet=True)
    ends = []
    for folder in ("one", "two"):
        shutil.copytree(tmp_path / "begun", tmp_path / folder)
        longer = arguments(name, tmp_path / folder, anneal_lr=False, resume=True)
        capsys.readouterr()
        result = train(lambda args, _: kind(args, Plain()), longer)
        told = f"plain from iteration {ITERATIONS // 2 + 1} on, other before"
        assert f"executor: {told}\n" in capsys.readouterr().out
        assert json.loads((tmp_path / folder / "run.json").read_text())["executor"] == told
        assert timeless(result.rows[: len(begun.rows)]) == timeless(begun.rows)
        ends.append(bits(tmp_path / folder))
    assert ends[0] == ends[1]
    fresh = Plain()
    trainer = kind(arguments(name, tmp_path / "three", anneal_lr=False), fresh)
    trainer.restore(tmp_path / "begun" / "checkpoint.safetensors")
    reseeded = fresh.state()
    assert reseeded
    for x in reseeded.values():
        assert len({row.numpy().tobytes() for row in x}) == len(x)
    other = kind(arguments(name, tmp_path / "three", anneal_lr=False), Plain())
    for key, x in other.executor.state().items():
        assert not torch.equal(x, reseeded[key])
    trainer.close()
    other.close()
    back = arguments(name, tmp_path / "one", anneal_lr=False, resume=True, total_steps=48 * (ITERATIONS + 1))
    assert len(train(lambda args, _: kind(args, Other()), back, quiet=True).rows) == ITERATIONS + 1


def test_without_a_checkpoint_a_run_begins(tmp_path: Path) -> None:
    result = train(PPO, arguments("turns", tmp_path / "new", resume=True), quiet=True)
    assert [row["iteration"] for row in result.rows] == list(range(1, ITERATIONS + 1))


@pytest.mark.rotates
def test_a_killed_run_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    values = {"num_envs": 4, "num_steps": 16, "total_steps": 64 * 400, "device": "cpu", "threads": 1, "memory": 4,
              "save_every": 0.02}  # fmt: skip
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from baselines.ppo import PPO, Args\nfrom baselines.run import train\n"
        f"train(PPO, Args('CartPole-v1', out={str(tmp_path / 'killed')!r}, **{values!r}), quiet=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    file, begun = tmp_path / "killed" / "checkpoint.safetensors", time.monotonic()
    try:
        while not file.is_file() or checkpoint.load(file)[1]["iteration"] < 5:
            assert process.poll() is None
            assert time.monotonic() - begun < 120
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    end = checkpoint.load(file)[1]["iteration"] + 5
    assert 10 <= end <= 400
    values |= {"total_steps": 64 * 400, "save_every": 60}

    found = []
    for folder, resume in (("killed", True), ("whole", False)):

        def stop(trainer: Any, folder: str = folder) -> None:
            if trainer.iteration == end:
                trainer.save(tmp_path / f"{folder}.d" / "checkpoint.safetensors")
                raise InterruptionError

        with pytest.raises(InterruptionError):
            train(
                PPO,
                Args("CartPole-v1", out=str(tmp_path / folder), resume=resume, **values),
                quiet=True,
                on_iteration=stop,
            )
        found.append(bits(tmp_path / f"{folder}.d"))
    assert found[0] == found[1]


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_envs": 2, "total_steps": 480}, r"has run num envs 4, but this run has run num envs 2"),
        ({"num_steps": 16, "total_steps": 640}, r"has run num steps 12, but this run has run num steps 16"),
        ({"seed": 2}, r"has run seed 1, but this run has run seed 2"),
        ({"population": 2}, r"has run population 1, but this run has run population 2"),
        (
            {"hidden": (8,)},
            r"has policies wolf form hidden \[64, 64\], but this run has policies wolf form hidden \[8\]",
        ),
        ({"memory": 5}, r"has policies .* form memory 0, but this run has policies .* form memory 5"),
        ({"config": {"sheeps": 4}}, r"has config sheeps 3, but this run has config sheeps 4"),
        ({"policies": {"sheep": "prey"}}, r"policies (sheep|prey)"),
    ],
)
def test_another_run_is_refused(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    train(PPO, arguments("deaths", tmp_path), quiet=True)
    before = bits(tmp_path), (tmp_path / "progress.csv").read_text()
    with pytest.raises(ValueError, match=message + r".*: go on with the same, or begin a new run"):
        train(PPO, arguments("deaths", tmp_path, **{"resume": True} | values), quiet=True)
    assert before == (bits(tmp_path), (tmp_path / "progress.csv").read_text())


def test_another_game_another_algorithm_and_broken_files_are_refused(tmp_path: Path) -> None:
    train(PPO, arguments("deaths", tmp_path), quiet=True)
    with pytest.raises(ValueError, match=r"has game \"Herd-v0\", but this run has game \"Glide-v0\""):
        train(PPO, small(Glide, num_envs=4, num_steps=12, out=str(tmp_path), resume=True), quiet=True)
    with pytest.raises(ValueError, match=r"has run algorithm \"ppo\", but this run has run algorithm \"a2c\""):
        train(A2C, small(Herd, a2c.Args, num_envs=4, num_steps=12, out=str(tmp_path), resume=True,
                         normalize_observations=True), quiet=True)  # fmt: skip
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors was cut off or damaged"):
        train(PPO, arguments("deaths", tmp_path, resume=True), quiet=True)
    file.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is not a checkpoint of gpuzoo"):
        train(PPO, arguments("deaths", tmp_path, resume=True), quiet=True)
