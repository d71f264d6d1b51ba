"""Several processes train as one with all their envs."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("torch has no gloo here", allow_module_level=True)

from training import ROOT  # noqa: E402

from baselines.report import checkpoint  # noqa: E402

pytestmark = pytest.mark.rotates(together=True)  # they share three processes, which take longer than the tests

PROCESSES, ENVS, ITERATIONS = 2, 4, 4
NORMAL = {"normalize_observations": True, "normalize_rewards": True, "normalize_advantages": True, "minibatches": 1}
RUNS: dict[str, dict[str, Any]] = {
    "choices": {"game": "CartPole-v1", **NORMAL},
    "central": {"game": "SimpleSpread-v0", "critic": "central", **NORMAL},
    "memory": {"game": "CartPole-v1", "memory": 4, "population": 2, **NORMAL},
    "deaths": {"game": "TagContinuous-v0", "config": {"num_taggers": 2, "num_runners": 3, "max_episode_steps": 20,
                                                      "num_other_agents_observed": 2}, **NORMAL},
    "plain": {"game": "SimpleSpread-v0", "executor": "plain", "population": 2, **NORMAL},
    "minibatches": {"game": "CartPole-v1", "minibatches": 4, "target_kl": 0.01},
    "own": {"game": "SimpleSpread-v0", "kind": "Own", "critic": "central", "population": 2, "eval_every": 4,
            "eval_episodes": 4, **NORMAL},
}  # fmt: skip

PROGRAM = """
import json, sys
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}]
import torch
torch.set_num_threads(1)
from own_algorithm import Own
from baselines.train import distributed
from baselines.ppo import PPO, Args
from baselines.run import Run, train

Run.draw = lambda self: None  # pictures take longer than these runs
envs, out = int(sys.argv[1]), Path(sys.argv[2])
for name, values in json.loads(sys.argv[3]).items():
    seen = {{}}

    def watch(trainer):
        if not trainer.iteration:
            return
        seen.setdefault("seeds", trainer.simulator.arrays["seed"].tolist())
        seen.setdefault("actions", trainer.rollout.action.clone())

    kind = Own if values.pop("kind", "PPO") == "Own" else PPO
    args = Args(values.pop("game"), num_envs=envs, num_steps=16, total_steps=16 * {total} * {iterations}, device="cpu",
                threads=1, out=str(out / name / f"of rank {{distributed.rank()}}"), lr=1e-3, **values)
    result = train(kind, args, quiet=True, on_iteration=watch)
    seen |= {{"rows": result.rows, "flat": {{g: p.flat.detach() for g, p in result.policies.items()}},
             "scale": {{g: p.scale.mean for g, p in result.policies.items()}}}}
    torch.save(seen, out / f"{{name}}-{{distributed.rank()}}.pt")
distributed.end()
"""


RESUMED = {"game": "SimpleSpread-v0", "critic": "central", "memory": 4, "population": 2, **NORMAL}
KINDS = ("PPO", "Own")
INTERRUPTION = """
import json, sys
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}]
import torch
torch.set_num_threads(1)
from own_algorithm import Own
from baselines.train import distributed
from baselines.ppo import PPO, Args
from baselines.run import Run, train

Run.draw = lambda self: None
folder, values = Path(sys.argv[1]), json.loads(sys.argv[2])


class InterruptionError(Exception):
    pass


def interrupt(trainer):
    if trainer.iteration == 3:
        raise InterruptionError


def run(kind, name, **more):
    args = Args(**values, num_envs={envs}, num_steps=16, total_steps=16 * {total} * {iterations}, device="cpu",
                threads=1, out=str(folder / kind.__name__ / name), save_every=1e-9, resume=True)
    return train(kind, args, quiet=True, **more).rows


for kind in (PPO, Own):
    rows = run(kind, "whole")
    try:
        run(kind, "interrupted", on_iteration=interrupt)
        raise AssertionError("it was not interrupted")
    except InterruptionError:
        after = run(kind, "interrupted")
    (folder / kind.__name__ / f"rows-{{distributed.rank()}}.json").write_text(json.dumps([rows, after]))
distributed.end()
"""

# An agent that can do nothing in the second of three steps, in rollouts of one step.
IDLE = """
import sys
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}]
import numpy as np
import torch
from training import small, toy
from baselines.train import distributed
from baselines.ppo import PPO

envs, path = int(sys.argv[1]), Path(sys.argv[2])
trainer = PPO(small(toy("Pause"), num_envs=envs, num_steps=1, total_steps=16 * {total}, minibatches=1, lr=1e-2))
number = trainer.rollout.first_env + np.arange(envs)
trainer.simulator.set_state({{"elapsed_steps": (number >= {envs}).astype(np.int32)}})
trainer.rollout.begin()
learner = trainer.learners["agent"]
seen = []
for _ in range(6):
    numbers = trainer.iterate()
    seen.append({{"valid": learner.valid.sum(), "flat": learner.policy.flat.detach().clone(),
                  "numbers": {{name: torch.from_numpy(x) for name, x in numbers.items()}}}})
trainer.close()
torch.save(seen, path / f"{{distributed.rank()}}.pt")
distributed.end()
"""


def start(processes: int, program: str, folder: Path, *words: str) -> None:
    """Runs a program, by torchrun if in several processes."""
    path = folder / "program.py"
    path.write_text(program.format(root=str(ROOT), tests=str(ROOT / "tests"), envs=ENVS, total=PROCESSES * ENVS,
                                   iterations=ITERATIONS))  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--master-addr=127.0.0.1",
                f"--master-port={port}"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, *(launcher if processes > 1 else []), str(path), *words],
        capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By run: what both processes saw, and what one with all envs did."""
    folder = tmp_path_factory.mktemp("processes")
    for kind, processes, envs in (("both", PROCESSES, ENVS), ("one", 1, PROCESSES * ENVS)):
        (folder / kind).mkdir()
        start(processes, PROGRAM, folder, str(envs), str(folder / kind), json.dumps(RUNS))
    load = lambda path: torch.load(path, weights_only=True)  # noqa: E731
    found: dict[str, Any] = {"folder": folder}
    for name in RUNS:
        found[name] = [load(folder / "both" / f"{name}-{k}.pt") for k in range(PROCESSES)]
        found[name].append(load(folder / "one" / f"{name}-0.pt"))
    return found


def bits(x: torch.Tensor) -> np.ndarray[Any, Any]:
    return x.contiguous().view(-1).view(torch.uint8).numpy()


def timeless(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{k: v for k, v in row.items() if k not in ("seconds", "speed")} for row in rows]


@pytest.mark.parametrize("name", RUNS)
def test_processes_end_with_the_same_bits(results: dict[str, Any], name: str) -> None:
    first, second, _ = results[name]
    for group, flat in first["flat"].items():
        assert torch.equal(flat, second["flat"][group])
        assert torch.equal(first["scale"][group], second["scale"][group])
        assert flat.isfinite().all()
    assert len(first["rows"]) == ITERATIONS
    np.testing.assert_equal(timeless(first["rows"]), timeless(second["rows"]))


@pytest.mark.parametrize("name", [name for name, values in RUNS.items() if values["minibatches"] == 1])
def test_processes_train_as_one(results: dict[str, Any], name: str) -> None:
    first, second, one = results[name]
    members = RUNS[name].get("population", 1)
    seeds = [np.reshape(x["seeds"], (members, -1)) for x in (first, second, one)]
    np.testing.assert_array_equal(np.concatenate(seeds[:2], 1), seeds[2])
    assert len(np.unique(seeds[2])) == seeds[2].size
    actions = [x["actions"].unflatten(1, (members, -1)) for x in (first, second, one)]
    assert torch.equal(torch.cat(actions[:2], 2), actions[2])
    assert not torch.equal(actions[0], actions[1])
    for group, flat in first["flat"].items():
        # Sums over rows in another order, which Adam enlarges where a gradient is small.
        torch.testing.assert_close(flat, one["flat"][group], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(first["scale"][group], one["scale"][group], rtol=1e-4, atol=1e-5)
    for mine, other in zip(first["rows"], one["rows"], strict=True):
        assert mine.keys() == other.keys()
        for key in mine.keys() - {"seconds", "speed"}:
            assert mine[key] == pytest.approx(other[key], rel=2e-3, abs=2e-4), key


def test_only_one_process_writes_files(results: dict[str, Any]) -> None:
    for name in RUNS:
        folder = results["folder"] / "both" / name
        assert [p.name for p in folder.iterdir()] == ["of rank 0"]
        assert (folder / "of rank 0" / "checkpoint.safetensors").is_file()


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs are that were interrupted, and those that were not."""
    folder = tmp_path_factory.mktemp("interrupted")
    start(PROCESSES, INTERRUPTION, folder, str(folder), json.dumps(RESUMED))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_processes_go_on_with_the_same_bits(interrupted: Path, kind: str) -> None:
    folder, found = interrupted / kind, []
    for name in ("whole", "interrupted"):
        tensors, about = checkpoint.load(folder / name / "checkpoint.safetensors")
        assert about["iteration"] == ITERATIONS
        for k in range(PROCESSES):  # it says something of envs that ended, and nothing of others
            tensors[f"process/{k}/env/final_return"][~tensors[f"process/{k}/env/ended"]] = 0
        found.append(tensors)
    whole, again = found
    assert whole.keys() == again.keys()
    for key, x in whole.items():
        np.testing.assert_array_equal(bits(x), bits(again[key]), err_msg=key)
    assert ("extra/calls" in whole) == (kind == "Own")
    for key in ("env/seed", "env/observation", "memory/agent", "running_return/agent"):
        first, second = (bits(whole[f"process/{k}/{key}"]) for k in range(PROCESSES))
        assert not np.array_equal(first, second), key
    rows, after = json.loads((folder / "rows-0.json").read_text())
    assert len(rows) == ITERATIONS
    assert timeless(rows) == timeless(after)
    rows, after = json.loads((folder / "rows-1.json").read_text())
    assert [row["iteration"] for row in after] == [3, 4]  # only the first process has the log of what was before
    assert timeless(rows[2:]) == timeless(after)


def test_a_process_without_transitions_learns_from_the_others(tmp_path: Path) -> None:
    for kind, processes, envs in (("both", PROCESSES, ENVS), ("one", 1, PROCESSES * ENVS)):
        (tmp_path / kind).mkdir()
        start(processes, IDLE, tmp_path, str(envs), str(tmp_path / kind))
    names = ("both/0.pt", "both/1.pt", "one/0.pt")
    first, second, one = (torch.load(tmp_path / name, weights_only=True) for name in names)
    assert [int(x["valid"]) for x in first] == [0, 0, ENVS, 0, 0, ENVS]
    assert [int(x["valid"]) for x in second] == [0, ENVS, 0, 0, ENVS, 0]
    for mine, other, alone in zip(first, second, one, strict=True):
        assert torch.equal(mine["flat"], other["flat"])
        assert mine["numbers"].keys() == other["numbers"].keys() == alone["numbers"].keys()
        for key, x in mine["numbers"].items():
            np.testing.assert_array_equal(x, other["numbers"][key], err_msg=key)
            torch.testing.assert_close(x, alone["numbers"][key], rtol=1e-3, atol=1e-4, equal_nan=True)
        torch.testing.assert_close(mine["flat"], alone["flat"], rtol=1e-3, atol=1e-4)  # sums in another order
    moved = [not torch.equal(x["flat"], y["flat"]) for x, y in itertools.pairwise(first)]
    assert moved[:2] == [True, True]  # by what the second process saw, and then the first
