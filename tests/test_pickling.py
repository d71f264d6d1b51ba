"""Pickles and deep copies of every interface: envs of their own, which go on with the same bits."""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import gpuzoo
from gpuzoo import Simulator, VectorEnv, make_pool, make_vec
from gpuzoo.testing.tools import assert_same, leaves_of

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "deepcopy": copy.deepcopy,
}
pytestmark = pytest.mark.parametrize("way", WAYS)


def kept(values: Any) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in leaves_of(values).items()}


def follow(env: Any, steps: int) -> list[Any]:
    """What an env returns for actions drawn from its own spaces."""
    return [kept(env.step(env.action_space.sample())) for _ in range(steps)]


def assert_goes_on(env: Any, twin: Any, story: Callable[[Any, int], list[Any]], steps: int = 60) -> None:
    expected = story(env, steps)
    for step, (wanted, found) in enumerate(zip(expected, story(twin, steps), strict=True)):
        assert_same(f"step {step} of the copy", wanted, found)


def leftmost(observations: Any, masks: Any) -> Any:
    return masks.argmax(-1)


VECTORS: dict[str, Callable[[], Any]] = {
    "next step": lambda: VectorEnv("CartPole-v1", 3, device="cpu", max_episode_steps=9),
    "rows": lambda: make_vec(
        "SimpleSpread-v0", num_worlds=2, device="cpu", autoreset_mode="same_step", statistics=True
    ),
    "disabled": lambda: VectorEnv("CartPole-v1", 3, device="cpu", autoreset_mode="disabled", gravity=[9.0, 5.0, 1.0]),
    "opponents": lambda: VectorEnv("ConnectFour-v0", 3, device="cpu", group="player_1", opponents=leftmost),
    "made by Gymnasium": lambda: gymnasium.make_vec("gpuzoo/CartPole-v1", 2, device="cpu", copy=False),
}


@pytest.mark.parametrize("case", VECTORS)
def test_vector_env(case, way):
    env = VECTORS[case]()
    env.action_space.seed(1)
    env.reset(seed=5)
    follow(env, 25)
    env.unwrapped.simulator.max_episode_steps = 30
    twin = WAYS[way](env)
    assert twin.observation_space == env.observation_space
    assert twin.unwrapped.simulator.max_episode_steps == 30
    assert_goes_on(env, twin, follow)
    a, b = env.reset(), twin.reset()
    assert_same("the next episodes", leaves_of(a), leaves_of(b))
    if env.spec is not None:
        assert twin.spec.id == env.spec.id
    env.close()
    twin.step(twin.action_space.sample())
    twin.close()


def test_a_shallow_copy_is_independent_too(way):
    env = VectorEnv("CartPole-v1", 2, device="cpu")
    env.reset(seed=0)
    twin = copy.copy(WAYS[way](env))
    assert twin.simulator is not env.simulator
    twin.close()
    env.step(np.ones(2, int))


def test_vector_env_of_tensors(way):
    pytest.importorskip("torch")
    env = VectorEnv("CartPole-v1", 3, device="cpu", output="torch", copy=False)
    env.reset(seed=5)
    twin = WAYS[way](env)
    observations = twin.step(np.ones(3, int))[0]
    assert observations.data_ptr() == twin.simulator.arrays["observation"].ctypes.data
    assert_same("a step", leaves_of(env.step(np.ones(3, int))[0]), leaves_of(observations))


def test_single_env_with_its_wrappers(way):
    env = gymnasium.make("gpuzoo/CartPole-v1", max_episode_steps=40, gravity=5.0)
    env.action_space.seed(3)
    env.reset(seed=1)
    follow(env, 4)
    env.unwrapped.length = 0.7
    twin = WAYS[way](env)
    assert (twin.unwrapped.gravity, round(twin.unwrapped.length, 6)) == (5.0, 0.7)
    assert_goes_on(env, twin, follow, 5)
    assert env.unwrapped.np_random.integers(1000) == twin.unwrapped.np_random.integers(1000)


def play(env: Any, steps: int) -> list[Any]:
    story = []
    for _ in range(steps):
        if not env.agents:
            env.reset()
        story.append(kept(env.step({a: env.action_space(a).sample() for a in env.agents})))
    return story


def test_parallel_env(way):
    env = gpuzoo.parallel_env("SimpleSpread-v0", max_cycles=9)
    env.reset(seed=2)
    for agent in env.possible_agents:
        env.action_space(agent).seed(4)
    play(env, 4)
    env.max_cycles = 11
    assert_goes_on(env, WAYS[way](env), play)


def take_turns(env: Any, steps: int) -> list[Any]:
    story = []
    for _ in range(steps):
        if not env.agents:
            env.reset()
        observation, reward, terminated, truncated, _ = env.last()
        mask = observation["action_mask"]
        env.step(None if terminated or truncated else int(np.flatnonzero(mask)[-1]))
        story.append(leaves_of({"o": observation, "r": np.array([reward, terminated, truncated])}))
    return story


def test_aec_env(way):
    env = gpuzoo.aec_env("ConnectFour-v0")
    env.reset(seed=2)
    take_turns(env, 6)
    assert_goes_on(env, WAYS[way](env), take_turns)
    converted = gpuzoo.aec_env("SimpleSpread-v0")
    converted.reset(seed=0)
    twin = WAYS[way](converted)
    for _ in range(4):
        converted.step(1)
        twin.step(1)
    assert_same("a cycle", leaves_of(converted.last()[0]), leaves_of(twin.last()[0]))


def test_batch(way):
    env = gpuzoo.make("SimpleSpread-v0", 3, device="cpu", max_episode_steps=7)
    env.reset(seed=4)
    env.step(env.random_actions())
    twin = WAYS[way](env)

    def repeated(batch: Any, steps: int) -> list[Any]:
        return [kept(batch.step({})) for _ in range(steps)]  # a group that is left out repeats its actions

    assert_goes_on(env, twin, repeated, 12)


def test_simulator(way):
    sim = Simulator(gpuzoo.get("CartPole-v1"), 4, device="cpu", autoreset_mode="same_step", tau=0.03, threads=1)
    fresh = WAYS[way](sim)
    assert not fresh.was_reset
    assert fresh.cfg == sim.cfg
    sim.reset(seed=9)
    sim.rollout(33)
    twin = WAYS[way](sim)
    for name, array in sim.arrays.items():
        assert not np.shares_memory(array, twin.arrays[name])
    for one in (sim, twin):
        one.rollout(100)
    assert_same("after a rollout", sim.arrays, twin.arrays)


def test_a_copy_has_the_spaces_that_were_made(way):
    env = VectorEnv("CartPole-v1", 2, device="cpu", x_threshold=np.array([1.0, 3.0], np.float32))
    env.simulator.set_params(x_threshold=0.5)
    twin = WAYS[way](env)
    assert twin.single_observation_space == env.single_observation_space
    twin.simulator.set_params(x_threshold=2.0)
    with pytest.raises(ValueError, match="spaces stay as they were made"):
        twin.simulator.set_params(x_threshold=4.0)
    np.testing.assert_array_equal(env.simulator.params["x_threshold"], [0.5, 0.5])


@pytest.mark.parametrize("kind", ["gymnasium", "dm"])
def test_pool(way, kind):
    pool = make_pool("CartPole-v1", 4, 2, seed=3, device="cpu", env_type=kind, max_episode_steps=9)
    pool.async_reset()
    with pytest.raises(RuntimeError, match=r"4 envs are in flight: recv\(\) them before the pool is copied or pickled"):
        WAYS[way](pool)
    pool.recv()
    pool.recv()
    twin = WAYS[way](pool)

    def steps(one: Any, count: int) -> list[Any]:
        return [kept(one.step(np.ones(2, int), np.array([0, 3]))) for _ in range(count)]

    assert_goes_on(pool, twin, steps, 30)
    pool.close()
    twin.step(np.ones(2, int), np.array([1, 2]))
    twin.close()


def test_synchronous_pool(way):
    pool = make_pool("SimpleSpread-v0", 2, seed=3, device="cpu")
    pool.reset()
    pool.step(np.ones(6, int))
    assert_goes_on(pool, WAYS[way](pool), lambda one, count: [kept(one.step(np.ones(6, int))) for _ in range(count)])


def test_what_cannot_be_copied(way):
    env = VectorEnv("CartPole-v1", 2, device="cpu")
    env.close()
    with pytest.raises(RuntimeError, match="CartPole-v1: this env was closed; make a new one"):
        WAYS[way](env)
    taken = VectorEnv("ConnectFour-v0", 2, device="cpu", group="player_0", opponents=lambda _, masks: masks.argmax(-1))
    taken.reset(seed=0)
    if way == "pickle":
        with pytest.raises(
            pickle.PicklingError, match=r"opponents=.* cannot be pickled .* stands in a module"
        ) as found:
            pickle.dumps(taken)
        assert str(found.value).count("\n") == 0
    else:
        assert_goes_on(taken, copy.deepcopy(taken), lambda one, n: [kept(one.step(np.arange(2))) for _ in range(n)])


def test_another_process(way):
    """A pickle names no memory and no process; a copy within this one has nothing to show there."""
    env = VectorEnv("CartPole-v1", 2, device="cpu")
    env.reset(seed=0)
    code = "import pickle, sys; env = pickle.load(sys.stdin.buffer); print(env.step([1, 0])[0].tobytes().hex())"
    run = functools.partial(subprocess.run, [sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    printed = run(input=pickle.dumps(WAYS[way](env))).stdout.decode().strip()
    assert printed == env.step([1, 0])[0].tobytes().hex()
