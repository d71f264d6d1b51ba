"""``gpuzoo view``."""

from __future__ import annotations

import contextlib
import secrets
from typing import Annotated

import typer

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.options import DeviceOption, parse_config, scripted_policy


def view(
    game: Annotated[str, typer.Argument(metavar="[ID]", help="Game to begin with.")] = "SimpleTag-v0",
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Who plays: random, trained, search, still, 'in turn', or a function module:name."
        ),
    ] = "random",
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A parameter of the first game.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen to, by default of this machine alone. Any other wants a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(help="What a page has to know; '' is none. Default: a random one, on this machine none."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8008,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    device: DeviceOption = "cpu",
) -> None:
    """Watch and play the games in a browser: one env or a wall of 64, with any policy and any parameters."""
    from gpuzoo import registry
    from gpuzoo.core.backend import make_backend
    from gpuzoo.tools.viewer.server import Viewer

    with common.errors():
        env = registry.get(game)
        values = parse_config(env, config or [])
        scripted = scripted_policy(policy)
        if token is None:
            token = "" if host in ("127.0.0.1", "localhost", "::1") else secrets.token_urlsafe(24)
        viewer = Viewer(env.id, host, port, values, policy, scripted, make_backend(device).device, token)
    console = common.console()
    console.print(f"Watch and play at [bold]{viewer.url}[/]; Ctrl-C ends.", soft_wrap=True)
    if token:
        console.print("[yellow]Whoever has this address can watch and play; nothing is encrypted.[/]", soft_wrap=True)
    if browser:
        import webbrowser

        webbrowser.open(viewer.url)
    with contextlib.suppress(KeyboardInterrupt):
        viewer.serve_forever()
