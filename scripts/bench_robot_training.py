"""HalfCheetah by our PPO, by CleanRL's and by Stable-Baselines3's, each with its own settings: env steps per second.

    python scripts/bench_robot_training.py [--cleanrl PYTHON ppo_continuous_action.py] [--sb3 PYTHON] [--repeat 3]

PYTHON is an interpreter in which that peer's packages and ``mujoco`` are installed; CleanRL's file runs as it is (see
training_peers.py). All take turns, each in a process of its own with one thread. Rates are env steps by seconds of
training, without importing and compiling. Settings are not equal: ours are those of the shipped results, theirs are
those with which they train MuJoCo's tasks (one env, 2,048 steps, ten epochs of 32 minibatches).
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import statistics
import sys
from tempfile import TemporaryDirectory

from bench_training import machine, peer, timed
from training_peers import Setting

OURS, THEIRS = 3_000_000, 20_480  # env steps
CLEANRL = Setting(
    "HalfCheetah, one env",
    "HalfCheetah-v4",
    1,
    THEIRS,
    num_steps=2048,
    epochs=10,
    minibatches=32,
    lr=3e-4,
    ent_coef=0.0,
)
SB3 = dataclasses.replace(CLEANRL, game="HalfCheetah-v5")


def ours(seed: int) -> float:
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "baselines.ppo", "HalfCheetah-v5", "--threads", "1", "--device", "cpu"]
        command += ["--total-steps", str(OURS), "--seed", str(seed), "--save-every", "1e9"]
        timed([*command, "--out", f"{folder}/out"], {"OMP_NUM_THREADS": "1"})
        with open(f"{folder}/out/progress.csv", newline="") as file:
            return OURS / float(list(csv.DictReader(file))[-1]["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cleanrl", nargs=2, metavar=("PYTHON", "FILE"))
    parser.add_argument("--sb3", nargs=1, metavar="PYTHON")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; they take turns")
    chosen = parser.parse_args()
    one_thread = {"OMP_NUM_THREADS": "1"}
    theirs = {}
    if chosen.cleanrl:
        theirs["CleanRL"] = (peer("cleanrl", chosen.cleanrl, one_thread), CLEANRL)
    if chosen.sb3:
        theirs["Stable-Baselines3"] = (peer("sb3", chosen.sb3, one_thread), SB3)
    rates: dict[str, list[float]] = {}
    for turn in range(chosen.repeat):
        found = {"gpuzoo": ours(turn + 1)}
        for name, (run, setting) in theirs.items():
            found[name] = setting.steps / run(dataclasses.replace(setting, seed=turn + 1))["train"]
        for name, rate in found.items():
            rates.setdefault(name, []).append(rate)
        print(", ".join(f"{name} {rate:,.0f}" for name, rate in found.items()), file=sys.stderr, flush=True)
    here = machine("cpu")
    print(f"{here['cpu']}, {here['cores']} cores, commit {here['commit']}; medians")
    medians = {name: statistics.median(found) for name, found in rates.items()}
    print(f"gpuzoo: {medians['gpuzoo']:,.0f} steps/s")
    for name in theirs:
        print(f"{name}: {medians[name]:,.0f} steps/s; ours is {medians['gpuzoo'] / medians[name]:.0f} times as fast")


if __name__ == "__main__":
    main()
