"""Pendulum, Acrobot and the mountain cars against Gymnasium's, from states drawn over the whole state space and over
whole episodes.

Gymnasium computes in float64 (MountainCarContinuous rounds its state to float32 between steps). One step of ours in
float32 differs by rounding alone. With ``eps = 2**-24`` (half a unit in the last place, relative) each operation is
wrong by at most eps, a sine or cosine by 4 eps, a constant by eps. `bounds` of each game adds up what that makes of the
step's terms, to first order: terms of a sum count with their absolute values, and what is computed in k operations is
wrong by k eps. Where a result depends on another one, its error counts with the derivative.

Along an episode such errors are carried on by the rules. To first order the error after t steps is the sum over s <= t
of J_t J_(t-1) ... J_(s+1) b_s, where J are the derivatives of Gymnasium's own step (central differences) and b_s the
bound of one step; `Tracker` keeps that sum, with absolute values of the products, doubled for what is of second order.
Acrobot is chaotic: an episode is followed until the sum says that float32 explains a tenth.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from draws import units
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.classic_control.acrobot import Acrobot
from gpuzoo.envs.classic_control.mountain_car import MountainCar
from gpuzoo.envs.classic_control.mountain_car_continuous import MountainCarContinuous
from gpuzoo.envs.classic_control.pendulum import Pendulum

pytestmark = pytest.mark.rotates

EPS = 2.0**-24
TWO_PI = 2 * math.pi
TURN = 1.75e-7  # of 2 pi in float32

Floats = NDArray[np.float64]
#: states after the step, observations, rewards, terminations
Outcome = tuple[Floats, Floats, Floats, NDArray[np.bool_]]


def wrapped(angles: Any) -> Any:
    return (angles + math.pi) % TWO_PI - math.pi


def wrap_error(angles: Floats) -> Floats:
    """Of an angle brought into [-pi, pi]."""
    turns = np.rint(abs(angles) / TWO_PI)
    return turns * TURN + EPS * math.pi * (turns > 0)


@dataclasses.dataclass
class Case:
    """One game: how states and actions are drawn, how Gymnasium steps, how far rounding reaches.

    Attributes:
        bounds: (states, actions, states after) -> bound of the states' errors, bound of the rewards' errors.
        margins: (states after, their bounds) -> how far the decision to end is from being another.
        player: (states, rng) -> actions that reach the end of an episode.
        angles: which numbers of the state are angles.
    """

    ours: type[EnvDef]
    theirs: Callable[[], Any]
    fields: tuple[str, ...]
    draw: Callable[[np.random.Generator, int], Floats]
    bounds: Callable[[Any, Floats, Floats, Floats], tuple[Floats, Floats]]
    margins: Callable[[Any, Floats, Floats], Floats]
    player: Callable[[Floats, np.random.Generator], NDArray[Any]]
    angles: tuple[int, ...] = ()

    @property
    def continuous(self) -> bool:
        return isinstance(self.ours().action_space(self.ours.Config(), "agent").sample(), np.ndarray)

    def difference(self, a: Floats, b: Floats) -> Floats:
        out = np.asarray(a, float) - b
        for k in self.angles:
            out[..., k] = wrapped(out[..., k])
        return out

    def step(self, env: Any, states: Floats, actions: NDArray[Any]) -> Outcome:
        """Gymnasium's step from each state."""
        rows = []
        for state, action in zip(states, actions, strict=True):
            env.state = np.array(state, np.float64)
            _, reward, terminated, _, _ = env.step(np.array([action], np.float32) if self.continuous else int(action))
            after = np.array(env.state, float)
            observation = (
                env._get_obs() if hasattr(env, "_get_obs") else env._get_ob() if hasattr(env, "_get_ob") else after
            )
            rows.append((after, observation, float(reward), bool(terminated)))
        after, observation, rewards, terminations = zip(*rows, strict=True)
        return np.stack(after), np.stack(observation), np.array(rewards), np.array(terminations)


def compare(case: Case, env: Any, states: Floats, actions: NDArray[Any], ours: Outcome) -> tuple[Outcome, Floats]:
    """Ours after one step from `states` against Gymnasium's, within the bounds; returns theirs and the bounds."""
    theirs = case.step(env, states, actions)
    bound, reward_bound = case.bounds(env, states, np.asarray(actions, float), theirs[0])
    wrong = abs(case.difference(ours[0], theirs[0])) > bound
    assert not wrong.any(), (states[wrong.any(1)][0], ours[0][wrong.any(1)][0], theirs[0][wrong.any(1)][0])
    # An observation is a number of the state, rounded, or the cosine or sine of one, whose error is no larger.
    assert (abs(ours[1] - theirs[1]) <= bound.max(1, keepdims=True) + 6 * EPS * np.maximum(1, abs(theirs[1]))).all()
    clear = case.margins(env, theirs[0], bound) > 0
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(ours[3][clear], theirs[3][clear])
    assert (abs(ours[2] - theirs[2])[clear] <= reward_bound[clear]).all()
    return theirs, bound


# ---- Pendulum ----


def pendulum_states(rng: np.random.Generator, count: int) -> Floats:
    theta = rng.uniform(-math.pi, math.pi, count) * rng.choice([0.01, 1, 1, 8], count)
    return np.stack([theta, rng.uniform(-8, 8, count) * rng.choice([0.05, 1], count)], 1)


def pendulum_bounds(env: Any, states: Floats, actions: Floats, after: Floats) -> tuple[Floats, Floats]:
    theta, speed = states.T
    wrapping = wrap_error(theta)
    gravity, motor = 1.5 * env.g / env.l, 3 / (env.m * env.l**2) * abs(actions)
    acceleration = 8 * EPS * (gravity * abs(np.sin(theta)) + motor) + gravity * wrapping
    faster = env.dt * acceleration + 3 * EPS * (abs(speed) + env.dt * (gravity + motor))
    place = wrapped(theta) + env.dt * after[:, 1]
    further = wrapping + env.dt * faster + 3 * EPS * (math.pi + env.dt * abs(after[:, 1])) + wrap_error(place)
    near = abs(wrapped(theta))
    cost = 2 * near * wrapping + 6 * EPS * (near**2 + 0.1 * speed**2 + 0.001 * actions**2)
    return np.stack([further, faster], 1), cost


def swing_up(states: Floats, rng: np.random.Generator) -> NDArray[Any]:
    return np.clip(2 * np.sign(states[:, 1]) * rng.uniform(-0.3, 1, len(states)), -2, 2)


PENDULUM = Case(
    Pendulum, PendulumEnv, ("theta", "theta_dot"), pendulum_states, pendulum_bounds,
    lambda env, after, bound: np.ones(len(after)), swing_up, (0,),
)  # fmt: skip


# ---- the mountain cars ----


def car_states(rng: np.random.Generator, count: int) -> Floats:
    low, high = rng.choice([(-1.2, 0.6), (-1.2, -1.1), (0.4, 0.55)], count).T
    return np.stack([rng.uniform(low, high), rng.uniform(-0.07, 0.07, count) * rng.choice([0.05, 1], count)], 1)


def car_bounds(env: Any, states: Floats, actions: Floats, after: Floats) -> tuple[Floats, Floats]:
    position, velocity = states.T
    continuous = isinstance(env, Continuous_MountainCarEnv)
    push = abs(env.power * actions if continuous else env.force * (actions - 1))
    # The angle 3x is wrong by 2 eps. Gymnasium's continuous car rounds its new state: one eps more.
    faster = 4 * EPS * (abs(velocity) + push + 0.0025) + 0.0025 * (4 + 6 * abs(position)) * EPS
    further = faster + 3 * EPS * (abs(position) + 0.07)
    return np.stack([further, faster], 1), 4 * EPS * (np.full(len(states), 1.0) + 100.0 * continuous)


def car_margins(env: Any, after: Floats, bound: Floats) -> Floats:
    """Where the velocity at the wall is in doubt (0 or not), so is all; a rule on velocities of 0 is exact."""
    goal = abs(after[:, 0] - env.goal_position) - bound[:, 0] - EPS
    slow = np.where(after[:, 1] == 0, 1, abs(after[:, 1] - env.goal_velocity) - bound[:, 1] - EPS)
    far = abs(after[:, 0] - env.goal_position) > 0.1
    return np.where(far, 1, np.minimum(goal, slow))


def with_the_motion(states: Floats, rng: np.random.Generator) -> NDArray[Any]:
    drive = np.where(states[:, 1] >= 0, 2, 0)
    return np.where(rng.random(len(states)) < 0.8, drive, rng.integers(0, 3, len(states)))


CAR = Case(
    MountainCar, MountainCarEnv, ("position", "velocity"), car_states, car_bounds, car_margins, with_the_motion
)  # fmt: skip
CONTINUOUS_CAR = Case(
    MountainCarContinuous, Continuous_MountainCarEnv, ("position", "velocity"), car_states, car_bounds, car_margins,
    lambda states, rng: np.sign(states[:, 1]) * rng.uniform(0.2, 1, len(states)),
)  # fmt: skip


# ---- Acrobot ----


def acrobot_states(rng: np.random.Generator, count: int) -> Floats:
    high = np.array([math.pi, math.pi, 4 * math.pi, 9 * math.pi])
    return rng.uniform(-1, 1, (count, 4)) * high * rng.choice([0.03, 0.3, 1.0], (count, 1))


def acrobot_acceleration_errors(env: Any, y: Floats, torque: Floats) -> Floats:
    """What rounding makes of the two accelerations: the sizes of their terms, and how well the quotient's divisor is
    known, which is a difference of two numbers of about its own size."""
    m1, m2, l1, moi = env.LINK_MASS_1, env.LINK_MASS_2, env.LINK_LENGTH_1, env.LINK_MOI
    lc1, lc2 = env.LINK_COM_POS_1, env.LINK_COM_POS_2
    sin1, cos1, sin2, cos2 = abs(np.sin(y[0])), abs(np.cos(y[0])), abs(np.sin(y[1])), np.cos(y[1])
    d1 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * cos2) + 2 * moi
    d2 = m2 * (lc2**2 + l1 * lc2 * cos2) + moi
    coupling = m2 * l1 * lc2 * sin2
    phi2 = m2 * lc2 * 9.8 * (sin1 * abs(cos2) + cos1 * sin2)
    phi1 = (m1 * lc1 + m2 * l1) * 9.8 * sin1 + phi2 + coupling * abs(y[3]) * (abs(y[3]) + 2 * abs(y[2]))
    terms = abs(torque) + d2 / d1 * phi1 + phi2 + coupling * y[2] ** 2
    divisor = m2 * lc2**2 + moi - d2**2 / d1
    cancelled = (m2 * lc2**2 + moi + d2**2 / d1) / divisor
    second = (12 + 10 * cancelled) * EPS * terms / divisor
    first = (d2 * second + 12 * EPS * (d2 * terms / divisor + phi1)) / d1
    return np.stack([0 * first, 0 * first, first, second])


def acrobot_bounds(env: Any, states: Floats, actions: Floats, after: Floats) -> tuple[Floats, Floats]:
    """Errors of the four stages' arguments and results, times the derivatives of the step with respect to them."""
    torque, h = env.AVAIL_TORQUE[2] * (actions - 1), 1e-6
    ways = np.array([0, env.dt / 2, env.dt / 2, env.dt])

    def integrate(stage: int = -1, argument: int = -1, result: int = -1) -> tuple[Floats, list[Floats], list[Floats]]:
        """Runge-Kutta with Gymnasium's derivative, something in it being h larger."""
        y, places, slopes = states.T, [], [np.zeros((4, len(states)))]
        for k in range(4):
            place = y + ways[k] * slopes[-1]
            if k == stage and argument >= 0:
                place[argument] += h
            slope = np.array(env._dsdt([*place, torque])[:4])
            if k == stage and result >= 0:
                slope[result] += h
            places.append(place)
            slopes.append(slope)
        return y + env.dt / 6 * (slopes[1] + 2 * slopes[2] + 2 * slopes[3] + slopes[4]), places, slopes

    end, places, slopes = integrate()
    total = env.dt / 6 * sum(w * abs(s) for w, s in zip((1, 2, 2, 1), slopes[1:], strict=True))
    bound = 3 * EPS * abs(end) + 6 * EPS * total
    for k in range(4):
        placed = EPS * (abs(places[k]) + 3 * ways[k] * abs(slopes[k]))
        sloped = acrobot_acceleration_errors(env, places[k], torque)
        for m in range(4):
            bound += abs(integrate(k, argument=m)[0] - end) / h * placed[m]
            bound += abs(integrate(k, result=m)[0] - end) / h * sloped[m]
    bound[:2] += wrap_error(end[:2])
    return 1.5 * bound.T, np.zeros(len(states))


def acrobot_margins(env: Any, after: Floats, bound: Floats) -> Floats:
    height = -np.cos(after[:, 0]) - np.cos(after[:, 0] + after[:, 1])
    return abs(height - 1) - 2 * bound[:, 0] - bound[:, 1] - 10 * EPS


ACROBOT = Case(
    Acrobot, AcrobotEnv, ("theta1", "theta2", "dtheta1", "dtheta2"), acrobot_states, acrobot_bounds, acrobot_margins,
    lambda states, rng: np.where(rng.random(len(states)) < 0.8, 1 - np.sign(states[:, 2]), 1), (0, 1),
)  # fmt: skip


# ---- one step ----

CASES = {
    "Pendulum": (PENDULUM, {}, {}),
    "Pendulum, changed": (PENDULUM, {"g": 3.7, "m": 0.7, "l": 1.3, "dt": 0.02, "max_speed": 6.0}, {}),
    "MountainCar": (CAR, {}, {}),
    "MountainCar, fast goal": (CAR, {"goal_velocity": 0.03, "force": 0.002, "gravity": 0.0024}, {}),
    "MountainCarContinuous": (CONTINUOUS_CAR, {}, {}),
    "MountainCarContinuous, fast goal": (CONTINUOUS_CAR, {"goal_velocity": 0.03, "power": 0.002}, {}),
    "Acrobot": (ACROBOT, {}, {}),
    "Acrobot, nips": (ACROBOT, {"book_or_nips": "nips"}, {}),
    "Acrobot, changed": (
        ACROBOT,
        {"avail_torque": 2.0, "link_length_1": 1.2, "link_mass_1": 0.8, "link_mass_2": 1.3, "link_com_pos_1": 0.6,
         "link_com_pos_2": 0.4, "link_moi": 0.9, "dt": 0.1},
        {"avail_torque": ("AVAIL_TORQUE", [-2.0, 0.0, 2.0]), "dt": ("dt", 0.1)},
    ),
}  # fmt: skip


def reference(case: Case, changed: dict[str, Any], renamed: dict[str, tuple[str, Any]]) -> Any:
    env = case.theirs()
    env.reset(seed=0)
    for name, value in changed.items():
        setattr(env, *renamed.get(name, (name.upper() if name.startswith("link") else name, value)))
    return env


def state_of(sim: Simulator, case: Case) -> Floats:
    return np.stack([sim.arrays[name] for name in case.fields], 1).astype(float)


def outcome(sim: Simulator, case: Case) -> Outcome:
    arrays = sim.arrays
    rewards, terminated = arrays["reward"][:, 0].astype(float), arrays["terminated"][:, 0].astype(bool)
    return state_of(sim, case), arrays["observation"][:, 0].astype(float), rewards, terminated


@pytest.mark.parametrize("name", CASES)
def test_one_step_from_wide_states(name: str) -> None:
    case, changed, renamed = CASES[name]
    count = 3_000 if case is ACROBOT else 8_000
    rng = np.random.default_rng(0)
    sim = Simulator(case.ours, count, device="cpu", autoreset_mode="disabled", max_episode_steps=None, **changed)
    sim.reset(seed=0)
    states = case.draw(rng, count).astype(np.float32)
    sim.set_state({field: states[:, k] for k, field in enumerate(case.fields)})
    sim.random_actions()
    actions = sim.arrays["action"][:, 0, 0].copy()
    sim.step()
    theirs, _ = compare(case, reference(case, changed, renamed), states.astype(float), actions, outcome(sim, case))
    if case is not PENDULUM:
        assert 0.005 < theirs[3].mean() < 0.7
    if case in (CAR, CONTINUOUS_CAR):
        walls = theirs[0][:, 0] <= -1.2
        assert walls.mean() > 0.02
        assert (theirs[0][walls, 1] == 0).any()


def test_noise_on_the_torque() -> None:
    """Gymnasium gets our draw."""
    count, noise = 500, 0.4
    sim = Simulator(
        Acrobot, count, device="cpu", autoreset_mode="disabled", max_episode_steps=None, torque_noise_max=noise
    )
    sim.reset(seed=3)
    states = acrobot_states(np.random.default_rng(0), count).astype(np.float32)
    sim.set_state({field: states[:, k] for k, field in enumerate(ACROBOT.fields)})
    sim.random_actions()
    actions, drawn = sim.arrays["action"][:, 0, 0].copy(), units(sim, 0)
    assert abs(drawn.mean() - 0.5) < 0.1
    sim.step()
    for k in range(count):
        env = AcrobotEnv()
        env.AVAIL_TORQUE = [t + noise * (2 * drawn[k] - 1) for t in (-1.0, 0.0, 1.0)]
        env.state = states[k].astype(float)
        env.step(int(actions[k]))
        bound, _ = acrobot_bounds(
            env, states[k : k + 1].astype(float), np.array([1 + env.AVAIL_TORQUE[actions[k]] / env.AVAIL_TORQUE[2]]),
            np.array([env.state]),
        )  # fmt: skip
        ours = np.array([sim.arrays[name][k] for name in ACROBOT.fields])
        assert (abs(ACROBOT.difference(ours, env.state)) <= 2 * bound[0] + 4 * EPS).all()


# ---- whole episodes ----


class Tracker:
    """The error after t steps that float32 explains: the sum over s of |J_t ... J_(s+1)| b_s, doubled."""

    def __init__(self, count: int, size: int) -> None:
        self.moved = np.zeros((count, 0, size, size))
        self.made = np.zeros((count, 0, size))

    def add(self, jacobians: Floats, bounds: Floats) -> Floats:
        count, size = bounds.shape
        moved = np.einsum("nij,nsjk->nsik", jacobians, self.moved)
        self.moved = np.concatenate([moved, np.broadcast_to(np.eye(size), (count, 1, size, size))], 1)
        self.made = np.concatenate([self.made, bounds[:, None]], 1)
        return 2 * np.einsum("nsij,nsj->ni", abs(self.moved), self.made)


def jacobian(case: Case, env: Any, states: Floats, actions: NDArray[Any]) -> Floats:
    columns = []
    for k in range(states.shape[1]):
        h = np.eye(states.shape[1])[k] * 1e-5
        ahead, back = case.step(env, states + h, actions)[0], case.step(env, states - h, actions)[0]
        columns.append(case.difference(ahead, back) / 2e-5)
    return np.stack(columns, 2)


@pytest.mark.parametrize(
    ("name", "count", "followed"),
    [("Pendulum", 150, 20), ("MountainCar", 300, 30), ("MountainCarContinuous", 100, 15), ("Acrobot", 40, 10)],
)
def test_whole_episodes(name: str, count: int, followed: int) -> None:
    """Every step of `count` episodes within the bounds of a step; `followed` of them by a Gymnasium env that is never
    put back into our state, within the errors that float32 explains."""
    case = CASES[name][0]
    env = case.theirs()
    env.reset(seed=0)
    limit = case.ours.max_episode_steps
    assert limit is not None
    sim = Simulator(case.ours, count, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=7)
    rng = np.random.default_rng(1)
    alone = state_of(sim, case)[:followed]
    tracker, follows = Tracker(followed, len(case.fields)), np.ones(followed, bool)
    running, ended, compared = np.ones(count, bool), 0, 0
    for step in range(1, limit + 1):
        before = state_of(sim, case)
        actions = case.player(before, rng).astype(np.float32 if case.continuous else np.int32)
        sim.arrays["action"][:, 0, 0] = actions
        sim.step()
        after = outcome(sim, case)
        _, bound = compare(
            case,
            env,
            before[running],
            actions[running],
            tuple(part[running] for part in after),  # type: ignore[arg-type]
        )
        all_bounds = np.zeros((count, len(case.fields)))
        all_bounds[running] = bound

        follows &= running[:followed]
        jacobians = jacobian(case, env, alone, actions[:followed])
        alone = case.step(env, alone, actions[:followed])[0]
        errors = tracker.add(jacobians, all_bounds[:followed])
        follows &= errors.max(1) < 0.1
        assert (abs(case.difference(after[0][:followed], alone)) <= errors)[follows].all()
        compared += int(follows.sum())

        assert (sim.arrays["truncated"][running, 0] == (step == limit)).all()
        ended += int(after[3][running].sum())
        running &= ~after[3]
        if not running.any():
            break
    assert compared > 20 * followed
    if case is PENDULUM:
        assert compared == followed * limit
    else:
        assert ended > 0.9 * count


@pytest.mark.parametrize("case", [PENDULUM, CAR, CONTINUOUS_CAR, ACROBOT], ids=lambda case: case.ours.id)
def test_starts(case: Case) -> None:
    """Uniform between the bounds, as Gymnasium's."""
    sim = Simulator(case.ours, 20_000, device="cpu")
    sim.reset(seed=0)
    ours = state_of(sim, case)
    env = case.theirs()
    theirs = []
    for seed in range(300):
        env.reset(seed=seed)
        theirs.append(np.array(env.state, float))
    # One of 300 draws lies within 5 % of half the range from each end, but for a chance of 0.975^300 = 5e-4; the seeds
    # are fixed. The mean of 20,000 has a deviation of 0.4 % of half the range; 2 % is five of these.
    high = np.abs(np.array(theirs) - np.mean(theirs, 0)).max(0)
    np.testing.assert_allclose(ours.min(0), np.min(theirs, 0), atol=0.05 * high.max() + 1e-9)
    np.testing.assert_allclose(ours.max(0), np.max(theirs, 0), atol=0.05 * high.max() + 1e-9)
    np.testing.assert_allclose(ours.mean(0), (ours.min(0) + ours.max(0)) / 2, atol=0.02 * high.max() + 1e-9)
