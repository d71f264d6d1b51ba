"""Which of the costly tests run: those of what changed lately, and by turns a share of all others.

A test marked ``rotates`` costs much and seldom finds anything. It runs if its game, or a module that its file names,
changed lately, and in one of `TURNS` turns otherwise. Tests about a kind of games have every fourth turn. The commit
chooses the turn, so a commit always runs the same tests. ``--turn 3`` or the variable ``TEST_TURN=3`` chooses another
one, ``all`` runs everything.

"Lately" is bounded, so that a change of many games costs no more than one of a few: the working tree and the last
`COMMITS` commits count, small commits first, until there are `MODULES` modules of games. A commit of more than `SWEEP`
files (a rename, a new engine) says nothing about anything else. Of what runs only because of a change, not more than
`LONG` tests take long, and not more than `CASES` of a function's cases are about no game; the turn chooses which.

As a script it prints the environments of ``tests/integrations`` whose turn it is. It needs no package but Python's own.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
TURNS = 96
#: tests about a kind of games come more often; it divides TURNS
KIND_TURNS = 4
#: an environment of its own may find what none of the others does, so these come more often
INTEGRATION_TURNS = 6
COMMITS = 12
MODULES = 2
LONG = 2
CASES = 1
SWEEP = 50


@dataclasses.dataclass(frozen=True)
class Rotation:
    """What is run this time.

    Attributes:
        turn: 0 to TURNS - 1, or None for everything.
        files: what changed lately, as paths in the repository.
        names: what tests call it: dotted modules, and ids of games.
        left_out: modules of games that changed, too, and are too many.
    """

    turn: int | None
    files: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()

    def comes(self, name: str) -> bool:
        """Whether it is the turn of a test."""
        return self.turn is None or _hash(name) % TURNS == self.turn

    def comes_for_kind(self, name: str) -> bool:
        """Whether it is the turn of a test about a kind of games."""
        return self.turn is None or _hash(name) % KIND_TURNS == self.turn % KIND_TURNS

    def order(self, name: str) -> int:
        """Where a test stands in the order that this turn has for them."""
        return _hash(f"{self.turn} {name}")

    def changed(self, *paths: Path) -> bool:
        """Whether one of some files changed lately, or names a module or a game that did."""
        if any(path.relative_to(ROOT).as_posix() in self.files for path in paths):
            return True
        return any(_mentions(path, self.names) for path in paths)

    def __str__(self) -> str:
        if self.turn is None:
            return "costly tests: all"
        lately = ", ".join(sorted(name for name in self.names if not re.search(r"-v\d", name))) or "nothing"
        lines = [f"costly tests: turn {self.turn} of {TURNS} (--turn {self.turn}); changed lately: {lately}"]
        if self.left_out:
            lines += [f"  too many changed; by turns only: {', '.join(sorted(self.left_out))} (--turn all: everything)"]
        return "\n".join(lines)


def _hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


@functools.cache
def _mentions(path: Path, names: frozenset[str]) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")  # tests are given networks, too
    for package, members in re.findall(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)", text, re.MULTILINE):
        text += "".join(f"\n{package}.{member}" for member in re.findall(r"\w+", members.partition("#")[0]))
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) for name in names)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(done.stderr)
    return done.stdout


def _history() -> tuple[str, list[list[str]]]:
    """The commit's hash, and the files of the working tree's changes and of each of the last commits."""
    commit, top = _git("rev-parse", "HEAD", "--show-toplevel").split("\n")[:2]
    if not ROOT.samefile(top):
        raise OSError(f"{ROOT} is a copy within another repository")
    tree = [line[3:].split(" -> ")[-1] for line in _git("status", "--porcelain", "-uall").splitlines()]
    commits = _git("log", f"-{COMMITS}", "--no-merges", "--format=%x00", "--name-only").split("\0")[1:]
    return commit, [tree, *(commit.split() for commit in commits)]


def _modules(path: str) -> list[Path]:
    """The modules that a file belongs to, if tests name them: its own, or all of a folder of games that share it.

    What everything is made of, the engine, is none: it is left to the tests of all games.
    """
    file = ROOT / path
    if path.startswith(("baselines/", "gpuzoo/wrappers/", "tests/toys/")):
        return [file.with_suffix(".py")]
    if not path.startswith("gpuzoo/envs/"):
        return []
    games = sorted(rules.with_suffix(".py") for rules in file.parent.glob("*.cuh") if rules.with_suffix(".py").exists())
    own = file.with_suffix(".py")
    return [own] if own in games else games


def _dotted(module: Path) -> str:
    return ".".join(part for part in module.relative_to(ROOT).with_suffix("").parts if part != "tests")


def _names(module: Path) -> set[str]:
    """What tests call a module: its dotted name, and the ids of the games that it declares."""
    game = module.is_relative_to(ROOT / "gpuzoo/envs")
    return {_dotted(module), *(re.findall(r'"(\w[\w-]*-v\d+)"', module.read_text()) if game else [])}


def lately(changes: list[list[str]]) -> tuple[set[str], list[Path], list[Path]]:
    """What changed lately, from the files of each change, newest first.

    Returns:
        The files, their modules, and the modules of games that are too many.
    """
    files: set[str] = set()
    games: dict[Path, None] = {}
    others: dict[Path, None] = {}
    for change in sorted(changes, key=len):
        found = dict.fromkeys(module for path in change for module in _modules(path) if module.exists())
        games |= {module: None for module in found if "envs" in module.parts}
        if len(change) <= SWEEP:
            files.update(change)
            others |= found
    modules = list(games)
    return files, [*modules[:MODULES], *(others.keys() - games.keys())], modules[MODULES:]


def rotation(turn: str | None = None) -> Rotation:
    """What is run.

    Args:
        turn: "all" or a number; by default the variable TEST_TURN or, without it, the commit says.

    Raises:
        ValueError: no such turn.
    """
    turn = turn or os.environ.get("TEST_TURN")
    if turn == "all":
        return Rotation(None)
    if turn is not None and not (turn.isdecimal() and int(turn) < TURNS):
        raise ValueError(f"a turn is 'all' or a number from 0 to {TURNS - 1}, not {turn!r}")
    try:
        commit, changes = _history()
    except OSError:  # no git, or no repository: a released source package
        commit, changes = "0", []
    files, modules, rest = lately(changes)
    return Rotation(
        turn=int(commit, 16) % TURNS if turn is None else int(turn),
        files=frozenset(files),
        names=frozenset(name for module in modules for name in _names(module)),
        left_out=frozenset(_dotted(module) for module in rest),
    )


def environments(chosen: Rotation) -> list[str]:
    """The environments of tests/integrations that changed lately or whose turn it is."""
    folders = sorted(path.parent for path in (ROOT / "tests/integrations").glob("*/requirements.txt"))
    return [
        folder.name
        for k, folder in enumerate(folders)
        if chosen.turn is None
        or k % INTEGRATION_TURNS == chosen.turn % INTEGRATION_TURNS
        or chosen.changed(*(path for path in folder.iterdir() if path.is_file()))
        or f"gpuzoo.wrappers.{folder.name}" in chosen.names
    ]


if __name__ == "__main__":
    print(*environments(rotation()), sep="\n")
