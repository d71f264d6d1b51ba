"""RubiksCube against Jumanji's; mixed cubes are compared in distribution."""

from __future__ import annotations

import jumanji
import numpy as np
import pytest
from against import Against, keys, resets, same_distribution, simulator
from jumanji.environments import RubiksCube
from jumanji.environments.logic.rubiks_cube.generator import ScramblingGenerator
from jumanji.environments.logic.rubiks_cube.types import State

pytestmark = pytest.mark.rotates


def cube(n: int, size: int, scrambles: int, limit: int) -> Against:
    env = RubiksCube(ScramblingGenerator(size, scrambles), limit)

    def state_of(arrays):
        return State(cube=arrays["cube"].reshape(n, 6, size, size), step_count=arrays["elapsed_steps"], key=keys(n))

    def action(actions):
        layer, way = np.divmod(actions, 3)
        return np.stack([*np.divmod(layer, size // 2), way], 1)

    sim = simulator("RubiksCube-v0", n, cube_size=size, num_scrambles_on_reset=scrambles, max_episode_steps=limit)
    return Against(sim, env, state_of, lambda o: o.cube.reshape(n, -1), action=action)


@pytest.mark.parametrize(("size", "scrambles"), [(3, 100), (2, 1), (4, 2), (5, 0), (7, 20)])
def test_episodes(size, scrambles):
    cube(1000, size, scrambles, 50).follow(100_000 if size == 3 else 20_000)


def test_steps_from_drawn_states():
    """Stickers anywhere, and cubes with few colours, so that some are solved."""
    n, rng = 20_000, np.random.default_rng(0)
    stickers = rng.integers(0, 6, (n, 54))
    stickers[: n // 2] = np.where(rng.random((n // 2, 54)) < 0.002, 0, 1)
    cube(n, 3, 100, 50).from_states({"cube": stickers.astype(np.int8)})


@pytest.mark.parametrize("name", ["RubiksCube-v0", "RubiksCube-partly-scrambled-v0"])
def test_generator(name):
    n, env = 5000, jumanji.make(name)
    sim = simulator(name, n)
    sim.reset(seed=0)
    assert sim.max_episode_steps == env.time_limit
    ours, others = sim.arrays["cube"].reshape(n, -1), np.asarray(resets(env, n).cube).reshape(n, -1)
    for sticker in range(0, 54, 5):
        same_distribution(ours[:, sticker], others[:, sticker])
    alike = lambda c: (c.reshape(n, 6, 9) == c.reshape(n, 6, 9)[..., 4:5]).sum((1, 2))  # noqa: E731
    same_distribution(alike(ours), alike(others))


def test_given_cubes():
    given = np.random.default_rng(0).integers(0, 6, (4, 6, 2, 2))
    sim = simulator("RubiksCube-v0", 4, cube_size=2, instances={"cube": given}, instance=np.arange(4)[::-1])
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["cube"].reshape(4, 6, 2, 2), given[::-1])
