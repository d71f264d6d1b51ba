"""``gpuzoo new``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from gpuzoo.tools.commands import common


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the game, such as windy_walk.")],
    parent: Annotated[Path, typer.Option("--dir", help="Where to make the game's folder.")] = Path(),
    agents: Annotated[int | None, typer.Option("--agents", help="Number of agents (default: one).")] = None,
    turn_based: Annotated[bool, typer.Option("--turn-based", help="Agents act in turns; two unless told.")] = False,
    grid: Annotated[bool, typer.Option("--grid", help="On square cells.")] = False,
    continuous: Annotated[bool, typer.Option("--continuous", help="Actions are real numbers.")] = False,
    packed: Annotated[
        bool, typer.Option("--packed", help="Rules that move many envs at once, for physics and other long arithmetic.")
    ] = False,
) -> None:
    """Make a game of your own: two files that work, to be changed. The options choose the game to start from."""
    from gpuzoo.tools import scaffold

    with common.errors():
        files = scaffold.create(name, parent, scaffold.template(agents, turn_based, grid, continuous, packed), agents)
        module, title = scaffold.names(name)
        inside = scaffold.in_collection(parent)
    console = common.console()
    console.print(f"Made [bold]{title}[/] to start from. {escape(scaffold.about(files[0]))}\n", soft_wrap=True)
    what = ("parameters, spaces, state, drawing", "the rules: reset, step, observe")
    width = max(len(str(path)) for path in files)
    for path, text in zip(files, what, strict=True):
        console.print(f"  [bold cyan]{escape(str(path)):{width}}[/]  {text}", soft_wrap=True)
    imported = "" if inside else f"{module}.{module}"
    where = "" if inside or parent.resolve() == Path.cwd() else f"  (in {parent}, or with it on PYTHONPATH)"
    console.print(f"\nUse it{where}:\n", markup=False, soft_wrap=True)
    code = [
        "import gpuzoo",
        *([f"import {imported}  # registers it"] if imported else []),
        f'env = gpuzoo.make("{title}-v0", num_envs=1024)',
        "observations, infos = env.reset(seed=0)",
    ]
    console.print("\n".join(f"  {line}" for line in code), markup=False, soft_wrap=True)
    option = f" --import {imported}" if imported else ""
    registered = f"import {imported}; " if imported else ""
    check = f"{registered}from gpuzoo.testing import check_env; check_env('{title}-v0')"
    steps = [
        f'python -c "{check}"',
        *(["make test"] if inside else []),
        f"gpuzoo{option} record {title}-v0 -o {module}.gif",
        f"gpuzoo{option} bench {title}",
    ]
    console.print("\nThen change the rules, and:\n")
    for line in steps:
        console.print(f"  {line}", markup=False, soft_wrap=True)
