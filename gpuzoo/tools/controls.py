"""How a person plays: which key, button or place on the picture stands for which action of a game.

Nothing here is written down per game. The names that a declaration gives its actions (`EnvDef.action_names`) tell which
one goes to the left; an action whose name tells nothing has a number.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout, choices, flat_size

#: what the keys are called: as in a browser, of which the names of pygame are the lower-case ends
WAYS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
_WORDS = (
    r"\b(left|west)\b|column - 1|\bx - 1|\(-x\)",
    r"\b(right|east)\b|column \+ 1|\bx \+ 1|\(\+x\)",
    r"(?<!pick )\bup\b|\b(north|forward)\b|row - 1|\by \+ 1|\(\+y\)",
    r"\b(down|south)\b|row \+ 1|\by - 1|\(-y\)",
)
_STILL = re.compile(r"^(noop|no-op|nothing|do nothing|stay|none|leave it|torque 0|wait)\b", re.IGNORECASE)
_BOTH = re.compile(r"^(?P<first>.+?), and (?P<second>.+)$")


@dataclasses.dataclass
class Part:
    """One choice that an action consists of.

    Attributes:
        name: what it is about, "" where the labels say it.
        labels: of its values 0, 1, ...; none where it is a range.
        low, high: its smallest and largest value.
        whole: whether it is an integer.
        still: the value while nothing is pressed; None: the game waits for the person.
        keys: value by key, in the names of browsers (``"ArrowLeft"``, ``" "``, ``"1"``).
        held: whether the value lasts only as long as the key is pressed.
        board: whether a person presses on the picture for the values that have a place on it.
    """

    name: str
    low: float
    high: float
    whole: bool = True
    labels: Sequence[str] = ()
    still: float | None = 0
    keys: dict[str, float] = dataclasses.field(default_factory=dict)
    held: bool = True
    board: bool = False

    def checked(self, value: Any) -> float:
        """A value for this part.

        Raises:
            TypeError: it is no number.
            ValueError: it is out of range, or no integer where one is wanted.
        """
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"an action is made of numbers, not of {value!r}.")
        if not self.low <= value <= self.high or (self.whole and value != int(value)):
            kind = "an integer" if self.whole else "a number"
            raise ValueError(f"this part of an action is {kind} from {self.low:g} to {self.high:g}, not {value!r}.")
        return value


def way(name: str) -> str | None:
    """The arrow key that a name of an action speaks of, if it speaks of one alone."""
    found = [key for key, pattern in zip(WAYS, _WORDS, strict=True) if re.search(pattern, name, re.IGNORECASE)]
    return found[0] if len(found) == 1 else None


def _choice(labels: Sequence[str], name: str = "", *, arrows: bool = True) -> Part:
    """A choice between actions that have names."""
    keys: dict[str, float] = {}
    still = next((k for k, label in enumerate(labels) if _STILL.search(label)), None)
    for k, label in enumerate(labels):
        arrow = way(label) if arrows else None
        if arrow and arrow not in keys and k != still:
            keys[arrow] = k
    rest = [k for k in range(len(labels)) if k not in keys.values() and k != still]
    if arrows and keys and rest:
        keys[" "] = rest[0]
    keys |= {str(k + 1): k for k in range(min(len(labels), 9))}
    return Part(name, 0, len(labels) - 1, labels=labels, still=still, keys=keys)


def _level(name: str, count: int, keys: tuple[str, str] | None) -> Part:
    """One of many levels, of which 0 is none: two keys stand for one some way below the middle and one above."""
    low, high = (round(1 + share * (count - 2)) for share in (0.35, 0.65))
    return Part(name, 0, count - 1, keys={} if keys is None else {keys[0]: low, keys[1]: high})


def _pairs(names: Sequence[str]) -> list[tuple[str, str] | None]:
    """Keys for less and for more of each number: what turns goes left and right, the others as they come."""
    left = [("ArrowLeft", "ArrowRight"), ("ArrowDown", "ArrowUp"), ("a", "d"), ("s", "w"), ("j", "l"), ("k", "i")]
    out: list[tuple[str, str] | None] = []
    for name in names:
        turns = re.search(r"\b(heading|counter-clockwise)\b", name)
        vertical = re.search(r"\b(along y|speed|acceleration)\b(?! along x)", name)
        want = ("ArrowRight", "ArrowLeft") if turns else ("ArrowDown", "ArrowUp") if vertical else None
        pair = (
            want if want and want not in out else next((p for p in left if p not in out and p[::-1] not in out), None)
        )
        out.append(pair)
    return out


def _names(named: Mapping[str, int], size: int) -> list[str]:
    """A name for each number, with an index where one name is for several."""
    out = [name if count == 1 else f"{name} [{k}]" for name, count in named.items() for k in range(count)]
    return out if len(out) == size else [f"{k}" for k in range(size)]


def controls(env: EnvDef, cfg: Any, group: str, space: spaces.Space[Any]) -> list[Part]:
    """The parts of an action of one agent, in the order of `action`."""
    named = env.action_names(cfg, group)
    if isinstance(space, spaces.Discrete):
        both = [_BOTH.match(name) for name in named]
        seconds = {found["second"] for found in both if found}
        if named and all(both) and len(seconds) == 1 and {*named.values()} == {int(space.n) // len(named)}:
            moves = re.split(r", | or ", seconds.pop())
            if len(moves) * len(named) == int(space.n):  # a word together with a move
                said = _choice([found["first"] for found in both if found], arrows=False)
                said.held, said.still = False, 0
                moving = _choice(moves)
                moving.keys = {key: value for key, value in moving.keys.items() if key not in said.keys}
                return [said, moving]
        labels = _names(named, int(space.n)) if named else [f"action {k}" for k in range(int(space.n))]
        return [_choice(labels)]
    size = flat_size(space)
    names = _names(named, size) if named else [f"part {k}" for k in range(size)]
    if isinstance(space, spaces.MultiDiscrete):
        sizes = choices(space)
        if env.action_mask:  # the person sees what is legal, and sends all choices together
            return [
                dataclasses.replace(
                    _choice([f"{k}" for k in range(n)], name, arrows=False), held=False, still=None, keys={}
                )
                for name, n in zip(names, sizes, strict=True)
            ]
        return [
            _level(name, n, pair) if n > 3 else _choice([f"{k}" for k in range(n)], name, arrows=False)
            for name, n, pair in zip(names, sizes, _pairs(names), strict=True)
        ]
    assert isinstance(space, spaces.Box)
    low, high = np.broadcast_to(space.low, (size,)), np.broadcast_to(space.high, (size,))
    parts = []
    for k, (name, pair) in enumerate(zip(names, _pairs(names), strict=True)):
        least, most = float(low.flat[k]), float(high.flat[k])
        part = Part(name, least, most, whole=False, still=min(max(0.0, least), most))
        if least == 0:  # a strength: of what its name says
            arrow = way(name)
            part.keys = {arrow: most} if arrow else {}
        elif pair is not None:
            part.keys = {pair[0]: least, pair[1]: most}
        parts.append(part)
    return parts


def action(space: spaces.Space[Any], parts: Sequence[Part], values: Sequence[Any]) -> Any:
    """The action that a person has chosen, as an array of the space's flat size.

    Raises:
        TypeError, ValueError: values that the parts do not allow, or too many or too few.
    """
    if len(values) != len(parts):
        raise ValueError(f"an action has {len(parts)} parts here, not {len(values)}.")
    numbers = [part.checked(value) for part, value in zip(parts, values, strict=True)]
    if isinstance(space, spaces.Discrete) and len(parts) == 2:  # a word and a move
        numbers = [numbers[0] * (parts[1].high + 1) + numbers[1]]
    return np.array(numbers, space.dtype)


def of_layout(env: EnvDef, cfg: Any, lay: Layout) -> dict[str, list[Part]]:
    """`controls` of each group."""
    return {group: controls(env, cfg, group, space) for group, space in lay.action_spaces.items()}


def on_board(part: Part, rest: Sequence[int]) -> None:
    """Leaves keys to the actions that have no place on the board, such as a pass: the first is the space bar.

    If there are more than 9, they have no place at this moment only, such as cards that somebody else holds.
    """
    part.board, part.still = True, None
    rest = rest if len(rest) <= 9 else []
    part.keys = {str(k + 1): action for k, action in enumerate(rest)}
    if rest:
        part.keys[" "] = rest[0]


def pressed(parts: Sequence[Part], keys: Collection[str], last: Sequence[float]) -> list[float]:
    """What a person chooses who holds some keys; parts that are not held stay as they were ``last``."""
    out = []
    for part, value in zip(parts, last, strict=True):
        rest = value if not part.held else part.low if part.still is None else part.still
        out.append(next((part.keys[key] for key in keys if key in part.keys), rest))
    return out


def pointed(parts: Sequence[Part], x: float, y: float) -> list[str]:
    """The keys that a place on the picture stands for, from 0 to 1 rightwards and downwards.

    The picture is a joystick around its middle. Where the actions are columns it is those.
    """
    labels = parts[0].labels
    if parts[0].board:
        return []
    if len(parts) == 1 and labels and all(re.search(r"column \d+$", label) for label in labels):
        return [str(1 + min(max(int(x * len(labels)), 0), len(labels) - 1))]
    across = [
        (abs(x - 0.5), "ArrowLeft" if x < 0.5 else "ArrowRight"),
        (abs(y - 0.5), "ArrowUp" if y < 0.5 else "ArrowDown"),
    ]
    return [key for far, key in sorted(across, reverse=True) if far > 0.1 and any(key in part.keys for part in parts)]


def legend(parts: Sequence[Part]) -> str:
    """The keys and what they do, in a line."""
    arrows = {"ArrowLeft": "left", "ArrowRight": "right", "ArrowUp": "up", "ArrowDown": "down", " ": "space"}
    said = ["click on the board: a cell, or a piece and where it goes"] if parts[0].board else []
    for part in parts:
        shown: dict[float, str] = {}
        for key, value in part.keys.items():
            shown.setdefault(value, arrows.get(key, key))
        said += [f"{key}: {part.labels[int(v)] if part.labels else f'{part.name} {v:g}'}" for v, key in shown.items()]
    if len(parts) == 1 and parts[0].still is None and len(parts[0].labels) > len({*parts[0].keys.values()}):
        said.append("Tab: the next legal action, Enter: take it")
    return "; ".join(said)
