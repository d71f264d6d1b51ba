"""The results that stand in the repository are what today's configs would train. A game need not have any."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import gpuzoo
from baselines import run
from baselines.report import curves, match
from baselines.report.evaluation import evaluate
from baselines.report.tournament import Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "baselines" / "results"


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import make_results

    return make_results


NAMES = sorted(path.stem for path in RESULTS.glob("*.json"))
RUNS = [pytest.param(*re.findall(r"^(.+?-v\d+)(.*)$", name)[0], id=name) for name in NAMES]


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize(("env_id", "variant"), RUNS)
def test_command_trains_what_was_trained(env_id: str, variant: str, maker: Any) -> None:
    found = result(env_id + variant)
    assert len(found["seeds"]) >= 5
    _, kind = run.algorithm(found["algorithm"])
    defaults = kind("CartPole-v1").about()  # of options that there were not when it was trained
    seeds: list[int] = []
    before = 0  # steps of lessons
    for command in found["commands"]:
        python, flag, module, *words = shlex.split(command)
        assert (python, flag, module) == ("python", "-m", f"baselines.{found['algorithm']}")
        args = run.parse(kind, words)
        args.check()
        if "-lesson-" in args.out:
            before += args.iterations * args.num_envs * args.num_steps
            continue
        rerun = f"the config of {env_id} has changed: run python scripts/make_results.py {env_id}"
        ours = maker.hyperparameters(args)
        assert ours == {name: defaults[name] for name in ours} | found["hyperparameters"], rerun
        assert before + args.iterations * args.num_envs * args.num_steps == found["steps_per_seed"]
        before = 0
        seeds += range(args.seed, args.seed + args.population)
    assert seeds == found["seeds"]


@pytest.mark.parametrize(("env_id", "variant"), RUNS)
def test_result_says_what_its_config_says(env_id: str, variant: str, maker: Any) -> None:
    found, about = result(env_id + variant), maker.about_game(env_id, variant)
    assert found["reference"] == about.get("reference")
    assert found["reference"] is None or found["reference"].keys() == {"score", "what", "source"}
    assert [found["solved"], found["goal"]] == list(maker.verdict(gpuzoo.get(env_id), about, found["scores"]))
    assert found["episodes"] >= 200
    assert ("expert" in found["scores"]) == bool(gpuzoo.get(env_id).expert)
    for measures in found["scores"].values():
        for score in measures.values():
            assert len(score["seeds"]) == len(found["seeds"])
            assert score["mean"] == pytest.approx(np.mean(score["seeds"]), rel=1e-3, abs=1e-4)  # of rounded numbers


@pytest.mark.parametrize(("env_id", "variant"), RUNS)
def test_curves_are_those_of_the_run(env_id: str, variant: str, maker: Any) -> None:
    found = result(env_id + variant)
    path = RESULTS / f"{env_id}{variant}.csv"
    steps, returns = curves.read(path)
    assert 0 < len(steps) <= curves.ROWS
    assert (np.diff(steps) > 0).all()
    assert steps[-1] == found["steps_per_seed"]
    learned_before = maker.lessons(env_id)[-1].get("freeze", [])
    groups = gpuzoo.get(env_id).agents(gpuzoo.get(env_id).Config())
    assert list(returns) == [group for group in groups if group not in learned_before]
    for values in returns.values():
        assert values.shape == (len(steps), len(found["seeds"]))
        assert np.isfinite(values).any(0).all()
    assert path.stat().st_size < 32 * 1024, "curves in the repository are small"


def test_nothing_else_lies_there(maker: Any) -> None:
    trained = {game + variant for game in gpuzoo.ids() for variant in maker.variants(game)}
    assert set(NAMES) <= trained, "results of games, or of ways to train them, that do not exist any more"
    assert {p.name for p in RESULTS.iterdir()} == {f"{name}.{kind}" for name in NAMES for kind in ("json", "csv")}


def test_the_score_of_an_expert_is_what_it_reaches(maker: Any) -> None:
    """On the seeds of the trained agents; the page names the program beside its score."""
    args = maker.made("Snake-v1", {})
    assert maker.expert_scores(args, 20, 1) == {"expert": {"agent": 143.0, "solved": 1.0}}
    assert maker.expert_scores(maker.made("TSP-v1", {}), 20, 1) == {}


def test_curves_come_back_as_they_were(tmp_path: Path) -> None:
    steps = np.arange(1, 451) * 64
    returns = {"cat": np.full((450, 2), np.nan), "agent": np.linspace(0, 1, 450)[:, None] * [1.0, -3.0]}
    returns["cat"][300:, 1] = 7.0
    curves.write(tmp_path / "curve.csv", steps, returns, [4, 9])
    head, *rows = (tmp_path / "curve.csv").read_text().splitlines()
    assert head == "steps,cat/seed 4,cat/seed 9,agent/seed 4,agent/seed 9"
    assert len(rows) == curves.ROWS
    at, read = curves.read(tmp_path / "curve.csv")
    assert (at[0], at[-1]) == (3 * 64, 450 * 64)
    assert list(read) == ["cat", "agent"]
    assert np.isnan(read["cat"][:, 0]).all()
    assert np.nanmin(read["cat"][:, 1]) == np.nanmax(read["cat"][:, 1]) == 7
    want = [returns["agent"][part].mean(0) for part in np.array_split(np.arange(450), curves.ROWS)]
    np.testing.assert_allclose(read["agent"], want, rtol=1e-4)


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import gen_results

    return gen_results


def test_page_has_all_results_and_names_the_games_without(writer: Any) -> None:
    text = writer.page(["CartPole-v1", "Pursuit-v0", "New-v0"])
    found = result("CartPole-v1")
    assert f"<strong>{writer.value(found['scores']['trained']['agent'])}</strong>" in text
    assert '<a href="CartPole-v1.html#results">CartPole-v1</a>' in text
    assert text.count("<tr class=") == 2, "one row for each game"
    assert text.count("Not trained yet: [New-v0](New-v0.md).") == 1
    assert "Not trained yet" not in writer.page(["CartPole-v1"])
    expert = "The game's expert, the program `gpuzoo.envs.jumanji.hamiltonian_cycle`, reaches: return of an agent 143"
    assert expert in writer.section("Snake-v1", {})
    assert writer.section("New-v0", {}).startswith("Not trained yet. `python scripts/make_results.py New-v0`")
    assert '<td data-sort="475.0">475</td><td data-sort="yes">yes</td>' in text
    section = writer.section("CartPole-v1", {"CartPole-v1": "curves/a.svg"})
    assert ":file: curves/a.svg" in section
    assert section.startswith(
        "`gpuzoo play CartPole-v1 --pretrained` shows trained agents. Mean returns in 1000 episodes"
    )
    assert found["commands"][0] in section
    assert "\n\nSolved. The goal is at least 475 for agent (trained)" in section


def test_page_has_the_leagues_of_alphazero(writer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert writer.page(["CartPole-v1"]).count("\n### ") == len([*writer.LEAGUES.glob("*.csv")]) >= 3
    monkeypatch.setattr(writer, "LEAGUES", tmp_path)
    assert "AlphaZero" not in writer.page(["CartPole-v1"])
    names, wins = ["after 5 minutes", "UCT, 10 playouts", "random"], np.array([[0, 2, 8], [7, 0, 9], [1, 1, 0.0]])
    draws = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0.0]])
    Table(names, [5, None, None], np.array([150.04, 310, 0.0]), wins, draws, "minutes").write(tmp_path)
    (tmp_path / "elo.csv").rename(tmp_path / "Chess-v0.csv")
    assert """### Chess-v0

| player | Elo | won | drawn | lost |
| --- | --- | --- | --- | --- |
| UCT, 10 playouts | 310 | 16 | 1 | 3 |
| after 5 minutes | 150 | 10 | 2 | 8 |
| random | 0 | 2 | 1 | 17 |

## How to read""" in writer.page(["CartPole-v1"])


def test_a_note_closes_the_section_of_its_game(writer: Any, maker: Any) -> None:
    note = maker.about_game("TagContinuous-v0")["note"]
    assert writer.section("TagContinuous-v0", {}).endswith(f"```\n\n{note}")
    assert writer.section("CartPole-v1", {}).endswith("```"), "CartPole's config has no note"


def test_a_game_without_a_goal_is_neither_solved_nor_not(
    writer: Any, maker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = result("Pong-v0")
    found["solved"], found["goal"] = maker.verdict(gpuzoo.get("Pong-v0"), {}, found["scores"])
    monkeypatch.setattr(writer, "results", lambda game: {game: found})
    assert ">no goal</td>" in writer.page(["Pong-v0"])
    assert "\n\nNo goal is stated.\n\n" in writer.section("Pong-v0", {})


def test_curves_are_drawn_once(writer: Any, tmp_path: Path) -> None:
    files = writer.draw(["CartPole-v1", "New-v0"], tmp_path)
    assert list(files) == ["CartPole-v1"]
    picture = tmp_path.parent / files["CartPole-v1"]
    assert picture.read_text().startswith('<svg class="chart" role="img" aria-label="Learning curves of CartPole-v1"')
    stamp = picture.stat().st_mtime_ns
    (tmp_path / "CartPole-v0-0123456789.png").touch()
    assert writer.draw(["CartPole-v1"], tmp_path) == files
    assert picture.stat().st_mtime_ns == stamp
    assert list(tmp_path.iterdir()) == [picture], "pictures of what is not there any more go"


def test_lessons_follow_each_other(maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of ``lessons`` in a game's config begins with the policies that learned before."""
    easier = {"total_steps": 2_000_000, "freeze": ["adversary"], "config": {"max_episode_steps": 10}}
    last = {"total_steps": 1_000_000, "random_opponents": {"agent": 0.5}}
    about = maker.about_game("SimplePush-v0") | {"lessons": [easier, last]}
    monkeypatch.setattr(maker, "about_game", lambda game, variant="": about)
    found = maker.make("SimplePush-v0", 1, tmp_path, quick=True, quiet=True, folder=tmp_path)
    folder = "out/SimplePush-v0-lesson-1"
    assert found["commands"][0].endswith(
        f"--seed 1 --total-steps 2000000 --freeze adversary --config.max_episode_steps 10 --out {folder}"
    )
    assert found["commands"][1].endswith(
        f"--random-opponents agent=0.5 --load agent={folder}/checkpoint.safetensors --out out/SimplePush-v0"
    )
    first, then = (json.loads((tmp_path / f"SimplePush-v0-1{x}/run.json").read_text()) for x in ("-lesson-1", ""))
    assert (first["config"], first["freeze"], first["load"]) == (easier["config"], ["adversary"], {})
    assert (then["config"], then["freeze"], list(then["load"])) == ({}, [], ["agent"])
    assert first["total_steps"] == 2 * then["total_steps"]
    assert found["steps_per_seed"] == 3 * then["total_steps"]
    assert curves.read(tmp_path / "SimplePush-v0.csv")[0][0] > first["total_steps"]


def test_policies_meet_their_past_selves(maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``past_selves`` each group plays as in the end, and the others as after each lesson before the last one."""
    about = maker.about_game("SimplePush-v0") | {"lessons": [{}, {}, {}], "past_selves": True}
    monkeypatch.setattr(maker, "about_game", lambda game, variant="": about)
    found = maker.make("SimplePush-v0", 1, tmp_path, quick=True, quiet=True, folder=tmp_path)

    def players(end: str) -> dict[str, Any]:
        return match.arrange("SimplePush-v0", {}, str(tmp_path / f"SimplePush-v0-1{end}" / run.CHECKPOINT)).players

    last = players("")
    for lesson in (1, 2):
        then = players(f"-lesson-{lesson}")
        assert any((last[group].flat != then[group].flat).any() for group in last), "something was learned"
        for group in ("adversary", "agent"):
            met = {**then, group: last[group]}
            returns = evaluate("SimplePush-v0", met, maker.QUICK_EPISODES, 1).returns
            scores = found["scores"].pop(f"{group} trained, others as after lesson {lesson}")
            for side, values in returns.items():
                assert scores[side]["seeds"] == [maker.rounded(float(values.mean(dtype=np.float64)))]
    assert not [scenario for scenario in found["scores"] if "lesson" in scenario]


def test_partners_are_no_rivals(maker: Any) -> None:
    two_sides = np.array([[50.0, -50.0, 50.0, -50.0], [-90.0, 90.0, -90.0, 90.0], [0.0, 0.0, 0.0, 0.0]])
    assert [maker.points_of(two_sides, seat).tolist() for seat in (0, 1)] == [[1, -1, 0], [-1, 1, 0]]
    apart = np.array([[2.0, 1.0, -3.0], [1.0, 1.0, -2.0], [0.0, 3.0, -3.0]])
    assert maker.points_of(apart, 0).tolist() == [1, 0, -1]
    assert maker.points_of(np.zeros((2, 2)), 1).tolist() == [0, 0], "nobody has won anything"


# The gradients of a population's parameters lie apart from each other, so that those of a member are neighbours.
@pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")
@pytest.mark.one_case
@pytest.mark.parametrize("env_id", ["SimpleSpread-v0", "ConnectFour-v0"])
def test_makes_results(env_id: str, maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "tree_search", lambda *_: {})
    runs = tmp_path / "runs" if env_id == "ConnectFour-v0" else None
    results = tmp_path / "results"
    results.mkdir()
    found = maker.make(env_id, 2, results, quick=True, quiet=True, folder=runs)
    assert {p.suffix for p in results.iterdir()} == {".json", ".csv"}
    assert json.loads((results / f"{env_id}.json").read_text()) == found
    if runs:
        for seed in (1, 2):
            assert found["commands"][seed - 1].endswith(f"--seed {seed} --out out/{env_id}-{seed}")
            assert (runs / f"{env_id}-{seed}" / "checkpoint.safetensors").is_file()
            assert json.loads((runs / f"{env_id}-{seed}" / "run.json").read_text())["resume"]
    for measures in found["scores"].values():
        for score in measures.values():
            first, second = score["seeds"]
            assert score["mean"] == pytest.approx((first + second) / 2, rel=1e-3, abs=1e-4)  # of rounded numbers
            assert score["standard_error"] == pytest.approx(abs(first - second) / 2, rel=1e-2, abs=1e-2)  # likewise
    if env_id == "ConnectFour-v0":
        for scores in found["scores"].values():
            wins, draws, losses = (np.array(scores[n]["seeds"]) for n in ("wins", "draws", "losses"))
            np.testing.assert_allclose(wins + draws + losses, 1)
            np.testing.assert_allclose(wins + draws / 2, scores["score"]["seeds"])
