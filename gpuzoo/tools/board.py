"""How a person moves on a board: by pressing the places of the picture that stand for an action (`EnvDef.presses`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuzoo.core.definition import EnvDef
from gpuzoo.render import Canvas

REACH = 0.5  #: how far a press may be from a place, across and down: half a cell

Point = tuple[float, float]


def has_places(env: EnvDef) -> bool:
    """Whether actions of a game have places on its picture."""
    return type(env).presses is not EnvDef.presses


def without_places(env: EnvDef, cfg: Any, state: Mapping[str, Any], actions: int) -> list[int]:
    """Actions of a game of boards that are chosen by a key or a button, such as a pass."""
    return [k for k in range(actions) if not env.presses(cfg, state, k)]


class Presses:
    """The presses of a move that is under way.

    Attributes:
        done: the places that were pressed, in order.
    """

    def __init__(self) -> None:
        self.done: list[Point] = []

    def press(self, point: Point, ways: Mapping[int, list[Point]]) -> int | None:
        """Takes one press.

        A press that fits no action after those before it begins a new move.

        Args:
            point: where, in coordinates of the view.
            ways: the places of each legal action.

        Returns:
            The action, once its last place was pressed. Of several with the same places it is the last one.
        """
        for before in ([*self.done], []):
            near = self._near(point, before, ways)
            if near is not None:
                self.done = [*before, near]
                found = [action for action, places in ways.items() if places == self.done]
                if found:
                    self.done = []
                    return found[-1]
                return None
        self.done = []
        return None

    def next(self, ways: Mapping[int, list[Point]]) -> list[Point]:
        """Places that may be pressed now."""
        return _following(self.done, ways.values())

    def _near(self, point: Point, before: list[Point], ways: Mapping[int, list[Point]]) -> Point | None:
        far = {p: max(abs(p[0] - point[0]), abs(p[1] - point[1])) for p in _following(before, ways.values())}
        best = min(far, key=far.__getitem__, default=None)
        return best if best is not None and far[best] <= REACH else None

    def draw(self, canvas: Canvas, ways: Mapping[int, list[Point]]) -> None:
        """Rings around what was pressed, and dots where to go on."""
        if not self.done:
            return
        for x, y in self.done:
            canvas.circle(x, y, 0.46, outline="blue", width=3)
        for x, y in self.next(ways):
            canvas.circle(x, y, 0.16, fill="#2b6cb0b0", outline="white", width=1)


def _following(before: list[Point], ways: Iterable[list[Point]]) -> list[Point]:
    count = len(before)
    return list(dict.fromkeys(way[count] for way in ways if len(way) > count and way[:count] == before))
