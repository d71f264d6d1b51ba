"""The batches for CleanRL's scripts, against Gymnasium's SyncVectorEnv. tests/integrations/cleanrl runs the scripts."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps

import gpuzoo
from gpuzoo.testing.tools import assert_same
from gpuzoo.wrappers import cleanrl

pytestmark = pytest.mark.by_kind


def plain(observation: Any) -> np.ndarray:
    return observation["observation"] if isinstance(observation, dict) else observation


def test_infos_of_gymnasium_029(single_game):
    """Gymnasium's env of today says the same in other words."""
    n = 3
    ours = cleanrl.make(single_game, n, device="cpu", max_episode_steps=12)
    make = [lambda: RecordEpisodeStatistics(gpuzoo.SingleEnv(single_game, max_episode_steps=12))] * n
    theirs = SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP)
    masked = isinstance(theirs.single_observation_space, spaces.Dict)
    space = theirs.single_observation_space
    assert ours.single_observation_space == (space["observation"] if masked else space)
    assert ours.observation_space == (theirs.observation_space["observation"] if masked else theirs.observation_space)
    assert ours.single_action_space == theirs.single_action_space
    ours.action_space.seed(3)
    np.testing.assert_array_equal(ours.reset(seed=5)[0], plain(theirs.reset(seed=5)[0]))
    ended = 0
    for step in range(60):
        actions = ours.action_space.sample()
        *results, infos = ours.step(actions)
        *expected, other = theirs.step(actions)
        np.testing.assert_array_equal(results[0], plain(expected[0]), f"step {step}")
        assert results[0].flags.writeable
        assert_same(
            f"step {step}",
            {"reward": expected[1].astype(np.float32), "terminated": expected[2], "truncated": expected[3]},
            {"reward": results[1], "terminated": results[2], "truncated": results[3]},
        )
        assert ("final_info" in infos) == ("final_info" in other)
        if "final_info" not in infos:
            assert infos == {}
            continue
        done = results[2] | results[3]
        assert infos["_final_info"].tolist() == infos["_final_observation"].tolist() == done.tolist()
        for i in range(n):
            if not done[i]:
                assert infos["final_info"][i] is infos["final_observation"][i] is None
                continue
            ended += 1
            np.testing.assert_array_equal(infos["final_observation"][i], plain(other["final_obs"][i]))
            episode, reference = infos["final_info"][i]["episode"], other["final_info"]["episode"]
            assert set(episode) == {k for k in reference if not k.startswith("_")}
            assert episode["l"] == reference["l"][i]
            assert episode["r"] == pytest.approx(reference["r"][i], rel=1e-5, abs=1e-5)  # ours adds in float32
    assert ended > n


def test_rows_of_agents_that_leave():
    """The padding of their rows is terminated when the env's next episode begins, and is no episode."""
    envs = cleanrl.make(Herd, num_worlds=4, device="cpu", max_episode_steps=15)
    envs.reset(seed=1)
    ended = padded = 0
    for _ in range(100):
        alive = envs.rows.alive
        observations, rewards, terminations, _, infos = envs.step(envs.action_space.sample())
        assert not observations[~envs.rows.alive].any()
        assert not envs.rows.action_mask[~envs.rows.alive].any()
        assert not rewards[~alive].any()
        np.testing.assert_array_equal(terminations[~alive], envs.rows.alive[~alive])
        for i in np.flatnonzero(infos.get("_final_info", [])):
            assert (infos["final_info"][i] is None) == (not alive[i])
            ended += alive[i]
            padded += not alive[i]
            if not alive[i]:
                assert not infos["final_observation"][i].any()
    assert ended > padded > 10


def test_flat_observations():
    flat, shaped = (
        cleanrl.make(Glide, 2, device="cpu", flatten=flatten, max_episode_steps=3) for flatten in (True, False)
    )
    assert flat.single_observation_space == spaces.Box(-np.inf, np.inf, (6,), np.float32)
    assert flat.observation_space.shape == (2, 6)
    np.testing.assert_array_equal(flat.reset(seed=0)[0], shaped.reset(seed=0)[0].reshape(2, 6))
    for _ in range(3):
        one, other = (envs.step(np.ones((2, 2), np.float32)) for envs in (flat, shaped))
        np.testing.assert_array_equal(one[0], other[0].reshape(2, 6))
    np.testing.assert_array_equal(one[4]["final_observation"][1], other[4]["final_observation"][1].reshape(6))
    lamps = cleanrl.make(Lamps, 2, device="cpu", flatten=True)
    assert lamps.single_observation_space == spaces.MultiDiscrete([4, 3, 2], dtype=np.int32)
    lamps.reset(seed=0)
    assert lamps.step(np.zeros((2, 2), int))[0].shape == (2, 3)


def test_refusals(monkeypatch):
    with pytest.raises(TypeError, match="makes its batch itself, from the id of a game or an EnvDef"):
        cleanrl.make(gpuzoo.make_vec("CartPole-v1", 2, device="cpu"))
    with pytest.raises(TypeError, match=r"gpuzoo.wrappers.cleanrl chooses autoreset_mode itself"):
        cleanrl.make("CartPole-v1", 2, autoreset_mode="next_step")
    monkeypatch.setitem(sys.modules, "gym", None)
    with pytest.raises(ImportError, match="OpenAI's gym, which is missing"):
        cleanrl.make_gym("CartPole-v1", 2, device="cpu")


def test_infos_of_a_game() -> None:
    """Of an episode's last state, as Gymnasium's env of today has them."""
    n, options = 3, {"infos": True, "max_episode_steps": 5}
    ours = cleanrl.make("HalfCheetah-v5", n, device="cpu", **options)
    make = [lambda: RecordEpisodeStatistics(gpuzoo.SingleEnv("HalfCheetah-v5", **options))] * n
    theirs = SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP)
    for envs in (ours, theirs):
        envs.reset(seed=2)
    ours.action_space.seed(3)
    ends = 0
    for _ in range(12):
        actions = ours.action_space.sample()
        infos, other = ours.step(actions)[4], theirs.step(actions)[4]
        assert ("final_info" in infos) == ("final_info" in other)
        for i in range(n) if "final_info" in infos else ():
            for name in ours.rows.unwrapped.info_names:
                assert np.float32(infos["final_info"][i][name]) == np.float32(other["final_info"][name][i])
            ends += 1
    assert ends == 2 * n
    ours.close()
    theirs.close()
