"""Pgx, in a compiled loop. Legal moves at random. Bridge, which has options, is not made by its id there."""

from __future__ import annotations

from typing import Any

from . import About, Game, Peer
from .compiled_loop import scan, scan_cases

ABOUT = About("Pgx", compiled_loop=True)


def peer(game: Game) -> Peer:
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.bridge_bidding import BridgeBidding
    from pgx.experimental import auto_reset

    env = BridgeBidding(**game["config"]) if game["id"] == "bridge_bidding" else pgx.make(game["id"])
    go_on = auto_reset(env.step, env.init)

    def reset(key: Any) -> Any:
        state = env.init(key)
        return state.observation, state

    def step(key: Any, state: Any) -> Any:
        for_action, for_step = jax.random.split(key)
        action = jax.random.categorical(for_action, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
        state = go_on(state, action, for_step)
        return state.observation, state

    return scan_cases(game), scan(step, reset)
