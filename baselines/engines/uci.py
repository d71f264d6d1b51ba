"""Programs of chess by the Universal Chess Interface, such as Stockfish, and of shogi by its like, USI.

UCI: https://backscattering.de/chess/uci/. USI: http://hgm.nubati.net/usi.html.
"""

from __future__ import annotations

from collections.abc import Mapping

from .position import Position
from .process import Program


class Uci:
    """A program of chess or shogi.

    Args:
        command: that starts it.
        go: how far it thinks, such as ``"nodes 1"``, ``"depth 3"`` or ``"movetime 100"``.
        options: of the program, by name.
        dialect: ``"uci"`` or ``"usi"``.

    Raises:
        RuntimeError: it cannot be started, or has no such option.
    """

    def __init__(
        self, command: str, go: str = "nodes 1", options: Mapping[str, str] | None = None, dialect: str = "uci"
    ) -> None:
        self._program, self._go, self._start = Program(command), go, {"uci": "fen", "usi": "sfen"}[dialect]
        about = self._ask(dialect, f"{dialect}ok")
        known = {line.split(" type ")[0].removeprefix("option name ") for line in about if line.startswith("option ")}
        for name, value in (options or {}).items():
            if name not in known:
                self._program.close()
                raise RuntimeError(f"{command!r} has no option {name!r}, only {', '.join(sorted(known))}.")
            self._program.send(f"setoption name {name} value {value}")
        self._ask("isready", "readyok")
        self._program.send(f"{dialect}newgame")

    def _ask(self, command: str, last: str) -> list[str]:
        self._program.send(command)
        return self._program.read_until(lambda line: line.split(" ")[0] == last)

    def choose(self, position: Position) -> int | None:
        """An action; None: the program resigns."""
        moves = f" moves {' '.join(position.history)}" if position.history else ""
        self._program.send(f"position {self._start} {getattr(position.cfg, self._start)}{moves}")
        reply = self._ask(f"go {self._go}", "bestmove")[-1].split(" ")[1]
        return None if reply in ("resign", "(none)") else position.action(reply)

    def close(self) -> None:
        """Ends the program."""
        self._program.close()
