"""What the page is told of the games, and of one that runs, as JSON."""

from __future__ import annotations

import dataclasses
import math
import typing
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from gpuzoo.core.values import config_types
from gpuzoo.tools import listing
from gpuzoo.tools.live import Live

_MOST_SEEN = 8192  #: numbers of an observation that a page shows


def games() -> list[dict[str, Any]]:
    """All games, for the list of the page."""
    kept = ("id", "action", "observation", "description")
    return [{key: game[key] for key in kept} | {"who": listing.agents_text(game["agents"])} for game in listing.games()]


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _parameters(live: Live) -> list[dict[str, Any]]:
    """The parameters with their ranges. Those that are ``live`` change while the game runs; others make it anew."""
    cfg, types, out = live.simulator.cfg, config_types(live.env.Config), []
    for field in dataclasses.fields(live.env.Config):
        kind, value = types[field.name], getattr(cfg, field.name)
        about = {"name": field.name, "doc": field.metadata.get("doc", ""), "default": field.default}
        choice = typing.get_origin(kind) is Literal
        about["kind"] = "choice" if choice else kind.__name__
        about["choices"] = list(typing.get_args(kind)) if choice else []
        about["live"] = kind is float
        if kind is float:
            found = live.simulator.param(field.name)
            value = float(np.asarray(found).flat[0])
        about |= {
            "value": value,
            "low": _finite(field.metadata.get("low")),
            "high": _finite(field.metadata.get("high")),
        }
        out.append(about)
    return out


def _space(space: spaces.Space[Any]) -> dict[str, Any]:
    shape = list(space.shape or ())
    about: dict[str, Any] = {"text": listing.brief(space), "shape": shape, "low": None, "high": None}
    if isinstance(space, spaces.Box):
        least, most = float(space.low.min()), float(space.high.max())
        about |= {"low": _finite(least), "high": _finite(most)}
    return about


def game(live: Live) -> dict[str, Any]:
    """All about a game that does not change from step to step."""
    env, cfg, lay = live.env, live.simulator.cfg, live.layout
    groups = {
        group: {
            "agents": [name for name in live.agents if live.group(name) == group],
            "player": live.players[group],
            "observation": _space(lay.observation_spaces[group]) | {"names": dict(env.observation_names(cfg, group))},
            "controls": [dataclasses.asdict(part) for part in live.controls[group]],
        }
        for group in lay.groups
    }
    return {
        "kind": "game", "id": env.id, "about": listing.first_sentence(type(env).__doc__), "groups": groups,
        "turns": env.turn is not None, "parameters": _parameters(live), "players": live.kinds(),
        "fps": env.render_fps, "envs": live.num_envs, "limit": live.simulator.max_episode_steps,
        "links": dict(env.links),
    }  # fmt: skip


def _numbers(array: Any) -> list[Any]:
    """Numbers as JSON has them: those that are not finite as text, floats with the digits that float32 has."""
    flat = np.asarray(array).ravel()[:_MOST_SEEN]
    if flat.dtype.kind != "f":
        return [int(x) for x in flat]
    return [float(f"{x:.6g}") if math.isfinite(x) else str(x) for x in flat.tolist()]


def state(live: Live, env: int, agent: str) -> dict[str, Any]:
    """What changes from step to step: of one env all agents, and what one of them sees."""
    group = live.group(agent)
    index = live.agents.index(agent)
    seen, mask = live.seen(group)
    member = index - live.layout.first[group]
    sizes = {g: int(np.prod(s.shape or (1,))) for g, s in live.layout.action_spaces.items()}
    actions = live.array("action", env)
    mover = None if live.movers is None else int(live.movers[env])
    return {
        "kind": "state", "env": env, "agent": agent, "step": int(live.array("elapsed_steps", env)),
        "seed": int(live.array("seed", env)), "episode": int(live.array("episode", env)),
        "over": bool(live.array("waiting", env)), "my_turn": live.my_turn,
        "rewards": _numbers(live.rewards[env]), "returns": _numbers(live.array("episode_return", env)),
        "alive": [bool(x) for x in live.array("alive", env)],
        "actions": [
            _numbers(actions[k, : sizes[live.group(a)]]) if mover in (None, k) else None
            for k, a in enumerate(live.agents)
        ],
        "turn": int(live.array(live.env.turn, env)) if live.env.turn else None,
        "observation": _numbers(seen[env, member]),
        "mask": None if mask is None else _numbers(mask[env, member]), "buttons": live.unplaced(),
    }  # fmt: skip
