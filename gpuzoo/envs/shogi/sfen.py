"""Positions of shogi in SFEN, the notation of the Universal Shogi Interface."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

SIDE = 14
LETTERS = "PLNSBRGK"  # by kind; a promoted piece has its kind's letter after a +
HELD = "RBGSNLP"  # the order of pieces in hand


@dataclasses.dataclass(frozen=True)
class Position:
    """A position: ``board`` holds the pieces of cells 9 * column + row as black sees them, from the upper right.

    Pieces are -1 for none, 0 to 13 for black's and 14 to 27 for white's. ``hands`` counts pawns, lances, knights,
    silvers, bishops, rooks and golds of black, and then of white.
    """

    board: tuple[int, ...]
    hands: tuple[int, ...] = (0,) * 14
    to_move: int = 0
    number: int = 1

    @classmethod
    def parse(cls, sfen: str) -> Position:
        """Reads a position.

        Raises:
            ValueError: a text that describes no position.
        """
        parts = sfen.split()
        if len(parts) != 4:
            raise ValueError(f"sfen {sfen!r} must have four fields: board, b or w, pieces in hand, and a number.")
        rows = [_row(sfen, text) for text in parts[0].split("/")]
        if len(rows) != 9 or any(len(row) != 9 for row in rows):
            raise ValueError(f"sfen {sfen!r} must have 9 rows of 9 cells.")
        board = tuple(rows[row][8 - column] for column in range(9) for row in range(9))
        if board.count(7) != 1 or board.count(SIDE + 7) != 1:
            raise ValueError(f"sfen {sfen!r} must have one king of each colour.")
        for column in range(9):
            cells = board[9 * column : 9 * column + 9]
            if cells.count(0) > 1 or cells.count(SIDE) > 1:
                raise ValueError(f"sfen {sfen!r} has two pawns of one player in a column.")
            stuck = {cells[0]} & {0, 1, 2} | {cells[1]} & {2} | {cells[8]} & {14, 15, 16} | {cells[7]} & {16}
            if stuck:
                raise ValueError(f"sfen {sfen!r} has a pawn, lance or knight that could never move.")
        if parts[1] not in ("b", "w"):
            raise ValueError(f"sfen {sfen!r}: the player to move must be b or w, not {parts[1]!r}.")
        if not parts[3].isdecimal() or not 1 <= int(parts[3]) <= 512:
            raise ValueError(f"sfen {sfen!r} must end with the number of the next move, 1 to 512.")
        return cls(board, _hands(sfen, parts[2]), "bw".index(parts[1]), int(parts[3]))

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Position:
        """The position of one env, from its fields."""
        to_move = int(state["to_move"])
        seen = cls(tuple(map(int, state["board"])), tuple(map(int, state["hands"])), to_move, int(state["moves"]) + 1)
        return seen if to_move == 0 else dataclasses.replace(seen, board=seen.turned().board, hands=seen.turned().hands)

    def turned(self) -> Position:
        """The same position as the other player sees it."""
        board = tuple(-1 if piece < 0 else (piece + SIDE) % (2 * SIDE) for piece in reversed(self.board))
        return dataclasses.replace(self, board=board, hands=self.hands[7:] + self.hands[:7])

    def __str__(self) -> str:
        rows = []
        for row in range(9):
            text = "".join(piece_name(self.board[9 * column + row]) for column in range(8, -1, -1))
            for empty in range(9, 0, -1):
                text = text.replace("." * empty, str(empty))
            rows.append(text)
        held = ""
        for side in range(2):
            for letter in HELD:
                count = self.hands[7 * side + LETTERS.index(letter)]
                number = "" if count == 1 else str(count)
                held += (number + (letter.lower() if side else letter)) if count else ""
        return f"{'/'.join(rows)} {'bw'[self.to_move]} {held or '-'} {self.number}"


def piece_name(piece: int) -> str:
    """Such as ``+P``, or ``.`` for none; white's are in lower case."""
    if piece < 0:
        return "."
    kind = piece % SIDE
    letter = ("+" if kind > 7 else "") + LETTERS[kind % 8]
    return letter.lower() if piece >= SIDE else letter


def _row(sfen: str, text: str) -> list[int]:
    row: list[int] = []
    promoted = 0
    for letter in text:
        kind = LETTERS.find(letter.upper())
        if letter == "+" and not promoted:
            promoted = 8
        elif letter in "123456789" and not promoted:
            row += [-1] * int(letter)
        elif kind >= 0 and not (promoted and kind > 5):
            row.append(kind + promoted + (SIDE if letter.islower() else 0))
            promoted = 0
        else:
            raise ValueError(f"sfen {sfen!r}: {letter!r} is neither a piece nor a number of empty cells.")
    return row


def _hands(sfen: str, text: str) -> tuple[int, ...]:
    held, number = [0] * 14, ""
    for letter in "" if text == "-" else text:
        if letter.isdecimal():
            number += letter
        elif letter.upper() in HELD and int(number or 1) in range(1, 19):
            held[LETTERS.index(letter.upper()) + (7 if letter.islower() else 0)] += int(number or 1)
            number = ""
        else:
            raise ValueError(f"sfen {sfen!r}: {letter!r} is no piece that a player can hold.")
    if number or max(held) > 18:
        raise ValueError(
            f"sfen {sfen!r}: the pieces in hand must be letters, each with a number of at most 18 before it."
        )
    return tuple(held)
