"""The wrappers for torch tensors against Gymnasium's for NumPy arrays, in all autoreset modes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import vector as theirs
from gymnasium.wrappers.utils import RunningMeanStd
from toys.herd import Herd
from toys.lamps import Lamps

from gpuzoo import VectorEnv, make_vec
from gpuzoo.interfaces.single import SingleEnv

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from gpuzoo.wrappers import vector as ours  # noqa: E402

pytestmark = pytest.mark.one_of_a_kind

MODES = ("next_step", "same_step", "disabled")
LIMIT = 7


def pair(game: Any, mode: str, worlds: int = 3, **kwargs: Any) -> tuple[Any, Any]:
    """The same batch with tensors and with NumPy arrays."""
    options = {"num_worlds": worlds, "device": "cpu", "autoreset_mode": mode, "max_episode_steps": LIMIT} | kwargs
    return make_vec(game, output="torch", **options), make_vec(game, output="numpy", **options)


def numpy(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: numpy(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(numpy(v) for v in value)
    return value.numpy().copy() if isinstance(value, torch.Tensor) else value


def plain(observations: Any) -> Any:
    return observations["observation"] if isinstance(observations, dict | spaces.Dict) else observations


def together(env: Any, other: Any, steps: int, partial: bool = True):
    """Plays both with the same actions, partial resets included; gives what they return, step by step."""
    mode, n = env.unwrapped.autoreset_mode.value, env.num_envs
    env.action_space.seed(1)
    yield numpy(env.reset(seed=2)[0]), other.reset(seed=2)[0], None, None
    done = np.zeros(n, np.bool_)
    for step in range(steps):
        if (mode == "Disabled" and done.any()) or (partial and step % 9 == 8):
            mask = done if done.any() else np.arange(n) == n - 1
            tensor = torch.as_tensor(mask) if step % 2 else mask
            results = env.reset(options={"reset_mask": tensor}), other.reset(options={"reset_mask": mask.copy()})
            yield numpy(results[0][0]), results[1][0], None, None
        actions = env.action_space.sample()
        mine, yours = env.step(torch.as_tensor(actions)), other.step(actions)
        done = yours[2] | yours[3]
        yield numpy(mine[0]), yours[0], numpy(mine[1:]), yours[1:]


# ---- episode statistics ----


@pytest.mark.parametrize("mode", MODES)
def test_episode_statistics_are_gymnasiums(single_game, mode):
    env, other = pair(single_game, mode)
    env, other = ours.RecordEpisodeStatistics(env, 10), theirs.RecordEpisodeStatistics(other, 10)
    for _, _, mine, yours in together(env, other, 60):
        if mine is None:
            continue
        infos, expected = mine[3], yours[3]
        if "episode" in expected:
            np.testing.assert_array_equal(infos["_episode"], expected["_episode"])
            for key in ("r", "l"):
                np.testing.assert_array_equal(infos["episode"][key], expected["episode"][key])
        else:
            assert not infos["_episode"].any()
    assert env.episode_count == other.episode_count > 10
    assert env.return_queue == other.return_queue
    assert env.length_queue == other.length_queue


@pytest.mark.parametrize("mode", MODES)
def test_episode_statistics_are_the_simulators(game, mode):
    env, other = pair(game, mode, statistics=False)[0], pair(game, mode, statistics=True)[1]
    env, finished = ours.RecordEpisodeStatistics(env, 2), []
    for _, _, mine, yours in together(env, other, 40):
        if mine is None or "episode" not in yours[3]:
            continue
        infos, expected = mine[3], yours[3]
        done = expected["_episode"]
        np.testing.assert_array_equal(infos["_episode"], done)
        np.testing.assert_array_equal(infos["episode"]["l"][done], expected["episode"]["l"][done])
        # the simulator adds up in float32
        np.testing.assert_allclose(infos["episode"]["r"][done], expected["episode"]["r"][done], rtol=1e-5, atol=1e-5)
        finished += infos["episode"]["l"][done].tolist()
    assert env.episode_count == len(finished) > 2
    assert list(env.length_queue) == finished[-2:], "more episodes may end in a step than are remembered"


def test_an_env_that_stands_still_is_counted_once(game):
    env = theirs.TransformReward(pair(game, "disabled", 2)[0], torch.ones_like)  # for agents that have left too
    env = ours.RecordEpisodeStatistics(env)
    env.reset(seed=0)
    for _ in range(3 * LIMIT):
        env.step(torch.as_tensor(env.action_space.sample()))
    assert env.episode_count == env.num_envs
    assert list(env.return_queue) == list(env.length_queue)
    assert max(env.length_queue) <= LIMIT


# ---- normalisation ----


def test_normalized_observations_are_gymnasiums(single_game):
    env, other = pair(single_game, "next_step")
    env = ours.NormalizeObservation(env)
    space = spaces.Box(-np.inf, np.inf, plain(other.observation_space).shape[1:], np.float64)
    other = theirs.TransformObservation(other, lambda x: plain(x).astype(np.float64), single_observation_space=space)
    other = theirs.NormalizeObservation(other)
    assert plain(env.observation_space) == other.observation_space
    for mine, yours, _, _ in together(env, other, 50, partial=False):
        assert plain(mine).dtype == yours.dtype == np.float32
        # the same numbers, added up in another order in float64 and rounded to float32 at the end
        np.testing.assert_allclose(plain(mine), yours, rtol=3e-7, atol=1e-6)
    for name in ("mean", "var", "count"):
        np.testing.assert_allclose(getattr(env.obs_rms, name), getattr(other.obs_rms, name), rtol=1e-11, atol=1e-12)


def test_final_observations_are_normalized_too(game):
    env, other = pair(game, "same_step")
    env, finals = ours.NormalizeObservation(env), 0
    for mine, yours, rest, expected in together(env, other, 30):
        mean, scale = env.obs_rms.mean.numpy(), np.sqrt(env.obs_rms.var.numpy() + 1e-8)
        np.testing.assert_array_equal(plain(mine), ((plain(yours) - mean) / scale).astype(np.float32))
        if expected is not None and "final_obs" in expected[3]:
            rows = expected[3]["_final_obs"]
            final = ((plain(expected[3]["final_obs"])[rows] - mean) / scale).astype(np.float32)
            np.testing.assert_array_equal(plain(rest[3]["final_obs"])[rows], final)
            finals += rows.sum()
    assert finals


def test_normalized_rewards_are_gymnasiums(single_game):
    env, other = pair(single_game, "same_step")
    env, other = ours.NormalizeReward(env, 0.9), theirs.NormalizeReward(other, 0.9)
    other.accumulated_reward = np.zeros(other.num_envs)  # float64, as ours is
    for _, _, mine, yours in together(env, other, 50, partial=False):
        if mine is not None:
            assert mine[0].dtype == np.float32
            np.testing.assert_allclose(mine[0], yours[0].astype(np.float32), rtol=3e-7)  # as above
    for name in ("mean", "var", "count"):
        np.testing.assert_allclose(getattr(env.return_rms, name), getattr(other.return_rms, name), rtol=1e-11)


@pytest.mark.parametrize("mode", MODES)
def test_statistics_leave_out_what_is_no_transition(game, mode):
    """Observations of agents in the game, each once, final ones too; the same in every mode."""
    env = ours.NormalizeObservation(ours.NormalizeReward(make_one(game, mode)))
    seen, returned = RunningMeanStd(shape=env.obs_rms.mean.shape), RunningMeanStd(shape=())
    raw = make_one(game, "disabled")
    observations, _ = raw.reset(seed=6)
    env.reset(seed=6)
    seen.update(plain(observations).numpy().astype(np.float64))
    for episode in range(4):
        alive, returns, over, step = np.ones(env.num_envs, np.bool_), np.zeros(env.num_envs), False, 0
        while not over:
            raw.action_space.seed(100 * episode + step)
            actions = torch.as_tensor(raw.action_space.sample())
            env.step(actions)
            observations, rewards, terminations, *_ = numpy(raw.step(actions))
            returns = returns * 0.99 * ~terminations + rewards
            seen.update(plain(observations)[alive].astype(np.float64))
            returned.update(returns[alive])
            alive = numpy(raw._rows_of("alive"))
            over, step = not alive.any(), step + 1
        everybody = np.ones(env.num_envs, np.bool_)
        seen.update(plain(numpy(raw.reset(options={"reset_mask": everybody})[0])).astype(np.float64))
        if mode == "next_step":
            env.step(actions)
        elif mode == "disabled":
            env.step(actions)  # stands still
            env.reset(options={"reset_mask": everybody})
    for mine, expected in ((env.obs_rms, seen), (env.env.return_rms, returned)):
        for name in ("mean", "var", "count"):  # float64, added up in another order
            np.testing.assert_allclose(getattr(mine, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def make_one(game: Any, mode: str) -> VectorEnv:
    return make_vec(
        game, num_worlds=1, device="cpu", output="torch", autoreset_mode=mode, max_episode_steps=LIMIT, statistics=False
    )


def test_a_partial_reset_counts_what_it_begins(multi_game):
    env = ours.RecordEpisodeStatistics(
        ours.NormalizeReward(ours.NormalizeObservation(pair(multi_game, "disabled", 3)[0]))
    )
    agents = env.num_envs // 3
    env.reset(seed=0)
    env.step(torch.as_tensor(env.action_space.sample()))
    before = env.env.env.obs_rms.count.item()
    lengths, returns = env.episode_lengths.clone(), env.env.accumulated_reward.clone()
    mask = torch.arange(env.num_envs) == agents  # one row of the env in the middle: all of that env are reset
    env.reset(options={"reset_mask": mask})
    assert round(env.env.env.obs_rms.count.item() - before) == agents
    middle = slice(agents, 2 * agents)
    assert not env.episode_lengths[middle].any()
    assert not env.env.accumulated_reward[middle].any()
    for rows in (slice(agents), slice(2 * agents, None)):
        assert torch.equal(env.episode_lengths[rows], lengths[rows])
        assert torch.equal(env.env.accumulated_reward[rows], returns[rows])


@pytest.mark.parametrize("wrapper", [ours.NormalizeObservation, ours.NormalizeReward])
def test_statistics_can_be_frozen_saved_and_loaded(wrapper):
    env, other = (wrapper(pair("CartPole-v1", "same_step")[0]) for _ in range(2))
    env.reset(seed=0)
    for _ in range(30):
        env.step(torch.as_tensor(env.action_space.sample()))
    state = env.state_dict()
    env.update_running_mean = other.update_running_mean = False
    other.load_state_dict(state)
    results = [e.reset(seed=9)[0] for e in (env, other)]
    assert torch.equal(*results)
    for _ in range(10):
        actions = torch.as_tensor(env.action_space.sample())
        mine, yours = env.step(actions), other.step(actions)
        assert torch.equal(mine[0], yours[0])
        assert torch.equal(mine[1], yours[1])
    after = env.state_dict()
    assert all(torch.equal(state[name], after[name]) for name in state)
    env.update_running_mean = True
    env.step(actions)
    assert not torch.equal(env.state_dict()["mean"], state["mean"])
    assert torch.equal(other.state_dict()["mean"], state["mean"]), "a state that was loaded is a copy"
    with pytest.raises(ValueError, match=r"mean has shape \(7,\), but here it must be"):
        env.load_state_dict({**state, "mean": torch.zeros(7)})
    with pytest.raises(KeyError):
        env.load_state_dict({})


# ---- frames ----


@pytest.mark.parametrize("padding", ["reset", "zero"])
@pytest.mark.parametrize("mode", MODES)
def test_frame_stack_is_gymnasiums(single_game, mode, padding):
    env, _ = pair(single_game, mode)
    env = ours.FrameStackObservation(env, 3, padding_type=padding)

    def single() -> Any:
        return gymnasium.wrappers.FrameStackObservation(
            SingleEnv(single_game, max_episode_steps=LIMIT), 3, padding_type=padding
        )

    other = SyncVectorEnv([single] * 3, autoreset_mode=env.autoreset_mode)
    part = other.single_observation_space
    if isinstance(part, spaces.Dict):
        assert env.single_observation_space["observation"] == part["observation"]
    else:
        assert env.observation_space == other.observation_space
    for mine, yours, rest, expected in together(env, other, 40):
        np.testing.assert_array_equal(plain(mine), plain(yours))
        if isinstance(mine, dict):
            np.testing.assert_array_equal(mine["action_mask"], yours["action_mask"][:, -1], "masks are not stacked")
        if expected is not None and "final_obs" in expected[3]:
            final = plain(rest[3]["final_obs"])
            for i in np.flatnonzero(expected[3]["_final_obs"]):
                np.testing.assert_array_equal(final[i], plain(expected[3]["final_obs"][i]))


@pytest.mark.parametrize("mode", MODES)
def test_frame_stack_of_several_agents(multi_game, mode):
    env, other = pair(multi_game, mode, 2)
    env = ours.FrameStackObservation(env, 3)
    stacks, acting = None, np.ones(env.num_envs, np.bool_)
    for mine, yours, rest, _ in together(env, other, 30, partial=False):
        stack, now = plain(mine), plain(yours)
        begun = np.repeat(other.simulator.arrays["elapsed_steps"] == 0, env.num_envs // 2)
        first = np.stack([now] * 3, 1)
        if stacks is None:
            stacks = first
        pushed = np.concatenate([stacks[:, 1:], now[:, None]], 1)
        wide = (-1, *(1 for _ in now.shape))
        moved = np.where(acting.reshape(wide), pushed, stacks) if rest is not None else stacks
        expected = np.where(begun.reshape(wide), first, moved)
        np.testing.assert_array_equal(stack, expected)
        stacks, acting = stack, other.simulator.arrays["alive"].reshape(-1).copy()


# ---- functions ----


@pytest.mark.parametrize("mode", MODES)
def test_transformed_observations(game, mode):
    env, other = pair(game, mode)
    env = ours.TransformObservation(env, lambda x: x.clamp(max=1) * 2)
    finals = 0
    for mine, yours, rest, expected in together(env, other, 30):
        np.testing.assert_array_equal(plain(mine), np.minimum(plain(yours), 1) * 2)
        if expected is not None and "final_obs" in expected[3]:
            rows = expected[3]["_final_obs"]
            final = np.minimum(plain(expected[3]["final_obs"])[rows], 1) * 2
            np.testing.assert_array_equal(plain(rest[3]["final_obs"])[rows], final)
            finals += rows.sum()
    assert (finals > 0) == (mode == "same_step")


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_functions_of_rewards_and_actions_take_tensors(mode):
    env, other = pair("CartPole-v1", mode)
    env = theirs.TransformAction(theirs.TransformReward(env, lambda r: r.clamp(max=0.5)), lambda a: 1 - a)
    other = theirs.TransformAction(theirs.TransformReward(other, lambda r: r.clip(max=0.5)), lambda a: 1 - a)
    for mine, yours, rest, expected in together(env, other, 20):
        np.testing.assert_array_equal(mine, yours)
        if rest is not None:
            np.testing.assert_array_equal(rest[0], expected[0])


# ---- what all have in common ----


def all_wrappers(env: Any) -> Any:
    env = ours.TransformObservation(ours.NormalizeReward(ours.RecordEpisodeStatistics(env)), lambda x: x * 2)
    return ours.FrameStackObservation(ours.NormalizeObservation(env), 2)


@pytest.mark.parametrize("mode", MODES)
def test_attributes_come_through(mode):
    env = pair(Lamps, mode)[0]
    wrapped = all_wrappers(theirs.TransformReward(env, lambda r: r))
    observations, _ = wrapped.reset(seed=0)
    assert wrapped.autoreset_mode is env.autoreset_mode
    assert torch.equal(wrapped.action_mask, observations["action_mask"])
    for _ in range(2 * LIMIT):
        wrapped.step(torch.as_tensor(wrapped.action_space.sample()))
        assert torch.equal(wrapped.prev_done, env.prev_done)
    assert wrapped.observation_space["action_mask"] == env.observation_space["action_mask"]
    assert wrapped.observation_space.contains(numpy(wrapped.reset()[0]))
    with pytest.raises(AttributeError, match="no action masks"):
        _ = ours.NormalizeReward(pair("CartPole-v1", mode)[0]).action_mask


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | tuple):
        return [leaf for v in (value.values() if isinstance(value, dict) else value) for leaf in leaves(v)]
    return [value]


@pytest.mark.parametrize("mode", MODES)
def test_returned_tensors_stay_as_they_are(game, mode):
    env, kept = all_wrappers(pair(game, mode)[0]), []
    for step in range(25):
        if step % 8 == 0:
            mask = torch.arange(env.num_envs) < env.num_envs // 3
            values = env.reset(seed=step, options={"reset_mask": mask} if step else None)
        else:
            values = env.step(torch.as_tensor(env.action_space.sample()))
        kept += [(leaf, leaf.clone()) for leaf in leaves(values) if isinstance(leaf, torch.Tensor)]
    assert all(torch.equal(torch.nan_to_num(leaf), torch.nan_to_num(copy)) for leaf, copy in kept)


@pytest.mark.parametrize("mode", MODES)
def test_the_simulators_own_memory_gives_the_same(game, mode):
    env, other = (all_wrappers(make_vec(
        game, num_worlds=3, device="cpu", output="torch", autoreset_mode=mode, max_episode_steps=LIMIT, copy=copy
    )) for copy in (True, False))  # fmt: skip
    assert torch.equal(*(plain(e.reset(seed=1)[0]) for e in (env, other)))
    for _ in range(25):
        actions = torch.as_tensor(env.action_space.sample())
        mine, yours = env.step(actions), other.step(actions)
        for a, b in zip((plain(mine[0]), *mine[1:4]), (plain(yours[0]), *yours[1:4]), strict=True):
            assert torch.equal(a, b)


class NothingWaits(TorchDispatchMode):
    """Refuses what looks at values, or makes tensors whose size depends on them."""

    waiting = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.waiting, f"{func} waits for the device"
        if name in ("index", "index_put", "index_put_"):
            assert all(i is None or i.dtype != torch.bool for i in args[1]), f"{func} waits for the device"
        return func(*args, **(kwargs or {}))


def test_the_watch_sees_who_waits():
    values = torch.arange(3)
    for look in (
        lambda: bool(values.any()),
        lambda: values[values > 1],
        lambda: values.nonzero(),
        lambda: int(values[0]),
    ):
        with pytest.raises(AssertionError, match="waits for the device"), NothingWaits():
            look()


@pytest.mark.parametrize("mode", MODES)
def test_nothing_waits_for_the_device(game, mode):
    env = all_wrappers(pair(game, mode)[0])
    env.reset(seed=0)
    actions = torch.as_tensor(env.action_space.sample())
    mask = torch.arange(env.num_envs) == 1
    with NothingWaits():
        for _ in range(2 * LIMIT):
            env.step(actions)
        env.reset(options={"reset_mask": mask})


@pytest.mark.gpu
@pytest.mark.parametrize("mode", MODES)
def test_nothing_waits_for_the_gpu_and_numbers_are_those_of_the_cpu(game, mode):
    options = {"num_worlds": 64, "output": "torch", "autoreset_mode": mode, "max_episode_steps": LIMIT}
    env, other = (all_wrappers(make_vec(game, device=device, **options)) for device in ("cuda", "cpu"))
    env.reset(seed=0)
    other.reset(seed=0)
    batches = [torch.as_tensor(other.action_space.sample()) for _ in range(2 * LIMIT)]
    device_batches = [b.cuda() for b in batches]
    mask = torch.arange(env.num_envs) == 1
    device_mask = mask.cuda()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for actions in device_batches:
            env.step(actions)
        result, _ = env.reset(options={"reset_mask": device_mask})
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for actions in batches:
        other.step(actions)
    expected, _ = other.reset(options={"reset_mask": mask})
    # float64 sums in another order, rounded to float32
    torch.testing.assert_close(plain(result).cpu(), plain(expected), rtol=1e-5, atol=1e-5)


# ---- refusals ----


def test_other_envs_are_refused():
    for env in (VectorEnv("CartPole-v1", 2, device="cpu"), SyncVectorEnv([lambda: SingleEnv("CartPole-v1")])):
        with pytest.raises(TypeError, match=r"wraps gpuzoo\.VectorEnv\(\.\.\., output='torch'\), not"):
            ours.NormalizeReward(env)
    with pytest.raises(ValueError, match="leave out statistics=True"):
        ours.RecordEpisodeStatistics(pair("CartPole-v1", "next_step", statistics=True)[0])
    assert ours.RecordEpisodeStatistics(pair("CartPole-v1", "next_step", statistics=True)[0], stats_key="mine")


@pytest.mark.parametrize(
    ("wrapper", "arguments", "message"),
    [
        (ours.NormalizeObservation, {"epsilon": 0}, "epsilon must be positive, not 0"),
        (ours.NormalizeReward, {"epsilon": -1}, "epsilon must be positive, not -1"),
        (ours.NormalizeReward, {"gamma": 1.5}, r"gamma must be in \[0, 1\], not 1.5"),
        (ours.FrameStackObservation, {"stack_size": 0}, "stack_size must be at least 1, not 0"),
        (ours.FrameStackObservation, {"stack_size": 2, "padding_type": "one"}, "must be 'reset' or 'zero', not 'one'"),
    ],
)
def test_wrong_arguments(wrapper, arguments, message):
    with pytest.raises(ValueError, match=message):
        wrapper(make_vec(Herd, num_worlds=1, device="cpu", output="torch"), **arguments)


def test_a_wrapper_is_reset_before_it_steps():
    env = pair("CartPole-v1", "next_step")[0]
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match=r"call reset\(\) of the wrapper"):
        ours.FrameStackObservation(env, 2).step(torch.zeros(3, dtype=torch.int64))


def test_without_torch():
    code = "import sys; sys.modules['torch'] = None; import gpuzoo.wrappers.vector"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "gpuzoo.wrappers.vector needs PyTorch: pip install 'gpuzoo[torch]'." in done.stderr
