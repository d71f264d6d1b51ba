"""``gpuzoo list``."""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer
from rich.markup import escape

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.options import JsonOption


def _by_group(found: dict[str, str]) -> str:
    """The same for all groups, or each group's own."""
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return "\n".join(f"{group}: {text}" for group, text in found.items())


def list_games(
    pattern: Annotated[str, typer.Argument(metavar="REGEX", help="Only ids that match.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the games."""
    from gpuzoo.tools.listing import agents_text
    from gpuzoo.tools.listing import games as all_games

    with common.errors():
        try:
            games = [game for game in all_games() if re.search(pattern, game["id"], re.IGNORECASE)]
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}.") from None
    if as_json:
        print(json.dumps(games, indent=2))
        return
    console = common.console()
    wide = console.width >= 120
    table = common.table("game", "agents", "observation", "actions", *[""] * wide)
    table.columns[0].no_wrap = True
    for game in games:
        masked = "\n(masked)" if game["action_mask"] else ""
        table.add_row(
            f"[bold cyan]{game['id']}[/]",
            agents_text(game["agents"]),
            _by_group(game["observation"]),
            _by_group(game["action"]) + masked,
            *[escape(game["description"])] * wide,
        )
    console.print(table)
    count = "1 game" if len(games) == 1 else f"{len(games)} games"
    console.print(f"{count}, with default parameters.", style="dim")
