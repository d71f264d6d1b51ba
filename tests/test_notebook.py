"""How envs look in a notebook."""

from __future__ import annotations

import base64
import copy
import io
import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from PIL import Image

import gpuzoo


def pictures(text: str, kind: str) -> list[Any]:
    found = re.findall(rf"data:image/{kind};base64,([A-Za-z0-9+/=]+)", text)
    return [Image.open(io.BytesIO(base64.b64decode(data))) for data in found]


@pytest.mark.parametrize(("count", "side"), [(1, 240), (3, 240), (4, 302), (100, 406)])
def test_a_batch_shows_some_of_its_envs(count: int, side: int) -> None:
    envs = gpuzoo.make("SimpleSpread-v0", count, device="cpu", N=2, local_ratio=0.25)
    assert not pictures(envs._repr_html_(), "png")  # there is nothing to see yet
    envs.reset(seed=0)
    text = envs._repr_html_()
    assert [image.size for image in pictures(text, "png")] == [(side, side)]
    for words in ("SimpleSpread-v0", "2 agent", "N=2", "local_ratio=0.25", "same", f"{count:,} on cpu"):
        assert words.lower() in text.lower(), words
    envs.close()
    assert "closed" in envs._repr_html_()


@pytest.mark.parametrize("make", [
    lambda: gpuzoo.make_vec("CartPole-v1", 4, device="cpu"),
    lambda: gymnasium.make("gpuzoo/CartPole-v1").unwrapped,
    lambda: gpuzoo.parallel_env("SimpleTag-v0"),
])  # fmt: skip
def test_every_interface_shows_itself(make: Any) -> None:
    envs = make()
    envs.reset(seed=0)
    assert len(pictures(envs._repr_html_(), "png")) == 1


def test_text_of_parameters_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = gpuzoo.make("SimpleSpread-v0", 1, device="cpu", N=2)
    cfg = copy.copy(envs.simulator.cfg)  # the other one is remembered with the compiled program
    vars(cfg)["N"] = "<script>"
    monkeypatch.setattr(envs.simulator, "cfg", cfg)
    assert "<script>" not in envs._repr_html_()
    assert "&lt;script&gt;" in envs._repr_html_()


def test_show_moves_and_leaves_the_envs_alone() -> None:
    envs = gpuzoo.make("CartPole-v1", 2, device="cpu", gravity=gpuzoo.Uniform(2, 3))
    envs.reset(seed=0)
    before = {name: np.array(value) for name, value in envs.simulator.state().items()}
    shown = gpuzoo.show(envs, steps=5)
    (image,) = pictures(shown._repr_html_(), "gif")
    assert image.n_frames > 1
    assert repr(shown).startswith("CartPole-v1")
    for name, value in envs.simulator.state().items():
        assert (value == before[name]).all()
    with gpuzoo.record(envs) as recording:
        envs.step(envs.random_actions())
    assert gpuzoo.show(recording.trajectory()).gif.startswith(b"GIF")
    assert gpuzoo.show("CartPole-v1", steps=1, envs_shown=1).gif.startswith(b"GIF")
    with pytest.raises(TypeError, match="a game is given by its id"):
        gpuzoo.show(3)  # type: ignore[arg-type]
