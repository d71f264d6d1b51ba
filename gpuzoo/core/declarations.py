"""Which games there are, read from the text of their declarations, so that no game is imported before it is wanted.

Other libraries' registries ask for a few facts of each game. Nearly always they are literals in a class statement, in
the game's own file or in that of a base class. Where the text does not tell (a computed id, a decorator), the reader
says so and the registry imports that one module.

What is in a file is remembered on disk until its time or size changes.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from gpuzoo.core.cache import cache_root
from gpuzoo.core.definition import ID, EnvDef
from gpuzoo.core.files import replacing
from gpuzoo.core.variants import VARIED

#: facts that a class statement gives as literals
_LITERALS = ("id", "turn", "max_episode_steps", "reward_threshold", "reference", "aliases", "similar")
#: what makes a class a game
_ROOTS = ("gpuzoo.core.definition:EnvDef", "gpuzoo:EnvDef")

_Outline = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the registries of Gymnasium, PettingZoo and gpuzoo itself want to know of a game."""

    id: str
    single: bool
    turn: str | None
    max_episode_steps: int | None
    reward_threshold: float | None
    reference: str
    aliases: tuple[str, ...]
    similar: tuple[str, ...]

    @classmethod
    def of(cls, game: type[EnvDef]) -> Facts:
        """The facts of an imported game."""
        return cls(single=game.single(), **{name: getattr(game, name) for name in _LITERALS})

    def __post_init__(self) -> None:
        for name in ("aliases", "similar"):  # lists, where they come from the disk
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def original(self) -> str:
        """The name that the game's reference gives it: ``"simple_spread_v3"`` of ``"mpe2 simple_spread_v3"``."""
        words = re.sub(r"\(.*\)|\bwith\b.*", "", self.reference).split()
        return words[-1].rpartition(".")[2] if len(words) > 1 else ""


class UnclearError(Exception):
    """The text does not tell; importing the module does."""


def games_of(module: ModuleType) -> list[type[EnvDef]]:
    """The games of an imported module: classes that have an id of their own, each followed by its variants."""
    found = dict.fromkeys(v for v in vars(module).values() if isinstance(v, type) and issubclass(v, EnvDef))
    own = (game for game in found if game.__module__ == module.__name__ and "id" in vars(game))
    return [one for game in own for one in (game, *game.variant_classes)]


def read(root: Path, package: str) -> Iterator[tuple[str, list[Facts] | None]]:
    """Reads the declarations of a collection.

    Args:
        root: its folder, with a folder for each game or family.
        package: the name of the package that lies there.

    Yields:
        A module's name and the facts of its games, or None where only importing it tells.
    """
    texts = _Texts(root, package)
    for module in texts.modules():
        try:
            yield module, list(texts.games(module))
        except UnclearError:
            yield module, None
    texts.remember()


class _Texts:
    """The modules of a collection by name, with an outline of each, which is made when it is first asked for."""

    def __init__(self, root: Path, package: str) -> None:
        self.root, self.package = root, package
        self.stamps: dict[str, list[int]] = {}
        self._file = cache_root() / "registry" / f"{hashlib.sha256(str(root).encode()).hexdigest()[:20]}.json"
        here = Path(__file__)
        reader = [_stamp(os.stat(path)) for path in (here, *map(here.with_name, ("definition.py", "variants.py")))]
        self._head = [package, *reader]
        self._known: dict[str, Any] = {}
        self._changed = False
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # none yet, or damaged
            kept = json.loads(self._file.read_bytes())
            if kept["head"] == self._head:
                self._known = dict(kept["files"])

    def modules(self) -> list[str]:
        with os.scandir(self.root) as folders:
            names = sorted(f.name for f in folders if f.is_dir() and f.name.isidentifier() and f.name != "__pycache__")
        for folder in names:
            with os.scandir(self.root / folder) as files:
                for file in files:
                    stem, dot, end = file.name.rpartition(".")
                    if dot and end == "py" and stem.isidentifier() and stem != "__init__":
                        self.stamps[f"{self.package}.{folder}.{stem}"] = _stamp(file.stat())
        return sorted(self.stamps)

    def outline(self, module: str) -> _Outline:
        """The classes of a module.

        Raises:
            UnclearError: the module's text is no plain list of definitions, or lies elsewhere.
        """
        if module not in self.stamps:
            raise UnclearError
        stamp, outline = self._known.get(module, (None, None))
        if stamp != self.stamps[module]:
            path = self.root.joinpath(*module.removeprefix(self.package + ".").split(".")).with_suffix(".py")
            try:
                outline = _outline(path.read_bytes(), module)
            except (UnclearError, SyntaxError, ValueError):  # what is wrong with a text is said best by its import
                outline = None
            self._known[module], self._changed = [self.stamps[module], outline], True
        if outline is None:
            raise UnclearError
        return outline  # type: ignore[no-any-return]

    def facts(self, name: str) -> dict[str, Any] | None:
        """The facts that a class ``module:name`` has or inherits; None if it is no `EnvDef`."""
        if name in _ROOTS:
            return {"single": True, "variants": {}} | {k: getattr(EnvDef, k, None) for k in _LITERALS}
        module, _, label = name.partition(":")
        if not module.startswith(self.package + "."):
            return None
        found = self.outline(module).get(label)
        if found is None:  # imported from elsewhere, or no class
            raise UnclearError
        bases = [self.facts(base) for base in found["bases"]]
        if all(base is None for base in bases):
            return None
        (inherited, *others) = [facts for facts in bases if facts is not None]
        mixins = [base for base, facts in zip(found["bases"], bases, strict=True) if facts is None]
        if others or not found["plain"] or any(self._says_something(mixin) for mixin in mixins):
            raise UnclearError
        return {**inherited, "variants": {}, **found["facts"]}

    def _says_something(self, name: str) -> bool:
        """Whether a class that is no `EnvDef` may have facts for those that inherit it."""
        module, _, label = name.partition(":")
        found = self.outline(module).get(label) if module in self.stamps else None
        return found is None or bool(found["facts"]) or bool(found["bases"]) or not found["plain"]

    def games(self, module: str) -> Iterator[Facts]:
        for label, found in self.outline(module).items():
            facts = self.facts(f"{module}:{label}")
            if facts is None and ID.match(str(found["facts"].get("id"))):  # perhaps a base from elsewhere is a game
                raise UnclearError
            if facts is None or "id" not in found["facts"]:
                continue
            variants = facts.pop("variants")
            yield Facts(**facts)
            for env_id, changes in variants.items():
                varied = {k: v for k, v in changes.items() if k in VARIED and k in facts}
                yield Facts(**{**facts, **varied, "id": env_id})

    def remember(self) -> None:
        """Writes the outlines down, where that is possible."""
        if not self._changed and self._known.keys() <= self.stamps.keys():
            return
        kept = {"head": self._head, "files": {k: v for k, v in self._known.items() if k in self.stamps}}
        with contextlib.suppress(OSError), replacing(self._file) as file:
            file.write(json.dumps(kept).encode())


def _stamp(stat: os.stat_result) -> list[int]:
    return [stat.st_mtime_ns, stat.st_size]


def _outline(text: bytes, module: str) -> _Outline:
    """By class: ``bases`` (``module:name`` of each), ``facts``, and whether the class statement is ``plain``."""
    imported: dict[str, str] = {}
    out: _Outline = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            imported |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.names[0].name == "*":
                raise UnclearError
            imported |= {alias.asname or alias.name: f"{node.module}:{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            if node.name in out:
                raise UnclearError
            out[node.name] = _class(node, imported, module)
        elif not _harmless(node, out):
            raise UnclearError
    return out


def _harmless(node: ast.stmt, classes: Iterable[str]) -> bool:
    """Whether a statement neither makes a game nor changes one."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name not in classes
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING") and not node.orelse
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        made = isinstance(node.value, ast.Call)
        return not any(name in classes or (made and re.match("[A-Z].*[a-z]", name)) for name in _bound(node))
    return False


def _bound(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """The names that an assignment binds.

    Raises:
        UnclearError: it changes an attribute or an item.
    """
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in parts):
        raise UnclearError
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _class(node: ast.ClassDef, imported: dict[str, str], module: str) -> dict[str, Any]:
    def full(base: ast.expr) -> str:
        head, _, last = ast.unparse(base).rpartition(".")
        if head:
            return f"{imported.get(head, head).replace(':', '.')}:{last}"
        return imported.get(last) or f"{'builtins' if hasattr(builtins, last) else module}:{last}"

    facts: dict[str, Any] = {}
    plain = not node.decorator_list and not node.keywords
    for statement in node.body:
        try:
            facts |= _facts(statement)
        except (UnclearError, ValueError):
            plain = False
    return {"bases": [full(base) for base in node.bases], "facts": facts, "plain": plain}


def _facts(node: ast.stmt) -> dict[str, Any]:
    """What one statement of a class says.

    Raises:
        UnclearError, ValueError: something that has to be run.
    """
    if isinstance(node, ast.FunctionDef):
        if node.name == "agents":
            return {"single": False}
        if node.name == "variants":
            return {"variants": _returned(node)}
        if node.name in ("single", "__init_subclass__", *_LITERALS):
            raise UnclearError
        return {}
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        names = {*_bound(node)} & {"agents", "single", "variants", *_LITERALS}
        if node.value is None or not names:
            return {}
        if not names <= {*_LITERALS} or len(_bound(node)) > 1:
            raise UnclearError
        return {names.pop(): ast.literal_eval(node.value)}
    if isinstance(node, (ast.ClassDef, ast.Pass)):
        return {}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # the docstring
        return {}
    raise UnclearError


def _returned(node: ast.FunctionDef) -> Any:
    """The literal that a class method returns."""
    last = node.body[-1]
    documented = len(node.body) == 2 and isinstance(node.body[0], ast.Expr)
    if not isinstance(last, ast.Return) or last.value is None or (len(node.body) > 1 and not documented):
        raise UnclearError
    return ast.literal_eval(last.value)
