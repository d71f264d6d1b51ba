"""Go."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

COLOURS = ("black", "white")
HANDICAP_POINTS = {9: (2, 4, 6), 13: (3, 6, 9), 19: (3, 9, 15)}


@dataclasses.dataclass(frozen=True)
class GoConfig(Config):
    """The board, the komi, and how much of the past is seen."""

    size: int = param(9, low=2, high=25, doc="rows and columns")
    komi: float = param(7.5, low=-1000.0, high=1000.0, doc="points that white has in advance")
    history_length: int = param(8, low=1, high=8, doc="positions in an observation, the current one included")
    observation_type: Literal["pgx", "pettingzoo"] = param("pgx", doc="whose observations")
    max_moves: int = param(0, low=0, high=10_000, doc="moves after which the game is scored; 0: 2 * size * size")


class Go(EnvDef):
    """Two players in turn place stones on the points of a grid; the one who surrounds more of it wins.

    Stones of a colour that touch in a row or a column are a chain. The empty points beside a chain are its liberties. A
    move takes the opponent's chains that it leaves without liberties. A move that would leave its own chain without
    any is not legal (suicide).

    **Agents.** `player_0` (black), who begins, and `player_1` (white). They move in turn: a step is one move, and the
    action of the player who is not to move is ignored.

    **Actions.** `Discrete(size * size + 1)`: the point size * row + column, or the last one to pass. The action mask
    holds the legal moves of the player to move, and zeros for the other one. A player may not at once take back a
    single stone that has just taken a single stone (ko).

    **Observation.** `Box(0, 1, (size, size, 2 * history_length + 1), int8)`: row, column, and plane: 0 holds the
    observing player's own stones now, 1 the opponent's, 2 and 3 those before the last move, and so on. The last plane
    is 1 everywhere for white. With ``observation_type="pettingzoo"`` it is that of PettingZoo's `go_v5`: the first of a
    position's two planes holds the stones of the player who had just moved, whoever observes.

    **Reward.** 1 for the winner and -1 for the loser at the end, 0 otherwise.

    **End.** Both players pass one after the other, or `max_moves` have been made: the score decides. A player's points
    are all but the opponent's stones and the empty points from which a path of empty points leads to one (Tromp and
    Taylor's area). Black needs more than white's points and the komi. A move, other than a pass, that repeats an
    earlier position (positional superko) loses at once. An illegal action of the player to move ends the game with -1
    for that player and 0 for the other; the board and the turn stay as they were.

    **Records.** `gpuzoo.envs.go.sgf.Record` reads and writes games in SGF.

    **Differences from Pgx.** Pgx draws the seats: either player may be black. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal. On large boards a 32-bit product overflows in Pgx,
    which may then take a chain with very many liberties for a chain with one.

    PettingZoo's `go_v5` forbids a move that repeats a position; here such a move loses.
    """

    id = "Go-v0"
    Config = GoConfig
    aliases = (r"go_\d+x\d+",)
    similar = (r"go(_v5)?",)
    invalid_action = -1
    action_mask = True
    turn = "to_move"
    reference = "pgx==2.6.0 go_9x9"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/go/",
        "Tromp-Taylor rules": "https://tromp.github.io/go.html",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"19x19": {"size": 19}}
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "Rows of 19x19 are too long for shared memory; a lane writes a point.",
    }
    render_fps = 4

    @staticmethod
    def config_of(name: str) -> dict[str, Any]:
        found = re.fullmatch(r"go_(\d+)x(\d+)", name)
        if found and found[1] != found[2]:
            raise ValueError(f"{name!r}: boards are square, such as go_9x9 or go_19x19.")
        return {"size": int(found[1])} if found else {}

    def agents(self, cfg: GoConfig) -> dict[str, int]:
        return {"player": 2}

    def lanes(self, cfg: GoConfig) -> int:
        return 32

    def constants(self, cfg: GoConfig) -> dict[str, int]:
        width = cfg.size + 2
        return {
            "SIZE": cfg.size,
            "CELLS": cfg.size**2,
            "STRIDE": width,
            "POINTS": width * width,
            "HISTORY": cfg.history_length,
            "PLANES": 2 * cfg.history_length + 1,
            "MAX_MOVES": cfg.max_moves or 2 * cfg.size**2,
        }

    def observation_space(self, cfg: GoConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.size, cfg.size, 2 * cfg.history_length + 1), np.int8)

    def action_space(self, cfg: GoConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.size**2 + 1)

    def observation_names(self, cfg: GoConfig, group: str) -> dict[str, int]:
        pettingzoo = cfg.observation_type == "pettingzoo"
        players = ("the player who had moved", "the other") if pettingzoo else ("the observing player", "the opponent")
        whose = [f"{who}'s stones" for who in players]
        when = ["now", "a move ago", *(f"{k} moves ago" for k in range(2, cfg.history_length))][: cfg.history_length]
        return {f"{stones} {ago}": 1 for ago in when for stones in whose} | {"everywhere 1: white observes": 1}

    def action_names(self, cfg: GoConfig, group: str) -> dict[str, int]:
        cells = {f"row {k // cfg.size}, column {k % cfg.size}": 1 for k in range(cfg.size**2)}
        return {**cells, "pass": 1}

    def action_cells(self, cfg: GoConfig, group: str) -> tuple[list[int], int]:
        return [*range(cfg.size**2), -1], 0

    def fields(self, cfg: GoConfig) -> dict[str, Field]:
        points = "of each point, with a wall around the board: (size + 2) * (row + 1) + column + 1"
        return {
            "board": Field("int8", ("POINTS",), f"{points}: 0 empty, 1 black, 2 white, 3 wall"),
            "chain": Field("int16", ("POINTS",), "of each stone: the point that names its chain"),
            "next": Field("int16", ("POINTS",), "of each stone: the next one of its chain, in a ring"),
            "liberties": Field("int32", ("POINTS",), "of each chain: pairs of a stone and an empty point beside it"),
            "liberty_sum": Field("int32", ("POINTS",), "of each chain: sum of the empty points of these pairs"),
            "liberty_squares": Field("int32", ("POINTS",), "of each chain: sum of their squares"),
            "history": Field("int16", ("CELLS",), "of each cell: two bits for a position, black and white, now first"),
            "positions": Field("uint64", ("MAX_MOVES",), "hash of the position after each move"),
            "position": Field("uint64", doc="hash of the position"),
            "prisoners": Field("int32", (2,), "stones that each player has taken"),
            "ko": Field("int32", doc="point where the player to move must not play, 0 if there is none"),
            "moves": Field("int32", doc="made so far"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
            "free": Field("uint32", ("STRIDE",), "empty points, a bit for each column", scratch=True),
            "reached": Field("uint32", ("STRIDE",), "where a colour's points end", scratch=True),
            "legal": Field("uint32", ("SIZE",), "legal moves, a bit for each column of the board", scratch=True),
        }

    def render(self, cfg: GoConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, last, mover = cfg.size, int(state["last_move"]), int(state["to_move"])
        board = state["board"].reshape(size + 2, size + 2)[1:-1, 1:-1]
        canvas.background("paper")
        canvas.view(-1, -1, size, size, y_down=True, hud=True)
        canvas.cached(_board, size)
        for row, column in np.argwhere(board > 0).tolist():
            canvas.cached(_stone, column, row, int(board[row, column]) - 1)
        if 0 <= last < size * size:
            canvas.circle(last % size, last // size, 0.16, fill="red")
        taken = "   pass" if last == size * size else ""
        black, white = state["prisoners"].tolist()
        canvas.hud(
            left=f"Go   prisoners: black {black}, white {white}{taken}",
            right=f"player_{mover} ({COLOURS[mover]}) to move",
        )

    def presses(self, cfg: GoConfig, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float]]:
        return [] if action == cfg.size**2 else [(action % cfg.size, action // cfg.size)]

    def move_name(self, cfg: GoConfig, state: Mapping[str, NDArray[Any]], action: int) -> str:
        """A move as the Go Text Protocol writes it, such as ``D4`` or ``pass``; there is no column I."""
        row, column = divmod(action, cfg.size)
        return "pass" if row == cfg.size else f"{'ABCDEFGHJKLMNOPQRSTUVWXYZ'[column]}{cfg.size - row}"


def _board(canvas: Canvas, size: int) -> None:
    """Wood, lines and the handicap points."""
    canvas.rect(-0.8, -0.8, size - 0.2, size - 0.2, fill="#b98d4b", radius=0.15)
    canvas.rect(-0.7, -0.7, size - 0.3, size - 0.3, fill="#dcb468", radius=0.1)
    for k in range(size):
        canvas.line(k, 0, k, size - 1, colour="#6d5128", width=1.2)
        canvas.line(0, k, size - 1, k, colour="#6d5128", width=1.2)
    dots = HANDICAP_POINTS.get(size, ())
    for x in dots:
        for y in dots:
            canvas.circle(x, y, 0.1, fill="#6d5128")


def _stone(canvas: Canvas, x: float, y: float, owner: int) -> None:
    """A stone with a shadow and a light."""
    canvas.circle(x + 0.04, y + 0.06, 0.46, fill="#00000048")
    canvas.circle(x, y, 0.46, fill=("#20242b", "#f2efe8")[owner], outline=("#3b424d", "#c9c4b8")[owner], width=1.2)
    canvas.circle(x - 0.13, y - 0.15, 0.12, fill=("#ffffff22", "#ffffffc0")[owner])
