"""What all subcommands share: consoles, tables, errors, and the options before a command's name."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from typing import Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def console(stderr: bool = False) -> Console:
    """A console; in a file or pipe it is wide enough for the tables."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(stderr=stderr, highlight=False, width=160)
    return console


def table(*columns: str, **options: Any) -> Table:
    """A table; columns whose name begins with ``>`` are numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", **options)
    for column in columns:
        right = column.startswith(">")
        table.add_column(column.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    return table


def fail(message: object, code: int) -> NoReturn:
    """Ends the command with this sentence and status."""
    text = str(message) or type(message).__name__
    console(stderr=True).print(f"[bold red]error:[/] {escape(text)}", soft_wrap=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Ends the command with one sentence: status 2 for what the caller got wrong, 1 for what the machine did."""
    try:
        yield
    except Exception as error:
        if given.traceback:
            raise
        if isinstance(error, (ValueError, TypeError, FileExistsError, NotImplementedError)):
            fail(error, 2)
        if isinstance(error, (RuntimeError, ImportError, OSError, MemoryError)):
            fail(error, 1)
        raise


class Common:
    """What the options before the command's name say."""

    modules: tuple[str, ...] = ()
    traceback = False


given = Common()


def require(purpose: str, *modules: str) -> None:
    """Ends the command with one sentence if a package is missing that the trainers need."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        fail(f"{purpose} needs {' and '.join(missing)}: pip install 'gpuzoo[train]'", 1)
