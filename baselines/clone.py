"""Gives the trainers of a clone one set of modules under both of their names, ``baselines`` and ``gpuzoo.baselines``.

Python would load a file again under its second name, and a policy of one copy would be no instance of the class of the
other.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import cast

PACKAGE = __name__.rpartition(".")[0]


class SecondName(MetaPathFinder, Loader):
    """Finds modules of `PACKAGE` under another name.

    Args:
        name: the package's other name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def first(self, name: str) -> ModuleSpec | None:
        """The module as `PACKAGE` has it; None if there is none."""
        return importlib.util.find_spec(PACKAGE + name.removeprefix(self._name))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As importlib asks for it."""
        if not fullname.startswith(f"{self._name}."):
            return None
        found = self.first(fullname)
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=found.origin, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module of `PACKAGE` in the place of the empty one that importlib has made."""
        name = module.__name__
        sys.modules[name] = importlib.import_module(PACKAGE + name.removeprefix(self._name))

    def get_code(self, fullname: str) -> CodeType | None:
        """For ``python -m``."""
        found = self.first(fullname)
        assert found is not None
        return cast(InspectLoader, found.loader).get_code(found.name)


def share_modules(name: str) -> None:
    """Makes ``name`` another name for `PACKAGE` and all modules in it."""
    sys.meta_path.insert(0, SecondName(name))
    sys.modules[name] = sys.modules[PACKAGE]
