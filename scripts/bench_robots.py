"""Robots beside EnvPool's, in one run, on one machine, taking turns: env steps per second with two threads each.

    scripts/test_integrations.sh envpool                      # makes the environment
    .venvs/envpool/bin/python scripts/bench_robots.py [ID ...] [--threads 2] [--seconds 0.5] [--rounds 5] [--cpu]

Both step under actions that were drawn before, NumPy arrays in and out, observations and autoreset included. Ours is
stepped through `Simulator.step` and through `gymnasium.make_vec`, EnvPool's through `step` and asynchronously through
`recv` and `send`, where it works ahead. Each rate is the median of the rounds; the last two columns are of the better
one of EnvPool's. An asynchronous pool is emptied before its turn ends, so that it does not work in that of another.
``--cpu`` counts the CPU seconds of all threads instead of the clock's, for a machine that other work shares.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import envpool
import numpy as np

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.envs.mujoco.robot import Robot

DRAWN = 16
Burst = Callable[[], int]


def drawn(space: Any, num_envs: int) -> list[np.ndarray]:
    size = (DRAWN, num_envs, *space.shape)
    return list(np.random.default_rng(0).uniform(space.low, space.high, size).astype(np.float32))


def simulator(game: str, num_envs: int, threads: int) -> Burst:
    """A burst steps all envs some times; it returns how many steps that were."""
    sim = Simulator(gpuzoo.get(game), num_envs, device="cpu", threads=threads)
    sim.reset(seed=0)
    actions = drawn(sim.layout.action_spaces["agent"], num_envs)
    target = sim.arrays["action"]

    def burst() -> int:
        for action in actions:
            target[...] = action.reshape(target.shape)
            sim.step()
        return DRAWN * num_envs

    return burst


def vector(game: str, num_envs: int, threads: int) -> Burst:
    envs = gpuzoo.make_vec(game, num_envs, device="cpu", threads=threads)
    envs.reset(seed=0)
    actions = drawn(envs.single_action_space, num_envs)

    def burst() -> int:
        for action in actions:
            envs.step(action)
        return DRAWN * num_envs

    return burst


def synchronous(game: str, num_envs: int, threads: int) -> Burst:
    envs = envpool.make_gymnasium(game, num_envs=num_envs, num_threads=threads, seed=0)
    envs.reset()
    actions = drawn(envs.action_space, num_envs)

    def burst() -> int:
        for action in actions:
            envs.step(action)
        return DRAWN * num_envs

    return burst


def asynchronous(game: str, num_envs: int, threads: int) -> Burst:
    batch = num_envs // 2
    envs = envpool.make_gymnasium(game, num_envs=num_envs, batch_size=batch, num_threads=threads, seed=0)
    actions = drawn(envs.action_space, batch)
    envs.async_reset()
    ready = [envs.recv()[4]["env_id"] for _ in range(2)]

    def burst() -> int:
        nonlocal ready
        for ids, action in zip(ready, actions, strict=False):
            envs.send(action, ids)
        for action in actions:
            envs.send(action, envs.recv()[4]["env_id"])
        ready = [envs.recv()[4]["env_id"] for _ in range(2)]
        return (DRAWN + 2) * batch

    return burst


def rate(burst: Burst, seconds: float, clock: Callable[[], float]) -> float:
    done, begin = 0, clock()
    while (spent := clock() - begin) < seconds:
        done += burst()
    return done / spent


def main() -> None:
    robots = [game for game in gpuzoo.ids() if isinstance(gpuzoo.get(game), Robot) and game in envpool.list_all_envs()]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], allow_abbrev=False)
    parser.add_argument("games", nargs="*", metavar="ID", default=robots)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-envs", type=int, default=4096, help="ours")
    parser.add_argument("--pool-envs", type=int, default=64, help="EnvPool's")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="per CPU second of all threads")
    args = parser.parse_args()
    clock = time.process_time if args.cpu else time.perf_counter
    print("| | EnvPool `step` | `recv`, `send` | `Simulator.step` | `make_vec` | to EnvPool | `make_vec` to it |")
    print("|---|---|---|---|---|---|---|")
    for game in args.games:
        bursts = [make(game, args.pool_envs, args.threads) for make in (synchronous, asynchronous)]
        bursts += [make(game, args.num_envs, args.threads) for make in (simulator, vector)]
        for burst in bursts:
            burst()
        rounds = [[rate(burst, args.seconds, clock) for burst in bursts] for _ in range(args.rounds)]
        rates = [statistics.median(found) for found in zip(*rounds, strict=True)]
        theirs = max(rates[:2])
        numbers = [f"{float(f'{x:.3g}'):,.0f}" for x in rates]
        print(f"| {game} | {' | '.join(numbers)} | {rates[2] / theirs:.0f} | {rates[3] / theirs:.0f} |", flush=True)


if __name__ == "__main__":
    main()
