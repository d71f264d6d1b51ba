"""Games about models of one's own: `gpuzoo.from_mjcf`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.physics.model import Model, load

RULES = """
GZ void reset(Env e) { rest(e); }
GZ void step(Env e) {
  const Physics s = move(e);
  e.reward = e.cfg.weight * Pack(s.xpos_pole[0]);
  e.steps[0] += 1.f;
  e.terminated = e.diverged | (abs(e.qpos[1]) > e.cfg.widest);
}
GZ void observe(Env e) { see(e); }
"""
ARGUMENTS = {
    "id": "Own-v0",
    "observe": ("qvel", "qpos[1:]", "xpos pole[2:3]", "steps"),
    "watch": ("xpos pole",),
    "parameters": {"weight": 2.0, "widest": 0.2},
    "fields": {"steps": 1},
    "frame_skip": 2,
    "reset_noise_scale": 0.01,
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    rules = tmp_path_factory.mktemp("own") / "own.cuh"
    rules.write_text(RULES)
    game = gpuzoo.from_mjcf(load("inverted_pendulum"), rules, **ARGUMENTS)
    return Simulator(game, 20, device="cpu", threads=1, autoreset_mode="Disabled")


def test_what_only_a_step_finds_is_zero_at_the_start():
    """As in MuJoCo's data after `mj_resetData`; it would be whatever the memory had before."""
    game = gpuzoo.from_mjcf(load("inverted_pendulum"), observe=("cvel", "qfrc_actuator", "xpos pole"), id="Felt-v0")
    sim = Simulator(game, 20, device="cpu", threads=1)
    for seed in range(3):
        sim.reset(seed=seed)
        seen = sim.arrays["observation"][:, 0]
        assert (seen[:, :-3] == 0).all()
        sim.arrays["action"][...] = 1.0
        sim.step()
        assert (seen[:, :-3] != 0).any(axis=1).all()


def test_it_moves_as_the_game_about_the_same_model(own):
    theirs = Simulator(gpuzoo.get("InvertedPendulum-v5"), 20, device="cpu", threads=1, autoreset_mode="Disabled")
    for sim in (own, theirs):
        sim.reset(seed=0)
    rng = np.random.default_rng(0)
    state = {"qpos": rng.uniform(-0.3, 0.3, (20, 2)), "qvel": rng.normal(size=(20, 2)), "qacc": np.zeros((20, 2))}
    state = {name: x.astype(np.float32) for name, x in state.items()}
    for sim in (own, theirs):
        sim.set_state(state)
        sim.arrays["action"][...] = np.linspace(-3, 3, 20, dtype=np.float32)[:, None, None]
        sim.step()
    ours = own.state()
    for name in ("qpos", "qvel"):
        np.testing.assert_array_equal(ours[name], theirs.state()[name])
    seen = own.arrays["observation"][:, 0]
    np.testing.assert_array_equal(seen[:, :2], ours["qvel"])
    np.testing.assert_array_equal(seen[:, 2], ours["qpos"][:, 1])
    np.testing.assert_array_equal(seen[:, 3], ours["xpos_pole"][:, 2])
    np.testing.assert_array_equal(seen[:, 4], 1)
    np.testing.assert_array_equal(own.arrays["reward"][:, 0], 2 * ours["xpos_pole"][:, 0])
    np.testing.assert_array_equal(own.arrays["terminated"][:, 0], abs(ours["qpos"][:, 1]) > np.float32(0.2))


def test_an_episode_begins_near_the_models_own_position(own):
    own.reset(seed=0)
    state = own.state()
    assert 0 < abs(state["qpos"]).max() <= 0.01
    assert 0 < abs(state["qvel"]).max() <= 0.06
    np.testing.assert_array_equal(state["xpos_pole"][:, 0], state["qpos"][:, 0])  # seen before the first step
    np.testing.assert_array_equal(state["steps"], 0)


def test_what_does_not_fit_is_named():
    model = load("inverted_pendulum")
    for arguments, message in (
        ({"observe": ("qpos", "height")}, "'height' cannot be observed; there are: qpos, qvel"),
        ({"observe": ("qpos[2:]",)}, r"'qpos\[2:\]' has no numbers: qpos has 2"),
        ({"watch": ("xquat pole",)}, "'xquat pole' cannot be watched: xpos, "),
        ({"watch": ("xpos leg",)}, "the model has no body 'leg'; there are: world, cart, pole"),
        ({"fields": {"qpos": 2}}, "fields cannot be called 'qpos': every model has one of that name"),
        ({"parameters": {"mass_scale": 1.0}}, "parameters cannot be called 'mass_scale': every model has one"),
        ({"frame_skip": 0}, "frame_skip must be at least 1, not 0"),
        ({"qpos": [0.0]}, r"qpos has the shape \(1,\), but the model has 2 positions"),
    ):
        with pytest.raises(ValueError, match=message):
            gpuzoo.from_mjcf(model, **arguments)
    free = Model.make({**{k: getattr(model, k) for k in model.__dataclass_fields__}, "actuator_ctrllimited": [0]})
    with pytest.raises(ValueError, match="actuator 'slide' has no ctrlrange, so actions have no bounds: give it one"):
        gpuzoo.from_mjcf(free)


def test_constants_are_read_from_a_file(tmp_path: Path):
    path = tmp_path / "my_robot.json"
    path.write_text(load("inverted_pendulum").to_json())
    game = gpuzoo.from_mjcf(path)
    assert game.id == "MyRobot-v0"
    assert game().observation_space(None, "agent").shape == (4,)


def test_without_mujoco_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"pip install 'gpuzoo\[mujoco\]'"):
        gpuzoo.from_mjcf("robot.xml")
