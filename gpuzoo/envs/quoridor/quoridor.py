"""Quoridor."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

CHANNELS = 6
#: rows and columns of a pawn's step, as the player sees them
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
STEP_NAMES = ("up", "down", "left", "right", "up and left", "up and right", "down and left", "down and right")
KINDS = ("horizontal", "vertical")
PAWNS = (("#2f6cc0", "#1d4a8a"), ("#d9483b", "#96291f"))
WALL, NEW_WALL = "#e2a63b", "#ffd874"


@dataclasses.dataclass(frozen=True)
class QuoridorConfig(Config):
    """The board, and how many walls each player has."""

    board_size: int = param(9, low=3, high=9, doc="rows and columns of cells")
    walls: int = param(-1, low=-1, high=64, doc="walls of each player at first; -1: board_size * board_size // 8")

    @property
    def first_walls(self) -> int:
        """Walls of each player at first."""
        return self.board_size**2 // 8 if self.walls < 0 else self.walls


class Quoridor(EnvDef):
    """Two players in turn walk to the opposite side of a board, or place a wall in the other's way (Marchesi 1997).

    The board has nine rows and nine columns, or ``board_size`` of both. The pawns begin in column ``board_size`` // 2
    of the first and the last row. A pawn walks one cell up, down, left or right, but through no wall. It jumps over the
    other pawn if that stands on the next cell: straight on if the cell behind is on the board and no wall stands
    between, and else diagonally to either cell beside the other pawn that no wall separates from it.

    Each player has ten walls at first: ``walls``, or one for eight cells. A wall stands between two rows or two columns
    and is two cells long. Walls may touch, but not cross or overlap, and they stay. Each pawn must keep a way to its
    goal; pawns block no way in this sense.

    **Agents.** `player_0`, who begins in the last row and walks to row 0, and `player_1`, who comes from there. They
    move in turn: a step is one move, and the action of the player who is not to move is ignored. `player_1` sees the
    board with the order of its rows reversed. So both players walk up, and the first position is the same to both.

    **Actions.** `Discrete(136)`, or 8 + 2 * (``board_size`` - 1)², as the player sees the board, with n for
    ``board_size`` - 1:

    | actions | move |
    |---|---|
    | 0 to 3 | the pawn goes up, down, left, right: one cell, or two with a jump |
    | 4 to 7 | it jumps diagonally: up and left, up and right, down and left, down and right |
    | 8 + n * row + column | a horizontal wall below the cells (row, column) and (row, column + 1) |
    | 8 + n² + n * row + column | a vertical wall to the right of the cells (row, column) and (row + 1, column) |

    The action mask holds the legal moves of the player to move, and zeros for the other one. A player has always a
    legal move of its pawn.

    **Observation.** `Box(0, 1, (9, 9, 6), float32)`: row, column, and plane, as the player sees the board. Plane 0 is
    the own pawn, and 1 the opponent's. Plane 2 has the horizontal walls and 3 the vertical ones, each as a 1 in the
    cell (row, column) that gives it its number. Planes 4 and 5 have everywhere what is left of the own walls and of the
    opponent's, as a part of the walls at first.

    **Reward.** 1 for the winner and -1 for the loser at the end, 0 otherwise.

    **End.** A pawn in the row of its goal wins. The game is a draw after 4 * ``board_size``² moves of both players,
    even if the last of them reaches the goal. An illegal action of the player to move ends the game at once with -1 for
    that player and 0 for the other; the board and the turn stay as they were.

    **Differences from OpenSpiel.** Games are for two players only; OpenSpiel has up to four. OpenSpiel numbers actions
    by places on a board of (2 * ``board_size`` - 1)² cells and edges, which both players see from the same side. Its
    observation of two players shows no walls. ``board_size`` is 9 at most, and 25 there.
    """

    id = "Quoridor-v0"
    Config = QuoridorConfig
    aliases = (r"[Qq]uoridor",)
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "open_spiel 2.0.2 quoridor"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {"OpenSpiel": "https://openspiel.readthedocs.io/en/latest/games.html"}
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"5x5": {"board_size": 5}}
    render_fps = 2
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "Sets of 81 cells take four registers each; with half of an SM's threads they would spill.",
    }

    def agents(self, cfg: QuoridorConfig) -> dict[str, int]:
        return {"player": 2}

    def lanes(self, cfg: QuoridorConfig) -> int:
        return 8

    def constants(self, cfg: QuoridorConfig) -> dict[str, int]:
        return {
            "SIZE": cfg.board_size,
            "CHANNELS": CHANNELS,
            "MOST_WALLS": cfg.first_walls,
            "MOST_MOVES": 4 * cfg.board_size**2,
        }

    def observation_space(self, cfg: QuoridorConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (cfg.board_size, cfg.board_size, CHANNELS), np.float32)

    def action_space(self, cfg: QuoridorConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(len(STEPS) + 2 * (cfg.board_size - 1) ** 2)

    def observation_names(self, cfg: QuoridorConfig, group: str) -> dict[str, int]:
        return {
            "pawn of the observing player": 1,
            "pawn of the opponent": 1,
            "horizontal walls": 1,
            "vertical walls": 1,
            "everywhere: part of the own walls that is left": 1,
            "everywhere: part of the opponent's walls that is left": 1,
        }

    def action_names(self, cfg: QuoridorConfig, group: str) -> dict[str, int]:
        n = cfg.board_size - 1
        places = [(kind, *divmod(k, n)) for kind in KINDS for k in range(n * n)]
        walls = {f"{kind} wall at row {row}, column {column}": 1 for kind, row, column in places}
        return {**{f"pawn {name}": 1 for name in STEP_NAMES}, **walls}

    def action_cells(self, cfg: QuoridorConfig, group: str) -> tuple[NDArray[Any], NDArray[Any]]:
        n = cfg.board_size - 1
        kind, row, column = np.indices((2, n, n)).reshape(3, -1)
        cells = np.r_[np.full(len(STEPS), -1), cfg.board_size * row + column]
        return cells, np.r_[np.zeros(len(STEPS), int), kind]

    def fields(self, cfg: QuoridorConfig) -> dict[str, Field]:
        place = "bit (board_size - 1) * row + column"
        return {
            "horizontal": Field("uint64", doc=f"walls between rows: {place} of the cell above them and to their left"),
            "vertical": Field("uint64", doc="walls between columns, likewise"),
            "pawn": Field("int32", ("agents",), "cell of each pawn: board_size * row + column"),
            "walls_left": Field("int32", ("agents",), "walls that each player still has"),
            "to_move": Field("int32", doc="index of the player to move"),
            "moves": Field("int32", doc="moves of both players in this game"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
            "places": Field("uint64", (2,), "where horizontal and vertical walls may be placed", scratch=True),
            "joining": Field("uint64", (2,), "where they would join two walls, or a wall and the border", scratch=True),
            "risky": Field("uint64", (4,), "where they would also cross a certain way of each player", scratch=True),
            "closing": Field("uint64", (2,), "where they would close a player's last way", scratch=True),
        }

    def tables(self, cfg: QuoridorConfig) -> dict[str, NDArray[Any]]:
        rows = range(1 << cfg.board_size)
        spread = [sum(1 << CHANNELS * c for c in range(cfg.board_size) if row >> c & 1) for row in rows]
        return {"spread": np.array(spread, np.uint64)}

    def aspect(self, cfg: QuoridorConfig) -> float:
        return (cfg.board_size + 0.6) / (cfg.board_size + 2.2)

    def render(self, cfg: QuoridorConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, n, last, mover = cfg.board_size, cfg.board_size - 1, int(state["last_move"]), int(state["to_move"])
        canvas.background("paper")
        canvas.view(-0.3, -1.1, size + 0.3, size + 1.1, y_down=True, hud=True)
        canvas.cached(_board, size)
        new = _as_other(cfg, last, 1 - mover)
        for kind, name in enumerate(KINDS):
            walls = int(state[name])
            for k in range(n * n):
                if walls >> k & 1:
                    colour = NEW_WALL if new == len(STEPS) + kind * n * n + k else WALL
                    canvas.cached(_wall, *divmod(k, n), kind, colour)
        for player in range(2):
            row, column = divmod(int(state["pawn"][player]), size)
            canvas.cached(_pawn, column + 0.5, row + 0.5, player, 0 <= last < len(STEPS) and player != mover)
            canvas.cached(_walls_left, size, player, int(state["walls_left"][player]))
        canvas.hud(left=f"Quoridor   move {int(state['moves'])}", right=f"player_{mover} to move")

    def presses(self, cfg: QuoridorConfig, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float]]:
        """A pawn's new cell; the first edge that a wall closes."""
        n, mover = cfg.board_size - 1, int(state["to_move"])
        if action < len(STEPS):
            row, column = self._destination(cfg, state, action)
            return [(column + 0.5, row + 0.5)]
        kind, place = divmod(_as_other(cfg, action, mover) - len(STEPS), n * n)
        row, column = divmod(place, n)
        return [(column + (1.0 if kind else 0.5), row + (0.5 if kind else 1.0))]

    def move_name(self, cfg: QuoridorConfig, state: Mapping[str, NDArray[Any]], action: int) -> str:
        """A move of the player to move as OpenSpiel writes it: ``e8``, ``c3h`` or ``c3v``."""
        n = cfg.board_size - 1
        if action < len(STEPS):
            row, column = self._destination(cfg, state, action)
            return f"{chr(97 + column)}{row + 1}"
        kind, place = divmod(_as_other(cfg, action, int(state["to_move"])) - len(STEPS), n * n)
        return f"{chr(97 + place % n)}{place // n + 1}{'hv'[kind]}"

    def _destination(self, cfg: QuoridorConfig, state: Mapping[str, NDArray[Any]], action: int) -> tuple[int, int]:
        """Row and column where a step of the pawn ends."""
        mover, (rows, columns) = int(state["to_move"]), STEPS[action]
        row, column = divmod(int(state["pawn"][mover]), cfg.board_size)
        rows = -rows if mover == 1 else rows
        other = divmod(int(state["pawn"][1 - mover]), cfg.board_size)
        length = 2 if (row + rows, column + columns) == other else 1
        return row + length * rows, column + length * columns


def _as_other(cfg: QuoridorConfig, action: int, player: int) -> int:
    """A wall's action as player_0 counts it."""
    n = cfg.board_size - 1
    if player == 0 or action < len(STEPS):
        return action
    kind, place = divmod(action - len(STEPS), n * n)
    return len(STEPS) + kind * n * n + (n - 1 - place // n) * n + place % n


def _board(canvas: Canvas, size: int) -> None:
    """The cells, and the two goals in the colours of those who walk there."""
    canvas.rect(-0.15, -0.15, size + 0.15, size + 0.15, fill="#3b2a20", radius=0.15)
    for row in range(size):
        for column in range(size):
            canvas.rect(column + 0.08, row + 0.08, column + 0.92, row + 0.92, fill="#8c6a4f", radius=0.07)
            if row in (0, size - 1):
                colour = PAWNS[0 if row == 0 else 1][0] + "50"
                canvas.rect(column + 0.08, row + 0.08, column + 0.92, row + 0.92, fill=colour, radius=0.07)


def _wall(canvas: Canvas, row: int, column: int, kind: int, colour: str) -> None:
    """A wall between two rows (kind 0) or two columns (1)."""
    x, y = column + 1, row + 1
    dx, dy = ((0.92, 0.08), (0.08, 0.92))[kind]
    canvas.rect(x - dx + 0.02, y - dy + 0.04, x + dx + 0.02, y + dy + 0.04, fill="#00000050", radius=0.06)
    canvas.rect(x - dx, y - dy, x + dx, y + dy, fill=colour, radius=0.06)


def _pawn(canvas: Canvas, x: float, y: float, player: int, moved: bool) -> None:
    """A pawn from above, with a ring if it moved last."""
    canvas.circle(x + 0.03, y + 0.05, 0.33, fill="#00000045")
    fill, edge = PAWNS[player]
    canvas.circle(x, y, 0.33, fill=fill, outline="#ffe9a8" if moved else edge, width=2.5)
    canvas.circle(x, y, 0.15, fill=edge)
    canvas.circle(x - 0.03, y - 0.04, 0.1, fill="#ffffff70")


def _walls_left(canvas: Canvas, size: int, player: int, count: int) -> None:
    """The walls that a player still has, beside its own side of the board."""
    y = size + 0.62 if player == 0 else -0.62
    canvas.circle(0.25, y, 0.17, fill=PAWNS[player][0], outline=PAWNS[player][1], width=1.5)
    apart = min(0.45, (size - 0.9) / max(count, 1))
    for k in range(count):
        x = 0.75 + apart * k
        canvas.rect(x - 0.08, y - 0.3, x + 0.08, y + 0.3, fill=WALL, outline="#b57f22", width=1.0, radius=0.06)
