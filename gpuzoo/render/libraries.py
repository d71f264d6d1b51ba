"""Libraries that are imported when something needs them first."""

from __future__ import annotations

import importlib
from types import ModuleType


def need(module: str, purpose: str, install: str) -> ModuleType:
    """Import a module, or raise an ImportError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {install}") from error


def need_pillow() -> None:
    """Make sure that Pillow is installed."""
    need("PIL.Image", "Rendering", "Pillow: pip install 'gpuzoo[render]'")
