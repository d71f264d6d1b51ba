"""The documentation: its code runs, its pages are complete, it builds without a warning.

Blocks of a page run in order, in one namespace, in a process and an empty folder of their own. A ``{code-block}`` with
a ``:caption:`` is written to a file of that name first. ``<!-- needs-gpu -->`` above a block: it is only compiled.
``<!-- integration: NAME -->``: it runs in that library's environment, by tests/integrations/test_docs_of_library.py.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import gpuzoo
from gpuzoo.interfaces.infos import names_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(p for folder in (".", "howto", "tutorials") for p in (DOCS / folder).glob("*.md")),
    ]
)
NEEDS_GPU = "<!-- needs-gpu -->"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="not a checkout")


@dataclasses.dataclass(frozen=True)
class Block:
    page: Path
    line: int  # of its first line of code
    language: str
    caption: str
    code: str
    needs_gpu: bool
    integration: str  # or nothing

    @property
    def program(self) -> str:
        """The code at its own lines of the page, so that a traceback names them."""
        return "\n" * (self.line - 1) + self.code


def blocks(page: Path) -> list[Block]:
    out, lines = [], page.read_text().splitlines()
    k = 0
    while k < len(lines):
        opening = re.match(r"(`{3,})(?:\{code-block\} *)?(.*)$", lines[k])
        if not opening:
            k += 1
            continue
        above, start = next((x for x in reversed(lines[:k]) if x.strip()), ""), k + 1
        options = {"caption": "", "language": opening[2]}
        while option := re.match(r":([\w-]+): *(.*)", lines[start]):
            options[option[1]] = option[2]
            start += 1
        caption, language = options["caption"], opening[2]
        end = lines.index(opening[1], start)
        code = "\n".join(lines[start:end]).strip("\n") + "\n"
        start += next((j for j, x in enumerate(lines[start:end]) if x.strip()), 0)
        if (included := re.fullmatch(r"\{literalinclude\} *(.*)", language)) and caption:
            language, code = options["language"], (page.parent / included[1]).read_text()
        library = re.fullmatch(r"<!-- integration: (\w+) -->", above.strip())
        integration = library[1] if library else ""
        out.append(Block(page, start + 1, language, caption, code, above.strip() == NEEDS_GPU, integration))
        k = end + 1
    return out


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


BLOCKS = [block for page in PAGES for block in blocks(page)]

RUNNER = """
import sys
from pathlib import Path
sys.path.insert(0, "")
names = {"__name__": "__page__"}
for part in sorted(Path("blocks").iterdir()):
    exec(compile(part.read_text(), sys.argv[1], "exec"), names)
"""


FIRST = [ROOT / "README.md"]  # what users copy first: always
RUN = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=[pytest.mark.rotates] * (p not in FIRST), id=name(p)) for p in RUN]
)
def test_code_runs(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_blocks([b for b in blocks(page) if not b.integration], tmp_path, capsys, ["-W", "error"])


@pytest.mark.rotates
@pytest.mark.parametrize("notebook", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(notebook.read_text())["cells"]
    code = ["".join(cell["source"]) + "\n" for cell in found if cell["cell_type"] == "code"]
    assert code
    assert not any(cell.get("outputs") for cell in found), "outputs do not belong into the repository"
    run_blocks([Block(notebook, 1, "python", "", one, False, "") for one in code], tmp_path, capsys, ["-W", "error"])


def test_integrations_that_are_named_exist() -> None:
    folders = {p.parent.name for p in (ROOT / "tests" / "integrations").glob("*/requirements.txt")}
    assert {b.integration for b in BLOCKS if b.integration} <= folders


def run_blocks(
    chosen: list[Block], tmp_path: Path, capsys: pytest.CaptureFixture[str], options: Sequence[str] = ()
) -> None:
    """Runs blocks of one page, in their order, with options of the interpreter."""
    (tmp_path / "blocks").mkdir()
    page = chosen[0].page
    for k, block in enumerate(chosen):
        if block.caption and not block.language.startswith("{"):
            assert Path(block.caption).name == block.caption
            (tmp_path / block.caption).write_text(block.code)
        elif block.language == "python" and block.needs_gpu:
            compile(block.program, name(page), "exec")
            with capsys.disabled():
                print(f"\n{name(page)}:{block.line}: compiled only, as it needs a GPU")
        elif block.language == "python":
            (tmp_path / "blocks" / f"{k:03}").write_text(block.program)
    command = [sys.executable, *options, "-c", RUNNER, name(page)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # examples are small, and tests run side by side
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def commands() -> list[tuple[str, list[str]]]:
    out = []
    for block in BLOCKS:
        code = block.code.replace("\\\n", " ") if block.language in ("bash", "sh", "console") else ""
        for offset, line in enumerate(code.splitlines()):
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                out.append((f"{name(block.page)}:{block.line + offset}", words))
    return out


def test_commands_exist() -> None:
    typer = pytest.importorskip("typer")
    cli = pytest.importorskip("gpuzoo.tools.cli")
    known = typer.main.get_command(cli.app).commands
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    found = {"gpuzoo": 0, "make": 0}
    for where, (program, *words) in commands():
        if program == "make":
            assert set(words) <= targets, where
        elif program == "gpuzoo":
            words = words[2:] if words[:1] == ["--import"] else words
            assert words, where
            assert words[0] in known, f"{where}: there is no command gpuzoo {words[0]}"
            command = known[words[0]]
            options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
            used = {w.partition("=")[0] for w in words[1:] if w.startswith("-")}
            if words[0] != "train":  # whose options are the trainers': test_cli.py parses them
                assert used <= options, f"{where}: {used - options}"
        if program in found:
            found[program] += 1
    assert all(found.values()), found


def test_games_that_are_named_exist() -> None:
    for page in PAGES:
        text = page.read_text()
        declared = re.findall(r'\bid = "([\w-]+)"|"([\w-]+-v\d+)": \{', text)  # by the page itself
        known = {*gpuzoo.ids(), *(env_id for pair in declared for env_id in pair)}
        assert {*re.findall(r"\b[A-Z][A-Za-z]+(?:-[A-Za-z]+)*-v\d+\b", text)} <= known, name(page)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))


@pytest.mark.usefixtures("scripts")
def test_every_game_has_a_page(tmp_path: Path) -> None:
    from gen_games import generate, usage

    written = generate(tmp_path, None)
    assert {p.stem for p in written} == {*gpuzoo.ids(), "index", "results"}
    for env_id in gpuzoo.ids():
        text = (tmp_path / f"{env_id}.md").read_text()
        assert f"# {env_id}\n" in text
        assert "\n## Results\n" in text
        cfg, env = gpuzoo.get(env_id).Config(), gpuzoo.get(env_id)
        for parameter in vars(cfg):
            assert f"`{parameter}`" in text
        for name, field in env.fields(cfg).items():
            assert (f"| `{name}` |" in text) != field.scratch
        code = usage(env)
        assert len(code) >= 5
        for library, block in code.items():
            assert f":caption: {library}\n\n{block}" in text
            compile(block, env_id, "exec")


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("env_id", ["CartPole-v1", "SimpleSpread-v0", "ConnectFour-v0", "HalfCheetah-v5"])
def test_code_of_a_games_page_runs(env_id: str) -> None:
    """Of the libraries that are in this environment; the adapters of the others have tests of their own."""
    from gen_games import usage

    code = usage(gpuzoo.get(env_id))
    for library in ("Gymnasium", "PettingZoo", "torch", "Stable-Baselines3"):
        exec(compile(code[library], library, "exec"), {})


@pytest.mark.usefixtures("scripts")
def test_a_build_by_turns_has_pages_of_some_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gen_games

    monkeypatch.setenv("GPUZOO_DOCS", "turn")
    now = gen_games.chosen()
    assert len(now) < len(gpuzoo.ids()) / 2
    gen_games.generate(tmp_path, None)
    full = {name for name in gpuzoo.ids() if "## Rules" in (tmp_path / f"{name}.md").read_text()}
    assert full == {*now}
    monkeypatch.setenv("GPUZOO_DOCS", "")  # as make gives it, unless told
    assert gen_games.chosen() == gpuzoo.ids()
    monkeypatch.setenv("GPUZOO_DOCS", "Go-v0,SMAX-v0")
    assert gen_games.chosen() == ["Go-v0", "SMAX-v0"]
    monkeypatch.setenv("GPUZOO_DOCS", "SMACS-v0")
    with pytest.raises(ValueError, match="there is no game 'SMACS-v0'; did you mean 'SMAX-v0'"):
        gen_games.chosen()


def test_files_of_a_step() -> None:
    """`one_step.md` names the files that a step visits on a CPU, no other ones, and those that they take words from."""
    sys.path.insert(0, str(DOCS))
    try:
        import one_step
    finally:
        sys.path.remove(str(DOCS))
    package = Path(gpuzoo.__file__).parent
    envs = gpuzoo.make_vec("CartPole-v1", 4, device="cpu")
    envs.reset(seed=0)
    actions = np.zeros(4, np.int64)
    envs.step(actions)  # the first step makes what all later ones use
    visited: set[str] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(package):
            visited.add(file.relative_to(package).as_posix())

    sys.setprofile(look)
    try:
        envs.step(actions)
    finally:
        sys.setprofile(None)
    compiled = {
        Path(file).relative_to(package).as_posix() if os.path.isabs(file) else f"core/device/{file}"
        for file in re.findall(r'^#line \d+ "(.+)"$', envs.simulator.program.code, re.M)
        if file != "generated"
    }
    step, words = one_step.tables()
    listed = {file for row in step for file in row[:1]} | {file for row in words for file in row}
    assert {file for row in step for file in row[:1] if file.endswith(".py")} == visited
    assert {f for f in listed if f.endswith(".cuh")} == compiled - {"core/device/walk_gpu.cuh", "core/device/simt.cuh"}
    assert one_step.substitutions()["files_of_a_step"] == str(len(step))


@pytest.mark.usefixtures("scripts")
def test_pictures_of_a_game_say_who_plays_and_what_was_learnt(tmp_path: Path) -> None:
    """`make docs` draws those of all games."""
    import films
    import gallery
    import gen_results

    for trained, who in ((True, "played by trained agents"), (False, "played by chance")):
        assert who in gallery.figure(gpuzoo.get("CartPole-v1"), films.Shots("x.mp4", "x.png", trained, "", 1.5))
    for shows, text in {
        "": "in the default game.",
        films.Episode(3, 9, 0, 200).kind: "in the default game, in the best of 200 episodes.",
        films.Episode(3, 9, 1, 200).kind: "in the default game, in the one of 200 episodes that was solved.",
        films.Episode(3, 9, 7, 200).kind: "in the default game, in one of the 7 of 200 episodes that were solved.",
        films.Episode(3, 9, 20, 20).kind: "in the default game, in one of 20 episodes, which were all solved.",
        films.Episode(3, 9, 0, 200, start=5).kind: "in the default game, where they earn the most in 200 episodes.",
        films.Episode(3, 9, 0, 20, speed=9.6).kind: (
            "in the best of 20 episodes, as a time-lapse of 10 times the game's speed."
        ),
    }.items():
        assert text in gallery.figure(gpuzoo.get("CartPole-v1"), films.Shots("x.mp4", "x.png", True, shows, 1.5))
    both = films.Shots("x.mp4", "x.png", True, "", 1.5, "y.mp4", films.Episode(3, 9, 1, 20).kind)
    shown = gallery.figure(gpuzoo.get("FlatPack-v0"), both)
    assert shown.index("x.mp4") < shown.index("y.mp4") < shown.index("gpuzoo.envs.jumanji.exact_cover")
    assert "</code>, in the one of 20 episodes that was solved." in shown
    curve = gen_results.draw(["CartPole-v1"], tmp_path / "curves")["CartPole-v1"]
    assert "Learning curves of CartPole-v1" in (tmp_path / curve).read_text()


@pytest.mark.usefixtures("scripts")
def test_a_film_shows_the_best_episode_that_it_can_show_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretrained agents solve one maze of two; where agents play against each other nothing is the best."""
    import films

    shot = films.shots(gpuzoo.get("Maze-v0"), tmp_path)
    assert re.fullmatch(r"solved-\d+-of-200", shot.shows)
    assert {file.name for file in tmp_path.iterdir()} == {shot.film, shot.still}
    made = (tmp_path / shot.film).stat().st_mtime_ns
    assert films.shots(gpuzoo.get("Maze-v0"), tmp_path) == shot
    assert (tmp_path / shot.film).stat().st_mtime_ns == made
    solved = films.best_episode(gpuzoo.get("Maze-v0"), films.PRETRAINED)
    assert solved is not None
    assert 50 < solved.solved < 150
    assert 0 <= solved.env < solved.envs == films.BEST_OF
    assert 0 < solved.length <= 100
    tour = gpuzoo.get("TSP-v1")
    monkeypatch.setattr(films, "MOST_SECONDS", 20 / tour.render_fps / films.FASTEST)
    best = films.best_episode(tour, films.PRETRAINED)
    assert best is not None
    assert (best.length, best.solved, best.start, best.speed) == (20, 0, None, films.FASTEST)
    assert films.best_episode(gpuzoo.get("SimpleTag-v0"), films.PRETRAINED) is None


@pytest.mark.usefixtures("scripts")
def test_of_a_game_that_is_too_long_a_film_shows_where_agents_earn_the_most() -> None:
    """Robots that deliver shelves: the film shows more deliveries than the first 24 steps do on average."""
    import films

    env = gpuzoo.get("RobotWarehouse-v0")
    part = films.best_episode(env, films.PRETRAINED)
    assert part is not None
    assert part.start is not None
    assert (part.length, part.solved) == (films.SECONDS * env.render_fps, 0)
    arranged = films.match.arrange(env.id, {}, films.PRETRAINED)
    batch = gpuzoo.BatchEnv(
        env, films.BEST_OF, device="cpu", output="torch", autoreset_mode="disabled", **arranged.config
    )
    returns = []
    for step, _ in enumerate(films.play(batch, arranged.players, 0), 1):
        returns.append(batch.simulator.arrays["episode_return"].mean(1).copy())
        if step == part.start + part.length:
            break
    gained = returns[-1] - (returns[part.start - 1] if part.start else 0)
    assert gained[part.env] == gained.max() > returns[part.length - 1].mean()
    batch.close()


@pytest.mark.usefixtures("scripts")
def test_what_agents_do_not_solve_is_filmed_with_the_expert_of_the_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import films

    monkeypatch.setattr(films, "BEST_OF", 2)
    monkeypatch.setattr(films, "MOST", 3)
    (tmp_path / "FlatPack-v0-0123456789-by-expert-solved-2-of-20.mp4").touch()  # of an earlier text
    (tmp_path / "FlatPack-v0-other.mp4").touch()
    shot = films.shots(gpuzoo.get("FlatPack-v0"), tmp_path)
    assert shot.shows == "best-of-2"
    assert shot.by_expert.endswith("-by-expert-solved-20-of-20.mp4")
    assert shot.expert_shows == "solved-20-of-20"
    assert {file.name for file in tmp_path.iterdir()} == {
        shot.film, shot.still, shot.by_expert, "FlatPack-v0-other.mp4",
    }  # fmt: skip
    assert films.shots(gpuzoo.get("FlatPack-v0"), tmp_path) == shot
    cubes = films.shots(gpuzoo.get("RubiksCube-v0"), tmp_path)
    assert (cubes.shows, cubes.by_expert) == ("solved-2-of-2", "")


PUZZLES = [name for name in gpuzoo.ids() if "solved" in names_of(gpuzoo.get(name))]


@pytest.mark.rotates
@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("name", PUZZLES)
def test_the_page_of_each_puzzle_shows_how_it_is_solved(name: str) -> None:
    import films

    env = gpuzoo.get(name)
    players = (films.PRETRAINED, *([films.EXPERT] if env.expert else []))
    episodes = (films.best_episode(env, player) for player in players)
    assert any(episode is not None and episode.solved for episode in episodes)


@pytest.mark.usefixtures("scripts")
def test_every_message_has_a_cause_and_a_cure() -> None:
    """Each that the package raises is of a kind that `errors.md` explains; what its tables quote is raised."""
    import messages

    found = messages.by_kind()
    assert found.pop(None, {}) == {}, "say of which kind they are, in docs/messages.py"
    assert all(found.values()), "a kind without messages"
    known = [text for texts in found.values() for text in texts]
    assert len(known) > 500
    rows = re.findall(r"^\| (?!message|---)(.+?) \| .+ \| .+ \|$", (DOCS / "errors.md").read_text(), re.M)
    assert len(rows) > 25
    for row in rows:
        assert any(row in text for text in known), row


def test_every_game_of_pettingzoo_is_in_the_table():
    """With the id here, or the reason why there is none."""
    text = (DOCS / "migrate.md").read_text()
    table = text[text.index("### Every game of PettingZoo") :].partition("\n## ")[0]
    for family in ("butterfly", "classic", "sisl"):
        package = importlib.import_module(f"pettingzoo.{family}")
        for name in (module.name for module in pkgutil.iter_modules(package.__path__)):
            if re.fullmatch(r"\w+_v\d+", name):
                assert f"`{name}`" in table, name
    consoles = [m.name for m in pkgutil.iter_modules(importlib.import_module("pettingzoo.atari").__path__)]
    consoles = [name for name in consoles if re.fullmatch(r"\w+_v\d+", name)]
    named = [name for name in consoles if f"`{name}`" in table]
    assert f"and the other {len(consoles) - len(named)} of Atari" in table
    for row in re.findall(r"^\| `(\w+)`[^|]*\| `([\w-]+)`", table, re.MULTILINE):
        theirs, ours = row
        assert ours in gpuzoo.ids()
        if theirs not in ("leduc_holdem_v4", "go_v5"):  # other rules
            assert gpuzoo.get(theirs).id == ours
