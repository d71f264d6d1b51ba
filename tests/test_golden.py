"""Golden rollouts: a game does what it did when its version was published.

A game gets its file at its first release, by ``python scripts/make_golden.py``; until then its rules may change. A file
is never edited: changed behaviour is a new ``-vN``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import GOLDEN, Game

import gpuzoo

ROOT = Path(__file__).parents[1]


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import make_golden

    return make_golden


def test_files_are_of_games_that_exist() -> None:
    gone = {path.stem for path in GOLDEN.glob("*.json")} - set(gpuzoo.ids())
    assert not gone, "remove the files of games that are gone"


def test_golden_rollout(published_game: Game, maker: Any) -> None:
    want, got = json.loads((GOLDEN / f"{published_game.id}.json").read_text()), maker.rollout(published_game)
    for steps, values in want["steps"].items():
        assert got["steps"][steps] == values, (
            f"{published_game.id} after {steps} steps is not what it was: give the changed game a new version"
        )
    assert got == want


def test_files_that_exist_are_never_changed(maker: Any, tmp_path: Path) -> None:
    published = tmp_path / "CartPole-v1.json"
    published.write_text("published")
    (new,) = maker.make(["CartPole-v1", "Pendulum-v1"], tmp_path)
    assert new == tmp_path / "Pendulum-v1.json"
    assert new.read_bytes() == (maker.FOLDER / new.name).read_bytes()
    assert published.read_text() == "published"
    assert maker.make(["CartPole-v1", "Pendulum-v1"], tmp_path) == []
