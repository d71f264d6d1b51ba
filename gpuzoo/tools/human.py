"""A person plays in a window, by keyboard and mouse."""

from __future__ import annotations

import contextlib
import time

from gpuzoo.render import Window, need_display
from gpuzoo.tools import controls
from gpuzoo.tools.live import Live

_HOLD = 1.0  #: seconds for which the end of an episode is shown
_IDLE = 30.0  #: pictures per second while the game waits


def play(live: Live, agent: str, size: int = 640) -> list[dict[str, float]]:
    """Lets a person play one agent until the window is closed.

    A game that has no action for doing nothing waits for each key; others go on at their own speed.

    Args:
        live: one env, with the policies of the other agents.
        agent: whom the person plays.
        size: pixels of the longer side of the picture.

    Returns:
        The return of each agent, for each episode that came to its end.

    Raises:
        ValueError: no such agent.
        ImportError: pygame is not installed.
        RuntimeError: there is no display.
    """
    need_display()
    live.play(agent)
    parts = live.controls[live.group(agent)]
    waits = any(part.still is None for part in parts)
    returns: list[dict[str, float]] = []
    with contextlib.closing(Window(f"{live.env.id}: you are {agent}")) as window:
        picture, due = live.picture(size), time.monotonic()
        while window.show(picture):
            held = [*window.held, *(controls.pointed(parts, *window.pointer) if window.pointer else ())]
            struck, window.struck = window.struck, []
            clicked, window.clicked = window.clicked, []
            moved = any([live.press(*place) for place in clicked])
            mine = live.my_turn
            now = [key for key in struck if key] or held if struck else [] if waits else held
            ready = (
                moved or any(key in part.keys for part in parts for key in now)
                if waits and mine
                else time.monotonic() >= due
            )
            if not ready:
                if clicked and live.board:
                    picture = live.picture(size)
                time.sleep(1 / _IDLE / 4)
                continue
            if not moved:
                live.choose(controls.pressed(parts, now, live.choice))
            live.step()
            picture, due = live.picture(size), time.monotonic() + 1 / live.env.render_fps
            if live.over:
                due += _HOLD
                ended = live.array("final_return", 0)
                returns.append({name: float(ended[k]) for k, name in enumerate(live.agents)})
    return returns
