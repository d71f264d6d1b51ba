"""CartPole against Gymnasium's, from states drawn over the whole state space and over whole episodes.

Gymnasium computes in float64 and returns float32. One step of ours in float32 differs by rounding alone. With
``eps = 2**-24`` (half a unit in the last place, relative), sine and cosine are wrong by at most 2 ulp = 4 eps, and each
operation by eps. The accelerations are chains of about ten operations on terms of the size of ``force / mass`` and
``polemass * theta_dot**2``, and the division by ``4/3 - polemass cos**2 / total`` (at least 1.2) makes nothing larger.
So their error is at most 16 eps of the sum of the terms' sizes, which `acceleration_size` computes. ``tau`` = 0.02
scales it down before it enters the velocities. The positions are one product and one sum: 2 eps of their terms.
"""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.classic_control.cartpole import CartPole

pytestmark = pytest.mark.rotates

EPS = 2.0**-24
FIELDS = ("x", "x_dot", "theta", "theta_dot")
STATES = 20_000


def wide_states(rng: np.random.Generator, count: int) -> np.ndarray:
    """Float32 states in which an episode can be: near reset, near the thresholds, and with high speeds."""
    high = np.array([2.4, 8.0, 0.20943951, 12.0])
    scale = rng.choice([0.01, 0.3, 1.0], (count, 1))
    return (rng.uniform(-1, 1, (count, 4)) * high * scale).astype(np.float32)


def acceleration_size(states: np.ndarray, env: CartPoleEnv) -> np.ndarray:
    """The sum of the absolute terms of the two accelerations."""
    theta, theta_dot = states[:, 2].astype(float), states[:, 3].astype(float)
    temp = (env.force_mag + env.polemass_length * theta_dot**2 * abs(np.sin(theta))) / env.total_mass
    angular = (env.gravity * abs(np.sin(theta)) + temp) / (env.length * 1.2)
    return temp + angular


def gymnasium_step(env: CartPoleEnv, state: np.ndarray, action: int) -> tuple[np.ndarray, float, bool]:
    env.reset(seed=0)
    env.state = state.astype(np.float64)
    _, reward, terminated, _, _ = env.step(action)
    return np.array(env.state), float(reward), bool(terminated)


@pytest.mark.parametrize("changed", [{}, {"gravity": 3.7, "masspole": 0.5, "length": 1.5, "force_mag": 20.0}])
def test_one_step_from_wide_states(changed: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    states = wide_states(rng, STATES)
    actions = rng.integers(0, 2, STATES)
    reference = CartPoleEnv()
    for name, value in changed.items():
        setattr(reference, name, value)
    reference.total_mass = reference.masspole + reference.masscart
    reference.polemass_length = reference.masspole * reference.length

    sim = Simulator(CartPole, STATES, device="cpu", autoreset_mode="disabled", max_episode_steps=None, **changed)
    sim.reset(seed=0)
    sim.set_state({name: states[:, k] for k, name in enumerate(FIELDS)})
    sim.arrays["action"][:, 0, 0] = actions
    sim.step()
    ours = np.stack([sim.arrays[name] for name in FIELDS], 1)
    np.testing.assert_array_equal(ours, sim.arrays["observation"][:, 0])

    wanted = [gymnasium_step(reference, s, int(a)) for s, a in zip(states, actions, strict=True)]
    theirs = np.stack([state for state, _, _ in wanted])
    size = acceleration_size(states, reference)[:, None] * reference.tau
    bound = np.empty_like(theirs)
    bound[:, [0, 2]] = 2 * EPS * (abs(states[:, [0, 2]]) + reference.tau * abs(states[:, [1, 3]]))
    bound[:, [1, 3]] = 16 * EPS * size + EPS * abs(theirs[:, [1, 3]])
    wrong = abs(ours - theirs) > bound
    assert not wrong.any(), (states[wrong.any(1)][0], ours[wrong.any(1)][0], theirs[wrong.any(1)][0])

    np.testing.assert_array_equal(sim.arrays["reward"][:, 0], [reward for _, reward, _ in wanted])
    # Thresholds decide on rounded positions: a state within rounding of one may fall to either side.
    margin = np.minimum(
        abs(abs(theirs[:, 0]) - reference.x_threshold) - bound[:, 0] - EPS * 4.8,
        abs(abs(theirs[:, 2]) - reference.theta_threshold_radians) - bound[:, 2] - EPS * 0.42,
    )
    clear = margin > 0
    assert clear.mean() > 0.999
    terminated = np.array([t for _, _, t in wanted])
    np.testing.assert_array_equal(sim.arrays["terminated"][clear, 0], terminated[clear])
    assert 0.05 < terminated.mean() < 0.95


def test_sutton_barto_reward() -> None:
    """The rewards of Gymnasium's single env, step by step in our states, and of its vector env at an autoreset."""
    sim = Simulator(CartPole, 500, device="cpu", max_episode_steps=12, sutton_barto_reward=True)
    reference = CartPoleEnv(sutton_barto_reward=True)
    sim.reset(seed=1)
    seen = set()
    for _ in range(40):
        waiting = sim.arrays["waiting"].copy()
        states = np.stack([sim.arrays[name] for name in FIELDS], 1)
        sim.random_actions()
        sim.step()
        rewards, terminated = sim.arrays["reward"][:, 0], sim.arrays["terminated"][:, 0]
        assert not rewards[waiting].any()
        np.testing.assert_array_equal(rewards, -terminated.astype(np.float32))
        for k in np.flatnonzero(terminated | sim.arrays["truncated"][:, 0])[:5]:
            _, reward, over = gymnasium_step(reference, states[k], int(sim.arrays["action"][k, 0, 0]))
            assert (rewards[k], terminated[k]) == (reward, over)
            seen.add((reward, over))
    assert seen == {(-1.0, True), (0.0, False)}


def test_whole_episodes() -> None:
    """Gymnasium's env, started in our state, goes through our episode: same length, same flags, nearly the same states.

    Errors grow along an episode at most as the linearised pole does, by a factor of exp(t * sqrt(g / l') * tau) with
    sqrt(g / l') = 3.97 (l' = l (4/3 - m / M) = 0.62): 30 steps multiply a rounding error by 11.
    """
    count = 200
    sim = Simulator(CartPole, count, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=7)
    references = [gymnasium.make("CartPole-v1").unwrapped for _ in range(count)]
    for k, env in enumerate(references):
        env.reset(seed=0)
        env.state = np.array([sim.arrays[name][k] for name in FIELDS], np.float64)
    running = np.ones(count, bool)
    steps = 0
    while running.any() and steps < 200:
        sim.random_actions()
        actions = sim.arrays["action"][:, 0, 0].copy()
        sim.step()
        steps += 1
        growth = np.exp(steps * 3.97 * 0.02)
        for k in np.flatnonzero(running):
            observation, reward, terminated, _, _ = references[k].step(int(actions[k]))
            ours = sim.arrays["observation"][k, 0]
            np.testing.assert_allclose(ours, observation, rtol=0, atol=steps * growth * 16 * EPS * 4)
            assert sim.arrays["reward"][k, 0] == reward
            assert bool(sim.arrays["terminated"][k, 0]) == terminated
            running[k] = not terminated
    assert not running.any()
