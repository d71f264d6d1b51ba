"""Parameters that every episode draws anew: which values, when, for whom, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd

import gpuzoo
from gpuzoo import Simulator, Uniform
from gpuzoo.testing.tools import assert_same, read

N = 64
GRAVITY, LENGTH = Uniform(5, 15), Uniform(0.05, 5, log=True)


def pole(n: int = N, device: str = "cpu", **config: Any) -> Simulator:
    sim = Simulator(gpuzoo.get("CartPole-v1"), n, device=device, **{"gravity": GRAVITY, "length": LENGTH, **config})
    sim.reset(seed=3)
    return sim


def philox(counter: list[int], key: int) -> list[int]:
    """Salmon et al. 2011, in Python's integers."""
    c, k0, k1, word = list(counter), key & 0xFFFFFFFF, key >> 32, 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & word, (a >> 32) ^ c[3] ^ k1, a & word]
        k0, k1 = (k0 + 0x9E3779B9) & word, (k1 + 0xBB67AE85) & word
    return c


def drawn(ends: Uniform, number: int, seed: int, episode: int) -> float:
    unit = (philox([number >> 2, 0x40000000, 0, episode], seed)[number & 3] >> 8) * 2.0**-24
    if ends.log:
        return float(ends.low * (ends.high / ends.low) ** unit)
    return ends.low + (ends.high - ends.low) * unit


def test_every_episode_has_its_own_values() -> None:
    sim = pole()
    floats = [name for name in sim.program.params]
    seen = set()
    for _ in range(5):
        for name, ends in (("gravity", GRAVITY), ("length", LENGTH)):
            values = sim.param(name)
            expected = [
                drawn(ends, floats.index(name), int(s), int(e))
                for s, e in zip(sim.arrays["seed"], sim.arrays["episode"], strict=True)
            ]
            np.testing.assert_allclose(values, expected, rtol=1e-6)  # of float32 arithmetic
            seen |= {float(x) for x in values}
        sim.rollout(40)
    assert sim.arrays["episode"].min() >= 1
    assert len(seen) > 4 * N


def test_values_cover_the_range() -> None:
    sim = pole(4096)
    gravity, length = sim.param("gravity"), np.log(sim.param("length"))
    for x, (low, high) in ((gravity, (5, 15)), (length, np.log([0.05, 5]))):
        counts = np.histogram(x, 8, (low, high))[0]
        assert counts.sum() == 4096
        assert abs(counts - 512).max() < 5 * np.sqrt(512)


def test_values_change_only_between_episodes() -> None:
    sim = pole()
    before, episode = sim.param("gravity"), sim.arrays["episode"].copy()
    for _ in range(60):
        sim.arrays["action"][:] = 0
        sim.step()
        now = sim.param("gravity")
        same = sim.arrays["episode"] == episode
        assert (now[same] == before[same]).all()
        assert (now[~same] != before[~same]).all()
        before, episode = now, sim.arrays["episode"].copy()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_the_thread_form_has_the_same_bits(mode: str) -> None:
    sims = [pole(40, device, autoreset_mode=mode) for device in ("cpu", "simt")]
    for _ in range(3):
        for sim in sims:
            sim.rollout(30)
            if mode == "disabled":
                sim.reset(mask=np.arange(40) % 2 == 0)
        assert_same("states", *map(read, sims))
        assert_same("parameters", *[sim.params for sim in sims])


@pytest.mark.one_case
@pytest.mark.parametrize("device", ["cpu", "simt"])
def test_many_lanes_see_the_same_values(device: str) -> None:
    """What the agents of the herd gain by a bite is the same in all lanes."""
    sims = [Simulator(Herd, 8, device=device, lanes=lanes, bite=Uniform(1, 9)) for lanes in (1, 4)]
    for sim in sims:
        sim.reset(seed=1)
        sim.rollout(50)
    assert_same("states", *map(read, sims))
    assert_same("parameters", *[sim.params for sim in sims])
    assert len(set(sims[0].param("bite").tolist())) == 8


def test_the_rules_use_what_was_drawn() -> None:
    """A batch with the drawn values given per env steps alike until an episode ends."""
    sim = pole(length=Uniform(1, 5))
    given = pole(gravity=sim.param("gravity"), length=sim.param("length"))
    for _ in range(5):
        for each in (sim, given):
            each.arrays["action"][:, 0, 0] = np.arange(N) % 2
            each.step()
        assert not sim.arrays["ended"].any()
        np.testing.assert_array_equal(sim.arrays["observation"], given.arrays["observation"])
    assert len({row.tobytes() for row in sim.arrays["observation"]}) == N


def test_a_snapshot_and_a_copy_go_on_alike() -> None:
    sim = pole()
    sim.set_params(gravity=Uniform(6, 7))
    sim.rollout(20)
    snapshot, twin = sim.snapshot(), copy.deepcopy(sim)
    sim.rollout(100)
    twin.rollout(100)
    after = read(sim), sim.params
    assert_same("states", read(twin), after[0])
    assert_same("parameters", twin.params, after[1])
    sim.restore(snapshot)
    sim.rollout(100)
    assert_same("states", read(sim), after[0])
    assert_same("parameters", sim.params, after[1])


def test_ends_can_move() -> None:
    sim = pole()
    before = sim.param("gravity")
    sim.set_params(gravity=Uniform(1, 2))
    np.testing.assert_array_equal(sim.param("gravity"), before)  # until the next episode
    sim.reset()
    assert (sim.param("gravity") <= 2).all()
    sim.set_params(gravity=9.0)
    assert (sim.param("gravity") == 9).all()
    sim.reset()
    assert (sim.param("gravity") == 9).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gravity": np.full(N, 9.0)}, "every episode draws gravity: give a gpuzoo.Uniform for all envs, or a number"),
        ({"length": Uniform(1, 2)}, "length is drawn with log=True, which is compiled into the kernel"),
        ({"length": Uniform(-1, 2)}, "is drawn with log=True"),
        ({"masscart": Uniform(1, 2)}, "masscart is not drawn: give a gpuzoo.Uniform when making the env"),
        ({"gravity": 1.0, "masscart": Uniform(1, 2)}, "masscart is not drawn"),
        ({"gravity": float("nan")}, "gravity must be"),
    ],
)
def test_a_refused_change_changes_nothing(change: Any, message: str) -> None:
    sim = pole()
    before = copy.deepcopy(sim)
    with pytest.raises(ValueError, match=message):
        sim.set_params(**change)
    with pytest.raises(ValueError, match="every episode draws gravity"):
        sim.set_params(envs=[0], gravity=1.0)
    for each in (sim, before):
        each.rollout(100)
    assert_same("parameters", sim.params, before.params)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Uniform(2, 1), ValueError, "2:1 must have finite ends, the smaller one first"),
        (lambda: Uniform(0, float("inf")), ValueError, "finite ends"),
        (lambda: Uniform(0, 1, log=True), ValueError, "positive ends"),
        (lambda: Uniform.parse("5"), ValueError, "a range is LOW:HIGH or log:LOW:HIGH, not '5'"),
        (lambda: pole(gravity="5:x"), ValueError, "a range is LOW:HIGH or log:LOW:HIGH, not '5:x'"),
        (lambda: pole(length=Uniform(-1, 1)), ValueError, "length must be"),
        (lambda: Simulator(Herd, 2, device="cpu", cells=Uniform(3, 4)), TypeError, "cells is compiled into the kernel"),
    ],
)
def test_refusals(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_relations_are_checked_at_the_ends() -> None:
    class Paired(Herd):
        def check(self, cfg: Any) -> None:
            if cfg.hunger > cfg.bite:
                raise ValueError(f"hunger must not be above bite: {cfg.hunger} > {cfg.bite}.")

        @classmethod
        def source(cls) -> Any:
            return Herd.source()

    with pytest.raises(ValueError, match="hunger must not be above bite: 2"):
        Simulator(Paired, 2, device="cpu", bite=Uniform(1, 9), hunger=Uniform(0, 2))
    Simulator(Paired, 2, device="cpu", bite=Uniform(2, 9), hunger=Uniform(0, 2)).close()


def test_spaces_hold_for_the_whole_range() -> None:
    name = next(f for f, kind in Glide.Config.__annotations__.items() if "float" in str(kind))
    low, high = 0.25, 0.75
    one = Simulator(Glide, 3, device="cpu", **{name: Uniform(low, high)})
    two = Simulator(Glide, 2, device="cpu", **{name: np.array([low, high])})
    assert one.layout.observation_spaces == two.layout.observation_spaces


def test_one_env_and_the_interfaces() -> None:
    env = gym.make("gpuzoo/CartPole-v1", gravity="5:15")
    seen = set()
    for seed in range(3):
        env.reset(seed=seed)
        seen.add(float(np.ravel(env.get_wrapper_attr("gravity"))[0]))
    assert len(seen) == 3
    assert all(5 <= x <= 15 for x in seen)
    envs = gym.make_vec("gpuzoo/CartPole-v1", 4, gravity=Uniform(5, 15))
    envs.reset(seed=0)
    assert len(set(np.ravel(envs.get_attr("gravity")).tolist())) == 4
