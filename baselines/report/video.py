"""Films of agents: several envs side by side, as an animation or in a window."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.batch import BatchEnv, draw
from gpuzoo.render import Window, save_animation, tile

from .evaluation import Player, play

MAX_FPS = 25  # of a faster game, only some steps are shown
HOLD = 0.6  # seconds for which the ends of the episodes are shown

Players = Mapping[str, Player | None]


def rate(game: str | type[EnvDef], speed: float = 1.0) -> tuple[float, int]:
    """Pictures per second that show a game at its own speed or a multiple of it, and steps from one to the next."""
    fps = registry.get(game).render_fps * speed
    stride = math.ceil(fps / MAX_FPS)
    return fps / stride, stride


def pictures(
    game: str | type[EnvDef],
    players: Players,
    config: Mapping[str, Any] | None = None,
    device: str = "cpu",
    *,
    envs: int = 4,
    member: int = 0,
    greedy: bool = False,
    seed: int = 0,
    size: int = 240,
    shown: Sequence[int] | None = None,
    speed: float = 1.0,
    start: int = 0,
) -> Generator[NDArray[np.uint8], None, None]:
    """Pictures without end of agents that play, at the rate of `rate`.

    An env whose episode is over stands still; when all are over, they begin anew with other seeds.

    Args:
        game: its id.
        players: the player of a group or of an agent. The others act at random.
        config: parameters of the game.
        device: where to play.
        envs: how many.
        member: who of a population plays.
        greedy: take the likeliest actions.
        seed: of the first env and of the actions.
        size: pixels of the longer side of an env's picture.
        shown: the envs whose pictures are tiled; all by default.
        speed: of the film, as a multiple of the game's own.
        start: steps of each episode before the first picture.

    Yields:
        (height, width, 3) uint8.

    Raises:
        ValueError, TypeError: a player of no group or agent, or parameters that the game does not take.
        NotImplementedError: the game does not draw itself.
        ImportError: Pillow is missing.
    """
    fps, stride = rate(game, speed)
    env = BatchEnv(game, envs, device=device, output="torch", autoreset_mode="disabled", **(config or {}))
    with contextlib.closing(env):
        for first in itertools.count(seed, envs):
            over = torch.zeros(envs, dtype=torch.bool)
            views: list[NDArray[np.uint8]] = []
            for step, (_, _, infos) in enumerate(play(env, players, first, greedy, member)):
                now = over | infos["ended"].cpu()
                if (step >= start and (step - start) % stride == 0) or bool(now.all()):
                    views = [draw(env.simulator, k, size) for k in (range(envs) if shown is None else shown)]
                    yield tile(views)
                over = now
                if bool(over.all()):
                    break
            for _ in range(round(HOLD * fps)):
                yield tile(views)


def film(
    game: str | type[EnvDef],
    players: Players,
    path: str | os.PathLike[str],
    config: Mapping[str, Any] | None = None,
    device: str = "cpu",
    *,
    seconds: float = 10.0,
    **options: Any,
) -> int:
    """Writes an animation of agents that play, with a progress bar in a terminal.

    Args:
        game: its id.
        players: who plays, see `pictures`.
        path: of a .gif, .png (animated), .mp4, .webm or .html file, which appears whole or not at all.
        config: parameters of the game.
        device: where to play.
        seconds: length of the animation.
        **options: of `pictures`.

    Returns:
        The number of pictures.

    Raises:
        ValueError: another suffix, or what `pictures` says.
        NotImplementedError: the game does not draw itself.
        ImportError: Pillow is missing, or for videos imageio.
    """
    fps, _ = rate(game, options.get("speed", 1.0))
    count = max(1, round(seconds * fps))
    shown = pictures(game, players, config, device, **options)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        contextlib.closing(shown),
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        taken = itertools.islice(shown, count)
        save_animation(progress.track(taken, total=count, description=Path(path).name), path, fps)
    return count


def show(
    game: str | type[EnvDef],
    players: Players,
    config: Mapping[str, Any] | None = None,
    device: str = "cpu",
    **options: Any,
) -> None:
    """Shows agents that play in a window, until it is closed; its arguments are those of `pictures`.

    Raises:
        ImportError: pygame is missing.
    """
    window = Window(registry.get(game).id, rate(game, options.get("speed", 1.0))[0])
    shown = pictures(game, players, config, device, **options)
    with contextlib.closing(window), contextlib.closing(shown):
        for picture in shown:
            if not window.show(picture):
                break
