"""What ``gpuzoo bench`` measures.

For each game: steps/s of single `step` launches, of `rollout`, and of ``gymnasium.make_vec`` with NumPy output (on a
GPU with torch output), in Gymnasium's default autoreset mode and with the same actions in every step, drawn once; and
the time to the first step.
These loops and a copy take turns, so that a machine that slows down slows them all; figures are medians over the turns.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpuzoo import registry
from gpuzoo.core.backend import Backend, make_backend
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.simulator import Simulator
from gpuzoo.tools import provenance, roofline
from gpuzoo.tools.clocks import REPEATS, Clock, take_turns

Row = dict[str, Any]


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


# ---- loops ----


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
    limit = 2**28 if on_cpu else min(2**31, backend.xp.cuda.runtime.memGetInfo()[0] // 3)
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
    copy: roofline.Copy,
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
    on_gpu = backend.xp is not np
    options: Row = {"output": "torch"} if on_gpu else {} if threads is None else {"threads": threads}
    vector: Any = gymnasium.make_vec(
        f"gpuzoo/{case.env.id}", num_envs=count * lay.agents, device=backend.device, **options, **case.config
    )
    vector.reset(seed=0)
    shape = vector.single_action_space.shape
    rows = actions.reshape(count * lay.agents, lay.action_size)
    rows = np.ascontiguousarray(rows[:, : int(np.prod(shape))].reshape(-1, *shape))
    if on_gpu:
        import torch

        rows = torch.from_numpy(rows).to(backend.device)

    def step_vector(times: int) -> None:
        for _ in range(times):
            vector.step(rows)
        sim.synchronize()

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
    moved = roofline.step_bytes(sim.program)
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
    copy = roofline.Copy(backend)
    yield {**provenance.describe(backend), "seconds": seconds}
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
