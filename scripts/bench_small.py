"""What one waits for at the prompt: imports, the list of games, the command's errors, and the first step of an env.

    python scripts/bench_small.py [--games 200] [--rounds 5] [--max-import 0.1] [--max-command 1.0]

Each time of imports and commands is the least CPU time (user and system) of some fresh processes. An env is made,
reset, stepped once and closed in this process, in turns with Gymnasium's own of the same game. The collection is
filled up to `--games` with copies of its games under other ids, in a temporary folder.
Ends with status 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gpuzoo

PACKAGE = Path(gpuzoo.__file__).parent
#: games that Gymnasium has too, with an action
ACTIONS: dict[str, Any] = {
    "CartPole-v1": 0,
    "Acrobot-v1": 0,
    "MountainCar-v0": 0,
    "Pendulum-v1": np.zeros(1, np.float32),
    "Blackjack-v1": 0,
    "CliffWalking-v1": 0,
    "FrozenLake-v1": 0,
    "Taxi-v4": 0,
}
BASE = "import gymnasium, pettingzoo, numpy"


def fill(root: Path, games: int) -> None:
    """Copies the package to a folder, with more games than it has."""
    shutil.copytree(PACKAGE, root / "gpuzoo", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "baselines", root / "baselines", ignore=shutil.ignore_patterns("__pycache__"))
    envs = root / "gpuzoo" / "envs"
    originals = [path for path in sorted(envs.glob("*/*.py")) if re.search(r'^    id = "', path.read_text(), re.M)]
    for k in range(games - len(gpuzoo.ids())):
        path = originals[k % len(originals)]
        folder = envs / f"copy_{k}"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / path.name).write_text(re.sub(r'"([A-Z][\w-]*-v\d+)"', rf'"Copy{k}-\1"', path.read_text()))
        shutil.copy(path.with_suffix(".cuh"), folder)


def seconds(words: Sequence[str], root: Path, status: int = 0) -> float:
    """CPU time of a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "PYTHONPATH": str(root), "GPUZOO_CACHE_DIR": str(root / "cache"), "COLUMNS": "160"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    done = subprocess.run([sys.executable, *words], env=env, cwd=root, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def made(name: str) -> None:
    gymnasium.make(name).close()


def used(name: str) -> None:
    env = gymnasium.make(name)
    env.reset(seed=0)
    env.step(ACTIONS[name.removeprefix("gpuzoo/")])
    env.close()


def taken(call: Callable[[str], None], name: str) -> float:
    """CPU seconds of a call."""
    calls, began = 0, time.process_time()
    while time.process_time() < began + 0.05:
        call(name)
        calls += 1
    return (time.process_time() - began) / calls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-import", type=float, default=0.1, help="seconds beyond Gymnasium, PettingZoo and NumPy")
    parser.add_argument("--max-command", type=float, default=1.0, help="seconds of `gpuzoo list` and of an error")
    args = parser.parse_args()
    missed = []

    def verdict(what: str, value: float, bound: float, text: str) -> None:
        print(f"{what:44} {text}", flush=True)
        if value > bound:
            missed.append(what)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        fill(root, args.games)
        first = seconds(["-c", "import gpuzoo"], root)
        seconds(["-m", "gpuzoo", "list"], root)
        runs = [[seconds(["-c", code], root) for code in (BASE, "import gpuzoo")] for _ in range(args.rounds)]
        base, whole = map(min, zip(*runs, strict=True))
        text = f"{1e3 * (whole - base):6.0f} ms beyond the {1e3 * base:.0f} ms of the others ({first:.2f} s at first)"
        verdict(f"import gpuzoo, {args.games} games", whole - base, args.max_import, text)
        commands = {
            "gpuzoo list": (["list"], 0),
            "gpuzoo --help": (["--help"], 0),
            "gpuzoo record NoSuchGame": (["record", "NoSuchGame", "-o", "a.gif"], 2),
            "gpuzoo train NoSuchGame": (["train", "NoSuchGame"], 2),
            "gpuzoo train CartPole-v1 --no-such-option 1": (["train", "CartPole-v1", "--no-such-option", "1"], 2),
            "gpuzoo play NoSuchGame": (["play", "NoSuchGame", "--checkpoint", "no.safetensors"], 2),
        }
        for name, (words, status) in commands.items():
            took = min(seconds(["-m", "gpuzoo", *words], root, status) for _ in range(args.rounds))
            verdict(name, took, args.max_command, f"{1e3 * took:6.0f} ms, {took / base:.1f} times those imports")
    for title, call in (("make", made), ("make, reset, step, close", used)):
        for name in ACTIONS:
            taken(call, name), taken(call, f"gpuzoo/{name}")  # compiles it
            turns = [(taken(call, name), taken(call, f"gpuzoo/{name}")) for _ in range(3 * args.rounds)]
            theirs, ours = map(min, zip(*turns, strict=True))
            ratio = statistics.median(mine / other for other, mine in turns)
            text = f"{1e6 * ours:6.0f} us, Gymnasium's own {1e6 * theirs:.0f} us; median of turns {ratio:.2f}"
            verdict(f"{title}: {name}", ratio, 1.0, text)
    if missed:
        print("missed:", ", ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
