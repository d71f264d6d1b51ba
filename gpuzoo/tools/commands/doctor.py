"""``gpuzoo doctor``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.options import JsonOption, parse_config

_MARKS = {"ok": "[green]ok[/]", "absent": "[yellow]absent[/]", "problem": "[bold red]problem[/]"}


def _doctor_of_game(game: str, config: list[str], as_json: bool) -> None:
    from gpuzoo import registry
    from gpuzoo.tools.doctor_game import examine

    with common.errors():
        env = registry.get(game)
        with common.console(stderr=True).status("Compiling"):
            report = examine(env, **parse_config(env, config))
    if as_json:
        print(json.dumps(report.as_json(), indent=2))
        return
    table = common.table("", "")
    table.show_header = False
    for name, detail in report.lines():
        table.add_row(name, escape(detail))
    common.console().print(table)


def doctor(
    game: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A game, whose compiled form is explained.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A parameter of the game.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check drivers, compilers and libraries, and run a game on every device; or explain how one game is compiled."""
    if game is not None:
        _doctor_of_game(game, config or [], as_json)
        return
    if config:
        common.fail("--config needs the id of a game: gpuzoo doctor ID --config NAME=VALUE.", 2)
    from gpuzoo.tools import doctor as examination

    report = []
    with common.console(stderr=True).status("Looking around") as status:
        for check in examination.checks():
            report.append(check)
            status.update(f"Checked {check.name}")
    usable = examination.usable(report)
    if as_json:
        print(json.dumps(examination.as_json(report), indent=2))
    else:
        table = common.table("", "", "")
        table.show_header = False
        for check in report:
            advice = f"\n[dim]{escape(check.advice)}[/]" if check.advice else ""
            table.add_row(check.name, _MARKS[check.status], escape(check.detail) + advice)
        console = common.console()
        console.print(table)
        devices = [c.name.rpartition(" ")[2] for c in report if " on " in c.name and c.status == "ok"]
        if usable:
            console.print(f"[green]Ready:[/] games run on {' and '.join(devices)}.")
        else:
            console.print("[bold red]Not ready:[/] games run on no device; see the problems above.")
    raise typer.Exit(0 if usable else 1)
