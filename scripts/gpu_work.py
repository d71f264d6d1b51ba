"""The parts of scripts/gpu.sh that are Python: each prints rows of JSON, one a line, as they come.

    python scripts/gpu_work.py ready|smoke|equal|golden|compile|headlines|games|steps|training|profile ... --device cuda

They run on any device, so that they can be tried where there is no GPU: on a CPU a capture is left out, and on
``simt`` the kernels are those of a GPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import make_golden
from gpu_rows import METRICS, Row, profile_rows, say, training_rows

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core import moves, nvrtc
from gpuzoo.core.backend import Backend, make_backend
from gpuzoo.core.codegen import program
from gpuzoo.core.layout import Shapes
from gpuzoo.testing.tools import assert_same, read
from gpuzoo.tools import bench, provenance, roofline
from gpuzoo.tools.clocks import REPEATS, Clock, take_turns

WIDE = "TagContinuous-v0"
#: what a game's configuration is called in `EnvDef.benchmarks`, how many envs there are, and what is measured: single
#: steps in a CUDA graph, or the time of a million frames of `rollout`
HEADLINES = (
    ("CartPole-v1", "default", 2**21, "graph"),
    ("CartPole-v1", "default", 2000, "frames"),
    ("Breakout-MinAtar-v1", "default", 2000, "frames"),
    ("TagGridWorld-v0", "1000 agents, partial observation", 2000, "graph"),
    ("TagContinuous-v0", "1024 agents", 2000, "graph"),
    ("TagContinuous-v0", "default", 2000, "graph"),
    ("SimpleSpread-v0", "default", 2**18, "graph"),
    ("Breakout-MinAtar-v1", "default", 2**18, "graph"),
)
FRAMES = 1_000_000
IN_A_GRAPH = 32


def found(kind: str, name: str, work: Callable[[], Row | None]) -> bool:
    """Does one piece of work, and says what came of it. The others go on if it fails."""
    start, row = time.perf_counter(), {"kind": kind, "id": name}
    try:
        row |= {"ok": True} | (work() or {})
    except Exception as error:
        traceback.print_exc()
        lines = str(error).splitlines() or [""]
        row |= {"ok": False, "error": f"{type(error).__name__}: {lines[0][:300]}"}
    say(row | {"seconds": round(time.perf_counter() - start, 3)})
    return bool(row["ok"])


def case_of(env_id: str, name: str) -> bench.Case:
    return next(case for case in bench.cases() if (case.env.id, case.name) == (env_id, name))


# ---- right or wrong ----


def ready(args: argparse.Namespace) -> bool:
    """Whether there is such a device; else a sentence says why not."""
    try:
        make_backend(args.device)
    except (ImportError, RuntimeError, ValueError) as error:
        print(error)
        return False
    return True


def apart(device: str) -> Backend:
    """A backend that allocates each array by itself, so that compute-sanitizer sees an address beyond an array."""
    if not device.startswith("cuda"):
        return make_backend(device)
    from gpuzoo.core.backend_cuda import CudaBackend

    class Apart(CudaBackend):
        def zeros_all(self, shapes: Shapes) -> tuple[list[Any], list[int]]:
            arrays = [self.zeros(shape, dtype) for shape, dtype in shapes.shapes]
            return arrays, [self.address(array) for array in arrays]

    backend = Apart(int(device.partition(":")[2] or 0))
    backend.xp.cuda.set_allocator(None)
    return backend


def equal(env_id: str, backend: Backend, num_envs: int, steps: int) -> None:
    """The bits of a reset, a rollout, and single steps are the CPU's."""
    sims = [
        Simulator(gpuzoo.get(env_id), num_envs, backend=b, autoreset_mode="same_step", max_episode_steps=max(2, steps))
        for b in (make_backend("cpu"), backend)
    ]
    for sim in sims:
        sim.reset(seed=3)
        sim.rollout(steps)
        for _ in range(2):
            sim.random_actions()
            sim.step()
    assert_same(env_id, *map(read, sims))


@contextlib.contextmanager
def captured(sim: Simulator, count: int) -> Iterator[Callable[[], None]]:
    """So many steps as a CUDA graph, or one after another where there is no GPU. The batch has begun."""
    if not sim.device.startswith("cuda"):
        yield lambda: [sim.step() for _ in range(count)] and None
        return
    import torch

    sim.step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            sim.step()
    yield graph.replay


def capture(env_id: str, device: str) -> Row:
    """A graph of two steps, replayed, does what six steps on a CPU do."""
    sims = [Simulator(gpuzoo.get(env_id), 300, device=d, autoreset_mode="same_step") for d in ("cpu", device)]
    sims[1].reset(seed=0)
    with captured(sims[1], 2) as replay:
        for sim in sims:
            sim.reset(seed=1)
            sim.random_actions()
        for _ in range(3):
            replay()
            sims[0].step()
            sims[0].step()
    assert_same(env_id, *map(read, sims))
    return {"graph": sims[1].device.startswith("cuda")}


def train_once(device: str) -> Row:
    """One iteration of PPO."""
    from gpuzoo.baselines import ppo
    from gpuzoo.baselines.executors import choose

    device = "cpu" if device == "simt" else device
    args = ppo.Args(game="CartPole-v1", num_envs=64, num_steps=32, total_steps=2048, device=device)
    trainer = ppo.PPO(args, choose(args.executor, args.device))
    log = trainer.iterate()
    trainer.close()
    return {"log": {name: value for name, value in (log or {}).items() if isinstance(value, (int, float))}}


def smoke(args: argparse.Namespace) -> bool:
    say(provenance.describe(make_backend(args.device)))
    good = [
        found("equal", WIDE, lambda: equal(WIDE, make_backend(args.device), 3, 8)),
        found("capture", "CartPole-v1", lambda: capture("CartPole-v1", args.device)),
        found("training", "CartPole-v1", lambda: train_once(args.device)),
    ]
    return all(good)


def equals(args: argparse.Namespace) -> bool:
    backend = apart(args.device) if args.apart else make_backend(args.device)
    return all([
        found("equal", name, lambda name=name: equal(name, backend, args.num_envs or 33, args.steps))  # type: ignore[misc]
        for name in args.games
    ])  # fmt: skip


def published(env_id: str, device: str) -> Row:
    """The golden rollout, which other machines' CPUs made: it needs no compiler but NVRTC."""
    want = json.loads((make_golden.FOLDER / f"{env_id}.json").read_text())
    got = make_golden.rollout(gpuzoo.get(env_id), device)
    for steps, values in want["steps"].items():
        if got["steps"][steps] != values:
            raise AssertionError(f"other bits after {steps} steps")
    return {"device": device, "steps": max(map(int, want["steps"]))}


def golden(args: argparse.Namespace) -> bool:
    names = args.games or list(dict.fromkeys(case.env.id for case in urgent_first(bench.cases())))
    names = [name for name in names if (make_golden.FOLDER / f"{name}.json").exists()]
    return all([found("golden", name, lambda name=name: published(name, args.device)) for name in names])  # type: ignore[misc]


# ---- compiling ahead ----


def cubin(case: tuple[str, str, str, int | None]) -> str:
    env_id, name, arch, driver = case
    chosen = case_of(env_id, name)
    made = program(chosen.env, chosen.env.Config(**chosen.config))
    return str(nvrtc.cached_cubin(made.code, env_id, arch, made.block, driver))


def urgent_first(cases: Iterable[bench.Case]) -> list[bench.Case]:
    """Headlines, then other games, then robots: one takes as long as many games, and the time may be over before."""
    headlines = {(env_id, name) for env_id, name, *_ in HEADLINES}
    return sorted(cases, key=lambda c: ((c.env.id, c.name) not in headlines, c.env.packed))


def compile_all(args: argparse.Namespace) -> bool:
    """Fills the cache with the kernels of the benchmarks, by all cores; it needs NVRTC, and no GPU."""
    arch, driver = args.arch, None
    if arch == "auto":
        import cupy

        arch, driver = f"sm_{cupy.cuda.Device().compute_capability}", cupy.cuda.runtime.driverGetVersion()
    start = time.perf_counter()
    cases = [(case.env.id, case.name, arch, driver) for case in urgent_first(bench.cases(args.only))]
    failed: list[str] = []
    nvrtc.cached_cubin(moves.code(), "moves", arch, driver=driver)
    with concurrent.futures.ProcessPoolExecutor(args.jobs or os.cpu_count()) as pool:
        futures = {pool.submit(cubin, case): case for case in cases}
        for future in concurrent.futures.as_completed(futures):
            if future.exception() is not None:
                failed.append(f"{' '.join(futures[future][:2])}: {future.exception()}")
    row = {"kind": "compile", "arch": arch, "nvrtc": nvrtc.version(), "programs": len(cases), "failed": failed}
    say(row | {"seconds": round(time.perf_counter() - start, 3)})
    return not failed


# ---- figures ----


def headline(case: bench.Case, num_envs: int, what: str, device: str, seconds: float, copy: roofline.Copy) -> Row:
    sim = Simulator(case.env, num_envs, device=device, autoreset_mode="same_step", **case.config)
    sim.reset(seed=0)
    sim.rollout(8)
    sim.random_actions()
    row: Row = {
        "case": case.name, "config": case.config, "device": sim.device, "num_envs": num_envs,
        "agents": sim.layout.agents, "what": what,
    }  # fmt: skip
    turn = seconds / (REPEATS + 1)
    if what == "frames":
        steps = -(-FRAMES // num_envs)

        def roll_out(times: int) -> None:
            for _ in range(times):
                sim.rollout(steps)
            sim.synchronize()

        clock = Clock(roll_out, turn)
        take_turns([clock])
        sim.close()
        rate = {"steps_per_second": steps * num_envs / clock.seconds}
        return row | {"frames": steps * num_envs, "frames_seconds": clock.seconds, "spread": clock.spread} | rate
    with captured(sim, IN_A_GRAPH) as replay:

        def play(times: int) -> None:
            for _ in range(times):
                replay()
            sim.synchronize()

        clocks = [Clock(play, turn / 2), Clock(copy, turn / 2)]
        take_turns(clocks)
    step, moved = clocks[0].seconds / IN_A_GRAPH, roofline.step_bytes(sim.program)
    bandwidth = copy.bytes / clocks[1].seconds
    sim.close()
    return row | {
        "graph": device.startswith("cuda"),
        "steps_per_second": num_envs / step,
        "agent_steps_per_second": num_envs * row["agents"] / step,
        "step_bytes": moved,
        "copy_bandwidth": bandwidth,
        "roofline_fraction": moved * num_envs / step / bandwidth,
        "spread": clocks[0].spread,
    }


def headlines(args: argparse.Namespace) -> bool:
    backend = make_backend(args.device)
    say(provenance.describe(backend) | {"seconds": args.seconds})
    copy = roofline.Copy(backend)
    good = [
        found("headline", env_id, lambda e=env_id, c=name, n=num_envs, w=what: headline(  # type: ignore[misc]
            case_of(e, c), min(n, args.num_envs or n), w, args.device, args.seconds, copy
        ))
        for env_id, name, num_envs, what in HEADLINES
    ]  # fmt: skip
    return all(good)


def games(args: argparse.Namespace) -> bool:
    """`gpuzoo bench`, with what matters most first, as the time may be over before the end."""
    cases, options = urgent_first(bench.cases(args.only)), {"num_envs": args.num_envs, "seconds": args.seconds}
    good = True
    for row in bench.run(cases, device=args.device, startup=False, **options):
        say(row)
        good &= "error" not in row
    return good


def steps(args: argparse.Namespace) -> bool:
    """Single steps and nothing else, for a profiler to look at."""
    for name in args.games:
        env_id, _, case = name.partition(":")
        chosen = case_of(env_id, case or "default")
        num_envs = args.num_envs or (2000 if chosen.env.lanes(chosen.env.Config(**chosen.config)) > 1 else 2**18)
        sim = Simulator(chosen.env, num_envs, device=args.device, autoreset_mode="same_step", **chosen.config)
        sim.reset(seed=0)
        sim.random_actions()
        for _ in range(args.steps):
            sim.step()
        sim.synchronize()
        say({"kind": "steps", "id": env_id, "case": chosen.name, "num_envs": num_envs, "steps": args.steps})
        sim.close()
    return True


COMMANDS: dict[str, Callable[[argparse.Namespace], bool]] = {
    "ready": ready,
    "smoke": smoke,
    "equal": equals,
    "golden": golden,
    "compile": compile_all,
    "headlines": headlines,
    "games": games,
    "steps": steps,
    "training": training_rows,
    "profile": profile_rows,
}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=[*COMMANDS, "metrics"])
    parser.add_argument("games", nargs="*", help="games, GAME:CASE, or files")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--apart", action="store_true", help="allocate each array by itself")
    parser.add_argument("--num-envs", type=int)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--arch", default="auto")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int)
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    args = parse(words)
    if args.command == "metrics":
        print(",".join(METRICS))
        return 0
    return 0 if COMMANDS[args.command](args) else 1


if __name__ == "__main__":
    sys.exit(main())
