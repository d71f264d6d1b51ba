"""What chess on boards of any size shares: spaces, fields, tables, the picture."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.chess import pieces
from gpuzoo.envs.chess.fen import PIECES, Position, square_name
from gpuzoo.render import Canvas

HISTORY, RING = 8, 128
#: rows and columns of a step in each direction, in opposite pairs
DIRECTIONS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (1, -1), (-1, 1))
KNIGHT = ((-1, -2), (1, -2), (-2, -1), (2, -1), (-1, 2), (1, 2), (-2, 1), (2, 1))
PROMOTIONS = ((1, 0), (1, 1), (1, -1))
PROMOTED = ("rook", "bishop", "knight")
COLOURS = ("white", "black")
#: nothing, pawn, knight, bishop, rook, queen, king, in pawns
WORTH = (0, 1, 3, 3, 5, 9, 0)
#: what the rules find out about each direction
LOOKS = {
    "attacks": "squares that the opponent attacks",
    "checkers": "who gives check",
    "evasions": "where that can be blocked or captured",
    "pinned": "who shields the king",
}


@dataclasses.dataclass(frozen=True)
class Geometry:
    """Moves on a board: a plane is a piece's way, a word one of the rules' sets of moves."""

    size: int

    def ways(self) -> list[tuple[int, int]]:
        """Rows and columns of each plane's move."""
        reach = self.size - 1
        queen = [
            (dr * k, dc * k)
            for d, (dr, dc) in enumerate(DIRECTIONS)
            for k in (range(1, reach + 1) if d % 2 else range(reach, 0, -1))
        ]
        return [*(way for _ in range(3) for way in PROMOTIONS), *queen, *KNIGHT]

    def words(self) -> NDArray[np.int32]:
        """The plane of each word."""
        reach = self.size - 1
        slides = [
            9 + reach * d + (k - 1 if d % 2 else reach - k) for k in range(1, reach + 1) for d in range(len(DIRECTIONS))
        ]
        last = 9 + reach * len(DIRECTIONS)
        return np.array([*slides, *range(last, last + 8), *range(9)], np.int32)

    def steps(self, ways: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """By how many bits a set of squares turns for each way, and the squares where one can arrive."""
        turns, arrivals = [], []
        for dr, dc in ways:
            cells = [
                self.size * row + column
                for row in range(self.size)
                for column in range(self.size)
                if 0 <= row - dr < self.size and 0 <= column - dc < self.size
            ]
            turns.append((self.size * dr + dc) % 64)
            arrivals.append(sum(1 << cell for cell in cells))
        return np.array(turns, np.uint64), np.array(arrivals, np.uint64)


@functools.cache
def _ways(size: int) -> list[tuple[int, int]]:
    return Geometry(size).ways()


@dataclasses.dataclass(frozen=True)
class BoardConfig(Config):
    """What the games of this folder share."""

    material_reward: float = param(0.0, doc="reward for each pawn's worth of material that a move wins")


class Board(EnvDef):
    """What the games of this folder share."""

    size: ClassVar[int]
    most_moves: ClassVar[int]
    channels: ClassVar[int]
    invalid_action = -1
    action_mask = True
    chooses = True
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "Sets of 64 squares take two registers each; with half of an SM's threads they would spill.",
        "rows_are_stored_in_few_sectors": "Legal moves lie apart in the mask, and rows of 5x5 begin inside of sectors.",
    }
    turn = "to_move"
    interaction = "competitive"
    render_fps = 2

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"player": 2}

    def lanes(self, cfg: Any) -> int:
        return 8

    def check(self, cfg: Any) -> None:
        Position.parse(cfg.fen, self.size)

    def constants(self, cfg: Any) -> dict[str, int]:
        cells = self.size**2
        return {
            "SIZE": self.size,
            "CELLS": cells,
            "PLANES": 8 * (self.size - 1) + 17,
            "CHANNELS": self.channels,
            "AS_PETTINGZOO": 0,
            "HISTORY": HISTORY,
            "RING": RING,
            "MOST_MOVES": self.most_moves,
            "CASTLING_KEYS": 13 * cells,
            "EN_PASSANT_KEYS": 13 * cells + 16,
            "SIDE_KEY": 14 * cells + 17,
        }

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (self.size, self.size, self.channels), np.float32)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(self.size**2 * (8 * (self.size - 1) + 17))

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        names = {"now": 14} | {f"{k} moves ago" if k > 1 else "1 move ago": 14 for k in range(1, HISTORY)}
        rights = {"castling: own queen's side, own king's side, the opponent's": 4} if self.size == 8 else {}
        return {**names, "colour": 1, "moves": 1, **rights, "halfmove clock": 1}

    def action_names(self, cfg: Any, group: str) -> dict[str, int]:
        cells = [self.size * row + column for column in range(self.size) for row in range(self.size)]
        return {f"from {square_name(cell, self.size)}": 8 * (self.size - 1) + 17 for cell in cells}

    def action_cells(self, cfg: Any, group: str) -> tuple[NDArray[Any], NDArray[Any]]:
        size = self.size
        column, row, plane = np.indices((size, size, 8 * (size - 1) + 17)).reshape(3, -1)
        return size * (size - 1 - row) + column, plane

    def fields(self, cfg: Any) -> dict[str, Field]:
        sets = ("pawns", "knights", "bishops", "rooks", "queens", "kings")
        return {
            "board": Field("uint8", (HISTORY, "CELLS"), "pieces of the last positions, by code; row: move modulo 8"),
            "hashes": Field("uint64", (RING,), "hashes of positions; index: move modulo 128"),
            "legal": Field("uint64", ("PLANES",), "squares from which a legal move starts, for each kind of move"),
            **{name: Field("uint64", doc=f"squares of {name}, as the player to move sees them") for name in sets},
            "own": Field("uint64", doc="squares of the player to move, likewise"),
            "hash": Field("uint64", doc="hash of the position (Zobrist 1970)"),
            "to_move": Field("int32", doc="index of the player to move"),
            "castling": Field("int32", doc="rights, by bit: White's queen's side and king's side, then Black's"),
            "en_passant": Field("int32", doc="the cell that a pawn has just passed, or -1"),
            "halfmove_clock": Field("int32", doc="moves since the last capture or move of a pawn"),
            "fullmove_number": Field("int32", doc="counts Black's moves, from 1"),
            "moves": Field("int32", doc="moves of both players in this game"),
            "repeated": Field("int32", doc="bit k: the position of k moves ago has occurred twice"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
            **{name: Field("uint64", (len(DIRECTIONS),), f"{doc}, by direction", True) for name, doc in LOOKS.items()},
            "attacked": Field("uint64", doc="where the king may not go", scratch=True),
            "target": Field("uint64", doc="where other pieces must go, because of a check", scratch=True),
            "all_pinned": Field("uint64", doc="own pieces that shield the king", scratch=True),
            "pieces": Field("uint32", (HISTORY // 2, "CELLS"), "planes of two positions, as White sees them", True),
            "in_check": Field("int32", doc="whether the player to move is in check", scratch=True),
        }

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        geometry, cells = Geometry(self.size), self.size**2
        position = Position.parse(cfg.fen, self.size)
        by, onto = geometry.steps(DIRECTIONS)
        jump, landing = geometry.steps(KNIGHT)
        plane_of = geometry.words()
        keys = np.random.default_rng(0).integers(1, 2**63, 14 * cells + 18, np.uint64)
        keys[:cells] = 0  # empty
        numbers = [position.to_move, position.castling, position.en_passant]
        numbers += [position.halfmove_clock, position.fullmove_number]
        return {
            "by": by,
            "onto": onto,
            "jump": jump,
            "landing": landing,
            "offset": np.array([self.size * dr + dc for dr, dc in geometry.ways()], np.int32),
            "plane_of": plane_of,
            "word_of": np.argsort(plane_of).astype(np.int32),
            "keys": keys,
            "worth": np.array(WORTH, np.int32),
            "rights_after": _rights_after(cells),
            "start": np.array([*position.board, *numbers], np.int32),
            "start_sets": self._sets(position),
        }

    def _sets(self, position: Position) -> NDArray[np.uint64]:
        """The own pieces, and the six kinds, as the player to move sees them."""
        board = np.array(position.board).reshape(self.size, self.size)[:: -1 if position.to_move else 1].ravel()
        kinds, owner = (board - 1) % 6 + 1, (board - 1) // 6
        of = [(board > 0) & (owner == position.to_move), *((board > 0) & (kinds == k) for k in range(1, 7))]
        return np.array([sum(1 << int(cell) for cell in np.flatnonzero(cells)) for cells in of], np.uint64)

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, position = self.size, Position.of_state(state)
        canvas.background("paper")
        canvas.view(-0.45, -0.45, size + 0.45, size + 0.45, y_down=True, hud=True)
        canvas.cached(pieces.squares, size)
        for cell in self._moved(state):
            row, column = divmod(cell, size)
            canvas.rect(column, size - row - 1, column + 1, size - row, fill="#f6d34480")
        checked = self._checked(state, position)
        for cell, code in enumerate(position.board):
            x, y = cell % size + 0.5, size - cell // size - 0.5
            if PIECES[code] == checked:
                canvas.circle(x, y, 0.47, fill="#e0403090")
            if code:
                canvas.cached(pieces.piece, x, y, (code - 1) % 6 + 1, (code - 1) // 6)
        canvas.hud(
            left=f"move {position.fullmove_number}   {self._last(state)}",
            right=f"player_{position.to_move} ({COLOURS[position.to_move]}) to move",
        )

    def presses(self, cfg: Any, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float] | str]:
        begin, end = self._squares(action, int(state["to_move"]))
        points = [(cell % self.size + 0.5, self.size - cell // self.size - 0.5) for cell in (begin, end)]
        pawn = PIECES[int(state["board"][int(state["moves"]) % HISTORY][begin])] in "Pp"
        if not pawn or end // self.size not in (0, self.size - 1):
            return [*points]
        plane = action % (8 * (self.size - 1) + 17)
        return [*points, PROMOTED[plane // len(PROMOTIONS)] if plane < 9 else "queen"]

    def move_name(self, cfg: Any, state: Mapping[str, NDArray[Any]], action: int) -> str:
        """A move of the player to move as the Universal Chess Interface writes it, such as ``e2e4`` or ``e7e8q``."""
        begin, end = self._squares(action, int(state["to_move"]))
        plane, piece = action % (8 * (self.size - 1) + 17), PIECES[state["board"][int(state["moves"]) % HISTORY][begin]]
        promotes = piece in "Pp" and end // self.size in (0, self.size - 1)
        becomes = ("rbn"[plane // 3] if plane < 9 else "q") if promotes else ""
        return f"{square_name(begin, self.size)}{square_name(end, self.size)}{becomes}"

    def _moved(self, state: Mapping[str, NDArray[Any]]) -> list[int]:
        """Where the last move began and ended."""
        action = int(state["last_move"])
        return [] if action < 0 else self._squares(action, 1 - int(state["to_move"]))

    def _squares(self, action: int, mover: int) -> list[int]:
        """Where a move of a player begins and ends."""
        planes = 8 * (self.size - 1) + 17
        column, row = divmod(action // planes, self.size)
        dr, dc = _ways(self.size)[action % planes]
        rows = [row, row + dr]
        if mover == 1:
            rows = [self.size - 1 - r for r in rows]
        return [self.size * rows[0] + column, self.size * rows[1] + column + dc]

    def _last(self, state: Mapping[str, NDArray[Any]]) -> str:
        moved = self._moved(state)
        return f"last {square_name(moved[0], self.size)}-{square_name(moved[1], self.size)}" if moved else ""

    def _checked(self, state: Mapping[str, NDArray[Any]], position: Position) -> str:
        """The letter of a king that is mated."""
        return "Kk"[position.to_move] if not state["legal"].any() else ""


def _rights_after(cells: int) -> NDArray[np.int32]:
    """Rights to castle that are left when a piece leaves or reaches a cell."""
    out = np.full(cells, 15, np.int32)
    if cells == 64:
        for cell, lost in {0: 1, 7: 2, 4: 3, 56: 4, 63: 8, 60: 12}.items():
            out[cell] &= ~lost
    return out
