"""`make_vec(..., observers="mover")`: rows of the agents to move, beside a batch in which every agent is a row."""

from __future__ import annotations

import copy

import gymnasium
import numpy as np
import pytest

import gpuzoo

ENVS = 24
HERE = np.arange(ENVS)


def host(x):
    return x.numpy() if hasattr(x, "numpy") else np.asarray(x)


def legal(mask, rng):
    return (rng.random(mask.shape) * (host(mask) != 0)).argmax(1)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize(("output", "kept"), [("numpy", True), ("numpy", False), ("torch", True), ("torch", False)])
@pytest.mark.parametrize("name", ["ConnectFour-v0", "KuhnPoker-v0", "SparrowMahjong-v0"])
def test_rows_are_those_of_the_agents_to_move(name, output, kept, mode):
    given = {"device": "cpu", "output": output, "masks": "info", "autoreset_mode": mode, "statistics": True}
    movers = gpuzoo.make_vec(name, num_envs=ENVS, observers="mover", copy=kept, **given)
    every = gpuzoo.make_vec(name, num_worlds=ENVS, **given)
    agents = every.num_envs // ENVS
    assert movers.num_envs == movers.num_worlds == ENVS
    rng, ends = np.random.default_rng(0), 0

    def by_agent(x):
        x = host(x)
        return x.reshape(ENVS, agents, *x.shape[1:])

    seen, infos = movers.reset(seed=4)
    all_seen, all_infos = every.reset(seed=4)
    for _ in range(60):
        mover = host(infos["player"]).astype(int)
        np.testing.assert_array_equal(host(seen), by_agent(all_seen)[HERE, mover])
        np.testing.assert_array_equal(host(infos["action_mask"]), by_agent(all_infos["action_mask"])[HERE, mover])
        actions = legal(infos["action_mask"], rng)
        # What the others are given is ignored, so that another number than the mover's must do as well.
        given_all = np.where(np.arange(agents) == mover[:, None], actions[:, None], 0)
        seen, reward, terminated, truncated, infos = movers.step(actions)
        all_seen, all_reward, all_terminated, _, all_infos = every.step(given_all.reshape(-1))
        np.testing.assert_array_equal(host(reward), by_agent(all_reward)[HERE, mover])
        np.testing.assert_array_equal(host(infos["rewards"]), by_agent(all_reward))
        np.testing.assert_array_equal(host(terminated), by_agent(all_terminated)[HERE, mover])
        assert not host(truncated).any()
        if host(terminated).any():
            ends += int(host(terminated).sum())
            returns, lengths = infos["episode"]["r"], infos["episode"]["l"]
            over = host(terminated)
            want = by_agent(all_infos["episode"]["r"])[HERE, mover]
            np.testing.assert_array_equal(host(returns)[over], want[over])
            np.testing.assert_array_equal(host(lengths)[over], by_agent(all_infos["episode"]["l"])[over, 0])
            if mode == "same_step":
                last, all_last = host(infos["final_obs"]), by_agent(all_infos["final_obs"])
                assert (last[:, None] == all_last).reshape(ENVS, agents, -1).all(2).any(1)[over].all()
    assert ends > ENVS


def test_copies_are_the_callers_to_keep():
    envs = gpuzoo.make_vec("ConnectFour-v0", num_envs=4, observers="mover", device="cpu")
    first, infos = envs.reset(seed=0)
    kept = {name: np.array(x) for name, x in {**first, **infos}.items()}
    envs.step(np.zeros(4, int))
    for name, x in {**first, **infos}.items():
        np.testing.assert_array_equal(x, kept[name])


def test_a_copy_goes_on_alike():
    envs = gpuzoo.make_vec("ConnectFour-v0", num_envs=4, observers="mover", device="cpu")
    envs.reset(seed=0)
    envs.step(np.arange(4))
    twin = copy.deepcopy(envs)
    for _ in range(9):
        one, other = envs.step(np.arange(4)), twin.step(np.arange(4))
        np.testing.assert_array_equal(one[0]["observation"], other[0]["observation"])
        np.testing.assert_array_equal(one[1], other[1])


def test_gymnasium_makes_them():
    envs = gymnasium.make_vec("gpuzoo/Go-v0", num_envs=3, observers="mover", device="cpu", size=5)
    seen, _ = envs.reset(seed=0)
    assert seen["observation"].shape == (3, 5, 5, 17)
    assert envs.observation_space.contains(seen)
    assert envs.action_space.shape == (3,)


def test_what_is_refused():
    with pytest.raises(ValueError, match="leave out group"):
        gpuzoo.make_vec("ConnectFour-v0", num_envs=2, observers="mover", group="player_0", device="cpu")
    for make in (gpuzoo.aec_env, gpuzoo.make, gpuzoo.make_pool):
        with pytest.raises(ValueError, match="for make_vec and Simulator"):
            make("ConnectFour-v0", observers="mover", device="cpu")
