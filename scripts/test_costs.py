"""What the tests cost, from a report of ``pytest --junitxml``: CPU seconds per file, test and game.

    make test-all PYTEST="--junitxml=out/tests.xml"
    python scripts/test_costs.py out/tests.xml

tests/conftest.py writes down for each test how many CPU seconds it took, subprocesses included, and how often it runs:
always, by turns, or for one game of each kind. A further game costs what the tests that take each game cost, those by
turns divided by the number of turns. Not in it: a test that compares the game with its reference, which runs by turns.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import statistics
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from rotation import KIND_TURNS, TURNS  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Test:
    file: str
    function: str
    seconds: float
    runs: str  # how_often() of tests/conftest.py
    game: str
    agents: str  # one, several
    complete: bool  # whether all tests by turns ran beside it
    cases: int  # of the function

    @property
    def share(self) -> float:
        """Of its seconds, what a run costs where nothing changed lately."""
        kind = dict.fromkeys(("first of a kind", "one_of_a_kind"), KIND_TURNS)
        turns = {"rotates": TURNS, "by_kind": TURNS, "one_case": self.cases, **kind}
        return self.seconds / turns.get(self.runs, 1)

    @property
    def further(self) -> float:
        """Of its seconds, what a further game costs that is none of a new kind."""
        if self.runs in ("one_of_a_kind", "one_case"):
            return 0
        return self.seconds / (1 if self.runs == "always" else TURNS)


def tests(path: Path) -> list[Test]:
    out = []
    found = list(ET.parse(path).getroot().iter("testcase"))
    functions = [(case.get("classname", ""), case.get("name", "").partition("[")[0]) for case in found]
    cases = collections.Counter(functions)
    for case, function in zip(found, functions, strict=True):
        values = {p.get("name"): p.get("value") or "" for p in case.iter("property")}
        if "cpu" not in values:
            continue  # skipped before it was set up
        out.append(
            Test(
                file=function[0].rpartition(".")[2],
                function=function[1],
                seconds=float(values["cpu"]),
                runs=values["runs"],
                game=values.get("game", ""),
                agents=values.get("agents", ""),
                complete=values["complete"] == "True",
                cases=cases[function],
            )
        )
    return out


def table(title: str, rows: list[tuple[float, str]], most: int = 1000) -> None:
    print(f"\n{title}")
    for seconds, name in sorted(rows, reverse=True)[:most]:
        print(f"{seconds:9.1f}  {name}")


def sums(chosen: list[Test], key: str) -> dict[str, float]:
    out: dict[str, float] = collections.Counter()
    for test in chosen:
        out[getattr(test, key) if key != "test" else f"{test.file}::{test.function}  ({test.runs})"] += test.seconds
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="a file of pytest --junitxml")
    parser.add_argument("--most", type=int, default=40, help="rows of a table")
    options = parser.parse_args()
    all_tests = tests(options.report)
    if not all_tests:
        sys.exit(f"{options.report} has no test with its CPU seconds: was it written by this repository's tests?")

    for key in ("file", "test"):
        table(f"CPU seconds per {key}", [(v, k) for k, v in sums(all_tests, key).items()], options.most)

    if not all(test.complete for test in all_tests):
        print(f"\n{sum(test.seconds for test in all_tests):9.1f}  CPU seconds together")
        print("The report is of one turn. What a further game adds is known from one of all turns: make test-all.")
        return

    print("\nCPU seconds, and of them those of a run where nothing changed lately")
    for runs in ("always", "first of a kind", "one_of_a_kind", "one_case", "by_kind", "rotates"):
        chosen = [test for test in all_tests if test.runs == runs]
        print(f"{sum(t.seconds for t in chosen):9.1f} {sum(t.share for t in chosen):9.1f}  {runs}: {len(chosen)} tests")
    print(f"{sum(t.seconds for t in all_tests):9.1f} {sum(t.share for t in all_tests):9.1f}  together")

    print("\nCPU seconds that a further game adds (if it is of no new kind)")
    for agents in ("one", "several"):
        per_game: dict[str, float] = collections.Counter()
        for test in all_tests:
            if test.agents == agents:
                per_game[test.game] += test.further
        if per_game:
            most = max(per_game, key=per_game.__getitem__)
            middle, mean = statistics.median(per_game.values()), statistics.fmean(per_game.values())
            print(f"  of {agents}: median {middle:.1f}, mean {mean:.1f}, most {per_game[most]:.1f} ({most})")
            table(f"games of {agents}", [(v, k) for k, v in per_game.items()], options.most)


if __name__ == "__main__":
    main()
