"""Options that several subcommands have, and the words that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gpuzoo.core.definition import EnvDef


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:<index> or auto.")]


def parse_config(env: EnvDef, pairs: list[str]) -> dict[str, Any]:
    """Values of a game's parameters from ``name=value`` words.

    Raises:
        ValueError, TypeError: a faulty word, an unknown parameter, or a value of the wrong type.
    """
    from gpuzoo.core.suggestions import unknown
    from gpuzoo.core.uniform import Uniform
    from gpuzoo.core.values import config_types

    kinds = {**config_types(env.Config), "max_episode_steps": int}
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    out: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--config takes name=value, not {pair!r}.")
        if name not in kinds:
            raise ValueError(unknown(f"{env.id} has no parameter", name, kinds))
        kind = kinds[name]
        try:
            if kind is bool:
                out[name] = words[text.lower()]
            elif kind is float and ":" in text:
                out[name] = Uniform.parse(text)
            else:
                out[name] = kind(text) if kind in (int, float) else text
        except (ValueError, KeyError):
            raise ValueError(f"{env.id}: {name} must be of type {kind.__name__}, not {text!r}.") from None
    return out


def scripted_policy(policy: str) -> dict[str, Any]:
    """The user's own policy by its name ``module:function``; nothing for one that `Live` has.

    Raises:
        ValueError: there is no such policy.
    """
    from gpuzoo.tools import players

    if ":" in policy:
        return {policy: players.imported(policy)}
    if policy not in players.POLICIES:
        raise ValueError(f"there is no policy {policy!r}: use {', '.join(players.POLICIES)}, or module:function.")
    return {}


def dotted(words: list[str]) -> list[str]:
    """``name=value`` words from ``--config.name value`` and ``--config.name=value``.

    Raises:
        ValueError: another option, or one without a value.
    """
    out, left = [], iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if not name.startswith("--config."):
            raise ValueError(f"there is no option {name}; see --help.")
        found = value if equals else next(left, None)
        if found is None:
            raise ValueError(f"{name} needs a value.")
        out.append(f"{name.removeprefix('--config.')}={found}")
    return out
