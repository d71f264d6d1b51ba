"""What ``gpuzoo new`` does: copies the game in ``gpuzoo/templates`` under another name."""

from __future__ import annotations

import keyword
import re
import shutil
import tempfile
from pathlib import Path

TEMPLATE = Path(__file__).parent / "templates" / "new_game"
COLLECTION = Path(__file__).parents[1] / "envs"

_SUFFIXES = (".py", ".cuh")


def names(name: str) -> tuple[str, str]:
    """The module's name and the class's from either: ``windy_walk`` and ``WindyWalk``.

    Raises:
        ValueError: neither is a name.
    """
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() if re.match(r"[A-Z]", name) else name
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", module) or keyword.iskeyword(module) or len(module) > 40:
        raise ValueError(f"{name!r} cannot be the name of a game: use one like 'windy_walk' or 'WindyWalk'.")
    return module, "".join(word.capitalize() for word in module.split("_"))


def create(name: str, parent: Path) -> list[Path]:
    """Writes a game that works.

    In the collection's own folder it imports from the core as all games there do and is found by itself; elsewhere it
    registers itself when it is imported.

    Args:
        name: of the game, ``windy_walk`` or ``WindyWalk``.
        parent: where the game's folder is made.

    Returns:
        The new files: the module and the rules.

    Raises:
        ValueError: no good name, or another game has it.
        FileExistsError: the folder exists.
    """
    from gpuzoo import registry

    module, title = names(name)
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
        (draft / "__init__.py").touch()
        for suffix in _SUFFIXES:
            text = (TEMPLATE / f"{TEMPLATE.name}{suffix}").read_text(encoding="utf-8")
            if parent.resolve() == COLLECTION.resolve():
                text = _of_the_collection(text)
            text = text.replace("NewGame", title).replace("new_game", module)
            (draft / f"{module}{suffix}").write_text(text, encoding="utf-8")
        shutil.move(draft, folder)
    return [folder / f"{module}{suffix}" for suffix in _SUFFIXES]


def _of_the_collection(text: str) -> str:
    text = text.replace(
        "from gpuzoo import Canvas, Config, EnvDef, Field, param, register\n",
        "from gpuzoo.core.definition import Config, EnvDef, Field, param\nfrom gpuzoo.render import Canvas\n",
    )
    return text.replace("@register\n", "")
