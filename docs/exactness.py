"""How a game's exactness was shown, read from the tests that compare it with its reference."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from pathlib import Path

from gpuzoo.core.definition import EnvDef

ROOT = Path(__file__).parents[1]
FILES = ("tests/test_reference_*.py", "tests/integrations/*/test_*.py")
COUNTS = re.compile(r"(STATES|EPISODES|STEPS|GAMES|COUNT|ENVS|SEEDS|EPS|TOLERANCE|ATOL|RTOL|WORST|LIMIT|BOUND)")


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What a test file says.

    Attributes:
        file: its path in the repository.
        about: the paragraphs of its docstring.
        numbers: its counts and tolerances, as they stand there.
        tests: name -> the first sentence of its docstring.
    """

    file: str
    about: tuple[str, ...]
    numbers: dict[str, str]
    tests: dict[str, str]


@functools.cache
def _read(path: Path) -> tuple[frozenset[str], Evidence]:
    """The words of a test file, and what it says."""
    text = path.read_text()
    tree = ast.parse(text)
    numbers, tests = {}, {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and COUNTS.search(node.targets[0].id):
            source = ast.get_source_segment(text, node.value) or ""
            if re.fullmatch(r"[\d_.eE+\-*/() ]+|np\.float32\([\d.e\-*]+\)", source):
                numbers[node.targets[0].id] = source
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            tests[node.name] = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
    about = (ast.get_docstring(tree) or "").split("\n\n")
    paragraphs = tuple(" ".join(part.split()) for part in about if not part.startswith((" ", "-", "*", "|")))
    words = frozenset(re.findall(r"[\w-]+", text))
    return words, Evidence(path.relative_to(ROOT).as_posix(), paragraphs, numbers, tests)


def evidence(env: EnvDef) -> list[Evidence]:
    """The test files that compare a game with its reference: those that name it, or else those that name its family."""
    source = type(env).source()
    classes = (cls.__name__ for cls in type(env).__mro__ if cls.__module__.startswith("gpuzoo.envs"))
    own = {env.id, source.stem, *classes}
    family = {source.parent.name}
    for wanted in (own, family):
        found = []
        for path in sorted(p for pattern in FILES for p in ROOT.glob(pattern)):
            words, one = _read(path)
            compares = path.name.startswith("test_reference") or _compares(path, env)
            if words & wanted and one.tests and compares:
                found.append(one)
        if found:
            return found
    return []


def _compares(path: Path, env: EnvDef) -> bool:
    """Whether an integration's tests are about the library that the game's reference names."""
    library = path.parent.name
    return library in re.sub(r"[-_]", "", env.reference.lower())
