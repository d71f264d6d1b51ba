"""Sokoban's levels: ours can be played, and texts are read."""

from __future__ import annotations

import numpy as np
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.jumanji.sokoban import SETS, Sokoban, arrays_of, levels

LEVEL = "; 7\n#####\n#@$.#\n#####\n"


def test_our_levels_have_what_a_level_needs() -> None:
    """That they can be solved is shown where they are made: scripts/make_sokoban.py plays each solution."""
    own = levels("generated")
    fixed, variable = own["fixed"].reshape(1000, 100), own["variable"].reshape(1000, 100)
    for count, what in ((4, fixed == 2), (4, variable == 4), (1, variable == 3)):
        assert (what.sum(1) == count).all()
    assert not ((fixed > 0) & (variable > 0)).any()
    assert (own["fixed"][:, [0, -1]] == 1).all()
    assert (own["fixed"][:, :, [0, -1]] == 1).all()
    assert len(np.unique(fixed + 10 * variable, axis=0)) > 990


def test_levels_from_a_text_and_a_folder(tmp_path) -> None:
    (tmp_path / "valid").mkdir()
    for name in ("000", "001"):
        (tmp_path / "valid" / f"{name}.txt").write_text(2 * LEVEL)
    (tmp_path / "README.txt").write_text("no levels")
    options = {"num_rows": 3, "num_cols": 5, "num_boxes": 1}
    for path, count in ((tmp_path, 4), (tmp_path / "valid" / "000.txt", 2)):
        sim = Simulator(Sokoban, 2, device="cpu", instances=str(path), autoreset_mode="disabled", **options)
        assert sim.program.tables["given_fixed"].size == 15 * count
    sim.reset(seed=0)
    sim.arrays["action"][...] = 1
    sim.step()
    assert sim.arrays["terminated"].all()
    assert (sim.arrays["reward"] == np.float32(11) - np.float32(0.1)).all()


@pytest.mark.parametrize(
    ("text", "words"), [("", "must be texts"), ("###\n#?#\n", "must be texts"), (LEVEL + "; 8\n####\n", "equal size")]
)
def test_texts_that_are_no_levels(text, words) -> None:
    with pytest.raises(ValueError, match=words):
        arrays_of(text, "000.txt")


def test_a_folder_without_levels(tmp_path) -> None:
    with pytest.raises(ValueError, match="no files of levels"):
        Simulator(Sokoban, 1, device="cpu", instances=tmp_path)


def test_levels_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="need instances"):
        Simulator(Sokoban, 1, device="cpu", num_rows=5)
    wrong = {"fixed": np.zeros((1, 3, 5), np.uint8), "variable": np.zeros((1, 3, 5), np.uint8)}
    with pytest.raises(ValueError, match="instance 0: there must be one worker"):
        Simulator(Sokoban, 1, device="cpu", instances=wrong, num_rows=3, num_cols=5)


@pytest.mark.parametrize("name", sorted(SETS))
def test_boxobans_levels_are_files_behind_a_url(name, monkeypatch, tmp_path) -> None:
    """Without a network the error says what to do."""
    from urllib import request

    def offline(*_args: object, **_options: object) -> None:
        raise OSError("no network")

    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(request, "urlopen", offline)
    levels.cache_clear()
    with pytest.raises(ConnectionError, match=r"connect this machine once, or put a copy of the file at"):
        Simulator(Sokoban, 1, device="cpu", levels=name)
