"""JaxMARL, in a compiled loop. Legal moves at random, where it says which are."""

from __future__ import annotations

from typing import Any

from . import About, Game, Peer
from .compiled_loop import scan, scan_cases

ABOUT = About("JaxMARL", compiled_loop=True)


def peer(game: Game) -> Peer:
    import jax
    import jaxmarl
    from jaxmarl.environments.smax import map_name_to_scenario

    config = dict(game["config"])
    if "scenario" in config:  # of SMAX, by its name
        config["scenario"] = map_name_to_scenario(config["scenario"])
    env = jaxmarl.make(game["id"], **config)

    def step(key: Any, state: Any) -> Any:
        *for_actions, for_step = jax.random.split(key, len(env.agents) + 1)
        if hasattr(env, "get_legal_moves"):
            legal = env.get_legal_moves(state)
            draw = lambda a, k: jax.random.categorical(k, jax.numpy.log(legal[a]))  # noqa: E731
        else:
            draw = lambda a, k: env.action_space(a).sample(k)  # noqa: E731
        actions = {a: draw(a, k) for a, k in zip(env.agents, for_actions, strict=True)}
        observations, state, *rest = env.step(for_step, state, actions)
        return (observations, *rest), state

    return scan_cases(game), scan(step, env.reset)
