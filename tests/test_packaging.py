"""What an installation brings: one name, with the trainers in it, whether from a wheel or from a clone."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def python(*words: object, cwd: Path = ROOT, **variables: str) -> str:
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(kind: str, folder: Path) -> Path:
    """What pip makes of the clone before it installs it: build_wheel, build_editable or build_sdist."""
    code = f"from hatchling.build import {kind}; print({kind}({str(folder)!r}))"
    return folder / python("-c", code).splitlines()[-1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``pip install --no-deps --target`` leaves it."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(built("build_wheel", tmp_path_factory.mktemp("wheel"))) as wheel:
        wheel.extractall(folder)
    return folder


def names(folder: Path) -> set[str]:
    """The trainers' files, without results, which are the documentation's."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if path.parts[0] != "results" and "__pycache__" not in path.parts}


def test_a_wheel_brings_one_name_with_the_trainers_in_it(installed: Path) -> None:
    assert {p.name for p in installed.iterdir() if p.suffix != ".dist-info"} == {"gpuzoo"}
    assert names(installed / "gpuzoo/baselines") == names(ROOT / "baselines")


@pytest.mark.parametrize("workflow", [False, True])
def test_metadata_have_the_repository_where_a_workflow_builds(tmp_path: Path, workflow: bool) -> None:
    where = ("https://forge.example", "somebody/gpuzoo") if workflow else ("", "")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    printed = python("-c", code, GITHUB_SERVER_URL=where[0], GITHUB_REPOSITORY=where[1])
    with zipfile.ZipFile(tmp_path / printed.splitlines()[-1]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        lines = wheel.read(name).decode().splitlines()
    assert "Project-URL: Documentation, https://gpuzoo.readthedocs.io" in lines
    source = "Project-URL: Source, https://forge.example/somebody/gpuzoo"
    assert (source in lines) == workflow
    assert sum(line.startswith("Project-URL:") for line in lines) == (4 if workflow else 1)


@pytest.mark.rotates
def test_a_wheel_trains_and_plays_away_from_the_clone(installed: Path, tmp_path: Path) -> None:
    def gpuzoo(*words: object) -> str:
        return python("-W", "error", "-m", "gpuzoo", *words, cwd=tmp_path, PYTHONPATH=str(installed))

    gpuzoo("train", "CartPole-v1", "--num-envs", 4, "--num-steps", 16, "--total-steps", 128, "--device", "cpu")
    checkpoint = "out/CartPole-v1/checkpoint.safetensors"
    words = ["play", "CartPole-v1", "--checkpoint", checkpoint, "--episodes", 4, "--json"]
    sides: dict[str, Any] = json.loads(gpuzoo(*words))["sides"]
    assert sides["agent"]["player"] == checkpoint
    code = "from gpuzoo.baselines.ppo import PPO; import inspect; print(inspect.getfile(PPO))"
    assert Path(python("-c", code, cwd=tmp_path, PYTHONPATH=str(installed)).strip()).is_relative_to(installed)


def test_an_editable_install_brings_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(built("build_editable", tmp_path)) as wheel:
        wheel.extractall(tmp_path / "site")
    packages = sysconfig.get_paths()["purelib"]  # in which an editable install of this clone may lie, too
    code = f"""
import importlib.util, site, sys
sys.path.append({packages!r})
site.addsitedir({str(tmp_path / "site")!r})
import gpuzoo.baselines.train.args
print(gpuzoo.__file__, gpuzoo.baselines.train.args.__file__, sep="\\n")
for name in ("baselines", "docs", "scripts", "tests"):
    found = importlib.util.find_spec(name)
    print([] if found is None else list(found.submodule_search_locations))
"""
    package, trainers, *others = python("-I", "-S", "-c", code, cwd=tmp_path).splitlines()
    assert Path(package) == ROOT / "gpuzoo/__init__.py"
    assert Path(trainers).samefile(ROOT / "baselines/train/args.py")
    assert not [line for line in others if str(ROOT) in line], "a folder of the clone can be imported from anywhere"


@pytest.mark.rotates
def test_a_source_package_makes_the_same_wheel(installed: Path, tmp_path: Path) -> None:
    with tarfile.open(built("build_sdist", tmp_path)) as package:
        package.extractall(tmp_path, filter="data")
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert names(source / "baselines") == names(ROOT / "baselines")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    wheel = tmp_path / python("-c", code, cwd=source).splitlines()[-1]
    want = {str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert set(zipfile.ZipFile(wheel).namelist()) == want


@pytest.mark.parametrize("module", ["", ".clone", ".train", ".train.args"])
def test_both_names_of_the_trainers_are_the_same_modules(module: str) -> None:
    """`import baselines` in a clone and `import gpuzoo.baselines` may be mixed."""
    assert importlib.import_module(f"baselines{module}") is importlib.import_module(f"gpuzoo.baselines{module}")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'baselines\.nothing'"):
        importlib.import_module("baselines.nothing")
