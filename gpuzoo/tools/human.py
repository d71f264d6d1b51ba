"""A person plays in a window, by keyboard and mouse."""

from __future__ import annotations

import contextlib
import time

from gpuzoo.render.window import Window, need_display
from gpuzoo.tools import controls
from gpuzoo.tools.live import Live

_HOLD = 1.0  #: seconds for which the end of an episode is shown
_IDLE = 30.0  #: pictures per second while the game waits


def play(live: Live, agent: str, size: int = 640) -> list[dict[str, float]]:
    """Lets a person play one agent until the window is closed.

    A game that has no action for doing nothing waits for each key; others go on at their own speed. In a game that
    waits, the Tab key goes through the legal actions, whose names are in the title of the window, and Enter takes one.
    An illegal action is not taken there, and the title says so.

    Args:
        live: one env, with the policies of the other agents.
        agent: whom the person plays.
        size: pixels of the longer side of the picture.

    Returns:
        The return of each agent, for each episode that came to its end.

    Raises:
        ValueError: no such agent, or a game whose action has more choices than keys can make.
        ImportError: pygame is not installed.
        RuntimeError: there is no display.
    """
    need_display()
    live.play(agent)
    parts = live.controls[live.group(agent)]
    waits = any(part.still is None for part in parts)
    if len(parts) > 1 and not any(part.keys for part in parts):
        raise ValueError(
            f"{live.env.id}: an action has {len(parts)} choices, too many for keys: play it in `gpuzoo view`."
        )
    returns: list[dict[str, float]] = []
    title, offered = f"{live.env.id}: you are {agent}", -1
    with contextlib.closing(Window(title)) as window:
        picture, due = live.picture(size), time.monotonic()
        while window.show(picture):
            held = [*window.held, *(controls.pointed(parts, *window.pointer) if window.pointer else ())]
            struck, window.struck = window.struck, []
            clicked, window.clicked = window.clicked, []
            moved = any([live.press(*place) for place in clicked])
            mine = live.my_turn
            if waits and mine and "tab" in struck:
                legal = live.legal()
                offered = next((action for action in legal if action > offered), legal[0] if legal else -1)
                window.title = f"{title}   Enter: {parts[0].labels[offered]}" if legal else title
            elif waits and mine and "return" in struck and offered in live.legal():
                live.choose([offered])
                moved = True
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
                try:
                    live.choose(controls.pressed(parts, now, live.choice), takes=waits)
                except ValueError as illegal:
                    window.title = str(illegal)
                    continue
            live.step()
            offered, window.title = -1, title
            picture, due = live.picture(size), time.monotonic() + 1 / live.env.render_fps
            if live.over:
                due += _HOLD
                ended = live.array("final_return", 0)
                returns.append({name: float(ended[k]) for k, name in enumerate(live.agents)})
    return returns
