"""TorchRL: its own checker, its own wrappers as oracles, and the batched interface in another autoreset mode."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tensordict import TensorDict
from torchrl.collectors import Collector
from torchrl.data import MultiCategorical
from torchrl.envs import ActionMask, GymWrapper, PettingZooWrapper, RewardSum, StepCounter, TransformedEnv
from torchrl.envs.utils import check_env_specs, check_marl_grouping
from toys.herd import Herd
from toys.nim import Nim
from toys.orchard import Orchard

import gpuzoo
from gpuzoo.interfaces.batch import BatchEnv
from gpuzoo.wrappers.torchrl import GpuZooEnv

N = 5
FLAGS = ("done", "terminated", "truncated")


def make(game: Any, num_envs: int = N, **kwargs: Any) -> GpuZooEnv:
    return GpuZooEnv(game, num_envs, device="cpu", **kwargs)


def part(env: GpuZooEnv, data: Any, group: str) -> Any:
    """What belongs to a group, with an axis for agents."""
    if env.group_map:
        return data[group]
    names = [k for k in data.keys() if isinstance(data[k], torch.Tensor)]  # noqa: SIM118
    return TensorDict({k: data[k].unsqueeze(1) for k in names}, batch_size=(*data.shape, 1))


def equal(left: Any, right: Any, what: str) -> None:
    np.testing.assert_array_equal(np.asarray(left), np.asarray(right), err_msg=what)


# ---- TorchRL's own checks ----


@pytest.mark.parametrize("limit", ["default", 2])
def test_specs(game: Any, limit: Any) -> None:
    check_env_specs(make(game, max_episode_steps=limit), break_when_any_done="both")


def test_specs_of_one_env(game: Any) -> None:
    check_env_specs(make(game, 1), break_when_any_done="both")


def test_specs_with_transforms(game: Any) -> None:
    env = TransformedEnv(make(game, max_episode_steps=2), StepCounter())
    env.append_transform(RewardSum(reset_keys=["_reset"] * len(env.reward_keys)))
    check_env_specs(env, break_when_any_done="both")


def test_marl_grouping(multi_game: Any) -> None:
    env = make(multi_game)
    check_marl_grouping(env.group_map, env.simulator.layout.agent_names())
    for group, names in env.group_map.items():
        assert env.full_action_spec[group].shape == (N, len(names))
        assert env.full_reward_spec[group, "reward"].shape == (N, len(names), 1)
    assert env.reset_keys[0] == "_reset"


# ---- oracles ----


def opened(legal: np.ndarray, acts: np.ndarray) -> np.ndarray:
    """Masks (..., choices) that are true throughout where an agent does not act, or has no legal action."""
    return legal | ~(acts & legal.any(-1))[..., None]


def test_equals_the_batched_interface(game: Any) -> None:
    """TorchRL resets envs itself; the batch does it in the same step: what they return must be the same."""
    limit = min(game.max_episode_steps or 20, 20)
    env, batch = make(game, max_episode_steps=limit), BatchEnv(game, N, device="cpu", max_episode_steps=limit)
    env.set_seed(3)
    now = env.reset()
    observations, infos = batch.reset(seed=3)
    groups = list(batch.groups)
    keys = dict(zip(groups, env.group_map or groups, strict=True))
    gone = {g: np.zeros((N, batch.groups[g]), bool) for g in groups}
    ends = 0
    for step in range(3 * limit):
        actions = {g: a.copy() for g, a in batch.random_actions().items()}
        for g in groups:
            key = (keys[g], "action") if env.group_map else "action"
            action = torch.as_tensor(actions[g]) if env.group_map else torch.as_tensor(actions[g][:, 0])
            now[key] = action if action.is_floating_point() else action.long()
        data, now = env.step_and_maybe_reset(now)
        observations, rewards, terminations, truncations, infos = batch.step(actions)
        ended = infos["ended"]
        ends += ended.sum()
        equal(data["next", "done"][:, 0], ended, "root done")
        for g in groups:
            where = f"step {step}, {g}"
            then, after = part(env, data["next"], keys[g]), part(env, now, keys[g])
            over = ended.reshape(N, *[1] * (then["observation"].ndim - 1))
            if "action_mask" in then.keys():  # noqa: SIM118
                seen, final = observations[g]["observation"], infos["final_obs"][g]["observation"]
                legal = np.where(ended[:, None, None], 1, observations[g]["action_mask"]).astype(bool)
                acts = then["mask"].numpy() if env.group_map else ~ended[:, None]
                equal(then["action_mask"], opened(legal, acts), where)
                acts = after["mask"].numpy() if env.group_map else np.ones((N, 1), bool)
                equal(after["action_mask"], opened(observations[g]["action_mask"].astype(bool), acts), where)
            else:
                seen, final = observations[g], infos["final_obs"][g]
            equal(then["observation"], np.where(over, final, seen), where)
            equal(after["observation"], seen, where)
            equal(then["reward"][..., 0], rewards[g], where)
            equal(then["truncated"][..., 0], truncations[g], where)
            equal(then["terminated"][..., 0], terminations[g] | gone[g], where)
            gone[g] |= terminations[g]
            equal(then["done"][..., 0], gone[g] | truncations[g], where)
            gone[g][ended] = False
            equal(after["done"][..., 0], gone[g], where)
            if env.group_map and game.turn is None:
                equal(then["mask"], infos["alive"][g] & ~ended[:, None], where)
    assert ends


@pytest.mark.filterwarnings("ignore:.*PettingZoo in TorchRL is tested")
def test_equals_torchrls_pettingzoo_wrapper(multi_game: Any) -> None:
    """One env, agent by agent, through PettingZoo: what living agents get must be the same, and who lives."""
    limit = min(multi_game.max_episode_steps or 20, 20)
    env = make(multi_game, 1, max_episode_steps=limit)
    zoo = gpuzoo.parallel_env if multi_game.turn is None else gpuzoo.aec_env
    oracle = PettingZooWrapper(
        zoo(multi_game, max_cycles=limit),
        use_mask=True,
        done_on_any=False,
        categorical_actions=True,
        group_map=env.group_map,
    )
    observation_spaces = dict(zip(env.group_map, env.simulator.layout.observation_spaces.values(), strict=True))
    env.set_seed(4)
    left, right = env.reset(), oracle.reset(seed=4)
    for step in range(limit):
        env.rand_action(left)
        lived = {}
        for g in env.group_map:
            right[g, "action"] = left[g, "action"][0]
            lived[g] = ~left[g, "done"][0, :, 0]
        left, right = env.step(left)["next"], oracle.step(right)["next"]
        equal(left["done"][0], right["done"], f"step {step}")
        for g, alive in lived.items():
            mine, other = left[g][0], right[g]
            where = f"step {step}, {g}"
            seen = other["observation"]
            if isinstance(seen, TensorDict):
                seen = seen["observation"]
            if isinstance(observation_spaces[g], spaces.MultiDiscrete):
                seen = seen.argmax(-1).to(mine["observation"].dtype)  # TorchRL encodes them one-hot
            equal(mine["observation"][alive], seen[alive], where)
            equal(mine["reward"], other["reward"], where)
            equal(mine["done"], other["done"], where)
            for flag in ("terminated", "truncated"):
                equal(mine[flag][alive], other[flag][alive], where)
            if left["done"].all():
                continue
            equal(mine["mask"], other["mask"], where)
            if "action_mask" in other.keys():  # noqa: SIM118
                legal = other["action_mask"]
                equal(mine["action_mask"], legal | ~legal.any(-1, keepdim=True), where)
        if left["done"].all():
            break
    assert left["done"].all()


def test_equals_torchrls_gym_wrapper(single_game: Any) -> None:
    """TorchRL's own way to a vector env, which takes the final observations from same-step mode."""
    if single_game.action_mask:
        pytest.skip("GymWrapper cannot read final observations that are dictionaries")
    space = single_game().observation_space(single_game.Config(), "agent")
    if isinstance(space, spaces.Box) and (space.low > 0).any():
        pytest.skip("GymWrapper writes zeros where an env has no final observation, and then refuses them")
    limit = min(single_game.max_episode_steps or 20, 20)
    env = make(single_game, max_episode_steps=limit)
    vector = gpuzoo.make_vec(single_game, N, device="cpu", autoreset_mode="same_step", max_episode_steps=limit)
    oracle = GymWrapper(vector, categorical_action_encoding=True)
    env.set_seed(1)
    left, right = env.reset(), oracle.reset(seed=1)
    for step in range(3 * limit):
        env.rand_action(left)
        right["action"] = left["action"]
        (before, left), (other, right) = env.step_and_maybe_reset(left), oracle.step_and_maybe_reset(right)
        for key in ("observation", "reward", *FLAGS):
            equal(before["next", key], other["next", key], f"step {step}, {key}")
        if before["next", "done"].all():
            left = env.reset()  # as GymWrapper does, though the envs have begun anew by themselves
        equal(left["observation"], right["observation"], f"step {step}")


# ---- resets, ends, masks ----


def test_partial_reset_leaves_others_untouched(game: Any) -> None:
    env = make(game)
    env.set_seed(0)
    now = env.rollout(3, break_when_any_done=False)[:, -1]["next"].exclude("reward").contiguous()
    mask = torch.tensor([True, False, True, False, False])
    state = {k: np.array(v) for k, v in env.simulator.state().items()}
    keys = now.keys(True, True)
    old = {key: now[key].clone() for key in keys if "reward" not in key}
    new = env.reset(now.set("_reset", mask[:, None]))
    for key, value in old.items():
        equal(new[key][~mask], value[~mask], str(key))
    for key in env.done_keys:
        assert not new[key][mask].any()
    for name, value in env.simulator.state().items():
        equal(value[~mask.numpy()], state[name][~mask.numpy()], name)
    assert (np.asarray(env.simulator.arrays["elapsed_steps"])[mask.numpy()] == 0).all()


def test_a_whole_reset_begins_the_next_episodes(game: Any) -> None:
    env = make(game)
    env.set_seed(0)
    first, second = env.reset(), env.reset()
    again = env.reset(TensorDict({"_reset": torch.ones(N, 1, dtype=torch.bool)}, batch_size=(N,)))
    np.testing.assert_array_equal(env.simulator.arrays["episode"], 2)
    env.set_seed(0)
    assert (env.reset() == first).all()
    assert (env.reset() == second).all()
    assert (env.reset() == again.exclude("_reset")).all()


def test_seeds_do_not_depend_on_the_batch(game: Any) -> None:
    many, one = make(game), make(game, 1)
    many.set_seed(10)
    one.set_seed(12)
    assert (many.reset()[2] == one.reset()[0]).all()


def test_rollouts_are_reproducible(game: Any) -> None:
    env = make(game)

    def roll() -> Any:
        torch.manual_seed(0)
        env.set_seed(7, static_seed=True)
        return env.rollout(10, break_when_any_done=False)

    assert (roll() == roll()).all()


@pytest.mark.parametrize("limit", [1, 3])
def test_time_limit(game: Any, limit: int) -> None:
    env = make(game, 64, max_episode_steps=limit)
    env.set_seed(0)
    data = env.rollout(limit, break_when_any_done=False)["next"]
    last = data[:, -1]
    began = np.asarray(env.simulator.arrays["elapsed_steps"]) == limit
    assert began.any() or data[:, 0]["terminated"].all()  # there are games of one step
    truncated = last["truncated"][:, 0]
    assert truncated[torch.as_tensor(began)].all()
    assert last["done"][truncated].all()
    assert not data[:, : limit - 1]["truncated"].any()
    for group in env.group_map:
        agents = last[group][torch.as_tensor(began)]
        assert (agents["truncated"] | agents["terminated"]).all()
        assert agents["done"].all()
        assert not agents["mask"].any()


def test_the_games_own_state_is_at_the_root() -> None:
    env, other = make(Orchard, max_episode_steps=4), make(Herd)
    assert env.full_observation_spec["state"].shape == (N, 8, 16, 2)
    env.set_seed(3)
    data = env.rollout(6, break_when_any_done=False)
    equal(data["next", "state"][:, -1], env.simulator.global_state(), "the last state")
    equal(data["state"][:, 1:4], data["next", "state"][:, :3], "the states between")
    assert "state" not in other.full_observation_spec.keys()  # noqa: SIM118


def test_agents_that_die() -> None:
    env = make(Herd, 64)
    env.set_seed(0)
    data = env.rollout(30, break_when_any_done=False)
    sheep, over = data["next", "sheep"], data["next", "done"][..., 0]
    dead = sheep["terminated"][..., 0] & ~over[..., None]
    assert dead.any()
    assert not sheep["mask"][dead].any()
    assert sheep["action_mask"][dead].all()
    assert sheep["done"][dead].all()
    assert not sheep["truncated"][dead].any()
    again = dead[:, :-1] & ~over[:, :-1, None] & ~over[:, 1:, None]
    assert dead[:, 1:][again].all()
    assert (sheep["reward"][:, 1:, :, 0][again] == 0).all()
    # A death ends no rollout; the first env that is over does. Eight sheep of four envs are never caught at once.
    env = make(Herd, 4, sheeps=8)
    env.set_seed(0)
    short = env.rollout(200)
    assert short["next", "sheep", "terminated"][:, :-1].any()
    assert not short["next", "done"][:, :-1].any()
    assert short["next", "done"][:, -1].any()


def test_root_flags_of_a_mixed_end() -> None:
    """Some sheep were caught and the others' time is up: the env is truncated, not terminated."""
    env = make(Herd, 64, max_episode_steps=6)
    env.set_seed(0)
    last = env.rollout(6, break_when_any_done=False)["next"][:, -1]
    caught = last["sheep", "terminated"][..., 0]
    some = caught.any(1) & ~caught.all(1) & torch.as_tensor(env.simulator.arrays["elapsed_steps"] == 6)
    assert some.any()
    assert last["truncated"][some].all()
    assert not last["terminated"][some].any()


def test_turns(multi_game: Any) -> None:
    if multi_game.turn is None:
        multi_game = Nim
    env = make(multi_game)
    env.set_seed(0)
    now = env.reset()
    for step in range(4):
        masks = torch.cat([now[group]["mask"] for group in env.group_map], -1)
        assert (masks.sum(-1) == 1).all()
        equal(masks.int().argmax(-1), env.simulator.arrays[multi_game.turn], f"who moves in step {step}")
        for group in env.group_map:
            assert now[group, "action_mask"][~now[group, "mask"]].all()
        now = env.rand_step(now)["next"]
        if now["done"].any():  # a fold may be the first move
            break

    def play(noise: int) -> Any:
        env.set_seed(0)
        now = env.reset()
        for _ in range(3):
            for group in env.group_map:
                now[group, "action"] = torch.where(now[group, "mask"], 0, noise)
            now = env.step(now)["next"]
        return now

    assert (play(0) == play(2)).all()


def test_random_actions_are_legal(game: Any) -> None:
    if not game.action_mask:
        game = Herd  # which forbids some
    env = make(game, 64)
    env.set_seed(0)
    data = env.rollout(12, break_when_any_done=False)
    for group in env.group_map or [""]:
        view = data[group] if group else data
        spec = env.full_action_spec[group, "action"] if group else env.action_spec
        actions, masks = view["action"], view["action_mask"]
        if isinstance(spec, MultiCategorical):
            parts = masks.split(spec.nvec[0].tolist(), -1)
            chosen = [m.gather(-1, a[..., None]) for m, a in zip(parts, actions.unbind(-1), strict=True)]
        else:
            chosen = [masks.gather(-1, actions[..., None])]
        assert all(one.all() for one in chosen)
        assert game is not Herd or not masks.all()


def test_torchrls_action_mask() -> None:
    """Its transform keeps random actions legal where others changed the env's spec."""
    action, mask = ("player", "action"), ("player", "action_mask")
    env = TransformedEnv(make(Nim, 64), ActionMask(action_key=action, mask_key=mask))
    data = env.rollout(8, break_when_any_done=False)
    assert data[mask].gather(-1, data[action][..., None]).all()
    assert not data[mask].all()


def test_reward_sum_adds_up_over_an_episode() -> None:
    env = TransformedEnv(make(Herd, max_episode_steps=4), RewardSum(reset_keys=["_reset"] * 2))
    env.set_seed(0)
    data = env.rollout(8, break_when_any_done=False)
    done = data["next", "done"][..., 0]
    full = done[:, 3] & (done.sum(1) == 2)  # no env ended before its time
    assert full.any()
    for group in ("wolf", "sheep"):
        got = data["next", group, "episode_reward"]
        for t in (3, 7):
            want = data["next", group, "reward"][:, t - 3 : t + 1].sum(1)
            torch.testing.assert_close(got[full, t], want[full])


# ---- memory ----


def test_nothing_is_overwritten(game: Any) -> None:
    env = make(game, max_episode_steps=3)
    now = env.reset()
    kept: list[tuple[Any, Any]] = [(now, now.clone())]
    for _ in range(8):
        env.rand_action(now)
        data, now = env.step_and_maybe_reset(now)
        kept += [(data, data.clone()), (now.copy(), now.clone())]
    for value, copy in kept:
        assert (value.select(*copy.keys(True, True)) == copy).all()


def test_envs_marked_not_to_step_stand_still(game: Any) -> None:
    env, other = make(game), make(game)
    for e in (env, other):
        e.set_seed(2)
    left, right = env.reset(), other.reset()
    marks = torch.tensor([[True], [False], [True], [False], [True]])
    env.rand_action(left)
    right.update(left.select(*env.action_keys))
    before = left.clone()
    state = {k: np.array(v) for k, v in env.simulator.state().items()}
    stepped, whole = env.step(left.set("_step", marks))["next"], other.step(right)["next"]
    active = marks[:, 0]
    for key in whole.keys(True, True):
        equal(stepped[key][active], whole[key][active], str(key))
        if "reward" in key:
            assert (stepped[key][~active] == 0).all()
        else:
            equal(stepped[key][~active], before[key][~active], str(key))
    for name, value in env.simulator.state().items():
        equal(value[~active.numpy()], state[name][~active.numpy()], name)


def test_rollout_until_all_are_done() -> None:
    env = make("CartPole-v1", 16)
    env.set_seed(0)
    data = env.rollout(200, break_when_any_done=False, break_when_all_done=True)
    done = data["next", "done"][..., 0]
    assert done[:, -1].all()
    assert (done.int().argmax(1) > 0).all()
    assert data.shape[1] == int(done.int().argmax(1).max()) + 1


def test_collector(game: Any) -> None:
    env = make(game)
    collector = Collector(env, None, frames_per_batch=4 * N, total_frames=12 * N)
    shapes = [data.shape for data in collector]
    collector.shutdown()
    assert shapes == [(N, 4)] * 3


@pytest.mark.gpu
def test_steps_and_partial_resets_do_not_wait_for_the_gpu(game: Any) -> None:
    env = GpuZooEnv(game, 64, device="cuda")
    now = env.rand_action(env.reset())
    mask = torch.arange(64, device="cuda")[:, None] % 2 == 0
    torch.cuda.set_sync_debug_mode("error")
    try:
        then = env._step(now)
        again = env._reset(TensorDict({"_reset": mask}, batch_size=(64,)))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(value.is_cuda for data in (then, again) for value in data.values(True, True))


# ---- errors ----


def test_an_env_in_place_of_a_game() -> None:
    with pytest.raises(TypeError, match=r"takes a game's id or EnvDef, not VectorEnv: .* torchrl.envs.GymWrapper"):
        GpuZooEnv(gpuzoo.make_vec("CartPole-v1", 2, device="cpu"))


def test_no_autoreset_mode() -> None:
    with pytest.raises(TypeError, match="has no autoreset_mode: TorchRL resets"):
        make("CartPole-v1", autoreset_mode="same_step")


def test_another_device() -> None:
    env = make("CartPole-v1")
    assert env.to("cpu") is env
    with pytest.raises(RuntimeError, match="CartPole-v1 is on cpu and stays there: make it with device='cuda'"):
        env.to("cuda")


def test_actions_of_the_wrong_shape() -> None:
    env = make("SimpleSpread-v0")
    now = env.rand_action(env.reset())
    now["agent", "action"] = now["agent", "action"][..., None]
    with pytest.raises(ValueError, match=r"actions of group 'agent' must have shape \(5, 3\), not \(5, 3, 1\)"):
        env.step(now)


def test_close() -> None:
    env = make("CartPole-v1")
    now = env.rand_action(env.reset())
    env.close()
    env.close()
    assert env.is_closed
    with pytest.raises(RuntimeError, match="was closed"):
        env.step(now)


def test_render() -> None:
    env = make("CartPole-v1")
    env.reset()
    assert env.render().shape == (480, 480, 3)
    with pytest.raises(ValueError, match="mode must be 'rgb_array', not 'human'"):
        env.render("human")


def test_without_the_library() -> None:
    code = "import sys; sys.modules['torch'] = sys.modules['torchrl'] = None; import gpuzoo.wrappers.torchrl"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: gpuzoo.wrappers.torchrl needs TorchRL: pip install 'gpuzoo[torchrl]'." in done.stderr
