"""Programs of Go, by the Go Text Protocol (https://www.lysator.liu.se/~gunnar/gtp/), such as GNU Go."""

from __future__ import annotations

from .position import Position
from .process import Program

COLOURS = ("black", "white")


class Gtp:
    """A program of Go.

    Args:
        command: that starts it.

    Raises:
        RuntimeError: it cannot be started.
    """

    def __init__(self, command: str) -> None:
        self._program = Program(command)
        self._made: list[str] | None = None  # moves on the program's board

    def ask(self, command: str) -> str:
        """Sends a command and returns the answer.

        Raises:
            RuntimeError: the program refuses it.
        """
        self._program.send(command)
        first, *others = [line for line in self._program.read_until(lambda line: line == "") if line] or [""]
        if not first.startswith("="):
            raise RuntimeError(f"{self._program.command!r} refuses {command!r}: {first[1:].strip()}")
        return "\n".join([first[1:].strip(), *others])

    def choose(self, position: Position) -> int | None:
        """An action; None: the program resigns."""
        history = list(position.history)
        if self._made is None or history[: len(self._made)] != self._made:
            for command in (f"boardsize {position.cfg.size}", "clear_board", f"komi {position.cfg.komi:g}"):
                self.ask(command)
            self._made = []
        for k in range(len(self._made), len(history)):
            self.ask(f"play {COLOURS[k % 2]} {history[k]}")
        reply = self.ask(f"genmove {COLOURS[len(history) % 2]}")
        if reply.lower() == "resign":
            self._made = None
            return None
        action = position.action(reply)
        self._made = [*history, position.name(action)]
        return action

    def close(self) -> None:
        """Ends the program."""
        self._program.close()
