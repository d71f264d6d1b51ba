"""What users of Gymnasium take for granted beside its checkers: render modes, masks, dtypes, seeds, devices."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import RenderCollection
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim

import gpuzoo
from gpuzoo import Simulator, SingleEnv, VectorEnv, aec_env, make_vec, parallel_env
from gpuzoo.testing.tools import assert_same, leaves_of

MODES = ("next_step", "same_step", "disabled")

# ---- render_mode="rgb_array_list" ----


def test_a_list_of_pictures_from_make():
    env = gymnasium.make("gpuzoo/CartPole-v1", render_mode="rgb_array_list")
    assert isinstance(env, RenderCollection)
    plain = gymnasium.make("gpuzoo/CartPole-v1", render_mode="rgb_array")
    wanted = []
    for one in (plain, env):
        one.reset(seed=0)
        for _ in range(3):
            wanted += [one.render()] if one is plain else []
            one.step(0)
    wanted.append(plain.render())
    np.testing.assert_array_equal(env.render(), wanted)
    assert env.render() == []


@pytest.mark.parametrize("mode", MODES)
def test_lists_of_pictures_from_make_vec(mode):
    options: dict[str, Any] = {"render_mode": "rgb_array_list", "max_episode_steps": 3}
    ours = gymnasium.make_vec("gpuzoo/CartPole-v1", 2, autoreset_mode=mode, device="cpu", **options)
    make = [lambda: gymnasium.make("gpuzoo/CartPole-v1", **options)] * 2
    theirs = SyncVectorEnv(make, autoreset_mode=ours.metadata["autoreset_mode"])
    some = {"reset_mask": np.array([False, True])}
    for step in range(9):
        for env in (ours, theirs):
            if step in (0, 8):
                env.reset(seed=step)
            elif mode == "disabled" and step in (4, 7):
                env.reset(options={"reset_mask": np.ones(2, bool)})
            elif step == 5:
                env.reset(options=dict(some))
            else:
                env.step(np.array([0, 1]))
        if step in (2, 6, 8):
            for a, b in zip(ours.render(), theirs.render(), strict=True):
                assert len(a) == len(b)
                np.testing.assert_array_equal(a, b)
    assert ours.render() == ([], [])


# ---- masks="info" ----


@pytest.mark.parametrize("mode", MODES)
def test_masks_in_infos(mode):
    options: dict[str, Any] = {"max_episode_steps": 6, "device": "cpu"}
    there = VectorEnv(Lamps, 3, autoreset_mode=mode, **options)
    here = VectorEnv(Lamps, 3, autoreset_mode=mode, masks="info", **options)
    sync = SyncVectorEnv([lambda: SingleEnv(Lamps, masks="info", **options)] * 3, autoreset_mode=here.autoreset_mode)
    assert here.single_observation_space == there.single_observation_space["observation"]
    assert here.observation_space == sync.observation_space
    results = [env.reset(seed=1) for env in (there, here, sync)]
    for _ in range(30):
        (full, _), (plain, infos), (theirs, their_infos) = ((r[0], r[-1]) for r in results)
        assert_same("mask", {"m": full["action_mask"]}, {"m": infos["action_mask"]})
        assert infos["_action_mask"].all()
        assert_same("observation", {"o": full["observation"]}, {"o": plain})
        assert_same("as from single envs", {"o": theirs}, {"o": plain})
        assert set(infos) == set(their_infos)
        told = their_infos["_action_mask"]  # a partial reset of theirs tells nothing of the other envs
        assert_same("their mask", {"m": their_infos["action_mask"][told]}, {"m": infos["action_mask"][told]})
        if "final_info" in infos:
            done = infos["_final_obs"]
            assert_same("done", {"d": their_infos["final_info"]["_action_mask"]}, {"d": done})
            mask, other = infos["final_info"]["action_mask"], their_infos["final_info"]["action_mask"]
            assert_same("final mask", {"m": other[done]}, {"m": mask[done]})
        if mode == "disabled" and len(results[0]) == 5 and (done := results[0][2] | results[0][3]).any():
            results = [e.reset(options={"reset_mask": done.copy()}) for e in (there, here, sync)]
        else:
            actions = there.action_space.sample()
            results = [e.step(actions) for e in (there, here, sync)]
    assert_same("the property", {"m": here.action_mask}, {"m": there.action_mask})


def test_masks_in_infos_of_rows_and_torch():
    pytest.importorskip("torch")
    env = make_vec(Herd, num_worlds=2, device="cpu", group="wolf", masks="info", output="torch")
    observations, infos = env.reset(seed=0)
    assert tuple(infos["action_mask"].shape) == (env.num_envs, 5)
    assert tuple(observations.shape) == env.observation_space.shape
    assert tuple(env.step(np.zeros(env.num_envs, int))[4]["action_mask"].shape) == (env.num_envs, 5)


@pytest.mark.parametrize("make", [SingleEnv, VectorEnv, parallel_env, aec_env])
def test_another_place_for_masks(make):
    game, without = (Lamps, "CartPole-v1") if make in (SingleEnv, VectorEnv) else (Herd, "SimpleSpread-v0")
    with pytest.raises(ValueError, match="masks must be 'observation' or 'info', not 'obs'"):
        make(game, masks="obs")
    plain = make(without, masks="info", device="cpu")  # a game without masks
    _, infos = plain.reset(seed=0) or plain.last()[::4] if make is aec_env else plain.reset(seed=0)
    assert not any(infos.values())


@pytest.mark.parametrize(("make", "toy"), [(parallel_env, Herd), (aec_env, Herd), (aec_env, Nim)])
def test_masks_in_infos_of_pettingzoo(make, toy):
    both, alone = make(toy), make(toy, masks="info")
    for env in (both, alone):
        env.reset(seed=0)
    agent = "wolf_0" if toy is Herd else alone.agent_selection
    assert alone.observation_space(agent) == both.observation_space(agent)["observation"]
    if make is aec_env:
        (seen, *_, infos), (plain, *_, others) = both.last(), alone.last()
    else:
        (seen, plain), (infos, others) = (
            [x[agent] for x in y] for y in zip(both.reset(1), alone.reset(1), strict=True)
        )
    assert_same("infos", infos, others)
    assert_same("both places", seen, {"observation": plain, "action_mask": infos["action_mask"]})


# ---- dtypes ----


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_observations_have_the_dtype_of_their_space(name):
    theirs = gymnasium.make_vec(name, 2, vectorization_mode="sync")
    assert theirs.reset()[0].dtype == theirs.single_observation_space.dtype == np.int64
    for output, copy in (("numpy", True), ("numpy", False), ("torch", True)):
        if output == "torch":
            pytest.importorskip("torch")
        env = VectorEnv(name, 2, device="cpu", output=output, copy=copy, autoreset_mode="same_step")
        assert env.single_observation_space == theirs.single_observation_space
        env.simulator.max_episode_steps = 1
        first, (second, *_, infos) = env.reset(seed=0)[0], env.step(np.zeros(2, int))
        for observations in (first, second, infos["final_obs"]):
            assert str(observations.dtype).removeprefix("torch.") == "int64"
            assert tuple(observations.shape) == (2,)
    single = gymnasium.make(f"gpuzoo/{name}")
    assert type(single.reset()[0]) is type(single.step(0)[0]) is np.int64


def test_several_numbers_have_the_dtype_of_their_space():
    env = gpuzoo.parallel_env("SwitchRiddle-v0")
    for agent, observation in env.reset(seed=0)[0].items():
        assert observation.dtype == env.observation_space(agent).dtype
    single = SingleEnv("Blackjack-v1")
    assert single.reset(seed=0)[0].dtype == single.observation_space.dtype


# ---- resets ----


@pytest.mark.parametrize("mode", MODES)
def test_first_reset_with_a_mask_of_all(mode):
    env, other = (VectorEnv("CartPole-v1", 3, device="cpu", autoreset_mode=mode) for _ in range(2))
    np.testing.assert_array_equal(
        env.reset(seed=3, options={"reset_mask": np.ones(3, bool)})[0], other.reset(seed=3)[0]
    )
    batch = gpuzoo.make("CartPole-v1", 3, device="cpu")
    observations, _ = batch.reset(seed=3, options={"reset_mask": np.ones(3, bool)})
    np.testing.assert_array_equal(observations["agent"][:, 0], other.reset(seed=3)[0])
    fresh = Simulator(gpuzoo.get("CartPole-v1"), 2, device="cpu")
    with pytest.raises(RuntimeError, match="CartPole-v1: the first reset must be of all envs"):
        fresh.reset(seed=0, mask=np.array([True, False]))
    assert not fresh.was_reset


def seeds_like(value: Any) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    return {"numpy": np.array(value), "torch": torch.tensor(value)}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_seeds_as_arrays(kind):
    seed, seeds = seeds_like(7)[kind], seeds_like([7, 8])[kind]
    for make in (gpuzoo.make, make_vec, gpuzoo.make_pool):
        env, other = (make("CartPole-v1", 2, device="cpu") for _ in range(2))
        wanted = leaves_of(other.reset(seed=7)[0])
        for given in (seed, seeds, [seeds[0], seeds[1]]):
            assert_same("seed", wanted, leaves_of(env.reset(seed=given)[0]))
    for make in (lambda: SingleEnv("CartPole-v1"), lambda: gpuzoo.parallel_env("SimpleSpread-v0")):
        env = make()
        wanted = {k: v.copy() for k, v in leaves_of(env.reset(seed=7)[0]).items()}
        assert_same("seed", wanted, leaves_of(env.reset(seed=seed)[0]))
    for wrong in (np.array(1.5), np.array(True), np.array(["a", "b"])):
        with pytest.raises(TypeError, match="seed must be an int, a sequence of 2 ints, or None, not"):
            make_vec("CartPole-v1", 2, device="cpu").reset(seed=wrong)


# ---- devices ----


def test_a_device_of_torch():
    torch = pytest.importorskip("torch")
    cpu = torch.device("cpu")
    for make in (gpuzoo.make, make_vec, gpuzoo.make_pool):
        assert make("CartPole-v1", 2, device=cpu).simulator.device == "cpu"
    assert SingleEnv("CartPole-v1", device=cpu).simulator.device == "cpu"
    assert gpuzoo.parallel_env("SimpleSpread-v0", device=cpu).simulator.device == "cpu"
    with pytest.raises(ValueError, match=r"device must be 'cpu', 'cuda', 'cuda:<index>' or 'auto', not 'meta'"):
        make_vec("CartPole-v1", 2, device=torch.device("meta"))
    with pytest.raises((ImportError, RuntimeError), match="device='cuda"):
        gpuzoo.make("CartPole-v1", device=torch.device("cuda", 63))
