"""What ``gpuzoo bench`` measures.

For each game: steps/s of single `step` launches, of `rollout`, and of ``gymnasium.make_vec`` with NumPy output, in
Gymnasium's default autoreset mode and with the same actions in every step, drawn once; and the time to the first step.
These loops and a copy take turns, so that a machine that slows down slows them all; figures are medians over the turns.

**The memory roofline** of a step is the fewest bytes that it has to move over the device's copy bandwidth. The bytes of
one env, from the declaration alone: every field of the state read and written once; every agent's observation,
action mask, reward, termination and truncation written once; its action read once; the engine's running counts
(return, length, who is alive) read and written once. Random draws, parameters, tables and what is rare (ends and
beginnings of episodes) count nothing. The bandwidth is that of the copy: bytes read plus bytes written, of arrays much
larger than the caches, by as many threads as step the envs. So a batch that stays in the caches, or a step
that leaves most of a large field alone, can be above 100 %. One file: all of it makes one table.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo import registry
from gpuzoo.core.backend import Backend, make_backend
from gpuzoo.core.codegen import ENGINE_ARRAYS, Program
from gpuzoo.core.definition import EnvDef, flat_size
from gpuzoo.core.simulator import Simulator

Row = dict[str, Any]

REPEATS = 5
#: how often a step touches what the engine keeps: once where it only reads or only writes
_TOUCHES: Mapping[str, int] = {
    "reward": 1,
    "terminated": 1,
    "truncated": 1,
    "episode_return": 2,
    "alive": 2,
    "elapsed_steps": 2,
    "waiting": 1,
    "ended": 1,
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A game in one configuration.

    Attributes:
        env: the game.
        name: of the configuration, ``"default"`` or a key of `EnvDef.benchmarks`.
        config: arguments of `Simulator`.
        num_envs: number of envs, or None to search a good one.
    """

    env: EnvDef
    name: str
    config: dict[str, Any]
    num_envs: int | None = None


def cases(pattern: str = "") -> list[Case]:
    """The default configuration of each game, and those of its `EnvDef.benchmarks`.

    Args:
        pattern: a regular expression that is looked for in ``"<id> <configuration>"``; case does not matter.

    Raises:
        ValueError: a faulty expression.
    """
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}.") from None
    found = []
    for env_id in registry.ids():
        env = registry.get(env_id)
        for name, arguments in {"default": {}, **env.benchmarks}.items():
            config = dict(arguments)
            num_envs = config.pop("num_envs", None)
            if wanted.search(f"{env_id} {name}"):
                found.append(Case(env, name, config, num_envs))
    return found


# ---- the device ----


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the checkout that this package lies in, with ``+`` if it was changed since."""
    root = Path(__file__).parents[2]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout

    try:
        if Path(git("rev-parse", "--show-toplevel").strip()) != root.resolve():
            return None
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
        return git("rev-parse", "--short=10", "HEAD").strip() + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def machine(backend: Backend) -> Row:
    """Where and what is measured: processor, cores, GPU, versions, commit and command."""
    import gpuzoo
    from gpuzoo.core.backend_cpu import available_threads

    row: Row = {
        "kind": "machine",
        "device": backend.device,
        "cpu": _cpu_model(),
        "cores": available_threads(),
        "threads": getattr(backend, "threads", None),
        "gpu": None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "gpuzoo": gpuzoo.__version__,
        "commit": _commit(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    if backend.device.startswith("cuda"):
        properties = backend.xp.cuda.runtime.getDeviceProperties(int(backend.device.partition(":")[2]))
        row["gpu"] = properties["name"].decode()
        row["cupy"] = backend.xp.__version__
    return row


class Copy:
    """A copy on the device, much larger than the caches, as work for a `Clock`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._on_cpu = backend.xp is np
        size = 2**27 if self._on_cpu else 2**30
        #: bytes read plus bytes written by one copy
        self.bytes = 2 * size
        with backend.ordered():
            self._source, self._target = backend.zeros((size,), "uint8"), backend.zeros((size,), "uint8")
        workers = int(getattr(backend, "threads", 1))
        edges = [size * k // workers for k in range(workers + 1)]
        self._parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
        self._pool = ThreadPoolExecutor(workers)

    def __call__(self, count: int) -> None:
        """Copies so many times."""
        for _ in range(count):
            if self._on_cpu:
                list(self._pool.map(lambda part: np.copyto(self._target[part], self._source[part]), self._parts))
            else:
                with self._backend.ordered():
                    self._backend.xp.copyto(self._target, self._source)
        self._backend.synchronize()


def step_bytes(program: Program) -> int:
    """The fewest bytes that a step of one env has to move; see the module's documentation."""
    lay = program.layout
    total = 2 * sum(int(np.prod(f.sizes)) * np.dtype(f.dtype).itemsize for f in program.fields.values())
    itemsize = np.dtype(lay.observation_dtype).itemsize
    for group, count in lay.groups.items():
        total += count * flat_size(lay.observation_spaces[group]) * itemsize
        total += count * flat_size(lay.action_spaces[group]) * np.dtype(lay.action_dtype).itemsize
    total += lay.agents * lay.mask_size
    for name, touches in _TOUCHES.items():
        dtype, per = ENGINE_ARRAYS[name]
        if name != "alive" or lay.agents > 1:
            total += touches * np.dtype(dtype).itemsize * (lay.agents if per == "A" else 1)
    return total


# ---- clocks ----


class Clock:
    """Times units of one piece of work, turn by turn.

    Args:
        work: does as many units as it is told, and waits until they are done.
        seconds: how long a turn should take.
    """

    def __init__(self, work: Callable[[int], None], seconds: float) -> None:
        self._work = work
        self.samples: list[float] = []
        work(1)
        count = 1
        while True:
            start = time.perf_counter()
            work(count)
            taken = time.perf_counter() - start
            if taken > seconds / 4 or taken * 4 > seconds:
                break
            count *= 2 if taken > seconds / 64 else 8
        self.count = max(1, round(count * seconds / taken))

    def turn(self) -> None:
        """Measures once more."""
        start = time.perf_counter()
        self._work(self.count)
        self.samples.append((time.perf_counter() - start) / self.count)

    @property
    def seconds(self) -> float:
        """Median seconds per unit."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """(Slowest - fastest turn) / median."""
        return (max(self.samples) - min(self.samples)) / self.seconds


def take_turns(clocks: Sequence[Clock], repeats: int = REPEATS) -> None:
    """Lets clocks measure in turn, so that drift of the machine is fair to all."""
    for _ in range(repeats):
        for clock in clocks:
            clock.turn()


def _stepper(sim: Simulator) -> Callable[[int], None]:
    """Single steps, always with the actions that are there now."""
    with sim.backend.ordered():
        actions = sim.arrays["action"].copy()

    def work(count: int) -> None:
        with sim.backend.ordered():
            sim.arrays["action"][...] = actions
        for _ in range(count):
            sim.step()
        sim.synchronize()

    return work


def _started(case: Case, backend: Backend, num_envs: int) -> Simulator:
    sim = Simulator(case.env, num_envs, backend=backend, **case.config)
    sim.reset(seed=0)
    sim.rollout(8)
    sim.random_actions()
    return sim


def _sweep(case: Case, backend: Backend, seconds: float) -> dict[int, float]:
    """Steps/s at several numbers of envs."""
    on_cpu = backend.xp is np
    sizes = (64, 512, 4096, 32768) if on_cpu else (4096, 32768, 262144, 2097152)
    limit = 2**28 if on_cpu else min(2**33, backend.xp.cuda.runtime.memGetInfo()[0] // 3)
    rates: dict[int, float] = {}
    for num_envs in sizes:
        sim = _started(case, backend, min(num_envs, 64))
        too_large = sim.nbytes / sim.num_envs * num_envs > limit
        sim.close()
        if too_large and not rates and num_envs > 16:
            num_envs = 16 if on_cpu else 512
        elif too_large:
            break
        sim = _started(case, backend, num_envs)
        clock = Clock(_stepper(sim), seconds)
        take_turns([clock], 2)
        rates[num_envs] = num_envs / min(clock.samples)
        sim.close()
    return rates


# ---- start-up ----

_FIRST_STEP = """
import importlib, json, sys, time
start = time.perf_counter()
import gpuzoo
imported = time.perf_counter()
what = json.loads(sys.argv[1])
for module in what["modules"]:
    importlib.import_module(module)
begin = time.perf_counter()
env = gpuzoo.make(what["id"], what["num_envs"], device=what["device"], **what["config"])
env.reset(seed=0)
env.step(env.random_actions())
env.simulator.synchronize()
print(json.dumps([imported - start, time.perf_counter() - begin]))
"""


def first_step(case: Case, device: str, num_envs: int, modules: Sequence[str] = ()) -> dict[str, float]:
    """Seconds from `gpuzoo.make` to the end of the first step in a new process, without and with compiled programs.

    ``import_seconds`` is what ``import gpuzoo`` takes before.
    """
    what = {
        "id": case.env.id,
        "config": case.config,
        "num_envs": num_envs,
        "device": device,
        "modules": list(modules),
    }
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "GPUZOO_CACHE_DIR": folder, "CUPY_CACHE_DIR": os.path.join(folder, "cupy")}
        variables["PYTHONPATH"] = os.pathsep.join(p for p in [*sys.path, os.environ.get("PYTHONPATH", "")] if p)
        for name in ("uncached", "cached"):
            command = [sys.executable, "-c", _FIRST_STEP, json.dumps(what)]
            done = subprocess.run(command, env=variables, capture_output=True, text=True)
            if done.returncode != 0:
                reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise RuntimeError(f"{case.env.id}: the first step failed in a new process: {reason}")
            imported, taken = json.loads(done.stdout.splitlines()[-1])
            out["import_seconds"] = imported
            out[f"first_step_{name}_seconds"] = taken
    return out


# ---- a row ----


def measure(
    case: Case,
    backend: Backend,
    *,
    copy: Copy,
    num_envs: int | None = None,
    seconds: float = 2.0,
    startup: bool = True,
    modules: Sequence[str] = (),
) -> Row:
    """Measures one case.

    Args:
        case: what.
        backend: the device.
        copy: on the same device, to measure its bandwidth.
        num_envs: number of envs; by default the case's own, or the best of several.
        seconds: time for the four loops together.
        startup: measure the time to the first step too.
        modules: to be imported by the new process that does so.
    """
    import gymnasium

    chosen = num_envs or case.num_envs
    sweep = {} if chosen else _sweep(case, backend, seconds / 40)
    # the largest that is about as fast as the fastest
    count = chosen or max(n for n, rate in sweep.items() if rate >= 0.9 * max(sweep.values()))
    sim = _started(case, backend, count)
    lay = sim.layout
    actions = sim.backend.to_numpy(sim.arrays["action"])

    threads = getattr(backend, "threads", None)
    options: Row = {} if threads is None else {"threads": threads}
    vector: Any = gymnasium.make_vec(
        f"gpuzoo/{case.env.id}", num_envs=count * lay.agents, device=backend.device, **options, **case.config
    )
    vector.reset(seed=0)
    shape = vector.single_action_space.shape
    rows = actions.reshape(count * lay.agents, lay.action_size)
    rows = np.ascontiguousarray(rows[:, : int(np.prod(shape))].reshape(-1, *shape))

    def step_vector(times: int) -> None:
        for _ in range(times):
            vector.step(rows)

    def roll_out(times: int) -> None:
        sim.rollout(times)
        sim.synchronize()

    turn = seconds / 4 / (REPEATS + 1)
    step, rollout, interface, copying = clocks = (
        Clock(_stepper(sim), turn),
        Clock(roll_out, turn),
        Clock(step_vector, turn),
        Clock(copy, turn),
    )
    take_turns(clocks)
    bandwidth = copy.bytes / copying.seconds
    moved = step_bytes(sim.program)
    row: Row = {
        "kind": "game",
        "id": case.env.id,
        "case": case.name,
        "config": case.config,
        "device": backend.device,
        "threads": threads,
        "agents": lay.agents,
        "num_envs": count,
        "steps_per_second": count / step.seconds,
        "agent_steps_per_second": count * lay.agents / step.seconds,
        "rollout_steps_per_second": count / rollout.seconds,
        "vector_rows_per_second": count * lay.agents / interface.seconds,
        "vector_overhead": statistics.median(v / s for v, s in zip(interface.samples, step.samples, strict=True)) - 1,
        "step_bytes": moved,
        "copy_bandwidth": bandwidth,
        "roofline_fraction": moved * count / step.seconds / bandwidth,
        "memory_bytes": sim.nbytes,
        "spread": {"step": step.spread, "rollout": rollout.spread, "vector": interface.spread, "copy": copying.spread},
        "sweep": {str(n): rate for n, rate in sweep.items()},
    }
    vector.close()
    sim.close()
    if startup:
        row |= first_step(case, backend.device, count, modules)
    return row


def run(
    chosen: Sequence[Case],
    *,
    device: str = "auto",
    threads: int | None = None,
    num_envs: int | None = None,
    seconds: float = 2.0,
    startup: bool = True,
    modules: Sequence[str] = (),
) -> Iterator[Row]:
    """Measures cases one after another: first a row about the machine, then one for each case.

    A case that fails gives a row with ``error``.
    """
    backend = make_backend(device, threads)
    copy = Copy(backend)
    yield {**machine(backend), "seconds": seconds}
    for case in chosen:
        try:
            yield measure(
                case,
                backend,
                copy=copy,
                num_envs=num_envs,
                seconds=seconds,
                startup=startup,
                modules=modules,
            )
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            yield {"kind": "game", "id": case.env.id, "case": case.name, "device": backend.device, "error": message}
