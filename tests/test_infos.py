"""The infos of a game's own through each interface, and in same-step mode those of last states."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from toys.herd import Herd
from toys.nim import Nim

import gpuzoo
from gpuzoo.core.host import to_host
from gpuzoo.interfaces.infos import names_of
from gpuzoo.testing.tools import assert_same

TOLD = [name for name in gpuzoo.ids() if names_of(gpuzoo.get(name))]
OPTIONS: dict[str, Any] = {"device": "cpu", "infos": True}


class ToldNim(Nim):
    """Says how many sticks are left, and who moves."""

    def infos(self, cfg: Any, state: Any) -> dict[str, Any]:
        return {"left": state["left"], "player": state["mover"]}

    @classmethod
    def source(cls) -> str:
        return Nim.source()


class ToldHerd(Herd):
    """Whose agents leave one by one."""

    def infos(self, cfg: Any, state: Any) -> dict[str, Any]:
        return {"cell": state["cell"], "first": state["cell"][:, 0]}

    def step_infos(self, cfg: Any, state: Any) -> dict[str, Any]:
        return {"caught": state["caught"]}

    @classmethod
    def source(cls) -> str:
        return Herd.source()


def check_final_infos(
    game: Any, steps: int, actions: Callable[[Any], NDArray[Any]] | None = None, **options: Any
) -> int:
    """Beside a batch in which envs that ended stand still until they are reset.

    Returns:
        How many rows were done.
    """
    output = options.pop("output", "numpy")
    ours = gpuzoo.make_vec(game, **OPTIONS, **options, output=output, autoreset_mode="same_step")
    still = gpuzoo.make_vec(game, **OPTIONS, **options, output=output, autoreset_mode="disabled")
    per_env = still.num_envs // still.num_worlds
    assert ours.info_names == still.info_names != ()
    for envs in (ours, still):
        envs.reset(seed=3)
    still.action_space.seed(4)
    total = 0
    for step in range(steps):
        given = still.action_space.sample() if actions is None else actions(still)
        *_, terminated, truncated, infos = ours.step(given)
        *_, want = still.step(given)
        done = to_host(terminated) | to_host(truncated)
        ended = still.simulator.arrays["waiting"].astype(bool).repeat(per_env)
        final = infos["final_info"] if output == "torch" or done.any() else {}
        begun = still.reset(options={"reset_mask": ended})[1] if ended.any() else want
        for name in ours.info_names:
            where = f"step {step}, {name}"
            if final:
                assert_same(where, {"done": to_host(final[f"_{name}"])}, {"done": done})
                assert_same(where, {"last": to_host(final[name])[done]}, {"last": to_host(want[name])[done]})
            for key in (name, f"_{name}"):
                assert_same(where, {"now": to_host(infos[key])}, {"now": to_host(begun[key])})
        assert all(want[f"_{name}"].all() for name in ours.info_names)
        total += done.sum()
    ours.close()
    still.close()
    return total


@pytest.mark.rotates
@pytest.mark.parametrize("name", TOLD)
def test_games(name: str) -> None:
    assert check_final_infos(name, 24, num_worlds=4, max_episode_steps=7) > 0


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("name", ["Sokoban-v0", "HalfCheetah-v5", "JaxNav-v0"])
def test_outputs(name: str, output: str) -> None:
    assert check_final_infos(name, 16, num_worlds=3, max_episode_steps=5, output=output) > 0


@pytest.mark.parametrize("group", [None, "sheep"])
@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_agents_that_leave_one_by_one(output: str, group: str | None) -> None:
    assert check_final_infos(ToldHerd, 40, num_worlds=5, max_episode_steps=9, output=output, group=group) > 20


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("player", ["player_0", "player_1"])
def test_a_step_with_replies_in_it(player: str, output: str) -> None:
    """Some envs end by a row's move and some by a reply, and the next episode's opening move follows."""
    policy = lambda seen, masks: to_host(masks)[..., :3].argmax(-1)  # noqa: E731
    done = check_final_infos(
        ToldNim, 60, lambda envs: np.arange(12) % 3, num_worlds=12, group=player, opponents=policy, output=output
    )
    assert done > 60


def test_rows_of_those_who_move() -> None:
    assert check_final_infos("Hanabi-v0", 60, num_worlds=6, observers="mover", max_episode_steps=9) > 0


def test_gymnasium_says_the_same() -> None:
    """Its own batch of single envs, in its own same-step mode."""
    options: dict[str, Any] = {"infos": True, "max_episode_steps": 4}
    ours = gpuzoo.make_vec("HalfCheetah-v5", 3, device="cpu", autoreset_mode="same_step", **options)
    makers = [lambda: gymnasium.make("gpuzoo/HalfCheetah-v5", device="cpu", **options)] * 3
    theirs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    for envs in (ours, theirs):
        envs.reset(seed=7)
    theirs.action_space.seed(1)
    ends = 0
    for step in range(13):
        actions = theirs.action_space.sample()
        got, want = ours.step(actions)[4], theirs.step(actions)[4]
        assert ("final_info" in got) == ("final_info" in want)
        pairs = [(got, want)]
        if "final_info" in want:
            ends += 1
            pairs.append((got["final_info"], want["final_info"]))
            np.testing.assert_array_equal(got["_final_info"], want["_final_info"])
        for one, other in pairs:
            for name in ours.info_names:
                there = other.get(f"_{name}", np.zeros(3, bool))  # Gymnasium leaves out what no env has
                assert_same(f"step {step}", {name: one[f"_{name}"]}, {name: there})
                if there.any():
                    np.testing.assert_array_equal(one[name][there], other[name][there].astype(np.float32))
    assert ends == 3
    theirs.close()
    ours.close()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
def test_copies_go_on(copied: Callable[[Any], Any]) -> None:
    envs = gpuzoo.make_vec("HalfCheetah-v5", 3, **OPTIONS, autoreset_mode="same_step", max_episode_steps=4)
    envs.reset(seed=1)
    actions = envs.action_space.sample()
    envs.step(actions)
    twin = copied(envs)
    for _ in range(4):
        one, other = envs.step(actions)[4], twin.step(actions)[4]
        assert ("final_info" in one) == ("final_info" in other)
        for name in envs.info_names if "final_info" in one else ():
            assert_same("copy", {name: one["final_info"][name]}, {name: other["final_info"][name]})
    twin.close()
    envs.close()


def test_what_was_returned_stays() -> None:
    envs = gpuzoo.make_vec("Snake-v1", 64, **OPTIONS, autoreset_mode="same_step", max_episode_steps=3)
    envs.reset(seed=1)
    kept = []
    for _ in range(12):
        infos = envs.step(envs.action_space.sample())[4]
        for found in (infos, infos.get("final_info", {})):
            kept += [(found[name], found[name].copy()) for name in envs.info_names if name in found]
    for array, then in kept:
        np.testing.assert_array_equal(array, then, err_msg="a later step wrote to what was returned")
    envs.close()


# ---- other interfaces ----


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_batches_by_group(output: str, mode: str) -> None:
    options: dict[str, Any] = {**OPTIONS, "autoreset_mode": mode, "max_episode_steps": 9}
    ours = gpuzoo.make(ToldHerd, 5, output=output, **options)
    rows = gpuzoo.make_vec(ToldHerd, num_worlds=5, **options)
    assert ours.info_names == rows.info_names
    got, want = ours.reset(seed=3)[1], rows.reset(seed=3)[1]
    for step in range(30):
        for name in ours.info_names:
            assert_same(f"step {step}", {name: to_host(got[name])}, {name: want[name][::5]})
        if "final_info" in want:
            for name in ours.info_names:
                gone = want["_final_info"].reshape(5, 5).any(1)
                last = want["final_info"][name][::5]
                assert_same(f"step {step}", {name: to_host(got["final_info"][name])[gone]}, {name: last[gone]})
        assert ("final_info" in got) == (mode == "same_step")
        actions = rows.action_space.sample()
        got, want = ours.step(actions.reshape(5, 5))[4], rows.step(actions)[4]
        if step == 15:
            ours = copy.deepcopy(ours)
    ours.close()
    rows.close()


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("batch_size", [2, 6])
def test_pools(batch_size: int, output: str) -> None:
    """An env has the infos of a batch at the same time, whenever it is received."""
    options: dict[str, Any] = {**OPTIONS, "max_episode_steps": 4}
    rows = gpuzoo.make_vec("HalfCheetah-v5", 6, **options)
    rows.action_space.seed(0)
    actions = [rows.action_space.sample() for _ in range(12)]
    want = [rows.reset(seed=5)[1], *(rows.step(given)[4] for given in actions)]
    pool = gpuzoo.make_pool("HalfCheetah-v5", 6, batch_size, 2, seed=5, output=output, **options)
    assert pool.info_names == rows.info_names
    times = np.zeros(6, int)
    pool.async_reset()
    while times.min() < 12:
        *_, infos = pool.recv()
        envs = infos["env_id"]
        for k, env in enumerate(envs):
            for name in pool.info_names:
                value = to_host(infos[name])[k]
                expected = want[min(times[env], 12)]
                assert value == expected[name][env] or times[env] > 12 or not expected[f"_{name}"][env]
        pool.send(np.stack([actions[min(times[env], 11)][env] for env in envs]), envs)
        times[envs] += 1
    pool.close()
    rows.close()


def test_who_has_no_infos() -> None:
    with pytest.raises(ValueError, match="time steps have no infos"):
        gpuzoo.make_pool("HalfCheetah-v5", 2, env_type="dm", infos=True)
