"""The Stable-Baselines3 interface against SB3's own DummyVecEnv, under SB3's wrappers, and in training."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps

import gpuzoo

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_masked
from stable_baselines3 import DQN, PPO, TD3
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecCheckNan,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecVideoRecorder,
)

from gpuzoo.testing.tools import assert_same
from gpuzoo.wrappers.sb3 import SB3VecEnv

pytestmark = pytest.mark.one_of_a_kind


def make(game: Any, num_worlds: int = 3, **kwargs: Any) -> SB3VecEnv:
    return SB3VecEnv(game, num_worlds=num_worlds, device="cpu", **{"max_episode_steps": 12, **kwargs})


def sample(env: Any) -> np.ndarray:
    return np.stack([env.action_space.sample() for _ in range(env.num_envs)])


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """These networks are too small for more, and threads that wait for each other on busy cores take seconds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# ---- against DummyVecEnv ----


def plain(observation: Any) -> np.ndarray:
    """SB3's envs have the mask in the observation, ours apart; theirs have Discrete observations as int64."""
    return observation["observation"] if isinstance(observation, dict) else observation


def test_equals_dummy_vec_env(single_game):
    ours = make(single_game)
    theirs = DummyVecEnv([lambda: Monitor(gpuzoo.SingleEnv(single_game, max_episode_steps=12))] * 3)
    space = theirs.observation_space
    masked = isinstance(space, spaces.Dict)
    assert ours.observation_space == (space["observation"] if masked else space)
    assert ours.action_space == theirs.action_space
    ours.action_space.seed(3)
    assert ours.seed(5) == theirs.seed(5)
    ended = {False: 0, True: 0}
    for _ in range(2):  # the second reset goes on without a seed
        ours.set_options({"params": {}})
        theirs.set_options({"params": {}})
        np.testing.assert_array_equal(ours.reset(), plain(theirs.reset()))
        assert ours.reset_infos == theirs.reset_infos
        for step in range(60):
            actions = sample(ours)
            observations, rewards, dones, infos = ours.step(actions)
            expected = theirs.step(actions)
            np.testing.assert_array_equal(observations, plain(expected[0]), err_msg=f"step {step}")
            assert_same(
                f"step {step}", {"rewards": expected[1], "dones": expected[2]}, {"rewards": rewards, "dones": dones}
            )
            if masked:
                np.testing.assert_array_equal(ours.action_masks(), expected[0]["action_mask"].astype(bool))
            for info, other, done in zip(infos, expected[3], dones, strict=True):
                if not done:
                    assert info == {}
                    continue
                ended[info["TimeLimit.truncated"]] += 1
                assert info["TimeLimit.truncated"] is other["TimeLimit.truncated"]
                np.testing.assert_array_equal(info["terminal_observation"], plain(other["terminal_observation"]))
                assert set(info) == set(other)
                assert set(info["episode"]) == set(other["episode"])
                assert info["episode"]["l"] == other["episode"]["l"]
                # Monitor adds in float64 and rounds to six digits; ours adds in float32.
                assert info["episode"]["r"] == pytest.approx(other["episode"]["r"], rel=1e-5, abs=1e-5)
    assert any(ended.values()), "no episode ended"
    assert all(ended.values()) or single_game.id != "CartPole-v1"


def test_what_is_returned_belongs_to_the_caller(game):
    env, untouched = make(game, seed=1), make(game, seed=1)
    np.testing.assert_array_equal(env.reset(), untouched.reset())
    kept = []
    for _ in range(30):
        actions = sample(env)
        results, expected = env.step(actions), untouched.step(actions)
        observations, rewards, dones, infos = results
        assert_same("step", dict(zip("ord", expected[:3], strict=True)), dict(zip("ord", results[:3], strict=True)))
        assert (rewards.dtype, dones.dtype) == (np.float32, np.bool_)
        assert observations.shape == (env.num_envs, *env.observation_space.shape)
        assert all(env.observation_space.contains(row) for row in observations)
        assert len({id(info) for info in infos}) == env.num_envs
        kept.append((rewards, rewards.copy(), infos))
        observations[...] = 0  # wrappers and algorithms write into what they get
        dones[...] = True
        for info in infos:
            info["mine"] = 1
            if isinstance(info.get("terminal_observation"), np.ndarray):  # a Discrete one is a number
                info["terminal_observation"][...] = 0
    for rewards, copy, infos in kept:
        np.testing.assert_array_equal(rewards, copy)
        assert all(info["mine"] == 1 for info in infos)


# ---- agents that leave ----


@pytest.mark.parametrize("group", [None, "sheep", "sheep_1"])
def test_slots_of_agents_that_leave_are_padding(group):
    """Against the batch below, whose elapsed steps say when an env began its next episode."""
    worlds = 5
    env = make(Herd, worlds, group=group, seed=4, max_episode_steps=20)
    batch = gpuzoo.make_vec(
        Herd, num_worlds=worlds, group=group, device="cpu", max_episode_steps=20, autoreset_mode="same_step"
    )
    np.testing.assert_array_equal(env.reset(), plain(batch.reset(seed=4)[0]))
    assert env.alive.all()
    n = env.num_envs
    assert n == worlds * {None: 5, "sheep": 3, "sheep_1": 1}[group]
    returns, lengths, padding = np.zeros(n), np.zeros(n, int), np.zeros(n, bool)
    left = returned = 0
    for step in range(300):
        actions = sample(env)
        observations, rewards, dones, infos = env.step(actions)
        below, gained, terminated, truncated, found = batch.step(actions)
        began = np.repeat(batch.simulator.arrays["elapsed_steps"] == 0, n // worlds)
        np.testing.assert_array_equal(rewards, gained)
        assert not rewards[padding].any()
        np.testing.assert_array_equal(dones, np.where(padding, began, terminated | truncated), f"step {step}")
        returns, lengths = returns + rewards, lengths + 1
        for i in np.flatnonzero(dones):
            final, info = infos[i]["terminal_observation"], infos[i]
            assert info["TimeLimit.truncated"] == (truncated[i] and not terminated[i])
            assert ("episode" in info) == (not padding[i])
            if padding[i]:
                assert not final.any()
                returned += 1
            else:
                np.testing.assert_array_equal(final, found["final_obs"]["observation"][i])
                assert info["episode"]["l"] == lengths[i]
                assert info["episode"]["r"] == pytest.approx(returns[i], abs=1e-4)  # float32 sums
                left += not began[i]
        returns[dones] = lengths[dones] = 0
        padding = (padding | dones) & ~began
        np.testing.assert_array_equal(env.alive, ~padding)
        np.testing.assert_array_equal(observations, np.where(padding[:, None], 0, plain(below)))
        np.testing.assert_array_equal(env.action_masks(), ~padding[:, None] & (batch.action_mask > 0))
    assert left >= returned > 20


class Player:
    """What `evaluate_policy` needs of a model."""

    def __init__(self, env: SB3VecEnv) -> None:
        self.env = env

    def predict(self, *_: Any, **__: Any) -> tuple[np.ndarray, None]:
        return sample(self.env), None


@pytest.mark.parametrize("group", [None, "wolf", "sheep"])
def test_evaluation_leaves_padding_out(group):
    env = make(Herd, 5, seed=4, group=group)
    returns, lengths = evaluate_policy(Player(env), env, 40, return_episode_rewards=True)
    assert len(lengths) == 40
    assert max(lengths) <= 12
    if group == "sheep":  # it pays for nothing but being caught
        caught = np.array(returns) < 0
        assert (caught | (np.array(lengths) == 12)).all()
        assert 0 < caught.sum() < 40


# ---- seeds and options ----


def test_seeds_are_of_envs_and_used_once(multi_game):
    env = make(multi_game)
    count = env.num_envs // 3
    assert env.seed(7) == [7 + i // count for i in range(3 * count)]
    first, second = env.reset(), env.reset()
    reference = gpuzoo.make_vec(multi_game, num_worlds=3, device="cpu", max_episode_steps=12)
    np.testing.assert_array_equal(first, plain(reference.reset(seed=7)[0]))
    np.testing.assert_array_equal(second, plain(reference.reset()[0]))
    by_argument = make(multi_game, seed=7)
    np.testing.assert_array_equal(by_argument.reset(), first)
    assert len(set(env.seed())) == 3


def test_algorithms_seed_the_env():
    runs = []
    for _ in range(2):
        env = make("CartPole-v1")
        PPO("MlpPolicy", env, n_steps=8, batch_size=24, n_epochs=1, device="cpu", seed=3).learn(48)
        runs.append(env.step(np.zeros(3, int))[0])
    np.testing.assert_array_equal(*runs)


def test_options_set_parameters_once():
    env = make("CartPole-v1", gravity=np.array([9.0, 10.0, 11.0]))
    env.set_options({"params": {"gravity": np.array([1.0, 2.0, 3.0])}})
    env.reset()
    assert env.get_attr("gravity") == [1, 2, 3]
    env.set_attr("gravity", 5.0)
    env.reset()
    assert env.get_attr("gravity") == [5, 5, 5]
    with pytest.raises(TypeError, match="one dictionary for all envs"):
        env.set_options([{}, {}, {}])


# ---- attributes and methods ----


def test_attributes_are_by_slot():
    env = make("SimpleSpread-v0", 2)
    assert env.get_attr("render_mode") == [None] * 6
    assert env.get_attr("num_worlds", [0, 5]) == [2, 2]
    assert env.get_attr("num_worlds", 1) == [2]
    with pytest.raises(AttributeError, match="nothing_like_it"):
        env.get_attr("nothing_like_it")
    assert not env.has_attr("action_masks")
    assert not env.has_attr("nothing_like_it")
    herd = make(Herd, 2, bite=np.array([1.0, 2.0]))
    herd.set_attr("bite", 3.0, indices=[5, 6])
    assert herd.get_attr("bite") == [1] * 5 + [3] * 5
    assert herd.get_attr("bite", 7) == [3]
    with pytest.raises(TypeError, match="has no parameter 'bit'"):
        herd.set_attr("bit", 3.0)


def test_masks_are_by_slot():
    env = make(Lamps, seed=1)
    env.reset()
    assert env.has_attr("action_masks")
    masks = env.env_method("action_masks")
    assert [m.dtype for m in masks] == [np.bool_] * 3
    assert [m.shape for m in masks] == [(5,)] * 3
    assert [getter().tolist() for getter in env.get_attr("action_masks")] == [m.tolist() for m in masks]
    np.testing.assert_array_equal(env.env_method("action_masks", indices=2), masks[2:])
    with pytest.raises(AttributeError, match="'action_masks' and 'render' per slot, not 'reset'"):
        env.env_method("reset")
    with pytest.raises(AttributeError, match="has no action masks"):
        make("CartPole-v1").env_method("action_masks")


def test_it_is_monitored_unless_told_otherwise():
    env = make("CartPole-v1")
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(Monitor, indices=[1]) == [True]
    assert env.env_is_wrapped(VecMonitor) == [False] * 3
    bare = make("CartPole-v1", monitor=False)
    assert bare.env_is_wrapped(Monitor) == [False] * 3
    bare.reset()
    infos = [info for _ in range(12) for info in bare.step(np.zeros(3, int))[3] if info]
    assert infos
    assert all("episode" not in info for info in infos)


# ---- SB3's wrappers ----


def test_wrappers(game):
    env: Any = VecCheckNan(VecMonitor(make(game, monitor=False, seed=1)), raise_exception=True)
    if isinstance(env.observation_space, spaces.Box):  # these two take no others
        env = VecFrameStack(VecNormalize(env), 2)
    observations = env.reset()
    seen = 0
    reference = make(game, seed=1)
    reference.reset()
    for _ in range(30):
        actions = sample(env)
        observations, _, _, infos = env.step(actions)
        assert observations.shape == (env.num_envs, *env.observation_space.shape)
        expected = reference.step(actions)[3]
        for info, other in zip(infos, expected, strict=True):
            if "episode" in other:
                seen += 1
                assert info["terminal_observation"].shape == env.observation_space.shape
                assert info["episode"]["l"] == other["episode"]["l"]
                assert info["episode"]["r"] == pytest.approx(other["episode"]["r"], rel=1e-4, abs=1e-4)  # float32 sums
    assert seen


def test_video(monkeypatch, tmp_path):
    """SB3's recorder with its file writer replaced: moviepy wants an older Pillow than the one we test with."""
    written: list[tuple[list[np.ndarray], float, str]] = []

    class ImageSequenceClip:
        def __init__(self, frames: list[np.ndarray], fps: float) -> None:
            self.frames, self.fps = frames, fps

        def write_videofile(self, path: str) -> None:
            written.append((self.frames, self.fps, path))

    module: Any = ModuleType("moviepy.video.io.ImageSequenceClip")
    module.ImageSequenceClip = ImageSequenceClip
    for name in ("moviepy", "moviepy.video", "moviepy.video.io"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    env = VecVideoRecorder(
        make("SimpleSpread-v0", 2, render_mode="rgb_array"), str(tmp_path), lambda step: step == 0, video_length=2
    )
    env.reset()
    for _ in range(3):
        env.step(np.zeros(6, int))
    env.close()
    ((frames, fps, path),) = written
    assert len(frames) == 3
    assert frames[0].shape == (960, 480, 3), "one picture for each env"
    assert frames[0].dtype == np.uint8
    assert frames[0].std() > 0
    assert fps == gpuzoo.get("SimpleSpread-v0").render_fps
    assert Path(path).parent == tmp_path


def test_pictures():
    env = make("SimpleSpread-v0", 2, render_mode="rgb_array")
    env.reset()
    pictures = env.env_method("render", indices=[0, 2, 3])
    np.testing.assert_array_equal(pictures[0], pictures[1])
    assert (pictures[0] != pictures[2]).any()
    assert make("CartPole-v1").get_images() == [None] * 3


# ---- messages ----


def test_refusals():
    with pytest.raises(TypeError, match="SB3VecEnv makes its batch itself, from the id of a game or an EnvDef"):
        SB3VecEnv(gpuzoo.make_vec("CartPole-v1", 2, device="cpu"))
    for name, value in (("autoreset_mode", "disabled"), ("output", "torch"), ("copy", False), ("statistics", True)):
        with pytest.raises(TypeError, match=f"SB3VecEnv chooses {name} itself"):
            make("CartPole-v1", **{name: value})
    with pytest.raises(ValueError, match="must be a multiple of 3"):
        SB3VecEnv("SimpleSpread-v0", 4, device="cpu")
    with pytest.raises(ValueError, match="render_mode must be one of"):
        make("CartPole-v1", render_mode="human")
    env = make("CartPole-v1")
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="was closed"):
        env.reset()


def test_without_the_library():
    code = "import sys; sys.modules['stable_baselines3'] = None; import gpuzoo.wrappers.sb3"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().endswith(
        "ImportError: gpuzoo.wrappers.sb3 needs Stable-Baselines3: pip install 'gpuzoo[sb3]'."
    )


# ---- training ----


@pytest.mark.rotates(long=True)
def test_ppo_balances_the_pole():
    env = SB3VecEnv("CartPole-v1", 8, device="cpu", threads=1)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gamma=0.98,
        gae_lambda=0.8,
        learning_rate=lambda left: 1e-3 * left,
        device="cpu",
        seed=1,
    )
    model.learn(50_000)
    mean, _ = evaluate_policy(model, SB3VecEnv("CartPole-v1", 20, device="cpu", seed=100), 40)
    assert mean >= 475


@pytest.mark.rotates(long=True)
def test_dqn_learns():
    env = SB3VecEnv("CartPole-v1", 8, device="cpu", threads=1)
    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=lambda left: 1e-3 * left,
        learning_starts=1000,
        train_freq=8,
        gradient_steps=16,
        batch_size=64,
        target_update_interval=400,
        exploration_fraction=0.3,
        device="cpu",
        seed=1,
    )
    model.learn(30_000)
    test = SB3VecEnv("CartPole-v1", 20, device="cpu", seed=100)
    assert evaluate_policy(model, test, 40)[0] > 100 > 2 * evaluate_policy(Player(test), test, 40)[0]


@pytest.mark.rotates(long=True)
def test_ppo_shares_a_policy_among_agents():
    env = SB3VecEnv("SimpleSpread-v0", num_worlds=32, device="cpu", threads=1)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=25,
        batch_size=2400,
        n_epochs=5,
        gamma=0.9,
        gae_lambda=0.9,
        learning_rate=3e-3,
        ent_coef=0.01,
        device="cpu",
        seed=1,
    )
    model.learn(120_000)
    test = SB3VecEnv("SimpleSpread-v0", num_worlds=64, device="cpu", seed=100)
    chance, _ = evaluate_policy(Player(test), test, 3 * 64 * 2)
    mean, _ = evaluate_policy(model, test, 3 * 64 * 2, deterministic=False)
    assert chance == pytest.approx(-27, abs=1.5)
    assert mean > -23.5  # -21.4, -21.4 and -21.8 with three seeds


@pytest.mark.rotates(long=True)
def test_td3_learns():
    env = SB3VecEnv(Glide, 8, device="cpu", threads=1)
    model = TD3(
        "MlpPolicy",
        env,
        learning_starts=1000,
        train_freq=1,
        gradient_steps=2,
        batch_size=128,
        gamma=0.9,
        policy_kwargs={"net_arch": [64, 64]},
        device="cpu",
        seed=1,
    )
    model.learn(10_000)
    test = SB3VecEnv(Glide, 64, device="cpu", seed=100)
    chance, _ = evaluate_policy(Player(test), test, 128)
    mean, _ = evaluate_policy(model, test, 128)
    assert chance == pytest.approx(-16, abs=1)
    assert mean > -10  # -6.9, -7.0 and -7.5 with three seeds


@pytest.mark.rotates(long=True)
def test_maskable_ppo_beats_random_play():
    env = SB3VecEnv("ConnectFour-v0", 32, group="player_0", device="cpu", threads=1)
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=32,
        batch_size=256,
        n_epochs=4,
        gamma=0.97,
        learning_rate=1e-3,
        ent_coef=0.01,
        device="cpu",
        seed=2,
    )
    model.learn(60_000)
    test = SB3VecEnv("ConnectFour-v0", 50, group="player_0", device="cpu", seed=100)
    returns, _ = evaluate_masked(model, test, 300, return_episode_rewards=True)
    assert np.mean(np.array(returns) > 0) > 0.9


# ---- the game's own infos ----

TILES: dict[str, Any] = {"grid_size": 2, "num_random_moves": 3, "infos": True}


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "SlidingTilePuzzle-v0"])
def test_infos_of_a_game_are_those_of_dummy_vec_env(name: str) -> None:
    options = TILES if name == "SlidingTilePuzzle-v0" else {"infos": True}
    ours = make(name, **options)
    theirs = DummyVecEnv([lambda: Monitor(gpuzoo.SingleEnv(name, max_episode_steps=12, **options))] * 3)
    for envs in (ours, theirs):
        envs.seed(1)
        envs.reset()
    keys, ends = ours.envs.unwrapped.info_names, 0
    for _ in range(40):
        actions = sample(ours)
        *_, dones, infos = ours.step(actions)
        for info, other, done in zip(infos, theirs.step(actions)[3], dones, strict=True):
            assert {key: info[key] for key in keys} == {key: other[key] for key in keys}
            assert set(info) - {"is_success"} == set(other) - ({"TimeLimit.truncated"} - set(info))
            assert ("is_success" in info) == (done and "solved" in keys)
            assert info.get("is_success", False) == (done and other.get("solved", False))
            ends += done
    assert ends > 6
    ours.close()


def test_success_rate() -> None:
    """SB3 logs what our infos say, and padding is no failure."""
    model = DQN("MlpPolicy", make("SlidingTilePuzzle-v0", 8, **TILES), learning_starts=400, seed=0)
    model.learn(300)
    solved = list(model.ep_success_buffer)
    assert len(solved) == len(model.ep_info_buffer) > 20
    assert {type(x) for x in solved} == {bool}
    lengths = [x["l"] for x in model.ep_info_buffer]
    assert {length for length, was in zip(lengths, solved, strict=True) if not was} == {12}, "only time ends those"
    assert min(length for length, was in zip(lengths, solved, strict=True) if was) < 12
    model.env.close()
    envs = make("LevelBasedForaging-jumanji-v0", infos=True, monitor=False)
    envs.reset()
    told = [info for _ in range(30) for info in envs.step(sample(envs))[3]]
    assert sum("is_success" in info for info in told) == sum("terminal_observation" in info for info in told) > 0
    envs.close()
