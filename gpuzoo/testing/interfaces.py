"""Checks of anybody's vector env and parallel env."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from gpuzoo.testing.tools import SEED, Array, assert_same, flattened, leaves_of, to_host


def _rows_of(value: Any, rows: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _rows_of(v, rows) for k, v in value.items()}
    return tuple(_rows_of(v, rows) for v in value) if isinstance(value, tuple) else value[rows]


def _check_infos(infos: Any, n: int, where: str) -> None:
    """Each key has a bool mask under the same key with an underscore, at every level."""
    assert isinstance(infos, Mapping), f"{where}: infos is {type(infos).__name__}, not a dictionary"
    for key, value in infos.items():
        if key.startswith("_") and key[1:] in infos:
            mask = np.asarray(to_host(value))
            assert mask.dtype == np.bool_, f"{where}: infos[{key!r}] is {mask.dtype}, not bool"
            assert mask.shape == (n,), f"{where}: infos[{key!r}] has shape {mask.shape}, not ({n},)"
            continue
        assert f"_{key}" in infos, f"{where}: infos[{key!r}] has no mask infos['_{key}']"
        if isinstance(value, Mapping):
            if key != "final_obs":
                _check_infos(value, n, f"{where}, infos[{key!r}]")
        elif not isinstance(value, tuple):
            assert len(value) == n, f"{where}: infos[{key!r}] has {len(value)} entries, not {n}"


class _Keeper:
    """Remembers arrays with copies of them, to see later that nobody wrote into them."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, str, Array, Array]] = []

    def keep(self, step: int, *values: Any) -> None:
        for value in values:
            self._kept += [(step, name, array, array.copy()) for name, array in leaves_of(value).items()]

    def check(self, step: int) -> None:
        for made, name, array, was in self._kept:
            assert_same(f"what step {made} returned has changed by step {step}", {name: was}, {name: array})


def check_vector_env(env: Any, steps: int = 120, seed: int = SEED, copies: bool = True) -> None:
    """Checks a ``gymnasium.vector.VectorEnv`` of any library: spaces, dtypes, autoreset, infos, seeds, fresh arrays.

    Args:
        env: the vector env. ``metadata["autoreset_mode"]`` chooses which of the three modes is checked. Afterwards it
            is in the middle of episodes. Several rows may belong to one env if it has the attribute ``num_worlds``.
        steps: number of steps; episodes should end within them.
        seed: of the resets.
        copies: whether later steps must not change returned arrays.

    Raises:
        AssertionError: the first fault.
    """
    n, mode = env.num_envs, env.metadata.get("autoreset_mode")
    assert isinstance(mode, AutoresetMode), f"metadata['autoreset_mode'] is {mode!r}, not a gymnasium AutoresetMode"
    assert env.observation_space == batch_space(env.single_observation_space, n), "observation_space is not batched"
    assert env.action_space == batch_space(env.single_action_space, n), "action_space is not batched"
    block = n // getattr(env.unwrapped, "num_worlds", n)
    keeper = _Keeper()

    env.action_space.seed(seed)
    observations, infos = env.reset(seed=seed)
    start = copy.deepcopy(leaves_of(observations))
    _check_observations(env, observations, "reset")
    _check_infos(infos, n, "reset")
    done, finished = np.zeros((2, n), np.bool_)  # in the last step; ever
    plays = np.ones((n // block, block), np.bool_)  # rows that are not done in the present episode
    for step in range(steps):
        over = ~plays.any(1)
        if mode == AutoresetMode.DISABLED and over.any():
            old = to_host(observations)
            mask = np.repeat(over, block)
            observations, infos = env.reset(options={"reset_mask": mask})
            _check_observations(env, observations, f"partial reset before step {step}")
            _check_infos(infos, n, f"partial reset before step {step}")
            assert_same(
                f"observations of envs that were not reset before step {step}",
                leaves_of(_rows_of(old, ~mask)),
                leaves_of(_rows_of(to_host(observations), ~mask)),
            )
            plays[over] = True
        results = env.step(env.action_space.sample())
        assert isinstance(results, tuple) and len(results) == 5, "step must return five values"
        observations, rewards, terminations, truncations, infos = results
        if copies:
            keeper.keep(step, observations, rewards, terminations, truncations, infos)
        where = f"step {step}"
        _check_observations(env, observations, where)
        _check_infos(infos, n, where)
        rewards, terminations, truncations = to_host((rewards, terminations, truncations))
        assert rewards.shape == (n,) and rewards.dtype.kind == "f", (
            f"{where}: rewards are {rewards.dtype}{rewards.shape}"
        )
        for name, flags in (("terminations", terminations), ("truncations", truncations)):
            assert flags.shape == (n,) and flags.dtype == np.bool_, f"{where}: {name} are {flags.dtype}{flags.shape}"
        new = terminations | truncations
        if mode == AutoresetMode.NEXT_STEP:
            assert not (done & new).any(), f"{where}: an env is done twice in a row"
            assert not rewards[done].any(), f"{where}: the step that resets an env has a reward"
        if mode == AutoresetMode.SAME_STEP:
            _check_final(env, infos, new, where)
        else:
            assert "final_obs" not in infos, f"{where}: infos has final_obs, which belongs to same-step mode"
        done, finished = new, finished | new
        plays &= ~new.reshape(plays.shape)
    assert finished.all(), f"env {np.argmin(finished)} had no end in {steps} steps"
    keeper.check(steps)
    observations, _ = env.reset(seed=seed)
    assert_same("a second reset with the same seed", start, leaves_of(observations))


def _check_observations(env: Any, observations: Any, where: str) -> None:
    host = to_host(observations)
    leaves, wanted = dict(flattened(host)), dict(flattened(to_host(env.observation_space.sample())))
    for name, array in leaves.items():
        assert name in wanted, f"{where}: an observation has {name!r}, its space has not"
        want = wanted[name]
        assert array.shape == want.shape, f"{where}: observations {name} have shape {array.shape}, not {want.shape}"
        assert np.can_cast(array.dtype, want.dtype), f"{where}: observations {name} are {array.dtype}, not {want.dtype}"
    assert env.observation_space.contains(host), f"{where}: observations are not in the observation space: {host}"


def _check_final(env: Any, infos: Mapping[str, Any], done: Array, where: str) -> None:
    if not done.any():
        assert not np.asarray(to_host(infos.get("_final_obs", False))).any(), f"{where}: final_obs, but no env is done"
        return
    assert "final_obs" in infos, f"{where}: an env is done, but infos has no final_obs"
    assert_same(where, {"_final_obs": done}, {"_final_obs": np.asarray(to_host(infos["_final_obs"]))})
    assert "final_info" in infos, f"{where}: an env is done, but infos has no final_info"
    final = to_host(infos["final_obs"])
    for i in np.flatnonzero(done):
        one = _rows_of(final, i)
        assert env.single_observation_space.contains(one), (
            f"{where}: the final observation {one} of env {i} is not in its space"
        )


def _sample(env: Any, observations: Mapping[str, Any], infos: Mapping[str, Any]) -> dict[str, Any]:
    actions = {}
    for agent in env.agents:
        observation = observations[agent]
        mask = observation.get("action_mask") if isinstance(observation, Mapping) else None
        mask = infos[agent].get("action_mask") if mask is None else mask
        space = env.action_space(agent)
        if mask is not None and isinstance(space, spaces.MultiDiscrete):
            mask = tuple(np.split(mask, np.cumsum(space.nvec)[:-1]))
        actions[agent] = space.sample(mask=mask)
    return actions


def check_parallel_env(make: Callable[[], Any], episodes: int = 3, max_steps: int = 10_000) -> None:
    """Plays whole episodes of a PettingZoo ``ParallelEnv``, and checks the keys of its dictionaries, spaces and types.

    The keys of all five dictionaries are the agents that were in the game when the step began. A finished agent leaves
    ``agents`` at once. An episode ends when no agent is left.

    Args:
        make: makes the env.
        episodes: how many are played.
        max_steps: when an episode counts as endless.

    Raises:
        AssertionError: the first fault.
    """
    env = make()
    for agent in env.possible_agents:
        assert env.observation_space(agent) is env.observation_space(agent), (
            "observation_space must not make new spaces"
        )
        assert env.action_space(agent) is env.action_space(agent), "action_space must not make new spaces"
        env.action_space(agent).seed(SEED)
    for episode in range(episodes):
        observations, infos = env.reset(seed=SEED + episode)
        assert env.agents == env.possible_agents, "a reset must bring all agents back"
        assert env.agents is not env.possible_agents, "agents and possible_agents are one list"
        _check_agents(env, env.agents, observations, "reset", infos)
        for step in range(max_steps):
            acting = list(env.agents)
            results = env.step(_sample(env, observations, infos))
            observations, rewards, terminations, truncations, infos = results
            where = f"step {step} of episode {episode}"
            names = ("observations", "rewards", "terminations", "truncations", "infos")
            for name, part in zip(names, results, strict=True):
                assert set(part) == set(acting), (
                    f"{where}: the keys of {name} are {sorted(part)}, but in the game were {sorted(acting)}"
                )
            _check_agents(env, acting, observations, where, infos)
            for agent in acting:
                for flag in (terminations[agent], truncations[agent]):
                    assert isinstance(flag, bool), f"{where}: a flag of {agent} is {type(flag).__name__}, not bool"
                assert np.isscalar(rewards[agent]), f"{where}: the reward of {agent} is {rewards[agent]!r}, no number"
            left = [a for a in acting if not (terminations[a] or truncations[a])]
            assert env.agents == left, f"{where}: agents is {env.agents}, but not done are {left}"
            if not left:
                break
        else:
            raise AssertionError(f"episode {episode} has no end within {max_steps} steps")
    env.close()


def _check_agents(env: Any, agents: Sequence[str], observations: Any, where: str, infos: Any) -> None:
    for agent in agents:
        space = env.observation_space(agent)
        assert space.contains(observations[agent]), (
            f"{where}: the observation {observations[agent]} of {agent} is not in {space}"
        )
        assert isinstance(infos[agent], dict), f"{where}: the info of {agent} is not a dictionary"


def strong_seed_test(make: Callable[[], Any], episodes: int = 3, max_steps: int = 10_000) -> None:
    """Checks that a PettingZoo ``ParallelEnv`` repeats itself to the last bit, over whole episodes.

    (PettingZoo 1.27's own ``parallel_seed_test`` checks the first step only.) Only the first episode is seeded.

    Args:
        make: makes the env.
        episodes: how many are compared.
        max_steps: when an episode counts as endless.

    Raises:
        AssertionError: two envs with one seed differ, or an env differs in its second run.
    """
    first, second = make(), make()
    stories = [_story(env, episodes, max_steps) for env in (first, second, second)]
    for what, story in (("two envs with one seed", stories[1]), ("one env seeded twice", stories[2])):
        for k, (a, b) in enumerate(itertools.zip_longest(stories[0], story)):
            assert a is not None and b is not None, f"{what}: episodes of different length"
            assert_same(f"{what}, step {k}", a, b)
    for env in (first, second):
        env.close()


def _story(env: Any, episodes: int, max_steps: int) -> list[dict[str, Array]]:
    out = []
    for episode in range(episodes):
        observations, infos = env.reset(seed=SEED if episode == 0 else None)
        if episode == 0:
            for agent in env.possible_agents:
                env.action_space(agent).seed(SEED)
        out.append(leaves_of({"observations": observations}))
        for _ in range(max_steps):
            if not env.agents:
                break
            results = env.step(_sample(env, observations, infos))
            observations, infos = results[0], results[4]
            names = ("observations", "rewards", "terminations", "truncations", "infos")
            out.append(copy.deepcopy(leaves_of(dict(zip(names, results, strict=True)))))
    return out
