"""JaxMARL's SMAX with random numbers that are given: those that our game draws.

A key of a step is then a dictionary of numbers (`key`), which ``jax.random.split`` passes on. A key of a reset is a
`Given`, which has the numbers in the order of the calls; JAX may not compile these. With real keys all is as ever.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from draws import bits, units
from jaxmarl.environments.smax import distributions, heuristic_enemy, heuristic_enemy_smax_env, smax_env

CHASED, ATTACKED, MOVES_OR_SHOOTS, SHOOTS_AGAIN, COOLDOWN = range(5)  # draws of the rules


def key(sim, count, splits):
    """What one step of each env draws.

    Args:
        sim: before its step.
        count: units of an env.
        splits: how often the step splits its key before the world steps.
    """
    ticks = sim.cfg.world_steps_per_env_step
    of_units = lambda draw, kind: np.stack([kind(sim, draw, agent=u) for u in range(count)], 1)  # noqa: E731
    noise = np.stack([of_units(COOLDOWN + k, units) for k in range(ticks)], 1)
    return {
        "chased": jnp.array(of_units(CHASED, bits).astype(np.uint32)),
        "attacked": jnp.array(of_units(ATTACKED, bits).astype(np.uint32)),
        "moves": jnp.array(of_units(MOVES_OR_SHOOTS, units), jnp.float32),
        "again": jnp.array(of_units(SHOOTS_AGAIN, units), jnp.float32),
        "noise": jnp.array(noise, jnp.float32),
        "tick": jnp.full(sim.num_envs, -splits, jnp.int32),
        "unit": jnp.zeros(sim.num_envs, jnp.int32),
        "second": jnp.zeros(sim.num_envs, bool),
    }


class Given:
    """A key that gives these arrays, one to each call; those of ``uniform`` are in [0, 1)."""

    def __init__(self, *values):
        self.values = list(values)

    def next(self, shape):
        value = jnp.array(self.values.pop(0))
        assert value.shape == shape
        return value


def smaller(word, count):
    """``random_int``: the upper half of ``word * count``, for counts below 2**16."""
    high, low = word >> 16, word & 0xFFFF
    return (high * count + (low * count >> 16)) >> 16


class Random:
    """``jax.random`` for keys of both kinds."""

    def __getattr__(self, name):
        return getattr(jax.random, name)

    def split(self, key, num=2):
        if isinstance(key, Given):
            return (key,) * num
        if not isinstance(key, dict):
            return jax.random.split(key, num)
        if num == 2:
            return {**key, "tick": key["tick"] + 1, "second": jnp.array(False)}, {**key, "second": jnp.array(True)}
        each = jax.tree.map(lambda x: jnp.broadcast_to(x, (num, *x.shape)), key)
        return {**each, "unit": key["noise"].shape[-1] - num + jnp.arange(num)}  # all units, or the last ones

    def uniform(self, key, *args, minval=0.0, maxval=1.0, **kwargs):
        if isinstance(key, Given):
            return minval + (maxval - minval) * key.next(kwargs.get("shape", ()))
        if not isinstance(key, dict):
            return jax.random.uniform(key, *args, minval=minval, maxval=maxval, **kwargs)
        return minval + (maxval - minval) * key["noise"][key["tick"], key["unit"]]

    def choice(self, key, a, p):
        if not isinstance(key, dict):
            return jax.random.choice(key, a, p=p)
        word = jnp.where(key["second"], key["attacked"], key["chased"])[key["unit"]]
        rank = smaller(word, (p > 0).sum().astype(jnp.uint32))
        return a[jnp.argmax(jnp.cumsum(p > 0) > rank)]

    def randint(self, key, shape, *args, **kwargs):
        return key.next(shape) if isinstance(key, Given) else jax.random.randint(key, shape, *args, **kwargs)

    def categorical(self, key, logits, axis=-1, shape=None):
        if isinstance(key, Given):
            return key.next(shape)
        if not isinstance(key, dict):
            return jax.random.categorical(key, logits, axis, shape)
        drawn = jnp.where(key["second"], key["again"], key["moves"])
        return jnp.where(drawn < jnp.exp(logits[0]), 0, 1)


class Jax:
    """``jax`` with such a ``random``."""

    random = Random()

    def __getattr__(self, name):
        return getattr(jax, name)


def install():
    """Replaces ``jax`` in JaxMARL's modules of SMAX."""
    for module in (distributions, heuristic_enemy, heuristic_enemy_smax_env, smax_env):
        module.jax = Jax()
