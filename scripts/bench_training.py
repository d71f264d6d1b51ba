"""Training side by side: gpuzoo's PPO and other libraries' on one machine, taking turns, with equal hyper-parameters.

    python scripts/bench_training.py [--only A D1] [--repeat 3] [--json FILE]
        [--cleanrl PYTHON ppo.py] [--sb3 PYTHON] [--purejaxrl PYTHON FOLDER] [--jaxmarl PYTHON ippo_ff_mpe.py]

PYTHON is an interpreter in which that peer's packages are installed; the rest lies in a checkout of it. A peer that is
not given is left out. Each run is a process of its own, and gpuzoo compiles its kernels anew, as the others do.
Every peer's file runs as it is, called by ``training_peers.py`` in the peer's interpreter. What is noted:

- train: seconds of training, without importing and compiling; the rate is env steps by these seconds. An env step moves
  all agents of one env.
- whole: seconds of the process from start to end.
- CPU: seconds of all its cores.
- return: the mean over the last tenth of the updates of the mean return of the episodes that ended in each (of one
  agent), and over the runs, of which each has a seed of its own.

What differs: CleanRL, PureJaxRL and JaxMARL take a truncated episode for a terminated one, the others bootstrap.
Stable-Baselines3 uses the clipped value's error alone, not the larger one. PureJaxRL keeps what every step reports
until the end of the run. Logs that are written while training are switched off in CleanRL and JaxMARL, not in gpuzoo.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training_peers import Setting, last_tenth, versions

ROOT = Path(__file__).resolve().parents[1]


SETTINGS = {
    "A": Setting("CartPole, 4 envs"),
    "B": Setting("CartPole, 1,024 envs", num_envs=1024, total_steps=20_000_000),
    "C": Setting("CartPole, 4 envs, 16 seeds", seeds=16),
    "D1": Setting("Simple Spread, 16 envs", "SimpleSpread-v0", 16, 1_000_000),
    "D2": Setting("Simple Spread, 1,024 envs", "SimpleSpread-v0", 1024, 10_000_000),
    "E": Setting(
        "Breakout, 64 envs",
        "Breakout-MinAtar-v1",
        64,
        10_000_000,
        minibatches=8,
        lr=5e-3,
        activation="relu",
        config={"sticky_action_prob": 0, "max_episode_steps": 1000},
    ),
}


@dataclasses.dataclass
class Contestant:
    """Who trains: ``run`` takes a setting and returns at least "train" and "return"."""

    key: str
    name: str
    run: Callable[[Setting], dict[str, Any]]
    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def timed(command: list[str], environment: dict[str, str], text: str = "") -> tuple[str, dict[str, Any]]:
    """Runs a command; returns its output, and how long it and its CPU cores took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=os.environ | environment, input=text, capture_output=True, text=True, cwd=ROOT)
    whole, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, {"whole": whole, "cpu": cpu, "command": shlex.join(command)}


def peer(name: str, place: list[str], environment: dict[str, str]) -> Callable[[Setting], dict[str, Any]]:
    """``place`` is the interpreter and what the driver needs to know."""
    python, *rest = place

    def run(setting: Setting) -> dict[str, Any]:
        command = [python, str(ROOT / "scripts/training_peers.py"), name, *rest]
        out, found = timed(command, environment, json.dumps(dataclasses.asdict(setting)))
        measured: dict[str, Any] = json.loads(out.splitlines()[-1])  # some peers write even when told not to
        return found | measured

    return run


def ours(setting: Setting, device: str, seeds: range | None = None) -> dict[str, Any]:
    """All seeds as one population, or with ``seeds`` one run after another, of which the first compiles for all."""
    with tempfile.TemporaryDirectory() as folder:
        if seeds is None:
            return run_ours(setting, device, folder)
        runs = [run_ours(dataclasses.replace(setting, seeds=1, seed=seed), device, folder) for seed in seeds]
    sums = {name: sum(run[name] for run in runs) for name in ("train", "whole", "cpu")}
    return runs[0] | sums | {"return": statistics.fmean(run["return"] for run in runs)}


def run_ours(setting: Setting, device: str, folder: str) -> dict[str, Any]:
    """One run of ``baselines.ppo`` with its cache and its log in ``folder``."""
    names = ["num_envs", "total_steps", "seed", "num_steps", "epochs", "minibatches", "lr", "gamma",
             "gae_lambda", "clip_eps", "ent_coef", "vf_coef", "max_grad_norm", "activation"]  # fmt: skip
    options = {name: getattr(setting, name) for name in names} | {"hidden": "64,64", "encoder": "mlp", "device": device}
    if setting.seeds > 1:
        options["population"] = setting.seeds
    flags = [str(x) for name, value in options.items() for x in (f"--{name.replace('_', '-')}", value)]
    flags += ["--anneal-lr", "--clip-values", "--normalize-advantages", "--no-normalize-observations"]
    flags += ["--save-every", "1e9"]
    flags += [str(x) for name, value in setting.config.items() for x in (f"--config.{name}", value)]
    command = [sys.executable, "-m", "baselines.ppo", setting.game, *flags, "--out", f"{folder}/out"]
    _, found = timed(command, {"GPUZOO_CACHE_DIR": f"{folder}/cache"})
    with open(f"{folder}/out/progress.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    returns: list[float | None] = []
    for row in rows:
        values = [float(value) for name, value in row.items() if name.startswith("return/") and value]
        returns.append(statistics.fmean(values) if values else None)
    return found | {
        "train": float(rows[-1]["seconds"]),
        "return": last_tenth(returns),
        "versions": versions("gpuzoo", "torch"),
        "command": found["command"].replace(folder, "FOLDER"),
    }


def contestants(key: str, chosen: argparse.Namespace) -> list[Contestant]:
    """Those that play a setting."""
    device, found = chosen.device, []

    def add(name: str, run: Callable[[Setting], dict[str, Any]]) -> None:
        found.append(Contestant(key, name, run))

    add("gpuzoo, a population" if key == "C" else "gpuzoo", lambda setting: ours(setting, device))
    if key == "C":
        in_turn = range(1, SETTINGS[key].seeds + 1)
        add("gpuzoo, one after another", lambda setting: ours(setting, device, in_turn))
    for_torch = {"OMP_NUM_THREADS": str(chosen.torch_threads)} if chosen.torch_threads else {}
    for_jax = {"JAX_PLATFORMS": device.partition(":")[0], "XLA_FLAGS": chosen.xla_flags}
    if key == "A" and chosen.cleanrl:
        add("CleanRL", peer("cleanrl", chosen.cleanrl, for_torch))
    if key == "A" and chosen.sb3:
        add("Stable-Baselines3", peer("sb3", chosen.sb3, for_torch))
    if key in ("A", "B", "C", "E") and chosen.purejaxrl:
        add("PureJaxRL, vmap" if key == "C" else "PureJaxRL", peer("purejaxrl", chosen.purejaxrl, for_jax))
    if key in ("D1", "D2") and chosen.jaxmarl:
        add("JaxMARL IPPO", peer("jaxmarl", chosen.jaxmarl, for_jax))
    return found


def machine(device: str) -> dict[str, Any]:
    from gpuzoo.core.backend import make_backend
    from gpuzoo.tools import provenance

    return provenance.describe(make_backend(device, None)) | {"host": platform.node()}


def table(done: list[Contestant], settings: dict[str, Setting]) -> str:
    """Markdown: rates of the best run and the median, returns of all; all else of the best run."""
    lines = [
        "| setting | trainer | steps/s, best | median | train s | whole s | CPU s | return |",
        "|:--|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for who in done:
        best = min(who.rows, key=lambda row: row["train"])
        rate = settings[who.key].steps / best["train"]
        median = settings[who.key].steps / statistics.median(row["train"] for row in who.rows)
        lines.append(
            f"| {who.key}: {settings[who.key].title} | {who.name} | {rate:,.0f} | {median:,.0f} | {best['train']:.1f} "
            f"| {best['whole']:.1f} | {best['cpu']:.1f} | {statistics.fmean(row['return'] for row in who.rows):.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="settings")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each trainer; they take turns")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of steps: 0.1 for a quick look")
    parser.add_argument("--cleanrl", nargs=2, metavar=("PYTHON", "FILE"))
    parser.add_argument("--sb3", nargs=1, metavar="PYTHON")
    parser.add_argument("--purejaxrl", nargs=2, metavar=("PYTHON", "FOLDER"))
    parser.add_argument("--jaxmarl", nargs=2, metavar=("PYTHON", "FILE"))
    parser.add_argument("--device", default="cpu", help="of gpuzoo and JAX; CleanRL and SB3 use the CPU")
    parser.add_argument("--torch-threads", type=int, default=1, help="of CleanRL and SB3; 0: as many as torch likes")
    parser.add_argument("--xla-flags", default="", help="of PureJaxRL and JaxMARL")
    parser.add_argument("--json", help="file for all that was measured")
    chosen = parser.parse_args()
    settings = {
        key: dataclasses.replace(x, total_steps=int(x.total_steps * chosen.scale)) for key, x in SETTINGS.items()
    }
    for key in chosen.only:
        if not settings[key].updates:
            parser.error(f"--scale {chosen.scale} leaves setting {key} without a whole rollout; take a larger one.")
    done = []
    for key in chosen.only:
        turns = contestants(key, chosen)
        for turn in range(chosen.repeat):
            setting = dataclasses.replace(settings[key], seed=settings[key].seed + turn)
            for who in list(turns):
                try:
                    who.rows.append(who.run(setting))
                    news = f"{settings[key].steps / who.rows[-1]['train']:,.0f} steps/s"
                except RuntimeError as error:
                    turns.remove(who)
                    news = f"left out: {error}"
                print(f"{key} {who.name}: {news}", file=sys.stderr, flush=True)
        done += turns
    here = machine(chosen.device)
    print(f"{here['gpu'] or here['cpu']}, {here['cores']} cores, commit {here['commit']}\n\n{table(done, settings)}")
    if chosen.json:
        results = [
            {"setting": who.key, "trainer": who.name, "steps": settings[who.key].steps, "runs": who.rows}
            for who in done
        ]
        used = {key: dataclasses.asdict(settings[key]) for key in chosen.only}
        Path(chosen.json).write_text(json.dumps({"machine": here, "settings": used, "results": results}, indent=1))


if __name__ == "__main__":
    main()
