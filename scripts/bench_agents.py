"""What a step costs by the number of agents: MAgent's battle on maps of seven sizes, beside MAgent2's engine in C++.

    python scripts/bench_agents.py --originals PYTHON [--seconds 0.3] [--rounds 5] [--clock wall] [--json FILE]

PYTHON is an interpreter with magent2, which need not have gpuzoo. The two take turns as in ``bench_games.py``, with the
random actions and a new battle when one is over. Each has one core, and counts its CPU seconds unless ``--clock wall``
says otherwise. An agent's step is an env step divided by the number of agents that begin the battle.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench_games import Pair, Timing, compare, number

import gpuzoo
from gpuzoo.core.backend import make_backend
from gpuzoo.core.layout import layout
from gpuzoo.tools import provenance

GAME = "MAgentBattle-v0"
SIDES = (16, 20, 28, 45, 64, 80, 111)


def agents_on(side: int) -> int:
    """How many fight on a map."""
    env = gpuzoo.get(GAME)
    return layout(env, env.Config(map_size=side)).agents


def measure(side: int, python: str, timing: Timing) -> dict[str, Any]:
    """A row of the table.

    Raises:
        RuntimeError: one of the two did not run.
    """
    pair = Pair(GAME, {"map_size": side}, {"magent2": ["battle_v4", {"map_size": side}]})
    rows = compare(pair, {"magent2": python}, timing)
    if not rows:
        raise RuntimeError(f"nothing was measured on a map of {side} x {side} cells; see the messages above.")
    return {"side": side, "agents": agents_on(side), **rows[0]}


def line(row: dict[str, Any]) -> str:
    ours, theirs = (1e9 / (row[name] * row["agents"]) for name in ("ours", "theirs"))
    return (
        f"| {row['side']} x {row['side']} | {row['agents']} | {number(row['ours'])} | {row['our_case'][-1]} "
        f"| {ours:.0f} ns | {number(row['theirs'])} | {theirs:.0f} ns | {row['ours'] / row['theirs']:.3g} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--originals", metavar="PYTHON", required=True)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu")
    parser.add_argument("--json", metavar="FILE", help="for all that was measured")
    chosen = parser.parse_args()
    timing = Timing(1, chosen.seconds, chosen.rounds, chosen.clock)
    here = provenance.describe(make_backend("cpu", timing.threads))
    print(f"{here['cpu']}, {here['cores']} cores, commit {here['commit']}\n")
    print("| map | agents | gpuzoo, steps/s | envs | one agent | MAgent2, steps/s | one agent | ratio |")
    print("|:--|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    rows = []
    for side in SIDES:
        rows.append(measure(side, chosen.originals, timing))
        print(line(rows[-1]), flush=True)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps({"machine": here, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
