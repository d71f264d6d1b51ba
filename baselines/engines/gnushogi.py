"""GNU Shogi by its own dialogue of lines: it writes each move with its number, such as ``12. ... P*5e 35``."""

from __future__ import annotations

import re

from .position import Position
from .process import Program

MOVE = re.compile(r"\d+\. (?:\.\.\. )?(\S+)")  # a prompt may stand before it


class GnuShogi:
    """GNU Shogi.

    Args:
        command: that starts it.
        depth: moves that it looks ahead.

    Raises:
        RuntimeError: it cannot be started.
    """

    def __init__(self, command: str, depth: int = 1) -> None:
        self._program, self._depth = Program(command), depth
        self._made: list[str] | None = None  # moves on the program's board

    def move(self, line: str) -> str:
        """Sends a line, and returns the move that comes of it."""
        self._program.send(line)
        for reply in iter(self._program.read, None):
            if found := MOVE.search(reply):
                return found[1]
            if reply.startswith("Illegal move"):
                raise RuntimeError(f"{self._program.command!r} refuses the move {line}.")
        raise AssertionError

    def choose(self, position: Position) -> int | None:
        """An action; None: the program resigns."""
        history = list(position.history)
        if self._made is None or history[: len(self._made)] != self._made:
            for line in ("new", "depth", str(self._depth), "force"):
                self._program.send(line)
            self._made = []
        for name in history[len(self._made) :]:
            self.move(name)
        action = position.action(self.move("go"))
        self._program.send("force")
        self._made = [*history, position.name(action)]
        return action

    def close(self) -> None:
        """Ends the program."""
        self._program.close()
