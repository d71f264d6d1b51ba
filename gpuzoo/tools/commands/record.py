"""``gpuzoo record``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.options import DeviceOption, parse_config, scripted_policy


def _wrote(out: Path, what: str) -> None:
    kib = out.stat().st_size / 1024
    amount = f"{kib / 1024:.1f} MiB" if kib >= 1000 else f"{kib:.0f} KiB"
    common.console().print(f"Wrote [bold]{escape(str(out))}[/]: {what}, {amount}.", soft_wrap=True)


def record(
    game: Annotated[str, typer.Argument(metavar="ID|FILE", help="Id of a game, or a saved trajectory (.npz) to film.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="A .gif, .png (animated), .mp4, .webm or .html (a page with a player) file; or .npz, "
            "the trajectory of one env.",
        ),
    ],
    num_envs: Annotated[int | None, typer.Option(min=1, max=64, help="Envs, side by side.  [default: 4]")] = None,
    steps: Annotated[int, typer.Option(min=0, help="Steps.")] = 120,
    policy: Annotated[str, typer.Option(metavar="NAME", help="Who plays: as in gpuzoo view.")] = "random",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first env.")] = 0,
    size: Annotated[int, typer.Option(min=32, max=4096, help="Pixels of the longer side of an env's picture.")] = 240,
    aspect: Annotated[
        float | None, typer.Option(min=1 / 16, max=16, help="Width of a picture by its height.  [default: the game's]")
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second.  [default: the game's]")] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A parameter of the game.")
    ] = None,
    device: DeviceOption = "cpu",
) -> None:  # fmt: skip
    """Record an animation or a trajectory of play, at random unless told; or film a trajectory that was saved."""
    from gpuzoo import registry
    from gpuzoo.render import save_animation
    from gpuzoo.tools.live import Live
    from gpuzoo.trajectory import Trajectory
    from gpuzoo.trajectory import record as recorder

    console = common.console(stderr=True)
    with common.errors():
        if out.is_dir():
            raise ValueError(f"{out} is a folder: give the name of a file.")
        if game.endswith(".npz"):
            saved = Trajectory.load(game)
            with console.status("Writing"):
                saved.film(out, fps, size, aspect)
            _wrote(out, f"{len(saved)} steps of {saved.id}")
            return
        env = registry.get(game)
        rate = fps or min(env.render_fps, 50)
        values = parse_config(env, config or [])
        scripted = scripted_policy(policy)
        alone = out.suffix.lower() == ".npz"
        if alone and num_envs not in (None, 1):
            raise ValueError("a trajectory is of one env: leave --num-envs out.")
        count = 1 if alone else num_envs or 4
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("Compiling", total=steps + 1)

            def states() -> Iterator[Live]:
                groups = env.agents(env.Config(**{k: v for k, v in values.items() if k != "max_episode_steps"}))
                options: dict[str, Any] = {"seed": seed, "device": device, "scripted": scripted, **values}
                live = Live(env, count, dict.fromkeys(groups, policy), **options)
                try:
                    progress.update(task, description="Playing")
                    for k in range(steps + 1):
                        if k:
                            live.step()
                        yield live
                        progress.advance(task)
                finally:
                    live.close()
                progress.update(task, description="Writing")

            if alone:
                recording: Any = None
                for live in states():
                    recording = recording or recorder(live.envs)
                recording.trajectory().save(out)
            else:
                save_animation((live.picture(size, aspect) for live in states()), out, fps=rate, title=env.id)
    _wrote(out, f"{steps} steps" if alone else f"{steps + 1} frames")
