"""The command line: what it prints, what it writes, and how it says no."""

import base64
import dataclasses
import importlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import chromium
import numpy as np
import pytest
from PIL import Image
from toys.glide import Glide
from typer.testing import CliRunner

import gpuzoo
from gpuzoo import registry
from gpuzoo.core.codegen import program
from gpuzoo.tools import bench, cli, doctor, listing, roofline
from gpuzoo.tools.commands.bench import short
from gpuzoo.tools.commands.options import parse_config
from gpuzoo.tools.commands.train import algorithms, config_as_json

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
    assert listing.first_sentence(doc) == sentence


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
        "from gpuzoo.tools.cli import main; sys.argv = ['gpuzoo', 'doctor', '--json']; main()"
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
        assert roofline.step_bytes(program(case.env, cfg)) > 0


def test_step_bytes_of_cartpole():
    cartpole = registry.get("CartPole-v1")
    state, observation, action = 4 * 4 * 2, 4 * 4, 4
    engine = 4 + 1 + 1 + 2 * 4 + 2 * 4 + 1 + 1  # reward, two flags, return, time, waiting, ended
    assert roofline.step_bytes(program(cartpole, cartpole.Config())) == state + observation + action + engine


def test_the_list_is_remembered_until_a_declaration_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    first = listing.games()
    assert [game["id"] for game in first] == registry.ids()
    file = tmp_path / "registry" / "listing.json"
    kept = json.loads(file.read_bytes())
    kept["games"]["CartPole-v1"]["description"] = "remembered"
    file.write_text(json.dumps(kept))

    def said():
        return {game["id"]: game["description"] for game in listing.games()}

    assert said()["CartPole-v1"] == "remembered"
    with monkeypatch.context() as more:  # a user's game, which may change at any time
        for words in ("One.", "Another."):
            mine = type("Mine", (Glide,), {"id": "Mine-v0", "__doc__": words})
            more.setitem(registry._REGISTRY, "Mine-v0", mine)
            assert (said()["Mine-v0"], said()["CartPole-v1"]) == (words, "remembered")
    kept["stamp"][2][0][1] += 1  # one file's time
    file.write_text(json.dumps(kept))
    assert listing.games() == first
    file.write_bytes(b"{ damaged")
    assert listing.games() == first


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.5, "0.50"), (123, "123"), (999.6, "1.00 k"), (12_340, "12.3 k"), (999_600, "1.00 M"), (1.5e9, "1.50 G")],
)
def test_short(number, text):
    assert short(number) == text


# ---- record ----


def test_record_writes_a_gif(tmp_path):
    path = tmp_path / "new" / "play.gif"
    result = run("record", "CartPole-v1", "-o", path, "--num-envs", 2, "--steps", 5, "--size", 64, "-c", "gravity=1.6")
    assert "6 frames" in result.stdout
    assert [p.name for p in path.parent.iterdir()] == ["play.gif"]
    with Image.open(path) as image:
        assert image.size == (2 * 64 + 2, 64)
        assert image.n_frames > 1


def test_record_takes_any_aspect(tmp_path):
    path = tmp_path / "wide.png"
    run("record", "SimpleTag-v0", "-o", path, "--num-envs", 1, "--steps", 1, "--size", 320, "--aspect", 2)
    with Image.open(path) as image:
        assert image.size == (320, 160)
        pixels = np.asarray(image.convert("RGB"))
    assert len(np.unique(pixels[120:, :20].reshape(-1, 3), axis=0)) > 1  # the plane goes on to the edges


def test_record_depends_on_the_seed_alone(tmp_path):
    files = [tmp_path / f"{k}.gif" for k in range(3)]
    for path, seed in zip(files, (0, 0, 1), strict=True):
        run("record", "CartPole-v1", "-o", path, "--num-envs", 1, "--steps", 3, "--size", 48, "--seed", seed)
    same, again, other = (path.read_bytes() for path in files)
    assert same == again != other


def test_record_writes_a_page_that_needs_nothing_else(tmp_path):
    path = tmp_path / "play.html"
    run("record", "CartPole-v1", "-o", path, "--num-envs", 1, "--steps", 9, "--size", 64, "--policy", "trained")
    text = path.read_text()
    assert "http" not in text.replace("http-equiv", "")
    assert "$" not in text.replace("${", "")
    film = json.loads(text.partition('id="film">')[2].partition("</script>")[0])
    assert len(film["order"]) == 10
    assert (film["fps"], max(film["order"])) == (50, len(film["pictures"]) - 1)
    with Image.open(io.BytesIO(base64.b64decode(film["pictures"][0]))) as image:
        assert image.size == (64, 64)


@pytest.mark.skipif(chromium.PROGRAM is None, reason="needs Chromium: apt install chromium")
def test_a_recorded_page_plays_in_a_browser(tmp_path):
    path = tmp_path / "play.html"
    run("record", "CoinGame-v0", "-o", path, "--num-envs", 1, "--steps", 20, "--size", 64)
    with chromium.opened(path.as_uri(), tmp_path / "profile") as page:
        page.wait("Number(document.querySelector('#place').value) > 2")
        page.value("p = document.querySelector('#place'); p.value = 20; p.dispatchEvent(new Event('input'))")
        assert page.value("document.querySelector('#count').textContent") == "21 of 21"
        assert page.value("document.querySelector('#play').textContent") == "Play"
        page.key("ArrowLeft")
        assert page.value("document.querySelector('#count').textContent") == "20 of 21"
        pixels = "[...document.querySelector('#picture').getContext('2d').getImageData(0, 0, 64, 64).data]"
        assert page.value(f"new Set({pixels}).size") > 5
        assert not page.problems


def test_record_saves_a_trajectory_and_films_it(tmp_path):
    path, film = tmp_path / "run.npz", tmp_path / "run.mp4"
    assert "40 steps" in run("record", "CoinGame-v0", "-o", path, "--steps", 40, "--seed", 7).stdout
    assert len(gpuzoo.Trajectory.load(path)) == 40
    assert "40 steps of CoinGame-v0" in run("record", path, "-o", film, "--size", 64).stdout
    assert film.read_bytes()[4:8] == b"ftyp"


@pytest.mark.by_kind
def test_record_takes_every_game(registered_game, tmp_path):
    if "render" in registered_game.exempt:
        pytest.skip("does not draw itself")
    path = tmp_path / "play.png"
    run("record", registered_game.id, "-o", path, "--num-envs", 1, "--steps", 1, "--size", 96)
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
        (["CartPole-v1", "--policy", "best"], "there is no policy 'best': use random, trained"),
        (["CartPole-v1", "-o", "x.npz", "--num-envs", "2"], "a trajectory is of one env"),
    ],
)
def test_record_refuses(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = [] if "-o" in words else ["-o", "x.gif"]
    assert message in refused("record", *words, *out)
    assert not list(tmp_path.iterdir())


def test_parse_config_knows_the_kinds():
    tag = registry.get("TagGridWorld-v0")
    assert parse_config(tag, ["num_taggers=3", "use_full_observation=False", "start=random", "wall_hit_penalty=1"]) == {
        "num_taggers": 3,
        "use_full_observation": False,
        "start": "random",
        "wall_hit_penalty": 1.0,
    }
    with pytest.raises(ValueError, match="use_full_observation must be of type bool"):
        parse_config(tag, ["use_full_observation=maybe"])


# ---- train ----

TINY = ["--num-envs", "4", "--num-steps", "8"]


@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_train_leaves_a_run_in_out(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = list(sys.argv)
    result = run("train", "CartPole", "--algorithm", algorithm, *TINY, "--total-steps", 320, "--config.gravity", 5)
    folder = tmp_path / "out" / "CartPole-v1"
    assert {"checkpoint.safetensors", "learning_curve.png", "progress.csv"} <= {f.name for f in folder.iterdir()}
    about = json.loads((folder / "run.json").read_text())
    assert (about["algorithm"], about["config"], about["num_envs"]) == (algorithm, {"gravity": 5.0}, 4)
    assert "In out/CartPole-v1: learning_curve.png" in result.stdout
    assert sys.argv == before
    log = (folder / "progress.csv").read_text().splitlines()
    run("train", "CartPole", "--algorithm", algorithm, *TINY, "--total-steps", 480, "--config.gravity", 5, "--resume")
    longer = (folder / "progress.csv").read_text().splitlines()
    assert longer[1 : len(log)] == log[1:]
    assert len(longer) == len(log) + 5


def test_train_takes_another_folder_and_films(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("train", "CartPole-v1", *TINY, "--total-steps", 64, "--out", "here", "--video")
    assert [f.name for f in tmp_path.iterdir()] == ["here"]
    with Image.open("here/video.gif") as image:
        assert image.size == (482, 482)
        assert image.n_frames > 1


def test_train_has_the_help_of_the_algorithm():
    out = run("train", "--help").stdout
    assert out.startswith("usage: gpuzoo train")
    assert "--clip-eps" in out
    assert "--clip-eps" not in run("train", "--algorithm", "a2c", "--help").stdout


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["CartPol"], 2, "gpuzoo train: error: there is no game 'CartPol'; did you mean 'CartPole-v1'?"),
        (["CartPole-v1", "--sped", "3"], 2, "unknown option --sped; see --help"),
        (["CartPole-v1", "--config.gravit", "3"], 2, "CartPole-v1 has no parameter 'gravit'; did you mean 'gravity'?"),
        (["CartPole-v1", "--gamma", "2"], 2, "error: gamma must lie between 0 and 1, not 2.0."),
    ],
)
def test_train_refuses(words, status, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in run("train", *words, status=status).output.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_train_refuses_another_algorithm():
    out = run("train", "CartPole-v1", "--algorithm", "dqm", status=2).stderr
    assert out == "error: there is no algorithm 'dqm'; did you mean 'dqn' or 'qmix'?\n"


def test_train_knows_every_algorithm():
    files = {path.stem for path in (ROOT / "baselines" / "simple").glob("*.py")} - {"__init__"}
    known = algorithms()
    assert {
        "ppo": "ppo",
        "a2c": "a2c",
        "dagger": "dagger",
        "dqn": "simple.dqn",
        "simple.ppo": "simple.ppo",
    }.items() <= known.items()
    assert files == {name.removeprefix("simple.") for name in known.values()} - {"a2c", "dagger"}
    told = " ".join(run("train", "--help").stdout.split())
    assert f"for --algorithm: {', '.join(name for name in known if name != 'ppo')}." in told


def test_train_runs_an_algorithm_of_one_file():
    before = list(sys.argv)
    words = ["train", "CartPole-v1", "--algorithm", "pqn", *TINY, "--minibatches", 2, "--hidden", 8]
    assert "steps/s" in run(*words, "--total-steps", 64).stdout.splitlines()[-1]
    assert sys.argv == before
    assert run("train", "--algorithm", "pqn", "--help").stdout.startswith("usage: gpuzoo train --algorithm pqn")
    refused_words = {
        ("--num-envs", 0): "num_envs must be at least 1",
        ("--config", '{"gravit": 1}'): "'gravit'",
        ("--config.gravit=1", "--config.length", "0.7"): "'gravit'",
        ("--config.length",): "--config.length needs a value",
        ("--config.length=1", "--config={}"): "not as both",
    }
    for more, message in refused_words.items():
        assert message in run(*words, *more, status=2).output.splitlines()[-1]


def test_parameters_of_the_game_become_json_for_an_algorithm_of_one_file():
    words = ["CartPole-v1", "--config.length", "0.7", "--seed", "2", "--config.gravity=5:15", "--config.group=a"]
    *rest, flag, config = config_as_json(words)
    assert [*rest, flag] == ["CartPole-v1", "--seed", "2", "--config"]
    assert json.loads(config) == {"length": 0.7, "gravity": "5:15", "group": "a"}
    assert config_as_json(["--config", "{}"]) == ["--config", "{}"]


@pytest.mark.parametrize(
    ("command", "modules"),
    [("train", ["torch", "matplotlib", "safetensors", "tensorboard"]), ("play", ["torch", "safetensors"])],
)
def test_commands_name_the_extra_that_is_missing(command, modules, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    purpose = {"train": "training", "play": "playing"}[command]
    wanted = f"{purpose} needs safetensors: pip install 'gpuzoo[train]'"
    assert refused(command, "CartPole-v1", status=1) == wanted
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    assert f"needs {' and '.join(modules)}: pip" in refused(command, "CartPole-v1", status=1)


def documented(program):
    """The trainers' commands in the README and the documentation, without the program."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for line in page.read_text().splitlines():
            before, found, words = line.partition(program)
            if found and (not before or before.startswith("torchrun ")):
                yield shlex.split(words, comments=True)


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [(a, w) for a in ("ppo", "a2c", "dagger") for w in documented(f"python -m baselines.{a} ")]
    + [("ppo", w) for w in documented("torchrun --nproc-per-node=2 -m baselines.ppo ")]
    + [("ppo", w) for w in documented("gpuzoo train ")],
    ids=lambda words: words if isinstance(words, str) else " ".join(words[:2]),
)
def test_documented_commands_can_run(algorithm, words, monkeypatch):
    from baselines.run import parse

    if "--algorithm" in words:
        place = words.index("--algorithm")
        algorithm, words = algorithms()[words[place + 1]], words[:place] + words[place + 2 :]
    module = importlib.import_module(f"baselines.{algorithm}")
    if algorithm.startswith("simple."):
        monkeypatch.setattr(sys, "argv", ["train", *words])
        module.parse()
    else:
        parse(module.Args, words).check()


def test_every_option_is_in_the_documentation(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from training_options import options_table

    from baselines import ppo

    table, shown = options_table(), run("train", "--help").stdout
    for field in dataclasses.fields(ppo.Args):
        option = f"--{field.name.replace('_', '-')}"
        if field.name not in ("game", "config"):
            assert f"| `{option}` |" in table
            assert option in shown
    assert "| `--num-steps` | `128`; A2C: `8` |  |" in table
    assert "| `--clip-eps` | `0.2` | yes | PPO only: " in table
    assert "| `--anneal-lr` | on |" in table
    assert "| `--expert` |  |  | DAgger only: " in table
    assert "| `--epochs` | `4`; DAgger: `1` |  | PPO and DAgger: " in table


@pytest.mark.parametrize("path", sorted((ROOT / "baselines" / "configs").glob("*.json")), ids=lambda path: path.stem)
def test_values_for_a_game_are_options(path):
    """`Args.of` leaves out what its algorithm does not know, so a name that is wrong would go unnoticed."""
    from baselines import a2c, ppo
    from baselines.run import algorithm
    from baselines.train.config_files import RESULTS_ONLY

    about, names = json.loads(path.read_text()), {field.name for field in dataclasses.fields(ppo.Args)}
    assert about.keys() <= {*RESULTS_ONLY, *names}
    assert about.get("mappo", {}).keys() <= names
    assert all(lesson.keys() <= names for lesson in about.get("lessons", []))
    for module in (a2c, ppo):
        module.Args.of(path.stem).check()
    for way in about.get("ways", {}).values():
        _, kind = algorithm(way.get("algorithm", "ppo"))
        assert way.keys() <= {*RESULTS_ONLY, "algorithm", *(field.name for field in dataclasses.fields(kind))}


MISTAKES = {
    "train NoGame": "there is no game 'NoGame'",
    "train CartPole-v1 --sped 3": "unknown option --sped",
    "train CartPole-v1 --num-envs 0": "num_envs must be positive",
    "train CartPole-v1 --algorithm a2c --config.gravit 3": "has no parameter 'gravit'",
    "play NoGame": "there is no game 'NoGame'",
    "play CartPole-v1 --checkpoint nothing": "there is no checkpoint nothing",
    "play CartPole-v1 --player agent": "--player takes NAME=FILE",
    "record NoGame -o a.gif": "there is no game 'NoGame'",
}


def test_mistakes_are_told_before_torch_is_imported():
    """That takes seconds."""
    code = (
        "import contextlib, sys\n"
        "from gpuzoo.tools.cli import main\n"
        "for words in sys.argv[1:]:\n"
        "    sys.argv = ['gpuzoo', *words.split()]\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        main()\n"
        "print('imported:', [m for m in ('torch', 'matplotlib') if m in sys.modules])\n"
    )
    done = python("-c", code, *MISTAKES)
    for message in MISTAKES.values():
        assert message in done.stderr
    assert done.stdout == "imported: []\n"


# ---- play ----


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Checkpoints by name: two members that balance a pole, taggers and a runner, two players."""
    from baselines.ppo import PPO, Args
    from baselines.run import train

    folder = tmp_path_factory.mktemp("trained")
    small = {"num_envs": 4, "num_steps": 8, "total_steps": 64}
    runs = {
        "pole": Args("CartPole-v1", **small, population=2, config={"gravity": 5.0}, out=str(folder / "pole")),
        "tag": Args("TagGridWorld-v0", **small, config={"num_taggers": 3, "max_episode_steps": 20},
                    policies={"tagger": "hunters"}, out=str(folder / "tag")),
        "four": Args("ConnectFour-v0", **small, memory=4, out=str(folder / "four")),
    }  # fmt: skip
    return {name: train(PPO, args, quiet=True).checkpoint for name, args in runs.items()}


def played(*words):
    return json.loads(run("play", *words, "--json").stdout)


def test_play_random():
    out = played("CartPole-v1", "--episodes", 50, "--seed", 3, "-c", "max_episode_steps=9")
    assert (out["game"], out["config"], out["seed"]) == ("CartPole-v1", {"max_episode_steps": 9}, 3)
    side = out["sides"]["agent"]
    assert (side["player"], side["agents"], side["episodes"]) == ("random", 1, 50)
    assert 8 < side["mean_return"] == side["mean_length"] <= 9


@pytest.mark.parametrize("how", ["--greedy", "--sample"])
def test_play_measures_a_member_of_a_checkpoint(how, trained):
    from baselines.ppo import PPO, Args
    from baselines.report.evaluation import evaluate

    about = json.loads((trained["pole"].parent / "run.json").read_text())
    args = Args(
        "CartPole-v1", **{k: about[k] for k in ("num_envs", "num_steps", "total_steps", "population", "config")}
    )
    trainer = PPO(args)
    trainer.restore(trained["pole"])
    sides = []
    for member in (0, 1):
        out = played("CartPole-v1", "--checkpoint", f"{trained['pole']}#{member}", "--episodes", 16, how)
        assert out["config"] == {"gravity": 5.0}
        seen = evaluate(
            "CartPole-v1", trainer.policies, 16, config=args.config, greedy=how == "--greedy", member=member
        )
        returns = seen.returns["agent"][:, 0].astype(float)
        sides.append(out["sides"]["agent"])
        assert sides[member]["mean_return"] == returns.mean()
        # The two sum squares in another order: a few roundings of 1e-16 each.
        assert sides[member]["standard_error"] == pytest.approx(np.std(returns, ddof=1) / 4, rel=1e-12)
        assert sides[member]["mean_length"] == seen.lengths["agent"].mean()
    assert sides[0]["standard_error"] != sides[1]["standard_error"]
    trainer.close()


def test_play_takes_parameters_from_the_checkpoint_and_the_command(trained):
    words = ["TagGridWorld", "--checkpoint", trained["tag"], "--episodes", 3]
    out = played(*words, "--config.wall_hit_penalty", 50, "--config.max_episode_steps=7")
    assert out["config"] == {"num_taggers": 3, "max_episode_steps": 7, "wall_hit_penalty": 50.0}
    assert {name: side["agents"] for name, side in out["sides"].items()} == {"tagger": 3, "runner": 1}
    assert max(side["mean_length"] for side in out["sides"].values()) <= 7
    free = played(*words, "--config.max_episode_steps", 7, "--config.wall_hit_penalty", 0)
    assert free["sides"]["runner"]["mean_return"] > out["sides"]["runner"]["mean_return"]


def test_play_matches(trained):
    file = str(trained["tag"])
    out = played("TagGridWorld-v0", "-p", f"tagger={file}", "--player", "runner=random", "--episodes", 2)
    assert {name: side["player"] for name, side in out["sides"].items()} == {"tagger": file, "runner": "random"}
    assert out["config"]["num_taggers"] == 3
    out = played("TagGridWorld-v0", "--checkpoint", file, "-p", "tagger_1=random", "--episodes", 2)["sides"]
    assert {name: (side["player"], side["agents"]) for name, side in out.items()} == {
        "tagger, the others": (file, 2), "tagger_1": ("random", 1), "runner": (file, 1)
    }  # fmt: skip
    sides = played("ConnectFour-v0", "--checkpoint", trained["four"], "-p", "player_0=random", "--episodes", 8)["sides"]
    assert list(sides) == ["player_0", "player_1"]
    assert sides["player_0"]["mean_return"] == -sides["player_1"]["mean_return"]


def test_an_agent_that_plays_randomly_is_not_the_policy():
    """Who has a name of its own plays that, whatever the rest of its group plays."""
    from baselines.report.match import arrange

    match = arrange("ConnectFour-v0", {"player_0": "random"})
    assert match.players == {"player_0": None, "player_1": None}
    assert match.sides == {"player_0": ("player", [0], "random"), "player_1": ("player", [1], "random")}


def test_play_prints_a_table(trained):
    out = run("play", "TagGridWorld-v0", "--checkpoint", trained["tag"], "--episodes", 1, "--greedy").stdout
    for text in ("tagger", "runner", "mean return", "standard error", "mean length", "1 episode with the likeliest"):
        assert text in out
    assert "nan" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["CartPol"], "there is no game 'CartPol'; did you mean 'CartPole-v1'?"),
        (["CartPole-v1", "--checkpoint", "none"], "there is no checkpoint none."),
        (["CartPole-v1", "--checkpoint", "."], "there is no checkpoint .: it is a folder."),
        (["CartPole-v1", "--checkpoint", "{four}"], "{four} holds policies for ConnectFour-v0, not for CartPole-v1."),
        (["CartPole-v1", "--checkpoint", "{pole}#2"], "{pole} has 2 members, numbered from 0, and no '2'."),
        (
            ["TagGridWorld-v0", "--checkpoint", "{tag}", "-c", "use_full_observation=no"],
            "was trained with the observation",
        ),
        (["CartPole-v1", "-p", "agnt=random"], "CartPole-v1 has no group or agent 'agnt'; did you mean 'agent'?"),
        (["CartPole-v1", "-p", "agent_1=random"], "CartPole-v1 has no group or agent 'agent_1'; did you mean 'agent'?"),
        (["CartPole-v1", "-p", "agent"], "--player takes NAME=FILE, NAME=pretrained, NAME=expert or NAME=random, not"),
        (["CartPole-v1", "-c", "gravit=1"], "CartPole-v1 has no parameter 'gravit'; did you mean 'gravity'?"),
        (["CartPole-v1", "--config.gravity"], "--config.gravity needs a value."),
        (["CartPole-v1", "--gredy"], "there is no option --gredy; see --help."),
        (["CartPole-v1", "-o", "x.bmp"], "cannot write 'x.bmp': use a .gif, .png, .mp4, .webm or .html file"),
        (
            ["CartPole-v1", "--device", "abacus"],
            "device must be 'cpu', 'cuda', 'cuda:<index>' or 'auto', not 'abacus'.",
        ),
    ],
)
def test_play_refuses(words, message, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message, *words = (text.format(**trained) for text in (message, *words))
    assert message in refused("play", *words, "--episodes", 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_play_writes_an_animation(suffix, trained, tmp_path):
    path = tmp_path / "new" / f"play.{suffix}"
    words = ["--checkpoint", trained["four"], "--episodes", 1, "--seconds", 2, "--num-envs", 2]
    result = run("play", "ConnectFour-v0", *words, "-o", path)
    assert f"Wrote {path}." in result.stderr
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.stat().st_size > 1000


def test_an_animation_depends_on_the_seed_alone(trained, tmp_path):
    from baselines.report.match import arrange
    from baselines.report.video import film

    players = arrange("ConnectFour-v0", {}, str(trained["four"])).players
    files = [tmp_path / f"{k}.gif" for k in range(3)]
    for path, seed in zip(files, (0, 0, 9), strict=True):
        assert film("ConnectFour-v0", players, path, seconds=3, envs=1, seed=seed) == 6
    same, again, other = (path.read_bytes() for path in files)
    assert same == again != other
    with Image.open(files[0]) as image:
        assert (image.n_frames, image.size) == (6, (240, 240))


def test_a_faster_film_shows_steps_that_are_farther_apart(tmp_path):
    from baselines.report import video

    assert video.rate("CartPole-v1", 2.0) == (25, 4)  # a slower game gets more pictures a second first
    assert video.rate("TicTacToe-v0", 2.0) == (2 * video.rate("TicTacToe-v0")[0], 1)
    own, fast = (video.pictures("CartPole-v1", {}, envs=1, size=48, speed=speed) for speed in (1.0, 2.0))
    slow = [next(own).tobytes() for _ in range(5)]
    assert [next(fast).tobytes() for _ in range(3)] == slow[::2]
    later = video.pictures("CartPole-v1", {}, envs=1, size=48, start=4)
    assert [next(later).tobytes() for _ in range(3)] == slow[2:]
    video.film("TicTacToe-v0", {}, tmp_path / "fast.gif", seconds=1, size=48, speed=4.0)
    with Image.open(tmp_path / "fast.gif") as image:
        assert image.n_frames == round(video.rate("TicTacToe-v0", 4.0)[0])


def test_envs_that_are_over_stand_still_until_all_are():
    from baselines.report import video

    config = {"length": np.array([0.1, 5.0], np.float32)}  # a short pole falls long before a long one
    fps, stride = video.rate("CartPole-v1")
    assert (fps, stride) == (25, 2)
    shown = video.pictures("CartPole-v1", {}, config, envs=2, size=48)
    left, right = [], []
    for picture in (next(shown) for _ in range(80)):
        left.append(picture[:, :48].tobytes())
        right.append(picture[:, 50:].tobytes())
    shown.close()
    stops = next(k for k in range(1, 80) if left[k] == left[k - 1])
    ends = next(k for k in range(1, 80) if right[k] == right[k - 1])
    again = next(k for k in range(ends, 80) if right[k] != right[ends])
    assert stops < ends < again
    assert len({*left[stops:again]}) == 1
    assert len({*right[:ends]}) == ends
    assert again - ends == round(video.HOLD * fps)
    assert left[again] != left[ends]


def test_play_in_a_window_until_it_is_closed(monkeypatch):
    from baselines.report import video

    shown = []

    class Closing(video.Window):
        def show(self, frame):
            shown.append((self.title, self.fps, frame.shape, super().show(frame)))
            if len(shown) == 3:
                self._pygame.event.post(self._pygame.event.Event(self._pygame.QUIT))
            return shown[-1][3]

    monkeypatch.setattr(video, "Window", Closing)
    run("play", "TagGridWorld-v0", "--episodes", 1, "--num-envs", 1, "--window")
    assert shown == [("TagGridWorld-v0", 8, (240, 240, 3), True)] * 3 + [("TagGridWorld-v0", 8, (240, 240, 3), False)]


# ---- the rest ----


def test_without_a_command_there_is_help():
    out = python("-m", "gpuzoo", "--help").stdout
    for command in ("list", "doctor", "bench", "record", "new", "train", "play"):
        assert command in out
    assert run("--version").stdout == f"gpuzoo {gpuzoo.__version__}\n"
    assert "Missing argument" in run("record", status=2).stderr


def test_import_of_a_missing_module():
    assert "No module named 'no_such_module'" in refused("--import", "no_such_module", "list", status=1)


def test_traceback_on_request():
    with pytest.raises(ValueError, match="there is no game"):
        run("--traceback", "record", "CartPol", "-o", "x.gif")


def test_heavy_imports_stay_inside_the_commands():
    code = (
        "import sys, gpuzoo.tools.cli; print(sorted({'torch', 'cupy', 'PIL', 'pygame', 'imageio'} & set(sys.modules)))"
    )
    assert python("-c", code).stdout.strip() == "[]"


def test_bench_peers_runs():
    words = ["--num-envs", "8", "--seconds", "0.02", "--threads", "1", "--json"]
    done = python("-W", "ignore", "scripts/bench_peers.py", *words)
    assert done.returncode == 0, done.stderr
    machine, *rows = map(json.loads, done.stdout.splitlines())
    assert machine["kind"] == "machine"
    assert rows[0]["gpuzoo_is_faster_by"] == 1
    assert any("gymnasium" in row["name"] for row in rows)


@pytest.mark.rotates
def test_bench_games_runs():
    words = ["--only", "SimpleSpread", "--originals", sys.executable, "--seconds", "0.05", "--rounds", "1"]
    done = python("-W", "ignore", "scripts/bench_games.py", *words)
    assert done.returncode == 0, done.stderr
    row = done.stdout.splitlines()[-1].split("|")
    assert row[1].strip() == "`SimpleSpread-v0`"
    assert row[4].strip() == "MPE2"
    assert float(row[7].replace(",", "")) > 1
