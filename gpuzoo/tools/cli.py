"""The command ``gpuzoo``: the table of its subcommands, and the options before their names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.bench import bench
from gpuzoo.tools.commands.doctor import doctor
from gpuzoo.tools.commands.list import list_games
from gpuzoo.tools.commands.new import new
from gpuzoo.tools.commands.play import play
from gpuzoo.tools.commands.record import record
from gpuzoo.tools.commands.train import train
from gpuzoo.tools.commands.view import view

app = typer.Typer(
    help="Vectorized multi-agent environments: one kernel steps thousands of copies, on a GPU or a CPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
#: name, function and settings of each subcommand, in the order of the help
COMMANDS: tuple[tuple[str, Callable[..., None], dict[str, Any]], ...] = (
    ("list", list_games, {}),
    ("doctor", doctor, {}),
    ("bench", bench, {}),
    ("record", record, {}),
    ("view", view, {}),
    ("new", new, {}),
    (
        "train",
        train,
        {"context_settings": {**_PASSED_ON, "help_option_names": []}, "options_metavar": "ID [OPTIONS]"},
    ),
    ("play", play, {"context_settings": _PASSED_ON}),
)
for _name, _command, _settings in COMMANDS:
    app.command(_name, **_settings)(_command)


def _version(wanted: bool) -> None:
    if wanted:
        import gpuzoo

        print(f"gpuzoo {gpuzoo.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    imports: Annotated[
        list[str] | None,
        typer.Option("--import", "-i", metavar="MODULE", help="Import a module with games of your own first."),
    ] = None,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    common.given.modules = tuple(imports or ())
    common.given.traceback = traceback
    if imports and "" not in sys.path:
        sys.path.insert(0, "")
    with common.errors():
        for module in common.given.modules:
            importlib.import_module(module)


def main() -> None:
    """Runs the command."""
    app(prog_name="gpuzoo")
