"""The results that stand in the repository: every game has one, and it is what today's configs would train."""

from __future__ import annotations

import csv
import json
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
from baselines.ppo import Args

ROOT = Path(__file__).parents[1]


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import make_results

    return make_results


def runs() -> list[tuple[str, str]]:
    """What is to be trained: games, and how."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from make_results import variants

    return [(env_id, variant) for env_id in gpuzoo.ids() for variant in variants(env_id)]


RUNS = [pytest.param(*run, id="".join(run)) for run in runs()]


def result(name: str) -> dict[str, Any]:
    path = ROOT / "baselines" / "results" / f"{name}.json"
    assert path.is_file(), f"{name} has no result: run python scripts/make_results.py {name.removesuffix('-MAPPO')}"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize(("env_id", "variant"), RUNS)
def test_command_trains_what_was_trained(env_id: str, variant: str, maker: Any) -> None:
    found = result(env_id + variant)
    assert len(found["seeds"]) >= 5
    seeds: list[int] = []
    for command in found["commands"]:
        program, script, *words = shlex.split(command)
        assert (program, script) == ("python", "baselines/ppo.py")
        args = run.parse(Args, words)
        args.check()
        rerun = f"the config of {env_id} has changed: run python scripts/make_results.py {env_id}"
        assert maker.hyperparameters(args) == found["hyperparameters"], rerun
        assert args.iterations * args.num_envs * args.num_steps == found["steps_per_seed"]
        seeds += range(args.seed, args.seed + args.population)
    assert seeds == found["seeds"]


@pytest.mark.parametrize(("env_id", "variant"), RUNS)
def test_result_says_what_its_config_says(env_id: str, variant: str, maker: Any) -> None:
    found, about = result(env_id + variant), json.loads((ROOT / "baselines" / "configs" / f"{env_id}.json").read_text())
    assert found["reference"] == about["reference"]
    assert found["reference"].keys() == {"score", "what", "source"}
    assert [found["solved"], found["goal"]] == list(maker.verdict(gpuzoo.get(env_id), about, found["scores"]))
    assert found["episodes"] >= 200
    for measures in found["scores"].values():
        for score in measures.values():
            assert len(score["seeds"]) == len(found["seeds"])
            assert score["mean"] == pytest.approx(np.mean(score["seeds"]), rel=1e-3, abs=1e-4)  # of rounded numbers


@pytest.mark.parametrize(("env_id", "variant"), RUNS)
def test_curves_are_those_of_the_run(env_id: str, variant: str) -> None:
    found = result(env_id + variant)
    folder = ROOT / "baselines" / "results"
    rows = list(csv.DictReader((folder / f"{env_id}{variant}.csv").read_text().splitlines()))
    assert 0 < len(rows) <= 200
    assert int(rows[-1]["steps"]) == found["steps_per_seed"]
    groups = gpuzoo.get(env_id).agents(gpuzoo.get(env_id).Config())
    assert set(rows[0]) == {"steps"} | {f"{g}/seed {s}" for g in groups for s in found["seeds"]}
    assert (folder / f"{env_id}{variant}.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_else_lies_there() -> None:
    files = {p.name for p in (ROOT / "baselines" / "results").iterdir()}
    assert files == {f"{env_id}{variant}.{kind}" for env_id, variant in runs() for kind in ("json", "csv", "png")}


def test_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from results_table import PAGE, page

    assert PAGE.read_text() == page(), "run: python docs/results_table.py --write"


# The gradients of a population's parameters lie apart from each other, so that those of a member are neighbours.
@pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")
@pytest.mark.parametrize("env_id", ["SimpleSpread-v0", "ConnectFour-v0"])
def test_makes_results(env_id: str, maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "tree_search", lambda *_: {})
    found = maker.make(env_id, 2, tmp_path, quick=True, quiet=True)
    assert {p.suffix for p in tmp_path.iterdir()} == {".json", ".csv", ".png"}
    assert json.loads((tmp_path / f"{env_id}.json").read_text()) == found
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
