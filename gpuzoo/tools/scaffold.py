"""What ``gpuzoo new`` does: copies one of the games in ``templates`` under another name."""

from __future__ import annotations

import ast
import keyword
import re
import shutil
import tempfile
from pathlib import Path

#: a folder for each kind of game, with a game that works
TEMPLATES = Path(__file__).parent / "templates"
FEWEST, MOST = 2, 64  # agents: what the templates take
LONGEST = 25  # name: with a longer one lines of the templates would be too long

_SUFFIXES = (".py", ".cuh")
_NAME = "new_game"


def names(name: str) -> tuple[str, str]:
    """The module's name and the class's from either: ``windy_walk`` and ``WindyWalk``.

    Raises:
        ValueError: neither is a name.
    """
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() if re.match(r"[A-Z]", name) else name
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", module) or keyword.iskeyword(module) or len(module) > LONGEST:
        raise ValueError(
            f"{name!r} cannot be the name of a game: use one like 'windy_walk' or 'WindyWalk', "
            f"of at most {LONGEST} letters."
        )
    return module, "".join(word.capitalize() for word in module.split("_"))


def template(
    agents: int | None = None,
    turn_based: bool = False,
    grid: bool = False,
    continuous: bool = False,
    packed: bool = False,
) -> Path:
    """The folder with the game to start from.

    Args:
        agents: how many; None is a game of one agent, or of two that act in turns.
        turn_based: agents act one after the other.
        grid: on square cells.
        continuous: actions are real numbers.
        packed: rules that move many envs at once, for long arithmetic; actions are real numbers.

    Raises:
        ValueError: too few or too many agents, or what does not go together.
    """
    if agents is not None and not FEWEST <= agents <= MOST:
        raise ValueError(f"--agents must be from {FEWEST} to {MOST}, not {agents}; leave it out for one agent.")
    if grid and continuous:
        raise ValueError("--grid and --continuous do not go together: choose cells or real numbers.")
    if turn_based and continuous:
        raise ValueError("--turn-based and --continuous do not go together: turns are for games with discrete actions.")
    if packed and (agents or turn_based or grid):
        raise ValueError("--packed goes with --continuous only: the packed game to start from has one agent.")
    if packed:
        return TEMPLATES / "single_packed"
    who = "turns" if turn_based else "agents" if agents else "single"
    return TEMPLATES / (who + "_grid" * grid + "_continuous" * continuous)


def in_collection(parent: Path) -> bool:
    """Whether a folder is ``gpuzoo/envs``, of this or another checkout: its games are registered by themselves."""
    parent = parent.resolve()
    return parent.name == "envs" and (parent.parent / "core" / "definition.py").is_file()


def create(name: str, parent: Path, template: Path, agents: int | None = None) -> list[Path]:
    """Writes a game that works.

    In the collection's own folder it imports from the core as all games there do and is found by itself; elsewhere it
    registers itself when it is imported.

    Args:
        name: of the game, ``windy_walk`` or ``WindyWalk``.
        parent: where the game's folder is made.
        template: the folder with the game to copy.
        agents: their number by default; None leaves the template's.

    Returns:
        The new files: the module and the rules.

    Raises:
        ValueError: no good name, or another game or the module itself has it.
        FileExistsError: the folder exists.
    """
    from gpuzoo import registry

    module, title = names(name)
    if title in _imported((template / f"{_NAME}.py").read_text(encoding="utf-8")):
        raise ValueError(f"{title} is a name that the game's module uses itself: choose another name.")
    for taken in registry.ids():
        if taken.rsplit("-v", 1)[0].lower() == title.lower():
            raise ValueError(f"there is a game {taken} already: choose another name.")
    folder = parent / module
    if folder.exists():
        raise FileExistsError(f"{folder} exists already: choose another name, or another place with --dir.")
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{module}-") as scratch:
        draft = Path(scratch) / module
        draft.mkdir()
        for suffix in _SUFFIXES:
            text = (template / f"{_NAME}{suffix}").read_text(encoding="utf-8")
            if in_collection(parent):
                text = _of_the_collection(text)
            if agents is not None:
                text = re.sub(r"(?m)^(    num_\w+: int = param\()\d+", rf"\g<1>{agents}", text)
            text = text.replace("NewGame", title).replace(_NAME, module)
            (draft / f"{module}{suffix}").write_text(text, encoding="utf-8")
        shutil.move(draft, folder)
    return [folder / f"{module}{suffix}" for suffix in _SUFFIXES]


def about(module: Path) -> str:
    """What a game of `create` is about, from its docstring."""
    found = re.search(r'class \w+\(EnvDef\):\n    """(.+)', module.read_text(encoding="utf-8"))
    assert found
    return found[1]


def _imported(text: str) -> set[str]:
    """The names that a module imports."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _of_the_collection(text: str) -> str:
    text = text.replace(
        "from gpuzoo import Canvas, Config, EnvDef, Field, param, register\n",
        "from gpuzoo.core.definition import Config, EnvDef, Field, param\nfrom gpuzoo.render import Canvas\n",
    )
    return text.replace("@register\n", "")
