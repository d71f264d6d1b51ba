"""How a person moves on a board: by pressing the places of the picture that stand for an action (`EnvDef.presses`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuzoo.core.definition import EnvDef
from gpuzoo.render import Canvas

REACH = 0.5  #: how far a press may be from a place, across and down: half a cell
WIDE = 1.5  #: width of a button with a word, in cells

Point = tuple[float, float]
#: a place, or a word that is chosen at the end of a move
Press = Point | str


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
        self.done: list[Press] = []

    def press(self, canvas: Canvas, point: Point, ways: Mapping[int, Sequence[Press]]) -> int | None:
        """Takes one press.

        A press that fits no action after those before it begins a new move.

        Args:
            canvas: the picture.
            point: where, in coordinates of the view.
            ways: the places of each legal action.

        Returns:
            The action, once its last place was pressed. Of several with the same places it is the last one.
        """
        for before in ([*self.done], []):
            near = _near(canvas, point, before, ways)
            if near is not None:
                self.done = [*before, near]
                found = [action for action, places in ways.items() if [*places] == self.done]
                if found:
                    self.done = []
                    return found[-1]
                return None
        self.done = []
        return None

    def spots(self, canvas: Canvas, ways: Mapping[int, Sequence[Press]]) -> dict[Press, Point]:
        """What may be pressed now, places and words, and where on the picture that is."""
        return _laid_out(canvas, self.done, _following(self.done, ways.values()))

    def draw(self, canvas: Canvas, ways: Mapping[int, Sequence[Press]]) -> None:
        """Rings around what was pressed, and dots or buttons where to go on."""
        if not self.done:
            return
        for place in self.done:
            if not isinstance(place, str):
                canvas.circle(*place, 0.46, outline="blue", width=3)
        for press, (x, y) in self.spots(canvas, ways).items():
            if not isinstance(press, str):
                canvas.circle(x, y, 0.16, fill="#2b6cb0b0", outline="white", width=1)
                continue
            half = _width([press]) / 2
            canvas.rect(x - half + 0.04, y - 0.42, x + half - 0.04, y + 0.42, radius=0.14, fill="#fffffff2",
                        outline="blue", width=2)  # fmt: skip
            canvas.text(x, y, press, height=0.32 if len(press) > 1 else 0.5, colour="#1d3f66", bold=True)


def _near(canvas: Canvas, point: Point, before: list[Press], ways: Mapping[int, Sequence[Press]]) -> Press | None:
    """What a press means after those before it."""
    wanted = _laid_out(canvas, before, _following(before, ways.values()))
    across = {press: _width([press]) / 2 if isinstance(press, str) else REACH for press in wanted}
    far = {press: max(abs(x - point[0]) / across[press], abs(y - point[1]) / REACH) for press, (x, y) in wanted.items()}
    best = min(far, key=far.__getitem__, default=None)
    return best if best is not None and far[best] <= 1 else None


def _width(words: Sequence[str]) -> float:
    return 1.0 if all(len(word) == 1 for word in words) else WIDE


def _laid_out(canvas: Canvas, before: Sequence[Press], presses: Iterable[Press]) -> dict[Press, Point]:
    """Where the next presses are. Words stand in a block around the last place, which stays within the picture."""
    places: dict[Press, Point] = {press: press for press in presses if not isinstance(press, str)}
    words = [press for press in presses if isinstance(press, str)]
    if not words:
        return places
    last = next((place for place in reversed(before) if not isinstance(place, str)), (0.0, 0.0))
    columns, width = (1 if len(words) < 5 else math.ceil(math.sqrt(len(words)))), _width(words)
    size = (columns * width, float(math.ceil(len(words) / columns)))
    x0, y0, x1, y1 = canvas.window
    left, top = (
        min(max(at - half / 2, low), max(low, high - half))
        for at, half, low, high in zip(last, size, (x0, y0), (x1, y1), strict=True)
    )
    return places | {
        word: (left + width * (k % columns + 0.5), top + k // columns + 0.5) for k, word in enumerate(words)
    }


def _following(before: Sequence[Press], ways: Iterable[Sequence[Press]]) -> list[Press]:
    count = len(before)
    return list(dict.fromkeys(way[count] for way in ways if len(way) > count and [*way[:count]] == [*before]))
