"""Animal shogi (dobutsu shogi)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field
from gpuzoo.render import Canvas

MOST_MOVES = 256
CELLS, CHANNELS = 12, 194
NAMES = ("chick", "elephant", "giraffe", "lion", "hen")
#: columns and rows of a step in each direction; 7 - d is the opposite one
DIRECTIONS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
START = (6, -1, -1, 2, 8, 5, 0, 3, 7, -1, -1, 1)
COLOURS = (("#f7e7b8", "#8a6a2f"), ("#c9dcc0", "#4c6b46"))


def ways(kind: int) -> list[int]:
    """The directions in which a piece goes."""
    straight = [1, 3, 4, 6]
    return [[3], [0, 2, 5, 7], straight, [*range(8)], [0, *straight, 5]][kind]


@dataclasses.dataclass(frozen=True)
class AnimalShogiConfig(Config):
    """Animal shogi has no options."""


class AnimalShogi(EnvDef):
    """Shogi on three by four cells (Kitao and Fujita 2008), with pieces that go one cell at a time.

    Lions go in all directions, giraffes straight, elephants diagonally, chicks one cell on. A chick that reaches the
    last row becomes a hen, which goes everywhere but diagonally back. A player holds the pieces that it captures, a hen
    as a chick, and may drop one on an empty cell instead of a move.

    **Agents.** `player_0`, who begins, and `player_1`. They move in turn: a step is one move, and the action of the
    player who is not to move is ignored. Each player sees the board from its own side.

    **Actions.** `Discrete(132)`. Cells are 4 * column + row; row 0 is the opponent's, and column 0 is on the right. 12
    * d + cell moves the piece from that cell in direction d: (columns, rows) are (-1, -1), (-1, 0), (-1, 1), (0, -1),
    (0, 1), (1, -1), (1, 0), (1, 1). 96 + 12 * kind + cell drops a chick (0), an elephant (1) or a giraffe (2). The
    action mask holds the legal moves of the player to move, and zeros for the other one. A lion may not be left where
    it can be captured.

    **Observation.** `Box(0, 1, (4, 3, 194), float32)`: row from the opponent's side to one's own, column from left to
    right, and plane. Of planes 24 k to 24 k + 23, for k from 0 to 7, the first ten show a board (own chick, elephant,
    giraffe, lion, hen, then the opponent's), twelve show the hands (at least one and two of own chicks, elephants,
    giraffes, then the opponent's), and two whether the position of k moves ago had occurred before not at all, or
    once. The present is k = 0. The past is Pgx's: each step moves a list of eight boards on by 8 numbers instead of
    12, and one of eight hands by 8 instead of 6, and turns each board of the list around. So for k > 0 they show parts
    of several past boards and hands. The last planes are the player's colour (0: `player_0`), and moves of both
    players / 256.

    **Reward.** 1 for the winner, -1 for the loser, 0 for both in a draw.

    **End.** A player without a legal move has lost. A player whose lion reaches the last row has won. The game is a
    draw if a position occurs for the third time, and after 256 moves. An illegal action of the player to move ends the
    game at once with -1 for that player and 0 for the other; the board and the turn stay as they were.

    **Repetitions** are counted by Pgx's hash. It also depends on which pieces were captured where, and, for each
    player, on whether the number of its moves without a capture is odd. So a position that comes back after a capture,
    or after an odd number of moves of each player, mostly counts as a new one.

    **Differences from Pgx.** Pgx draws the seats: either player may begin. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal.
    """

    id = "AnimalShogi-v0"
    Config = AnimalShogiConfig
    aliases = (r"animal_shogi", r"[Dd]obutsu[ _]?[Ss]hogi")
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "pgx==2.6.0 animal_shogi"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {"Pgx": "https://www.sotets.uk/pgx/animal_shogi/"}
    render_fps = 2
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "Rows are too long for shared memory, and cells are written one by one.",
    }

    def agents(self, cfg: AnimalShogiConfig) -> dict[str, int]:
        return {"player": 2}

    def lanes(self, cfg: AnimalShogiConfig) -> int:
        return 8

    def constants(self, cfg: AnimalShogiConfig) -> dict[str, int]:
        return {"MOST_MOVES": MOST_MOVES, "HAND_KEYS": 10 * CELLS, "SIDE_KEY": 10 * CELLS + 18}

    def observation_space(self, cfg: AnimalShogiConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (4, 3, CHANNELS), np.float32)

    def action_space(self, cfg: AnimalShogiConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(11 * CELLS)

    def observation_names(self, cfg: AnimalShogiConfig, group: str) -> dict[str, int]:
        return {"now": 24, **{f"past, {k}": 24 for k in range(1, 8)}, "colour": 1, "moves": 1}

    def action_names(self, cfg: AnimalShogiConfig, group: str) -> dict[str, int]:
        moves = {f"move by {dx} columns and {dy} rows": CELLS for dx, dy in DIRECTIONS}
        return {**moves, **{f"drop {kind}": CELLS for kind in NAMES[:3]}}

    def action_cells(self, cfg: AnimalShogiConfig, group: str) -> tuple[NDArray[Any], NDArray[Any]]:
        kind, column, row = np.indices((11, 3, 4)).reshape(3, -1)
        return 3 * row + 2 - column, kind

    def fields(self, cfg: AnimalShogiConfig) -> dict[str, Field]:
        return {
            "history": Field("int8", (8, CELLS), "pieces, -1 for none, as the player to move sees them; row 0: now"),
            "hands": Field("int8", (8, 6), "chicks, elephants, giraffes in hand, own ones first; row 0: now"),
            "repetitions": Field("uint8", (8,), "how often the positions of the last moves had been there before"),
            "hashes": Field("uint64", (MOST_MOVES + 1,), "hashes of positions by move"),
            "legal": Field("uint32", (11,), "cells of legal moves, for each direction and each kind of drop"),
            "hash": Field("uint64", doc="hash of the position"),
            "to_move": Field("int32", doc="index of the player to move"),
            "moves": Field("int32", doc="moves of both players in this game"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
            "board": Field("int8", (CELLS,), "the board after a move, before it is turned", scratch=True),
            "hand": Field("int8", (6,), "the hands, likewise", scratch=True),
            "next_history": Field("int8", (8 * CELLS,), "boards, likewise", scratch=True),
            "next_hands": Field("int8", (48,), "all hands, likewise", scratch=True),
            "cells": Field("uint32", (11,), "cells of each piece, and empty ones", scratch=True),
            "going": Field("uint32", (8,), "own pieces that can go in each direction", scratch=True),
            "shown": Field("uint32", (8 * CELLS,), "the piece on each cell of the history, as a bit", scratch=True),
            "known": Field("uint32", (2 * 8,), "what each player observes of hands and repetitions", scratch=True),
            "coming": Field("uint32", (8,), "the opponent's pieces that can", scratch=True),
        }

    def tables(self, cfg: AnimalShogiConfig) -> dict[str, NDArray[Any]]:
        cells = [(x, y) for x in range(3) for y in range(4)]
        onto = [sum(1 << 4 * x + y for x, y in cells if 0 <= x - dx < 3 and 0 <= y - dy < 4) for dx, dy in DIRECTIONS]
        return {
            "by": np.array([4 * dx + dy for dx, dy in DIRECTIONS], np.int32),
            "onto": np.array(onto, np.int32),
            "ways": np.array([sum(1 << d for d in ways(kind)) for kind in range(5)], np.int32),
            "start": np.array(START, np.int32),
            "keys": np.random.default_rng(0).integers(1, 2**63, 10 * CELLS + 19, np.uint64),
        }

    def render(self, cfg: AnimalShogiConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        mover, action = int(state["to_move"]), int(state["last_move"])
        board, hands = state["history"][0].astype(int), state["hands"][0].reshape(2, 3).astype(int)
        if mover == 1:
            board, hands = board[::-1], hands[::-1]
            board = np.where(board < 0, board, (board + 5) % 10)
        canvas.background("paper")
        canvas.view(-1.4, -0.2, 4.4, 4.2, y_down=True, hud=True)
        canvas.cached(_cells)
        if action >= 0:
            to = action % CELLS
            if action < 8 * CELLS:
                dx, dy = DIRECTIONS[action // CELLS]
                to += 4 * dx + dy
            if mover == 0:
                to = CELLS - 1 - to
            x, y = 2 - to // 4, to % 4
            canvas.rect(x + 0.03, y + 0.03, x + 0.97, y + 0.97, fill="#f6d34490", radius=0.06)
        for cell, piece in enumerate(board):
            if piece >= 0:
                canvas.cached(_piece, 2 - cell // 4 + 0.5, cell % 4 + 0.5, 0.42, int(piece) % 5, int(piece) // 5)
        for owner in range(2):
            held = [kind for kind in range(3) for _ in range(hands[owner, kind])]
            for k, kind in enumerate(held):
                canvas.cached(_piece, *_held(k, owner), 0.29, kind, owner)
        canvas.hud(left=f"Animal shogi   move {int(state['moves'])}", right=f"player_{mover} to move")

    def presses(
        self, cfg: AnimalShogiConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float]]:
        mirrored = int(state["to_move"]) == 1
        cell = action % CELLS
        if action < 8 * CELLS:
            dx, dy = DIRECTIONS[action // CELLS]
            begin = _square(cell, mirrored)
            return [begin, _square(cell + 4 * dx + dy, mirrored)]
        kind = action // CELLS - 8
        held = int(state["hands"][0][:kind].sum())  # own tiles before it
        return [_held(held, int(mirrored)), _square(cell, mirrored)]


def _square(cell: int, mirrored: bool) -> tuple[float, float]:
    """The middle of a cell, which the other player sees turned round."""
    cell = CELLS - 1 - cell if mirrored else cell
    return 2.5 - cell // 4, cell % 4 + 0.5


def _held(k: int, owner: int) -> tuple[float, float]:
    """Where the k-th tile in a hand lies."""
    return (3.7, 3.65 - 0.66 * k) if owner == 0 else (-0.7, 0.35 + 0.66 * k)


def _cells(canvas: Canvas) -> None:
    canvas.rect(-0.1, -0.1, 3.1, 4.1, fill="#7c5a3a", radius=0.1)
    for x in range(3):
        for y in range(4):
            fill = "#cfe3f2" if y == 0 else "#dcefc9" if y == 3 else "#f4ead6"
            canvas.rect(x + 0.02, y + 0.02, x + 0.98, y + 0.98, fill=fill, radius=0.05)


def _piece(canvas: Canvas, x: float, y: float, r: float, kind: int, owner: int) -> None:
    """A tile that points to the opponent, with a dot for each direction in which it goes."""
    fill, edge = COLOURS[owner]
    sign = 1 if owner == 0 else -1
    corners = np.array([(-0.82, 0.9), (0.82, 0.9), (0.82, -0.7), (0.45, -0.95), (-0.45, -0.95), (-0.82, -0.7)])
    canvas.polygon(corners * (r, sign * r) + (x + 0.03, y + 0.04), fill="#00000035")
    canvas.polygon(corners * (r, sign * r) + (x, y), fill=fill, outline=edge, width=1.6)
    canvas.text(x, y, "CEGLH"[kind], height=0.75 * r, colour=edge, bold=True)
    for d in ways(kind):
        dx, dy = DIRECTIONS[d]
        canvas.circle(x - sign * dx * 0.62 * r, y + sign * dy * 0.7 * r, 0.1 * r, fill="#d0453b")
    if r > 0.4:
        canvas.text(x, y + sign * 0.48 * r, NAMES[kind], height=0.2 * r, colour=edge)
