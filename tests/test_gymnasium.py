"""The Gymnasium interface against Gymnasium's own: SyncVectorEnv, make_vec, wrappers, checkers."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps

import gpuzoo
from gpuzoo import VectorEnv, make_vec, testing
from gpuzoo.interfaces.single import SingleEnv
from gpuzoo.testing.tools import assert_same, leaves_of, read

pytestmark = pytest.mark.by_kind

MODES = ("next_step", "same_step", "disabled")
CARTPOLE = "gpuzoo:gpuzoo/CartPole-v1"


def flat(value: Any) -> dict[str, np.ndarray]:
    return leaves_of(value)


def same(what: str, ours: Any, theirs: Any) -> None:
    assert_same(what, flat(ours), flat(theirs))


def dense(final: Any, done: np.ndarray) -> list[dict[str, np.ndarray]]:
    """The final observations of the envs that are done, from our dense or Gymnasium's object array."""
    if isinstance(final, dict):
        return [flat({k: v[i] for k, v in final.items()}) for i in np.flatnonzero(done)]
    return [flat(final[i]) for i in np.flatnonzero(done)]


# ---- against SyncVectorEnv ----


@pytest.mark.parametrize("mode", MODES)
def test_equals_sync_vector_env(single_game, mode):
    n, limit = 3, 12
    ours = VectorEnv(single_game, n, autoreset_mode=mode, device="cpu", max_episode_steps=limit, statistics=False)
    make = [lambda: SingleEnv(single_game, max_episode_steps=limit)] * n
    theirs = SyncVectorEnv(make, autoreset_mode=ours.autoreset_mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    ours.action_space.seed(3)
    (a, infos), (b, other_infos) = ours.reset(seed=5), theirs.reset(seed=5)
    same("reset", a, b)
    assert set(infos) == set(other_infos)
    for step in range(60):
        done = np.zeros(n, np.bool_)
        if mode == "disabled" and step and (results[2] | results[3]).any():  # noqa: F821
            done = results[2] | results[3]  # noqa: F821
            (a, infos), (b, other_infos) = (e.reset(options={"reset_mask": done.copy()}) for e in (ours, theirs))
            same(f"partial reset at {step}", a, b)
            assert set(infos) == set(other_infos)
        actions = ours.action_space.sample()
        results, others = ours.step(actions), theirs.step(actions)
        same(f"observations of step {step}", results[0], others[0])
        assert_same(
            f"step {step}",
            {"reward": results[1].astype(np.float64), "terminated": results[2], "truncated": results[3]},
            {"reward": others[1], "terminated": others[2], "truncated": others[3]},
        )
        infos, other_infos = results[4], others[4]
        assert set(infos) == set(other_infos), f"step {step}"
        done = results[2] | results[3]
        if "final_obs" in infos:
            for key in ("_final_obs", "_final_info"):
                assert_same(f"step {step}", {key: infos[key]}, {key: other_infos[key]})
            for x, y in zip(dense(infos["final_obs"], done), dense(other_infos["final_obs"], done), strict=True):
                same(f"final observation of step {step}", x, y)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_checker_accepts_gymnasiums_own_vector_env(mode):
    make = [lambda: gymnasium.make("CartPole-v1", max_episode_steps=30)] * 3
    testing.check_vector_env(SyncVectorEnv(make, autoreset_mode=mode))


class _Broken(gymnasium.vector.VectorWrapper):
    def __init__(self, env: Any, fault: str) -> None:
        super().__init__(env)
        self.fault, self._buffer = fault, None

    def reset(self, **kwargs: Any) -> Any:
        if self.fault == "seed":
            kwargs["seed"] = None
        return self.env.reset(**kwargs)

    def step(self, actions: Any) -> Any:
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        done = terminations | truncations
        if self.fault == "reused":
            self._buffer = rewards if self._buffer is None else self._buffer
            self._buffer[:] = self._buffer + rewards
            rewards = self._buffer
        elif self.fault == "dtype":
            observations = observations.astype(np.float64)
        elif self.fault == "final mask" and done.any():
            infos["_final_obs"] = ~done
        elif self.fault == "no final" and done.any():
            del infos["final_obs"], infos["_final_obs"]
        elif self.fault == "info mask":
            infos["x"] = np.zeros(len(rewards))
        elif self.fault == "flags":
            terminations = terminations.astype(np.int8)
        return observations, rewards, terminations, truncations, infos


@pytest.mark.parametrize("fault", ["seed", "reused", "dtype", "final mask", "no final", "info mask", "flags"])
def test_checker_refuses_a_broken_vector_env(fault):
    env = VectorEnv("CartPole-v1", 3, device="cpu", autoreset_mode="same_step")
    with pytest.raises(AssertionError):
        testing.check_vector_env(_Broken(env, fault))


def test_checker_refuses_missing_metadata():
    env = VectorEnv("CartPole-v1", 3, device="cpu")
    env.metadata = {"autoreset_mode": "next_step"}
    with pytest.raises(AssertionError, match="not a gymnasium AutoresetMode"):
        testing.check_vector_env(env)


# ---- make and make_vec (warnings are errors here) ----


@pytest.mark.parametrize("mode", [*MODES, *AutoresetMode])
def test_make_vec_without_a_warning(registered_game, mode):
    count = gpuzoo.Simulator(registered_game, 1, device="cpu").layout.agents
    env = gymnasium.make_vec(f"gpuzoo:gpuzoo/{registered_game.id}", 2 * count, autoreset_mode=mode, device="cpu")
    assert env.metadata["autoreset_mode"] is env.unwrapped.autoreset_mode
    assert isinstance(env.metadata["autoreset_mode"], AutoresetMode)
    assert env.spec is not None
    assert env.spec.id == f"gpuzoo/{registered_game.id}"
    env.reset(seed=1)
    env.step(env.action_space.sample())
    env.close()


def test_make_vec_default_mode_limit_and_options():
    env = gymnasium.make_vec(CARTPOLE, num_envs=3, device="cpu")
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.unwrapped.simulator.max_episode_steps == 500
    short = gymnasium.make_vec(
        CARTPOLE, num_envs=3, device="cpu", max_episode_steps=4, gravity=5.0, render_mode="rgb_array"
    )
    assert short.unwrapped.simulator.max_episode_steps == 4
    assert float(short.unwrapped.simulator.params["gravity"][0]) == 5.0
    assert short.render_mode == "rgb_array"


def test_metadata_belongs_to_the_instance():
    envs = [VectorEnv("CartPole-v1", 2, device="cpu", autoreset_mode=mode) for mode in MODES]
    assert [e.metadata["autoreset_mode"].value for e in envs] == ["NextStep", "SameStep", "Disabled"]
    envs[0].metadata["autoreset_mode"] = "broken"
    assert "autoreset_mode" not in VectorEnv.metadata
    assert envs[1].metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_make_single_has_gymnasiums_time_limit():
    env = gymnasium.make("gpuzoo:gpuzoo/CartPole-v1", max_episode_steps=3)
    env.reset(seed=0)
    flags = [env.step(env.action_space.sample())[3] for _ in range(3)]
    assert flags == [False, False, True]


@pytest.mark.filterwarnings(
    # Gymnasium advises a [-1, 1] action space and finite observations, neither of which a game is bound to.
    "ignore:.*(Box action space|Box observation space|normalized range|alternative constructor).*:UserWarning"
)
def test_gymnasium_check_env(single_game):
    check_env(SingleEnv(single_game, render_mode="rgb_array"), skip_render_check=True)


@pytest.mark.filterwarnings(  # advice for SB3's own policies, not faults
    "ignore:We recommend you to use a symmetric and normalized Box action space.*:UserWarning",
    "ignore:Your observation .*has an unconventional shape.*:UserWarning",
    "ignore:It seems that your observation .*is an image.*:UserWarning",  # planes of bits are none
    "ignore:It seems that your observation space  is an image.*:UserWarning",
    "ignore:The minimal resolution for an image is.*:UserWarning",
)
def test_stable_baselines3_check_env(single_game):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(SingleEnv(single_game), skip_render_check=True)


# ---- arrays ----


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_returned_arrays_stay_as_they_are(game, mode, output):
    if output == "torch":
        pytest.importorskip("torch")
    env = make_vec(
        game, num_worlds=3, autoreset_mode=mode, device="cpu", max_episode_steps=9, output=output, statistics=True
    )
    kept = []
    for step in range(40):
        if step % 13 == 0:
            values = env.reset(
                seed=step, options={"reset_mask": np.arange(env.num_envs) < env.num_envs // 3} if step else None
            )
        else:
            values = env.step(env.action_space.sample())
        arrays = flat(values)
        if step % 3:  # some are dropped at once, so that their memory is used again
            kept.append((arrays, {k: v.copy() for k, v in arrays.items()}))
        if len(kept) > 12:
            del kept[::2]
    for arrays, copies in kept:
        assert_same("arrays kept by the caller", copies, arrays)


def test_a_view_of_a_returned_array_keeps_its_memory():
    env = VectorEnv("CartPole-v1", 2, device="cpu")
    env.reset(seed=0)
    view = env.step(np.zeros(2, np.int64))[0][1:]
    was = view.copy()
    for _ in range(20):
        env.step(np.zeros(2, np.int64))
    assert (view == was).all()


def test_without_copy_arrays_are_the_simulators():
    env = VectorEnv("CartPole-v1", 2, device="cpu", copy=False)
    observations, _ = env.reset(seed=0)
    before = observations.copy()
    after = env.step(np.ones(2, np.int64))[0]
    assert np.shares_memory(observations, after)
    assert (observations != before).any()
    with_copies = VectorEnv("CartPole-v1", 2, device="cpu")
    with_copies.reset(seed=0)
    assert_same("copy", {"o": after}, {"o": with_copies.step(np.ones(2, np.int64))[0]})


def test_output_torch_is_on_the_simulators_memory():
    torch = pytest.importorskip("torch")
    env = VectorEnv("CartPole-v1", 4, device="cpu", output="torch", copy=False, autoreset_mode="same_step")
    observations, _ = env.reset(seed=0)
    assert isinstance(observations, torch.Tensor)
    assert observations.data_ptr() == env.simulator.arrays["observation"].ctypes.data
    reference = VectorEnv("CartPole-v1", 4, device="cpu", autoreset_mode="same_step")
    reference.reset(seed=0)
    for k in range(60):
        actions = torch.tensor([k % 2, 1, 0, (k + 1) % 2])
        results, expected = env.step(actions), reference.step(actions.numpy())
        assert_same(f"torch and numpy at step {k}", flat(expected[:4]), flat(results[:4]))
        assert results[2].dtype == torch.bool
    mask = torch.tensor([True, False, False, True])
    before = observations.clone()
    env.reset(options={"reset_mask": mask})
    assert (before[1:3] == observations[1:3]).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int8])
def test_integer_actions_of_any_dtype(dtype):
    env = VectorEnv("CartPole-v1", 2, device="cpu")
    env.reset(seed=0)
    reference = env.step(np.array([1, 0]))[0]
    env.reset(seed=0)
    assert (env.step(np.array([1, 0], dtype))[0] == reference).all()
    env.reset(seed=0)
    assert (env.step([1, 0])[0] == reference).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_actions(dtype):
    env = VectorEnv(Glide, 2, device="cpu")
    env.reset(seed=0)
    first = env.step(np.array([[0.25, -0.5], [1, 2]], dtype))[0]
    env.reset(seed=0)
    assert (env.step(np.array([[0.25, -0.5], [1, 2]]))[0] == first).all()
    env.reset(seed=0)
    assert (env.step(np.array([[1e30, np.nan], [np.inf, -np.inf]]))[0]).shape == first.shape


# ---- resets ----


def test_partial_reset_leaves_the_callers_dictionary():
    env = VectorEnv("CartPole-v1", 3, device="cpu")
    env.reset(seed=0)
    mask = np.array([True, False, False])
    options = {"reset_mask": mask, "params": {}}
    env.reset(options=options)
    assert options.keys() == {"reset_mask", "params"}
    assert options["reset_mask"] is mask
    assert mask.tolist() == [True, False, False]


@pytest.mark.parametrize("mode", MODES)
def test_partial_reset_ends_the_wait_for_an_autoreset(mode):
    env = VectorEnv("CartPole-v1", 3, device="cpu", autoreset_mode=mode, max_episode_steps=2)
    env.reset(seed=0)
    for _ in range(2):
        env.step(np.zeros(3, np.int64))
    mask = np.array([True, False, False])
    env.reset(options={"reset_mask": mask})
    _, rewards, *_ = env.step(np.zeros(3, np.int64))
    assert rewards.tolist() == {"next_step": [1, 0, 0], "same_step": [1, 1, 1], "disabled": [1, 0, 0]}[mode]


def test_prev_done_is_the_mask_of_steps_that_reset(game):
    env = make_vec(game, num_worlds=3, device="cpu", max_episode_steps=7)
    env.reset(seed=0)
    assert not env.prev_done.any()
    seen = 0
    for _ in range(30):
        waiting = env.simulator.arrays["waiting"].copy()
        _, rewards, terminations, truncations, _ = env.step(env.action_space.sample())
        assert (env.prev_done.reshape(3, -1) == waiting[:, None]).all()
        assert not rewards[env.prev_done].any()
        assert not (terminations | truncations)[env.prev_done].any()
        seen += env.prev_done.sum()
    assert seen
    for mode in ("same_step", "disabled"):
        other = make_vec(game, num_worlds=3, device="cpu", max_episode_steps=2, autoreset_mode=mode)
        other.reset(seed=0)
        for _ in range(5):
            other.step(other.action_space.sample())
            assert not other.prev_done.any()
            assert other.prev_done.shape == (other.num_envs,)


def test_a_list_of_seeds():
    one, other = (VectorEnv("CartPole-v1", 3, device="cpu") for _ in range(2))
    assert_same("seeds", {"o": one.reset(seed=[4, 5, 6])[0]}, {"o": other.reset(seed=4)[0]})
    assert (one.reset(seed=[5, 5, 5])[0] == other.reset(seed=5)[0][0]).all()


def test_unseeded_envs_differ_and_go_on():
    one, other = (VectorEnv("CartPole-v1", 3, device="cpu") for _ in range(2))
    assert (one.reset()[0] != other.reset()[0]).any()
    first, second = one.reset(seed=3)[0], one.reset()[0]
    assert (first != second).any()
    other.reset(seed=3)
    assert (other.reset()[0] == second).all()


def test_params_by_options():
    env = VectorEnv("CartPole-v1", 3, device="cpu", gravity=np.array([9.8, 9.8, 9.8]))
    env.reset(seed=0)
    env.reset(options={"reset_mask": np.array([False, True, False]), "params": {"gravity": 4.0}})
    assert env.simulator.params["gravity"].tolist() == [np.float32(9.8), 4.0, np.float32(9.8)]


# ---- rows, groups, opponents ----


def test_rows_are_agents_env_by_env(multi_game):
    env = make_vec(multi_game, num_worlds=3, device="cpu", max_episode_steps=20)
    count = env.simulator.layout.agents
    assert env.num_envs == 3 * count
    observations, infos = env.reset(seed=2)
    assert infos["alive"].all()
    values = observations["observation"] if isinstance(observations, dict) else observations
    flat_rows = values.reshape(3, count, -1)
    for group, first in env.simulator.layout.first.items():
        space = env.simulator.layout.observation_spaces[group]
        size = int(np.prod(space.shape))
        want = env.simulator.arrays["observation"][:, first : first + env.simulator.layout.groups[group], :size]
        assert (flat_rows[:, first : first + env.simulator.layout.groups[group], :size] == want).all()
        assert not flat_rows[:, first : first + env.simulator.layout.groups[group], size:].any(), "padding is zero"


def test_unlike_groups_are_padded():
    env = make_vec(Herd, num_worlds=2, device="cpu")
    assert env.single_observation_space["observation"].shape == (4,)
    assert env.single_action_space == gymnasium.spaces.Discrete(5)
    wolves = make_vec(Herd, num_worlds=2, device="cpu", group="wolf")
    assert wolves.single_observation_space["observation"].shape == (2, 2)
    sheep = make_vec(Herd, num_worlds=2, device="cpu", group="sheep_1")
    assert sheep.num_envs == 2
    assert sheep.single_action_space == gymnasium.spaces.Discrete(3)
    assert sheep.single_observation_space["action_mask"].shape == (3,)


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_opponents_by_function_are_the_same_as_all_rows(parallel_game, output):
    if output == "torch":
        pytest.importorskip("torch")
    lay = gpuzoo.Simulator(parallel_game, 1, device="cpu").layout
    group = list(lay.groups)[-1] if len(lay.groups) > 1 else lay.agent_names()[-1]
    seen = []

    def second_choice(observations, masks):
        assert observations.shape[:2] == (3, lay.agents - rows)
        assert (masks is None) == (not lay.mask_size)
        seen.append(observations)
        action = part.simulator.layout.action_spaces[next(iter(lay.groups))]
        full = np.ones((3, lay.agents - rows, *action.shape), lay.action_dtype)
        return __import__("torch").from_numpy(full) if output == "torch" else full

    rows = lay.groups.get(group, 1)
    part = VectorEnv(
        parallel_game, 3 * rows, group=group, opponents=second_choice, device="cpu", max_episode_steps=15,
        output=output, autoreset_mode="same_step",
    )  # fmt: skip
    whole = gpuzoo.Simulator(parallel_game, 3, device="cpu", max_episode_steps=15, autoreset_mode="same_step")
    whole.reset(seed=1)
    part.reset(seed=1)
    whole.arrays["action"][...] = 1
    for step in range(40):
        shape = (part.num_envs, *part.single_action_space.shape)
        _, rewards, *_ = part.step(np.ones(shape, lay.action_dtype))
        whole.step()
        first = lay.first.get(group, lay.agents - 1)
        want = whole.arrays["reward"][:, first : first + rows].reshape(-1)
        assert_same(f"step {step}", {"reward": want}, {"reward": np.asarray(rewards)})
        assert_same(f"step {step}", read(whole), read(part.simulator))
    assert len(seen) == 41


def test_random_opponents_play_and_are_reproducible(multi_game):
    lay = gpuzoo.Simulator(multi_game, 1, device="cpu").layout
    name = lay.agent_names()[0]
    stories = []
    for _ in range(2):
        env = VectorEnv(multi_game, 4, group=name, device="cpu", max_episode_steps=15)
        observations, _ = env.reset(seed=1)
        others = []
        for _ in range(30):
            actions = np.zeros((4, *env.single_action_space.shape), lay.action_dtype)
            if lay.mask_size and actions.ndim == 1:  # an illegal move would end the game before the others have theirs
                actions[:] = observations["action_mask"].argmax(1)
            others.append(env.simulator.arrays["action"][:, 1:].copy())
            observations, *_ = env.step(actions)
        stories.append((np.array(others), env.simulator.arrays["observation"].copy()))
    assert len(np.unique(stories[0][0])) > 1
    assert_same("random opponents", *({"actions": s[0], "observation": s[1]} for s in stories))


def some_choice(observation, mask):
    """Any legal action, as a function of what is seen."""
    legal = np.flatnonzero(mask)
    return legal[(int(observation.sum()) * 7 + 3) % len(legal)] if len(legal) else 0


class OneByOne:
    """What a step with replies must be, by PettingZoo's interface: one env, one player, and the others in between."""

    def __init__(self, game, seed, row, limit):
        self.env, self.row = gpuzoo.aec_env(game, max_cycles=limit, device="cpu"), row
        self.env.reset(seed=seed)
        self._reply()

    def _reply(self):
        self.reward = 0.0
        while self.env.agents and not self.done and self.env.agent_selection != self.row:
            seen = self.env.observe(self.env.agent_selection)
            self._move(some_choice(seen["observation"], seen["action_mask"]))

    @property
    def done(self):
        return self.env.terminations[self.row] or self.env.truncations[self.row]

    def _move(self, action):
        self.env.step(action)
        self.reward += self.env.rewards[self.row]

    def step(self, action):
        self._move(action)
        gained = self.reward  # with that of the others' moves before the first one
        self._reply()
        gained, self.reward = gained + self.reward, 0.0
        return gained, self.env.terminations[self.row], self.env.truncations[self.row]

    def seen(self):
        return self.env.observe(self.row)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("limit", [None, 7])
def test_opponents_reply_in_turn_based_games(turn_game, player, mode, limit):
    """Against PettingZoo's view of one env at a time, episode after episode until each has begun a third."""
    n, row = 6, f"player_{player}"
    limit = limit or turn_game.max_episode_steps

    def reply(observations, masks):
        by_env = zip(observations, masks, strict=True)
        return np.array([[some_choice(o, m) for o, m in zip(*env, strict=True)] for env in by_env])

    env = VectorEnv(
        turn_game, n, group=row, opponents=reply, autoreset_mode=mode, max_episode_steps=limit, device="cpu"
    )
    rng = np.random.default_rng(3)
    observations, _ = env.reset(seed=5)
    single = [OneByOne(turn_game, 5 + k, row, limit) for k in range(n)]
    done, episodes = np.zeros(n, bool), np.zeros(n, int)
    for _ in range(600):
        if episodes.min() >= 2:
            break
        for k in range(n):
            if mode == "same_step" or not done[k]:
                for name, array in single[k].seen().items():
                    assert (observations[name][k] == array).all(), (k, name)
        assert (observations["action_mask"].any(1) | done | (mode == "same_step")).all(), "it is always the row's turn"
        legal = observations["action_mask"].astype(bool)
        actions = np.array([rng.choice(np.flatnonzero(m)) if m.any() else 0 for m in legal])
        if mode == "disabled" and done.any():
            observations, _ = env.reset(options={"reset_mask": done})
            for k in np.flatnonzero(done):
                single[k].env.reset()
                single[k]._reply()
            done = np.zeros(n, bool)
            continue
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert (env.prev_done == (done & (mode == "next_step"))).all()
        for k in range(n):
            if mode == "next_step" and done[k]:
                single[k].env.reset()
                single[k]._reply()
                want = (0.0, False, False)
            else:
                want = single[k].step(actions[k])
            assert (rewards[k], terminated[k], truncated[k]) == want
        done = terminated | truncated
        episodes += done
        if mode == "same_step":
            for k in np.flatnonzero(done):
                for name, array in single[k].seen().items():
                    assert (infos["final_obs"][name][k] == array).all()
                single[k].env.reset()
                single[k]._reply()
    assert episodes.min() >= 2


def test_statistics_and_alive(game):
    env = make_vec(game, num_worlds=2, device="cpu", statistics=True, autoreset_mode="same_step", max_episode_steps=11)
    plain = gymnasium.wrappers.vector.RecordEpisodeStatistics(
        make_vec(game, num_worlds=2, device="cpu", autoreset_mode="same_step", max_episode_steps=11)
    )
    env.reset(seed=3)
    plain.reset(seed=3)
    env.action_space.seed(1)
    finished = 0
    for _ in range(40):
        actions = env.action_space.sample()
        infos, reference = env.step(actions)[4], plain.step(actions)[4]
        assert ("episode" in infos) == ("episode" in reference)
        if "episode" not in infos:
            continue
        done = infos["_episode"]
        assert (done == reference["_episode"]).all()
        finished += done.sum()
        if game.single():
            assert (infos["episode"]["l"][done] == reference["episode"]["l"][done]).all()
            np.testing.assert_allclose(
                infos["episode"]["r"][done], reference["episode"]["r"][done], rtol=1e-5, atol=1e-5
            )
        assert infos["final_info"]["episode"]["r"] is infos["episode"]["r"]
    assert finished


# ---- wrappers ----


def test_batched_spaces_are_lazy():
    env = VectorEnv("CartPole-v1", 4, device="cpu")
    assert "observation_space" not in vars(env)
    assert env.observation_space is env.observation_space


# ---- life and death ----


def test_close_twice_and_collect():
    env = VectorEnv("CartPole-v1", 2, device="cpu")
    env.reset(seed=0)
    env.close()
    env.close()
    assert env.closed
    for make in (lambda: VectorEnv("CartPole-v1", 2, device="cpu"), lambda: SingleEnv("CartPole-v1")):
        env = make()
        simulator = weakref.ref(env.simulator)
        env.reset(seed=0)
        del env
        gc.collect()
        assert simulator() is None, "an env that nobody holds is freed"


def test_render_gives_a_frame_for_each_row():
    pytest.importorskip("PIL")
    env = VectorEnv("CartPole-v1", 2, device="cpu", render_mode="rgb_array")
    env.reset(seed=0)
    frames = env.render()
    assert len(frames) == 2
    assert frames[0].dtype == np.uint8
    assert VectorEnv("CartPole-v1", 2, device="cpu").render() is None
    rows = make_vec(Herd, num_worlds=1, device="cpu", render_mode="rgb_array")
    rows.reset(seed=0)
    frames = rows.render()
    assert len(frames) == rows.num_envs
    assert frames[0] is frames[1]


def test_action_mask_attribute():
    env = VectorEnv(Lamps, 3, device="cpu")
    observations, _ = env.reset(seed=0)
    assert (env.action_mask == observations["action_mask"]).all()
    with pytest.raises(AttributeError, match="no action masks"):
        _ = VectorEnv("CartPole-v1", 2, device="cpu").action_mask
