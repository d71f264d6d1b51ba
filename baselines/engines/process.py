"""A program that reads and writes lines."""

from __future__ import annotations

import queue
import shlex
import subprocess
import threading
from collections.abc import Callable

SECONDS = 120.0  # that a program may be silent


class Program:
    """A running program.

    Args:
        command: as in a shell, without its operators.
        seconds: how long a reply may take.

    Raises:
        RuntimeError: it cannot be started.
    """

    def __init__(self, command: str, seconds: float = SECONDS) -> None:
        self.command, self.seconds = command, seconds
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError as error:
            raise RuntimeError(f"{command!r} cannot be started: {error}.") from error
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:  # nobody else closes what a thread reads from
            for line in lines:
                self._lines.put(line.rstrip("\r\n"))
        self._lines.put(None)

    def send(self, line: str) -> None:
        """Writes a line.

        Raises:
            RuntimeError: the program has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            raise RuntimeError(f"{self.command!r} has ended; {line!r} was to be sent to it.") from None

    def read(self) -> str:
        """The next line.

        Raises:
            RuntimeError: the program has ended, or says nothing.
        """
        try:
            line = self._lines.get(timeout=self.seconds)
        except queue.Empty:
            raise RuntimeError(f"{self.command!r} has said nothing for {self.seconds:g} seconds.") from None
        if line is None:
            self._lines.put(None)
            raise RuntimeError(f"{self.command!r} has ended.")
        return line

    def read_until(self, last: Callable[[str], bool]) -> list[str]:
        """Lines up to one for which ``last`` holds."""
        lines = [self.read()]
        while not last(lines[-1]):
            lines.append(self.read())
        return lines

    def close(self) -> None:
        """Ends the program. May be called again."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._listener.join(1)  # a child of the program may keep its output open
