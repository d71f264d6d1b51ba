"""Random actions that rules choose: with equal chances, and what is seen after a rollout is what single steps show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpuzoo import ids
from gpuzoo.core.codegen import program
from gpuzoo.core.dialect import DialectError, check_rules, inline_includes
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.animal_shogi.animal_shogi import AnimalShogi
from gpuzoo.envs.chess.chess import Chess
from gpuzoo.registry import get

CHOOSERS = [name for name in ids() if get(name).chooses]
RULES = """GZ void reset(Env e) {}
GZ void step(Env e) {}
GZ void observe(Env e) {}
"""


def test_all_legal_actions_have_the_same_chance() -> None:
    s = Simulator(Chess, 4000, device="cpu")
    s.reset(seed=0)
    s.random_actions()
    actions, counts = np.unique(s.arrays["action"][:, 0], return_counts=True)
    assert {*actions} == {*np.flatnonzero(s.arrays["action_mask"][0, 0])}
    assert ((counts - 200) ** 2 / 200).sum() < 43.8  # chi-squared with 19 degrees of freedom: one in a thousand
    assert not s.arrays["action"][:, 1].any()


@pytest.mark.one_case
@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize("mode", ["same_step", "next_step", "disabled"])
def test_a_rollout_is_many_steps(name: str, mode: str) -> None:
    """Games end between its steps and in its last one."""
    sims = [Simulator(get(name), 24, device="cpu", autoreset_mode=mode) for _ in range(2)]
    for s in sims:
        s.reset(seed=7)
    for steps in (1, 60, 400, 3):
        sims[0].rollout(steps)
        for _ in range(steps):
            sims[1].random_actions()
            legal = np.take_along_axis(sims[1].arrays["action_mask"], sims[1].arrays["action"].astype(int), 2)[..., 0]
            turn = get(name).turn
            rows, mover = np.arange(24), 0 if turn is None else sims[1].arrays[turn]
            none = ~sims[1].arrays["action_mask"][rows, mover].any(1)
            assert (legal[rows, mover] | none | (sims[1].arrays["waiting"] != 0)).all()
            sims[1].step()
        over = sims[1].arrays["ended"] != 0  # the others' final observations are of an earlier step
        for key in sims[0].arrays:
            some = over if key.startswith("final") else slice(None)
            np.testing.assert_array_equal(sims[0].arrays[key][some], sims[1].arrays[key][some], err_msg=key)


def test_rules_must_choose(tmp_path: Path) -> None:
    rules = tmp_path / "some.cuh"
    for text in (RULES, RULES + "GZ int choose(Env e, int a, u32 bits) { once(e, [=] {}); return 0; }\n"):
        rules.write_text(text)
        with pytest.raises(DialectError, match="must define GZ int choose"):
            check_rules(inline_includes(rules), chooses=True)


def test_only_what_has_masks_is_chosen() -> None:
    class Unmasked(AnimalShogi):
        id = "Unmasked-v0"
        action_mask = False

        @classmethod
        def source(cls) -> Path:
            return AnimalShogi.source()

    with pytest.raises(ValueError, match="only games with action masks"):
        program(Unmasked(), AnimalShogi.Config())
