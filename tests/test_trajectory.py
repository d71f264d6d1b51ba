"""Recordings of single envs: what they play again is what the batch did, bit for bit, whatever happened in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gpu_stand_in import installed
from toys.glide import Glide
from toys.herd import Herd

import gpuzoo
from gpuzoo import Simulator, Trajectory

NAMES = ("observation", "reward", "terminated", "truncated")


def watched(simulator: Simulator, env: int, told: list[dict[str, Any]]) -> None:
    told.append(
        {name: np.array(simulator.backend.to_numpy(simulator.arrays[name])[env]) for name in (*NAMES, "action")}
    )


def check(trajectory: Trajectory, told: list[dict[str, Any]]) -> None:
    found = trajectory.arrays()
    assert len(trajectory) == len(told)
    for name in told[0]:
        assert (found[name] == np.stack([row[name] for row in told])).all(), name


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_any_env_of_a_batch_is_played_again_with_the_same_bits(mode: str, tmp_path: Path) -> None:
    envs = gpuzoo.make("SimpleTag-v0", 8, device="cpu", autoreset_mode=mode, max_episode_steps=7)
    envs.reset(seed=3)
    told: list[dict[str, Any]] = []
    with gpuzoo.record(envs, env=5) as recording:
        for k in range(40):
            envs.step(envs.random_actions())
            watched(envs.simulator, 5, told)
            if mode == "disabled" and k % 7 == 6:
                envs.reset()
    trajectory = recording.trajectory()
    envs.step(envs.random_actions())  # no longer recorded
    check(trajectory, told)
    assert len({bool(row["truncated"].any()) for row in told}) == 2
    trajectory.save(tmp_path / "run.npz")
    loaded = Trajectory.load(tmp_path / "run.npz")
    check(loaded, told)
    assert repr(loaded) == "Trajectory(SimpleTag-v0, 40 steps)"
    envs.close()


def test_what_others_do_to_an_env_between_its_steps_is_played_too() -> None:
    wind = np.array([0.1, 0.2, 0.3, 0.4])
    simulator = Simulator(Glide, 4, device="cpu", autoreset_mode="same_step", wind=wind)
    simulator.reset(seed=1)
    recording = gpuzoo.record(simulator, env=2)
    told: list[dict[str, Any]] = []

    def steps(count: int) -> None:
        for _ in range(count):
            simulator.random_actions()
            simulator.step()
            watched(simulator, 2, told)

    steps(5)
    saved = simulator.snapshot()
    simulator.reset(mask=np.array([False, False, True, False]))
    steps(5)
    simulator.restore(saved)
    steps(3)
    simulator.step(envs=[0, 1])  # another env's steps are none of this one's
    simulator.random_actions()
    simulator.step(envs=[2])
    watched(simulator, 2, told)
    simulator.max_episode_steps = 3
    steps(9)
    simulator.close()
    check(recording.trajectory(), told)


def test_rollouts_and_changed_parameters_are_played_again() -> None:
    envs = gpuzoo.make("CartPole-v1", 3, device="cpu", gravity=gpuzoo.Uniform(5, 15), length=np.array([0.3, 0.5, 0.9]))
    envs.reset(seed=0)
    simulator = envs.simulator
    with gpuzoo.record(envs, env=1) as recording:
        simulator.rollout(150)
        simulator.set_params(length=0.7, envs=[1])
        simulator.rollout(100)
        after = simulator.state(1)
        simulator.set_params(gravity=gpuzoo.Uniform(1, 2))
        simulator.rollout(80)
    trajectory = recording.trajectory()
    assert len(trajectory) == 330
    states = [{name: np.array(x) for name, x in sim.state(0).items()} for sim in trajectory.play()]
    assert len(states) == 330 + len(trajectory.segments)
    for name, value in after.items():
        assert (states[251][name] == value).all()
    for name, value in simulator.state(1).items():
        assert (states[-1][name] == value).all()


def test_a_long_recording_brings_its_actions_in_parts() -> None:
    simulator = Simulator(Herd, 2, device="cpu", autoreset_mode="same_step")
    simulator.reset(seed=0)
    recording, told = gpuzoo.record(simulator, env=1), []
    for _ in range(600):
        simulator.random_actions()
        simulator.step()
        watched(simulator, 1, told)
    check(recording.trajectory(), told)
    assert len(recording.trajectory().segments) == 1
    simulator.close()


def test_a_step_on_a_gpu_waits_for_nothing_while_it_is_recorded() -> None:
    with installed() as driver:
        simulator = Simulator(gpuzoo.get("CartPole-v1"), 64, device="cuda", autoreset_mode="same_step")
        simulator.reset(seed=0)
        recording = gpuzoo.record(simulator, env=63)
        for _ in range(3):
            simulator.random_actions()
            simulator.step()
        with driver.watched() as entries:
            for _ in range(20):
                simulator.random_actions()
                simulator.step()
        kinds = [entry.kind for entry in entries]
        assert kinds.count("launch") == 40
        assert not {*kinds} & {"wait", "synchronize", "allocate"}, kinds
        told = recording.trajectory().arrays()
        assert len(told["reward"]) == 23
        assert (told["observation"][-1] == simulator.backend.to_numpy(simulator.arrays["observation"])[63]).all()
        simulator.close()


def test_every_interface_can_be_recorded() -> None:
    single = gymnasium.make("gpuzoo/CartPole-v1")
    single.reset(seed=0)
    rows = gpuzoo.make_vec("SimpleSpread-v0", num_worlds=3, device="cpu")
    rows.reset(seed=0)
    parallel = gpuzoo.parallel_env("SimpleSpread-v0")
    parallel.reset(seed=0)
    recordings = [gpuzoo.record(single), gpuzoo.record(rows, env=2), gpuzoo.record(parallel)]
    for _ in range(5):
        single.step(single.action_space.sample())
        rows.step(rows.action_space.sample())
        parallel.step({agent: parallel.action_space(agent).sample() for agent in parallel.agents})
    assert [len(recording.trajectory()) for recording in recordings] == [5, 5, 5]


def test_what_cannot_be_recorded_is_refused() -> None:
    envs = gpuzoo.make("CartPole-v1", 2, device="cpu")
    with pytest.raises(RuntimeError, match="call reset"):
        gpuzoo.record(envs)
    envs.reset(seed=0)
    with pytest.raises(IndexError, match="there is no env 2"):
        gpuzoo.record(envs, env=2)
    with pytest.raises(TypeError, match="not int"):
        gpuzoo.record(3)
    with pytest.raises(TypeError, match="EnvPool"):
        gpuzoo.record(gpuzoo.make_pool("CartPole-v1", num_envs=2))


def test_files_that_hold_no_trajectory_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ValueError, match="holds no trajectory"):
        Trajectory.load(path)
    path.write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(ValueError, match="holds no trajectory"):
        Trajectory.load(path)
    with pytest.raises(FileNotFoundError):
        Trajectory.load(tmp_path / "none.npz")
