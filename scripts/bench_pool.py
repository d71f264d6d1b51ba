"""CartPole in EnvPool's interface: `gpuzoo.make_pool` and EnvPool in one run, on one machine, taking turns.

    python scripts/bench_pool.py --envpool PYTHON [--threads 2] [--seconds 0.5] [--rounds 9] [--policy 0]

PYTHON is the interpreter of an environment that has EnvPool, which need not have gpuzoo: this file runs itself there.
Both run the same loop: in synchronous mode `step`, in asynchronous mode `recv` and `send` to the envs received, with
actions that were drawn before and NumPy arrays in and out. Both have as many native threads. `--policy` keeps the
caller busy for so many microseconds between `recv` and `send`, as a policy would. The rates are that of the best burst
of some milliseconds, which tells most where other programs run on the same cores, and the median over the rounds of the
mean of a round.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

CASES = ((64, 64), (64, 32), (4096, 4096), (4096, 2048))
DRAWN = 64
BURST, FEWEST = 3e-3, 16  # seconds and calls of a burst: a shorter one would find work done before it


def busy(microseconds: float) -> None:
    end = time.perf_counter() + microseconds * 1e-6
    while time.perf_counter() < end:
        pass


class Contestant:
    """A pool and its loop, in the library of this process."""

    def __init__(self, library: str, num_envs: int, batch_size: int, threads: int, policy: float) -> None:
        module: Any = importlib.import_module(library)
        if library == "gpuzoo":
            self.env = module.make_pool("CartPole-v1", num_envs, batch_size, threads, device="cpu", seed=0)
        else:
            self.env = module.make_gymnasium(
                "CartPole-v1", num_envs=num_envs, batch_size=batch_size, num_threads=threads, seed=0
            )
        drawn = np.random.default_rng(0).integers(0, 2, (DRAWN, batch_size))
        self.actions, self.policy, self.batch_size = list(drawn.astype(np.int32)), policy, batch_size
        self.synchronous = batch_size == num_envs
        self.env.reset() if self.synchronous else self.env.async_reset()

    def loop(self, count: int) -> None:
        env, actions, policy = self.env, self.actions, self.policy
        for k in range(count):
            if self.synchronous:
                env.step(actions[k % DRAWN])
                if policy:
                    busy(policy)
            else:
                envs = env.recv()[4]["env_id"]
                if policy:
                    busy(policy)
                env.send(actions[k % DRAWN], envs)

    def rates(self, seconds: float) -> tuple[float, float]:
        """Env steps per second: of the best burst, and on average."""
        count, done, best, begin = FEWEST, 0, 0.0, time.perf_counter()
        while (start := time.perf_counter()) < begin + seconds:
            self.loop(count)
            spent = time.perf_counter() - start
            done += count
            if spent < BURST:
                count *= 2
            else:
                best = max(best, count * self.batch_size / spent)
        return best, done * self.batch_size / (time.perf_counter() - begin)


def serve() -> None:
    """Measures what standard input asks for: a case, then seconds line by line."""
    import warnings

    warnings.simplefilter("ignore")
    contestant = Contestant(*json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        print(json.dumps(contestant.rates(float(line))), flush=True)


class Other:
    """A `Contestant` in another process, which sleeps while it is not asked."""

    def __init__(self, python: str, *case: Any) -> None:
        self.process = subprocess.Popen(
            [python, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask(json.dumps(case))

    def ask(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def rates(self, seconds: float) -> tuple[float, float]:
        self.ask(str(seconds))
        assert self.process.stdout is not None
        best, mean = json.loads(self.process.stdout.readline())
        return best, mean

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(python: str | None, case: tuple[int, int], options: argparse.Namespace) -> dict[str, Any]:
    rest = (*case, options.threads, options.policy)
    contestants = {"gpuzoo": Other(sys.executable, "gpuzoo", *rest)}
    if python:
        contestants["envpool"] = Other(python, "envpool", *rest)
    for contestant in contestants.values():
        contestant.rates(0.2)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, contestant in contestants.items():
            found[name].append(contestant.rates(options.seconds))
    for contestant in contestants.values():
        contestant.close()
    out: dict[str, Any] = {"envs": case[0], "batch": case[1]}
    for name, rates in found.items():
        out[name] = {"best": max(best for best, _ in rates), "mean": statistics.median(mean for _, mean in rates)}
    if python:
        out |= {f"ratio_{kind}": out["gpuzoo"][kind] / out["envpool"][kind] for kind in ("best", "mean")}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envpool", metavar="PYTHON")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--policy", type=float, default=0.0, help="microseconds between recv and send")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    for case in CASES:
        found = measure(options.envpool, case, options)
        mode = "sync" if case[0] == case[1] else "async"
        text = f"{case[0]:5d} envs, batch {case[1]:4d}, {mode:5s}: "
        for name in ("gpuzoo", "envpool"):
            if name in found:
                text += "{} {:.3f} M/s (mean {:.3f}); ".format(name, *(x / 1e6 for x in found[name].values()))
        if options.envpool:
            text += f"ratio {found['ratio_best']:.1f} of the best, {found['ratio_mean']:.1f} of the mean"
        print(text, flush=True)


if __name__ == "__main__":
    main()
