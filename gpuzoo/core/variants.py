"""Games that differ from another one in their defaults: variants, and games made by an id and parameters."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpuzoo.core.suggestions import unknown
from gpuzoo.core.values import checked, config_types

if TYPE_CHECKING:
    from gpuzoo.core.definition import EnvDef

#: what of a game a variant may change, beside the parameters
VARIED = ("max_episode_steps", "reward_threshold", "reference", "render_fps")


def variant_of(game: type[EnvDef], env_id: str, changes: Mapping[str, Any]) -> type[EnvDef]:
    """A subclass with another id and other defaults, as `EnvDef.variants` declares it."""
    owner = f"{game.__name__}.variants: {env_id}"
    if not hasattr(game, "id"):
        raise TypeError(f"{owner} is a variant of a class without an id: give {game.__name__} one.")
    if env_id == game.id:
        raise ValueError(f"{owner} is the id of {game.__name__} itself: choose another name or version.")
    return configured(game, env_id, changes, owner)


def configured(game: type[EnvDef], env_id: str, changes: Mapping[str, Any], owner: str) -> type[EnvDef]:
    """A subclass with an id and with other defaults.

    Args:
        game: the game.
        env_id: of the subclass.
        changes: parameters, and what else may differ (`VARIED`), by name.
        owner: what messages call it.

    Raises:
        TypeError, ValueError: no such parameter, or a value that it cannot have.
    """
    name = re.sub(r"\W", "_", env_id)
    kinds, fields = config_types(game.Config), {f.name: f for f in dataclasses.fields(game.Config)}
    varied = {key: value for key, value in changes.items() if key in VARIED}
    defaults = []
    for key in changes.keys() - varied.keys():
        if key not in fields:
            raise TypeError(unknown(f"{owner} has no parameter", key, [*fields, *VARIED]))
        value = checked(owner, fields[key], kinds[key], changes[key])
        defaults.append((key, kinds[key], dataclasses.field(default=value, metadata=fields[key].metadata)))
    config = dataclasses.make_dataclass("Config", defaults, bases=(game.Config,), frozen=True)
    place = {"__module__": game.__module__, "__qualname__": f"{game.__qualname__}.{name}"}
    for key, value in place.items():
        setattr(config, key, value + (".Config" if key == "__qualname__" else ""))
    config.__doc__ = game.Config.__doc__
    differs = ", ".join(f"`{key}={value!r}`" for key, value in changes.items()) or "nothing changed"
    about = f"{inspect.cleandoc(game.__doc__ or '')}\n\n**This id.** {game.id} with {differs}."
    return type(name, (game,), {**place, **varied, "id": env_id, "Config": config, "benchmarks": {}, "__doc__": about})
