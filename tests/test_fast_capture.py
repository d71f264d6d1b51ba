"""What a GPU captures as graphs, on the CPU: each iteration does the same, and nothing waits for what was computed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from training import small, toy  # noqa: E402

from baselines.a2c import A2C  # noqa: E402
from baselines.a2c import Args as A2CArgs  # noqa: E402
from baselines.fast.executor import Fast  # noqa: E402
from baselines.ppo import PPO  # noqa: E402

ROOT = Path(__file__).parents[1]
#: operations that need to know on the host what a tensor holds, or that bring a list to the device
WAIT = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "lift_fresh", "is_nonzero", "equal.default")
NORMAL = {"normalize_rewards": True, "normalize_observations": True}
TAG = {"num_taggers": 2, "num_runners": 3, "num_other_agents_observed": 2, "max_episode_steps": 20}
RUNS: dict[str, dict[str, Any]] = {
    "one agent": {"game": "CartPole-v1", "target_kl": 0.01, **NORMAL},
    "population": {"game": "TagContinuous-v0", "config": TAG, "population": 2, "random_opponents": {"runner": 0.5},
                   **NORMAL},
    "central": {"game": "TagContinuous-v0", "config": TAG, "critic": "central",
                "policies": {"tagger": "all", "runner": "all"}},
    "memory": {"game": "SimpleSpread-v0", "critic": "central", "memory": 4, "sequence": 4, **NORMAL},
    "pool": {"game": "ConnectFour-v0", "pool": 2, "pool_every": 2, "channels": (2,), "hidden": (8,)},
    "waiting": {"game": toy("Pause")},
    "a2c": {"game": "SimpleSpread-v0", "kind": A2CArgs},
}  # fmt: skip


def plain(x: Any) -> Any:
    """An argument without what a tensor holds."""
    if isinstance(x, torch.Tensor):
        return tuple(x.shape), x.stride(), x.dtype
    return tuple(map(plain, x)) if isinstance(x, (list, tuple)) else str(x)


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Notes the operations of a function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__()
        self.function, self.operations = function, []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations.append((str(function), plain(args), plain(tuple((kwargs or {}).items()))))
        return function(*args, **(kwargs or {}))

    def __call__(self) -> Any:
        self.operations = []
        with self:
            return self.function()


def run_of(name: str, iterations: int, **more: Any) -> tuple[Any, Any]:
    """The algorithm and the arguments of a run."""
    values = {"num_envs": 8, "num_steps": 12, "total_steps": 96 * iterations, **RUNS[name], **more}
    kind = values.pop("kind", None)
    if kind is None:
        values |= {"epochs": 2, "minibatches": 2}
    return A2C if kind else PPO, small(values.pop("game"), kind, **values)


@pytest.mark.one_case
@pytest.mark.parametrize("name", RUNS)
def test_iterations_are_alike_and_wait_for_nothing(name: str) -> None:
    kind, args = run_of(name, 4)
    flat = []
    for looks in (False, True):
        executor = Fast("cpu")
        executor.on_cpu = executor.may_sync = looks  # what a GPU is given, on this CPU
        trainer = kind(args, executor)
        play, learn = trainer.play, trainer.update = Recorder(trainer.play), Recorder(trainer.update)
        found = []
        for _ in range(4):
            trainer.iterate()
            found.append(play.operations + learn.operations)
        flat.append(torch.cat([x.policy.flat.detach().flatten() for x in trainer.learners.values()]))
        trainer.close()
        waits = [operation for operation, *_ in found[1] if any(word in operation for word in WAIT)]
        assert bool(waits) == looks, waits
        assert looks or found[1] == found[2] == found[3]
    np.testing.assert_allclose(*flat, rtol=1e-4, atol=1e-5)  # sums over batches of another shape


def test_an_update_is_captured_where_python_runs_the_algorithm_as_a_program() -> None:
    """There the algorithm's module is called __main__."""
    code = (
        "import runpy, sys; from baselines.fast.executor import Fast; "
        "Fast.capture = lambda self, f: print('captures:', self._captures) or f; "
        "sys.argv[1:] = 'CartPole-v1 --total-steps 8 --num-steps 2 --minibatches 1 --device cpu'.split(); "
        "runpy.run_module('baselines.ppo', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "captures: True" in done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize("name", RUNS)
def test_a_graph_does_what_its_operations_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, args = run_of(name, 5, device="cuda")
    found = []
    for capture in (True, False):
        if not capture:
            monkeypatch.setattr("baselines.fast.executor.captured", lambda function, device: function)
        trainer = kind(args, Fast("cuda"))
        log = [trainer.iterate() for _ in range(5)]
        found.append((trainer.policies, log))
        trainer.close()
    for group, policy in found[0][0].items():
        assert torch.equal(policy.flat, found[1][0][group].flat)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_equal(one, other)
