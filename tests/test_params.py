"""Run-time parameters: what is refused, that a refusal changes nothing, and spaces that hold for all values."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from toys.glide import Glide
from toys.herd import Herd

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core.configuration import check_relations, split_config
from gpuzoo.core.definition import Config, param
from gpuzoo.core.layout import layout
from gpuzoo.core.parameters import changed_parameters, layout_of_all
from gpuzoo.core.values import config_types
from gpuzoo.interfaces.batch import draw
from gpuzoo.testing.tools import assert_same, read

CAR = gpuzoo.get("MountainCar-v0")


class Paired(Herd):
    """A herd in which a bite is worth more than the hunger of a step."""

    def check(self, cfg: Any) -> None:
        if cfg.hunger > cfg.bite:
            raise ValueError(f"{self.id}: hunger must not be above bite: {cfg.hunger} > {cfg.bite}.")

    @classmethod
    def source(cls) -> Any:
        return Herd.source()


def paired(**config: Any) -> Simulator:
    sim = Simulator(Paired, 4, device="cpu", **config)
    sim.reset(seed=0)
    sim.rollout(3)
    return sim


def values(sim: Simulator) -> dict[str, Any]:
    return {**sim.params, **{f"array {k}": v for k, v in read(sim).items()}}


SHARED: dict[str, Any] = {"bite": 2.0, "hunger": 1.0}
PER_ENV: dict[str, Any] = {"bite": np.array([2.0, 3, 4, 5]), "hunger": np.array([1.0, 2, 3, 4])}


@pytest.mark.parametrize(
    ("config", "envs", "change", "message"),
    [
        (SHARED, None, {"hunger": 2.5}, r"hunger must not be above bite: 2\.5 > 2\.0"),
        (SHARED, None, {"bite": 0.5}, r"hunger must not be above bite: 1\.0 > 0\.5"),
        (SHARED, None, {"bite": 9.0, "hunger": 9.5}, r"9\.5 > 9\.0"),
        (SHARED, None, {"bite": 9.0, "hunger": np.inf}, "hunger must be at least 0.0 and finite in float32"),
        (SHARED, None, {"bite": 9.0, "hunger": 1e39}, "hunger must be at least 0.0 and finite in float32"),
        (SHARED, None, {"bite": 9.0, "hunger": np.nan}, "hunger must be"),
        (SHARED, None, {"bite": 9.0, "hunger": [1.0, 2.0]}, "hunger is shared by all envs"),
        (PER_ENV, [1], {"hunger": 3.5}, r"env 1: Herd-v0: hunger must not be above bite: 3\.5 > 3\.0"),
        (PER_ENV, None, {"bite": 2.5}, r"env 2: .*3\.0 > 2\.5"),
        (PER_ENV, [3, 0], {"hunger": [4.5, 2.5]}, r"env 0: .*2\.5 > 2\.0"),
        (PER_ENV, [3, 0], {"hunger": [4.5, np.inf]}, "finite in float32, not inf"),
        (PER_ENV, [3, 0], {"hunger": [4.5, 1e39]}, "finite in float32, not inf"),
        (PER_ENV, [3, 0], {"bite": [5.0, 6.0, 7.0]}, r"bite must be a number or have shape \(2,\), not \(3,\)"),
        (PER_ENV, [3, 3], {"bite": [5.0, 6.0]}, "each env can be named once, but envs names 3 twice"),
    ],
)  # fmt: skip
def test_a_refused_change_changes_nothing(config: Any, envs: Any, change: Any, message: str) -> None:
    sim = paired(**config)
    before, cfg = values(sim), sim.cfg
    with pytest.raises(ValueError, match=message):
        sim.set_params(envs, **change)
    assert_same("parameters", before, values(sim))
    assert sim.cfg == cfg
    if envs is None:
        with pytest.raises(ValueError, match=message):
            sim.reset(seed=5, params=change)
        assert_same("parameters", before, values(sim))


def test_values_fit_together_in_each_env() -> None:
    """Of every env its own: neither the largest of all nor the defaults."""
    sim = paired(**PER_ENV)
    assert sim.params["hunger"].tolist() == [1, 2, 3, 4]
    sim.set_params([0, 1], bite=[7.0, 8.0], hunger=[6.0, 7.5])
    assert sim.params["bite"].tolist() == [7, 8, 4, 5]
    with pytest.raises(ValueError, match=r"env 2: .*3\.0 > 2\.0"):
        paired(bite=np.array([9.0, 9, 2, 9]), hunger=np.array([1.0, 1, 3, 1]))
    assert paired(bite=np.array([5.0, 6, 7, 8]), hunger=4.0).params["hunger"].tolist() == [4]
    env = gpuzoo.make_vec(Paired, num_worlds=2, device="cpu", bite=np.array([9.0, 8.0]), hunger=7.0)
    assert env.simulator.params["hunger"].tolist() == [7]


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("name", "made", "change", "message"),
    [
        ("MountainCar-v0", {"min_position": [-1.2, -1]}, {"min_position": [-1, 9]}, r"env 1: .*low: 9\.0 > -0\.6"),
        ("MountainCarContinuous-v0", {}, {"low": -0.3}, r"low must not be above high: -0\.3 > -0\.4"),
        ("Acrobot-v1", {"low": [-0.1, 0.0]}, {"low": [0.0, 0.2]}, r"env 1: .*low must not be above high: 0\.2 > 0\.1"),
        ("Acrobot-v1", {}, {"max_vel_2": 0.05}, r"-0\.1 to 0\.1 \(low to high\), must lie within max_vel_2=0\.05"),
    ],
)  # fmt: skip
def test_games_of_the_collection_begin_within_their_spaces(name: str, made: Any, change: Any, message: str) -> None:
    sim = gpuzoo.make(name, 2, device="cpu", **made).simulator
    before = values(sim)
    with pytest.raises(ValueError, match=message):
        sim.set_params(**change)
    assert_same("parameters", before, values(sim))
    with pytest.raises(ValueError, match=message):
        gpuzoo.make(name, 2, device="cpu", **{**made, **change})


def test_every_env_has_spaces() -> None:
    """Also where the game itself checks nothing, and spaces of the smallest and of the largest values can be made."""

    class Bounded(Herd):
        def observation_space(self, cfg: Any, group: str) -> spaces.Space[Any]:
            return spaces.Box(1.0, cfg.bite, super().observation_space(cfg, group).shape, np.float32)

        @classmethod
        def source(cls) -> Any:
            return Herd.source()

    sim = Simulator(Bounded, 2, device="cpu", bite=[3.0, 4.0])
    with pytest.raises(ValueError, match=r"env 1: .*low values must be less than or equal to high"):
        sim.set_params(bite=[3.0, 0.5])
    assert sim.params["bite"].tolist() == [3, 4]


def test_a_number_for_one_env_equals_the_same_for_all() -> None:
    sim = gpuzoo.make("MountainCar-v0", 2, device="cpu", high=[-0.5, 0.6], max_position=0.6).simulator
    sim.set_params([1], high=0.6)
    with pytest.raises(ValueError, match=r"env 1: .*high must not be above max_position: 0\.61 > 0\.6\."):
        sim.set_params([1], high=0.61)


def test_games_take_their_own_defaults() -> None:
    """Copies are made with them, so they must be finite, within their bounds, and fit together."""
    for env_id in gpuzoo.ids():
        env = gpuzoo.get(env_id)
        assert split_config(env, 1, vars(env.Config()))[0] == env.Config(), env_id


def test_no_range_of_two_parameters_is_upside_down() -> None:
    found = 0
    for env_id in gpuzoo.ids():
        env = gpuzoo.get(env_id)
        for low in (name for name in config_types(env.Config) if name.endswith("_low")):
            high = f"{low.removesuffix('_low')}_high"
            found += 1
            with pytest.raises(ValueError, match=f"{env_id}: {low} must not be above {high}"):
                split_config(env, 1, {low: 2 * abs(getattr(env.Config(), high)) + 1})
    assert found > 10


def test_a_relation_is_checked_once_for_each_combination() -> None:
    calls = []

    class Counted(Paired):
        def check(self, cfg: Any) -> None:
            calls.append(1)
            super().check(cfg)

    n = 10_000
    bite, hunger = np.full(n, 5, np.float32), np.linspace(0, 4, n, dtype=np.float32)
    check_relations(Counted(), Counted.Config(), {"bite": np.linspace(5, 6, n, dtype=np.float32)})
    assert len(calls) <= n + 1
    calls.clear()
    check_relations(Counted(), Counted.Config(), {"bite": bite, "hunger": hunger.round()})
    assert len(calls) == 6
    hunger[-1] = 5.5
    with pytest.raises(ValueError, match="env 9999"):
        check_relations(Counted(), Counted.Config(), {"bite": bite, "hunger": hunger})


@pytest.mark.parametrize("option", [{"seed": -1}, {"seed": [1]}, {"mask": np.zeros(4, bool)}, {"mask": [True] * 4}])
def test_a_refused_reset_sets_no_parameters(option: dict[str, Any]) -> None:
    sim = paired(**PER_ENV)
    before = values(sim)
    with pytest.raises((ValueError, TypeError)):
        sim.reset(**option, params={"bite": 9.0})
    assert_same("all", before, values(sim))


def test_reset_of_interfaces_changes_nothing_when_parameters_are_refused() -> None:
    env = gpuzoo.make(Paired, 4, device="cpu", **PER_ENV)
    env.reset(seed=0)
    env.step(env.random_actions())
    before = values(env.simulator)
    for params in ({"hunger": 9.0}, {"bite": 9.0, "hunger": np.inf}, {"bites": 3.0}, ["bite"]):
        with pytest.raises((ValueError, TypeError)):
            env.reset(seed=3, options={"params": params})
        assert_same("all", before, values(env.simulator))
    env.reset(seed=3, options={"params": {"hunger": 2.0, "bite": 5.0}})
    assert env.simulator.params["hunger"].tolist() == [2] * 4


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39, np.array([0.0, np.inf]), np.array([0.0, 1e39])])
def test_infinities_are_refused_when_made(value: Any) -> None:
    with pytest.raises(ValueError, match=r"goal_velocity must be finite in float32, not -?(inf|1e)"):
        Simulator(CAR, 2, device="cpu", goal_velocity=value)


# ---- spaces ----


def test_values_are_given_by_name() -> None:
    sim = gpuzoo.make("CartPole-v1", 2, device="cpu").simulator
    with pytest.raises(TypeError, match=r"set_params takes values by name, set_params\(name=value\), not a dictionary"):
        sim.set_params({"gravity": 5.0})


def test_spaces_hold_for_both_ends() -> None:
    """The smallest of ``min_position`` is what needs the widest space."""
    sim = Simulator(
        CAR, 3, device="cpu", min_position=np.array([-1.2, -2.5, -0.9]), max_speed=np.array([0.1, 0.2, 0.3])
    )
    space = sim.layout.observation_spaces["agent"]
    np.testing.assert_array_equal(space.low, np.array([-2.5, -0.3], np.float32))
    np.testing.assert_array_equal(space.high, np.array([0.6, 0.3], np.float32))


def test_spaces_hold_for_the_difference_of_two_parameters() -> None:
    @dataclasses.dataclass(frozen=True)
    class Gusty(Config):
        wind: float = param(0.1)
        gust: float = param(0.0)

    class Between(Glide):
        def observation_space(self, cfg: Any, group: str) -> spaces.Box:
            return spaces.Box(cfg.wind - cfg.gust, 5.0, (2,), np.float32)

    wind, gust = np.array([0.25, 0.5], np.float32), np.array([1.0, 2.0], np.float32)
    space = layout_of_all(Between(), Gusty(), {"wind": wind, "gust": gust}).observation_spaces["agent"]
    assert space.low.tolist() == [-1.75] * 2


def test_values_beyond_the_spaces_are_refused() -> None:
    sim = Simulator(CAR, 2, device="cpu", min_position=np.array([-1.2, -0.9]))
    sim.reset(seed=0)
    before, made = sim.params, sim.layout
    for change in ({"min_position": [-1.0, -1.3]}, {"min_position": -1.3}, {"max_speed": 0.08}, {"max_position": 1.0}):
        with pytest.raises(ValueError, match=r"MountainCar-v0: .* spaces stay as they were made: make a new env, with"):
            sim.set_params(**change)
        assert_same("parameters", before, sim.params)
    sim.set_params(min_position=[-1.0, -1.2], max_speed=0.05, gravity=0.003)
    assert sim.layout is made
    sim.set_params(**before)  # an array of one for a shared parameter is what `params` gives
    assert_same("parameters", before, sim.params)
    other = Simulator(CAR, 2, device="cpu", min_position=np.array([-2.0, -0.9]))
    other.reset(seed=0)
    with pytest.raises(ValueError, match="spaces stay as they were made"):
        sim.restore(other.snapshot())
    assert_same("parameters", before, sim.params)


def test_the_values_that_an_env_was_made_with_can_be_set_again(registered_game: Any) -> None:
    """Rounded to float32, which bounds were not computed with."""
    game, cfg = registered_game(), registered_game.Config()
    names = [name for name, kind in config_types(game.Config).items() if kind is float]
    rounded = {name: np.full(1, getattr(cfg, name), np.float32) for name in names}
    assert changed_parameters(game, cfg, layout(game, cfg), rounded, {}, rounded, None, 3).values == rounded


def test_a_picture_is_of_the_env_with_its_own_values() -> None:
    both = Simulator(CAR, 2, device="cpu", goal_position=np.array([0.1, 0.5]))
    alone = [Simulator(CAR, 1, device="cpu", goal_position=goal) for goal in (0.1, 0.5)]
    for sim in (both, *alone):
        sim.reset(seed=[7] * sim.num_envs)
    for env, sim in enumerate(alone):
        assert both.config(env).goal_position == pytest.approx(sim.cfg.goal_position)
        np.testing.assert_array_equal(draw(both, env), draw(sim, 0))


@pytest.mark.parametrize("way", [copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))])
def test_a_copy_has_the_spaces_that_the_env_was_made_with(way: Any) -> None:
    """Random actions follow from them; with those of the present values the copy would play another game."""
    robot = gpuzoo.get("PointRobot-v0")
    sim = Simulator(robot, 3, device="cpu", max_force=0.3)
    sim.reset(seed=0)
    sim.set_params(max_force=0.05)
    twin = way(sim)
    assert twin.layout.action_spaces == sim.layout.action_spaces
    assert_same("parameters", sim.params, twin.params)
    for one in (sim, twin):
        one.rollout(20)
    assert_same("what they play", read(sim), read(twin))
    twin.set_params(max_force=0.25)
