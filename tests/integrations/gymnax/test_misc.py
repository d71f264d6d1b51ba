"""FourRooms, MetaMaze, PointRobot, Reacher, Swimmer and Pong against gymnax's, from widely drawn states and over whole
episodes.

Gymnax computes in float32 too. Where the rules have integers, or a few roundings in an order that they prescribe,
numbers must be equal. In PointRobot, Reacher and Swimmer both sides have their own sine, exponential function and order
of sums; tolerances stand with the tests, in units of ``EPS`` = 2**-24, half a unit in the last place: an elementary
function is within 4 EPS of the exact value (2 ulp) on either side, and a sum or product rounds by 1 EPS.
"""

from __future__ import annotations

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments.misc import meta_maze, point_robot, pong, reacher, rooms, swimmer

from gpuzoo import Simulator
from gpuzoo.envs.four_rooms.four_rooms import WALLS, FourRooms
from gpuzoo.envs.meta_maze.meta_maze import MetaMaze
from gpuzoo.envs.point_robot.point_robot import PointRobot
from gpuzoo.envs.pong.pong import Pong
from gpuzoo.envs.reacher.reacher import Reacher
from gpuzoo.envs.swimmer.swimmer import Swimmer

STATES = 20_000
EPS = 2.0**-24


def simulator(game, n=STATES, **options):
    sim = Simulator(game, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=0)
    return sim


class Theirs:
    """Gymnax's env in many states at once."""

    def __init__(self, name, n, arguments, **params):
        self.env, default = gymnax.make(name, **arguments)
        self.params, self.n = default.replace(**params), n
        self._step = jax.jit(jax.vmap(self.env.step_env, in_axes=(0, 0, 0, None)))
        self._observe = jax.jit(jax.vmap(lambda state: self.env.get_obs(state, self.params)))

    def keys(self, seed):
        return jax.random.split(jax.random.key(seed), self.n)

    def step(self, keys, state, action):
        observation, after, reward, terminated, _ = self._step(keys, state, jnp.asarray(action), self.params)
        truncated = np.asarray(after.time) >= self.params.max_steps_in_episode
        observation = np.asarray(observation).reshape(self.n, -1)
        return observation, after, np.asarray(reward), np.asarray(terminated), truncated

    def observe(self, state):
        return np.asarray(self._observe(state)).reshape(self.n, -1)

    def reset(self, seed):
        return jax.jit(jax.vmap(self.env.reset_env, in_axes=(0, None)))(self.keys(seed), self.params)


def act(sim, actions):
    sim.arrays["action"][...] = np.asarray(actions).reshape(sim.arrays["action"].shape)
    sim.step()


def seen(sim):
    return sim.arrays["observation"].reshape(sim.num_envs, -1)


def same(ours, theirs):
    np.testing.assert_array_equal(ours, theirs)


def same_flags(sim, reward, terminated, truncated):
    same(sim.arrays["reward"][:, 0], reward)
    same(sim.arrays["terminated"][:, 0], terminated)
    same(sim.arrays["truncated"][:, 0], truncated)


def same_but_time(ours, theirs):
    """XLA computes 2 t / 100 - 1 as t * 0.02 - 1, with one rounding less or the same; ours rounds the quotient and the
    difference. 0.02 is off by 1 EPS of itself."""
    same(ours[:, :-1], theirs[:, :-1])
    near(ours[:, -1], theirs[:, -1], 2 * EPS * (2 + abs(theirs[:, -1].astype(np.float64))))


def near(ours, theirs, bound):
    wrong = ~(abs(np.asarray(ours, np.float64) - theirs) <= bound)
    assert not wrong.any(), (np.asarray(ours)[wrong][:3], np.asarray(theirs)[wrong][:3])


def uniformly(counts):
    """Counts of equally likely outcomes, within 5 standard deviations of the binomial."""
    n, k = counts.sum(), len(counts)
    assert (abs(counts - n / k) <= 5 * np.sqrt(n / k * (1 - 1 / k))).all(), counts


# ---- FourRooms ----

OPEN = np.argwhere(~WALLS).astype(np.int32)


def rooms_state(sim):
    s = sim.state()
    return rooms.EnvState(
        pos=jnp.stack([s["row"], s["column"]], 1),
        goal=jnp.stack([s["goal_row"], s["goal_column"]], 1),
        time=jnp.array(s["elapsed_steps"]),
    )


@pytest.mark.parametrize("picture", [False, True])
@pytest.mark.parametrize("fail_prob", [0.0, 1 / 3, 0.75])
def test_four_rooms(picture, fail_prob):
    """From all pairs of cells; gymnax's own random draws decide whether and where ours slips."""
    n, rng = len(OPEN) ** 2, np.random.default_rng(0)
    sim = simulator(FourRooms, n, use_visual_obs=picture, fail_prob=0.0)
    places, goals = np.repeat(OPEN, len(OPEN), 0), np.tile(OPEN, (len(OPEN), 1))
    t = rng.integers(0, 500, n).astype(np.int32)
    values = {"row": places[:, 0], "column": places[:, 1], "goal_row": goals[:, 0], "goal_column": goals[:, 1]}
    sim.set_state({**values, "elapsed_steps": t})
    theirs = Theirs("FourRooms-misc", n, {"use_visual_obs": picture}, fail_prob=fail_prob)
    state = rooms_state(sim)
    same(seen(sim), theirs.observe(state))
    actions, keys = rng.integers(0, 4, n), theirs.keys(1)
    split = jax.vmap(jax.random.split)(keys)
    slips = jax.vmap(jax.random.uniform)(split[:, 0]) < theirs.params.fail_prob * 4 / 3
    drawn = jax.vmap(theirs.env.action_space().sample)(split[:, 1])
    observation, after, *flags = theirs.step(keys, state, actions)
    act(sim, np.where(slips, drawn, actions))
    same(seen(sim), observation)
    same_flags(sim, *flags)
    assert flags[1].sum() > 50
    for ours, other in zip(jax.tree.leaves(rooms_state(sim)), jax.tree.leaves(after), strict=True):
        same(ours, other)
    assert abs(slips.mean() - 4 / 3 * fail_prob) < 0.02


def test_four_rooms_whole_episodes():
    """1,000 episodes with ours slipping: the move that was made, given to gymnax, leads to the same."""
    n = 1000
    sim = simulator(FourRooms, n, resample_init_pos=True, resample_goal_pos=True)
    theirs = Theirs("FourRooms-misc", n, {}, fail_prob=0.0)
    state, running, slipped, moves = rooms_state(sim), np.ones(n, bool), 0, 0
    while running.any():
        sim.random_actions()
        actions = sim.arrays["action"][:, 0, 0].copy()
        sim.step()
        pos = np.asarray(rooms_state(sim).pos)
        outcomes = [theirs.step(theirs.keys(0), state, np.full(n, a)) for a in range(4)]
        fits = np.stack([(np.asarray(o[1].pos) == pos).all(1) for o in outcomes], 1)
        assert fits[running].any(1).all()
        made = fits.argmax(1)
        observation, reward, terminated, truncated = (
            np.stack([o[k] for o in outcomes])[made, np.arange(n)] for k in (0, 2, 3, 4)
        )
        same(seen(sim)[running], observation[running])
        for name, flag in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
            same(sim.arrays[name][running, 0], flag[running])
        clear = running & (fits.sum(1) == 1)  # no two directions lead there
        slipped, moves = slipped + (made != actions)[clear].sum(), moves + clear.sum()
        running &= ~(terminated | truncated)
        state = rooms_state(sim)
    assert abs(slipped / moves - 1 / 3) < 5 * np.sqrt(2 / 9 / moves)


@pytest.mark.parametrize("pos", [False, True])
@pytest.mark.parametrize("goal", [False, True])
def test_four_rooms_begins(pos, goal):
    n = 100_000
    sim = simulator(FourRooms, n, resample_init_pos=pos, resample_goal_pos=goal)
    theirs = Theirs("FourRooms-misc", n, {}, resample_init_pos=pos, resample_goal_pos=goal)
    for state in (rooms_state(sim), theirs.reset(3)[1]):
        cells, goals = np.asarray(state.pos) @ [13, 1], np.asarray(state.goal) @ [13, 1]
        free = np.flatnonzero(~WALLS)
        if goal:
            uniformly(np.bincount(goals, minlength=169)[free])
        else:
            assert (goals == 8 * 13 + 9).all()
        if not pos:
            assert (cells == 4 * 13 + 1).all()
            continue
        assert (cells != goals).all()
        counts = np.bincount(cells, minlength=169)[free]
        uniformly(counts if goal else counts[free != 8 * 13 + 9])


def test_four_rooms_other_places():
    sim = simulator(FourRooms, 1, goal_row=1, goal_column=2, start_row=11, start_column=10)
    theirs = Theirs("FourRooms-misc", 1, {"goal_fixed": [1, 2], "pos_fixed": [11, 10]})
    same(seen(sim), theirs.reset(0)[0])


# ---- MetaMaze ----


def maze_state(sim):
    s, radius = sim.state(), sim.cfg.rf_size // 2
    return meta_maze.EnvState(
        last_action=jnp.array(s["last_action"]),
        last_reward=jnp.array(s["last_reward"]),
        pos=jnp.stack([s["row"], s["column"]], 1) + radius,
        goal=jnp.stack([s["goal_row"], s["goal_column"]], 1) + radius,
        time=jnp.array(s["elapsed_steps"], jnp.float32),
    )


MAZES = [
    {},
    {"reward": 2.5, "punishment": -0.75, "normalize_time": True},
    {"maze_size": 7, "rf_size": 5, "punishment": -1.0},
    {"maze_size": 3, "rf_size": 9},
    {"maze_size": 1},
    {"maze_size": 13, "rf_size": 3},
]


def maze(options, n):
    arguments = {k: v for k, v in options.items() if k in ("maze_size", "rf_size")}
    return Theirs("MetaMaze-misc", n, arguments, **{k: v for k, v in options.items() if k not in arguments})


@pytest.mark.parametrize("options", MAZES, ids=str)
def test_meta_maze(options):
    """From open cells, and from the start, which may be in a wall; where the goal is found, the place is drawn."""
    n, rng = STATES, np.random.default_rng(0)
    sim = simulator(MetaMaze, n, **options)
    theirs = maze(options, n)
    start, goal = sim.arrays["row"].copy(), np.stack([sim.arrays["goal_row"], sim.arrays["goal_column"]], 1)
    cells = np.asarray(theirs.env.coords) - sim.cfg.rf_size // 2
    same(start, np.asarray(theirs.reset(0)[1].pos)[:, 0] - sim.cfg.rf_size // 2)
    same(sim.arrays["column"], start)
    same(np.unique(goal, axis=0), cells)
    place = cells[rng.integers(0, len(cells), n)]
    place[: n // 4] = start[0]
    beside = (rng.random(n) < 0.3)[:, None]
    place = np.where(beside & np.isin(goal @ [99, 1], (cells + [1, 0]) @ [99, 1])[:, None], goal - [1, 0], place)
    values = {
        "row": place[:, 0].astype(np.int32),
        "column": place[:, 1].astype(np.int32),
        "last_action": rng.integers(0, 4, n).astype(np.int32),
        "last_reward": rng.normal(size=n).astype(np.float32),
    }
    sim.set_state({**values, "elapsed_steps": rng.integers(0, 200, n).astype(np.int32)})
    state = maze_state(sim)
    same_but_time(seen(sim), theirs.observe(state))
    actions = rng.integers(0, 4, n)
    observation, after, reward, terminated, truncated = theirs.step(theirs.keys(1), state, actions)
    act(sim, actions)
    ours = maze_state(sim)
    found = np.asarray(reward) >= sim.cfg.reward + min(0.0, sim.cfg.punishment)
    assert found.sum() > 100
    same(sim.arrays["reward"][:, 0], reward)
    same(sim.arrays["truncated"][:, 0], truncated)
    same_but_time(seen(sim)[~found], observation[~found])
    same(sim.arrays["terminated"][~found, 0], terminated[~found])
    same(np.asarray(ours.pos)[~found], np.asarray(after.pos)[~found])
    # those who were put elsewhere: gymnax, in the place that ours has drawn, sees the same and ends as ours
    there = after.replace(pos=ours.pos)
    same_but_time(seen(sim), theirs.observe(there))
    ends = np.asarray(jax.vmap(lambda s: theirs.env.is_terminated(s, theirs.params))(there))
    same(sim.arrays["terminated"][:, 0], ends)
    assert (ends[found].mean() > 0) == (len(cells) < found.sum())
    landed = (np.asarray(ours.pos) - sim.cfg.rf_size // 2)[found] @ [99, 1]
    uniformly(np.bincount(np.searchsorted(cells @ [99, 1], landed), minlength=len(cells)))


@pytest.mark.parametrize("options", MAZES[:3], ids=str)
def test_meta_maze_whole_episodes(options):
    """1,000 episodes; gymnax's agent is put where ours was drawn."""
    n = 1000
    sim, theirs = simulator(MetaMaze, n, **options), maze(options, n)
    state, running = maze_state(sim), np.ones(n, bool)
    for _ in range(200):
        sim.random_actions()
        actions = sim.arrays["action"][:, 0, 0].copy()
        sim.step()
        _, after, reward, _, truncated = theirs.step(theirs.keys(0), state, actions)
        state = after.replace(pos=maze_state(sim).pos)
        same(sim.arrays["reward"][running, 0], reward[running])
        ends = np.asarray(jax.vmap(lambda s: theirs.env.is_terminated(s, theirs.params))(state))
        same(sim.arrays["terminated"][running, 0], ends[running])
        same(sim.arrays["truncated"][running, 0], truncated[running])
        same_but_time(seen(sim)[running], theirs.observe(state)[running])
        running &= ~(ends | truncated)
    assert not running.any()


# ---- PointRobot ----


def robot_state(sim):
    s = sim.state()
    return point_robot.EnvState(
        last_action=jnp.stack([s["last_action_x"], s["last_action_y"]], 1),
        last_reward=jnp.array(s["last_reward"]),
        pos=jnp.stack([s["x"], s["y"]], 1),
        goal=jnp.stack([s["goal_x"], s["goal_y"]], 1),
        goals_reached=jnp.array(s["goals_reached"]),
        time=jnp.array(s["elapsed_steps"], jnp.float32),
    )


ROBOTS = [
    {},
    {"dense_reward": True, "normalize_time": False},
    {"circle_radius": 2.5, "goal_radius": 0.7, "max_force": 0.4, "center_init": True},
]


def compare_robots(sim, theirs, state, actions):
    """One step of both. The distance is a root of a sum of two squares of differences: 4 EPS of itself and, as
    differences are rounded, 2 EPS. Everything else is one sum. Returns
    our state, and who was put elsewhere.
    """
    before = np.asarray(state.goal, np.float64) - np.asarray(state.pos)
    distance = np.hypot(*before.T)
    observation, after, reward, terminated, truncated = theirs.step(theirs.keys(1), state, actions)
    clear = abs(distance - sim.cfg.goal_radius) > 8 * EPS * (distance + 1)
    assert clear.mean() > 0.99
    ours, bound = robot_state(sim), 6 * EPS * distance if sim.cfg.dense_reward else 0
    near(sim.arrays["reward"][clear, 0], reward[clear], np.broadcast_to(bound, clear.shape)[clear])
    same(np.asarray(ours.goals_reached)[clear], np.asarray(after.goals_reached)[clear])
    same(sim.arrays["terminated"][:, 0], terminated)
    same(sim.arrays["truncated"][:, 0], truncated)
    reached = np.asarray(after.goals_reached) > np.asarray(state.goals_reached)
    moved = clear & ~reached
    same(np.asarray(ours.pos)[moved], np.asarray(after.pos)[moved])
    same_but_time(seen(sim)[moved][:, [0, 1, 3, 4, 5]], observation[moved][:, [0, 1, 3, 4, 5]])
    same_but_time(seen(sim), theirs.observe(ours))
    return ours, clear & reached


@pytest.mark.parametrize("options", ROBOTS, ids=str)
def test_point_robot(options):
    n, rng = STATES, np.random.default_rng(0)
    sim, theirs = simulator(PointRobot, n, **options), Theirs("PointRobot-misc", n, {}, **options)
    radius = sim.cfg.circle_radius
    place = rng.normal(size=(2, n)) * radius * rng.choice([0.1, 1, 30], n)
    place[:, ::3] = np.stack([sim.arrays["goal_x"], sim.arrays["goal_y"]])[:, ::3] + 0.3 * rng.normal(
        size=(2, len(place[0, ::3]))
    )
    last = rng.uniform(-sim.cfg.max_force, sim.cfg.max_force, (2, n))
    values = {"x": place[0], "y": place[1], "last_action_x": last[0], "last_action_y": last[1]}
    values["last_reward"] = rng.normal(size=n)
    values = {k: v.astype(np.float32) for k, v in values.items()}
    sim.set_state({**values, "elapsed_steps": rng.integers(0, 100, n).astype(np.int32)})
    state = robot_state(sim)
    same_but_time(seen(sim), theirs.observe(state))
    actions = rng.uniform(-1, 1, (n, 2)).astype(np.float32) * np.float32(sim.cfg.max_force)
    act(sim, actions)
    ours, reached = compare_robots(sim, theirs, state, actions)
    assert reached.sum() > 500
    again = np.asarray(ours.pos)[reached]
    check_places(again, sim.cfg)
    check_places(np.asarray(theirs.step(theirs.keys(1), state, actions)[1].pos)[reached], sim.cfg)


def check_places(places, cfg):
    """Radius and angle are uniform: eight bins each, which are independent."""
    if cfg.center_init:
        assert not places.any()
        return
    assert (places[:, 1] >= -1e-6).all()
    radii = np.minimum(7, 8 * np.hypot(*places.T) / cfg.circle_radius).astype(int)
    angles = np.clip(8 * np.arctan2(places[:, 1], places[:, 0]) / np.pi, 0, 7).astype(int)
    uniformly(np.bincount(radii, minlength=8))
    uniformly(np.bincount(angles, minlength=8))
    if len(places) > 5000:
        uniformly(np.bincount(8 * radii + angles, minlength=64))


@pytest.mark.parametrize("options", ROBOTS, ids=str)
def test_point_robot_begins_and_whole_episodes(options):
    """All states are those of STATES beginnings; 1,000 whole episodes are compared step by step."""
    sim, theirs = simulator(PointRobot, **options), Theirs("PointRobot-misc", STATES, {}, **options)
    first, state = theirs.reset(2)
    for begun in (robot_state(sim), state):
        check_places(np.asarray(begun.pos), sim.cfg)
        x, y = np.asarray(begun.goal, np.float64).T
        near(np.hypot(x, y), sim.cfg.circle_radius, 8 * EPS * sim.cfg.circle_radius)
        assert (y > -8 * EPS).all()
        uniformly(np.bincount(np.clip(16 * np.arctan2(y, x) / np.pi, 0, 15).astype(int), minlength=16))
    same(seen(sim)[:, 2:], np.asarray(first)[:, 2:])
    n = 1000
    sim, theirs = simulator(PointRobot, n, **options), Theirs("PointRobot-misc", n, {}, **options)
    for _ in range(100):
        state = robot_state(sim)
        sim.random_actions()
        actions = sim.arrays["action"].reshape(n, 2).copy()
        sim.step()
        compare_robots(sim, theirs, state, actions)
    assert sim.arrays["truncated"].all()


# ---- Reacher ----


class ManyJoints(reacher.Reacher):
    """Gymnax's with an observation for any number of joints: its own is an error unless there are two."""

    def get_obs(self, state, params, key=None):
        return jnp.concatenate([jnp.cos(state.angles), jnp.sin(state.angles), state.angle_vels, state.goal_xy])


def columns(sim, name, n):
    s = sim.state()
    return s[name] if name in s else np.stack([s[f"{name}_{k}"] for k in range(n)], 1)


def given(sim, name, values):
    if name in sim.state():
        return {name: values}
    return {f"{name}_{k}": np.ascontiguousarray(values[:, k]) for k in range(values.shape[1])}


def reacher_state(sim):
    s, joints = sim.state(), sim.cfg.num_joints
    return reacher.EnvState(
        angles=jnp.array(columns(sim, "angle", joints)),
        angle_vels=jnp.array(columns(sim, "velocity", joints)),
        goal_xy=jnp.stack([s["goal_x"], s["goal_y"]], 1),
        time=jnp.array(s["elapsed_steps"], jnp.float32),
    )


def arms(n, options):
    theirs = Theirs("Reacher-misc", n, {}, **{k: v for k, v in options.items() if k != "num_joints"})
    if options.get("num_joints", 2) != 2:
        theirs.env = ManyJoints(options["num_joints"])
        theirs._step = jax.jit(jax.vmap(theirs.env.step_env, in_axes=(0, 0, 0, None)))
        theirs._observe = jax.jit(jax.vmap(lambda state: theirs.env.get_obs(state, theirs.params)))
    return theirs


def compare_arms(sim, theirs, state, actions):
    """One step of both. Velocities and angles are a product or two and a sum: 2 EPS of each term (XLA may leave out a
    rounding). Cosines are 4 EPS off on either side, and by the difference of the angles. Positions of the hand are sums
    of ``n`` of them, each sum rounded: with d their distance to the goal and e what x and y are off, d² is off by
    2 d e sqrt(2) + 4 EPS d², and the reward by as much of itself, and 8 EPS.
    """
    observation, after, reward, terminated, truncated = theirs.step(theirs.keys(1), state, actions)
    ours, n, dt = reacher_state(sim), sim.cfg.num_joints, sim.cfg.dt
    push = dt * abs(sim.cfg.torque_scale * actions)
    speed = 4 * EPS * (abs(np.asarray(state.angle_vels)) + push)
    turn = dt * speed + 4 * EPS * (abs(np.asarray(state.angles)) + dt * abs(np.asarray(after.angle_vels)))
    near(ours.angle_vels, np.asarray(after.angle_vels), speed)
    near(ours.angles, np.asarray(after.angles), turn)
    same(ours.goal_xy, after.goal_xy)
    bound = np.concatenate([turn + 8 * EPS, turn + 8 * EPS, speed, np.zeros((len(turn), 2))], 1)
    near(seen(sim), observation, bound)
    off = (turn + 8 * EPS).sum(1) + 2 * n * n * EPS
    angles = np.asarray(after.angles, np.float64)
    d = np.hypot(*(np.stack([np.cos(angles).sum(1), np.sin(angles).sum(1)], 1) - np.asarray(after.goal_xy)).T)
    near(sim.arrays["reward"][:, 0], reward, reward * (4 * d * off + 6 * EPS * d**2 + 8 * EPS) + 1e-37)
    same(sim.arrays["terminated"][:, 0], terminated)
    same(sim.arrays["truncated"][:, 0], truncated)


ARMS = [
    {},
    {"dt": 0.3, "torque_scale": 5.0},
    {"num_joints": 1},
    {"num_joints": 5},
    {"num_joints": 8},
    {"num_joints": 11},
]


@pytest.mark.parametrize("options", ARMS, ids=str)
def test_reacher(options):
    n, rng = STATES, np.random.default_rng(0)
    sim, theirs = simulator(Reacher, n, **options), arms(n, options)
    joints = sim.cfg.num_joints
    angle = rng.uniform(-1, 1, (n, joints)) * rng.choice([np.pi, 100], (n, 1))
    velocity = rng.normal(size=(n, joints)) * rng.choice([0.01, 1, 10], (n, 1))
    values = given(sim, "angle", angle.astype(np.float32)) | given(sim, "velocity", velocity.astype(np.float32))
    sim.set_state({**values, "elapsed_steps": rng.integers(0, 100, n).astype(np.int32)})
    state = reacher_state(sim)
    near(seen(sim), theirs.observe(state), 8 * EPS)
    actions = rng.uniform(-1, 1, (n, joints)).astype(np.float32)
    act(sim, actions)
    compare_arms(sim, theirs, state, actions)


@pytest.mark.parametrize("options", ARMS[:2], ids=str)
def test_reacher_whole_episodes(options):
    """1,000 episodes. The states are compared at each step, from ours, as errors would add up along an episode."""
    n = 1000
    sim, theirs = simulator(Reacher, n, **options), arms(n, options)
    for _ in range(100):
        state = reacher_state(sim)
        sim.random_actions()
        actions = sim.arrays["action"].reshape(n, -1).copy()
        sim.step()
        compare_arms(sim, theirs, state, actions)
    assert sim.arrays["truncated"].all()


def in_bins(values, low, high):
    assert values.min() >= low
    assert values.max() <= high
    uniformly(np.bincount(np.minimum(15, 16 * (values - low) / (high - low)).astype(int), minlength=16))


@pytest.mark.parametrize("joints", [2, 9])
def test_reacher_begins(joints):
    sim = simulator(Reacher, 50_000, num_joints=joints)
    for state in (reacher_state(sim), Theirs("Reacher-misc", 50_000, {}).reset(0)[1]):
        for values, bound in ((state.angles, np.pi), (state.angle_vels, 1)):
            for k in range(values.shape[1]):
                in_bins(np.asarray(values, np.float64)[:, k], -bound - 1e-6, bound + 1e-6)
        reach = state.angles.shape[1]
        for k in range(2):
            in_bins(np.asarray(state.goal_xy)[:, k], -reach, reach)
        assert not np.asarray(state.time).any()


# ---- Swimmer ----


def swimmer_state(sim):
    s, urchins = sim.state(), sim.cfg.num_urchins
    return swimmer.EnvState(
        urchin_xys=jnp.stack([columns(sim, "urchin_x", urchins), columns(sim, "urchin_y", urchins)], 2),
        xy=jnp.stack([s["x"], s["y"]], 1),
        xy_vel=jnp.stack([s["x_velocity"], s["y_velocity"]], 1),
        goal_xy=jnp.stack([s["goal_x"], s["goal_y"]], 1),
        time=jnp.array(s["elapsed_steps"]),
    )


SEAS = [{}, {"dt": 0.2}, {"num_urchins": 1}, {"num_urchins": 8}, {"num_urchins": 13}]


def sea(n, options):
    arguments = {k: v for k, v in options.items() if k == "num_urchins"}
    return Theirs("Swimmer-misc", n, arguments, **{k: v for k, v in options.items() if k not in arguments})


def compare_swimmers(sim, theirs, state, actions):
    """One step of both. Velocity and position are a product and a sum, within 4 EPS of their terms. With ``off`` what x
    and y are off by, d² is off by 4 d off + 6 EPS d², so a factor 1 - exp(-30 u²) by 30 times that times the
    exponential, and 8 EPS; exp(-d²/2) by half of it times itself. Each product rounds once.
    """
    observation, after, reward, terminated, truncated = theirs.step(theirs.keys(1), state, actions)
    ours, dt = swimmer_state(sim), sim.cfg.dt
    speed = 4 * EPS * (abs(np.asarray(state.xy_vel)) + dt * abs(actions))
    place = dt * speed + 4 * EPS * (abs(np.asarray(state.xy)) + dt * abs(np.asarray(after.xy_vel)))
    near(ours.xy_vel, np.asarray(after.xy_vel), speed)
    near(ours.xy, np.asarray(after.xy), place)
    fixed = np.zeros((len(place), 2))
    urchins = np.zeros((len(place), 2 * sim.cfg.num_urchins))
    near(seen(sim), observation, np.concatenate([urchins, place, speed, fixed], 1))
    off = place.max(1) + 2 * EPS * (abs(np.asarray(after.xy)).max(1) + 1)
    xy = np.asarray(after.xy, np.float64)
    d = np.hypot(*(xy - np.asarray(after.goal_xy)).T)
    u = np.linalg.norm(xy[:, None] - np.asarray(after.urchin_xys), axis=2)
    near_urchin = np.exp(-30 * u**2)
    error = near_urchin * 30 * (4 * u * off[:, None] + 6 * EPS * u**2) + 10 * EPS
    goal = np.exp(-(d**2) / 2)
    bound = goal * (error.sum(1) + 0.5 * (4 * d * off + 6 * EPS * d**2) + 10 * EPS)
    near(sim.arrays["reward"][:, 0], reward, bound + 1e-37)
    same(sim.arrays["terminated"][:, 0], terminated)
    same(sim.arrays["truncated"][:, 0], truncated)


@pytest.mark.parametrize("options", SEAS, ids=str)
def test_swimmer(options):
    n, rng = STATES, np.random.default_rng(0)
    sim, theirs = simulator(Swimmer, n, **options), sea(n, options)
    xy = rng.normal(size=(2, n)) * rng.choice([0.3, 1, 5], n)
    first = np.stack([columns(sim, "urchin_x", sim.cfg.num_urchins), columns(sim, "urchin_y", sim.cfg.num_urchins)])[
        :, :, 0
    ]
    xy = np.where(np.arange(n) % 3 == 0, first + 0.05 * rng.normal(size=(2, n)), xy)  # on an urchin
    velocity = rng.normal(size=(2, n)) * rng.choice([0.01, 1, 4], n)
    values = {"x": xy[0], "y": xy[1], "x_velocity": velocity[0], "y_velocity": velocity[1]}
    values = {k: v.astype(np.float32) for k, v in values.items()}
    sim.set_state({**values, "elapsed_steps": rng.integers(0, 500, n).astype(np.int32)})
    state = swimmer_state(sim)
    same(seen(sim), theirs.observe(state))
    actions = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
    act(sim, actions)
    compare_swimmers(sim, theirs, state, actions)
    assert (sim.arrays["reward"] < 0.1).mean() > 0.2


def test_swimmer_begins_and_whole_episodes():
    """16 bins for each number of 50,000 beginnings; 300 whole episodes, each step from our state."""
    for state in (swimmer_state(simulator(Swimmer, 50_000)), sea(50_000, {}).reset(0)[1]):
        for values in (state.urchin_xys.reshape(-1, 10), state.xy, state.goal_xy):
            for k in range(values.shape[1]):
                in_bins(np.asarray(values)[:, k], -1, 1)
        assert not np.asarray(state.xy_vel).any()
    n = 300
    sim, theirs = simulator(Swimmer, n), sea(n, {})
    for _ in range(500):
        state = swimmer_state(sim)
        sim.random_actions()
        actions = sim.arrays["action"].reshape(n, 2).copy()
        sim.step()
        compare_swimmers(sim, theirs, state, actions)
    assert sim.arrays["truncated"].all()


# ---- Pong ----

NAMES = ("left_paddle", "right_paddle", "ball_row", "ball_column", "last_ball_row", "last_ball_column")


def pong_state(sim):
    s = sim.state()
    pairs = [jnp.stack([s[a], s[b]], 1) for a, b in zip(NAMES[::2], NAMES[1::2], strict=True)]
    velocity = jnp.stack([s["row_velocity"], s["column_velocity"]], 1).astype(jnp.int32)
    names = ("paddle_centers", "ball_position", "last_ball_position")
    return pong.EnvState(
        **dict(zip(names, pairs, strict=True)),
        ball_velocity=velocity,
        time=jnp.array(s["elapsed_steps"]),
        terminal=jnp.zeros(len(velocity), bool),
    )


COURTS = [
    {},
    {"use_ai_policy": False},
    {"width": 17, "height": 11, "paddle_half_height": 1, "ball_max_y_speed": 5, "paddle_y_speed": 2, "ball_x_speed": 3},
    {"width": 4, "height": 7, "paddle_half_height": 3, "ball_x_speed": -2},
]


def court(options, n):
    arguments = {k: v for k, v in options.items() if k in ("width", "height", "paddle_half_height")}
    return Theirs("Pong-misc", n, arguments, **{k: v for k, v in options.items() if k not in arguments})


def same_courts(sim, theirs, after):
    ours = pong_state(sim)
    for name in ("paddle_centers", "ball_position", "last_ball_position", "ball_velocity", "time"):
        same(np.asarray(getattr(ours, name)), np.asarray(getattr(after, name)))


@pytest.mark.parametrize("options", COURTS, ids=str)
def test_pong(options):
    """From any place, velocity and paddle, in steps of one half, the ball also out of the court."""
    n, rng = STATES, np.random.default_rng(0)
    sim, numbers = simulator(Pong, n, **options), simulator(Pong, n, use_visual_obs=False, **options)
    theirs = court(options, n)
    begun, start = theirs.reset(0)
    same(seen(sim), np.asarray(begun).reshape(n, -1))
    same_courts(sim, theirs, start)
    cfg = sim.cfg
    half = cfg.paddle_half_height
    paddles = rng.integers(half, cfg.height - half, (2, n)) + 0.5 * (rng.random((2, n)) < 0.1) * (
        half + 1 < cfg.height - half
    )
    rows = rng.integers(-4, 2 * cfg.height + 4, (2, n)) / 2
    hit = rng.random(n) < 0.5
    rows[0] = np.where(hit, paddles[0] + rng.integers(-8, 9, n) / 2, rows[0])
    places = rng.integers(-2, 2 * cfg.width + 2, (2, n)) / 2
    places[0] = np.where(hit, rng.choice([0, 0.5, 1, 1.5, 2, 3, *range(cfg.width - 3, cfg.width)], n), places[0])
    values = dict(zip(NAMES, (*paddles, rows[0], places[0], rows[1], places[1]), strict=True))
    speed = max(3, cfg.ball_max_y_speed)
    values["row_velocity"] = rng.integers(-speed, speed + 1, n)
    values["column_velocity"] = rng.choice([-1, 1], n) * abs(cfg.ball_x_speed)
    values = {k: v.astype(np.float32) for k, v in values.items()}
    times = {"elapsed_steps": rng.integers(0, 1000, n).astype(np.int32)}
    actions = rng.integers(0, 3, n)
    for one in (sim, numbers):
        one.set_state(values | times)
    state = pong_state(sim)
    same(seen(sim), theirs.observe(state))
    observation, after, *flags = theirs.step(theirs.keys(0), state, actions)
    for one in (sim, numbers):
        act(one, actions)
        same_courts(one, theirs, after)
        same_flags(one, *flags)
    same(seen(sim), observation)
    same(seen(numbers), np.stack([numbers.state()[k] for k in (*NAMES, "row_velocity", "column_velocity")], 1))
    turned = (np.asarray(after.ball_velocity) != np.asarray(state.ball_velocity)).any(1)
    assert 0.1 < turned.mean() < 0.9
    assert flags[1].mean() > 0.005


@pytest.mark.parametrize("options", COURTS, ids=str)
def test_pong_whole_episodes(options):
    """200 episodes; half of the players run after the ball, so that rallies are long."""
    n, rng = 200, np.random.default_rng(0)
    sim, theirs = simulator(Pong, n, **options), court(options, n)
    state, running, longest = pong_state(sim), np.ones(n, bool), 0
    while running.any():
        s = sim.state()
        chase = np.where(s["ball_row"] < s["left_paddle"], 1, np.where(s["ball_row"] > s["left_paddle"], 2, 0))
        actions = np.where((rng.random(n) < 0.1) | (np.arange(n) % 2 == 0), rng.integers(0, 3, n), chase)
        observation, state, reward, terminated, truncated = theirs.step(theirs.keys(0), state, actions)
        act(sim, actions)
        same(seen(sim)[running], observation[running])
        for k, flag in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
            same(sim.arrays[k][running, 0], flag[running])
        running &= ~(terminated | truncated)
        longest += 1
    assert longest > 2
