"""Random play in a compiled loop of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import DRAWN, Case, Game, Work


def scan(step: Callable[..., Any], reset: Callable[..., Any], *, batched: bool = False) -> Callable[[Case], Work]:
    """Steps of a batch under `lax.scan`; with two devices each has half of the batch. All that a step gives is kept, so
    that XLA computes it. `step` and `reset` are of one env, or `batched`."""
    import jax

    if not batched:
        step, reset = jax.vmap(step), jax.vmap(reset)

    def start(case: Case) -> Work:
        _, devices, batch = case
        part = batch // devices

        def begin(key: Any) -> Any:
            keys = jax.random.split(key, part)
            _, state = reset(keys)
            out, after = jax.eval_shape(step, keys, state)
            # of the types that a step gives, strong ones, or else the second call compiles anew
            key_type = jax.dtypes.prng_key
            is_key = jax.tree.map(lambda x: jax.dtypes.issubdtype(x.dtype, key_type), state)
            state = jax.tree.map(lambda x, y, k: x if k else x.astype(y.dtype), state, after, is_key)
            return jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), out), state

        def one(carry: Any, key: Any) -> Any:
            out, state = step(jax.random.split(key, part), carry[1])
            return (out, state), None

        def run(key: Any, carry: Any) -> Any:
            keys = jax.random.split(key, DRAWN + 1)
            return keys[0], jax.lax.scan(one, carry, keys[1:])[0]

        many = jax.pmap if devices > 1 else jax.jit
        key = jax.random.split(jax.random.key(0), devices) if devices > 1 else jax.random.key(0)
        box = [key, many(begin)(key)]
        compiled = many(run)

        def work() -> int:
            box[:] = compiled(*box)
            jax.block_until_ready(box[1])
            return DRAWN * batch

        return work

    return start


def scan_cases(game: Game) -> list[Case]:
    """Batches of a compiled loop, not larger than a game that takes much time or memory says."""
    if game["device"] == "cuda":
        return [["scan", 1, envs] for envs in (32768, 262144)]
    threads, most = game["threads"], game.get("most_envs", 8192)
    cases: list[Case] = [["scan", 1, envs] for envs in sorted({min(1024, most), most})]
    return [*cases, ["scan", threads, most]] if threads > 1 else cases
