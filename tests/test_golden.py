"""Golden rollouts: a game's behaviour at the time its version was published.

``tests/golden/<id>.json`` is written once, by ``pytest tests/test_golden.py --write-golden`` (which never changes a
file that exists), and never edited: changed behaviour is a new ``-vN``. The hash is over the bits of all outputs and
fields, so it holds on every machine.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuzoo import Simulator
from gpuzoo.testing.tools import read

FOLDER = Path(__file__).parent / "golden"
STEPS = (0, 1, 2, 10, 100, 600)


def rollout(game: Any, debug: bool = False) -> dict[str, Any]:
    sim = Simulator(game, 4, device="cpu", autoreset_mode="same_step", debug=debug)
    sim.reset(seed=2025)
    done, out = 0, {}
    for steps in STEPS:
        sim.rollout(steps - done)
        done = steps
        digest = hashlib.sha256()
        values = read(sim)
        for name in sorted(values):
            digest.update(f"{name} {values[name].dtype} {values[name].shape}".encode())
            digest.update(np.ascontiguousarray(values[name]).tobytes())
        first = {
            name: [float(x) for x in np.ravel(sim.arrays[name][0])[:8]]
            for name in ("observation", "reward", "elapsed_steps")
        }
        out[str(steps)] = {"sha256": digest.hexdigest(), **first}
    return {"id": game.id, "seed": 2025, "num_envs": 4, "autoreset_mode": "same_step", "steps": out}


def test_golden_rollout(registered_game, request):
    path = FOLDER / f"{registered_game.id}.json"
    if not path.exists():
        if not request.config.getoption("--write-golden"):
            pytest.fail(f"{path.name} is not written yet: pytest tests/test_golden.py --write-golden")
        FOLDER.mkdir(exist_ok=True)
        path.write_text(json.dumps(rollout(registered_game), indent=1) + "\n")
    want, got = json.loads(path.read_text()), rollout(registered_game)
    for steps, values in want["steps"].items():
        assert got["steps"][steps] == values, (
            f"{registered_game.id} after {steps} steps is not what it was: give the changed game a new version"
        )
    assert got == want


def test_golden_rollout_with_every_index_checked(registered_game):
    """No index of its rules is out of range, and the checks change nothing."""
    want = json.loads((FOLDER / f"{registered_game.id}.json").read_text())
    assert rollout(registered_game, debug=True) == want
