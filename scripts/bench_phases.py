"""Where the time of a training iteration goes: stepping the envs, acting, advantages, updating.

    python scripts/bench_phases.py CartPole-v1 --num-envs 2048 [options of baselines.ppo]

Each phase is timed by itself, many times, and the best time counts. Stepping the envs is what `Rollout.play` does
without its policies: the kernels, and moving what they write. Prints a row of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines import ppo, run
from baselines.executors import choose
from gpuzoo.core.backend_cpu import available_threads

import torch  # isort: skip


def best(function: Callable[[], Any], device: torch.device, seconds: float = 2.0) -> float:
    """Seconds of the fastest call."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    times, end = [], time.perf_counter() + seconds
    for _ in range(3):
        function()
    while time.perf_counter() < end or len(times) < 3:
        wait()
        start = time.perf_counter()
        function()
        wait()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    args = run.parse(ppo.Args, sys.argv[1:], __doc__ or "")
    torch.set_num_threads(args.threads or available_threads())
    trainer = ppo.PPO(args, choose(args.executor, args.device))
    rollout, device, capture = trainer.rollout, trainer.device, trainer.executor.capture

    def prepare() -> None:
        for learner in trainer.learners.values():
            trainer.prepare(learner)

    seconds = {"iteration": best(trainer.iterate, device), "play": best(trainer.play, device)}
    seconds["advantages"] = best(capture(prepare), device)
    players, rollout.players = rollout.players, {}
    seconds["env"] = best(trainer.play, device)
    rollout.players = players
    steps = args.num_envs * args.population * args.num_steps
    print(json.dumps({
        "game": trainer.simulator.env.id, "device": str(device), "num_envs": args.num_envs,
        "population": args.population, "num_steps": args.num_steps, "hidden": args.hidden,
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "steps_per_second": steps / seconds["iteration"],
        "share": {
            "env": seconds["env"] / seconds["iteration"],
            "acting": (seconds["play"] - seconds["env"]) / seconds["iteration"],
            "advantages": seconds["advantages"] / seconds["iteration"],
            "update": 1 - (seconds["play"] + seconds["advantages"]) / seconds["iteration"],
        },
    }))  # fmt: skip
    trainer.close()


if __name__ == "__main__":
    main()
