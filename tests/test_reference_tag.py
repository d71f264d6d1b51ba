"""TagGridWorld and TagContinuous against recorded transitions of WarpDrive's own classes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.tag_continuous.tag_continuous import TagContinuous
from gpuzoo.envs.tag_gridworld.tag_gridworld import TagGridWorld

sys.path.insert(0, str(Path(__file__).parent / "reference"))
import warpdrive

pytestmark = pytest.mark.rotates

EPS = np.finfo(np.float32).eps
GRID = warpdrive.load("tag_gridworld")
CONTINUOUS = warpdrive.load("tag_continuous")
KINEMATICS = ("x", "y", "speed", "heading", "acceleration")
# What WarpDrive's constructor takes where nothing is given and gpuzoo's default is another.
WARPDRIVE_DEFAULTS = {
    "num_taggers": 1, "num_runners": 10, "grid_length": 10.0,
    "max_acceleration": 1.0, "min_acceleration": -1.0, "max_turn": np.pi / 2, "min_turn": -np.pi / 2,
    "num_acceleration_levels": 10, "num_turn_levels": 10, "use_full_observation": True,
    "num_other_agents_observed": 2, "tagging_distance": 0.01, "tag_reward_for_tagger": 1.0,
    "tag_penalty_for_runner": -1.0, "end_of_game_reward_for_runner": 1.0,
}  # fmt: skip


def by_limit(case):
    """The configuration in gpuzoo's names, and the time limit."""
    config = dict(case.config)
    return config, config.pop("episode_length", 100)


def grid(case, num_envs):
    config, limit = by_limit(case)
    return Simulator(TagGridWorld, num_envs, device="cpu", autoreset_mode="disabled", max_episode_steps=limit, **config)


def continuous(case, num_envs):
    config, limit = by_limit(case)
    config = WARPDRIVE_DEFAULTS | config
    return Simulator(
        TagContinuous, num_envs, device="cpu", autoreset_mode="disabled", max_episode_steps=limit, **config
    )


def done(sim):
    """What the reference calls done: the env ends, so that everybody still in it is terminated or truncated."""
    flags = sim.arrays["terminated"] | sim.arrays["truncated"]
    assert flags.any(1)[sim.arrays["ended"]].all()
    return sim.arrays["ended"]


def inject(sim, case, names, rows):
    sim.reset(seed=0)
    sim.set_state({name: case[name][rows] for name in names} | {"elapsed_steps": case["t"][rows]})
    if "alive" in case.arrays:
        sim.arrays["alive"][...] = case["alive"][rows]
    sim.arrays["action"][...] = case["actions"][rows].reshape(sim.arrays["action"].shape)


def episodes(case):
    """The transitions of each recorded whole episode."""
    return [np.flatnonzero(case["episode"] == k) for k in range(case["episode"].max() + 1)]


# ---- TagGridWorld: integers and a division, so everything is exact ----


def check_grid(sim, case, rows):
    for name in ("x", "y"):
        np.testing.assert_array_equal(sim.arrays[name], case[f"next_{name}"][rows])
    np.testing.assert_array_equal(sim.arrays["observation"][:, case["obs_agents"]], case["obs"][rows])
    np.testing.assert_array_equal(sim.arrays["reward"], case["rewards"][rows])
    np.testing.assert_array_equal(done(sim), case["done"][rows])


@pytest.mark.parametrize("case", GRID, ids=lambda c: c.name)
def test_grid_transitions(case):
    sim = grid(case, len(case))
    inject(sim, case, ("x", "y"), slice(None))
    sim.step()
    check_grid(sim, case, slice(None))
    tagged = (case["next_x"][:, :-1] == case["next_x"][:, -1:]) & (case["next_y"][:, :-1] == case["next_y"][:, -1:])
    tagged = tagged.any(1)
    np.testing.assert_array_equal(sim.arrays["terminated"], np.broadcast_to(tagged[:, None], case["x"].shape))
    late = case["t"] + 1 == sim.max_episode_steps
    np.testing.assert_array_equal(sim.arrays["truncated"], np.broadcast_to(late[:, None], case["x"].shape))


@pytest.mark.parametrize("case", [c for c in GRID if episodes(c)], ids=lambda c: c.name)
def test_grid_episodes(case):
    sim = grid(case, 1)
    for number, rows in enumerate(episodes(case)):
        sim.reset(seed=number)
        np.testing.assert_array_equal(sim.arrays["observation"][0, case["obs_agents"]], case["reset_obs"][number])
        for row in rows:
            sim.arrays["action"][0, :, 0] = case["actions"][row]
            sim.step()
            check_grid(sim, case, slice(row, row + 1))


def test_grid_start():
    sim = Simulator(TagGridWorld, 300, device="cpu", num_taggers=3, grid_length=4, start="random")
    sim.reset(seed=1)
    first = np.stack([sim.arrays["x"], sim.arrays["y"]], -1)
    assert (first[:, -1] == 0).all()
    assert set(np.unique(first[:, :-1])) == {1, 2, 3}
    assert len(np.unique(first.reshape(300, -1), axis=0)) > 200
    sim.reset()
    assert (np.stack([sim.arrays["x"], sim.arrays["y"]], -1) != first).any((1, 2)).mean() > 0.9
    with pytest.raises(ValueError, match="grid_length"):
        Simulator(TagGridWorld, 1, device="cpu", grid_length=1, start="random")


def test_grid_illegal_actions_stay():
    sim = Simulator(TagGridWorld, 3, device="cpu")
    sim.reset(seed=0)
    sim.arrays["action"][...] = np.array([-1, 5, 2**31 - 1], np.int32)[:, None, None]
    sim.step()
    assert (sim.arrays["x"][:, :-1] == 5).all()
    assert (sim.arrays["x"][:, -1] == 0).all()
    assert (sim.arrays["y"][:, :-1] == 5).all()
    np.testing.assert_array_equal(sim.arrays["reward"][:, :-1], np.float32(-0.01))


def test_grid_with_1023_taggers():
    sim = Simulator(TagGridWorld, 2, device="cpu", num_taggers=1023, grid_length=50, use_full_observation=False)
    sim.reset(seed=0)
    sim.arrays["x"][:, :-1] = 40
    sim.arrays["x"][:, 1000] = 30
    sim.arrays["action"][...] = 0
    sim.step()
    np.testing.assert_array_equal(sim.arrays["observation"][:, -1, 2], np.float32(30 / 50))
    assert not sim.arrays["ended"].any()


# ---- TagContinuous ----
#
# Speeds, headings, accelerations, flags and rewards are exact. Positions: gpuzoo's sine and cosine are within 1.6 ulp
# and NumPy's within 1 ulp of the true value, so the two differ by at most 2.6 * 2^-24 (an ulp below 1 is at most
# 2^-24); times the speed, and rounded in both, that is below 5 * 2^-24 * speed. The sum x + v cos(h) is then rounded
# in both, half an ulp of the position each, and an ulp is at most L * 2^-23.


def position_tolerance(sim, speed):
    return 5 / 2 * EPS * speed + sim.cfg.grid_length * EPS


# Over the diagonal, with half an ulp for the quotient and one for the diagonal itself on both sides, and the same
# again for the difference of two; the other features are quotients of equal numbers.
def feature_tolerance(sim, speed):
    position = position_tolerance(sim, speed) / (sim.cfg.grid_length * 2**0.5) + 2 * EPS
    return 2 * position


def check_continuous(sim, case, rows):
    speed = case["next_speed"][rows]
    for name in ("speed", "heading", "acceleration"):
        np.testing.assert_array_equal(sim.arrays[name], case[f"next_{name}"][rows], name)
    for name in ("x", "y"):
        error = np.abs(sim.arrays[name] - case[f"next_{name}"][rows])
        assert (error <= position_tolerance(sim, speed)).all(), (name, error.max())
    np.testing.assert_array_equal(sim.arrays["reward"], case["rewards"][rows])
    np.testing.assert_array_equal(done(sim), case["done"][rows])
    if sim.cfg.runner_exits_game_after_tagged:
        runners = slice(sim.cfg.num_taggers, None)
        left = (sim.arrays["tagged_by"] >= 0) & (case["alive"][rows, runners] != 0)
        np.testing.assert_array_equal(left, (case["alive"] > case["next_alive"])[rows, runners])
        assert sim.arrays["terminated"][:, runners][left].all()

    got, want = sim.arrays["observation"][:, case["obs_agents"]], case["obs"][rows]
    seen = (want.shape[-1] - 1) // 7
    error = np.abs(got - want)
    assert (error[..., : 2 * seen] <= feature_tolerance(sim, speed.max(1))[:, None, None]).all(), error.max()
    np.testing.assert_allclose(got[..., 2 * seen : 5 * seen], want[..., 2 * seen : 5 * seen], rtol=0, atol=2 * EPS)
    np.testing.assert_array_equal(got[..., 5 * seen :], want[..., 5 * seen :])


@pytest.mark.parametrize("case", CONTINUOUS, ids=lambda c: c.name)
def test_continuous_transitions(case):
    sim = continuous(case, len(case))
    inject(sim, case, KINEMATICS, slice(None))
    sim.step()
    check_continuous(sim, case, slice(None))


@pytest.mark.parametrize("case", [c for c in CONTINUOUS if episodes(c)], ids=lambda c: c.name)
def test_continuous_episodes(case):
    """Whole episodes, each step from what gpuzoo's own step left, as long as no rounding has been carried along."""
    sim = continuous(case, 1)
    for number, rows in enumerate(episodes(case)):
        sim.reset(seed=number)
        sim.set_state({name: case[name][rows[:1]] for name in KINEMATICS})
        drift = 0.0
        for step, row in enumerate(rows):
            assert sim.arrays["elapsed_steps"][0] == step == case["t"][row]
            np.testing.assert_array_equal(sim.arrays["alive"][0], case["alive"][row])
            sim.arrays["action"][0] = case["actions"][row]
            sim.step()
            for name in ("speed", "heading", "acceleration"):
                np.testing.assert_array_equal(sim.arrays[name][0], case[f"next_{name}"][row], name)
            # Each step adds its own rounding to what the steps before have left.
            drift += position_tolerance(sim, case["next_speed"][row].max())
            for name in ("x", "y"):
                assert np.abs(sim.arrays[name][0] - case[f"next_{name}"][row]).max() <= drift
            np.testing.assert_array_equal(sim.arrays["reward"][0], case["rewards"][row])
            seen = drift / (sim.cfg.grid_length * 2**0.5) + 2 * EPS
            np.testing.assert_allclose(
                sim.arrays["observation"][0, case["obs_agents"]], case["obs"][row], rtol=0, atol=2 * seen
            )
            assert sim.arrays["ended"][0] == case["done"][row]


@pytest.mark.parametrize("case", CONTINUOUS, ids=lambda c: c.name)
def test_continuous_choices(case):
    """Every entry of the tables of actions, from the change that it makes to agents that stand still."""
    accelerations, turns = case["acceleration_actions"], case["turn_actions"]
    n = max(len(accelerations), len(turns))
    sim = continuous(case, n)
    sim.reset(seed=0)
    sim.set_state({"heading": np.full(sim.arrays["heading"].shape, np.float32(3.0))})
    pushes, bends = np.arange(n) % len(accelerations), np.arange(n) % len(turns)
    sim.arrays["action"][:, :, 0], sim.arrays["action"][:, :, 1] = pushes[:, None], bends[:, None]
    sim.step()
    top = case["max_speeds"]
    np.testing.assert_array_equal(sim.arrays["speed"], np.clip(accelerations[pushes][:, None], 0, top))
    heading = np.float32(3.0) + turns[bends]
    full = np.float32(2 * np.pi)
    heading = np.fmod(heading, full)
    heading = np.where(heading < 0, heading + full, heading)
    np.testing.assert_array_equal(sim.arrays["heading"], np.broadcast_to(heading[:, None], (n, len(top))))


def still(num_envs=1, **config):
    """Agents that stand still, so that everything about them is exact."""
    sim = Simulator(TagContinuous, num_envs, device="cpu", autoreset_mode="disabled", **config)
    sim.reset(seed=0)
    sim.arrays["action"][...] = 0
    return sim


def test_one_tagger_tags_many():
    sim = still(num_taggers=2, num_runners=100, tag_reward_for_tagger=0.1, grid_length=10.0)
    x = np.full((1, 102), 9.0, np.float32)
    x[0, 1] = x[0, 2:42] = 1.0
    sim.set_state({"x": x, "y": np.ones_like(x)})
    sim.arrays["x"][0, 0] = 5.0
    sim.step()
    assert sim.arrays["reward"][0, 0] == 0
    assert sim.arrays["reward"][0, 1] == np.float32(40) * np.float32(0.1)
    np.testing.assert_array_equal(sim.arrays["reward"][0, 2:], np.repeat(np.float32([-10, 0]), [40, 60]))
    np.testing.assert_array_equal(sim.arrays["terminated"][0], np.repeat([0, 1, 0], [2, 40, 60]))
    assert not sim.arrays["ended"][0]


def test_the_first_of_equally_near_taggers_tags():
    sim = still(num_taggers=3, num_runners=1, grid_length=8.0, tagging_distance=0.25)
    sim.set_state({"x": np.float32([[7, 5, 3, 4]]), "y": np.float32([[4, 4, 4, 4]])})
    sim.step()
    np.testing.assert_array_equal(sim.arrays["reward"][0], [0, 10, 0, -10])
    assert sim.arrays["ended"][0]
    assert sim.arrays["terminated"][0].all()
    # Exactly at the tagging distance there is no tag.
    sim.reset(seed=0)
    sim.set_state({"x": np.float32([[7, 6, 7, 4]]), "y": np.float32([[4, 4, 4, 4]])})
    sim.step()
    assert not sim.arrays["terminated"].any()


def test_who_has_left_stays_out():
    sim = still(num_taggers=1, num_runners=3, grid_length=8.0, step_reward_for_runner=0.5)
    sim.set_state({"x": np.float32([[1, 1, 5, 7]]), "y": np.float32([[1, 1, 5, 7]])})
    sim.arrays["action"][...] = 20
    sim.step()
    assert sim.arrays["terminated"][0].tolist() == [0, 1, 0, 0]
    assert sim.arrays["observation"][0, 1].any()
    place = sim.arrays["x"][0, 1]
    for _ in range(3):
        sim.step()
        assert not sim.arrays["terminated"].any()
        assert sim.arrays["reward"][0].tolist() == [0, 0, 0.5, 0.5]
        assert sim.arrays["x"][0, 1] == place
        assert sim.arrays["speed"][0, 1] == sim.arrays["heading"][0, 1] == sim.arrays["acceleration"][0, 1] == 0
        assert not sim.arrays["observation"][0, 1].any()
        groups = sim.arrays["observation"][0, 0, :-1].reshape(7, 10)
        assert groups[6].tolist() == [1, 1] + [0] * 8  # two runners are left to be seen, and eight places are empty
        assert not groups[:, 2:].any()


def test_reward_at_the_end_of_the_game():
    sim = still(num_taggers=1, num_runners=2, grid_length=8.0, max_episode_steps=1, end_of_game_reward_for_runner=3.0)
    sim.set_state({"x": np.float32([[1, 1, 7]]), "y": np.float32([[1, 1, 7]])})
    sim.step()
    assert sim.arrays["reward"][0].tolist() == [10, -10, 3]
    assert sim.arrays["truncated"][0].all()
    assert sim.arrays["terminated"][0].tolist() == [0, 1, 0]


def test_continuous_start():
    sim = Simulator(TagContinuous, 50, device="cpu", num_runners=20)
    sim.reset(seed=3)
    first = sim.state()
    assert len(np.unique(first["x"])) > 0.99 * first["x"].size
    np.testing.assert_array_equal(np.unique(first["heading"]), np.float32([0, np.pi / 2, np.pi, 3 * np.pi / 2]))
    assert 0 <= first["x"].min() < 0.2
    assert 19.8 < first["x"].max() <= 20
    sim.reset()
    assert (sim.arrays["x"] != first["x"]).mean() > 0.99

    fixed = Simulator(TagContinuous, 4, device="cpu", num_runners=20, start="fixed", start_seed=7)
    fixed.reset(seed=3)
    start = fixed.state()
    for name in KINEMATICS:
        np.testing.assert_array_equal(start[name], np.broadcast_to(start[name][:1], start[name].shape))
    fixed.reset()
    np.testing.assert_array_equal(fixed.arrays["x"], start["x"])
    other = Simulator(TagContinuous, 1, device="cpu", num_runners=20, start="fixed", start_seed=8)
    other.reset(seed=3)
    assert (other.arrays["x"] != start["x"][:1]).all()


def test_continuous_illegal_actions_change_nothing():
    sim = still(4, num_runners=3)
    sim.arrays["action"][...] = np.array([[-1, -1], [21, 21], [2**31 - 1, -(2**31)], [0, 99]], np.int32)[:, None]
    heading = sim.arrays["heading"].copy()
    sim.step()
    assert not sim.arrays["speed"].any()
    np.testing.assert_array_equal(sim.arrays["heading"], heading)


def nearest(sim, env, agent, count):
    x, y, alive = (sim.arrays[name][env] for name in ("x", "y", "alive"))
    dx, dy = x - x[agent], y - y[agent]
    distance = np.sqrt(dx * dx + dy * dy)
    others = [b for b in range(len(x)) if b != agent and alive[b]]
    return sorted(others, key=lambda b: (distance[b], b))[:count]


@pytest.mark.parametrize(
    ("num_taggers", "num_runners", "count"), [(24, 1000, 10), (3, 60, 30), (2, 3, 12), (2, 15, 17)]
)
def test_nearest(num_taggers, num_runners, count):
    """Many agents, long lists (found in several rounds) and many equal distances, against a sort."""
    sim = still(num_taggers=num_taggers, num_runners=num_runners, num_other_agents_observed=count, tagging_distance=0.0)
    for name in ("x", "y"):
        sim.arrays[name][...] = np.floor(sim.arrays[name])
    sim.arrays["alive"][0, num_taggers + 1 :: 3] = 0
    alive = sim.arrays["alive"].copy()
    sim.step()
    np.testing.assert_array_equal(sim.arrays["alive"], alive)
    for agent in range(0, num_taggers + num_runners, 1 + num_runners // 50):
        want = nearest(sim, 0, agent, count) if alive[0, agent] else []
        assert sim.arrays["nearest"][0, agent].tolist() == want + [-1] * (count - len(want))


@pytest.mark.parametrize("kind", ["grid", "grid, partial", "continuous", "continuous, full"])
def test_same_bits_in_any_order_and_on_any_number_of_lanes(kind):
    config = {"num_taggers": 3, "use_full_observation": "full" in kind or kind == "grid"}
    if "continuous" in kind:
        config |= {"num_runners": 15, "grid_length": 5.0, "tagging_distance": 0.05, "num_other_agents_observed": 14}
    env = TagContinuous if "continuous" in kind else TagGridWorld
    if env is TagGridWorld:
        config |= {"grid_length": 3, "start": "random"}
    want = None
    backends = [CpuBackend(), CpuBackend(flags=("-DGZ_LANE_ORDER",))]
    simt = CpuBackend(simt=True)
    for backend, lanes in [*((b, None) for b in backends), (simt, 2), (simt, 32), (simt, 64)]:
        sim = Simulator(env, 3, backend=backend, lanes=lanes, max_episode_steps=5, autoreset_mode="same_step", **config)
        sim.reset(seed=5)
        for _ in range(4):
            sim.rollout(2)
        got = {name: np.array(array) for name, array in sim.arrays.items()}
        want = want or got
        for name in want:
            np.testing.assert_array_equal(got[name], want[name], name)


@pytest.mark.parametrize("env", [TagGridWorld, TagContinuous])
def test_observations_and_pictures(env):
    canvas = pytest.importorskip("gpuzoo.render").Canvas
    config = {"num_taggers": 4, "start": "random"}
    config |= {"num_runners": 20, "tagging_distance": 0.1} if env is TagContinuous else {}
    sim = Simulator(env, 5, device="cpu", **config)
    sim.reset(seed=0)
    for _ in range(30):
        sim.rollout(4)
        for group, first in sim.layout.first.items():
            space = sim.layout.observation_spaces[group]
            assert all(space.contains(row) for row in sim.arrays["observation"][:, first])
    picture = canvas(120, 120)
    sim.env.render(sim.cfg, {name: array[0] for name, array in sim.state().items()}, picture)
    assert len(np.unique(picture.array().reshape(-1, 3), axis=0)) > 20
