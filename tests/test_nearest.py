"""The nearest neighbours of many points: the order of a full sort by rounded distances, on every kind of device."""

from __future__ import annotations

import numpy as np
import pytest

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core.backend_cpu import CpuBackend

NEAR_TIES = 2.0**-21  # the distance of neighbouring floats from 4 to 8

#: number of runners beside five taggers, and neighbours: one list is enough, several are needed, few points
SIZES = {"one list": (100, 10), "several lists": (55, 24), "few points": (20, 24)}


def sorted_by_distance(x: np.ndarray, y: np.ndarray, alive: np.ndarray, k: int) -> np.ndarray:
    """The k nearest others in the game, (agents, k), -1 where there are fewer: the lowest index first on ties."""
    dx, dy = x[:, None] - x, y[:, None] - y
    distance = np.sqrt(dx * dx + dy * dy)
    assert distance.dtype == np.float32
    distance[:, ~alive] = np.inf
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :k]
    nearest[np.isinf(np.take_along_axis(distance, nearest, 1)) | ~alive[:, None]] = -1
    return np.pad(nearest, ((0, 0), (0, k - nearest.shape[1])), constant_values=-1)


def places(rng: np.random.Generator, envs: int, agents: int) -> np.ndarray:
    """Coordinates (2, envs, agents): scattered, in four corners, and where the roots of unlike squares are equal."""
    scattered = rng.random((2, agents), np.float32) * np.float32(20)
    corners = rng.integers(0, 2, (2, agents)).astype(np.float32) * np.float32(20)
    ties = 5 + rng.integers(0, 2, (2, agents)) + NEAR_TIES * rng.integers(0, 4, (2, agents))
    kinds = (scattered, corners, ties.astype(np.float32))
    return np.stack([kinds[i % 3] for i in range(envs)], 1)


@pytest.mark.one_case
@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("size", SIZES)
def test_the_order_of_a_full_sort(size, device):
    runners, k = SIZES[size]
    backend = CpuBackend(simt=device == "simt", flags=("-O1",) if device == "simt" else ())
    config = {"num_runners": runners, "num_other_agents_observed": k, "tagging_distance": 0.0}
    sim = Simulator(gpuzoo.get("TagContinuous-v0"), 6, backend=backend, autoreset_mode="disabled", **config)
    sim.reset(seed=1)
    rng = np.random.default_rng(0)
    sim.arrays["action"][...] = 0
    for distance in (0.0, 0.1, 0.0):  # in the second step some runners leave, so that the third has fewer
        sim.set_params(tagging_distance=distance)
        sim.arrays["x"][...], sim.arrays["y"][...] = places(rng, 6, runners + 5)
        alive = np.array(sim.arrays["alive"], bool)
        sim.step()
        for env in np.flatnonzero(alive[:, 0]):
            x, y = sim.arrays["x"][env], sim.arrays["y"][env]
            assert np.array_equal(sim.arrays["nearest"][env], sorted_by_distance(x, y, alive[env], k)), env
    assert 0 < np.sum(~alive[[0, 3]]) < 2 * runners
