"""How envs look in a notebook."""

from __future__ import annotations

import base64
import contextlib
import html
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.simulator import Simulator

_STYLE = "text-align:left;padding:2px 14px 2px 0;vertical-align:top"
_SIDE = {1: 240, 4: 150, 16: 100}  #: pixels of an env's picture, by the number of envs that are shown


def picture(simulator: Simulator, envs: int = 1) -> bytes | None:
    """A PNG of the first envs, or None where there is nothing to see.

    There is none before the first reset, without Pillow, and of a game that does not draw itself.
    """
    if not simulator.was_reset:
        return None
    try:
        from PIL import Image

        from gpuzoo.interfaces.batch import draw
        from gpuzoo.render import tile

        pixels = tile([draw(simulator, k, _SIDE[envs]) for k in range(envs)])
    except (ImportError, NotImplementedError):
        return None
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return data.getvalue()


def summary(envs: Any) -> str:
    """An env or a batch as HTML: its picture, and a table of what it is."""
    simulator: Simulator = envs.simulator
    if simulator.closed:
        return f"<p>{html.escape(simulator.env.id)}, closed</p>"
    lay, count = simulator.layout, simulator.num_envs
    rows = {
        "envs": f"{count:,} on {simulator.device}",
        "agents": ", ".join(f"{n} {group}" for group, n in lay.groups.items()),
        "observation": "; ".join({str(s): "" for s in lay.observation_spaces.values()}),
        "action": "; ".join({str(s): "" for s in lay.action_spaces.values()}),
        "autoreset": simulator.autoreset_mode.value,
        "time limit": f"{simulator.max_episode_steps} steps" if simulator.max_episode_steps else "none",
        "memory": f"{simulator.nbytes / 2**20:.3g} MiB",
    }
    changed = {k: v for k, v in vars(simulator.cfg).items() if v != getattr(type(simulator.env).Config(), k)}
    if changed:
        rows["parameters"] = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    png = picture(simulator, max(shown for shown in _SIDE if shown <= count))
    cells = "".join(
        f'<tr><th style="{_STYLE};font-weight:500">{name}</th><td style="{_STYLE}">{html.escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    image = "" if png is None else (
        f'<img alt="{html.escape(simulator.env.id)}" src="data:image/png;base64,{base64.b64encode(png).decode()}" '
        'style="border-radius:6px">'
    )  # fmt: skip
    title = f"{type(envs).__name__} {simulator.env.id}"
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">'
        f"{image}<div><b>{html.escape(title)}</b><table>{cells}</table></div></div>"
    )


class Moving:
    """Frames that a notebook shows as a moving picture.

    Attributes:
        gif: the animation.
    """

    def __init__(self, gif: bytes, title: str) -> None:
        self.gif, self.title = gif, title

    def __repr__(self) -> str:
        return f"{self.title}, {len(self.gif) / 1024:.0f} KiB of GIF"

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.gif).decode()
        return f'<img alt="{html.escape(self.title)}" src="data:image/gif;base64,{data}" style="border-radius:6px">'


def show(envs: Any, steps: int = 100, *, policy: str = "random", seed: int = 0, envs_shown: int = 4) -> Moving:
    """An animation of a game for notebooks. Given envs, it shows their game and parameters, and does not step them.

    Args:
        envs: id or declaration of a game; envs of gpuzoo; or a `Trajectory`, which is played as it was recorded.
        steps: number of steps.
        policy: ``"random"``, ``"trained"`` (agents that come with the package), ``"still"`` or ``"in turn"``.
        seed: of the first env.
        envs_shown: number of envs side by side.

    Raises:
        TypeError: ``envs`` is neither a game nor envs.
        ValueError: as `gpuzoo.make`, or no such policy.
        ImportError: Pillow is missing, or torch for trained agents.
        NotImplementedError: the game does not draw itself.
    """
    from gpuzoo import registry
    from gpuzoo.render import save_animation
    from gpuzoo.tools.live import Live
    from gpuzoo.trajectory import Trajectory

    def played(live: Live) -> Iterator[NDArray[np.uint8]]:
        with contextlib.closing(live):
            yield live.picture(side)
            for _ in range(steps):
                live.step()
                yield live.picture(side)

    side = 300 if envs_shown == 1 else 200
    if isinstance(envs, Trajectory):
        env, frames = registry.get(envs.game), envs.frames(300)
    else:
        simulator = getattr(getattr(envs, "unwrapped", envs), "simulator", envs)
        own = isinstance(simulator, Simulator)
        env = simulator.env if own else registry.get(envs)
        config = {**vars(simulator.config(0)), **simulator.drawn} if own else {}
        groups = env.agents(simulator.cfg if own else env.Config())
        frames = played(Live(env, envs_shown, dict.fromkeys(groups, policy), seed, **config))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "show.gif"
        save_animation(frames, path, min(env.render_fps, 50))
        return Moving(path.read_bytes(), env.id)
