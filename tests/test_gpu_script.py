"""scripts/gpu.sh and scripts/gpu_figures.py, with stand-ins for what only a machine with a GPU has."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from types import ModuleType

import conftest
import pytest
import typer.main
from gpu_stand_in import installed

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.tools import bench
from gpuzoo.tools.cli import app

pytest.importorskip("torch")

from baselines import ppo, run

ROOT = Path(__file__).parents[1]
PHASES = ("smoke", "bits", "sanitize", "bench", "train", "profile")
ROWS = {"smoke", "bits", "bench", "train", "profile"}
GPU = "NVIDIA H200"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the script is for Linux")

#: notes what it is asked for; sleeps where $HANG says so; else prints two rows, the second cut off
PYTHON = f"""#!/usr/bin/env bash
printf '%q ' "$@" >> "$CALLS"; echo >> "$CALLS"
[[ ${{HANG:-}} && "$*" == *"$HANG"* ]] && exec sleep 60
case "$*" in
  scripts/gpu_figures.py* | *tomllib*) exec {sys.executable} "$@" ;;
  *metrics) echo one,two ;;
  *" ready "*) if [[ ${{ABSENT:-}} ]]; then echo Traceback; echo "no GPU here."; exit 1; fi ;;
  "-m pytest"*) echo "${{TESTS:-3 passed}} in 1s" ;;
  *) echo '{{"kind": "game", "id": "X-v0", "device": "cuda:0", "steps_per_second": 5}}'; printf '{{"kind": "ga' ;;
esac
"""
#: a tool that runs the command behind its options
TOOL = """#!/usr/bin/env bash
echo "${0##*/} $*" >> "$CALLS"
while [[ $1 != "$PYTHON" ]]; do shift; done
exec "$@"
"""


class Machine:
    """A copy of the scripts, beside a python and tools that only take notes."""

    def __init__(self, folder: Path, tools: tuple[str, ...] = ("ncu", "compute-sanitizer", "nvidia-smi")) -> None:
        self.folder, self.out, self.calls = folder, folder / "out", folder / "calls"
        shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("tests", "pyproject.toml"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "bin").mkdir()
        for name in ("python", *tools):
            text = {"python": PYTHON, "nvidia-smi": "#!/usr/bin/env bash\necho stand-in\n"}.get(name, TOOL)
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)

    def run(self, phase: str, **variables: str) -> subprocess.CompletedProcess[str]:
        self.calls.write_text("")
        own = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "PYTHON": f"{self.folder}/bin/python"}
        environment = {**os.environ, **own, "OUT": str(self.out), "CALLS": str(self.calls), **variables}
        command = ["bash", str(self.folder / "scripts/gpu.sh"), phase]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def logs(self) -> list[str]:
        with tarfile.open(self.out / "logs.tar.gz") as archive:
            return archive.getnames()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module(name)


# ---- phases ----


@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_leaves_rows_and_one_archive(machine, phase):
    done = machine.run(phase)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"== {phase}, at most " in done.stdout
    assert any(name.startswith(f"logs/{phase}/") for name in machine.logs())
    assert {path.name for path in machine.out.iterdir()} == {"logs.tar.gz"} | (
        {f"{phase}.jsonl"} if phase in ROWS else set()
    )
    if phase in ROWS:
        assert "`X-v0`" in done.stdout  # the table
        for line in (machine.out / f"{phase}.jsonl").read_text().splitlines():
            assert line in ("", '{"kind": "ga') or json.loads(line)["id"] == "X-v0"  # a cut row spoils no other


def test_what_is_carried_has_no_compiler(machine):
    """NVRTC alone is larger than what may travel."""
    done = machine.run("prepare", NVRTC="13.0.88")
    assert done.returncode == 0, done.stdout + done.stderr
    (install,) = [line for line in machine.calls.read_text().splitlines() if "nvidia-cuda-nvrtc==13.0.88" in line]
    target = Path(shlex.split(install)[shlex.split(install).index("--target") + 1])
    assert machine.folder not in target.parents
    assert not target.exists()
    assert "in .gpu, with 0 compiled programs" in done.stdout


def test_what_is_carried_has_all_dependencies(machine):
    """Those of gpuzoo, with theirs; but torch and CuPy bring their NumPy, of which there must not be a second one."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    wheels = machine.folder / ".gpu/wheels"
    download = machine.folder / "bin/python"
    download.write_text(download.read_text().replace("case ", f"""case "$*" in
  *"pip download"*) touch {shlex.quote(str(wheels))}/{{numpy,typer}}-1.whl ;;
esac
case """, 1))  # fmt: skip
    assert machine.run("prepare").returncode == 0
    (call,) = [shlex.split(line) for line in machine.calls.read_text().splitlines() if "pip download" in line]
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    assert len(needed) > 3
    assert {*needed, "safetensors"} <= {*call}
    assert "--no-deps" not in call
    assert [path.name for path in wheels.iterdir()] == ["typer-1.whl"]


def test_all_phases_share_the_time(machine):
    done = machine.run("all", TOTAL="90")
    assert done.returncode == 0, done.stdout + done.stderr
    limits = [int(line.split("at most ")[1].split()[0]) for line in done.stdout.splitlines() if line.startswith("== ")]
    assert len(limits) == len(PHASES)
    assert 80 <= sum(limits) <= 90
    assert len(list(machine.out.iterdir())) <= 8  # few files come back from a machine that is lent


def test_a_phase_ends_in_time(machine):
    start = time.monotonic()
    done = machine.run("smoke", HANG="gpu_work.py smoke", LIMIT="4")
    assert time.monotonic() - start < 20
    assert done.returncode == 1
    assert "smoke/work" in done.stdout
    assert "cut off" in done.stdout
    assert "smoke/doctor: no time left" in done.stdout
    assert "logs/smoke/work.log" in machine.logs()


@pytest.mark.parametrize("phase", [*PHASES, "all"])
def test_without_a_gpu_one_sentence_says_so(machine, phase):
    done = machine.run(phase, ABSENT="1")
    assert done.returncode == 2
    assert done.stdout == f"scripts/gpu.sh {phase} cannot run: no GPU here.\n"
    assert len(machine.calls.read_text().splitlines()) == 1


def test_one_process_has_all_tests_of_a_game():
    """Or each would compile all games for the CPU. Robots, which take longest, are a part of their own."""
    marks = {mark.name: mark.args for mark in conftest.marks_on_gpu(type(gpuzoo.get("Ant-v5")))}
    assert marks == {"xdist_group": ("Ant-v5",), "packed": ()}
    assert [mark.name for mark in conftest.marks_on_gpu(type(gpuzoo.get("CartPole-v1")))] == ["xdist_group"]


def test_skipped_tests_are_no_success(machine):
    assert machine.run("bits", TESTS="38 skipped").returncode == 1


def test_wheels_are_there_whole_or_not_at_all(machine):
    """What an unpacking that was cut off left is unpacked again."""
    for folder in ("wheels", "unpacked/half"):
        (machine.folder / ".gpu" / folder).mkdir(parents=True)
    (machine.folder / ".gpu/wheels/one.whl").touch()
    python = machine.folder / "bin/python"
    python.write_text(python.read_text().replace("case ", """case "$*" in
  *"pip install"*) mkdir -p .gpu/unpacked/whole; exit ${BROKEN:-0} ;;
esac
case """, 1))  # fmt: skip
    assert "wheels in .gpu/wheels could not be installed" in machine.run("smoke", BROKEN="1").stdout
    assert not (machine.folder / ".gpu/site").exists()
    assert machine.run("smoke").returncode == 0
    assert [path.name for path in (machine.folder / ".gpu/site").iterdir()] == ["whole"]


@pytest.mark.parametrize(("phase", "tool"), [("sanitize", "compute-sanitizer"), ("profile", "ncu")])
def test_a_missing_tool_is_named(tmp_path, phase, tool):
    done = Machine(tmp_path, ()).run(phase, PATH="/usr/bin:/bin")
    assert done.returncode == 0
    assert f"{phase}: there is no {tool} on this machine" in done.stdout


def test_an_unknown_phase_is_refused(machine):
    done = machine.run("everything")
    assert done.returncode == 2
    assert "smoke|bits|sanitize|bench|train|profile" in done.stderr.replace(" ", "|")
    assert machine.calls.read_text() == ""


def test_every_command_of_every_phase_exists(machine, monkeypatch, capsys):
    """Trainers, benchmarks and pytest get options that they have, games that exist, and files that are there."""
    work = script("gpu_work", monkeypatch)
    monkeypatch.chdir(ROOT)
    for device in ("cuda", "cpu"):
        machine.run("all", DEVICE=device, SMALL="" if device == "cuda" else "1")
        seen = set()
        for line in machine.calls.read_text().splitlines():
            words = shlex.split(line)
            match words:
                case ["-m", "baselines.ppo", *options] | ["scripts/bench_phases.py", *options]:
                    run.parse(ppo.Args, options, "")
                case ["-m", "gpuzoo", name, *options]:
                    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
                    command.make_context(name, list(options))
                    assert name != "bench" or bench.cases(options[-1])
                case ["scripts/gpu_work.py", *options]:
                    args = work.parse(options)
                    games = args.games if args.command in ("equal", "steps") else ()
                    assert all(work.case_of(*(game.split(":") + ["default"])[:2]) for game in games)
                case ["-m", "pytest", *options]:
                    files = [word for word in options if word.endswith(".py")]
                    assert files
                    assert all((ROOT / file).is_file() for file in files)
                    assert any("mark.gpu" in (ROOT / file).read_text() for file in files)
                case [name, *_]:
                    assert name in ("-c", "scripts/gpu_figures.py", "compute-sanitizer", "ncu"), line
            seen.add(" ".join(words[:2]))
        assert {"-m baselines.ppo", "-m gpuzoo", "-m pytest", "scripts/gpu_work.py headlines"} <= seen
    for env_id, case, *_ in work.HEADLINES:
        assert work.case_of(env_id, case)


# ---- work ----


def test_what_is_wrong_is_said_and_the_rest_goes_on(monkeypatch, capsys):
    work = script("gpu_work", monkeypatch)
    monkeypatch.setattr(work, "equal", lambda *_: (_ for _ in ()).throw(AssertionError("bits differ\nhere")))
    monkeypatch.setattr(work, "capture", lambda *_: {"graph": False})
    monkeypatch.setattr(work, "train_once", lambda *_: {})
    assert work.main(["smoke", "--device", "cpu"]) == 1
    machine, equal, capture, training = map(json.loads, capsys.readouterr().out.splitlines())
    assert machine["kind"] == "machine"
    assert not equal["ok"]
    assert equal["error"] == "AssertionError: bits differ"
    assert capture["ok"]
    assert training["ok"]


def test_equality_and_captures_on_stand_ins(monkeypatch, capsys):
    """The thread form has the CPU's bits; without a GPU a capture is left out, and the row says so."""
    work = script("gpu_work", monkeypatch)
    assert work.main(["equal", "CartPole-v1", "--device", "simt", "--num-envs", "5", "--steps", "4"]) == 0
    assert not work.capture("CartPole-v1", "cpu")["graph"]
    different = work.read
    monkeypatch.setattr(work, "read", lambda sim: {"x": different(sim)["reward"] + (sim.device == "simt")})
    assert work.main(["equal", "CartPole-v1", "--device", "simt", "--num-envs", "5", "--steps", "4"]) == 1


def test_where_an_array_ends_is_seen(monkeypatch, capsys):
    """For compute-sanitizer each array is an allocation of its own. They are one otherwise."""
    work, allocated = script("gpu_work", monkeypatch), []
    for options in ([], ["--apart"]):
        with installed() as driver:
            args = ["equal", "CartPole-v1", "--device", "cuda", "--num-envs", "5", "--steps", "4", *options]
            assert work.main(args) == 0
            allocated.append(sum(entry.what == "empty" for entry in driver.entries("allocate")))
    assert allocated[0] == 1
    assert allocated[1] > 20


def test_whether_a_device_is_there(monkeypatch, capsys):
    work = script("gpu_work", monkeypatch)
    assert work.main(["ready", "--device", "cpu"]) == 0
    with installed(devices=1):
        assert work.main(["ready"]) == 0
        assert work.main(["ready", "--device", "cuda:3"]) == 1
    assert capsys.readouterr().out == "device='cuda:3': there are 1 GPUs, numbered from 0; use device='cpu'.\n"


def test_headlines_on_a_cpu(monkeypatch, capsys):
    work = script("gpu_work", monkeypatch)
    monkeypatch.setattr(work, "HEADLINES", [h for h in work.HEADLINES if h[0] == "CartPole-v1"])
    assert work.main(["headlines", "--device", "cpu", "--num-envs", "256", "--seconds", "0.02"]) == 0
    _, graph, frames = map(json.loads, capsys.readouterr().out.splitlines())
    assert graph["what"] == "graph"
    assert not graph["graph"]
    assert min(graph["steps_per_second"], graph["roofline_fraction"]) > 0
    assert frames["frames"] >= 1_000_000
    assert frames["frames"] == pytest.approx(frames["steps_per_second"] * frames["frames_seconds"])


def test_what_is_compiled_first(monkeypatch):
    """Compiling ahead may be cut off: then the headlines' kernels are there, and robots' are what is missing."""
    work = script("gpu_work", monkeypatch)
    cases = [(case.env.id, case.name) for case in work.urgent_first(bench.cases())]
    headlines = {(env_id, name) for env_id, name, *_ in work.HEADLINES}
    assert set(cases[: len(headlines)]) == headlines
    assert len(cases) == len(list(bench.cases()))
    robots = [k for k, (env_id, _) in enumerate(cases) if gpuzoo.get(env_id).packed]
    assert robots == list(range(robots[0], len(cases)))


def test_games_in_the_order_of_what_is_compiled(monkeypatch, capsys):
    """A game that fails has a row with its error, and the next one follows."""
    work = script("gpu_work", monkeypatch)
    measure = bench.measure
    monkeypatch.setattr(
        bench, "measure", lambda case, *_, **options: 1 / 0 if "map" in case.name else measure(case, *_, **options)
    )
    words = [
        "games",
        "--device",
        "cpu",
        "--num-envs",
        "8",
        "--seconds",
        "0.01",
        "--only",
        "^(FourRooms|CartPole)-v. (d|m)",
    ]
    assert work.main(words) == 1
    machine, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert machine["kind"] == "machine"
    assert [(row["id"], row["case"], "error" in row) for row in rows] == [
        ("CartPole-v1", "default", False), ("FourRooms-v0", "default", False), ("FourRooms-v0", "map", True),
    ]  # fmt: skip


def test_steps_in_a_graph_of_a_stand_in(monkeypatch, capsys):
    """Where there is a GPU, headlines and smoke take steps out of a CUDA graph; here the driver is a stand-in."""
    work = script("gpu_work", monkeypatch)

    class Copy:
        bytes = 1000

        def __call__(self, count: int) -> None:
            time.sleep(1e-4 * count)

    with installed():
        assert work.capture("CartPole-v1", "cuda")["graph"]
        case = work.case_of("CartPole-v1", "default")
        row = work.headline(case, 64, "graph", "cuda", 0.02, Copy())
    assert row["graph"]
    assert row["device"] == "cuda:0"
    assert row["steps_per_second"] > 0


def test_what_is_compiled_ahead_is_what_a_gpu_asks_for(monkeypatch):
    work, asked = script("gpu_work", monkeypatch), []
    with installed(), monkeypatch.context() as patch:  # which is undone first
        build = work.nvrtc.cached_cubin
        patch.setattr(work.nvrtc, "cached_cubin", lambda *given: asked.append(given) or build(*given))
        Simulator(gpuzoo.get("CartPole-v1"), 3, device="cuda").close()
        (_, _, arch, _, driver), *_ = asked
        work.cubin(("CartPole-v1", "default", arch, driver))
    assert len(asked) == 2
    assert asked[0] == asked[1]


def test_a_training_is_a_row(monkeypatch, capsys, tmp_path):
    work = script("gpu_work", monkeypatch)
    about = {
        "game": "CartPole-v1",
        "device": "cuda",
        "num_envs": 4,
        "num_steps": 10,
        "population": 3,
        "total_steps": 200,
    }
    (tmp_path / "run.json").write_text(json.dumps(about))
    lines = [json.dumps({"iteration": k, "steps": 40 * k, "seconds": 1.0 + k}) for k in range(1, 6)]
    (tmp_path / "progress.jsonl").write_text("\n".join(lines) + '\n{"iterat')
    assert work.main(["training", str(tmp_path)]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["ok"]
    assert row["steps"] == 600
    assert row["steps_per_second"] == 100
    assert row["steady_steps_per_second"] == 120  # without the first fifth, in which kernels are captured
    (tmp_path / "progress.jsonl").write_text("")
    assert work.main(["training", str(tmp_path / "nothing"), str(tmp_path)]) == 1
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["nothing", tmp_path.name]


def test_a_profile_is_a_row(monkeypatch, capsys, tmp_path):
    work, path = script("gpu_work", monkeypatch), tmp_path / "CartPole-v1.csv"
    entries = {"gpu__time_duration.sum": "1,234.5", "launch__registers_per_thread": "48", "unknown": "7"}
    entries |= {
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "32",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "8",
    }
    lines = [f'"0","gz_step","(128, 1, 1)","{name}","u","{value}"' for name, value in entries.items()]
    head = '"ID","Kernel Name","Block Size","Metric Name","Metric Unit","Metric Value"'
    path.write_text("\n".join(["==PROF== Connected", head, *lines, '"0","gz_st']))
    assert work.main(["profile", str(path)]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["id"], row["kernel"], row["nanoseconds"], row["registers"]) == ("CartPole-v1", "gz_step", 1234.5, 48)
    path.write_text("==ERROR== no counters")
    assert work.main(["profile", str(path)]) == 1


# ---- figures ----

MACHINE = {
    "kind": "machine",
    "gpu": GPU,
    "cupy": "14.2.0",
    "python": "3.12.3",
    "commit": "abc",
    "time": "2026-11-04T01:02:03Z",
}
MEASURED = {
    "smoke": [{"kind": "equal", "id": "TagContinuous-v0", "ok": True, "seconds": 1.5}],
    "bench": [
        MACHINE | {"device": "cuda:0"},
        {
            "kind": "headline", "id": "CartPole-v1", "case": "default", "device": "cuda:0", "agents": 1,
            "num_envs": 2**21, "steps_per_second": 3.1e10, "roofline_fraction": 0.71,
        },
        {"kind": "headline", "id": "CartPole-v1", "case": "default", "device": "cuda:0", "frames_seconds": 0.0018},
        {"kind": "game", "id": "Pong-v0", "case": "default", "device": "cuda:0", "error": "out of memory"},
        {"kind": "game", "id": "OnlyCpu-v0", "case": "default", "device": "cpu", "steps_per_second": 1.0},
    ],
    "train": [{"game": "Pong-v0", "device": "cuda", "num_envs": 4, "steps_per_second": 5e6, "share": {"env": 0.25}}],
    "profile": [{"kind": "profile", "id": "CartPole-v1", "registers": 48.0, "store_sectors": 32, "store_requests": 8}],
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The two pages, with rows of a GPU beside them."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "out").mkdir()
    for page in ("gpu.md", "benchmarks.md"):
        shutil.copy(ROOT / "docs" / page, tmp_path / "docs")
    for phase, rows in MEASURED.items():
        (tmp_path / f"out/{phase}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_figures_go_into_the_documentation(site, monkeypatch):
    figures = script("gpu_figures", monkeypatch)
    before = (site / "docs/benchmarks.md").read_text()
    for _ in range(2):  # what stands there is replaced
        figures.write(site / "out", site)
        benchmarks, gpu = ((site / f"docs/{name}.md").read_text() for name in ("benchmarks", "gpu"))
        assert f"| {GPU} | 1 of 1 first checks, 0 cases of `gpuzoo bench`, 0 trainings, 1 profiles" in gpu
        assert "none yet" not in gpu
        assert gpu.count(GPU) == 1
        assert "| `CartPole-v1` | default | 1 | 2097152 | 31 G | 71 % |  |\n" in benchmarks
        assert "| 1.8 |" in benchmarks
        assert "| 48 | 4.00 |" in benchmarks
        assert "out of memory" in benchmarks
        assert "| `Pong-v0` | 4 | 5 M | 25 % |" in benchmarks
        assert "OnlyCpu" not in benchmarks
        assert "No figure of a GPU yet" not in benchmarks
    assert benchmarks.partition("### On a GPU")[0] == before.partition("### On a GPU")[0]


def test_truncated_files_break_nothing(site, monkeypatch, capsys):
    figures = script("gpu_figures", monkeypatch)
    whole = (site / "out/bench.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(0, len(whole), 41):
        (site / "out/bench.jsonl").write_bytes(whole[:length])
        figures.show(site / "out", figures.PHASES)
        if length >= first:
            figures.write(site / "out", site)
    for phase in figures.PHASES:
        (site / f"out/{phase}.jsonl").unlink(missing_ok=True)
    figures.show(site / "out", figures.PHASES)
    assert "no rows in" in capsys.readouterr().out


def test_figures_of_a_cpu_are_not_written(site, monkeypatch):
    figures = script("gpu_figures", monkeypatch)
    (site / "out/bench.jsonl").write_text(json.dumps(MACHINE | {"gpu": None, "device": "cpu"}))
    pages = {page: page.read_text() for page in (site / "docs").iterdir()}
    with pytest.raises(SystemExit, match=r"no rows of a GPU: run scripts/gpu\.sh there first"):
        figures.write(site / "out", site)
    assert pages == {page: page.read_text() for page in (site / "docs").iterdir()}


def test_golden_rollouts_on_another_device(monkeypatch, capsys, tmp_path):
    """Where bits differ the row says after how many steps."""
    work = script("gpu_work", monkeypatch)
    assert work.main(["golden", "CartPole-v1", "--device", "simt"]) == 0
    monkeypatch.setattr(work.make_golden, "FOLDER", tmp_path)
    changed = json.loads((ROOT / "tests/golden/CartPole-v1.json").read_text())
    changed["steps"]["10"]["sha256"] = "0"
    (tmp_path / "CartPole-v1.json").write_text(json.dumps(changed))
    assert work.main(["golden", "CartPole-v1", "Catch-bsuite-v0", "--device", "cpu"]) == 1
    good, bad = map(json.loads, capsys.readouterr().out.splitlines())
    assert good["ok"]
    assert bad["error"] == "AssertionError: other bits after 10 steps"
