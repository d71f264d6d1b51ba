"""The bandits against gymnax's, from states drawn at random and over 1,000 whole episodes.

gymnax gets our random draws: its functions of random keys are replaced by ones that return what they get as a key.
Observations and rewards of the Bernoulli bandit are exact, but for the time: a product, a quotient and a sum, each
rounded to float32 in both, in an order that XLA may change. Rewards of the Gaussian bandit are one product and one sum.
"""

from __future__ import annotations

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments.misc import bernoulli_bandit, gaussian_bandit

from gpuzoo import Simulator, get

EPS = 2.0**-24


def simulator(name, n, **options):
    sim = Simulator(get(name), n, device="cpu", **{"autoreset_mode": "disabled", **options})
    sim.reset(seed=5)
    return sim


def theirs_of(name, options):
    env, params = gymnax.make(name.removesuffix("-v0"))
    return env, params.replace(**options)


def states(rng, n):
    return {
        "last_action": rng.integers(0, 2, n).astype(np.int32),
        "last_reward": rng.integers(0, 2, n).astype(np.float32),
        "elapsed_steps": rng.integers(0, 99, n).astype(np.int32),
    }


def same_observations(sim, theirs, size):
    ours, theirs = sim.arrays["observation"][:, 0], np.asarray(theirs)
    assert (ours[:, 1:3] == theirs[:, 1:3]).all()
    assert (abs(ours[:, 0] - theirs[:, 0]) <= 4 * EPS * abs(theirs[:, 0])).all()
    assert (abs(ours[:, 3] - theirs[:, 3]) <= 6 * EPS * size).all()


BERNOULLI = [{}, {"reward_prob": 0.3}, {"normalize_time": False}, {"min_lim": -3.0, "max_lim": 0.5, "t_max": 40}]


@pytest.mark.parametrize("options", BERNOULLI, ids=str)
def test_bernoulli_bandit(options, monkeypatch):
    monkeypatch.setattr(jax.random, "bernoulli", lambda key, p: key < p)
    name, n, rng = "BernoulliBandit-misc-v0", 20_000, np.random.default_rng(0)
    sim = simulator(name, n, **options)
    env, params = theirs_of(name, options)
    p = sim.cfg.reward_prob
    assert (abs(np.unique(sim.arrays["prob"]) - np.sort([p, 1 - p])) <= EPS).all()
    assert abs((sim.arrays["prob"] == np.float32(p)).mean() - 0.5) < 5 * 0.5 / np.sqrt(n)
    values = states(rng, n)
    sim.set_state(values)
    first = sim.arrays["prob"]
    state = bernoulli_bandit.EnvState(
        last_action=jnp.array(values["last_action"]),
        last_reward=jnp.array(values["last_reward"]),
        exp_reward_best=jnp.zeros(n),
        reward_probs=jnp.stack([first, 1 - first], axis=1),
        time=jnp.array(values["elapsed_steps"], jnp.float32),
    )
    size = 100.0 if not sim.cfg.normalize_time else 10.0
    same_observations(sim, jax.vmap(env.get_obs, (0, None))(state, params), size)
    actions = rng.integers(0, 2, n)
    sim.arrays["action"][:, 0, 0] = actions
    sim.step()
    rewards = sim.arrays["reward"][:, 0]
    draws = jnp.where(rewards == 1, 0.0, 1.0)  # a draw of 0 is below every probability, one of 1 is not
    observations, after, theirs, done, _ = jax.vmap(env.step_env, (0, 0, 0, None))(
        draws, state, jnp.array(actions), params
    )
    assert (rewards == np.asarray(theirs)).all()
    assert not np.asarray(done).any()
    assert not sim.arrays["terminated"].any()
    assert (sim.arrays["last_action"] == np.asarray(after.last_action)).all()
    assert (sim.arrays["prob"] == np.asarray(after.reward_probs)[:, 0]).all()
    same_observations(sim, observations, size)
    chance = np.where(actions == 0, first, 1 - first)
    for value in np.unique(chance):
        drawn = rewards[chance == value]
        assert abs(drawn.mean() - value) < 5 * 0.5 / np.sqrt(len(drawn))


GAUSSIAN = [{}, {"mean_mu": 0.5, "sigma_p": 2.0, "sigma_l": 1.0}, {"normalize_time": False, "sigma_l": 0.0}]


@pytest.mark.parametrize("options", GAUSSIAN, ids=str)
def test_gaussian_bandit(options, monkeypatch):
    monkeypatch.setattr(jax.random, "normal", lambda key, shape: key)
    name, n, rng = "GaussianBandit-misc-v0", 20_000, np.random.default_rng(0)
    sim, plain = simulator(name, n, **options), simulator(name, n, mean_mu=0.0, sigma_p=1.0, sigma_l=1.0)
    env, params = theirs_of(name, options)
    draws = plain.arrays["mu"].copy()  # 0 + 1 z: the normal numbers of the reset
    _, state = jax.vmap(env.reset_env, (0, None))(jnp.array(draws), params)
    mu = np.asarray(state.mu)
    assert (abs(sim.arrays["mu"] - mu) <= 2 * EPS * (abs(mu) + sim.cfg.sigma_p * abs(draws))).all()

    values = states(rng, n)
    sim.set_state(values)
    plain.set_state({"elapsed_steps": values["elapsed_steps"], "mu": np.zeros(n, np.float32)})
    state = gaussian_bandit.EnvState(
        last_action=jnp.array(values["last_action"]),
        last_reward=jnp.array(values["last_reward"]),
        mu=jnp.array(sim.arrays["mu"]),
        time=jnp.array(values["elapsed_steps"], jnp.float32),
    )
    size = 100.0 if not sim.cfg.normalize_time else 2.0
    same_observations(sim, jax.vmap(env.get_obs, (0, None))(state, params), size)
    plain.arrays["action"][:, 0, 0] = 1
    plain.step()
    draws = plain.arrays["reward"][:, 0].copy()
    actions = rng.integers(0, 2, n)
    sim.arrays["action"][:, 0, 0] = actions
    sim.step()
    observations, after, rewards, done, _ = jax.vmap(env.step_env, (0, 0, 0, None))(
        jnp.array(draws), state, jnp.array(actions), params
    )
    ours, theirs = sim.arrays["reward"][:, 0], np.asarray(rewards)
    assert (abs(ours - theirs) <= 2 * EPS * (abs(theirs) + sim.cfg.sigma_l * abs(draws))).all()
    assert (ours[actions == 0] == 0).all()
    assert not np.asarray(done).any()
    assert not sim.arrays["terminated"].any()
    assert (sim.arrays["last_action"] == np.asarray(after.last_action)).all()
    assert (sim.arrays["last_reward"] == ours).all()
    ours, theirs = sim.arrays["observation"][:, 0], np.asarray(observations)
    assert (abs(ours[:, 0] - theirs[:, 0]) <= 2 * EPS * (abs(theirs[:, 0]) + sim.cfg.sigma_l * abs(draws))).all()
    assert (ours[:, 1:3] == theirs[:, 1:3]).all()
    assert (abs(ours[:, 3] - theirs[:, 3]) <= 6 * EPS * size).all()


@pytest.mark.parametrize("name", ["BernoulliBandit-misc-v0", "GaussianBandit-misc-v0"])
def test_whole_episodes(name, monkeypatch):
    """1,000 episodes of 100 steps from their beginning: theirs begins with our arms and goes on with our draws."""
    monkeypatch.setattr(jax.random, "bernoulli", lambda key, p: key < p)
    monkeypatch.setattr(jax.random, "normal", lambda key, shape: key)
    n, gaussian = 1000, name.startswith("Gaussian")
    sim = simulator(name, n, **({"sigma_l": 0.25} if gaussian else {}))
    env, params = theirs_of(name, {"sigma_l": 0.25} if gaussian else {})
    if gaussian:
        z = (sim.arrays["mu"].astype(float) - params.mean_mu) / params.sigma_p
        begin, state = jax.vmap(env.reset_env, (0, None))(jnp.array(z, jnp.float32), params)
        state = state.replace(mu=jnp.array(sim.arrays["mu"]))
    else:
        begin, state = jax.vmap(env.reset_env, (0, None))(jax.random.split(jax.random.key(0), n), params)
        first = sim.arrays["prob"]
        state = state.replace(reward_probs=jnp.stack([first, 1 - first], axis=1))
    assert (sim.arrays["observation"][:, 0] == np.asarray(begin)).all()
    step = jax.jit(jax.vmap(env.step_env, (0, 0, 0, None)))
    rng = np.random.default_rng(0)
    for t in range(1, 101):
        actions = rng.integers(0, 2, n)
        sim.arrays["action"][:, 0, 0] = actions
        sim.step()
        rewards = sim.arrays["reward"][:, 0]
        # A quarter is a power of two, so the draw comes back but for the rounding of one sum.
        normal = (rewards.astype(float) - sim.arrays["mu"]) * 4 if gaussian else None
        draws = np.where(rewards == 1, 0.0, 1.0) if normal is None else normal
        observations, state, theirs, _, _ = step(jnp.array(draws, jnp.float32), state, jnp.array(actions), params)
        assert (abs(rewards - np.asarray(theirs)) <= 4 * EPS * (1 + abs(rewards))).all()
        ours, theirs = sim.arrays["observation"][:, 0], np.asarray(observations)
        assert (ours[:, 1:3] == theirs[:, 1:3]).all()
        assert (abs(ours - theirs) <= 6 * EPS * (1 + abs(ours))).all()
        over = np.asarray(jax.vmap(env.is_truncated, (0, None))(state, params))
        assert (sim.arrays["truncated"][:, 0] == over).all()
        assert over.all() == over.any() == (t == 100)
