"""A whole training run as one program of JAX learns."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import optax
import pytest

import gpuzoo.jax

GAMMA = 0.99


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=False)
    return [(jax.random.normal(k, (m, n)) / jnp.sqrt(m), jnp.zeros(n)) for k, m, n in pairs]


def network(layers, x):
    for w, b in layers[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def train(env, updates, steps, key):
    """Advantage actor-critic."""
    key, policy_key, value_key = jax.random.split(key, 3)
    weights = init(policy_key, (4, 64, 2)), init(value_key, (4, 64, 1))
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(optax.linear_schedule(3e-3, 0.0, updates)))
    obs, state = env.reset(key)

    def act(carry, key):
        weights, obs, state = carry
        action = jax.random.categorical(key, network(weights[0], obs))
        after, state, reward, terminated, truncated, info = env.step(None, state, action)
        value = network(weights[1], info["final_observation"])[..., 0]
        reward += GAMMA * value * (truncated & ~terminated)  # the end of time is not the end of the game
        return (weights, after, state), (obs, action, reward, info["done"], state["final_length"].mean())

    def update(carry, key):
        weights, memory, obs, state = carry
        (_, after, state), seen = jax.lax.scan(act, (weights, obs, state), jax.random.split(key, steps))
        seen_obs, actions, rewards, done, lengths = seen

        def back(later, now):
            reward, over = now
            later = reward + GAMMA * ~over * later
            return later, later

        last = network(weights[1], after)[..., 0]
        returns = jax.lax.scan(back, last, (rewards, done), reverse=True)[1]

        def loss(weights):
            values = network(weights[1], seen_obs)[..., 0]
            log = jax.nn.log_softmax(network(weights[0], seen_obs))
            chosen = jnp.take_along_axis(log, actions[..., None], -1)[..., 0]
            advantages = jax.lax.stop_gradient(returns - values)
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            entropy = -(jnp.exp(log) * log).sum(-1).mean()
            return -(chosen * advantages).mean() + 0.5 * ((values - returns) ** 2).mean() - 0.01 * entropy

        change, memory = optimizer.update(jax.grad(loss)(weights), memory)
        return (optax.apply_updates(weights, change), memory, after, state), lengths[-1]

    carry = (weights, optimizer.init(weights), obs, state)
    return jax.lax.scan(update, carry, jax.random.split(key, updates))[1]


@pytest.mark.rotates
def test_actor_critic_balances_the_pole():
    env, _ = gpuzoo.jax.make("CartPole-v1", 256)
    lengths = train(env, 200, 32, jax.random.key(0))
    assert lengths[5] < 40
    assert lengths[-20:].mean() > 200
