"""Positions of checkers in the FEN of Portable Draughts Notation (PDN)."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping
from typing import Any

PIECES = "bw"  #: by player; kings are capital letters
_SQUARES = re.compile(r"(K?)(\d+)(?:-(\d+))?\Z")


def bit_of(square: int, rows: int = 8, columns: int = 8) -> int:
    """The bit of a numbered square in the sets of the rules."""
    place = rows * columns // 2 - square
    return 2 * place + 1 - place // (columns // 2) % 2


def square_at(bit: int, rows: int = 8, columns: int = 8) -> int:
    """The number of the square with a bit."""
    return rows * columns // 2 - bit // 2


@dataclasses.dataclass(frozen=True)
class Position:
    """A position: ``board`` holds a letter for each dark square from 1 on, out of ``.bBwW``.

    Square 1 is the rightmost of black's first row, as black sees it.

    Attributes:
        board: the pieces. Capital letters are kings.
        to_move: 0 for black, 1 for white.
        quiet_moves: moves of both players since the last capture.
        jumper: the square of a piece in the middle of several jumps, or 0.
    """

    board: str
    to_move: int = 0
    quiet_moves: int = 0
    jumper: int = 0

    @classmethod
    def start(cls, rows: int = 8, columns: int = 8) -> Position:
        """Where a game begins."""
        filled = min(3, rows // 2 - 1) * columns // 2
        return cls("b" * filled + "." * (rows * columns // 2 - 2 * filled) + "w" * filled)

    @classmethod
    def parse(cls, fen: str, rows: int = 8, columns: int = 8) -> Position:
        """Reads a position such as ``B:W18,24,K27:B5-8,K32``. ``H`` and ``J`` are described at `Position.__str__`.

        Raises:
            ValueError: a text that describes no position of this game.
        """
        count, parts = rows * columns // 2, fen.strip().removesuffix(".").split(":")
        if parts[0] not in ("B", "W") or sorted(part[:1] for part in parts[1:3]) != ["B", "W"]:
            raise ValueError(f"fen {fen!r} must be like 'B:W18,24,K27:B5-8,K32': who moves, then white's and black's.")
        board = ["."] * count
        for part in parts[1:3]:
            for text in part[1:].split(","):
                for square in _squares(fen, text, count):
                    if board[square - 1] != ".":
                        raise ValueError(f"fen {fen!r} has two pieces on square {square}.")
                    board[square - 1] = part[0] if text[0] == "K" else part[0].lower()
        if "b" in board[-columns // 2 :] or "w" in board[: columns // 2]:
            raise ValueError(f"fen {fen!r} has a man on the last row, where it would be a king.")
        numbers = {"H": 0, "J": 0}
        for part in parts[3:]:
            if part[:1] not in numbers or not part[1:].isdecimal():
                raise ValueError(f"fen {fen!r}: {part!r} is neither H nor J with a number.")
            numbers[part[0]] = int(part[1:])
        to_move, jumper = "BW".index(parts[0]), numbers["J"]
        if jumper and (jumper > count or board[jumper - 1].lower() != PIECES[to_move]):
            raise ValueError(f"fen {fen!r}: the player to move has no piece on square {jumper}.")
        return cls("".join(board), to_move, numbers["H"], jumper)

    @classmethod
    def of_state(cls, state: Mapping[str, Any], rows: int = 8, columns: int = 8) -> Position:
        """The position of one env, from its fields."""
        sets = [int(state[name]) for name in ("pieces_0", "pieces_1", "kings", "jumper")]
        board, jumper = "", 0
        for square in range(1, rows * columns // 2 + 1):
            black, white, king, jumps = (word >> bit_of(square, rows, columns) & 1 for word in sets)
            piece = "b" if black else "w" if white else "."
            board += piece.upper() if king else piece
            jumper = square if jumps else jumper
        return cls(board, int(state["to_move"]), int(state["quiet_moves"]), jumper)

    def can_move(self, rows: int = 8, columns: int = 8) -> bool:
        """Whether the player to move has a legal move."""
        at = {divmod(bit_of(k, rows, columns), columns): piece for k, piece in enumerate(self.board, 1)}
        own, ahead = PIECES[self.to_move], 1 if self.to_move else -1
        jumper = divmod(bit_of(self.jumper, rows, columns), columns) if self.jumper else None
        for (y, x), piece in at.items():
            if piece.lower() != own or jumper not in (None, (y, x)):
                continue
            for dy, dx in itertools.product((ahead, -ahead) if piece.isupper() else (ahead,), (-1, 1)):
                near, far = at.get((y + dy, x + dx), ""), at.get((y + 2 * dy, x + 2 * dx))
                if (near == "." and jumper is None) or (near.lower() == PIECES[1 - self.to_move] and far == "."):
                    return True
        return False

    def sets(self, rows: int = 8, columns: int = 8) -> list[int]:
        """Bits of black's pieces, white's, the kings, and the piece that jumps on."""
        bits = [1 << bit_of(square, rows, columns) for square in range(1, len(self.board) + 1)]
        of = ("bB", "wW", "BW")
        sets = [sum(itertools.compress(bits, (piece in letters for piece in self.board))) for letters in of]
        return [*sets, bits[self.jumper - 1] if self.jumper else 0]

    def __str__(self) -> str:
        """The position. ``H`` follows with the moves since a capture, and ``J`` with a piece that jumps on, if any."""
        sides = []
        for letter in "wb":
            names = [f"K{k}" if piece.isupper() else f"{k}" for k, piece in enumerate(self.board, 1)
                     if piece.lower() == letter]  # fmt: skip
            sides.append(letter.upper() + ",".join(names))
        more = [f"{name}{number}" for name, number in (("H", self.quiet_moves), ("J", self.jumper)) if number]
        return ":".join(["BW"[self.to_move], *sides, *more])


def _squares(fen: str, text: str, count: int) -> range:
    match = _SQUARES.match(text)
    first = int(match[2]) if match else 0
    last = int(match[3] or first) if match else 0
    if not 1 <= first <= last <= count:
        raise ValueError(f"fen {fen!r}: {text!r} is not a square from 1 to {count}, or a range of them.")
    return range(first, last + 1)
