"""gymnax, in a compiled loop."""

from __future__ import annotations

from typing import Any

from . import About, Game, Peer
from .compiled_loop import scan, scan_cases

ABOUT = About("gymnax", compiled_loop=True)


def pictures() -> Any:
    """As many pictures as gpuzoo draws, in place of MNIST, which gymnax would download."""
    import numpy as np

    rng, n = np.random.default_rng(0), 500
    pictures = rng.integers(-128, 128, (n, 28, 28), np.int8), rng.integers(0, 10, n, np.uint8)
    return pictures, pictures


def peer(game: Game) -> Peer:
    import gymnax
    import jax
    from gymnax.utils import load_mnist

    load_mnist.load_mnist = pictures
    env, parameters = gymnax.make(game["id"], **game["config"])

    def step(key: Any, state: Any) -> Any:
        for_action, for_step = jax.random.split(key)
        action = env.action_space(parameters).sample(for_action)
        observation, state, *rest = env.step(for_step, state, action, parameters)
        return (observation, *rest), state

    return scan_cases(game), scan(step, lambda key: env.reset(key, parameters))
