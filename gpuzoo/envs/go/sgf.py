"""Records of games in SGF, the Smart Game Format (https://www.red-bean.com/sgf/)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

LETTERS = "abcdefghijklmnopqrstuvwxy"
_PROPERTY = re.compile(r"\s*([A-Za-z]+)\s*((?:\[(?:\\.|[^\]\\])*\]\s*)+)", re.DOTALL)
_VALUE = re.compile(r"\[((?:\\.|[^\]\\])*)\]", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Record:
    """A game of Go: ``moves`` are actions of `Go`, black's first.

    Attributes:
        size, komi: of the game.
        moves: size * row + column, or size * size for a pass.
        black, white: names of the players, empty if unknown.
        result: such as ``B+3.5``, ``W+Resign`` or ``0``; empty if unknown.
    """

    size: int
    komi: float
    moves: tuple[int, ...] = ()
    black: str = ""
    white: str = ""
    result: str = ""

    @classmethod
    def parse(cls, text: str) -> Record:
        """Reads a game, of a record with variations the main line.

        Raises:
            ValueError: a text that is no record of such a game.
        """
        nodes = [dict(_properties(node)) for node in _main_line(text)]
        root = nodes[0] if nodes else {}
        if root.get("GM", "1") != "1":
            raise ValueError(f"an SGF record of Go has GM[1], not GM[{root['GM']}].")
        for name in ("AB", "AW", "AE"):
            if any(name in node for node in nodes):
                raise ValueError(
                    f"an SGF record with {name} has stones that nobody played, which Go cannot begin with."
                )
        size, komi = _number(root, "SZ", 19), _number(root, "KM", 0)
        if size not in range(2, 26):
            raise ValueError(f"SZ[{root['SZ']}] in an SGF record: Go has boards of 2 to 25 rows and columns.")
        moves = list[int]()
        for node in nodes:
            for colour in node.keys() & {"B", "W"}:
                if colour != "BW"[len(moves) % 2]:
                    raise ValueError(f"move {len(moves) + 1} of an SGF record is {colour}'s: players must alternate.")
                moves.append(_action(node[colour], int(size)))
        names = {
            name: _unescaped(root.get(key, "")) for name, key in (("black", "PB"), ("white", "PW"), ("result", "RE"))
        }
        return cls(int(size), komi, tuple(moves), **names)

    def __str__(self) -> str:
        about: dict[str, Any] = {"FF": 4, "GM": 1, "CA": "UTF-8", "SZ": self.size, "KM": f"{self.komi:g}"}
        about |= {key: value for key, value in (("PB", self.black), ("PW", self.white), ("RE", self.result)) if value}
        root = "".join(f"{key}[{_escaped(str(value))}]" for key, value in about.items())
        lines = [f"{'BW'[k % 2]}[{self._cell(move)}]" for k, move in enumerate(self.moves)]
        return f"(;{root}{''.join(f';{line}' for line in lines)})"

    def _cell(self, move: int) -> str:
        row, column = divmod(move, self.size)
        return "" if row == self.size else LETTERS[column] + LETTERS[row]


def _main_line(text: str) -> Iterator[str]:
    """The nodes up to the end of the first line of play."""
    found = re.search(r"\(\s*;", text)
    if not found:
        raise ValueError("an SGF record begins with '(;'.")
    at = begin = found.end()
    while at < len(text):
        if text[at] == "[":
            value = _VALUE.match(text, at)
            if not value:
                break
            at = value.end()
            continue
        if text[at] in ";()":
            yield text[begin:at]
            if text[at] == ")":
                return
            if text[at] == "(":
                at = text.find(";", at)
                if at < 0:
                    break
            begin = at + 1
        at += 1
    raise ValueError("an SGF record ends within its first line of play: a ']' or ')' is missing.")


def _properties(node: str) -> Iterator[tuple[str, str]]:
    """Names and first values."""
    at = 0
    while at < len(node.rstrip()):
        found = _PROPERTY.match(node, at)
        if not found:
            raise ValueError(f"{node[at:].strip()[:20]!r} in an SGF record is no property such as B[dd].")
        value = _VALUE.search(found[2])
        assert value
        yield "".join(letter for letter in found[1] if letter.isupper()), value[1]
        at = found.end()


def _action(cell: str, size: int) -> int:
    if cell == "" or (cell == "tt" and size <= 19):
        return size * size
    column, row = (LETTERS[:size].find(letter) for letter in cell) if len(cell) == 2 else (-1, -1)
    if min(column, row) < 0:
        raise ValueError(f"[{cell}] in an SGF record is no point of a board of {size} rows and columns.")
    return size * row + column


def _number(root: dict[str, str], name: str, default: float) -> float:
    try:
        return float(root.get(name, default))
    except ValueError:
        raise ValueError(f"{name}[{root[name]}] in an SGF record must be a number.") from None


def _escaped(text: str) -> str:
    return re.sub(r"([\\\]])", r"\\\1", text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
