"""Milliseconds of CPU for one frame, beside those of the original game's own picture.

    python scripts/bench_render.py [--json FILE] [GAME ...]

Each side steps random actions between frames; the steps' own time is taken off. The originals are those of Gymnasium,
PettingZoo and mpe2, each in the size that it draws by default.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import gymnasium

import gpuzoo
from gpuzoo.interfaces.batch import draw

GYMNASIUM = (
    "Acrobot-v1 Blackjack-v1 CartPole-v1 CliffWalking-v1 FrozenLake-v1 MountainCar-v0 MountainCarContinuous-v0 "
    "Pendulum-v1 Taxi-v4"
).split()
PETTINGZOO = {
    "ConnectFour-v0": "pettingzoo.classic.connect_four_v3",
    "Pursuit-v0": "pettingzoo.sisl.pursuit_v5",
    "SimpleSpread-v0": "mpe2.simple_spread_v3",
    "SimpleTag-v0": "mpe2.simple_tag_v3",
}


def cost(call: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of CPU of one call, the best of three runs."""
    call()
    runs = []
    for _ in range(3):
        begin = time.process_time()
        for _ in range(repeats):
            call()
        runs.append((time.process_time() - begin) / repeats * 1e3)
    return min(runs)


def ours(env_id: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A step, and a frame."""
    simulator = gpuzoo.Simulator(gpuzoo.get(env_id), 1, device="cpu", threads=1)
    simulator.reset(seed=0)

    def step() -> None:
        simulator.random_actions()
        simulator.step()

    return step, lambda: draw(simulator, 0)


def theirs(env_id: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The same of the original."""
    if env_id in GYMNASIUM:
        env: Any = gymnasium.make(env_id, render_mode="rgb_array")
        env.reset(seed=0)

        def step() -> None:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()

        return step, env.render
    aec = importlib.import_module(PETTINGZOO[env_id]).env(render_mode="rgb_array")
    aec.reset(seed=0)

    def turn() -> None:
        observation, _, terminated, truncated, info = aec.last()
        if terminated or truncated:
            aec.reset()
            return
        mask = observation.get("action_mask") if isinstance(observation, dict) else info.get("action_mask")
        aec.step(aec.action_space(aec.agent_selection).sample(mask))

    return turn, aec.render


def frame_time(step: Callable[[], Any], frame: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of a frame after a step, without the step."""
    return cost(lambda: (step(), frame()), repeats) - cost(step, repeats)


def main() -> None:
    """Prints a line for each game that has an original with pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--json", help="file to write")
    parser.add_argument("games", nargs="*", default=[*GYMNASIUM, *PETTINGZOO], metavar="GAME")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = {}
    print(f"{'game':26}{'gpuzoo ms':>10}{'original ms':>12}{'ratio':>7}")
    for env_id in options.games:
        mine, original = (frame_time(*sides(env_id), options.repeats) for sides in (ours, theirs))
        rows[env_id] = {"gpuzoo": mine, "original": original}
        print(f"{env_id:26}{mine:10.2f}{original:12.2f}{mine / original:7.2f}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
