"""Instances that are given, and instances of unlike size in one batch: what the games of gpuzoo.envs.jumanji share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import gpuzoo
from gpuzoo import Simulator, Uniform, get
from gpuzoo.envs.jumanji.instances import bits, members

RNG = np.random.default_rng(0)
CITIES = {"coordinates": RNG.random((3, 5, 2)).astype(np.float32), "size": np.array([5, 2, 3])}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Datasets go into a folder of their own; compiled programs as well, so few of them are made here."""
    compiled = tmp_path / "cache"
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(compiled))
    return compiled


def tsp(n: int, **options: Any) -> Simulator:
    sim = Simulator(get("TSP-v1"), n, device="cpu", num_cities=5, **options)
    sim.reset(seed=0)
    return sim


def test_sets_are_words_of_bits() -> None:
    for n in (1, 63, 64, 65, 130):
        there = RNG.random((4, 2, n)) < 0.5
        words = bits(there)
        assert (words.shape, words.dtype) == ((4, 2, -(-n // 64)), np.uint64)
        assert words[0, 0, 0] & np.uint64(1) == there[0, 0, 0]
        np.testing.assert_array_equal(members(words, n), there)


def test_a_file_and_a_dictionary_are_the_same(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "cities.npz"
    np.savez(path, **CITIES)
    number = np.array([2.0, 0.0, 1.0, 2.0])
    sims = [tsp(4, instances=given, instance=number) for given in (str(path), path, CITIES)]
    for sim in sims:
        np.testing.assert_array_equal(sim.arrays["size"], CITIES["size"][[2, 0, 1, 2]])
        for k, instance in enumerate((2, 0, 1, 2)):
            size = CITIES["size"][instance]
            np.testing.assert_array_equal(sim.arrays["coordinates"][k, :size], CITIES["coordinates"][instance, :size])
            assert (sim.arrays["coordinates"][k, size:] == -1).all()
    kept = list((cache / "arrays").iterdir())
    assert len(kept) == 1
    assert sims[2].cfg.instances == str(kept[0])  # so it can be made again, from a checkpoint for instance


def test_every_interface_takes_a_dictionary() -> None:
    options: dict[str, Any] = {"num_cities": 5, "instances": CITIES, "instance": 1.0, "device": "cpu"}
    for envs in (
        gpuzoo.make_vec("TSP-v1", 2, **options),
        gpuzoo.make_vec("TSP-v1", 2, **options | {"instance": [1, 1]}),
    ):
        observations, _ = envs.reset(seed=0)
        seen = observations["observation"]
        np.testing.assert_array_equal(seen[:, :4], np.tile(CITIES["coordinates"][1, :2].reshape(4), (2, 1)))
    observation, _ = gymnasium.make("gpuzoo/TSP-v1", **options).reset(seed=0)
    np.testing.assert_array_equal(observation["observation"][:4], CITIES["coordinates"][1, :2].reshape(4))


def test_a_dataset_is_read_once_for_all_envs(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"coordinates": RNG.random((200, 5, 2)).astype(np.float32)}
    loads: list[str] = []
    load = np.load
    monkeypatch.setattr(np, "load", lambda path: [loads.append(str(path)), load(path)][1])
    sim = tsp(200, instances=given, instance=np.arange(200.0))
    np.testing.assert_array_equal(sim.arrays["coordinates"], given["coordinates"])
    assert len(loads) == 1


def test_every_instance_is_drawn_and_played_to_its_end() -> None:
    """Absent cities are never legal, and an episode takes as many steps as there are cities."""
    envs = gpuzoo.make("TSP-v1", 300, num_cities=5, instances=CITIES)
    envs.reset(seed=0)
    sim = envs.simulator
    counts = np.bincount(sim.arrays["size"], minlength=6)
    assert counts[[2, 3, 5]].sum() == 300
    assert counts[[2, 3, 5]].min() > 60
    steps = np.zeros(300, int)
    size, over = sim.arrays["size"].copy(), np.zeros(300, bool)
    while not over.all():
        there = np.arange(5) < sim.arrays["size"][:, None]
        assert not (sim.arrays["action_mask"][:, 0] & ~there).any()
        steps += ~over
        _, _, terminations, _, _ = envs.step(envs.random_actions())
        over |= terminations["agent"][:, 0]
    np.testing.assert_array_equal(steps, size)


def test_sizes_per_env_and_per_episode() -> None:
    sim = tsp(4, size=np.array([0.0, 1.0, 3.0, 5.0]))
    np.testing.assert_array_equal(sim.arrays["size"], [5, 1, 3, 5])
    np.testing.assert_array_equal(sim.arrays["action_mask"][:, 0].sum(1), [5, 1, 3, 5])
    drawn = tsp(400, size=Uniform(2.0, 5.0))
    assert set(drawn.arrays["size"]) == {2, 3, 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"instances": "nowhere.npz"}, "there is no file of instances nowhere.npz"),
        ({"instance": 1.0}, "instance=1 has no meaning without instances"),
        ({"instances": CITIES, "instance": 3.0}, "instance must be -1 or a number from 0 to 2, not 3"),
        ({"instances": CITIES, "instance": 0.5}, "instance must be -1 or a number from 0 to 2, not 0.5"),
        ({"instances": CITIES, "instance": np.array([0.0, 7.0])}, "env 1: .*from 0 to 2, not 7"),
        ({"size": 6.0}, "size must be 0 or from 1 to 5, not 6"),
        ({"size": np.array([5.0, 0.5])}, "size must be 0 or from 1 to 5, not 0.5"),
        ({"instances": {"cities": np.zeros((1, 5, 2))}}, "must hold coordinates, size, not cities"),
        ({"instances": {}}, "must hold coordinates, size, not nothing"),
        ({"instances": {"coordinates": np.zeros((1, 4, 2))}}, r"coordinates must have shape \(instances, 5, 2\)"),
        ({"instances": {"coordinates": np.full((1, 5, 2), np.nan)}}, "coordinates must be from 0 to 1"),
        ({"instances": {**CITIES, "size": np.array([5, 2])}}, "one row of each array for each instance"),
        ({"instances": {**CITIES, "size": np.array([5, 2, 0])}}, "size must be from 1 to 5"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        Simulator(get("TSP-v1"), 2, device="cpu", num_cities=5, **options)
