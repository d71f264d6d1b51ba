"""``gpuzoo new``: a game of each kind is right at once, and in the collection nothing else has to be edited."""

from __future__ import annotations

import importlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from typer.testing import CliRunner

from gpuzoo import EnvDef, Simulator, testing
from gpuzoo.tools import cli, scaffold

ROOT = Path(__file__).parents[1]

#: kind of game -> the options of `gpuzoo new`
KINDS: dict[str, list[str]] = {
    "single": [],
    "single_grid": ["--grid"],
    "single_continuous": ["--continuous"],
    "single_packed": ["--packed"],
    "agents": ["--agents", "3"],
    "agents_grid": ["--agents", "3", "--grid"],
    "agents_continuous": ["--agents", "3", "--continuous"],
    "turns": ["--turn-based", "--agents", "3"],
    "turns_grid": ["--turn-based", "--grid"],
}


def new(*words: Any, status: int = 0) -> str:
    """The output of ``gpuzoo new``."""
    result = CliRunner().invoke(cli.app, ["new", *map(str, words)])
    assert result.exit_code == status, result.output
    return result.output if status == 0 else " ".join(result.output.split())


def collection(root: Path) -> Path:
    """A folder that is taken for the collection's."""
    (root / "gpuzoo" / "core").mkdir(parents=True)
    (root / "gpuzoo" / "core" / "definition.py").touch()
    return root / "gpuzoo" / "envs"


@pytest.fixture(scope="module")
def envs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A game of each kind, as it is in the collection."""
    folder = collection(tmp_path_factory.mktemp("checkout"))
    for kind, options in KINDS.items():
        new(f"my_{kind}", "--dir", folder, *options)
    return folder


@pytest.fixture
def made(envs: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The game of a kind."""
    monkeypatch.syspath_prepend(str(envs))

    def game(kind: str) -> type[EnvDef]:
        _, title = scaffold.names(f"my_{kind}")
        found: type[EnvDef] = getattr(importlib.import_module(f"my_{kind}.my_{kind}"), title)
        return found

    return game


def test_every_kind_can_be_asked_for() -> None:
    reached = set()
    for agents, turns, grid, continuous, packed in itertools.product((None, 5), *[(False, True)] * 4):
        try:
            reached.add(scaffold.template(agents, turns, grid, continuous, packed))
        except ValueError:
            assert (continuous and (grid or turns)) or (packed and (agents or grid or turns))
    assert {path.name for path in reached} == set(KINDS)
    assert {path.name for path in scaffold.TEMPLATES.iterdir() if path.name != "__pycache__"} == set(KINDS)


def test_a_game_is_two_files(envs: Path) -> None:
    assert {path.name for path in envs.iterdir()} == {f"my_{kind}" for kind in KINDS}
    for kind in KINDS:
        files = {path.name for path in (envs / f"my_{kind}").iterdir() if path.is_file()}
        assert files == {f"my_{kind}.py", f"my_{kind}.cuh"}
        text = (envs / f"my_{kind}" / f"my_{kind}.py").read_text()
        assert "register" not in text, "the registry finds the games of the collection"
        assert "new_game" not in text
        assert "NewGame" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_is_the_one_asked_for(kind: str, made: Any) -> None:
    env = made(kind)()
    cfg = env.Config()
    assert env.single() == kind.startswith("single")
    assert (env.turn is not None) == kind.startswith("turns")
    assert sum(env.agents(cfg).values()) == (1 if env.single() else 3 if "--agents" in KINDS[kind] else 2)
    (group,) = env.agents(cfg)
    assert isinstance(env.action_space(cfg, group), spaces.Box) == kind.endswith(("continuous", "packed"))
    assert env.packed == kind.endswith("packed")
    assert "not compared" in env.exempt["reference"]


@pytest.mark.rotates
@pytest.mark.parametrize("kind", KINDS)
def test_checks(kind: str, made: Any) -> None:
    testing.check_env(made(kind))


# ---- the games play by their rules ----


def play(game: type[EnvDef], num_envs: int, **config: Any) -> Simulator:
    sim = Simulator(game, num_envs, device="cpu", autoreset_mode="disabled", **config)
    sim.reset(seed=0)
    return sim


def act(sim: Simulator, *actions: Any) -> None:
    """A step with the actions of each env, by agent."""
    sim.arrays["action"][...] = np.array(actions).reshape(sim.arrays["action"].shape)
    sim.step()


def test_corridor(made: Any) -> None:
    sim = play(made("single"), 4, wind=0.0)
    sim.set_state({"cell": np.array([1, 5, 9, 5])})
    act(sim, 0, 1, 2, 9)
    assert sim.arrays["cell"].tolist() == [0, 5, 10, 5]
    assert sim.arrays["terminated"][:, 0].tolist() == [True, False, True, False]
    np.testing.assert_allclose(sim.arrays["reward"][:, 0], [-1, -0.01, 1, -0.01])


def test_robot(made: Any) -> None:
    sim = play(made("single_grid"), 3)
    dirty = np.zeros((3, 8, 8), bool)
    dirty[:, 2, 3] = True
    dirty[1, 7, 7] = True
    sim.set_state({"dirty": dirty, "row": np.array([3, 3, 0]), "column": np.array([3, 3, 0])})
    act(sim, 0, 0, 3)
    assert np.argwhere(sim.arrays["dirty"]).tolist() == [[1, 7, 7], [2, 2, 3]]
    assert sim.arrays["terminated"][:, 0].tolist() == [True, False, False]
    np.testing.assert_allclose(sim.arrays["reward"][:, 0], [1, 1, -0.02])
    assert (sim.arrays["row"][2], sim.arrays["column"][2]) == (0, 0)


def test_boat(made: Any) -> None:
    sim = play(made("single_continuous"), 3, wind=0.0)
    places = {"x": [0.75, 0.0, 0.999], "vx": [0.0, 0.0, 0.1], "buoy_x": [0.86, 0.8, -0.8]}
    sim.set_state({name: np.array(values, np.float32) for name, values in places.items()})
    sim.set_state({name: np.zeros(3, np.float32) for name in ("y", "vy", "buoy_y")})
    act(sim, [1, 0], [1, 0], [0, 0])
    assert sim.arrays["terminated"][:, 0].tolist() == [False, False, True]
    np.testing.assert_allclose(sim.arrays["reward"][:, 0], [0.01, 0.01, -1], atol=1e-6)
    act(sim, [1, 0], [0, 0], [0, 0])
    assert sim.arrays["terminated"][0, 0]
    assert sim.arrays["reward"][0, 0] == 1


def test_paddle(made: Any) -> None:
    sim = play(made("single_packed"), 4, gravity=0.0)
    places = {"x": [0.5, 0.5, 0.5, 0.99], "y": [0.01, 0.01, 1.0, 1.0], "vy": [-0.03] * 4, "vx": [0.0, 0.0, 0.0, 0.03]}
    sim.set_state({name: np.array(values, np.float32) for name, values in places.items()})
    sim.set_state({"paddle": np.array([0.35, 0.2, 0.35, -1], np.float32)})
    act(sim, [0, 1], [1, 0], [0, 1], [-1, 0])
    assert sim.arrays["reward"][:, 0].tolist() == [1, -1, 0, 0]
    assert sim.arrays["terminated"][:, 0].tolist() == [False, True, False, False]
    np.testing.assert_allclose(sim.arrays["vx"], [0.3 * 0.06, 0, 0, -0.03], rtol=1e-6)
    np.testing.assert_allclose(sim.arrays["vy"], [0.06 * np.sqrt(1 - 0.09), -0.03, -0.03, -0.03], rtol=1e-6)
    np.testing.assert_allclose(sim.arrays["observation"][:, 0, 0], [0.15, 0.25, 0.15, 1.98], rtol=1e-5)


def test_fishers(made: Any) -> None:
    sim = play(made("agents"), 2)
    sim.set_state({"stock": np.array([0.5, 0.05], np.float32)})
    act(sim, [0, 1, 2], [3, 3, 3])
    np.testing.assert_allclose(sim.arrays["reward"][0], np.array([0, 1, 2]) * 0.1 * 0.5 / 3, rtol=1e-5)
    np.testing.assert_allclose(sim.arrays["stock"][0], 0.5 + 0.3 * 0.25 - 0.05, rtol=1e-5)
    assert sim.arrays["terminated"].tolist() == [[False] * 3, [True] * 3]


def test_gatherers(made: Any) -> None:
    sim = play(made("agents_grid"), 1, growth=0.0)
    apple = np.zeros((1, 8, 8), bool)
    apple[0, 1, 1] = apple[0, 5, 5] = True
    sim.set_state({"apple": apple, "row": np.array([[2, 1, 0]]), "column": np.array([[1, 0, 0]])})
    act(sim, [1, 2, 4])
    assert sim.arrays["reward"][0].tolist() == [0.5, 0.5, 0]
    assert np.argwhere(sim.arrays["apple"][0]).tolist() == [[5, 5]]
    assert (sim.arrays["row"][0].tolist(), sim.arrays["column"][0].tolist()) == ([1, 1, 0], [1, 1, 0])
    planes = sim.arrays["observation"][0].reshape(3, 8, 8, 3)
    assert [np.argwhere(planes[0, ..., k]).tolist() for k in range(3)] == [[[5, 5]], [[1, 1]], [[0, 0], [1, 1]]]


def test_drones(made: Any) -> None:
    sim = play(made("agents_continuous"), 1)
    state = {"x": [[0.0, 0.03, 0.5]], "y": [[0.0, 0.0, 0.5]], "beacon_x": [0.5], "beacon_y": [0.5]}
    sim.set_state({name: np.array(values, np.float32) for name, values in state.items()})
    act(sim, [[0, 0]] * 3)
    np.testing.assert_allclose(sim.arrays["reward"][0], [-1, -1, 0.1], rtol=1e-6)
    assert sim.arrays["terminated"][0].tolist() == [True, True, False]
    assert not sim.arrays["ended"][0]
    act(sim, [[0, 0]] * 3)
    assert sim.arrays["observation"][0, 2, 6:].tolist() == [0, 0], "nobody else is left"


def test_sticks(made: Any) -> None:
    sim = play(made("turns"), 2)
    sim.set_state({"sticks": np.array([2, 3]), "mover": np.array([1, 2])})
    assert sim.arrays["action_mask"].tolist() == [
        [[0, 0, 0], [1, 1, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [1, 1, 1]],
    ]
    act(sim, [0, 1, 0], [0, 0, 0])
    assert sim.arrays["reward"].tolist() == [[-0.5, 1, -0.5], [0, 0, 0]]
    assert sim.arrays["terminated"].tolist() == [[True] * 3, [False] * 3]
    assert sim.arrays["observation"][1].tolist() == [[2, 0], [2, 1], [2, 2]]


@pytest.mark.parametrize("line", ["across", "down", "falling", "rising"])
def test_stones(line: str, made: Any) -> None:
    k = np.arange(4)
    rows, columns = {"across": (2, k + 1), "down": (k, 4), "falling": (k, k), "rising": (4 - k, k)}[line]
    board = np.zeros((5, 5), np.int8)
    board[rows, columns] = 1
    cells = np.flatnonzero(board)
    sim = play(made("turns_grid"), 4)
    boards = np.array([np.where(np.arange(25).reshape(5, 5) == cell, 0, board) for cell in cells])
    sim.set_state({"board": boards, "mover": np.zeros(4, np.int32)})
    act(sim, *[[cell, 0] for cell in cells])
    assert sim.arrays["reward"].tolist() == [[1, -1]] * 4, "each of the four stones may be the last one"
    assert sim.arrays["terminated"].all()


def test_stones_on_taken_cells_and_a_full_board(made: Any) -> None:
    sim = play(made("turns_grid"), 3)
    full = np.array([[1, 1, 2, 2, 1], [2, 2, 1, 1, 2]] * 2 + [[1, 1, 2, 2, 0]], np.int8)
    three = np.zeros((5, 5), np.int8)
    three[0, :2] = 1
    sim.set_state({"board": np.array([full, full, three]), "mover": np.zeros(3, np.int32)})
    act(sim, [24, 0], [0, 0], [2, 0])
    assert sim.arrays["reward"].tolist() == [[0, 0], [-1, 0], [0, 0]]
    assert sim.arrays["terminated"].all(1).tolist() == [True, True, False]


# ---- names, places, refusals ----


def test_elsewhere_a_game_registers_itself(tmp_path: Path) -> None:
    said = new("windy_walk", "--dir", tmp_path, "--agents", "5")
    for text in ("Fishers share a lake", "windy_walk.py", "windy_walk.cuh", "check_env('WindyWalk-v0')"):
        assert text in said
    code = [line.strip() for line in said.splitlines() if line.startswith(("  import", "  from", "  env", "  obs"))]
    code += ["assert env.step(env.random_actions())[1]['fisher'].shape == (1024, 5)"]
    words = ["-m", "gpuzoo", "--import", "windy_walk.windy_walk", "record", "WindyWalk-v0", "-o", "a.gif", "--steps=2"]
    for command in (["-c", "\n".join(code)], words):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.gif").is_file()


@pytest.mark.parametrize(
    ("name", "module", "title"),
    [("walk", "walk", "Walk"), ("WindyWalk", "windy_walk", "WindyWalk"), ("go_9x9", "go_9x9", "Go9x9")],
)
def test_names(name: str, module: str, title: str) -> None:
    assert scaffold.names(name) == (module, title)


def test_lint_has_nothing_to_say_whatever_the_name(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    folders = (tmp_path / "games", collection(tmp_path))
    for folder in folders:
        for letter, options in zip("abcdefghj", KINDS.values(), strict=True):
            new(letter, "--dir", folder, *options)
            new(letter * scaffold.LONGEST, "--dir", folder, *options)
    for command in (["format", "--check"], ["check"]):
        words = ["-m", "ruff", *command, "--no-cache", "--config", str(ROOT / "pyproject.toml"), *map(str, folders)]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout


def test_new_refuses(tmp_path: Path) -> None:
    new("walk", "--dir", tmp_path)
    before = (tmp_path / "walk" / "walk.py").read_bytes()
    assert "exists already" in new("walk", "--dir", tmp_path, status=2)
    assert (tmp_path / "walk" / "walk.py").read_bytes() == before
    for name in ("2walk", "my-walk", "class", "walk.py", "../walk", "_walk", "w" * 26):
        assert "cannot be the name of a game" in new(name, "--dir", tmp_path, status=2)
    assert "there is a game CartPole-v1 already" in new("cart_pole", "--dir", tmp_path, status=2)
    assert "Field is a name that the game's module uses itself" in new("field", "--dir", tmp_path, status=2)
    for options, message in (
        (["--agents", "1"], "--agents must be from 2 to 64, not 1; leave it out for one agent"),
        (["--agents", "65"], "--agents must be from 2 to 64, not 65"),
        (["--grid", "--continuous"], "--grid and --continuous do not go together"),
        (["--turn-based", "--continuous"], "--turn-based and --continuous do not go together"),
        (["--packed", "--grid"], "--packed goes with --continuous only"),
        (["--packed", "--agents", "3"], "--packed goes with --continuous only"),
    ):
        assert message in new("other", "--dir", tmp_path, *options, status=2)
    assert [path.name for path in tmp_path.iterdir()] == ["walk"]


# ---- in the collection ----


@pytest.mark.rotates
def test_a_new_game_in_the_collection_needs_no_edit(tmp_path: Path) -> None:
    """The tests that go over all games, all pages and all files, in a checkout with two new games."""
    for part in ("baselines", "docs", "gpuzoo", "scripts", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "_build", "games", "integrations")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for kind in ("single_grid", "agents"):
        new(f"my_{kind}", "--dir", tmp_path / "gpuzoo" / "envs", *KINDS[kind])
    files = [f"tests/test_{name}.py" for name in ("architecture", "docs", "registry", "results")]
    without = "not code_runs and not builds and not integrations and not makes_results"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files, "-k", without]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:]
    words = [sys.executable, "-c", "import gpuzoo; print(gpuzoo.__file__, *gpuzoo.ids())"]
    said = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60).stdout.split()
    assert Path(said[0]).is_relative_to(tmp_path)
    assert {"MySingleGrid-v0", "MyAgents-v0"} < set(said)
