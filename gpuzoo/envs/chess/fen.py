"""Positions in Forsyth-Edwards notation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

PIECES = ".PNBRQKpnbrqk"  # by code: White's are 1 to 6, Black's 7 to 12
RIGHTS = "QKqk"  # by bit of `castling`
_HOMES = {
    "Q": ((4, "K"), (0, "R")),
    "K": ((4, "K"), (7, "R")),
    "q": ((60, "k"), (56, "r")),
    "k": ((60, "k"), (63, "r")),
}


@dataclasses.dataclass(frozen=True)
class Position:
    """A position: ``board`` holds the code of each cell size * row + column, from White's first row upwards."""

    board: tuple[int, ...]
    to_move: int = 0
    castling: int = 0
    en_passant: int = -1
    halfmove_clock: int = 0
    fullmove_number: int = 1

    @classmethod
    def parse(cls, fen: str, size: int = 8) -> Position:
        """Reads a position.

        Raises:
            ValueError: a text that describes no position of this game.
        """
        parts = fen.split()
        if len(parts) != 6:
            raise ValueError(f"fen {fen!r} must have six fields: board, w or b, castling, en passant, and two numbers.")
        rows = []
        for text in reversed(parts[0].split("/")):
            row: list[int] = []
            for letter in text:
                if letter not in PIECES[1:] and not ("1" <= letter <= "9"):
                    raise ValueError(f"fen {fen!r}: {letter!r} is neither a piece nor a number of empty squares.")
                row += [0] * int(letter) if letter.isdigit() else [PIECES.index(letter)]
            rows.append(row)
        if len(rows) != size or any(len(row) != size for row in rows):
            raise ValueError(f"fen {fen!r} must have {size} rows of {size} squares.")
        board = tuple(code for row in rows for code in row)
        if board.count(6) != 1 or board.count(12) != 1:
            raise ValueError(f"fen {fen!r} must have one king of each colour.")
        if any(code in (1, 7) for code in (*board[:size], *board[-size:])):
            raise ValueError(f"fen {fen!r} has a pawn on the first or the last row.")
        if parts[1] not in ("w", "b"):
            raise ValueError(f"fen {fen!r}: the player to move must be w or b, not {parts[1]!r}.")
        to_move = "wb".index(parts[1])
        try:
            clock, number = int(parts[4]), int(parts[5])
        except ValueError:
            raise ValueError(f"fen {fen!r} must end with two numbers.") from None
        if not (0 <= clock <= 100 and 1 <= number < 10_000):
            raise ValueError(f"fen {fen!r}: the halfmove clock must be 0 to 100, and moves are counted from 1.")
        return cls(
            board,
            to_move,
            _castling(fen, parts[2], board, size),
            _passed(fen, parts[3], board, to_move, size),
            clock,
            number,
        )

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Position:
        """The position of one env, from its fields."""
        boards = state["board"]
        board = boards[int(state["moves"]) % len(boards)]
        numbers = (int(state[name]) for name in list(cls.__dataclass_fields__)[1:])
        return cls(tuple(int(code) for code in board), *numbers)

    def __str__(self) -> str:
        size = round(len(self.board) ** 0.5)
        rows = []
        for row in range(size - 1, -1, -1):
            text = "".join(PIECES[code] for code in self.board[size * row : size * (row + 1)])
            for empty in range(size, 0, -1):
                text = text.replace("." * empty, str(empty))
            rows.append(text)
        rights = "".join(RIGHTS[k] for k in (1, 0, 3, 2) if self.castling >> k & 1) or "-"
        passed = "-" if self.en_passant < 0 else square_name(self.en_passant, size)
        return f"{'/'.join(rows)} {'wb'[self.to_move]} {rights} {passed} {self.halfmove_clock} {self.fullmove_number}"


def square_name(cell: int, size: int = 8) -> str:
    """Such as ``e4``."""
    return f"{'abcdefgh'[cell % size]}{cell // size + 1}"


def _castling(fen: str, text: str, board: tuple[int, ...], size: int) -> int:
    if text == "-":
        return 0
    if size != 8:
        raise ValueError(f"fen {fen!r}: nobody castles on {size} by {size} squares, so the third field must be '-'.")
    for letter in text:
        if letter not in RIGHTS or any(PIECES[board[cell]] != piece for cell, piece in _HOMES[letter]):
            raise ValueError(f"fen {fen!r}: castling {letter!r} needs king and rook on their first squares.")
    return sum(1 << RIGHTS.index(letter) for letter in {*text})


def _passed(fen: str, text: str, board: tuple[int, ...], to_move: int, size: int) -> int:
    if text == "-":
        return -1
    if size == 8 and len(text) == 2 and text[0] in "abcdefgh" and text[1] == "63"[to_move]:
        cell = 8 * (int(text[1]) - 1) + "abcdefgh".index(text[0])
        pawn = cell + (8 if to_move else -8)
        if board[cell] == 0 and PIECES[board[pawn]] == "pP"[to_move]:
            return cell
    raise ValueError(f"fen {fen!r}: no pawn can have passed {text!r} in the last move.")
