"""Generated physics against MuJoCo's own steps, recorded by ``tests/reference/record_mujoco.py``.

**Double precision.** The text that runs in float32 is compiled with doubles too, and then is MuJoCo's step but for
rounding: 1e-10, relative to the largest velocity. So the method is exact, and what float32 does wrong is rounding. Of a
capsule and a cylinder MuJoCo itself finds the nearest points to 1e-8 only, so ``tests/reference/nearest.py`` recorded
those steps.

**float32.** Rounding a state to float32 moves each of its numbers by up to 2^-24 of itself, an ulp of the state, and
the exact step carries that on: the largest change of the result under random changes of that size, taken in double
precision, is what nobody can do better than. A step is a chain of some hundred roundings behind each number of the
result, each like such a change, of unlike signs. So the bound is `CHAIN` times that largest change, plus an ulp of the
result's own scale: of velocities before and after, and of how much they change.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest
from physics_steps import Steps

from gpuzoo.physics.expressions import Expr, Trace, constants
from gpuzoo.physics.generate import generate
from gpuzoo.physics.inertia import factor, multiply
from gpuzoo.physics.model import FACTORS, Model, load

RECORDED = np.load(Path(__file__).parent / "reference" / "mujoco_steps.npz")
ELEMENTS = np.load(Path(__file__).parent / "reference" / "mujoco_elements.npz")
MODELS = sorted(name.removesuffix("_ctrl") for name in RECORDED.files if name.endswith("_ctrl"))
#: always tested: RK4, and contacts of the ground and between bodies; the others come by turns
ALWAYS = "hopper"
EACH = [
    name if name == ALWAYS else pytest.param(name, marks=pytest.mark.rotates)
    for name in [*MODELS, *sorted(name.removesuffix("_ctrl") for name in ELEMENTS.files if name.endswith("_ctrl"))]
]
ULP = 2.0**-23
CHAIN = 64


def model_of(name: str) -> Model:
    return load(name) if name in MODELS else Model.from_json(str(ELEMENTS[f"{name}_model"]))


def recorded(name: str) -> list[np.ndarray]:
    found = RECORDED if name in MODELS else ELEMENTS
    return [found[f"{name}_{key}"] for key in ("qpos", "qvel", "ctrl", "next_qpos", "next_qvel")]


def largest(x: np.ndarray) -> np.ndarray:
    return np.abs(x).max(1)


@pytest.mark.parametrize("name", EACH)
def test_a_step_is_mujocos(name):
    model = model_of(name)
    assert model.version == str(RECORDED["version"])
    qpos, qvel, ctrl, next_qpos, next_qvel = recorded(name)
    exact = Steps(model, double=True, optimise="-O0")
    ours_qpos, ours_qvel, _ = exact(qpos, qvel, ctrl)
    scale = 1 + largest(qvel) + largest(next_qvel)
    assert np.all(largest(ours_qvel - next_qvel) < 1e-10 * scale)
    assert np.all(largest(ours_qpos - next_qpos) < 1e-10 * scale)

    single_qpos, single_qvel, _ = Steps(model, optimise="-O1")(qpos, qvel, ctrl)
    rng = np.random.default_rng(0)
    moved_qpos, moved_qvel = np.zeros(len(qpos)), np.zeros(len(qpos))
    for _ in range(8):
        qpos_off, qvel_off, ctrl_off = (x * (1 + rng.choice([-ULP, ULP], x.shape)) for x in (qpos, qvel, ctrl))
        changed_qpos, changed_qvel, _ = exact(qpos_off, qvel_off, ctrl_off)
        moved_qpos = np.maximum(moved_qpos, largest(changed_qpos - ours_qpos))
        moved_qvel = np.maximum(moved_qvel, largest(changed_qvel - ours_qvel))
    scale += largest(next_qvel - qvel)
    assert np.all(largest(single_qvel - next_qvel) < CHAIN * (moved_qvel + ULP * scale))
    assert np.all(largest(single_qpos - next_qpos) < CHAIN * (moved_qpos + ULP * (1 + largest(next_qpos))))


@pytest.mark.parametrize("name", EACH)
def test_bits_do_not_depend_on_the_width(name):
    """Nor on the neighbours: the states lie in other packs, in another order."""
    model = model_of(name)
    qpos, qvel, ctrl, *_ = recorded(name)
    order = np.random.default_rng(0).permutation(len(qpos))
    ours = Steps(model, optimise="-O1")(qpos[order], qvel[order], ctrl[order], steps=3)
    for width in (1, 8):  # by itself it is 16, 8 or 4, as the machine's registers are
        other = Steps(model, width=width, optimise="-O0")
        assert other.width == width
        for a, b in zip(ours, other(qpos, qvel, ctrl, steps=3), strict=True):
            np.testing.assert_array_equal(a.view(np.uint32), b[order].view(np.uint32))


@pytest.mark.rotates
def test_constants_may_differ_from_env_to_env():
    """Factors of gravity, masses, friction, damping and gear, and what MuJoCo derives from masses."""
    qpos, qvel, ctrl, *_ = recorded("half_cheetah")
    next_qpos, next_qvel, factors = (RECORDED[f"varied_{key}"] for key in ("next_qpos", "next_qvel", "factors"))
    ours = Steps(load("half_cheetah"), double=True, optimise="-O1", vary=FACTORS)
    ours_qpos, ours_qvel, _ = ours(qpos, qvel, ctrl, factors=factors)
    scale = 1 + largest(qvel) + largest(next_qvel)
    assert np.all(largest(ours_qvel - next_qvel) < 1e-10 * scale)
    assert np.all(largest(ours_qpos - next_qpos) < 1e-10 * scale)
    plain = [RECORDED[f"half_cheetah_{key}"] for key in ("next_qpos", "next_qvel")]
    for a, b in zip(plain, ours(qpos, qvel, ctrl, factors=np.ones_like(factors)), strict=False):
        assert np.all(largest(a - b) < 1e-10 * scale)


def test_a_models_file_holds_the_model():
    model = load("ant")
    again = Model.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    assert (model.nq, model.nv, model.nu, model.nbody) == (15, 14, 8, 14)
    with pytest.raises(ValueError, match="the model has no site 'nose'; there are:"):
        model.index("site", "nose")


@pytest.mark.parametrize("name", MODELS)
def test_text_is_bounded(name):
    """What g++ compiles in 2 seconds, Ant's and Pusher's in 4, a person's in 10."""
    larger = {"ant": 400_000, "pusher": 400_000, "humanoid": 640_000, "humanoid_standup": 640_000}
    assert len(generate(load(name))) < larger.get(name, 260_000)


@pytest.mark.parametrize("module", ["inertia", "weights"])
def test_text_does_not_depend_on_how_python_adds(monkeypatch, module):
    """Since Python 3.12 `sum` of floats carries the rounding errors along."""

    def carrying(numbers, start=0):
        numbers = list(numbers)
        return math.fsum(numbers) if {type(x) for x in numbers} == {float} else sum(numbers, start)

    model, options = load("ant"), ((), False, ("mass",) if module == "weights" else ())
    text = generate(model, *options)
    monkeypatch.setattr(importlib.import_module(f"gpuzoo.physics.{module}"), "sum", carrying, raising=False)
    assert generate(model, *options) == text


def test_unsupported_things_are_named():
    model = load("half_cheetah")
    solimp = model.jnt_solimp.copy()
    solimp[:, 4] = 2.5
    odd = Model.make({**{k: getattr(model, k) for k in model.__dataclass_fields__}, "jnt_solimp": solimp})
    with pytest.raises(ValueError, match=r"not supported: the power 2\.5 in solimp"):
        generate(odd)
    with pytest.raises(ValueError, match="'xquat torso' cannot be watched"):
        generate(model, ("xquat torso",))


def test_constants_fold_zeros_vanish_and_equals_are_one():
    t = Trace()
    x, y = t.read("x"), t.read("y")
    assert x * 0.0 == 0.0
    assert x + 0.0 is x
    assert (x * 2.0) * 3.0 is x * 6.0
    assert x - x == 0.0
    assert 0.0 - (0.0 - x) is x
    assert x * y is y * x
    assert isinstance(x * y + 1.0, Expr)
    assert t.name(x * y + 1.0) == t.name(1.0 + y * x)
    assert sum("fma" in line for line in t.block.lines) == 1
    assert 3.0 * constants([1e-17])[0] == 0.0


def test_what_a_loop_does_not_change_is_computed_before_it():
    t = Trace()
    x = t.read("x")
    with t.within("for (;;)", loop=True) as body:
        turning = t.read("y")
        t.name(x * 2.0 + turning)
        t.name(x * x)
    assert any(line.endswith(f"= {x.name} * {x.name};") for line in t.block.lines)
    assert not any(f"{x.name} * {x.name}" in line for line in body.lines)


def test_factorisation_fills_in_what_it_needs():
    """An arrow that points the wrong way: every entry fills in."""
    rng = np.random.default_rng(0)
    full = rng.normal(size=(5, 5))
    full = full @ full.T + 5 * np.eye(5)
    entries = {(i, j): float(full[i, j]) for i in range(5) for j in range(i + 1) if i == j or j == 0 or i == 4}
    dense = np.zeros((5, 5))
    for (i, j), value in entries.items():
        dense[i, j] = dense[j, i] = value
    x = [float(v) for v in rng.normal(size=5)]
    np.testing.assert_allclose(dense @ np.array(factor(entries, 5).solve(x), float), x)
    np.testing.assert_allclose(np.array(multiply(entries, x), float), dense @ x)
