"""Which costly tests run (rotation.py), and that a test which hangs is ended and named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rotation
from conftest import ALIKE, by_turns
from rotation import CASES, KIND_TURNS, LONG, MODULES, ROOT, SWEEP, TURNS, Rotation

import gpuzoo

MPE = "gpuzoo/envs/mpe/"


def names(*changes: list[str]) -> set[str]:
    return {rotation._dotted(module) for module in rotation.lately([*changes])[1]}


def test_each_test_has_one_turn():
    cases = [f"tests/test_x.py::test_y[{k}]" for k in range(16000)]
    turns = [[case for case in cases if Rotation(turn).comes(case)] for turn in range(TURNS)]
    assert sorted(case for turn in turns for case in turn) == sorted(cases)
    fair = len(cases) / TURNS
    assert all(0.7 * fair < len(turn) < 1.3 * fair for turn in turns)
    assert all(Rotation(None).comes(case) for case in cases)


def test_a_kind_has_every_third_turn():
    kinds = [f"Game{k}-v0" for k in range(600)]
    turns = [{name for name in kinds if Rotation(turn).comes_for_kind(name)} for turn in range(TURNS)]
    parts = turns[:KIND_TURNS]
    assert sorted(name for part in parts for name in part) == sorted(kinds)
    assert all(names == parts[turn % KIND_TURNS] for turn, names in enumerate(turns))
    assert all(0.7 / KIND_TURNS < len(part) / len(kinds) < 1.3 / KIND_TURNS for part in parts)
    assert all(Rotation(None).comes_for_kind(name) for name in kinds)


def test_a_commit_always_has_the_same_turn(monkeypatch):
    monkeypatch.delenv("TEST_TURN", raising=False)
    monkeypatch.setattr(rotation, "_history", lambda: ("2b", []))
    assert rotation.rotation() == rotation.rotation() == Rotation(0x2B % TURNS)
    monkeypatch.setenv("TEST_TURN", "6")
    assert rotation.rotation().turn == 6
    assert rotation.rotation("all").turn is None
    for wrong in (str(TURNS), "-1", "some"):
        with pytest.raises(ValueError, match=f"from 0 to {TURNS - 1}, not '{wrong}'"):
            rotation.rotation(wrong)


def test_without_git_all_comes_by_turns(monkeypatch):
    monkeypatch.delenv("TEST_TURN", raising=False)
    monkeypatch.setenv("PATH", "")
    assert rotation.rotation() == Rotation(0)


def test_a_merge_takes_no_place_among_the_last_commits(monkeypatch, tmp_path):
    """git lists no files for a merge, so twenty merges would hide what they brought."""

    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    for k in range(3):
        git("switch", "-c", f"topic{k}") if k else None
        (tmp_path / f"{k}.py").touch()
        git("add", ".")
        git("commit", "-m", f"file {k}")
        if k:
            git("switch", "main")
            git("merge", "--no-ff", f"topic{k}")
    monkeypatch.setattr(rotation, "ROOT", tmp_path)
    monkeypatch.setattr(rotation, "COMMITS", 3)
    assert sorted(rotation._history()[1]) == [[], ["0.py"], ["1.py"], ["2.py"]]


def test_a_game_is_its_two_files_and_what_its_folder_shares():
    pole = {"gpuzoo.envs.classic_control.cartpole"}
    assert names(["gpuzoo/envs/classic_control/cartpole.cuh"]) == pole
    assert names(["gpuzoo/envs/classic_control/cartpole.py"]) == pole
    assert names(["gpuzoo/core/simulator.py", "README.md"]) == set()
    assert names(["gpuzoo/wrappers/sb3.py"]) == {"gpuzoo.wrappers.sb3"}
    assert names(["baselines/simple/dqn.py"]) == {"baselines.simple.dqn"}
    assert names(["tests/toys/herd.cuh"]) == {"toys.herd"}
    shared = names(["gpuzoo/envs/classic_control/__init__.py"])
    assert pole < shared
    assert all(name.startswith("gpuzoo.envs.classic_control.") for name in shared)


def test_small_changes_come_before_sweeps_and_the_number_is_bounded():
    everything = [path.relative_to(ROOT).as_posix() for path in (ROOT / "gpuzoo").glob("**/*.*")]
    assert len(everything) > SWEEP
    files, modules, left = rotation.lately([everything, [MPE + "simple_tag.py"], [MPE + "simple_spread.cuh"]])
    assert files == {MPE + "simple_tag.py", MPE + "simple_spread.cuh"}
    assert [module.stem for module in modules[:2]] == ["simple_tag", "simple_spread"]
    assert len(modules) == MODULES
    assert len(left) > 20
    assert all("envs" in module.parts for module in [*modules, *left])


def test_a_file_is_concerned_by_what_it_names(tmp_path):
    path = ROOT / "tests" / "test_reference_cartpole.py"
    chosen = Rotation(0, names=frozenset(rotation._names(ROOT / "gpuzoo/envs/classic_control/cartpole.py")))
    assert "CartPole-v1" in chosen.names
    assert chosen.changed(path)
    assert not chosen.changed(ROOT / "tests" / "test_reference_tag.py")
    assert not chosen.changed(ROOT / "baselines" / "networks" / "Go-v0.safetensors"), "no text"
    assert not Rotation(0, names=frozenset({"gpuzoo.envs.classic_control.cart"})).changed(path), "no part of a name"
    assert Rotation(0, files=frozenset({"tests/test_reference_tag.py"})).changed(ROOT / "tests/test_reference_tag.py")
    for module, named in (("dqn", True), ("qmix", False)):  # it imports several of a package
        by_import = Rotation(0, names=frozenset({f"baselines.simple.{module}"}))
        assert by_import.changed(ROOT / "tests/test_simple_q.py") == named


def test_environments_of_the_integrations():
    everything = rotation.environments(Rotation(None))
    turns = [rotation.environments(Rotation(turn)) for turn in range(rotation.INTEGRATION_TURNS)]
    assert sorted(name for turn in turns for name in turn) == everything
    assert max(map(len, turns)) - min(map(len, turns)) <= 1
    by_adapter = Rotation(0, names=frozenset({"gpuzoo.wrappers.rllib"}))
    by_game = Rotation(0, names=frozenset({"Catch-bsuite-v0"}))
    by_file = Rotation(0, files=frozenset({"tests/integrations/tianshou/constraints.txt"}))
    for chosen, name in ((by_adapter, "rllib"), (by_game, "bsuite"), (by_file, "tianshou")):
        assert name in rotation.environments(chosen)
    shown = subprocess.run(
        [sys.executable, "-S", str(ROOT / "tests/rotation.py")], capture_output=True, text=True, check=True
    )
    assert set(shown.stdout.split()) <= set(everything)


def costly_test(path: Path, k: int, given: Path | None = None, test: str = "", **values: bool) -> SimpleNamespace:
    """What is asked of one of pytest's items."""
    return about({"page": given}, path, k, test=test or f"test_{k}", **values)


def about(
    params: dict[str, Any], path: Path, k: int, test: str = "test_it", mark: str = "rotates", **values: bool
) -> SimpleNamespace:
    return SimpleNamespace(
        callspec=SimpleNamespace(params=params),
        nodeid=f"{path.relative_to(ROOT)}::{test}[{k}]",
        path=path,
        config=SimpleNamespace(args=["tests"]),
        get_closest_marker=lambda name: getattr(pytest.mark, mark)(**values).mark if name == mark else None,
    )


def test_a_change_brings_few_tests_that_take_long():
    """Others with another turn; and those of the turn, and all that take less."""
    path = ROOT / "tests/test_simple_q.py"
    learning = {item.nodeid: item for item in (costly_test(path, k, long=True) for k in range(100))}
    other = {item.nodeid: item for item in (costly_test(path, k) for k in range(100, 110))}
    items = [*learning.values(), *other.values()]
    seen: set[str] = set()
    for turn in range(TURNS):
        changed = Rotation(turn, files=frozenset({path.relative_to(ROOT).as_posix()}))
        found = by_turns(items, changed)
        of_the_turn = {name for name in learning if changed.comes(name)}
        assert other.keys() | of_the_turn <= found
        few = found - other.keys() - of_the_turn
        assert len(few) == LONG
        seen |= few
    assert len(seen) > 3 * LONG
    assert by_turns(items, Rotation(None)) == learning.keys() | other.keys()


def test_a_change_brings_few_cases_of_a_function_that_is_about_no_game():
    path = ROOT / "tests/test_simple.py"
    items = [costly_test(path, k, test=f"test_{k % 3}") for k in range(60)]
    seen: set[str] = set()
    for turn in range(TURNS):
        changed = Rotation(turn, files=frozenset({"tests/test_simple.py"}))
        few = [name for name in by_turns(items, changed) if not changed.comes(name)]
        assert sorted(name.partition("::")[2].partition("[")[0] for name in few) == sorted(
            ["test_0", "test_1", "test_2"] * CASES
        )
        seen.update(few)
    assert len(seen) > 40


def test_one_case_of_each_function_runs_in_each_turn():
    path = ROOT / "tests/test_simple.py"
    items = [about({}, path, k, test=f"test_{k % 3}", mark="one_case") for k in range(12)]
    turns = [by_turns(items, Rotation(turn)) for turn in range(TURNS)]
    for turn in turns:
        assert sorted(name.partition("::")[2].partition("[")[0] for name in turn) == ["test_0", "test_1", "test_2"]
    assert set().union(*turns) == by_turns(items, Rotation(None)) == {item.nodeid for item in items}
    changed = Rotation(0, files=frozenset({"tests/test_simple.py"}))
    assert len(by_turns(items, changed)) == 3 * (1 + CASES)


def test_a_page_or_program_that_a_test_is_given_concerns_it():
    """Not the others of its file."""
    pages = [ROOT / "docs/training.md", ROOT / "docs/howto/tree_search.md"]
    items = [costly_test(ROOT / "tests/test_docs.py", k, given=page) for k, page in enumerate(pages)]
    turn = next(t for t in range(TURNS) if not any(Rotation(t).comes(item.nodeid) for item in items))
    changed = Rotation(turn, files=frozenset({"docs/training.md"}))
    assert by_turns(items, changed) == {items[0].nodeid}
    named = frozenset({"CartPole-v1"})
    assert "CartPole-v1" in items[0].path.read_text()
    assert "CartPole-v1" not in pages[1].read_text()
    assert items[1].nodeid not in by_turns(items, Rotation(turn, names=named)), "the file names it, and not the page"


# ---- as pytest runs it ----


def pytest_on(*words: str, folder: Path = ROOT) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200).stdout


def test_the_header_says_how_to_repeat_and_a_named_test_runs_anyway():
    case = "tests/test_compile.py::test_no_spills[Nim-v0-sm_80]"
    other = next(turn for turn in range(TURNS) if not Rotation(turn).comes(case))
    out = pytest_on("--collect-only", "-n0", f"--turn={other}", case)
    assert f"costly tests: turn {other} of {TURNS} (--turn {other}); changed lately: " in out
    assert "1 test collected" in out


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_test_that_hangs_is_ended_and_named(tmp_path, workers, request):
    """In compiled code, too, which does not listen to signals."""
    (tmp_path / "test_it.py").write_text(
        "import ctypes\n\ndef test_hangs():\n    pause = ctypes.CDLL(None).pause\n    while True:\n        pause()\n"
    )
    out = pytest_on("-c", str(ROOT / "pyproject.toml"), "--rootdir", ".", "-o", "timeout=2", *workers, "test_it.py",
                    folder=tmp_path)  # fmt: skip
    assert "test_hangs" in out
    assert "passed" not in out
    assert 0 < float(request.config.getini("timeout")) <= 600


def test_one_game_stands_for_those_by_the_same_rules():
    lakes = [type(gpuzoo.get(f"FrozenLake{size}-v1")) for size in ("", "8x8")]
    assert [lake in ALIKE for lake in lakes] == [False, True]
    path = ROOT / "tests/test_x.py"
    items = [about({"game": lake}, path, 2 * k + i) for k in range(20) for i, lake in enumerate(lakes)]
    changed = frozenset({lakes[0].__module__})
    assert by_turns(items, Rotation(0, names=changed)) == {item.nodeid for item in items[::2]}
    seen = set().union(*(by_turns(items, Rotation(turn)) for turn in range(TURNS)))
    assert seen == {item.nodeid for item in items[::2]}
    assert by_turns(items, Rotation(None)) == {item.nodeid for item in items}
