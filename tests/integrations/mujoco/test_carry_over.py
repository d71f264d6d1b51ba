"""Whole episodes here and in Gymnasium's own envs: policies trained here or there score the same, and so does chance.

**The rule.** Two means of 100 episodes may differ by two standard errors of the difference of independent ones; those
of long rollouts by two standard errors of the pairs' differences. Both begin in the same states and have the same
noise, so most pairs differ by less. But motion that does not die out forgets where it began; then one pair of equal
means in twenty differs by more, and there are many pairs. So what does is played
again, by four times as many episodes of other seeds, and then by sixteen times as many, and has to keep to two standard
errors once. Of equal means one pair in 8,000 fails; what differs by three standard errors of the first sample fails
five times in six. Numbers of episodes and seeds are not to be chosen again. The output says what was played again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

import gpuzoo
from baselines import pretrained
from baselines.ppo import Args
from gpuzoo.envs.mujoco.robot import Robot

ROOT = Path(__file__).parents[3]
mujoco.set_mju_user_warning(lambda message: None)  # of states that explode
GAMES = sorted(id for id in gpuzoo.ids() if isinstance(gpuzoo.get(id), Robot))
TRAINED = [game for game in GAMES if (ROOT / "baselines/pretrained" / f"{game}.safetensors").is_file()]
#: episodes of each sample, and their seed
SAMPLES = ((100, 10), (400, 20), (1600, 30))
Act = Callable[[np.ndarray, Any], np.ndarray]
Starts = tuple[np.ndarray, np.ndarray]


def begun(envs: Any, seed: int, starts: Starts | None) -> np.ndarray:
    """Observations of the states that Gymnasium's envs shall begin in; without them they draw their own, as ours do."""
    observation, _ = envs.reset(seed=seed)
    if starts is None:
        return observation  # type: ignore[no-any-return]
    for env, qpos, qvel in zip(envs.envs, *starts, strict=True):
        env.unwrapped.set_state(qpos, qvel)
    return np.stack([env.unwrapped._get_obs() for env in envs.envs])


def returns(envs: Any, act: Act, seed: int, starts: Starts | None = None) -> np.ndarray:
    """Of the first episode of each env."""
    generator = torch.Generator().manual_seed(seed)
    observation = begun(envs, seed, starts)
    out, playing = np.zeros(envs.num_envs), np.ones(envs.num_envs, bool)
    low, high = envs.single_action_space.low, envs.single_action_space.high
    while playing.any():
        action = act(observation.astype(np.float32), generator)
        observation, reward, terminations, truncations, _ = envs.step(np.clip(action, low, high))
        out += np.where(playing, reward, 0)
        playing &= ~(terminations | truncations)
    envs.close()
    return out


def pair(game: str, num_envs: int, **config: Any) -> tuple[Any, Any]:
    """Ours and theirs."""
    return gpuzoo.make_vec(game, num_envs, device="cpu", **config), gymnasium.make_vec(game, num_envs, "sync", **config)


def starts_of(ours: Any, seed: int) -> Starts:
    """Positions and velocities."""
    ours.reset(seed=seed)
    state = ours.simulator.state()
    return state["qpos"].astype(float), state["qvel"].astype(float)


def error(*samples: np.ndarray) -> np.ndarray:
    """Standard error of a mean, or of the difference of two."""
    return np.sqrt(sum(x.var(0, ddof=1) / len(x) for x in samples))


def assert_equal_means(sample: Callable[[int, int], tuple[np.ndarray, np.ndarray]], paired: bool = False) -> np.ndarray:
    """Keeps the rule above; each column counts for itself.

    Args:
        sample: takes a number of episodes and a seed, and gives ours and theirs.
        paired: whether the standard error is that of the mean of the pairs' differences.

    Returns:
        Their means.
    """
    doubtful: Any = True
    for episodes, seed in SAMPLES:
        ours, theirs = sample(episodes, seed)
        apart = ours - theirs
        errors = error(apart) if paired else error(ours, theirs)
        found = f"{episodes} episodes: {ours.mean(0)} here, {theirs.mean(0)} there, standard error {errors}"
        print(found if paired else f"{found}, of pairs {error(apart)}")
        doubtful = doubtful & (abs(apart.mean(0)) > 2 * errors)
        if not np.any(doubtful):
            return theirs.mean(0)
    raise AssertionError(found)


def assert_same_score(game: str, act: Act, **config: Any) -> None:
    """And a better one than that of chance, which would carry over, too."""

    def sample(episodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        ours, theirs = pair(game, episodes, **config)
        starts = starts_of(ours, seed)
        return returns(ours, act, seed), returns(theirs, act, seed, starts)

    score = assert_equal_means(sample)
    ours, _ = pair(game, 100, **config)
    rng, space = np.random.default_rng(0), ours.single_action_space
    chance = returns(ours, lambda seen, _: rng.uniform(space.low, space.high, (len(seen), *space.shape)), 30)
    assert score > chance.mean() + chance.std()


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("robot", TRAINED)
def test_what_was_trained_here_scores_the_same_there(robot):
    """With the noise of its policy."""
    ((_, policy),) = pretrained(robot).items()

    def act(observation: np.ndarray, generator: torch.Generator) -> np.ndarray:
        with torch.no_grad():
            out, _ = policy.act(torch.as_tensor(observation)[None])
            return policy.actions.sample(out, policy.log_std, None, generator)[0].numpy()

    assert_same_score(robot, act, **Args.of(robot).config)


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("robot", ["Hopper-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5", "HumanoidStandup-v5"])
def test_what_stable_baselines_trained_there_scores_the_same_here(robot):
    theirs = gymnasium.make(robot)
    model = PPO("MlpPolicy", theirs, n_steps=1024, batch_size=64, n_epochs=5, seed=0, device="cpu")
    model.learn(30_000)
    theirs.close()
    assert_same_score(robot, lambda observation, _: model.predict(observation, deterministic=True)[0])


def rollout(envs: Any, m: Any, seed: int, starts: Starts | None = None) -> np.ndarray:
    """Of each env over 1,000 steps of random actions: return, ends of episodes, contacts as MuJoCo finds them."""
    rng, data, ours = np.random.default_rng(seed), mujoco.MjData(m), isinstance(envs, gpuzoo.VectorEnv)
    begun(envs, seed, starts)
    out = np.zeros((envs.num_envs, 3))
    low, high = envs.single_action_space.low, envs.single_action_space.high
    for step in range(1000):
        _, reward, terminations, *_ = envs.step(rng.uniform(low, high, (envs.num_envs, *low.shape)))
        out[:, 0] += reward
        out[:, 1] += terminations
        if step % 10 == 0:
            state = envs.simulator.state()["qpos"] if ours else [env.unwrapped.data.qpos for env in envs.envs]
            for k, qpos in enumerate(state):
                data.qpos[:] = qpos
                mujoco.mj_kinematics(m, data)
                mujoco.mj_collision(m, data)
                out[k, 2] += data.ncon
    envs.close()
    return out


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("robot", GAMES)
def test_long_rollouts_have_the_same_statistics(robot):
    """Each env counts once: what happens in it depends on what happened before. Both have the same actions, and begin
    alike, so differences of pairs tell more than the two means: of Swimmer 15 times as much."""

    def sample(episodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        ours, theirs = pair(robot, episodes // 4)
        m = theirs.envs[0].unwrapped.model
        starts = starts_of(ours, seed)
        return rollout(ours, m, seed), rollout(theirs, m, seed, starts)

    assert_equal_means(sample, paired=True)


@pytest.mark.parametrize("robot", GAMES)
def test_infos_are_gymnasiums(robot):
    """From the same state: names, where they hold, and values."""
    ours, theirs = gpuzoo.make_vec(robot, 2, device="cpu", infos=True), gymnasium.make_vec(robot, 2, "sync")
    ours.reset(seed=0)
    theirs.reset(seed=0)
    state = ours.simulator.state()
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, ours.action_space.shape).astype(np.float32)
    for k, env in enumerate(theirs.envs):
        env.unwrapped.set_state(state["qpos"][k].astype(float), state["qvel"][k].astype(float))
    begun, told = ours.reset(options={"reset_mask": np.array([False, True])})[1], theirs.step(actions)[4]
    ours.simulator.set_state(state)
    found = ours.step(actions)[4]
    names = {name for name in told if not name.startswith("_")}
    assert names == {name for name in found if not name.startswith("_")}
    at_start = {name for name in theirs.reset(seed=0)[1] if not name.startswith("_")}
    for name in names:
        np.testing.assert_allclose(found[name], told[name], rtol=1e-3, atol=2e-3, err_msg=name)
        assert found[f"_{name}"].all()
        assert begun[f"_{name}"].all() == (name in at_start)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("robot", ["Humanoid-v5", "HumanoidStandup-v5"])
def test_tendons_are_told_to_all_who_ask(robot, tmp_path):
    """In the interfaces for one env, too; and of a model without tendons there are none, as in Gymnasium."""
    one, agents = (
        gymnasium.make(f"gpuzoo/{robot}", infos=True),
        gpuzoo.parallel_env(f"Ma{robot[:-3]}-9-8-v1", infos=True),
    )
    one.reset(seed=0)
    agents.reset(seed=0)
    told = [one.step(one.action_space.sample())[4]]
    told += agents.step({name: space.sample() for name, space in agents.action_spaces.items()})[4].values()
    for infos in told:
        assert infos["tendon_length"].shape == infos["tendon_velocity"].shape == (2,)
    one.close()
    agents.close()

    file = Path(gymnasium.__file__).parent / f"envs/mujoco/assets/{gpuzoo.get(robot).shipped().source.split()[0]}"
    bare = tmp_path / "bare.xml"
    bare.write_text(re.sub(r"<tendon>.*</tendon>", "", file.read_text(), flags=re.DOTALL))
    ours = gpuzoo.make_vec(robot, 3, device="cpu", infos=True, xml_file=str(bare))
    ours.reset(seed=0)
    assert ours.step(ours.action_space.sample())[4]["tendon_length"].shape == (3, 0)
    ours.close()
    theirs = gymnasium.make(robot, xml_file=str(bare))
    assert theirs.reset()[1]["tendon_length"].shape == (0,)
    theirs.close()
