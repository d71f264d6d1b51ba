"""Robots beside MuJoCo's own, per CPU second of one core, in turns in one run: env steps under random actions.

    scripts/test_integrations.sh mujoco                       # makes the environment
    .venvs/mujoco/bin/python scripts/bench_rollouts.py [ID ...] [--seconds 1] [--rounds 5]
    CXX="c++ -mno-avx512f" .venvs/mujoco/bin/python scripts/bench_rollouts.py --ours   # ours with AVX2

Gymnasium's env and ours through `make_vec` are stepped one by one, with observations and resets. `Simulator.rollout`
has both, too; `mujoco.rollout` has neither, and begins from states that our envs are in. Seconds are those of the
process, and of the bursts only the best tenth counts, so that what else a machine does disturbs little.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.envs.mujoco.robot import Robot

STEPS = 16  # env steps of a burst
ENVS = 1024  # ours
STATES = 8  # of a burst of MuJoCo's
SETTLE = 64  # steps before the first burst
Burst = Callable[[], int]


def simulator(game: str) -> Simulator:
    sim = Simulator(gpuzoo.get(game), ENVS, device="cpu", threads=1)
    sim.reset(seed=0)
    sim.rollout(SETTLE)
    return sim


def ours(game: str) -> Burst:
    sim = simulator(game)

    def burst() -> int:
        sim.rollout(STEPS)
        return STEPS * ENVS

    return burst


def vector(game: str) -> Burst:
    envs = gpuzoo.make_vec(game, ENVS, device="cpu", threads=1)
    envs.reset(seed=0)
    actions = [envs.action_space.sample() for _ in range(STEPS)]

    def burst() -> int:
        for action in actions:
            envs.step(action)
        return STEPS * ENVS

    return burst


def gymnasiums(game: str) -> Burst:
    import gymnasium

    env = gymnasium.make(game)
    env.reset(seed=0)
    actions = itertools.cycle([env.action_space.sample() for _ in range(997)])

    def burst() -> int:
        for _ in range(STEPS):
            *_, terminated, truncated, _ = env.step(next(actions))
            if terminated or truncated:
                env.reset()
        return STEPS

    return burst


def mujocos(game: str) -> Burst:
    import gymnasium
    import mujoco
    from mujoco import rollout

    env: Any = gymnasium.make(game).unwrapped
    data, rng = mujoco.MjData(env.model), np.random.default_rng(0)
    state = simulator(game).state()
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS

    def states() -> Iterator[np.ndarray]:
        found = np.empty(mujoco.mj_stateSize(env.model, kind))
        for qpos, qvel in itertools.cycle(zip(state["qpos"], state["qvel"], strict=True)):
            data.qpos[:], data.qvel[:] = qpos, qvel
            mujoco.mj_getState(env.model, data, found, kind)
            yield found.copy()

    begin, (low, high) = states(), env.model.actuator_ctrlrange.T
    control = rng.uniform(low, high, (STATES, STEPS, env.model.nu)).repeat(env.frame_skip, 1)

    def burst() -> int:
        rollout.rollout(env.model, data, np.stack([next(begin) for _ in range(STATES)]), control)
        return STATES * STEPS

    return burst


def rates(burst: Burst, seconds: float) -> list[float]:
    found, end = [], time.process_time() + seconds
    while (begin := time.process_time()) < end:
        done = burst()
        found.append(done / (time.process_time() - begin))
    return found


def main() -> None:
    robots = [game for game in gpuzoo.ids() if isinstance(gpuzoo.get(game), Robot)]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], allow_abbrev=False)
    parser.add_argument("games", nargs="*", metavar="ID", default=robots)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ours", action="store_true", help="without MuJoCo's")
    args = parser.parse_args()
    made = {"`Simulator.rollout`": ours, "`make_vec`": vector}
    if not args.ours:
        made = {"Gymnasium": gymnasiums, "`mujoco.rollout`": mujocos} | made
    heads = [*made] if args.ours else [*made, "to `mujoco.rollout`"]
    print(f"| | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 1) + "|")
    for game in args.games:
        bursts = [make(game) for make in made.values()]
        found: list[list[float]] = [[] for _ in bursts]
        for _ in range(args.rounds):
            for rate, burst in zip(found, bursts, strict=True):
                rate += rates(burst, args.seconds)
        best = [float(np.quantile(rate, 0.9)) for rate in found]
        numbers = [f"{float(f'{x:.3g}'):,.0f}" for x in best]
        ratio = [] if args.ours else [f"{best[2] / best[1]:.0f}"]
        print(f"| {' | '.join([game, *numbers, *ratio])} |", flush=True)


if __name__ == "__main__":
    main()
