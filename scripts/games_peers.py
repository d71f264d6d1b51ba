"""Games of gpuzoo and of other libraries, stepped with random actions: ``bench_games.py`` runs this elsewhere.

    PYTHON scripts/games_peers.py LIBRARY < COMMANDS

PYTHON is an interpreter with that library, which is a module of ``peers``. The first line is a game:
`{"id": ..., "config": {...}, "threads": 2}`. The answer says which cases there are and how many of these processes it
takes to fill the cores. Each further line is `[case, seconds]`, the answer env steps per second. Unasked, it sleeps.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import peers

SHORTEST = 0.05  # seconds of a measurement
PATIENCE = 3.0  # seconds


def rate(work: peers.Work, seconds: float, clock: Callable[[], float]) -> float:
    done, start = 0, clock()
    while clock() < start + max(seconds, SHORTEST):
        made = work()
        steps, left_out = made if isinstance(made, tuple) else (made, 0.0)
        done, start = done + steps, start + left_out
    return done / (clock() - start)


def rest() -> None:
    """Waits until this process has nothing to do: EnvPool's threads still work on the actions that were sent last."""
    pause, end = 0.02, time.perf_counter() + PATIENCE
    busy = True
    while busy and time.perf_counter() < end:
        before = time.process_time()
        time.sleep(pause)
        busy = time.process_time() - before > pause / 10


def main() -> None:
    import warnings

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print
    library, game = peers.module(sys.argv[1]), json.loads(sys.stdin.readline())
    cases, start = library.peer(game)
    print(json.dumps([cases, game["threads"] if library.ABOUT.one_core else 1]), file=answers, flush=True)
    started: dict[str, peers.Work] = {}
    for line in sys.stdin:
        case, seconds = json.loads(line)
        name = json.dumps(case)
        if name not in started:
            started[name] = start(case)
            started[name]()
        reached = rate(started[name], seconds, peers.CLOCKS[game["clock"]])
        rest()
        print(reached, file=answers, flush=True)


if __name__ == "__main__":
    main()
