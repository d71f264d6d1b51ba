"""Writes the golden rollouts of games that have none: part of a release. A file that exists is never changed.

    python scripts/make_golden.py            # of all games
    python scripts/make_golden.py Mine-v0    # of those that are named

``tests/golden/<ID>.json`` holds what a game does under random actions, as hashes over the bits of all outputs and
fields, which are the same on every machine. `tests/test_golden.py` compares. Changed behaviour is a new ``-vN``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpuzoo import Simulator, registry
from gpuzoo.testing.tools import read

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden"
STEPS = (0, 1, 2, 10, 100, 600)


def rollout(game: Any, device: str = "cpu") -> dict[str, Any]:
    """What a golden file says about a game."""
    sim = Simulator(game, 4, device=device, autoreset_mode="same_step")
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
            name: [float(x) for x in np.ravel(sim.backend.to_numpy(sim.arrays[name])[0])[:8]]
            for name in ("observation", "reward", "elapsed_steps")
        }
        out[str(steps)] = {"sha256": digest.hexdigest(), **first}
    sim.close()
    return {"id": game.id, "seed": 2025, "num_envs": 4, "autoreset_mode": "same_step", "steps": out}


def make(names: Sequence[str], folder: Path = FOLDER) -> list[Path]:
    """Writes the files that do not exist yet.

    Raises:
        ValueError: no such game.
    """
    games = [type(registry.get(name)) for name in names]
    missing = {folder / f"{game.id}.json": game for game in games if not (folder / f"{game.id}.json").exists()}
    for path, game in missing.items():
        path.write_text(json.dumps(rollout(game), indent=1) + "\n")
    return list(missing)


def main() -> None:
    """Writes the golden rollouts of the games that are named, or of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], allow_abbrev=False)
    parser.add_argument("games", nargs="*", metavar="ID", help="games (default: all that are registered)")
    try:
        written = make(parser.parse_args().games or registry.ids())
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(f"wrote {path.relative_to(ROOT)}" for path in written) or "every game has its golden rollout")


if __name__ == "__main__":
    main()
