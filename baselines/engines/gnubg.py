"""GNU Backgammon by its socket: a position goes out as FIBS writes it, and the moves of a turn come back."""

from __future__ import annotations

import itertools
import re
import socket

from .position import Position
from .process import Program

WAITS = re.compile(r"Waiting for a connection from ([\d.]+):(\d+)")
POINTS, BAR, OFF = 24, 24, 26  # places of the field `board`; the opponent's bar and checkers off follow the own ones
PLACE = "bar|off|\\d+"


class GnuBackgammon:
    """GNU Backgammon with its first settings: its network looks no move ahead.

    Args:
        command: that starts it with its text interface, such as ``"gnubg --tty --quiet --no-rc"``.

    Raises:
        RuntimeError: it cannot be started.
    """

    def __init__(self, command: str) -> None:
        self._program = Program(command)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._program.send(f"external 127.0.0.1:{port}")
        found = WAITS.search(self._program.read_until(lambda line: WAITS.search(line) is not None)[-1])
        assert found
        self._socket = socket.create_connection((found[1], int(found[2])), self._program.seconds)
        self._file = self._socket.makefile("rw")
        self._plans: dict[int, list[str]] = {}  # by game, what is left of the turn

    def choose(self, position: Position) -> int | None:
        """An action; None: the program resigns."""
        dice, rolled = position.state["dice"], position.state["rolled"]
        if sum(dice) == (4 if rolled[0] == rolled[1] else 2):
            self._plans[position.game] = self._ask(fibs_board(position))
        names = {position.name(action): action for action in reversed(position.legal)}  # the lowest die counts
        if "-" in names:
            return names["-"]
        plan = self._plans[position.game]
        for name in plan:
            if name in names:
                plan.remove(name)
                return names[name]
        raise RuntimeError(f"GNU Backgammon moves {' '.join(plan)}, but only {', '.join(names)} are legal.")

    def _ask(self, board: str) -> list[str]:
        """The moves of single dice."""
        self._file.write(board + "\n")
        self._file.flush()
        reply = self._file.readline()
        return moves_of(reply)

    def close(self) -> None:
        """Ends the program."""
        self._file.close()
        self._socket.close()
        self._program.close()


def moves_of(reply: str) -> list[str]:
    """Single moves of a reply, such as ``24/18*/14 6/3(2)``.

    Raises:
        RuntimeError: a reply that is none.
    """
    moves = list[str]()
    for word in reply.split():
        found = re.fullmatch(rf"((?:{PLACE})(?:/(?:{PLACE})\*?)+)(?:\((\d)\))?", word)
        if not found:
            raise RuntimeError(f"GNU Backgammon answers {reply.strip()!r}, which is no move.")
        places = [{"25": "bar", "0": "off"}.get(place, place) for place in found[1].replace("*", "").split("/")]
        moves += [f"{a}/{b}" for a, b in itertools.pairwise(places)] * int(found[2] or 1)
    return moves


def fibs_board(position: Position) -> str:
    """The position as FIBS writes it, for a player whose checkers are positive and go from 24 to 1."""
    board = [int(count) for count in position.state["board"]]
    points = [board[BAR + 1], *reversed(board[:POINTS]), board[BAR]]
    first, second = (int(die) for die in position.state["rolled"])
    dice, home = [first, second, first, second], [abs(board[OFF]), abs(board[OFF + 1])]
    bars = [abs(board[BAR]), abs(board[BAR + 1])]
    numbers = [9999, 0, 0, *points, 1, *dice, 1, 1, 1, 0, 1, -1, 0, 25, *home, *bars, 2, 0, 0, 0]
    return f"board:You:Opponent:{':'.join(map(str, numbers))}"
