"""What every algorithm of baselines/simple has in common. The files are found in the folder: a new one is tested too.

Whether they learn is shown by tests/test_simple_<family>.py.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from training import ROOT

import gpuzoo

FOLDER = ROOT / "baselines/simple"
FILES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
MAY_IMPORT = {"gpuzoo", "torch", "gymnasium", "numpy", *sys.stdlib_module_names}
#: options that make a run short, where a file has them
TINY = {"num_envs": 8, "num_steps": 8, "minibatches": 2, "hidden": 16, "memory": 8, "buffer_size": 256,
        "batch_size": 16, "learning_starts": 64, "population": 8, "device": "cpu", "threads": 1}  # fmt: skip

pytestmark = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])


def module(path: Path) -> Any:
    return importlib.import_module(f"baselines.simple.{path.stem}")


def short(path: Path, **more: Any) -> Any:
    """Arguments of a run of a few hundred steps."""
    kind = module(path).Args
    names = {f.name for f in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in TINY.items() if name in names} | {"total_steps": 512} | more)


def test_one_file_is_one_algorithm(path):
    """At most 300 lines, with a docstring that says how to run it; nothing from beside, nothing private of gpuzoo."""
    text = path.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= 300
    assert f"python -m baselines.simple.{path.stem}" in (ast.get_docstring(tree) or "")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            private = (node.module or "").split(".")[0] == "gpuzoo" and node.module != "gpuzoo.wrappers.replay"
            assert not private, "gpuzoo's public API is what `import gpuzoo` has, and the replay buffer"
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert {name.split(".")[0] for name in names} <= MAY_IMPORT
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gpuzoo":
            assert node.attr in gpuzoo.__all__


@pytest.mark.rotates
def test_short_run(path):
    """The log has an entry per iteration, whose numbers are finite; the same seed gives the same ones, another not."""
    runs = []
    for seed in (1, 1, 2):
        rows: list[dict[str, float]] = []
        result = module(path).train(short(path, seed=seed), rows.append)
        assert {"return", "speed", "agent"} <= result.keys()
        assert result["speed"] > 0
        assert rows
        for row in rows:
            assert {"steps", "seconds", "speed"} <= row.keys()
            assert all(math.isfinite(value) for value in row.values()), row
        assert [row["steps"] for row in rows] == sorted({row["steps"] for row in rows})
        runs.append([{k: v for k, v in row.items() if k not in ("seconds", "speed")} for row in rows])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_options(path):
    """The game and the seed can be given; what cannot be is refused by one sentence that says what can."""
    args = module(path).Args
    assert isinstance(args().game, str)
    assert args(seed=3).seed == 3
    with pytest.raises(ValueError, match="there is no game 'NoSuch-v0'"):
        args(game="NoSuch-v0")
    with pytest.raises(ValueError, match=r"num_envs must be at least 1, not 0\."):
        args(num_envs=0)


@pytest.mark.rotates(together=True)
def test_command_line(path):
    """As a module and as a plain script: help, a wrong option, and a run that says what it reached."""

    def run(*options: str, script: bool = False) -> subprocess.CompletedProcess[str]:
        start = [str(path)] if script else ["-m", f"baselines.simple.{path.stem}"]
        return subprocess.run([sys.executable, *start, *options], capture_output=True, text=True, cwd=ROOT, check=False)

    helped = run("--help", script=True)
    assert helped.returncode == 0
    assert "--total-steps" in helped.stdout
    wrong = run("NoSuch-v0")
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr
    assert "there is no game 'NoSuch-v0'" in wrong.stderr.splitlines()[-1]
    flags = {f"--{k.replace('_', '-')}": str(v) for k, v in vars(short(path)).items() if k in (*TINY, "total_steps")}
    done = run("--seed", "2", *[x for pair in flags.items() for x in pair])
    assert done.returncode == 0, done.stderr
    assert "steps/s" in done.stdout.splitlines()[-1]
