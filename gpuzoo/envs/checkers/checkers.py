"""Checkers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.checkers.fen import Position, bit_of, square_at
from gpuzoo.render import Canvas

COLOURS = ("black", "white")
#: what a cell shows, in the order of the planes
CHANNELS = (
    "own men",
    "own kings",
    "men of the opponent",
    "kings of the opponent",
    "piece that must jump on",
    "a quarter of the moves to a draw",
    "half of them",
    "three quarters of them",
)
_CROWN = ((-0.17, 0.12), (-0.21, -0.12), (-0.09, -0.01), (0.0, -0.18), (0.09, -0.01), (0.21, -0.12), (0.17, 0.12))


@dataclasses.dataclass(frozen=True)
class CheckersConfig(Config):
    """The board, the draw, and where games begin."""

    rows: int = param(8, low=4, high=16, doc="rows of the board, an even number")
    columns: int = param(8, low=4, high=16, doc="columns of the board, an even number; at most 64 cells")
    most_quiet_moves: int = param(40, low=1, high=10_000, doc="moves without a capture that end a game as a draw")
    fen: str = param("", doc="the first position, in PDN's FEN; empty: men on their rows, and black to move")


class Checkers(EnvDef):
    """Two players in turn move men along diagonals and jump over the opponent's; who cannot move has lost.

    These are American checkers, or English draughts. Pieces stand on dark cells. Each player has twelve men, on the
    three rows of its own side. A man steps to the next cell of a diagonal ahead of it, if that is free. A piece
    captures an opponent's piece on the next cell of a diagonal by a jump to the free cell behind it. Men step and jump
    forwards only. A man that reaches the last row becomes a king, which steps and jumps one cell forwards or backwards
    too.

    A player who can capture must capture, with any piece that can. A piece that has jumped and can jump again must go
    on: the same player moves again. A man that has just become a king stops.

    **Agents.** `player_0` (black), who begins, and `player_1` (white). A step is one step or one jump of a piece, and
    the action of the player who is not to move is ignored. After a jump the same player may be to move again. Each
    player sees the board from its own side: its men move up.

    **Actions.** `Discrete(128)`: 64 * back + 2 * square + right. The square is where the piece starts, 0 to 31 row by
    row from the top left, as the mover sees it: rows 0, 2, 4 and 6 have their dark cells in columns 1, 3, 5 and 7, the
    other rows in columns 0, 2, 4 and 6. ``back`` is 1 for a move towards the own side, ``right`` is 1 for one to the
    right. The move is a jump where the next cell is the opponent's. On other boards the numbers are rows * columns *
    back + 2 * square + right. The action mask holds the legal moves of the player to move, and zeros for the other one.

    **Observation.** `Box(0, 1, (8, 8, 8), int8)`: row, column, and plane, as the observing player sees the board.
    Planes 0 and 1 hold the own men and kings, 2 and 3 the men and kings of the opponent, 4 the piece of either player
    that must jump on. Planes 5, 6 and 7 are 1 everywhere if the moves since the last capture are at least a quarter, a
    half and three quarters of ``most_quiet_moves``.

    **Reward.** 1 for the winner and -1 for the loser at the end, 0 otherwise.

    **End.** A player who is to move and cannot, or has no pieces, has lost. Forty moves of both players in a row
    without a capture (``most_quiet_moves``) are a draw, also where the last one leaves the opponent without a move. So
    a game has at most 920 moves: 23 captures, each after 39 quiet moves. There is no time limit. An illegal action of
    the player to move ends the game at once with -1 for that player and 0 for the other; the board and the turn stay as
    they were.

    **Options.** ``rows`` and ``columns`` are even, and the board has at most 64 cells. Men fill three rows of each
    side, two on a board of six rows, and one on a board of four.

    **Positions.** ``fen`` is where games begin, as Portable Draughts Notation writes it: ``B:W18,24,K27:B5-8,K32`` says
    that black moves, and where white's and black's men and kings are. Squares are counted from 1, row by row from
    black's side, from the right to the left as black sees it. ``H12`` may follow for twelve moves since the last
    capture, and ``J15`` for a piece on square 15 that must jump on. The player to move must have a move.
    `gpuzoo.envs.checkers.fen.Position.of_state(state)` is the position of an env, from its fields, and ``str`` writes
    it.

    **Differences from OpenSpiel.** Its 512 actions have numbers for light cells too, and tell steps from jumps. It
    calls the player who begins white. Its observation has a plane for empty cells, but none for the piece that must
    jump on or the moves to a draw, and the board is not turned for the second player. It fills three rows on every
    board, so nobody can move on six rows.
    """

    id = "Checkers-v0"
    Config = CheckersConfig
    aliases = (r"(American[ _])?[Cc]heckers", r"[Ee]nglish[ _][Dd]raughts")
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "open_spiel 2.0.2 checkers"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "OpenSpiel": "https://github.com/google-deepmind/open_spiel/blob/master/docs/games.md",
        "Portable Draughts Notation": "https://en.wikipedia.org/wiki/Portable_Draughts_Notation",
    }
    render_fps = 2

    def agents(self, cfg: CheckersConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: CheckersConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.rows, cfg.columns, len(CHANNELS)), np.int8)

    def action_space(self, cfg: CheckersConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2 * cfg.rows * cfg.columns)

    def observation_names(self, cfg: CheckersConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(CHANNELS, 1)

    def action_names(self, cfg: CheckersConfig, group: str) -> dict[str, int]:
        names = {}
        for action in range(2 * cfg.rows * cfg.columns):
            row, column = divmod(self._cell(cfg, action), cfg.columns)
            way = ("forwards", "backwards")[action // (cfg.rows * cfg.columns)], ("left", "right")[action % 2]
            names[f"row {row}, column {column}: {' '.join(way)}"] = 1
        return names

    def action_cells(self, cfg: CheckersConfig, group: str) -> tuple[list[int], list[int]]:
        actions, cells = range(2 * cfg.rows * cfg.columns), cfg.rows * cfg.columns
        return [self._cell(cfg, k) for k in actions], [2 * (k // cells) + k % 2 for k in actions]

    def check(self, cfg: CheckersConfig) -> None:
        for name, number in (("rows", cfg.rows), ("columns", cfg.columns)):
            if number % 2:
                raise ValueError(f"{self.id}: {name} must be even, not {number}.")
        if cfg.rows * cfg.columns > 64:
            raise ValueError(f"{self.id}: a board has at most 64 cells, not {cfg.rows} * {cfg.columns}.")
        start = self._start(cfg)
        if not start.can_move(cfg.rows, cfg.columns):
            raise ValueError(f"{self.id}: fen {cfg.fen!r} leaves the player to move without a move.")
        if start.quiet_moves >= cfg.most_quiet_moves:
            raise ValueError(f"{self.id}: with most_quiet_moves {cfg.most_quiet_moves}, fen {cfg.fen!r} is a draw.")

    def constants(self, cfg: CheckersConfig) -> dict[str, int]:
        return {
            "COLUMNS": cfg.columns,
            "CELLS": cfg.rows * cfg.columns,
            "CHANNELS": len(CHANNELS),
            "MOST_QUIET_MOVES": cfg.most_quiet_moves,
        }

    def tables(self, cfg: CheckersConfig) -> dict[str, NDArray[Any]]:
        start = self._start(cfg)
        return {"start": np.array([*start.sets(cfg.rows, cfg.columns), start.to_move, start.quiet_moves], np.uint64)}

    def fields(self, cfg: CheckersConfig) -> dict[str, Field]:
        return {
            "pieces_0": Field("uint64", doc="cells of player_0's pieces: bit columns * row + column, as it sees them"),
            "pieces_1": Field("uint64", doc="cells of player_1's pieces, likewise"),
            "kings": Field("uint64", doc="cells of both players' kings, likewise"),
            "jumper": Field("uint64", doc="the cell of a piece that must jump on, likewise, or 0"),
            "legal": Field("uint64", (2,), "legal moves up and down, likewise: bit 2 * square + right"),
            "to_move": Field("int32", doc="index of the player to move"),
            "quiet_moves": Field("int32", doc="moves of both players since the last capture"),
            "last_move": Field("int32", doc="the last action as player_0 sees it, -1 before the first"),
        }

    def render(self, cfg: CheckersConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        position = Position.of_state(state, cfg.rows, cfg.columns)
        rows, columns, side = cfg.rows, cfg.columns, max(cfg.rows, cfg.columns)
        canvas.background("paper")
        left, top = (columns - side) / 2 - 0.3, (rows - side) / 2 - 0.3
        canvas.view(left, top, left + side + 0.6, top + side + 0.6, y_down=True, hud=True)
        canvas.cached(_board, rows, columns)
        for cell in self._last_cells(cfg, state):
            y, x = divmod(cell, columns)
            canvas.rect(x, y, x + 1, y + 1, fill="#f6d34450")
        starts = {self._cell(cfg, k) for k in self._legal(cfg, state)}
        for square, piece in enumerate(position.board, 1):
            if piece == ".":
                continue
            cell = bit_of(square, rows, columns)
            y, x = divmod(cell, columns)
            if cell in starts:
                canvas.circle(x + 0.5, y + 0.5, 0.46, fill="#f6d344c0" if square == position.jumper else "#ffffff70")
            canvas.cached(_piece, x + 0.5, y + 0.5, "bw".index(piece.lower()), piece.isupper())
        counts = [sum(piece.lower() == colour for piece in position.board) for colour in "bw"]
        again = " again" if position.jumper else ""
        canvas.hud(
            left=f"Checkers   black {counts[0]}, white {counts[1]}",
            right=f"player_{position.to_move} ({COLOURS[position.to_move]}) to move{again}",
        )

    def presses(
        self, cfg: CheckersConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float] | str]:
        cells = self._cells(cfg, self._turned(cfg, action, int(state["to_move"])), self._pieces(state))
        return [(cell % cfg.columns + 0.5, cell // cfg.columns + 0.5) for cell in (cells[0], cells[-1])]

    def move_name(self, cfg: CheckersConfig, state: Mapping[str, NDArray[Any]], action: int) -> str:
        """A move of the player to move as PDN writes it, such as ``11-15`` or ``15x22``."""
        cells = self._cells(cfg, self._turned(cfg, action, int(state["to_move"])), self._pieces(state))
        begin, *_, end = (square_at(cell, cfg.rows, cfg.columns) for cell in cells)
        return f"{begin}{'-x'[len(cells) - 2]}{end}"

    @staticmethod
    def _start(cfg: CheckersConfig) -> Position:
        return Position.parse(cfg.fen, cfg.rows, cfg.columns) if cfg.fen else Position.start(cfg.rows, cfg.columns)

    @staticmethod
    def _turned(cfg: CheckersConfig, action: int, player: int) -> int:
        """An action of a player as player_0 sees it."""
        return 2 * cfg.rows * cfg.columns - 1 - action if player else action

    @staticmethod
    def _cell(cfg: CheckersConfig, move: int) -> int:
        """Where a move starts."""
        return bit_of(square_at(move % (cfg.rows * cfg.columns), cfg.rows, cfg.columns), cfg.rows, cfg.columns)

    @staticmethod
    def _pieces(state: Mapping[str, NDArray[Any]]) -> int:
        return int(state["pieces_0"]) | int(state["pieces_1"])

    def _cells(self, cfg: CheckersConfig, move: int, over: int) -> list[int]:
        """Where a move starts and ends, and what it jumps over: the next cell, if that is in the set ``over``."""
        start = self._cell(cfg, move)
        by = (cfg.columns if move >= cfg.rows * cfg.columns else -cfg.columns) + (1 if move % 2 else -1)
        jumps = 0 <= start + by < cfg.rows * cfg.columns and over >> start + by & 1
        return [start, start + by, start + 2 * by] if jumps else [start, start + by]

    def _last_cells(self, cfg: CheckersConfig, state: Mapping[str, NDArray[Any]]) -> list[int]:
        """Where the last move started and ended: at the next cell, unless that is empty now."""
        if state["last_move"] < 0:
            return []
        cells = self._cells(cfg, int(state["last_move"]), ~self._pieces(state))
        return [cells[0], cells[-1]]

    @staticmethod
    def _legal(cfg: CheckersConfig, state: Mapping[str, NDArray[Any]]) -> list[int]:
        """The legal moves as player_0 sees them."""
        cells = cfg.rows * cfg.columns
        return [cells * half + k for half in (0, 1) for k in range(cells) if int(state["legal"][half]) >> k & 1]


def _board(canvas: Canvas, rows: int, columns: int) -> None:
    """The cells with the numbers of the dark ones."""
    canvas.rect(-0.15, -0.15, columns + 0.15, rows + 0.15, fill="#4a2f22", radius=0.12)
    for cell in range(rows * columns):
        y, x = divmod(cell, columns)
        dark = (x + y) % 2
        canvas.rect(x, y, x + 1, y + 1, fill="#7d5540" if dark else "#ecdcc0")
        if dark:
            name = str(square_at(cell, rows, columns))
            canvas.text(x + 0.06, y + 0.06, name, height=0.17, colour="#d9c1a3", anchor="lt")


def _piece(canvas: Canvas, x: float, y: float, owner: int, king: bool) -> None:
    """A man, or two on top of each other with a crown."""
    fill, edge, ring = (("#2b2f36", "#0f1114", "#4d545f"), ("#f7f2e8", "#b9ad98", "#d8cdb9"))[owner]
    canvas.circle(x + 0.03, y + 0.06, 0.38, fill="#00000050")
    canvas.circle(x, y, 0.38, fill=fill, outline=edge, width=1.5)
    canvas.circle(x, y, 0.3, outline=ring, width=1.5)
    if not king:
        canvas.circle(x, y, 0.2, outline=ring, width=1.5)
        return
    canvas.polygon([(x + dx, y + dy) for dx, dy in _CROWN], fill="#e3b341", outline="#8a6414", width=1.2)
    for dx, dy in (_CROWN[1], _CROWN[3], _CROWN[5]):
        canvas.circle(x + dx, y + dy, 0.035, fill="#e3b341", outline="#8a6414", width=1.0)
