"""RLlib's checker, and comparison with Gymnasium's and PettingZoo's views and with RLlib's own vector env."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.vector.sync_vector_multi_agent_env import SyncVectorMultiAgentEnv
from ray.rllib.utils.pre_checks.env import check_multiagent_environments
from toys.herd import Herd
from toys.nim import Nim

import gpuzoo
from gpuzoo import aec_env, parallel_env
from gpuzoo.core.layout import choices
from gpuzoo.testing.tools import assert_same, leaves_of
from gpuzoo.wrappers.rllib import RLlibMultiAgentEnv, RLlibMultiAgentVectorEnv, RLlibVectorEnv, policies

MIXED = {"env": Herd, "wolfs": 1, "sheeps": 8, "cells": 5, "max_episode_steps": 3}


def same(where: str, one: Any, other: Any) -> None:
    assert_same(where, leaves_of({"": one}), leaves_of({"": other}))


def renamed(observation: Any) -> Any:
    """A PettingZoo observation under RLlib's names."""
    if not isinstance(observation, dict):
        return observation
    return {"observations": observation["observation"], "action_mask": observation["action_mask"]}


def sample(env: RLlibMultiAgentEnv, observations: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Random legal actions of the agents that observe."""
    actions = {}
    for agent, observation in observations.items():
        space = env.get_action_space(agent)
        sizes = choices(space)
        if not sizes:
            actions[agent] = rng.uniform(space.low, space.high).astype(np.float32)
            continue
        mask = observation["action_mask"] if isinstance(observation, dict) else np.ones(sum(sizes), np.int8)
        parts = np.split(mask, np.cumsum(sizes)[:-1])
        picks = [rng.choice(np.flatnonzero(part) if part.any() else len(part)) for part in parts]
        actions[agent] = np.array(picks) if space.shape else picks[0]
    return actions


def draws(count: int) -> list[tuple[int, int]]:
    """Seeds and time limits from the whole range."""
    rng = np.random.default_rng(5)
    return [(int(rng.integers(2**31)), int(rng.integers(1, 60))) for _ in range(count)]


# ---- one env of several agents ----


def test_checker(multi_game):
    check_multiagent_environments(RLlibMultiAgentEnv({"env": multi_game}))


def test_checker_where_agents_die():
    env = RLlibMultiAgentEnv({"env": Herd, "wolfs": 8, "sheeps": 30, "cells": 12})
    check_multiagent_environments(env)
    alive = env.simulator.arrays["alive"]
    assert alive.any()
    assert not alive.all(), "the checker's step should have killed some"


def test_observations_are_in_their_spaces(multi_game):
    for flatten in (False, True):
        env, rng = RLlibMultiAgentEnv({"env": multi_game, "flatten": flatten}), np.random.default_rng(0)
        observations, _ = env.reset(seed=3)
        for _ in range(10):
            for agent, observation in observations.items():
                assert env.get_observation_space(agent).contains(observation), (agent, observation)
            observations, _, terminateds, truncateds, _ = env.step(sample(env, observations, rng))
            if terminateds["__all__"] or truncateds["__all__"]:
                observations, _ = env.reset()


def test_episodes_equal_the_parallel_env(parallel_game):
    rng = np.random.default_rng(1)
    for seed, limit in draws(6):
        mine = RLlibMultiAgentEnv({"env": parallel_game, "max_episode_steps": limit})
        theirs = parallel_env(parallel_game, max_cycles=limit)
        seen, infos = mine.reset(seed=seed)
        observations, _ = theirs.reset(seed=seed)
        assert infos == {}
        while theirs.agents:
            acting = list(theirs.agents)
            # Agents that have just left were in `seen` for the last time.
            assert list(seen) == acting
            same("observations", seen, {a: renamed(observations[a]) for a in acting})
            actions = sample(mine, seen, rng)
            last, rewards, terminateds, truncateds, infos = mine.step(actions)
            observations, expected, terminations, truncations, _ = theirs.step(actions)
            same("observations", last, {a: renamed(o) for a, o in observations.items()})
            assert rewards == expected
            assert terminateds.pop("__all__") == (not theirs.agents and all(terminations.values()))
            assert terminateds == terminations
            cut = any(truncations[a] and not terminations[a] for a in acting)
            assert truncateds == {"__all__": cut}
            assert mine.agents == mine.possible_agents == theirs.possible_agents
            assert infos == {}
            seen = {a: o for a, o in last.items() if a in theirs.agents}


def test_a_mixed_ending_is_a_truncation():
    """Some agents die in the last step, others earlier, and time is up for the rest."""
    found = 0
    for seed in range(40):
        env, rng = RLlibMultiAgentEnv(MIXED), np.random.default_rng(seed)
        seen, _ = env.reset(seed=seed)
        dead: set[str] = set()
        for _ in range(3):
            now, _, terminateds, truncateds, _ = env.step(sample(env, {a: seen[a] for a in seen if a not in dead}, rng))
            before, dead = set(dead), dead | {a for a, flag in terminateds.items() if flag and a != "__all__"}
            assert not before & set(now), "a dead agent observes"
            seen = now
            if terminateds["__all__"] or truncateds["__all__"]:
                break
        assert terminateds["__all__"] == (dead == set(env.agents))
        assert truncateds["__all__"] == (dead != set(env.agents))
        found += bool(before) and dead != before and truncateds["__all__"]
    assert found >= 3


@pytest.mark.parametrize("turns", ["ConnectFour", Nim])
def test_episodes_equal_the_aec_env_in_games_of_turns(turns):
    rng = np.random.default_rng(2)
    for seed, limit in draws(12):
        mine = RLlibMultiAgentEnv({"env": turns, "max_episode_steps": limit})
        theirs = aec_env(turns, max_cycles=limit)
        seen, _ = mine.reset(seed=seed)
        theirs.reset(seed=seed)
        over = False
        while not over:
            assert list(seen) == [theirs.agent_selection]
            same("observation", seen[theirs.agent_selection], renamed(theirs.observe(theirs.agent_selection)))
            actions = sample(mine, seen, rng)
            theirs.step(actions[theirs.agent_selection])
            seen, rewards, terminateds, truncateds, _ = mine.step(actions)
            assert rewards == theirs.rewards
            over = any(theirs.terminations.values()) or any(theirs.truncations.values())
            assert terminateds.pop("__all__") == all(theirs.terminations.values())
            assert terminateds == theirs.terminations
            assert truncateds == {"__all__": over and not all(theirs.terminations.values())}
        # The value of what follows a time limit needs the last observation of both.
        assert list(seen) == mine.possible_agents
        for agent in seen:
            same("last observation", seen[agent], renamed(theirs.observe(agent)))


# ---- batches ----


@pytest.mark.parametrize("flatten", [False, True])
def test_batch_equals_rllibs_vector_env(multi_game, flatten):
    """One batch is what RLlib's ``SyncVectorMultiAgentEnv`` makes of single envs."""
    config, n = {"env": multi_game, "max_episode_steps": 13, "flatten": flatten}, 4
    batch = RLlibMultiAgentVectorEnv(config, n)
    sync = SyncVectorMultiAgentEnv([lambda: RLlibMultiAgentEnv(config)] * n)
    for seed in (11, None, [5, 2**40, 7, 0]):
        rng = np.random.default_rng(0)
        mine, theirs = batch.reset(seed=seed)[0], sync.reset(seed=seed)[0]
        same("reset", mine, theirs)
        over, flags = [False] * n, [{}] * n
        for t in range(30):
            actions = [{} if done else sample(sync.envs[0], o, rng) for o, done in zip(mine, over, strict=True)]
            for action, env_flags in zip(actions, flags, strict=True):
                for agent, flag in env_flags.items():
                    if flag:
                        action.pop(agent, None)
            mine, *values, infos = batch.step(actions)
            theirs, *expected, _ = sync.step(actions)
            same(f"observations {t}", mine, theirs)
            assert values[:2] == [list(v) for v in expected[:2]]
            assert [v["__all__"] for v in values[2]] == [v["__all__"] for v in expected[2]]
            assert infos == [{}] * n
            flags = values[1]
            over = [bool(a["__all__"] or b["__all__"]) for a, b in zip(values[1], values[2], strict=True)]
    batch.close()
    batch.close()
    with pytest.raises(RuntimeError, match="closed"):
        batch.step([{}] * n)


def test_what_a_batch_returned_stays_as_it_is():
    batch, rng = RLlibMultiAgentVectorEnv({"env": Herd}, 3), np.random.default_rng(0)
    kept = batch.reset(seed=0)[0]
    copies = {k: v.copy() for k, v in leaves_of({"": kept}).items()}
    batch.step([sample(batch.envs[0], o, rng) for o in kept])
    assert_same("observations of the reset", copies, leaves_of({"": kept}))


@pytest.mark.parametrize("flatten", [False, True])
def test_single_agent_batch_equals_gymnasiums(single_game, flatten):
    n, limit = 4, 23
    batch = RLlibVectorEnv({"env": single_game, "num_envs": n, "max_episode_steps": limit, "flatten": flatten})
    sync = SyncVectorEnv([lambda: gpuzoo.SingleEnv(single_game, max_episode_steps=limit)] * n)
    assert batch.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    sync.action_space.seed(0)
    mine, infos = batch.reset(seed=3)
    theirs, _ = sync.reset(seed=[(3 << 32) + w for w in range(n)])
    for _ in range(80):
        assert batch.observation_space.contains(mine)
        one, other = (leaves_of(o) for o in ({"": mine}, {"": renamed(theirs)}))
        assert one.keys() == other.keys()
        for key in one:  # Gymnasium makes int64 of Discrete, and ``flatten`` float32 of all
            np.testing.assert_array_equal(one[key], other[key].reshape(one[key].shape).astype(one[key].dtype))
        assert infos == {}
        actions = sync.action_space.sample()
        mine, *values, infos = batch.step(actions)
        theirs, *expected, _ = sync.step(actions)
        for one, other in zip(values, expected, strict=True):
            np.testing.assert_array_equal(one, other.astype(one.dtype))


# ---- what is theirs alone ----


def test_each_view_owns_its_metadata():
    """RLlib's vector env writes a string into the metadata of its first env."""
    before = dict(RLlibMultiAgentEnv.metadata)
    first, second = (RLlibMultiAgentEnv({"env": "SimpleSpread"}) for _ in range(2))
    SyncVectorMultiAgentEnv([lambda: first])
    assert first.metadata["autoreset_mode"] == "next_step"
    assert "autoreset_mode" not in second.metadata
    assert RLlibMultiAgentEnv.metadata == before
    assert RLlibMultiAgentVectorEnv({"env": Herd}).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_env_runners_have_other_seeds():
    """RLlib seeds env runner k with seed + k, and the envs of it with seeds that follow."""
    seeds = []
    for worker in (1, 2, 3):
        batch = RLlibVectorEnv({"env": "CartPole", "num_envs": 4})  # for these RLlib drops the worker's index
        batch.reset(seed=7 + worker)
        seeds += batch.simulator.arrays["seed"].tolist()
        context = EnvContext({"env": "SimpleSpread"}, worker_index=worker, num_workers=3)
        for env in (RLlibMultiAgentVectorEnv(context, 4), RLlibMultiAgentEnv(context)):
            env.reset(seed=7 + worker + (worker if isinstance(env, RLlibMultiAgentEnv) else 0) * 10)
            seeds += env.simulator.arrays["seed"].tolist()
    assert len(set(seeds)) == len(seeds)


def test_policies():
    config = {"env": Herd, "wolfs": 1, "sheeps": 2}
    shared, own = policies(config), policies(config, per_agent=True)
    assert shared["policies"] == ["wolf", "sheep"]
    assert [shared["policy_mapping_fn"](a, None) for a in ("wolf_0", "sheep_1")] == ["wolf", "sheep"]
    assert own["policies"] == ["wolf_0", "sheep_0", "sheep_1"]
    assert own["policy_mapping_fn"]("sheep_1", None, worker=None) == "sheep_1"
    env = RLlibMultiAgentEnv(config)
    for names, choose in (
        (shared["policies"], shared["policy_mapping_fn"]),
        (own["policies"], own["policy_mapping_fn"]),
    ):
        assert {choose(a, None) for a in env.possible_agents} == set(names)


def test_parameters_at_reset():
    env = RLlibMultiAgentEnv({"env": Herd})
    env.reset(seed=0, options={"params": {"bite": 3.0}})
    assert env.simulator.params["bite"] == 3.0


def test_rendering():
    pytest.importorskip("PIL")
    env = RLlibMultiAgentEnv({"env": Herd, "render_mode": "rgb_array"})
    env.reset(seed=0)
    assert env.render().shape[2] == 3
    assert RLlibMultiAgentEnv({"env": Herd}).render() is None
    with pytest.raises(ValueError, match="render_mode"):
        RLlibMultiAgentEnv({"env": Herd, "render_mode": "human"})


@pytest.mark.parametrize(
    ("make", "config", "error", "message"),
    [
        (RLlibVectorEnv, {"num_envs": 2}, ValueError, "env_config needs the id"),
        (RLlibVectorEnv, {"env": "CartPole"}, ValueError, "vector_entry_point"),
        (RLlibVectorEnv, {"env": "SimpleSpread", "num_envs": 2}, ValueError, "use RLlibMultiAgentEnv"),
        (RLlibMultiAgentEnv, {"env": "CartPole"}, ValueError, "use RLlibVectorEnv"),
        (RLlibMultiAgentEnv, {"env": "SimpleSpred"}, ValueError, "SimpleSpread"),
        (RLlibMultiAgentEnv, {"env": "SimpleSpread", "output": "torch"}, ValueError, "output='numpy' only"),
        (RLlibVectorEnv, {"env": "CartPole", "num_envs": 2, "copy": False}, ValueError, "copy=True only"),
        (
            RLlibVectorEnv,
            {"env": "CartPole", "num_envs": 2, "autoreset_mode": "same_step"},
            ValueError,
            "autoreset_mode",
        ),
        (RLlibMultiAgentEnv, {"env": "SimpleSpread", "autoreset_mode": "disabled"}, ValueError, "autoreset"),
        (RLlibMultiAgentEnv, {"env": "SimpleSpread", "speed": 1}, TypeError, "speed"),
    ],
)
def test_what_does_not_fit_is_refused(make, config, error, message):
    with pytest.raises(error, match=message):
        make(config)
    if message == "autoreset":
        make({**config, "autoreset_mode": "next_step"})


def test_missing_actions_are_refused():
    env = RLlibMultiAgentEnv({"env": "SimpleSpread"})
    env.reset(seed=0)
    with pytest.raises(ValueError, match="an action is missing for 'agent_1'"):
        env.step({"agent_0": 0, "agent_2": 0})
