"""The adapter against Tianshou's own vector env of single envs, and under Tianshou's collector."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from relay import Relay
from tianshou.algorithm import MARLRandomDiscreteMaskedOffPolicyAlgorithm
from tianshou.algorithm.algorithm_base import Policy
from tianshou.algorithm.multiagent.marl import MultiAgentPolicy
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.env.pettingzoo_env import PettingZooEnv
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim

import gpuzoo
from gpuzoo.interfaces.single import SingleEnv
from gpuzoo.testing.tools import assert_same
from gpuzoo.wrappers.tianshou import TianshouVectorEnv

LIMIT = 12
#: what Tianshou can play: games with one agent, or with agents that move in turns
PLAYABLE = [
    game
    for game in (*(type(gpuzoo.get(i)) for i in gpuzoo.ids()), Glide, Herd, Lamps, Nim)
    if game.single() or game.turn is not None
]
playable = pytest.mark.parametrize("playable", PLAYABLE, ids=[game.id for game in PLAYABLE])


def make_one(game: Any) -> Any:
    """One env with its time limit: Gymnasium's TimeLimit for a registered game, the simulator's for a toy."""
    if game.id in gpuzoo.ids():
        return gymnasium.make(f"gpuzoo/{game.id}", max_episode_steps=LIMIT)
    return SingleEnv(game, max_episode_steps=LIMIT)


def theirs_of(game: Any, n: int) -> DummyVectorEnv:
    if game.turn is None:
        return DummyVectorEnv([lambda: make_one(game)] * n)
    return DummyVectorEnv([lambda: PettingZooEnv(gpuzoo.aec_env(game, max_cycles=LIMIT))] * n)


def leaves(observation: Any) -> dict[str, np.ndarray]:
    """An observation's arrays by Tianshou's names, from a Batch, an array, or Tianshou's array of dictionaries.

    Gymnasium has masks as int8 and Discrete observations as int64, ours are bool and int32.
    """
    batch = Batch(obs=observation).obs
    if not isinstance(batch, Batch):
        return {"obs": integers(batch)}
    names = {"observation": "obs", "action_mask": "mask"}
    parts = {names.get(key, key): value for key, value in batch.items()}
    parts["obs"], parts["mask"] = integers(parts["obs"]), np.asarray(parts["mask"], np.bool_)
    return {key: value.astype("U") if key == "agent_id" else value for key, value in parts.items()}  # names, as text


def integers(array: Any) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(np.int64) if array.dtype == np.int32 else array


def same(what: str, ours: Any, theirs: Any, where: Any = slice(None)) -> None:
    left, right = leaves(ours), leaves(theirs)
    assert_same(what, {k: v[where] for k, v in left.items()}, {k: v[where] for k, v in right.items()})


def actions_for(ours: TianshouVectorEnv, observation: Any, rng: np.random.Generator) -> np.ndarray:
    """Random actions, legal ones where a Discrete action has a mask."""
    space = ours.action_space[0]
    if "mask" in leaves(observation) and isinstance(space, gymnasium.spaces.Discrete):
        mask = leaves(observation)["mask"]
        return np.where(mask, rng.random(mask.shape), -1).argmax(1)
    return np.stack([space.sample() for _ in range(len(leaves(observation)["obs"]))])


# ---- against DummyVectorEnv ----


@playable
def test_equals_dummy_vector_env(playable):
    game = playable
    n, rng = 5, np.random.default_rng(0)
    ours = TianshouVectorEnv(game, n, device="cpu", max_episode_steps=LIMIT)
    theirs = theirs_of(game, n)
    assert len(ours) == len(theirs) == n
    assert ours.action_space == theirs.action_space
    assert ours.observation_space == theirs.observation_space
    assert ours.is_async == theirs.is_async
    assert ours.seed(7) == [[7 + i] for i in range(n)]
    theirs.seed(7)
    (a, infos), (b, _) = ours.reset(), theirs.reset()
    same("reset", a, b)
    assert [i["env_id"] for i in infos] == list(range(n))
    seen: Any = np.empty(n, object)  # each env's last observation, as Tianshou stacks them
    seen[:] = list(b)
    ended = 0
    for step in range(80):
        # all in order, all as a permutation, some
        ids = [None, rng.permutation(n), np.sort(rng.permutation(n)[:2]), [3]][step % 4]
        rows = np.arange(n) if ids is None else np.asarray(ids)
        actions = actions_for(ours, np.stack(list(seen[rows])), rng)
        (a, *mine, infos), (b, *other, other_infos) = ours.step(actions, ids), theirs.step(actions, ids)
        for name, left, right in zip(("reward", "terminated", "truncated"), mine, other, strict=True):
            assert_same(f"step {step}", {name: left}, {name: right})
        assert [i["env_id"] for i in infos] == [i["env_id"] for i in other_infos] == rows.tolist()
        done = mine[1] | mine[2]
        # PettingZoo lets a finished agent be the next to "move"; nobody learns from that observation's agent_id.
        same(f"step {step}", a, b, ~done if game.turn is not None else slice(None))
        seen[rows] = list(b)
        if done.any():
            ended += int(done.sum())
            (a, infos), (b, _) = ours.reset(rows[done]), theirs.reset(rows[done])
            same(f"reset in step {step}", a, b)
            assert [i["env_id"] for i in infos] == rows[done].tolist()
            seen[rows[done]] = list(b)
    assert ended > 3
    assert ours.close() is theirs.close() is None


def test_collector_equals_dummy_vector_env(single_game):
    """The same transitions reach the buffer, episode by episode."""
    buffers = []
    for envs in (TianshouVectorEnv(single_game, 3, device="cpu", max_episode_steps=LIMIT), theirs_of(single_game, 3)):
        envs.seed(3)
        collector = Collector(Blind(envs.action_space[0]), envs, VectorReplayBuffer(600, 3))
        collector.reset()
        stats = collector.collect(n_step=150, random=True)
        again = collector.collect(n_episode=7, random=True)
        assert again.n_collected_episodes == 7
        buffers.append((collector.buffer, stats, again))
    (ours, *mine), (theirs, *other) = buffers
    for left, right in zip(mine, other, strict=True):
        assert left.n_collected_steps == right.n_collected_steps
        np.testing.assert_array_equal(left.returns, right.returns)
        np.testing.assert_array_equal(left.lens, right.lens)
    for part in ("act", "rew", "terminated", "truncated", "done"):
        np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))
    same("obs", ours.obs, theirs.obs)
    same("obs_next", ours.obs_next, theirs.obs_next)


class Blind(Policy):
    """The first action, whatever it sees."""

    def __init__(self, space: Any) -> None:
        super().__init__(action_space=space, action_scaling=False, action_bound_method=None)

    def forward(self, batch: Any, state: Any = None, **kwargs: Any) -> Any:
        return Batch(act=np.zeros((len(batch), *self.action_space.shape), self.action_space.dtype))


def test_collector_plays_turn_based_games():
    """Each transition has the agent who moved, a legal move of it, and rewards per agent; the agents alternate."""
    envs = TianshouVectorEnv(Nim, 4, device="cpu")
    envs.seed(0)
    random = {
        a: MARLRandomDiscreteMaskedOffPolicyAlgorithm(space).policy
        for a, space in zip(envs.agents, envs.action_space, strict=False)
    }
    collector = Collector(MultiAgentPolicy(random), envs, VectorReplayBuffer(4000, 4))
    collector.reset()
    stats = collector.collect(n_episode=50)
    assert stats.n_collected_episodes == 50
    assert stats.returns.shape == (50, 2)
    assert set(map(tuple, stats.returns.tolist())) == {(1.0, -1.0), (-1.0, 1.0)}
    data = collector.buffer[:]
    mover = np.array([envs.agent_idx[a] for a in data.obs.agent_id])
    assert np.take_along_axis(data.obs.mask, data.act[:, None], 1).all()
    assert data.obs.obs[:, 1].all()  # Nim shows an agent whether it is its turn
    assert (data.rew[data.done, mover[data.done]] == 1).all()  # who takes the last stick wins
    assert not data.rew[~data.done].any()
    follows = ~data.done
    following = np.array([envs.agent_idx[a] for a in data.obs_next.agent_id[follows]])
    assert (following == 1 - mover[follows]).all()


def test_an_agent_that_leaves_does_not_end_the_episode():
    envs = TianshouVectorEnv(Relay, 2, device="cpu")
    observation, _ = envs.reset(seed=0)
    assert set(observation.keys()) == {"agent_id", "obs"}  # no masks
    story = []
    for _ in range(3):
        movers = observation.agent_id.tolist()
        observation, rewards, terminated, truncated, _ = envs.step([0, 1])
        story.append((movers, rewards.tolist(), terminated.tolist()))
        assert not truncated.any()
    first, second = ["runner_0"] * 2, ["runner_1"] * 2
    assert story == [
        (first, [[1, 0], [2, 0]], [False, False]),
        (second, [[0, 1], [0, 2]], [False, False]),
        (second, [[0, 1], [0, 2]], [True, True]),
    ]


@pytest.mark.parametrize("n_episode", [3, 4, 11])
def test_episode_counts(n_episode):
    """Collectors take fewer envs than there are, and leave out those that are through."""
    envs = TianshouVectorEnv("CartPole-v1", 4, device="cpu", max_episode_steps=20)
    collector = Collector(Blind(envs.action_space[0]), envs)
    collector.reset()
    stats = collector.collect(n_episode=n_episode) if n_episode >= 4 else few(collector, n_episode)
    assert stats.n_collected_episodes == len(stats.lens) == n_episode
    assert stats.n_collected_steps >= stats.lens.sum()
    np.testing.assert_array_equal(stats.lens, stats.returns)  # a reward of 1 per step
    assert set(stats.lens) <= set(range(8, 12))  # pushing left all the time


def few(collector: Collector, n_episode: int) -> Any:
    with pytest.warns(UserWarning, match="should be larger than"):
        return collector.collect(n_episode=n_episode)


# ---- ids ----


@playable
def test_others_do_not_advance(playable):
    """Those that are stepped do as in a step of all; the others stay as they are."""
    rng = np.random.default_rng(1)
    whole, part = (TianshouVectorEnv(playable, 4, device="cpu", max_episode_steps=LIMIT) for _ in range(2))
    for envs in (whole, part):
        observation, _ = envs.reset(seed=5)
    ids = np.array([2, 0])
    for _ in range(6):
        before = part.simulator.snapshot([1, 3]).numpy().arrays
        actions = actions_for(whole, observation, rng)
        observation, *_ = whole.step(actions)
        some, *_ = part.step(actions[ids], ids)
        same("stepped", some, observation[ids])
        assert_same("the others", part.simulator.snapshot([1, 3]).numpy().arrays, before)


def test_partial_reset_is_seeded_by_env():
    envs = TianshouVectorEnv("CartPole-v1", 4, device="cpu")
    first, _ = envs.reset(seed=10)
    envs.step([0, 0, 0, 0])
    again, infos = envs.reset([3, 1], seed=10)
    np.testing.assert_array_equal(again, first[[3, 1]])
    assert [i["env_id"] for i in infos] == [3, 1]
    assert not np.array_equal(envs.reset(2)[0], first[[2]])


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([0, 4], IndexError, r"ids of envs must be from 0 to 3, not \[0, 4\]"),
        (-1, IndexError, "must be from 0 to 3"),
        ([1, 1], ValueError, "each env can be named only once"),
        ([], TypeError, "must be an int, a sequence of ints, or None"),
        ([0.5], TypeError, "must be an int"),
        (np.ones(4, np.bool_), TypeError, "must be an int"),
        ([[0, 1]], TypeError, "must be an int"),
        ("all", TypeError, "must be an int"),
    ],
)
def test_wrong_ids(ids, error, message):
    envs = TianshouVectorEnv("CartPole-v1", 4, device="cpu")
    envs.reset(seed=0)
    before = envs.simulator.snapshot().numpy().arrays
    for call in (lambda: envs.step(np.zeros(np.size(ids), np.int64), ids), lambda: envs.reset(ids)):
        with pytest.raises(error, match=message):
            call()
    assert_same("after errors", envs.simulator.snapshot().numpy().arrays, before)


def test_the_first_reset_is_of_all():
    envs = TianshouVectorEnv("CartPole-v1", 3, device="cpu")
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step"):
        envs.step([0, 0, 0])
    with pytest.raises(RuntimeError, match="first reset must be of all envs"):
        envs.reset([0])
    assert envs.reset([2, 1, 0])[0].shape == (3, 4)


# ---- actions and arrays ----


def test_kinds_of_actions():
    results = []
    for actions in ([0, 1, 1], np.array([0, 1, 1], np.int32), torch.tensor([0, 1, 1])):
        envs = TianshouVectorEnv("CartPole-v1", 3, device="cpu")
        envs.reset(seed=0)
        results.append(envs.step(actions)[0])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([0, 1, 0], ValueError, r"actions of 2 envs must have shape \(2,\), not \(3,\)"),
        ([0.0, 1.0], TypeError, "must be integers in Discrete"),
        (None, ValueError, "must have shape"),
    ],
)
def test_wrong_actions(actions, error, message):
    envs = TianshouVectorEnv("CartPole-v1", 3, device="cpu")
    envs.reset(seed=0)
    with pytest.raises(error, match=message):
        envs.step(actions, [0, 1])


@playable
def test_arrays_are_fresh(playable):
    envs = TianshouVectorEnv(playable, 3, device="cpu", max_episode_steps=LIMIT)
    envs.seed(0)
    kept = []
    observation, _ = envs.reset()
    for step in range(8):
        ids = None if step % 2 else [1, 2]
        actions = np.stack([s.sample() for s in envs.action_space])[slice(None) if ids is None else ids]
        observation, *rest, _ = envs.step(actions, ids)
        arrays = {**leaves_as_they_are(observation), **dict(zip("abc", rest, strict=True))}
        kept.append((arrays, {k: v.copy() for k, v in arrays.items()}))
    envs.reset()
    for arrays, copies in kept:
        assert_same("kept", arrays, copies)


def leaves_as_they_are(observation: Any) -> dict[str, np.ndarray]:
    items = dict(observation.items()) if isinstance(observation, Batch) else {"obs": observation}
    return {k: v for k, v in items.items() if k != "agent_id"}


def test_finished_envs_stand_still():
    envs = TianshouVectorEnv("CartPole-v1", 2, device="cpu", max_episode_steps=3)
    envs.reset(seed=0)
    for _ in range(3):
        last, rewards, terminated, truncated, _ = envs.step([1, 1])
    assert truncated.all()
    assert not terminated.any()
    observation, rewards, terminated, truncated, _ = envs.step([0, 0])
    np.testing.assert_array_equal(observation, last)
    assert rewards.tolist() == [0.0, 0.0]
    assert truncated.all()


def test_device_form():
    """The same through the code that a GPU runs."""
    rng = np.random.default_rng(0)
    ours, theirs = (TianshouVectorEnv("ConnectFour-v0", 5, device=device) for device in ("cpu", "simt"))
    (a, _), (b, _) = ours.reset(seed=0), theirs.reset(seed=0)
    for step in range(20):
        ids = rng.permutation(5)[: 1 + step % 5]
        a, _ = ours.reset(ids) if step == 10 else (a, None)
        b, _ = theirs.reset(ids) if step == 10 else (b, None)
        actions = rng.integers(0, 7, len(ids))
        (a, *mine, _), (b, *other, _) = ours.step(actions, ids), theirs.step(actions, ids)
        same(f"step {step}", a, b)
        for left, right in zip(mine, other, strict=True):
            np.testing.assert_array_equal(left, right)


# ---- the rest of the interface ----


def test_attributes():
    envs = TianshouVectorEnv("CartPole-v1", 3, device="cpu", length=np.array([0.3, 0.5, 0.7]))
    envs.reset(seed=0)
    assert envs.metadata[0]["render_fps"] == gpuzoo.get("CartPole-v1").render_fps
    assert [s.id for s in envs.spec] == ["gpuzoo/CartPole-v1"] * 3
    np.testing.assert_allclose(envs.get_env_attr("length", [2, 0]), [0.7, 0.3], rtol=1e-6)  # float32
    envs.set_env_attr("x", 1.5, [1])
    assert envs.get_env_attr("x", 1) == [1.5]
    assert envs.get_env_attr("x")[0] != 1.5
    envs.set_env_attr("length", 0.25, 0)
    assert envs.get_env_attr("length", 0) == [0.25]
    with pytest.raises(AttributeError, match=r"no attribute 'lenght'; did you mean 'length'"):
        envs.get_env_attr("lenght")
    with pytest.raises(KeyError, match="no field"):
        envs.set_env_attr("lenght", 1)
    envs.seed(0)
    samples = [[space.sample() for _ in range(30)] for space in envs.action_space]
    assert samples[0] != samples[1]  # Tianshou's random collection draws from each env's own space


def test_seeds():
    envs = TianshouVectorEnv("CartPole-v1", 3, device="cpu")
    assert envs.seed([4, 9, 1]) == [[4], [9], [1]]
    ours, _ = envs.reset()
    theirs = DummyVectorEnv([lambda: make_one(gpuzoo.get("CartPole-v1"))] * 3)
    theirs.seed([4, 9, 1])
    np.testing.assert_array_equal(ours, theirs.reset()[0])
    assert envs.seed() == [[None]] * 3
    with pytest.raises(ValueError, match="3 envs need as many seeds, not 2"):
        envs.seed([0, 1])


def test_render_and_close():
    pytest.importorskip("PIL")
    envs = TianshouVectorEnv("CartPole-v1", 2, device="cpu", render_mode="rgb_array")
    envs.reset(seed=0)
    pictures = envs.render()
    assert [p.shape for p in pictures] == [(480, 480, 3)] * 2
    assert not np.array_equal(*pictures)
    envs.close()
    envs.close()
    for call in (envs.reset, lambda: envs.step([0, 0]), envs.render, envs.seed, lambda: envs.get_env_attr("x")):
        with pytest.raises(RuntimeError, match="was closed"):
            call()
    assert TianshouVectorEnv("CartPole-v1", 2, device="cpu").render() == [None, None]


def test_refusals():
    with pytest.raises(ValueError, match="reset envs themselves: leave out autoreset_mode='same_step'"):
        TianshouVectorEnv("CartPole-v1", 2, autoreset_mode="same_step")
    assert len(TianshouVectorEnv("CartPole-v1", 2, device="cpu", autoreset_mode="disabled")) == 2
    with pytest.raises(TypeError, match="makes its batch itself, from the id of a game or an EnvDef, not from"):
        TianshouVectorEnv(gpuzoo.make_vec("CartPole-v1", 2))
    with pytest.raises(ValueError, match=r"Herd-v0: agents act at the same time.*PettingZooEnv\(gpuzoo\.aec_env"):
        TianshouVectorEnv(Herd, 2)
    with pytest.raises(ValueError, match="render_mode must be one of 'rgb_array' or None"):
        TianshouVectorEnv("CartPole-v1", 2, render_mode="human")


def test_agents_that_act_at_once():
    """What the refusal recommends in place of the adapter works."""
    make = [lambda: PettingZooEnv(gpuzoo.aec_env("SimpleSpread-v0", max_cycles=5))] * 2
    envs = DummyVectorEnv(make)
    env = make[0]()
    policy = MultiAgentPolicy({agent: Blind(env.action_space) for agent in env.agents})
    collector = Collector(policy, envs, VectorReplayBuffer(200, 2))
    collector.reset()
    assert collector.collect(n_episode=4).returns.shape == (4, 3)


def test_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "tianshou.data", None)
    monkeypatch.delitem(sys.modules, "gpuzoo.wrappers.tianshou")
    with pytest.raises(ImportError, match=r"pip install 'gpuzoo\[tianshou\]'"):
        import gpuzoo.wrappers.tianshou  # noqa: F401
