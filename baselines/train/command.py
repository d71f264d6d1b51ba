"""Command lines of training and playing, read without torch, so that a mistake is told at once."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.uniform import Uniform
from gpuzoo.core.values import config_types

from .args import Args


def pairs(text: str) -> dict[str, str]:
    """``a=x,b=y`` as a dictionary."""
    if not all("=" in item for item in text.split(",")):
        raise argparse.ArgumentTypeError(f"want name=value,name=value, not {text!r}")
    return dict(item.split("=", 1) for item in text.split(","))


def shares(text: str) -> dict[str, float]:
    """``a=0.5,b=0.25`` as a dictionary of numbers."""
    return {name: float(value) for name, value in pairs(text).items()}


def whole(text: str) -> int:
    """``2e6`` as 2000000; numbers that are written out keep every digit."""
    with contextlib.suppress(ValueError):
        return int(text)
    if not float(text).is_integer():
        raise argparse.ArgumentTypeError(f"want a whole number, not {text!r}")
    return int(float(text))


def value_of(name: str, kind: Any, text: str) -> Any:
    """The value of a game's parameter that a command line gives as text."""
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind is float and ":" in text:
            return str(Uniform.parse(text))
        return kind(text) if kind in (int, float) else text
    except (ValueError, KeyError):
        raise ValueError(
            f"{name} must be {'true or false' if kind is bool else kind.__name__}, not {text!r}."
        ) from None


def parse(kind: type[Args], argv: Sequence[str] | None = None, doc: str = "") -> Args:
    """The arguments of a command line."""
    readers: dict[str, Callable[[str], Any]] = {
        "int": whole, "float": float, "str": str, "bool | str": str, "dict[str, str]": pairs,
        "dict[str, float]": shares,
        "tuple[str, ...]": lambda s: tuple(s.split(",")), "tuple[int, ...]": lambda s: tuple(map(int, s.split(","))),
    }  # fmt: skip
    parser = argparse.ArgumentParser(
        usage="%(prog)s GAME [options]", description=doc.split("\n")[0],
        argument_default=argparse.SUPPRESS, allow_abbrev=False,
        epilog="--config.NAME VALUE sets a parameter of the game; with LOW:HIGH or log:LOW:HIGH each episode draws it."
        f" Games: {', '.join(registry.ids())}.",
    )  # fmt: skip
    parser.add_argument("game", help="id of a game")
    for field in dataclasses.fields(kind):
        reader, flag = str(field.type), "--" + field.name.replace("_", "-")
        if not field.metadata.get("doc"):
            continue
        default = "" if field.default in ("", (), dataclasses.MISSING) else f" (default: {field.default})"
        text = field.metadata["doc"] + default
        if reader == "bool":
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
        else:
            parser.add_argument(flag, type=readers[reader], help=text)
    parser.add_argument("--config", dest="file", metavar="FILE.json|GAME",
                        help="options from a JSON file, or those that baselines/configs has for some game")  # fmt: skip
    parser.add_argument("--show-config", action="store_true", help="print all options, as --config takes them, and end")
    known, rest = parser.parse_known_args(argv)
    values = vars(known)
    show = values.pop("show_config", False)
    rest = [part for word in rest for part in (word.split("=", 1) if word.startswith("--config.") else [word])]
    try:
        types = config_types(registry.get(values["game"]).Config) | {"max_episode_steps": int}
        config: dict[str, Any] = {}
        for name, text in zip(rest[::2], itertools.chain(rest[1::2], [""]), strict=False):
            key = name.removeprefix("--config.")
            if key == name:
                parser.error(f"unknown option {name}; see --help")
            if key not in types:
                raise ValueError(unknown(f"{values['game']} has no parameter", key, types))
            config[key] = value_of(key, types[key], text)
        args: Args = kind.of(**values, config=config)
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    if show:
        print(json.dumps(args.about(), indent=2))
        parser.exit()
    return args


PRETRAINED = "pretrained"


def checkpoint_of(game: str | type[EnvDef], player: str) -> str:
    """The file of a player: of ``"pretrained"`` the one in ``baselines/pretrained``, otherwise ``player`` itself.

    Raises:
        ValueError: nobody has trained agents of that game before.
    """
    if player != PRETRAINED:
        return player
    env_id, folder = registry.get(game).id, Path(__file__).parents[1] / PRETRAINED
    path = folder / f"{env_id}.safetensors"
    if not path.is_file():
        known = ", ".join(sorted(other.stem for other in folder.glob("*.safetensors")))
        raise ValueError(
            f"there are no pretrained agents for {env_id}: 'gpuzoo train {env_id}' trains some. There are for {known}."
        )
    return str(path)


def existing(path: str | os.PathLike[str]) -> Path:
    """The path of a checkpoint that is there.

    Raises:
        ValueError: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no checkpoint {path}{': it is a folder' if path.is_dir() else ''}.")
    return path
