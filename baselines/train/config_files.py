"""Hyper-parameters from JSON files: those of ``baselines/configs``, and those that a caller names."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.suggestions import unknown

CONFIGS = Path(__file__).parents[1] / "configs"
#: Keys that `scripts/make_results.py` and the documentation read. A copy of one of these files may keep them.
RESULTS_ONLY = ("reference", "goal", "mappo", "open_spiel", "lessons", "past_selves", "ways", "note")


def of_game(kind: type[Any], game: str | type[EnvDef]) -> dict[str, Any]:
    """The options of a game's file in ``baselines/configs`` that the algorithm has; empty without a file."""
    path = CONFIGS / f"{type(registry.get(game)).id}.json"
    if not path.is_file():
        return {}
    options = {field.name for field in dataclasses.fields(kind)}
    return _options(kind, {k: v for k, v in json.loads(path.read_text(encoding="utf-8")).items() if k in options}, path)


def read(kind: type[Any], game: str | type[EnvDef], source: str) -> dict[str, Any]:
    """The options in a file.

    Args:
        kind: the algorithm's `Args`.
        game: what is to be trained.
        source: the path of a ``.json`` file; or the name of a game whose options in ``baselines/configs`` are taken, as
            far as the algorithm has them, without the parameters of that game.

    Raises:
        ValueError: no such file or name, a key that is no option, a value of another type, or a file that says that it
            is for another game or algorithm, as the ``run.json`` of a run does.
    """
    if not source.endswith(".json"):
        names = sorted(path.stem for path in CONFIGS.glob("*.json"))
        if source not in names:
            raise ValueError(f"{unknown('baselines/configs has no options for', source, names)} A file ends in .json.")
        return {k: v for k, v in of_game(kind, source).items() if k != "config"}
    path = Path(source)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read the options in {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold a JSON object with options, not {type(found).__name__}.")
    for key, mine in (("game", registry.get(game).id), ("algorithm", kind.algorithm)):
        if found.pop(key, mine) != mine:
            raise ValueError(f"{path} is for another {key} than {mine}: take that one, or remove {key!r} there.")
    return _options(kind, {k: v for k, v in found.items() if k not in RESULTS_ONLY}, path)


def _options(kind: type[Any], found: dict[str, Any], path: Path) -> dict[str, Any]:
    """Values of a file as `Args` has them."""
    types = {field.name: str(field.type) for field in dataclasses.fields(kind) if field.name != "game"}
    for name, value in found.items():
        if name not in types:
            raise ValueError(unknown(f"{path}: {kind.algorithm} has no option", name, types))
        try:
            found[name] = _typed(types[name], value)
        except TypeError:
            raise ValueError(f"{path}: {name} must be {_words(types[name])}, not {json.dumps(value)}.") from None
    return found


_PLAIN: dict[str, tuple[type[Any], ...]] = {
    "bool": (bool,), "str": (str,), "bool | str": (bool, str), "int": (int,), "float": (int, float)
}  # fmt: skip


def _typed(kind: str, value: Any) -> Any:
    """A value from JSON as an option of some type; a number such as 1e6 may stand for a whole one.

    Raises:
        TypeError: it is of another type.
    """
    if inner := re.fullmatch(r"tuple\[(\w+), \.\.\.\]", kind):
        if not isinstance(value, list):
            raise TypeError
        return tuple(_typed(inner[1], x) for x in value)
    if inner := re.fullmatch(r"dict\[str, (\w+)\]", kind):
        if not isinstance(value, dict):
            raise TypeError
        return {name: x if inner[1] == "Any" else _typed(inner[1], x) for name, x in value.items()}
    if kind == "int" and type(value) is float and math.isfinite(value) and value.is_integer():
        return int(value)
    if type(value) not in _PLAIN[kind]:
        raise TypeError
    return value


def _words(kind: str) -> str:
    words = {
        "bool": "true or false",
        "bool | str": "true, false or a text",
        "str": "a text",
        "int": "a whole number",
        "float": "a number",
    }
    return words.get(kind, f"a {'list' if kind.startswith('tuple') else 'dictionary'}, as in {kind}")
