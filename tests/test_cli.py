"""The command line: what it prints, what it writes, and how it says no."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import gpuzoo
from gpuzoo import bench, cli, doctor, registry, scaffold
from gpuzoo.core.codegen import program
from gpuzoo.core.simulator import Simulator

ROOT = Path(gpuzoo.__file__).parents[1]


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")


def run(*words, status=0):
    result = CliRunner().invoke(cli.app, [str(w) for w in words], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def refused(*words, status=2):
    """The one sentence with which the command refuses."""
    result = run(*words, status=status)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert not result.stdout
    assert "Traceback" not in result.stderr
    return lines[0].removeprefix("error: ")


def python(*words, cwd=ROOT, **variables):
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **variables})


# ---- list ----


def test_list_shows_every_game():
    out = run("list").stdout
    for env_id in registry.ids():
        assert env_id in out
    assert "A pole stands on a cart" in out
    assert f"{len(registry.ids())} games" in out


def test_list_leaves_descriptions_out_of_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = run("list").stdout
    assert all(env_id in out for env_id in registry.ids())
    assert "A pole stands" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_list_json():
    games = {game["id"]: game for game in json.loads(run("list", "--json").stdout)}
    assert list(games) == registry.ids()
    assert games["CartPole-v1"] == {
        "id": "CartPole-v1",
        "agents": {"agent": 1},
        "observation": {"agent": "Box(4)"},
        "action": {"agent": "Discrete(2)"},
        "action_mask": False,
        "turn_based": False,
        "max_episode_steps": 500,
        "reference": registry.get("CartPole-v1").reference,
        "description": "A pole stands on a cart that runs on a frictionless track; "
        "pushes to the left and right keep it upright.",
    }


def test_list_takes_a_pattern():
    assert [game["id"] for game in json.loads(run("list", "cart", "--json").stdout)] == ["CartPole-v1"]
    assert "regular expression" in refused("list", "(")


@pytest.mark.parametrize(
    ("doc", "sentence"),
    [
        ("One. Two.", "One."),
        ("\n    Line one\n    and two! More.\n\n    Rest.", "Line one and two!"),
        ("Version 1.5 of `it`. Two.", "Version 1.5 of it."),
        ("No end", "No end"),
        (None, ""),
    ],
)
def test_first_sentence(doc, sentence):
    assert cli.first_sentence(doc) == sentence


# ---- doctor ----


def test_doctor_finds_the_cpu_usable():
    out = run("doctor").stdout
    for name in ("gpuzoo", "GPU driver", "NVRTC", "CuPy", "PyTorch", "C++ compiler", "Cache", "CartPole-v1 on cpu"):
        assert name in out
    assert "Ready: games run on cpu" in out


def test_doctor_without_compiler_and_driver(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(doctor, "_cuda_driver", lambda: None)
    report = json.loads(run("doctor", "--json", status=1).stdout)
    assert report["usable"] is False
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["C++ compiler"]["status"] == checks["CartPole-v1 on cpu"]["status"] == "problem"
    assert checks["C++ compiler"]["advice"]
    assert checks["GPU driver"]["status"] == "absent"
    assert "Not ready" in run("doctor", status=1).stdout


def test_doctor_compiles_for_itself_and_tidies_up(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    assert run("doctor", "--json")
    assert os.environ["GPUZOO_CACHE_DIR"] == str(tmp_path)
    assert not [f for f in tmp_path.rglob("*") if f.is_file()]


def test_doctor_names_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "file"))
    check = doctor._check_cache()
    assert check.status == "problem"
    assert "GPUZOO_CACHE_DIR" in check.advice


def test_doctor_tells_old_drivers_and_hidden_gpus():
    old = doctor._Driver((12, 4), ["GPU"])
    assert doctor._check_driver(doctor._Driver((13, 0), [])).status == "problem"
    assert doctor._check_driver("no device (CUDA error 100)").status == "problem"
    assert "GPU" in doctor._check_driver(old).detail
    assert doctor._extra(old) == "cuda12"


def test_doctor_reports_bits_that_differ(monkeypatch):
    monkeypatch.setattr(doctor, "_digest", lambda device: (device, 0.1))
    digests: dict[str, str] = {}
    assert doctor._check_run("cpu", digests, "").status == "ok"
    assert doctor._check_run("cuda:0", digests, "").status == "problem"


def test_doctor_needs_neither_torch_nor_cupy(tmp_path):
    """Both are hidden by modules of the same name that cannot be imported."""
    code = (
        "import sys; sys.modules['torch'] = sys.modules['cupy'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda n, p=None: None if n in ('torch', 'cupy') else find(n, p)\n"
        "from gpuzoo.cli import main; sys.argv = ['gpuzoo', 'doctor', '--json']; main()"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["PyTorch"]["status"] == "absent"
    assert "gpuzoo[torch]" in checks["PyTorch"]["advice"]


@pytest.mark.gpu
def test_doctor_finds_the_gpu_usable_with_the_same_bits():
    report = json.loads(run("doctor", "--json").stdout)
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["CartPole-v1 on cuda:0"]["status"] == "ok"
    assert "same bits as on cpu" in checks["CartPole-v1 on cuda:0"]["detail"]


# ---- bench ----


@pytest.mark.gpu
def test_bench_on_a_gpu():
    out = run("bench", "CartPole", "--json", "--device", "cuda", "--seconds", "0.1").stdout
    machine, row, *_ = [json.loads(line) for line in out.splitlines()]
    assert machine["gpu"]
    assert row["device"] == "cuda:0"
    assert "error" not in row


def test_bench_stops_when_it_is_interrupted(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "measure", interrupted)
    assert "CartPole" not in run("bench", "--device", "cpu", status=130).stdout


def test_bench_json():
    result = run(
        "bench", "CartPole", "--json", "--device", "cpu", "--seconds", "0.02", "--num-envs", 64, "--threads", 1
    )
    machine, row, *_ = [json.loads(line) for line in result.stdout.splitlines()]
    assert machine["kind"] == "machine"
    assert machine["cpu"]
    assert machine["device"] == "cpu"
    assert machine["threads"] == 1
    assert (row["kind"], row["id"], row["case"], row["num_envs"]) == ("game", "CartPole-v1", "default", 64)
    for name in ("steps_per_second", "rollout_steps_per_second", "vector_rows_per_second", "agent_steps_per_second"):
        assert row[name] > 0
    assert row["roofline_fraction"] == pytest.approx(
        row["step_bytes"] * row["steps_per_second"] / row["copy_bandwidth"], rel=1e-6
    )
    for name in ("import_seconds", "first_step_cached_seconds", "first_step_uncached_seconds"):
        assert row[name] > 0


def test_bench_searches_a_number_of_envs_and_prints_a_table():
    out = run("bench", "CartPole", "--device", "cpu", "--seconds", "0.02", "--no-startup").stdout
    for text in ("CartPole-v1", "steps/s", "copy bandwidth", "roofline", "cores"):
        assert text in out


def test_bench_times_named_configurations(monkeypatch):
    cartpole = type(registry.get("CartPole-v1"))
    monkeypatch.setattr(cartpole, "benchmarks", {"on the moon": {"gravity": 1.62, "num_envs": 32}}, raising=False)
    names = [(case.name, case.num_envs) for case in bench.cases("cartpole")]
    assert names == [("default", None), ("on the moon", 32)]
    out = run("bench", "moon", "--json", "--device", "cpu", "--seconds", "0.02", "--no-startup").stdout
    row = json.loads(out.splitlines()[-1])
    assert (row["case"], row["config"], row["num_envs"]) == ("on the moon", {"gravity": 1.62}, 32)


def test_bench_goes_on_after_a_failure(monkeypatch):
    cartpole = type(registry.get("CartPole-v1"))
    monkeypatch.setattr(cartpole, "benchmarks", {"bad": {"gravit": 1.0}, "good": {"num_envs": 8}}, raising=False)
    result = run("bench", "CartPole.*(bad|good)", "--device", "cpu", "--seconds", "0.02", "--no-startup", status=1)
    assert "failed" in result.stdout
    assert "CartPole-v1 (bad): TypeError: CartPole-v1 has no parameter 'gravit'" in result.stderr


def test_bench_refuses():
    assert refused("bench", "no-such-game").startswith("no game or configuration matches")
    assert "regular expression" in refused("bench", "(")
    assert "device must be" in refused("bench", "--device", "abacus")


def test_every_benchmark_configuration_is_valid():
    for case in bench.cases():
        assert case.num_envs is None or case.num_envs > 0
        config = {k: v for k, v in case.config.items() if k != "max_episode_steps"}
        cfg = case.env.Config(**config)
        case.env.check(cfg)
        assert bench.step_bytes(program(case.env, cfg)) > 0


def test_step_bytes_of_cartpole():
    cartpole = registry.get("CartPole-v1")
    state, observation, action = 4 * 4 * 2, 4 * 4, 4
    engine = 4 + 1 + 1 + 2 * 4 + 2 * 4 + 1 + 1  # reward, two flags, return, time, waiting, ended
    assert bench.step_bytes(program(cartpole, cartpole.Config())) == state + observation + action + engine


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.5, "0.50"), (123, "123"), (999.6, "1.00 k"), (12_340, "12.3 k"), (999_600, "1.00 M"), (1.5e9, "1.50 G")],
)
def test_short(number, text):
    assert cli.short(number) == text


# ---- record ----


def test_record_writes_a_gif(tmp_path):
    path = tmp_path / "new" / "play.gif"
    result = run("record", "CartPole-v1", "-o", path, "--num-envs", 2, "--steps", 5, "--size", 64, "-c", "gravity=1.6")
    assert "6 frames" in result.stdout
    assert [p.name for p in path.parent.iterdir()] == ["play.gif"]
    with Image.open(path) as image:
        assert image.size == (2 * 64 + 2, 64)
        assert image.n_frames > 1


def test_record_depends_on_the_seed_alone(tmp_path):
    files = [tmp_path / f"{k}.gif" for k in range(3)]
    for path, seed in zip(files, (0, 0, 1), strict=True):
        run("record", "CartPole-v1", "-o", path, "--num-envs", 1, "--steps", 3, "--size", 48, "--seed", seed)
    same, again, other = (path.read_bytes() for path in files)
    assert same == again != other


@pytest.mark.parametrize("env_id", registry.ids())
def test_record_takes_every_game(env_id, tmp_path):
    if "render" in registry.get(env_id).exempt:
        pytest.skip("does not draw itself")
    path = tmp_path / "play.png"
    run("record", env_id, "-o", path, "--num-envs", 1, "--steps", 1, "--size", 96)
    with Image.open(path) as image:
        assert image.n_frames in (1, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["CartPol"], "there is no game 'CartPol'; did you mean 'CartPole-v1'?"),
        (["CartPole-v1", "-o", "x.bmp"], "cannot write 'x.bmp': use a .gif"),
        (["CartPole-v1", "-c", "gravity"], "--config takes name=value, not 'gravity'."),
        (["CartPole-v1", "-c", "gravit=1"], "CartPole-v1 has no parameter 'gravit'; did you mean 'gravity'?"),
        (["CartPole-v1", "-c", "gravity=up"], "CartPole-v1: gravity must be of type float, not 'up'."),
        (["CartPole-v1", "-c", "length=-1"], "CartPole-v1: length must be at least 0.001, not -1.0."),
        (["CartPole-v1", "--fps", "99"], "fps=99.0 is out of range for .gif"),
        (["CartPole-v1", "-o", "."], "is a folder"),
    ],
)
def test_record_refuses(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = [] if "-o" in words else ["-o", "x.gif"]
    assert message in refused("record", *words, *out)
    assert not list(tmp_path.iterdir())


def test_parse_config_knows_the_kinds():
    tag = registry.get("TagGridWorld-v0")
    assert cli.parse_config(
        tag, ["num_taggers=3", "use_full_observation=False", "start=random", "wall_hit_penalty=1"]
    ) == {
        "num_taggers": 3,
        "use_full_observation": False,
        "start": "random",
        "wall_hit_penalty": 1.0,
    }
    with pytest.raises(ValueError, match="use_full_observation must be of type bool"):
        cli.parse_config(tag, ["use_full_observation=maybe"])


# ---- new ----


def test_new_makes_a_game_that_passes_the_checks(tmp_path):
    result = run("new", "windy_walk", "--dir", tmp_path)
    for text in ("windy_walk.py", "windy_walk.cuh", "check_env", "gpuzoo.make(WindyWalk"):
        assert text in result.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["windy_walk"]
    assert sorted(p.name for p in (tmp_path / "windy_walk").iterdir()) == [
        "__init__.py",
        "windy_walk.cuh",
        "windy_walk.py",
    ]
    code = (
        "import gpuzoo\n"
        "from gpuzoo.testing import check_env\n"
        "from windy_walk.windy_walk import WindyWalk\n"
        "env = gpuzoo.make(WindyWalk, num_envs=16, device='cpu')\n"
        "env.reset(seed=0)\n"
        "env.step(env.random_actions())\n"
        "assert 'WindyWalk-v0' in gpuzoo.ids()\n"
        "check_env(WindyWalk)\n"
    )
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    words = ["--import", "windy_walk.windy_walk", "record", "WindyWalk-v0", "-o", "a.gif", "--steps", "2"]
    done = python("-m", "gpuzoo", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.gif").is_file()


def test_the_template_plays_by_its_rules():
    from gpuzoo.templates.new_game.new_game import NewGame

    try:
        sim = Simulator(NewGame, 4, device="cpu", autoreset_mode="disabled", wind=0.0, length=5)
        sim.reset(seed=0)
        sim.arrays["action"][:, 0, 0] = [0, 1, 2, 9]
        sim.step()
        np.testing.assert_array_equal(sim.arrays["cell"], [1, 2, 3, 2])
        sim.step()
        np.testing.assert_array_equal(sim.arrays["terminated"][:, 0], [True, False, True, False])
        np.testing.assert_allclose(sim.arrays["reward"][:, 0], [-1, -0.01, 1, -0.01])
    finally:
        registry._REGISTRY.pop("NewGame-v0", None)


def test_new_in_the_collection_imports_from_the_core(tmp_path, monkeypatch):
    monkeypatch.setattr(scaffold, "COLLECTION", tmp_path)
    module, _ = scaffold.create("WindyWalk", tmp_path)
    text = module.read_text()
    assert "register" not in text
    assert "from gpuzoo.core.definition import Config, EnvDef, Field, param\n" in text


def test_new_refuses(tmp_path):
    run("new", "walk", "--dir", tmp_path)
    before = (tmp_path / "walk" / "walk.py").read_bytes()
    assert "exists already" in refused("new", "walk", "--dir", tmp_path)
    assert (tmp_path / "walk" / "walk.py").read_bytes() == before
    for name in ("2walk", "my-walk", "class", "walk.py", "../walk", "_walk", "w" * 41):
        assert "cannot be the name of a game" in refused("new", name, "--dir", tmp_path)
    assert "there is a game CartPole-v1 already" in refused("new", "cart_pole", "--dir", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["walk"]


@pytest.mark.parametrize(
    ("name", "module", "title"),
    [("walk", "walk", "Walk"), ("WindyWalk", "windy_walk", "WindyWalk"), ("go_9x9", "go_9x9", "Go9x9")],
)
def test_names(name, module, title):
    assert scaffold.names(name) == (module, title)


# ---- the rest ----


def test_train_says_where_the_scripts_are(monkeypatch):
    monkeypatch.setattr(cli, "__file__", "/nowhere/gpuzoo/cli.py")
    assert "training scripts are in a checkout" in refused("train", "CartPole-v1", status=1)


def test_without_a_command_there_is_help():
    out = python("-m", "gpuzoo", "--help").stdout
    for command in ("list", "doctor", "bench", "record", "new", "train"):
        assert command in out
    assert run("--version").stdout == f"gpuzoo {gpuzoo.__version__}\n"
    assert "Missing argument" in run("record", status=2).stderr


def test_import_of_a_missing_module():
    assert "No module named 'no_such_module'" in refused("--import", "no_such_module", "list", status=1)


def test_traceback_on_request():
    with pytest.raises(ValueError, match="there is no game"):
        run("--traceback", "record", "CartPol", "-o", "x.gif")


def test_heavy_imports_stay_inside_the_commands():
    code = "import sys, gpuzoo.cli; print(sorted({'torch', 'cupy', 'PIL', 'pygame', 'imageio'} & set(sys.modules)))"
    assert python("-c", code).stdout.strip() == "[]"


def test_gpu_script_is_valid_bash():
    done = subprocess.run(["bash", "-n", str(ROOT / "scripts" / "gpu.sh")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_bench_peers_runs():
    words = ["--num-envs", "8", "--seconds", "0.02", "--threads", "1", "--json"]
    done = python("-W", "ignore", "scripts/bench_peers.py", *words)
    assert done.returncode == 0, done.stderr
    machine, *rows = map(json.loads, done.stdout.splitlines())
    assert machine["kind"] == "machine"
    assert rows[0]["gpuzoo_is_faster_by"] == 1
    assert any("gymnasium" in row["name"] for row in rows)
