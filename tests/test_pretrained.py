"""Pretrained agents: what a file has, who it plays, and that it plays as well as it says."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys.glide import Glide
from training import small
from typer.testing import CliRunner

torch = pytest.importorskip("torch")

import gpuzoo  # noqa: E402
from baselines import pretrained  # noqa: E402
from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report import checkpoint, match  # noqa: E402
from baselines.report import pretrained as files  # noqa: E402
from baselines.run import train  # noqa: E402
from gpuzoo import registry  # noqa: E402
from gpuzoo.tools import cli  # noqa: E402

ROOT = Path(__file__).parents[1]
FILES = {path.stem: path for path in sorted((ROOT / "baselines/pretrained").iterdir())}
EPISODES = 64


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import make_pretrained

    return make_pretrained


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> str:
    """A registered game for which nobody has trained agents."""
    monkeypatch.setitem(registry._REGISTRY, Glide.id, Glide)
    return Glide.id


def play(*words: object, status: int = 0) -> Any:
    result = CliRunner().invoke(cli.app, ["play", *map(str, words)], env={"NO_COLOR": "1", "COLUMNS": "400"})
    assert result.exit_code == status, result.output
    return result


def test_files_are_small_and_have_results() -> None:
    assert len(FILES) >= 10
    sizes = {name: path.stat().st_size for name, path in FILES.items()}
    # MAgent2's agents see most: the weights of two species' first layers are most of a file.
    assert max(sizes.values()) < 320 * 1024, sizes
    assert sum(sizes.values()) < 80 * 1024 * len(sizes)  # on average, as there are more games with each release
    for name, path in FILES.items():
        assert path.suffix == ".safetensors"
        assert (ROOT / f"baselines/results/{name}.json").is_file(), f"there are no results for {name}"


@pytest.mark.parametrize("name", FILES)
def test_files_have_weights_only_and_the_parameters_of_the_config(name: str, maker: Any) -> None:
    tensors, about = checkpoint.load_run(FILES[name])
    assert about["game"] == name
    last = maker.make_results.lessons(name)[-1]
    assert about["args"]["config"] == Args.of(name, **last).config, f"run python scripts/make_pretrained.py {name}"
    assert all("/weights/" in tensor for tensor in tensors)
    assert not {"out", "device"} & about["args"].keys()
    assert about["returns"]


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("name", FILES)
def test_agents_reach_the_returns_that_their_file_says(name: str, maker: Any) -> None:
    """In few episodes on other seeds: within four standard errors of so many episodes, and 2 % of the return."""
    said = checkpoint.load_run(FILES[name])[1]["returns"]
    found = maker.measured(name, FILES[name], EPISODES, seed=1)
    assert found.keys() == said.keys()
    for side, want in said.items():
        error = want["standard_error"] * (want["episodes"] / EPISODES) ** 0.5
        bound = 4 * np.hypot(error, want["standard_error"]) + 0.02 * abs(want["mean_return"])
        assert found[side]["mean_return"] == pytest.approx(want["mean_return"], abs=bound), side


def test_pretrained_agents_play_on_the_command_line_and_in_python() -> None:
    words = ["MatrixGame-v0", "--episodes", 8, "--json"]
    sides = json.loads(play(*words, "--pretrained").stdout)["sides"]
    assert sides["player"]["player"] == "pretrained"
    assert sides["player"]["mean_return"] > 99
    assert json.loads(play(*words, "--checkpoint", "pretrained").stdout)["sides"] == sides
    mixed = json.loads(play(*words, "-p", "player_0=pretrained").stdout)["sides"]
    assert [side["player"] for side in mixed.values()] == ["pretrained", "random"]
    (policy,) = pretrained("MatrixGame-v0").values()
    assert policy.flat.dtype == torch.float32


def test_training_goes_on_from_pretrained_agents() -> None:
    args = small("MatrixGame-v0", load={"player": "pretrained"}, freeze=("player",))
    policy = train(PPO, args, quiet=True).policies["player"]
    assert torch.equal(policy.flat, pretrained("MatrixGame-v0")["player"].flat)


def test_a_game_without_pretrained_agents_is_refused_with_a_sentence(untrained: str) -> None:
    told = "there are no pretrained agents for Glide-v0: 'gpuzoo train Glide-v0' trains some."
    assert told in play(untrained, "--pretrained", status=2).stderr
    with pytest.raises(ValueError, match=r"no pretrained agents for Glide-v0.* CartPole-v1, "):
        pretrained(untrained)
    asked = play("MatrixGame-v0", "--pretrained", "--checkpoint", "a.safetensors", status=2).stderr
    assert "give either --pretrained or --checkpoint a.safetensors, not both." in asked


def test_what_is_written_plays_as_the_run_it_comes_from(tmp_path: Path) -> None:
    result = train(PPO, small("MatrixGame-v0", out=str(tmp_path), normalize_observations=True), quiet=True)
    whole, short = tmp_path / "checkpoint.safetensors", tmp_path / "short.safetensors"
    for dtype, bound in ((torch.float32, 0.0), (torch.float16, 1e-3)):
        files.write(whole, short, {"player": {}}, dtype)
        loaded = match.arrange("MatrixGame-v0", {}, str(short)).players["player"]
        assert loaded is not None
        torch.testing.assert_close(loaded.flat, result.policies["player"].flat, rtol=bound, atol=bound)
        torch.testing.assert_close(loaded.scale.mean, result.policies["player"].scale.mean, rtol=0, atol=0)
    assert short.stat().st_size < whole.stat().st_size / 4
    assert checkpoint.load_run(short)[1]["returns"] == {"player": {}}
    short.write_bytes(short.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(ValueError, match="damaged"):
        match.arrange("MatrixGame-v0", {}, str(short))


def test_a_population_is_refused(tmp_path: Path) -> None:
    args = small("MatrixGame-v0", out=str(tmp_path), population=2, total_steps=128)
    train(PPO, args, quiet=True)
    with pytest.raises(ValueError, match="holds 2 members: train one for a pretrained agent"):
        files.write(tmp_path / "checkpoint.safetensors", tmp_path / "short.safetensors")


def test_the_script_trains_the_better_variant_from_its_best_seed_on(maker: Any, tmp_path: Path, untrained: str) -> None:
    best = maker.best("SimpleSpread-v0")
    scores = json.loads((ROOT / f"baselines/results/SimpleSpread-v0{best.variant}.json").read_text())
    by_seed = dict(zip(scores["seeds"], scores["scores"]["trained"]["agent"]["seeds"], strict=True))
    assert [by_seed[seed] for seed in best.seeds] == sorted(by_seed.values(), reverse=True)
    assert best.enough < scores["scores"]["trained"]["agent"]["mean"]
    args = maker.arguments(best, 3, tmp_path)
    assert (args.seed, args.population, args.critic == "central") == (3, 1, best.variant == "-MAPPO")
    with pytest.raises(ValueError, match="has no results"):
        maker.best(untrained)


def test_the_script_trains_until_a_seed_is_good_enough(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = dataclasses.replace(maker.best("MatrixGame-v0"), seeds=[5, 7, 9], enough=90.0)
    reached = {5: 1.0, 7: 95.0, 9: 100.0}
    monkeypatch.setattr(maker, "arguments", lambda chosen, seed, out, **_: small(
        "MatrixGame-v0", seed=seed, out=str(tmp_path / str(seed)), resume=True))  # fmt: skip
    monkeypatch.setattr(maker.make_results, "score", lambda *a: {best.scenario: {best.measure: reached[a[-1]]}})
    returns = maker.make(best, tmp_path, tmp_path, quiet=True)
    assert {path.name for path in tmp_path.iterdir()} == {"5", "7", "MatrixGame-v0.safetensors"}
    about = checkpoint.load_run(tmp_path / "MatrixGame-v0.safetensors")[1]
    assert (about["args"]["seed"], about["returns"]) == (7, returns)


def test_the_documentation_films_pretrained_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import films

    monkeypatch.setattr(films, "SECONDS", 0.5)
    monkeypatch.setattr(films, "MOST_SECONDS", 0.5)
    monkeypatch.setattr(films, "LEAST", 5)
    assert len(films.filmed(gpuzoo.get("Hanabi-v0"), films.PRETRAINED)[0]) == 5
    env = gpuzoo.get("CartPole-v1")
    trained, fps, best = films.filmed(env, films.PRETRAINED)
    assert best
    assert best.start is not None, "an episode of 500 steps does not fit"
    assert len(trained) == round(0.5 * fps) > 5
    tour = gpuzoo.get("TSP-v1")
    monkeypatch.setattr(films, "MOST_SECONDS", 20 / tour.render_fps / 1.5)
    shown, fps, best = films.filmed(tour, films.PRETRAINED)
    assert best, "its 20 steps fit if the film is faster"
    assert fps == pytest.approx(1.5 * tour.render_fps)
    assert len(shown) == 20 + round(films.HOLD * fps)
    at_random, _ = films._random(env)
    assert trained[0].shape == at_random[0].shape
    assert not np.array_equal(trained[-1], at_random[len(trained) - 1])
