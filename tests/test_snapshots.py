"""Snapshots and states: copies of one env with chances of their own, and what is refused before anything is written."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd
from toys.nim import Nim

from gpuzoo import Simulator
from gpuzoo.core.snapshot import Snapshot
from gpuzoo.testing.tools import assert_same, pick, read


def make(game: Any = Herd, num_envs: int = 4, seed: int = 0, **config: Any) -> Simulator:
    sim = Simulator(game, num_envs, device="cpu", **config)
    sim.reset(seed=seed)
    sim.rollout(5)
    return sim


def everything(sim: Simulator) -> dict[str, Any]:
    return {**{k: v.copy() for k, v in sim.arrays.items()}, **{f"param_{k}": v for k, v in sim.params.items()}}


# ---- copies of one env ----


def test_one_board_plays_512_games() -> None:
    """Without seeds the copies are one game; with seeds each has chances of its own, and the bits of its seed."""
    source = make(Nim)
    board, sim = source.snapshot(2), Simulator(Nim, 512, device="cpu", autoreset_mode="disabled")
    sim.restore(board)
    assert_same("copies", read(source, [2] * 512), read(sim))
    sim.rollout(1)
    assert (sim.arrays["left"] == sim.arrays["left"][0]).all()
    sim.restore(board, seed=1000)
    assert_same("copies", read(source, [2] * 512), read(sim))
    assert sim.arrays["seed"].tolist() == list(range(1000, 1512))
    sim.rollout(8)
    assert sim.arrays["waiting"].all()
    winners = sim.arrays["final_return"][:, 0]
    assert 0.1 < (winners > 0).mean() < 0.9

    some = make(Nim, 6, seed=77)
    kept = read(some, [0, 2, 5])
    some.restore(board, envs=[4, 1, 3], seed=[1300, 1000, 1301])
    assert_same("the others", kept, read(some, [0, 2, 5]))
    some.autoreset_mode = "disabled"
    some.rollout(8)
    assert_same("envs of equal seeds", pick(read(sim), [300, 0, 301]), read(some, [4, 1, 3]))


@pytest.mark.parametrize("seed", [None, 9, [5, 3, 5, 2**63]])
def test_as_many_envs_as_the_snapshot_has_take_seeds_too(seed: Any) -> None:
    source, sim = make(seed=3), Simulator(Herd, 4, device="cpu")
    sim.restore(source.snapshot(), seed=seed)
    want = source.arrays["seed"].tolist() if seed is None else [9, 10, 11, 12] if seed == 9 else seed
    assert sim.arrays["seed"].tolist() == want
    sim.rollout(3)
    source.rollout(3)
    assert (read(sim)["seen"] == read(source)["seen"]).all() == (seed is None)


def test_one_snapshot_has_its_parameters_in_all_envs() -> None:
    source = make(bite=np.array([1.0, 2, 3, 4]))
    sim = make(num_envs=3, bite=np.array([7.0, 8, 9]))
    sim.restore(source.snapshot(1), envs=[2, 0])
    assert sim.params["bite"].tolist() == [2, 8, 2]


# ---- what is refused ----


def without(snapshot: Snapshot, name: str, **changed: Any) -> Snapshot:
    arrays = {k: v for k, v in snapshot.arrays.items() if k != name}
    return dataclasses.replace(snapshot, arrays={**arrays, **changed})


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "one env twice": (lambda s: s, {"envs": [0, 1, 2, 1]}, "each env can be named once, but envs names 1 twice"),
    "one env twice, from the end": (lambda s: s, {"envs": [0, 1, 2, -3]}, "envs names 1 twice"),
    "a missing field": (lambda s: without(s, "cell"), {}, "the snapshot has no array 'cell'"),
    "a missing array of the engine": (lambda s: without(s, "alive"), {}, "the snapshot has no array 'alive'"),
    "missing times": (lambda s: without(s, "elapsed_steps"), {}, "the snapshot has no array 'elapsed_steps'"),
    "a missing parameter": (lambda s: without(s, "param_bite"), {}, "the snapshot has no array 'param_bite'"),
    "another shape": (lambda s: without(s, "", cell=s.arrays["cell"][:, :3]), {}, r"cell must have shape \(4, 5\)"),
    "too few rows": (lambda s: without(s, "", trace=s.arrays["trace"][:3]), {}, r"trace must have shape \(4,\), not"),
    "numbers that overflow": (
        lambda s: without(s, "", tired=s.arrays["tired"] + np.int64(300)), {}, r"tired cannot be 3\d\d: its dtype is"
    ),
    "negative times": (
        lambda s: without(s, "", elapsed_steps=np.full(4, -2, np.int32)), {}, "elapsed_steps cannot be -2"
    ),
    "parameters of another shape": (
        lambda s: without(s, "", param_bite=np.ones(3, np.float32)), {}, r"bite must have shape \(4,\), not \(3,\)"
    ),
    "infinite parameters": (
        lambda s: without(s, "", param_bite=np.array([1, 2, 3, np.inf], np.float32)), {}, "bite must be at .*, not inf"
    ),
    "too few seeds": (lambda s: s, {"seed": [1, 2, 3]}, "4 envs need as many seeds, not 3"),
    "a negative seed": (lambda s: s, {"seed": [1, 2, 3, -4]}, "seed must not be negative: -4"),
    "neither one env nor as many": (lambda s: s, {"envs": [0, 1]}, "the snapshot has 4 envs, but 2 are to be"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_restore_writes_nothing(case: str) -> None:
    change, arguments, message = REFUSED[case]
    snapshot = change(make(seed=8, bite=np.array([1.0, 2, 3, 4])).snapshot())
    sim = make(bite=np.array([1.0, 2, 3, 5]))
    before, cfg = everything(sim), sim.cfg
    with pytest.raises(ValueError, match=message):
        sim.restore(snapshot, **arguments)
    assert_same("arrays", before, everything(sim))
    assert sim.cfg == cfg
    fresh = Simulator(Herd, 4, device="cpu", bite=np.array([1.0, 2, 3, 5]))
    with pytest.raises((ValueError, RuntimeError)):
        fresh.restore(snapshot, **arguments)
    assert not fresh.was_reset


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tired": [[1, 256]]}, "tired cannot be 256: its dtype is uint8"),
        ({"tired": [[1, -1]]}, "tired cannot be -1: its dtype is uint8"),
        ({"last": [[0, 0, 128]]}, "last cannot be 128: its dtype is int8"),
        ({"caught": [2**31]}, f"caught cannot be {2**31}: its dtype is int32"),
        ({"caught": [1.5]}, r"caught cannot be 1\.5: its dtype is int32"),
        ({"caught": [np.nan]}, "caught cannot be nan: its dtype is int32"),
        ({"mixed": [[0, 0, 0, 0, -1]]}, "mixed cannot be -1: its dtype is uint32"),
        ({"trace": [-1]}, "trace cannot be -1: its dtype is uint64"),
        ({"quiet": [2]}, "quiet cannot be 2: its dtype is bool"),
        ({"seen": np.full((1, 5, 2), 1e39)}, r"seen cannot be 1e\+39: its dtype is float32"),
        ({"elapsed_steps": [-1]}, "elapsed_steps cannot be -1: it counts from 0"),
        ({"elapsed_steps": np.full(1, -1, np.int32)}, "elapsed_steps cannot be -1"),
    ],
)
def test_a_state_that_overflows_is_refused_and_writes_nothing(values: dict[str, Any], message: str) -> None:
    sim = make()
    before = everything(sim)
    with pytest.raises(ValueError, match=message):
        sim.set_state({"cell": np.zeros((1, 5)), **values}, envs=1)
    assert_same("arrays", before, everything(sim))


def test_numbers_of_other_types_that_fit_are_taken() -> None:
    sim = make()
    values = {"tired": [[255.0, True]], "trace": [2**64 - 1], "seen": np.full((1, 5, 2), np.inf), "quiet": [1]}
    sim.set_state(values, envs=1)
    state = sim.state(1)
    assert state["tired"].tolist() == [[255, 1]]
    assert state["trace"].tolist() == [2**64 - 1]
    assert np.isinf(state["seen"]).all()
    assert state["quiet"].tolist() == [True]


def test_text_is_no_state_and_an_env_has_one() -> None:
    sim = make(Glide)
    before = everything(sim)
    with pytest.raises(TypeError, match="steps must be numbers that fit into int32"):
        sim.set_state({"steps": np.array(["a"])}, envs=0)
    with pytest.raises(ValueError, match="each env can be named once, but envs names 3 twice"):
        sim.set_state({"steps": [1, 2]}, envs=[3, 3])
    assert_same("arrays", before, everything(sim))
