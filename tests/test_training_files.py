"""What a training leaves on the disk: checkpoints, logs, plots."""

from __future__ import annotations

import csv
import errno
import itertools
import json
import math
import os
import resource
import stat
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
for needed in ("safetensors", "tensorboard", "matplotlib"):
    pytest.importorskip(needed)
sys.path.insert(0, str(Path(__file__).parents[1]))

import gpuzoo  # noqa: E402
from baselines.report import checkpoint, log, plots  # noqa: E402

DTYPES = "float32 float64 bfloat16 float16 int8 int32 int64 uint8 uint64 bool".split()


def bits(tensor: Any) -> tuple[Any, Any, bytes]:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return tensor.dtype, tensor.shape, flat.view(torch.uint8).numpy().tobytes()


def noise(dtype: Any, *shape: int) -> Any:
    """Random bytes: with them come NaNs of all kinds, and the largest integers."""
    generator = torch.Generator().manual_seed(1)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    size = math.prod(shape) * dtype.itemsize
    return torch.randint(256, (size,), dtype=torch.uint8, generator=generator).view(dtype).view(shape)


# ---- checkpoints ----


@pytest.mark.parametrize("name", DTYPES)
def test_tensors_come_back_with_the_same_bits(name: str, tmp_path: Path) -> None:
    dtype = getattr(torch, name)
    base = noise(dtype, 6, 8)
    tensors = {
        "base": base, "shares its memory": base[2:4], "transposed": base.T, "every other": base[:, ::2],
        "expanded": base[:1, :1].expand(5, 7), "scalar": base[0, 0], "empty": base[:0],
    }  # fmt: skip
    checkpoint.save(tmp_path / "a.safetensors", tensors, {})
    found, _ = checkpoint.load(tmp_path / "a.safetensors")
    assert {k: bits(x) for k, x in found.items()} == {k: bits(x) for k, x in tensors.items()}


@pytest.mark.gpu
def test_tensors_come_from_and_go_to_a_gpu(tmp_path: Path) -> None:
    weights = noise(torch.bfloat16, 5, 3)
    checkpoint.save(tmp_path / "a.safetensors", {"weights": weights.cuda().T}, {})
    found, _ = checkpoint.load(tmp_path / "a.safetensors", "cuda")
    assert found["weights"].is_cuda
    assert bits(found["weights"]) == bits(weights.T)


def test_parameters_are_saved_and_loaded_tensors_are_free_of_the_file(tmp_path: Path) -> None:
    path, layer = tmp_path / "a.safetensors", torch.nn.Linear(3, 2)
    checkpoint.save(path, layer.state_dict() | dict(layer.named_parameters(prefix="again")), {})
    found, _ = checkpoint.load(path)
    path.write_bytes(bytes(path.stat().st_size))
    assert torch.equal(found["again.weight"], layer.weight)
    assert not found["again.weight"].requires_grad


def test_about_comes_back(tmp_path: Path) -> None:
    about = {"game": "Nim-v0", "steps": 2**53 + 1, "hidden": (64, 64), "config": {"p": 0.1, "q": None}, "ü": math.inf}
    checkpoint.save(tmp_path / "new" / "folder" / "a.safetensors", {}, about)
    tensors, found = checkpoint.load(tmp_path / "new" / "folder" / "a.safetensors")
    assert tensors == {}
    assert found == about | {"hidden": [64, 64]}


def test_equal_checkpoints_are_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        checkpoint.save(tmp_path / name, {"x": torch.ones(3), "y": torch.zeros(2)}, {"steps": 1, "seed": 2})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_about_must_be_json(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="PosixPath is not JSON"):
        checkpoint.save(tmp_path / "a.safetensors", {}, {"out": tmp_path})
    assert list(tmp_path.iterdir()) == []


def refusal(path: Path) -> str:
    with pytest.raises(ValueError, match=path.name) as caught:
        checkpoint.load(path)
    return str(caught.value)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "a.safetensors"
    assert refusal(path) == f"there is no checkpoint {path}."
    assert refusal(tmp_path) == f"there is no checkpoint {tmp_path}: it is a folder."
    for junk in (b"", b"short", b"a text that is longer than the header of a file"):
        path.write_bytes(junk)
        assert f"is not a checkpoint of gpuzoo (format {checkpoint.FORMAT}, .safetensors)" in refusal(path)
    torch.save({"format": 1}, path)
    assert f"is not a checkpoint of gpuzoo (format {checkpoint.FORMAT}, .safetensors)" in refusal(path)
    save_file({"x": torch.ones(3)}, path)
    assert refusal(path) == f"{path} is a .safetensors file, but not a checkpoint of gpuzoo."
    save_file({"x": torch.ones(3)}, path, {"format": "pt"})
    assert refusal(path) == f"{path} is a .safetensors file, but not a checkpoint of gpuzoo."


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, {"x": torch.arange(5)}, {"steps": 7})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert ("was cut off or damaged" if size > 8 else "is not a checkpoint") in refusal(path)


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    monkeypatch.setattr(checkpoint, "FORMAT", 9)
    checkpoint.save(path, {}, {})
    monkeypatch.undo()
    said = refusal(path)
    assert "format 9" in said
    assert f"gpuzoo {gpuzoo.__version__} reads format {checkpoint.FORMAT}" in said


def test_check_names_what_differs() -> None:
    about = {"game": "Nim-v0", "hidden": [64, 64], "config": {"num_runners": 3, "speed": 0.5}, "scale": math.nan}
    fine = {"hidden": (64, 64), "config": {"speed": 0.5, "num_runners": 3}, "scale": math.nan}
    checkpoint.check(about, fine, "a")
    checkpoint.check(about, {}, "a")
    for expected, said in (
        ({"hidden": (64, 32)}, "the checkpoint a.st has hidden [64, 64], but this run has hidden [64, 32]"),
        ({"num_envs": 4}, "the checkpoint a.st has no num envs, but this run has num envs 4"),
        ({"config": {"num_runners": 4, "speed": 0.5}}, "config num runners 3, but this run has config num runners 4"),
        ({"config": {"num_runners": 3}}, "has config speed 0.5, but this run has no config speed"),
        ({"config": None}, 'has config {"num_runners": 3, "speed": 0.5}, but this run has config null'),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="go on with the same, or begin a new run") as caught:
            checkpoint.check(about, expected, "a.st")
        assert said in str(caught.value)


def test_latest(tmp_path: Path) -> None:
    assert checkpoint.latest(tmp_path / "none") is None
    assert checkpoint.latest(tmp_path) is None
    for name, moment in (("b", 2), ("c", 3), ("a", 3), ("z", 1)):
        checkpoint.save(tmp_path / f"{name}.safetensors", {}, {})
        os.utime(tmp_path / f"{name}.safetensors", (moment, moment))
    (tmp_path / ".c.safetensors.123.part").touch()
    (tmp_path / "progress.csv").touch()
    assert checkpoint.latest(tmp_path) == tmp_path / "c.safetensors"


def fails(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    def fail(*args: Any) -> None:
        raise error

    monkeypatch.setattr(os, name, fail)


def kept(path: Path) -> bool:
    """Whether the file holds what was saved first, and is alone in its folder."""
    return checkpoint.load(path)[1] == {"steps": 1} and list(path.parent.iterdir()) == [path]


def test_a_checkpoint_is_read_whole_while_others_take_its_place(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    for k in range(2):
        checkpoint.save(tmp_path / f"{k}", {"weights": torch.full((3000,), float(k))}, {"value": k})
    os.link(tmp_path / "0", path)
    done = threading.Event()

    def replace() -> None:
        for k in itertools.cycle(range(2)):
            (tmp_path / "next").unlink(missing_ok=True)
            os.link(tmp_path / f"{k}", tmp_path / "next")
            os.replace(tmp_path / "next", path)
            if done.is_set():
                return

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(2000):
            found, about = checkpoint.load(path)
            assert bool((found["weights"] == about["value"]).all())
    finally:
        done.set()
        writer.join()


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_errors_leave_the_previous_checkpoint(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    with monkeypatch.context() as patch:
        fails(patch, name, OSError(errno.ENOSPC, "No space left on device"))
        with pytest.raises(OSError, match="there is none before it: No space left on device") as caught:
            checkpoint.save(path, {}, {"steps": 1})
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
    checkpoint.save(path, {}, {"steps": 1})
    for error, kind in ((PermissionError(errno.EACCES, "Denied"), PermissionError), (KeyboardInterrupt(),) * 2):
        with monkeypatch.context() as patch:
            fails(patch, name, error)
            with pytest.raises(kind if isinstance(kind, type) else KeyboardInterrupt):
                checkpoint.save(path, {}, {"steps": 2})
        assert kept(path)


def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, {"x": torch.zeros(10)}, {"steps": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))  # no file may grow beyond 1 MiB
    try:
        with pytest.raises(OSError, match=r"cannot write the checkpoint .*a.safetensors, the previous one is kept"):
            checkpoint.save(path, {"x": torch.zeros(1 << 20)}, {"steps": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert kept(path)


def test_a_file_system_that_cannot_sync_folders_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, synced = os.fsync, []

    def fsync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        if synced[-1]:
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    checkpoint.save(tmp_path / "a.safetensors", {}, {"steps": 1})
    assert synced == [False, True]
    assert kept(tmp_path / "a.safetensors")


_KILL = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from baselines.report import checkpoint

torch.set_num_threads(1)
path = Path(sys.argv[1])
checkpoint.save(path, {"x": torch.zeros(1)}, {"k": 0})
begun = parts = 0
for trial in range(60):
    pid = os.fork()
    if pid == 0:
        for k in range(trial * 1000, trial * 1000 + 1000):
            checkpoint.save(path, {"x": torch.full((100_000 + k,), k)}, {"k": k})
        os._exit(0)
    time.sleep(random.Random(trial).uniform(0, 0.002 * trial))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    tensors, about = checkpoint.load(path)
    assert (tensors["x"] == about["k"]).all(), about
    begun += about["k"] >= trial * 1000 > 0
    left = [name for name in os.listdir(path.parent) if name != path.name]
    assert len(left) <= 1, left
    parts += len(left)
checkpoint.save(path, {"x": torch.zeros(1)}, {"k": 0})
assert os.listdir(path.parent) == [path.name]
print(begun, parts)
"""


@pytest.mark.rotates
def test_a_killed_process_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a[1].safetensors"
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", _KILL, str(path)], capture_output=True, text=True, timeout=120, env=here
    )
    assert done.returncode == 0, done.stderr
    begun, parts = map(int, done.stdout.split())
    assert begun > 0, "no process was killed after its first save"
    assert parts > 0, "no process was killed in the middle of a save"


def test_a_save_leaves_other_files_alone(tmp_path: Path) -> None:
    others = {".a.b.01234567.part", ".b.01234567.part", ".a.part", "a.01234567.part"}
    for name in (*others, ".a.01234567.part"):
        (tmp_path / name).touch()
    checkpoint.save(tmp_path / "a", {}, {})
    assert {path.name for path in tmp_path.iterdir()} == {*others, "a"}


# ---- logs ----


@pytest.fixture
def logs() -> Iterator[Any]:
    """Makes logs, which are closed in the end."""
    made: list[log.Log] = []

    def make(*args: Any, **kwargs: Any) -> log.Log:
        made.append(log.Log(*args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.close()


def table(folder: Path) -> list[dict[str, float]]:
    with (folder / "progress.csv").open(newline="") as file:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]


def events(folder: Path) -> dict[str, dict[int, float]]:
    """What TensorBoard shows: by metric, values by step."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    shown = {name: board.Scalars(name) for name in board.Tags()["scalars"]}
    assert all(len({e.step for e in found}) == len(found) for found in shown.values()), "a step is there twice"
    return {name: {e.step: e.value for e in found} for name, found in shown.items() if found}


def age(folder: Path) -> None:
    """Makes files of events old: TensorBoard reads them in the order of their names, which begin with the second."""
    for k, path in enumerate(sorted(folder.glob("events*"))):
        path.rename(folder / f"events.out.tfevents.{k:010}.old")


ROWS = [{"steps": 64 * k, "loss": k / 4} for k in range(1, 7)]


def test_a_log_is_in_every_file(tmp_path: Path, logs: Any) -> None:
    one = logs(tmp_path / "new" / "run", {"game": "Nim-v0", "hidden": (64, 64), "out": tmp_path})
    for row in ROWS:
        one.write(row)
    one.close()
    folder = tmp_path / "new" / "run"
    assert one.rows == table(folder) == lines(folder) == ROWS
    assert (folder / "progress.csv").read_text().startswith("steps,loss\n64,0.25\n128,0.5\n")
    shown = events(folder)
    assert shown["loss"] == {row["steps"]: row["loss"] for row in ROWS}
    assert json.loads((folder / "run.json").read_text()) == {
        "game": "Nim-v0", "hidden": [64, 64], "out": str(tmp_path),
    }  # fmt: skip


def test_arguments_are_shown_as_text(tmp_path: Path, logs: Any) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs(tmp_path, {"seed": 17}).close()
    board = EventAccumulator(str(tmp_path)).Reload()
    (tag,) = board.Tags()["tensors"]
    assert b"|seed|17|" in board.Tensors(tag)[0].tensor_proto.string_val[0]


def test_rows_are_written_when_time_has_passed(tmp_path: Path, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = logs(tmp_path, {})
    monkeypatch.setattr(log, "FLUSH_SECONDS", math.inf)
    one.write(ROWS[0])
    assert (table(tmp_path), lines(tmp_path), events(tmp_path)) == ([], [], {})
    monkeypatch.setattr(log, "FLUSH_SECONDS", 0.0)
    one.write(ROWS[1])
    assert table(tmp_path) == lines(tmp_path) == ROWS[:2]
    assert events(tmp_path)["steps"] == {64: 64, 128: 128}


def test_points_have_the_time_at_which_they_were_written(
    tmp_path: Path, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    now = [1000.0]
    monkeypatch.setattr(log, "time", types.SimpleNamespace(time=lambda: now[0], monotonic=lambda: 0.0))
    one = logs(tmp_path, {})
    for row in ROWS:
        now[0] += 2
        one.write(row)
    one.flush()
    board = EventAccumulator(str(tmp_path)).Reload()
    assert [e.wall_time for e in board.Scalars("loss")] == [1002.0, 1004.0, 1006.0, 1008.0, 1010.0, 1012.0]


def test_columns_that_appear_late(tmp_path: Path, logs: Any) -> None:
    one, path = logs(tmp_path, {}), tmp_path / "progress.csv"
    one.write({"steps": 1, "loss": 0.5})
    one.flush()
    file = path.stat().st_ino
    one.write({"steps": 2})
    one.write({"loss": 0.25, "steps": 3})
    one.flush()
    assert path.stat().st_ino == file, "the file was written anew, without need"
    one.write({"steps": 4, 'return/a, "b"': 7.0})
    one.flush()
    one.write({"steps": 5, "loss": 0.125})
    one.flush()
    assert table(tmp_path) == lines(tmp_path) == one.rows
    assert [len(line.split(",")) for line in path.read_text().splitlines()[1:]] == [3] * 5


@pytest.mark.parametrize("closed", [True, False])
def test_a_run_that_goes_on(closed: bool, tmp_path: Path, logs: Any) -> None:
    old = logs(tmp_path, {})
    for row in ROWS[:5]:
        old.write({**row, "late": 1.0} if row is ROWS[4] else row)
    old.close() if closed else old.flush()
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"steps": 32')  # a kill in the middle of a write
    age(tmp_path)
    rows = log.read(tmp_path, steps=192)
    assert rows == ROWS[:3]
    new = logs(tmp_path, {}, rows=rows)
    assert new.rows == table(tmp_path) == lines(tmp_path) == ROWS[:3]
    assert events(tmp_path) == {k: {row["steps"]: row[k] for row in ROWS[:3]} for k in ("steps", "loss")}
    new.write(ROWS[3])
    new.flush()
    assert new.rows == table(tmp_path) == lines(tmp_path) == ROWS[:4]
    assert events(tmp_path)["loss"] == {row["steps"]: row["loss"] for row in ROWS[:4]}


def test_a_tensorboard_that_is_running_forgets_what_is_replaced(tmp_path: Path, logs: Any) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    old = logs(tmp_path, {})
    for row in ROWS:
        old.write({**row, "late": 1.0})
    old.close()
    age(tmp_path)
    board = EventAccumulator(str(tmp_path)).Reload()
    assert (len(board.Scalars("loss")), len(board.Scalars("late"))) == (6, 6)
    logs(tmp_path, {}, rows=ROWS[:2]).close()
    board.Reload()
    assert [e.step for e in board.Scalars("loss")] == [64, 128]
    assert board.Scalars("late") == []


def test_a_new_run_replaces_the_log(tmp_path: Path, logs: Any) -> None:
    for rows in (ROWS, ROWS[:1]):
        one = logs(tmp_path, {})
        for row in rows:
            one.write(row)
        one.close()
        assert table(tmp_path) == lines(tmp_path) == rows
        assert events(tmp_path)["loss"] == {row["steps"]: row["loss"] for row in rows}
        age(tmp_path)


def test_a_run_that_goes_on_elsewhere(tmp_path: Path, logs: Any) -> None:
    logs(tmp_path, {}, rows=ROWS).close()
    assert table(tmp_path) == lines(tmp_path) == ROWS
    assert events(tmp_path)["loss"] == {row["steps"]: row["loss"] for row in ROWS}


def test_read_without_a_log(tmp_path: Path) -> None:
    assert log.read(tmp_path / "none", 10) == []


def test_tensorboard_gets_some_points_of_each_metric(tmp_path: Path, logs: Any) -> None:
    one = logs(tmp_path, {})
    for k in range(1, 1001):
        one.write({"steps": k} | ({"rare": k} if k % 40 == 7 else {}))
    one.flush()
    shown = events(tmp_path)
    assert list(shown["steps"]) == list(range(20, 1001, 20))  # 50 of them, the last included
    assert list(shown["rare"]) == list(range(7, 1000, 40))  # 25 of them: all
    assert len(table(tmp_path)) == len(lines(tmp_path)) == 1000


def test_numbers_that_json_does_not_know(tmp_path: Path, logs: Any) -> None:
    one = logs(tmp_path, {})
    one.write({"steps": 1, "loss": math.nan, "best": -math.inf})
    one.write({"steps": 2, "loss": 0.1})
    one.flush()
    assert lines(tmp_path) == [{"steps": 1, "loss": None, "best": None}, {"steps": 2, "loss": 0.1}]
    assert (tmp_path / "progress.csv").read_text() == "steps,loss,best\n1,nan,-inf\n2,0.1,\n"
    (first,) = log.read(tmp_path, 1)
    assert math.isnan(first["loss"])


def test_a_row_needs_steps() -> None:
    with pytest.raises(ValueError, match="a row of the log needs 'steps', and this one has loss"):
        log.Log(None, {}).write({"loss": 1.0})


def test_rows_do_not_change_with_what_was_given(logs: Any, tmp_path: Path) -> None:
    row = {"steps": 1.0}
    one = logs(tmp_path, {}, rows=[row])
    one.write(row)
    row["steps"] = 2.0
    one.flush()
    assert one.rows == lines(tmp_path) == [{"steps": 1.0}] * 2


def test_without_a_folder_nothing_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.chdir(tmp_path)
    one = log.Log(None, {}, rows=ROWS[:1])
    one.write(ROWS[1])
    one.flush()
    one.close()
    assert one.rows == ROWS[:2]
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'gpuzoo\[train\]'"):
        log.Log(tmp_path, {})
    with pytest.raises(ImportError, match=r"pip install 'gpuzoo\[track\]'"):
        log.Log(None, {}, track=True)


class FakeRun:
    """Stands for a run of Weights & Biases."""

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs
        self.points: list[tuple[int, dict[str, float]]] = []
        self.finished = 0

    def log(self, data: dict[str, float], step: int) -> None:
        self.points.append((step, data))

    def finish(self) -> None:
        self.finished += 1


@pytest.mark.parametrize("folder", ["run", None])
def test_weights_and_biases(folder: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logs: Any) -> None:
    runs: list[FakeRun] = []
    fake: Any = types.ModuleType("wandb")
    fake.init = lambda **kwargs: runs.append(FakeRun(**kwargs)) or runs[-1]
    monkeypatch.setitem(sys.modules, "wandb", fake)
    logs(tmp_path, {})
    assert not runs, "only on demand"
    where = tmp_path / folder if folder else None
    one = logs(where, {"seed": 1, "out": tmp_path}, track=True, project="zoo", rows=ROWS[:2])
    one.write(ROWS[2])
    one.write(ROWS[3])
    one.flush()
    (run,) = runs
    assert run.kwargs == {
        "project": "zoo", "config": {"seed": 1, "out": str(tmp_path)}, "name": folder, "dir": where and str(where),
    }  # fmt: skip
    assert run.points == [(row["steps"], row) for row in ROWS[:4]]
    one.close()
    one.close()
    assert (run.finished, len(run.points)) == (1, 4)


# ---- plots ----


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every figure that is written."""
    found: list[Any] = []
    write = plots.write
    monkeypatch.setattr(plots, "write", lambda figure, path: (found.append(figure), write(figure, path)))
    return found


def texts(axis: Any) -> list[str]:
    return [axis.get_title(loc="left"), axis.get_xlabel(), axis.get_ylabel()]


def returns(count: int) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = [{"steps": 1000 * k, "speed": 1.0} for k in range(count)]
    for row in rows[2:]:
        row |= {"return/cat": row["steps"] / 7, "return/mouse": -row["steps"]}
    return rows


def test_learning_curve(tmp_path: Path, figures: list[Any]) -> None:
    rows = [*returns(50), {"steps": 50_000, "return/cat": math.nan}]
    plots.learning_curve(rows, "Hunt-v0", tmp_path / "a" / "b.png")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.png"]
    assert (tmp_path / "a" / "b.png").read_bytes().startswith(b"\x89PNG")
    cat, mouse = figures[0].axes
    assert texts(cat) == ["Hunt-v0: cat", "steps of all envs", "mean return of an agent"]
    assert texts(mouse)[0] == "Hunt-v0: mouse"
    raw, smooth = mouse.lines
    assert raw.get_xydata().tolist() == [[1000 * k, -1000 * k] for k in range(2, 50)]
    assert smooth.get_linewidth() > raw.get_linewidth()
    assert smooth.get_ydata()[1:].tolist() == [-1000 * k - 500 for k in range(2, 49)]  # a mean of two
    assert "20k" in [label.get_text() for label in mouse.get_xticklabels()]


@pytest.mark.parametrize("count", [0, 1, 2, 19, 20, 41, 60, 99, 100, 500])
def test_smoothing_is_a_moving_mean(count: int) -> None:
    values = np.random.default_rng(1).normal(size=count)
    width = max(1, count // 20)
    expected = [values[max(0, k - width // 2) : k + (width + 1) // 2].mean() for k in range(count)]
    np.testing.assert_allclose(plots.smoothed(values), expected, rtol=0, atol=1e-12)  # sums of up to 500 round


def test_population_curves(tmp_path: Path, figures: list[Any]) -> None:
    values = np.random.default_rng(1).normal(size=(40, 9))
    values[:3] = np.nan
    values[10:, 4] = np.nan
    steps = 1000 * np.arange(40)
    some = {"cat": values, "mouse": values[:, :1], "dog": np.full((40, 9), np.nan)}
    plots.population_curves(steps, some, "Hunt-v0", tmp_path / "a.png")
    assert (tmp_path / "a.png").is_file()
    cat, mouse = figures[0].axes  # no episode of a dog has ended
    *members, median = cat.lines
    assert len(members) == 9
    np.testing.assert_array_equal(members[4].get_ydata(), values[:, 4])
    np.testing.assert_array_equal(median.get_xdata(), steps[3:])
    middle = np.nanmedian(values[3:], 1)
    np.testing.assert_allclose(median.get_ydata(), middle, rtol=0, atol=1e-15)  # the mean of two values rounds
    assert median.get_label() == "median of 9 members"
    assert median.get_linewidth() > members[0].get_linewidth()
    band = cat.collections[0].get_paths()[0].vertices
    assert {band[:, 1].min(), band[:, 1].max()} == {
        np.nanquantile(values[3:], 0.25, axis=1).min(), np.nanquantile(values[3:], 0.75, axis=1).max(),
    }  # fmt: skip
    assert len(mouse.lines) == 2


def test_large_populations_are_thinned(tmp_path: Path, figures: list[Any]) -> None:
    values = np.arange(2000.0)[:, None] + np.arange(1000.0)
    plots.population_curves(np.arange(2000), {"cat": values}, "Hunt-v0", tmp_path / "a.png")
    *members, median = figures[0].axes[0].lines
    assert len(members) == plots.FAINT_CURVES
    assert members[0].get_ydata()[[0, -1]].tolist() == [0.0, 1999.0]
    assert members[-1].get_ydata()[[0, -1]].tolist() == [999.0, 2998.0]
    assert len(members[0].get_xdata()) == plots.FAINT_POINTS
    assert len(median.get_xdata()) == 2000


def test_sweep_plot(tmp_path: Path, figures: list[Any]) -> None:
    rates, gamma = np.geomspace(1e-5, 1e-2, 8), np.linspace(0.9, 0.99, 8)
    zero = np.linspace(0, 1, 8)
    final = np.array([1, 2, np.nan, 9, 5, 4, 3, 2.0])
    values = {"learning_rate": rates, "gamma": gamma, "entropy": zero}
    plots.sweep_plot(values, {"cat": final, "mouse": -final}, tmp_path / "a.png")
    axes = figures[0].axes
    assert [axis.get_xscale() for axis in axes] == ["log", "linear", "linear"] * 2
    assert [axis.get_xlabel() for axis in axes] == ["learning rate", "gamma", "entropy"] * 2
    assert [axis.get_ylabel() for axis in axes[::3]] == ["final return of cat", "final return of mouse"]
    everyone, best = axes[4].collections
    np.testing.assert_array_equal(everyone.get_offsets().filled(np.nan)[[0, 3]], [[gamma[0], -1], [gamma[3], -9]])
    np.testing.assert_array_equal(best.get_offsets(), [[gamma[0], -1]])


def test_elo_curve(tmp_path: Path, figures: list[Any]) -> None:
    plots.elo_curve([(0, 1000.0), (10, 1100.0)], tmp_path / "a.png")
    assert figures[0].axes[0].lines[0].get_xydata().tolist() == [[0, 1000], [10, 1100]]
    assert texts(figures[0].axes[0])[1:] == ["iteration", "Elo"]


def test_no_data_is_no_picture(tmp_path: Path) -> None:
    path, nothing = tmp_path / "a.png", np.full((3, 2), np.nan)
    for rows in ([], returns(2), [{"steps": 1, "return/cat": math.nan}]):
        plots.learning_curve(rows, "Hunt-v0", path)
    plots.population_curves(np.arange(3), {"cat": nothing}, "Hunt-v0", path)
    plots.population_curves(np.arange(0), {"cat": nothing[:0]}, "Hunt-v0", path)
    plots.sweep_plot({"gamma": np.ones(2)}, {"cat": nothing[0]}, path)
    plots.sweep_plot({}, {"cat": np.ones(2)}, path)
    plots.elo_curve([], path)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    plots.elo_curve([(0, 1000.0)], path)
    before = path.read_bytes()
    fails(monkeypatch, "replace", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match="No space"):
        plots.elo_curve([(0, 1000.0), (1, 1010.0)], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_curves_for_figures_of_others() -> None:
    from matplotlib.figure import Figure

    axis = Figure().add_subplot()
    plots.curve(axis, returns(4), "cat", "#4285e0")
    plots.curve(axis, returns(2), "cat", "#4285e0")  # nothing yet
    plots.finish(axis)
    assert [line.get_label() for line in axis.lines][1::2] == ["cat", "cat"]
    assert axis.get_xlabel() == "steps of all envs"
