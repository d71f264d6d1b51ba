"""Finds the games in ``gpuzoo/envs`` and puts them into Gymnasium's and PettingZoo's registries."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import gymnasium

from gpuzoo.core.definition import EnvDef, check_class, unknown

_REGISTRY: dict[str, type[EnvDef]] = {}


def register(env: type[EnvDef]) -> type[EnvDef]:
    """Adds a game: to `gpuzoo.make`, `gymnasium.make_vec` and `pettingzoo.make`. Usable as a class decorator.

    Raises:
        ValueError: the declaration is faulty, or another game has the id already.
    """
    check_class(env())
    if _REGISTRY.get(env.id, env) is not env:
        raise ValueError(f"the id {env.id!r} is taken by {_REGISTRY[env.id].__name__}: choose another name or version.")
    if env.id not in _REGISTRY:
        _REGISTRY[env.id] = env
        _register_gymnasium(env)
        _register_pettingzoo(env)
    return env


def _register_gymnasium(env: type[EnvDef]) -> None:
    gymnasium.register(
        f"gpuzoo/{env.id}",
        entry_point="gpuzoo.interfaces.single:make_single" if env.single() else None,
        vector_entry_point="gpuzoo.interfaces.vector:VectorEnv",
        max_episode_steps=env.max_episode_steps,
        reward_threshold=env.reward_threshold,
        disable_env_checker=True,
        kwargs={"env": env.id},
    )


def _register_pettingzoo(env: type[EnvDef]) -> None:
    if env.single():
        return
    try:
        from pettingzoo import register as pettingzoo_register
    except ImportError:  # before PettingZoo 1.27 there was no registry
        return
    kwargs = {"env": env.id}
    if env.turn is None:
        pettingzoo_register(
            "parallel",
            f"gpuzoo/{env.id}",
            "gpuzoo.interfaces.parallel:parallel_env",
            max_cycles=env.max_episode_steps,
            kwargs=kwargs,
        )
    pettingzoo_register(
        "aec", f"gpuzoo/{env.id}", "gpuzoo.interfaces.aec:aec_env", max_cycles=env.max_episode_steps, kwargs=kwargs
    )


def ids() -> list[str]:
    """Ids of all games."""
    return sorted(_REGISTRY)


def get(env: str | EnvDef | type[EnvDef]) -> EnvDef:
    """The game with an id: ``"CartPole-v1"``, ``"gpuzoo/CartPole-v1"``, or without version for the newest one.

    A declaration, registered or not, stands for itself.

    Raises:
        ValueError: no such game; close matches are named.
    """
    if isinstance(env, EnvDef):
        return env
    if isinstance(env, type) and issubclass(env, EnvDef):
        return env()
    if not isinstance(env, str):
        raise TypeError(f"a game is given by its id or its EnvDef, not by {env!r}.")
    name = env.removeprefix("gpuzoo:").removeprefix("gpuzoo/")
    if name in _REGISTRY:
        return _REGISTRY[name]()
    base = re.sub(r"-v\d+$", "", name)
    versions = sorted(
        (i for i in _REGISTRY if re.sub(r"-v\d+$", "", i) == base), key=lambda i: int(i.rsplit("-v", 1)[1])
    )
    if versions and base == name:
        return _REGISTRY[versions[-1]]()
    if versions:
        raise ValueError(f"there is no version {name!r} of {base}; use {versions[-1]!r}.")
    raise ValueError(unknown("there is no game", name, _REGISTRY))


def _discover() -> Iterator[type[EnvDef]]:
    root = Path(__file__).parent / "envs"
    for rules in sorted(root.glob("*/*.cuh")):
        if not rules.with_suffix(".py").is_file():
            continue  # a family's shared rules
        module = importlib.import_module(f"gpuzoo.envs.{rules.parent.name}.{rules.stem}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, EnvDef) and value.__module__ == module.__name__:
                yield value


for _env in _discover():
    register(_env)
