"""CartPole by ``baselines/simple/ppo.py`` and by CleanRL's ``ppo.py``, each with its own settings: steps/s.

    python scripts/bench_simple.py --cleanrl PYTHON ppo.py [--repeat 3] [--threads 1] [--json FILE]

PYTHON is an interpreter in which CleanRL's packages are installed, and its file runs as it is (see training_peers.py).
The two take turns, each in a process of its own; both rates are env steps by seconds of training, without importing and
compiling. Settings are not equal: this compares what a person gets who starts either file without an option.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from pathlib import Path

from bench_training import ROOT, machine, peer, timed
from training_peers import Setting

OURS = """
import json, math, sys
sys.path.insert(0, {root!r})
from baselines.simple.ppo import Args, train
rows = []
result = train(Args(seed={seed}, device="cpu", threads={threads}), rows.append)
solved = next((row for row in rows if row.get("return", -math.inf) > 475), {{}})
print(json.dumps({{"speed": result["speed"], "return": result["return"], "solved": solved.get("seconds")}}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cleanrl", nargs=2, metavar=("PYTHON", "FILE"), required=True)
    parser.add_argument("--steps", type=int, default=100_000, help="of CleanRL, whose speed does not change on the way")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; they take turns")
    parser.add_argument("--threads", type=int, default=1, help="of ours and of torch in CleanRL")
    parser.add_argument("--json", help="file for all that was measured")
    chosen = parser.parse_args()
    theirs_run = peer("cleanrl", chosen.cleanrl, {"OMP_NUM_THREADS": str(chosen.threads)})
    rows = []
    for turn in range(chosen.repeat):
        program = OURS.format(root=str(ROOT), seed=turn + 1, threads=chosen.threads)
        ours = json.loads(timed([sys.executable, "-c", program], {})[0].splitlines()[-1])
        setting = dataclasses.replace(Setting("CartPole, 4 envs"), total_steps=chosen.steps, seed=turn + 1)
        theirs = setting.steps / theirs_run(setting)["train"]
        rows.append({"ours": ours, "cleanrl": theirs, "ratio": ours["speed"] / theirs})
        print(
            f"simple/ppo.py {ours['speed']:,.0f} steps/s, return {ours['return']:.1f}, 475 after {ours['solved']} s; "
            f"CleanRL {theirs:,.0f} steps/s; ratio {rows[-1]['ratio']:.1f}",
            flush=True,
        )
    ratios = [row["ratio"] for row in rows]
    print(f"median ratio {statistics.median(ratios):.1f}, smallest {min(ratios):.1f}")
    if chosen.json:
        Path(chosen.json).write_text(json.dumps({"machine": machine("cpu"), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
