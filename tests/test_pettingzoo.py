"""PettingZoo's own tests, and what they do not look at."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pettingzoo
import pytest
from toys.herd import Herd
from toys.nim import Nim

import gpuzoo
from gpuzoo import aec_env, parallel_env, testing
from gpuzoo.testing.tools import assert_same, leaves_of

pytestmark = pytest.mark.by_kind

pytest.importorskip("pygame")  # PettingZoo's tests draw
with warnings.catch_warnings():  # and import one of its games in the way that it deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import (
        api_test,
        max_cycles_test,
        parallel_api_test,
        parallel_seed_test,
        render_test,
        seed_test,
        state_test,
    )

# PettingZoo's tests warn of observations that look unusual: advice to authors, not a fault of an interface.
ADVICE = pytest.mark.filterwarnings(
    "ignore:Observation is not a NumPy array:UserWarning",  # with a mask it is a dictionary, as PettingZoo has it
    "ignore:(Observation|Action) space for each agent probably should be:UserWarning",  # Dict, MultiDiscrete
    "ignore:Agents have different (observation|action) space sizes:UserWarning",  # unlike groups
    "ignore:Observations (are different shapes|have different number of dimensions):UserWarning",
    "ignore:.*infinity:UserWarning",  # unbounded observations
    "ignore:.*all zeros:UserWarning",  # Connect Four's empty board
    "ignore:The observation contains negative numbers and is in the shape of a graphical observation:UserWarning",
)


@ADVICE
def test_parallel_api(parallel_game):
    parallel_api_test(parallel_env(parallel_game), num_cycles=120)


@ADVICE
def test_aec_api(multi_game):
    api_test(aec_env(multi_game, max_cycles=60), num_cycles=150)


def test_parallel_seed(parallel_game):
    parallel_seed_test(lambda: parallel_env(parallel_game, max_cycles=30), num_cycles=60)


def test_strong_seed(parallel_game):
    testing.strong_seed_test(lambda: parallel_env(parallel_game, max_cycles=30))


def test_aec_seed(multi_game):
    seed_test(lambda **kwargs: aec_env(multi_game, max_cycles=30, **kwargs), num_cycles=100)


def test_max_cycles(registered_game):
    if registered_game.single():
        return
    module = getattr(importlib.import_module("gpuzoo.envs"), registered_game.module_name())
    if registered_game.turn is None:
        try:
            max_cycles_test(module)
        except AssertionError:
            # The test takes for granted that no episode ends before its limit.
            if not ends_early(registered_game):
                raise
    env = module.env(max_cycles=3)
    env.reset(seed=0)
    assert env.possible_agents


def ends_early(game: Any) -> bool:
    sim = gpuzoo.Simulator(game, 4, device="cpu", max_episode_steps=None, autoreset_mode="disabled")
    sim.reset(seed=0)
    sim.rollout(40)
    if sim.arrays["waiting"].any() or not sim.arrays["alive"].all():
        return True
    env = parallel_env(game)
    env.reset(seed=0)
    before = len(env.agents)
    for _ in range(5):
        env.step({a: env.action_space(a).sample() for a in env.agents})  # illegal actions may end it
    return len(env.agents) < before


def test_max_cycles_is_exact(parallel_game):
    for limit in (1, 4):
        env = parallel_env(parallel_game, max_cycles=limit)
        env.reset(seed=1)
        for t in range(1, limit + 1):
            acting = list(env.agents)
            if not acting:
                break
            truncations = env.step({a: env.action_space(a).sample() for a in acting})[3]
            assert all(truncations.values()) == (t == limit)
            assert any(truncations.values()) == (t == limit)
        assert env.agents == []


def test_render(multi_game):
    pytest.importorskip("PIL")
    pytest.importorskip("pygame")
    render_test(lambda **kwargs: aec_env(multi_game, max_cycles=8, **kwargs))


@ADVICE
def test_state(parallel_game):
    state_test(aec_env(parallel_game), parallel_env(parallel_game))


@ADVICE
def test_aec_state(multi_game):
    env = aec_env(multi_game)
    env.reset(seed=0)
    assert env.unwrapped.state_space.contains(env.state())


def test_registry(registered_game):
    if registered_game.single():
        return
    if not hasattr(pettingzoo, "make"):
        pytest.skip("PettingZoo before 1.27 has no registry")
    env = pettingzoo.make("aec", f"gpuzoo/{registered_game.id}", max_cycles=5)
    env.reset(seed=0)
    if registered_game.turn is None:
        env = pettingzoo.make("parallel", f"gpuzoo/{registered_game.id}", max_cycles=5)
        env.reset(seed=0)
        assert env.unwrapped.max_cycles == 5
        assert (
            pettingzoo.make("parallel", f"gpuzoo/{registered_game.id}").unwrapped.max_cycles
            == registered_game.max_episode_steps
        )


class _Faulty:
    """A parallel env with one fault, for the checkers to find."""

    def __init__(self, fault: str) -> None:
        self._env, self.fault, self._steps = parallel_env(Herd, max_cycles=20), fault, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        return self._env.reset(seed=None if self.fault == "seed" else seed, options=options)

    def action_space(self, agent: str) -> Any:
        space = self._env.action_space(agent)
        return type(space)(space.n) if self.fault == "new spaces" else space

    def step(self, actions: Any) -> Any:
        observations, rewards, terminations, truncations, infos = self._env.step(actions)
        if self.fault == "dead agents stay":
            for agent in self._env.possible_agents:
                rewards.setdefault(agent, 0.0)
        if self.fault == "numpy flags":
            terminations = {a: np.bool_(v) for a, v in terminations.items()}
        if self.fault == "late noise":
            self._steps += 1
            for agent in rewards:
                rewards[agent] += 1e-6 * (self._steps > 30) * self._steps
        if self.fault == "out of space":
            for agent in observations:
                observations[agent]["observation"] += 100
        return observations, rewards, terminations, truncations, infos


@pytest.mark.parametrize("fault", ["dead agents stay", "numpy flags", "out of space", "new spaces"])
def test_checker_refuses_a_broken_parallel_env(fault):
    with pytest.raises(AssertionError):
        testing.check_parallel_env(lambda: _Faulty(fault))


@pytest.mark.parametrize("fault", ["seed", "late noise"])
def test_strong_seed_test_refuses_a_broken_env(fault):
    with pytest.raises(AssertionError):
        testing.strong_seed_test(lambda: _Faulty(fault))


def test_returned_dictionaries_are_fresh(parallel_game):
    env = parallel_env(parallel_game, max_cycles=10)
    observations, _ = env.reset(seed=0)
    copies = {k: v.copy() for k, v in leaves_of(observations).items()}
    for _ in range(3):
        env.step({a: env.action_space(a).sample() for a in env.agents})
    assert_same("observations of the reset", copies, leaves_of(observations))


def test_parallel_equals_batch(parallel_game):
    """The PettingZoo view shows what the batched one shows, agent by agent."""
    batch = gpuzoo.make(parallel_game, 1, device="cpu", autoreset_mode="disabled", max_episode_steps=25)
    env = parallel_env(parallel_game, max_cycles=25)
    seen, _ = batch.reset(seed=3)
    observations, _ = env.reset(seed=3)
    places = [(group, k) for group, n in batch.groups.items() for k in range(n)]
    names = dict(zip(batch.simulator.layout.agent_names(), places, strict=True))
    by_place = {place: name for name, place in names.items()}
    assert env.possible_agents == list(names)
    while env.agents:
        acting = list(env.agents)
        for agent in acting:
            group, k = names[agent]
            one = (
                {key: v[0, k] for key, v in seen[group].items()} if isinstance(seen[group], dict) else seen[group][0, k]
            )
            assert_same(agent, leaves_of({"o": one}), leaves_of({"o": observations[agent]}))
        actions = {a: env.action_space(a).sample() for a in acting}
        arrays = {
            g: np.stack(
                [np.asarray(actions.get(by_place[g, k], np.zeros(batch.action_spaces[g].shape))) for k in range(n)]
            )[None]
            for g, n in batch.groups.items()
        }
        arrays = {g: v.astype(batch.action_spaces[g].dtype) for g, v in arrays.items()}
        seen, rewards, terminations, truncations, _ = batch.step(arrays)
        observations, *values, _ = env.step(actions)
        for mine, theirs in zip(values, (rewards, terminations, truncations), strict=True):
            for agent in acting:
                group, k = names[agent]
                assert mine[agent] == theirs[group][0, k]


def test_missing_and_extra_actions():
    env = parallel_env(Herd)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="an action is missing for 'wolf_1'"):
        env.step({"wolf_0": 0})
    with pytest.raises(ValueError, match="Herd-v0 has no agent 'wolf_7'; did you mean 'wolf_1' or 'wolf_0'"):
        env.step({a: 1 for a in env.agents} | {"wolf_7": 3})
    env.step({a: 1 for a in env.agents})


def test_turn_based_games_have_no_parallel_form():
    with pytest.raises(ValueError, match=r"agents act in turns: use gpuzoo\.aec_env"):
        parallel_env(Nim)


def test_aec_turns_and_rewards():
    env = aec_env(Nim)
    env.reset(seed=1)
    movers, total = [], dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        total[agent] += reward
        if terminated or truncated:
            env.step(None)
            continue
        movers.append(agent)
        assert observation["observation"][1] == 1
        env.step(int(np.flatnonzero(observation["action_mask"])[0]))
    assert movers == (["player_0", "player_1"] * len(movers))[: len(movers)]
    assert total[movers[-1]] == 1.0
    assert sum(total.values()) == 0.0
