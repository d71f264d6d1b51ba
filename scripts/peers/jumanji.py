"""Jumanji, in a compiled loop. Legal moves at random."""

from __future__ import annotations

from typing import Any

from . import About, Game, Peer
from .compiled_loop import scan, scan_cases

ABOUT = About("Jumanji", compiled_loop=True)


def peer(game: Game) -> Peer:
    """Only envs that have ended are reset, one by one, as Jumanji's wrapper does it."""
    import jax
    import jax.numpy as jnp
    import jumanji
    import numpy as np
    from jumanji.wrappers import VmapAutoResetWrapper

    env = VmapAutoResetWrapper(jumanji.make(game["id"], **game["config"]))
    spec = env.action_spec
    sizes = np.asarray(getattr(spec, "num_values", 0))

    def action(key: Any, observation: Any) -> Any:
        if not hasattr(observation, "action_mask") and jnp.issubdtype(spec.dtype, jnp.floating):
            return jax.random.uniform(key, spec.shape, minval=spec.minimum, maxval=spec.maximum)
        if not hasattr(observation, "action_mask"):
            return jax.random.randint(key, sizes.shape, 0, jnp.asarray(sizes))
        chances = jnp.where(observation.action_mask, 0.0, -jnp.inf)
        if sizes.ndim == 0 or chances.shape != tuple(sizes):  # one choice, or some that do not depend on each other
            return jax.random.categorical(key, chances)
        drawn = jax.random.categorical(key, chances.reshape(-1))
        return jnp.stack(jnp.unravel_index(drawn, chances.shape)).astype(jnp.int32)

    def reset(keys: Any) -> Any:
        state, timestep = env.reset(keys)
        return timestep, (state, timestep.observation)

    def step(keys: Any, carry: Any) -> Any:
        state, timestep = env.step(carry[0], jax.vmap(action)(keys, carry[1]))
        return timestep, (state, timestep.observation)

    return scan_cases(game), scan(step, reset, batched=True)
