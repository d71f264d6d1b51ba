"""What the rules of MuJoCo's robots add to the physics: states that explode, places far away, parts of rewards."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import pytest

import gpuzoo
from gpuzoo import Simulator


def cheetahs(num_envs: int) -> Simulator:
    sim = Simulator(gpuzoo.get("HalfCheetah-v5"), num_envs, device="cpu", threads=1)
    sim.reset(seed=0)
    sim.arrays["action"][...] = np.random.default_rng(0).uniform(-1, 1, sim.arrays["action"].shape)
    return sim


def test_a_state_that_explodes_ends_its_episode_alone():
    sim, calm = cheetahs(20), cheetahs(20)
    state = sim.state()
    qvel = state["qvel"].copy()
    qvel[3] = 1e20
    qvel[4, 2] = np.float32(3e38)
    sim.set_state({"qvel": qvel})
    sim.step()
    calm.step()
    lost = np.isin(np.arange(20), (3, 4))
    np.testing.assert_array_equal(sim.arrays["terminated"][:, 0], lost)
    np.testing.assert_array_equal(sim.state()["diverged"].astype(bool), lost)
    for name in ("observation", "reward"):
        assert np.isfinite(sim.arrays[name]).all()
        np.testing.assert_array_equal(sim.arrays[name][~lost], calm.arrays[name][~lost])
    np.testing.assert_array_equal(sim.state()["qpos"][3, 1:], state["qpos"][3, 1:])  # the state from before
    sim.step()
    assert not sim.state()["diverged"].any()
    assert np.isfinite(sim.arrays["observation"]).all()


def test_a_step_is_as_exact_far_away():
    near, far = cheetahs(16), cheetahs(16)
    for sim, x in ((near, 0.0), (far, 4096.0)):
        qpos = sim.state()["qpos"].copy()
        qpos[:, 0] = x
        sim.set_state({"qpos": qpos})
        sim.step()
    np.testing.assert_array_equal(near.arrays["observation"], far.arrays["observation"])
    np.testing.assert_array_equal(near.arrays["reward"], far.arrays["reward"])


def test_rewards_are_their_parts():
    sim = cheetahs(16)
    before = sim.state()["qpos"][:, 0].copy()
    sim.step()
    state = sim.state()
    np.testing.assert_allclose(state["x_velocity"], (state["qpos"][:, 0] - before) / 0.05, rtol=1e-4, atol=1e-5)
    costs = 0.1 * (sim.arrays["action"][:, 0] ** 2).sum(1)
    np.testing.assert_allclose(state["reward_ctrl"], -costs, rtol=1e-6)
    np.testing.assert_array_equal(sim.arrays["reward"][:, 0], state["reward_forward"] + state["reward_ctrl"])


def pendulums(**options: object) -> Simulator:
    sim = Simulator(gpuzoo.get("InvertedPendulum-v5"), 20, device="cpu", threads=1, **options)
    sim.reset(seed=0)
    qpos = np.linspace([-0.5, -0.1], [0.5, 0.1], 20).astype(np.float32)
    sim.set_state({"qpos": qpos, "qvel": 10 * qpos, "qacc": np.zeros((20, 2), np.float32)})
    sim.arrays["action"][...] = 1.0
    return sim


def test_constants_of_the_model_are_parameters():
    gravity = np.linspace(0.5, 2.0, 20).astype(np.float32)
    gravity[3] = 1.0
    sim, plain = pendulums(randomize="gravity, mass", gravity_scale=gravity), pendulums()
    for x in (sim, plain):
        x.step()
    ours, theirs = sim.state()["qvel"], plain.state()["qvel"]
    np.testing.assert_allclose(ours[3], theirs[3], rtol=1e-5)
    assert (abs(ours - theirs).max(1)[np.arange(20) != 3] > 1e-4).all()

    again = pendulums(randomize="mass", mass_scale=np.ones(20))
    again.set_params(mass_scale=2.0, envs=[5])
    again.step()
    moved = again.state()["qvel"]
    np.testing.assert_allclose(np.delete(moved, 5, 0), np.delete(theirs, 5, 0), rtol=1e-5, atol=1e-6)
    assert abs(moved[5] - theirs[5]).max() > 0.01


def test_constants_that_are_compiled_in_are_refused():
    for options, message in (
        ({"gravity_scale": 2.0}, "gravity is compiled into the kernel: make the env with randomize='gravity'"),
        ({"randomize": "gravty"}, "randomize has no constant 'gravty'; did you mean 'gravity'"),
        ({"randomize": "mass", "mass_scale": 0.0}, "mass_scale must be at least 0.01"),
    ):
        with pytest.raises(ValueError, match=message):
            pendulums(**options)
    with pytest.raises(ValueError, match="make the env with randomize='mass'"):
        pendulums().set_params(mass_scale=2.0)


CHEETAHS = {"x_position", "x_velocity", "reward_forward", "reward_ctrl"}


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_infos_have_the_parts_of_rewards(output):
    """In Gymnasium's form: an array, and where it holds. What is of a step is not there where an episode begins."""
    envs = gpuzoo.make_vec("HalfCheetah-v5", 6, device="cpu", infos=True, output=output, max_episode_steps=3)
    _, infos = envs.reset(seed=0)
    assert all(infos["_x_position"])
    assert not any(infos["_reward_ctrl"])
    kept = []
    for step in range(5):
        actions = envs.action_space.sample()
        _, rewards, _, _, infos = envs.step(actions)
        assert {name for name in infos if not name.startswith("_")} == CHEETAHS
        began = step == 3
        assert [bool(x) for x in infos["_reward_ctrl"]] == [not began] * 6
        parts = np.asarray(infos["reward_forward"]) + np.asarray(infos["reward_ctrl"])
        np.testing.assert_array_equal(parts, rewards)
        np.testing.assert_array_equal(infos["x_position"], envs.simulator.state()["qpos"][:, 0])
        kept.append((infos["reward_ctrl"], np.asarray(infos["reward_ctrl"]).copy()))
    for array, then in kept:
        np.testing.assert_array_equal(array, then, err_msg="a later step wrote to what was returned")
    envs.close()


def test_infos_of_one_env_and_of_several_agents():
    env = gymnasium.make("gpuzoo/HalfCheetah-v5", infos=True)
    _, infos = env.reset(seed=0)
    assert infos.keys() == {"x_position"}
    _, reward, _, _, infos = env.step(env.action_space.sample())
    assert infos.keys() == CHEETAHS
    assert np.float32(infos["reward_forward"]) + np.float32(infos["reward_ctrl"]) == np.float32(reward)
    env.close()
    team = gpuzoo.parallel_env("MaReacher-2x1-v1", infos=True)
    _, infos = team.reset(seed=0)
    assert infos == {"agent_0": {}, "agent_1": {}}
    _, rewards, _, _, infos = team.step({name: space.sample() for name, space in team.action_spaces.items()})
    parts = infos["agent_0"]
    assert parts == infos["agent_1"]
    assert np.float32(parts["reward_dist"]) + np.float32(parts["reward_ctrl"]) == np.float32(rewards["agent_0"])
    team.close()


def test_nobody_pays_for_infos_that_are_not_wanted():
    envs = gpuzoo.make_vec("HalfCheetah-v5", 6, device="cpu")
    envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[4] == {}
    envs.close()


def test_pictures_without_mujoco(monkeypatch):
    """Our canvas draws, unless MuJoCo's renderer is asked for by name."""
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.setenv("MUJOCO_GL", "egl")
    frames = {}
    for picture in ("auto", "canvas"):
        envs = gpuzoo.make_vec("Reacher-v5", 2, device="cpu", render_mode="rgb_array", picture=picture)
        envs.reset(seed=0)
        frames[picture] = envs.render()[0]
        envs.close()
    np.testing.assert_array_equal(frames["auto"], frames["canvas"])
    envs = gpuzoo.make_vec("Reacher-v5", 2, device="cpu", render_mode="rgb_array", picture="mujoco")
    envs.reset(seed=0)
    with pytest.raises(ImportError, match=r"pip install 'gpuzoo\[mujoco\]'"):
        envs.render()
    envs.close()
    with pytest.raises(ValueError, match="picture is not 'mujoko'; did you mean 'mujoco'"):
        gpuzoo.make_vec("Reacher-v5", 2, device="cpu", picture="mujoko")
