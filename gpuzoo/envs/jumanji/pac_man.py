"""PacMan."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.jumanji.instances import members
from gpuzoo.render import Canvas, mix

#: Jumanji's maze
DEFAULT = """
XXXXXXXXXXXXXXXXXXXXXXXXXXXX
X..S.........XX.........S..X
X.XXXX.XXXXX.XX.XXXXX.XXXX.X
X.XXXXOXXXXX.XX.XXXXXOXXXX.X
X.XXXX.XXXXX.XX.XXXXX.XXXX.X
X..........................X
X.XXXX.XX.XXXXXXXX.XX.XXXX.X
X.XXXX.XX.XXXXXXXX.XX.XXXX.X
X......XX....XX....XX......X
XXXXXX.XXXXX.XX.XXXXX.XXXXXX
XXXXXX.XXXXX.XX.XXXXX.XXXXXX
XXXXXX.XX..........XX.XXXXXX
XXXXXX.XX.XXX.XXXX.XX.XXXXXX
XXXXXX.XX.X..G...X.XX.XXXXXX
...........GXXXXG...........
XXXXXX.XX.X..G...X.XX.XXXXXX
XXXXXX.XX.XXX.XXXX.XX.XXXXXX
XXXXXX.XX..........XX.XXXXXX
XXXXXX.XX.XXXXXXXX.XX.XXXXXX
XXXXXX.XX.XXXXXXXX.XX.XXXXXX
X............XX............X
X.XXXX.XXXXX.XX.XXXXX.XXXX.X
X.XXXX.XXXXX.XX.XXXXX.XXXX.X
X...XX.S.....P.....S..XX...X
XXX.XX.XX.XXXXXXXX.XX.XX.XXX
XXX.XX.XX.XXXXXXXX.XX.XX.XXX
X......XX....XX....XX......X
X.XXXXXXXXXX.XX.XXXXXXXXXX.X
X.XXXXXXXXXX.XX.XXXXXXXXXX.X
X.......O.............O....X
XXXXXXXXXXXXXXXXXXXXXXXXXXXX
"""

FRIGHT = 30  #: steps that a power pellet frightens ghosts
GHOSTS = ("red", "pink", "blue", "orange")
COLOURS = ("red", "pink", "teal", "orange")
CHANNELS = ("open cell", "pellet", "power pellet", "player", *(f"{name} ghost" for name in GHOSTS))


@dataclasses.dataclass(frozen=True)
class PacManConfig(Config):
    """The maze."""

    maze: str = param("", doc="a map in place of the default one: lines of X . O P G S, with line breaks or / between")


class OfMaze(EnvDef):
    """PacMan in any maze, whoever moves the ghosts."""

    def lanes(self, cfg: PacManConfig) -> int:
        return 32

    def check(self, cfg: PacManConfig) -> None:
        _maze(cfg.maze)

    def constants(self, cfg: PacManConfig) -> dict[str, int]:
        maze = _maze(cfg.maze)
        rows, columns = maze.open.shape
        return {
            "ROWS": rows,
            "COLUMNS": columns,
            "CELLS": rows * columns,
            "WORDS": -(-rows * columns // 64),
            "POWERS": len(maze.powers),
            "PLAYER_START": maze.player,
            "FRIGHT": FRIGHT,
            "NUM_PELLETS": int(maze.open.sum()),
        }

    def tables(self, cfg: PacManConfig) -> dict[str, NDArray[Any]]:
        maze = _maze(cfg.maze)
        places = {"power": maze.powers, "ghost_start": maze.ghosts, "corner": maze.corners}
        return {"open": maze.open.ravel()} | {name: np.array(cells, np.int32) for name, cells in places.items()}

    def observation_space(self, cfg: PacManConfig, group: str) -> spaces.Box:
        high = np.ones((*_maze(cfg.maze).open.shape, len(CHANNELS)), np.int8)
        low = np.zeros_like(high)
        low[..., 4:] = -FRIGHT
        return spaces.Box(low, high, dtype=np.int8)

    def observation_names(self, cfg: PacManConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(CHANNELS, 1)

    def fields(self, cfg: PacManConfig) -> dict[str, Field]:
        ghosts = len(GHOSTS)
        return {
            "pellets": Field("uint64", ("WORDS",), "cells with a pellet, a bit for each, row by row"),
            "num_pellets": Field("int32", doc="number of pellets"),
            "powers": Field("int32", doc="power pellets, a bit for each, in reading order"),
            "player": Field("int32", doc="cell of the player"),
            "last_move": Field("int32", doc="the player's last action"),
            "ghost": Field("int32", (ghosts,), "cell of each ghost"),
            "old_ghost": Field("int32", (ghosts,), "cell of each ghost before its last move"),
            "ghost_way": Field("int8", (ghosts,), "each ghost's last way: 0 left, 1 up, 2 right, 3 down, 4 none"),
            "wait": Field("int32", (ghosts,), "steps that each ghost still waits; negative later"),
            "edible": Field("bool", (ghosts,), "whether each ghost is still worth something"),
            "frightened": Field("int32", doc="steps that ghosts are still frightened; negative later"),
            "score": Field("int32", doc="sum of the player's rewards"),
            "dead": Field("bool", doc="whether the player was caught"),
        }

    def infos(self, cfg: PacManConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"score": state["score"], "num_pellets": state["num_pellets"]}

    def aspect(self, cfg: PacManConfig) -> float:
        rows, columns = _maze(cfg.maze).open.shape
        return float(columns / rows)

    def render(self, cfg: PacManConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        maze = _maze(cfg.maze)
        rows, columns = maze.open.shape
        canvas.background("ink")
        canvas.view(0, 0, columns, rows, y_down=True, hud=True)
        canvas.cached(_walls, cfg.maze)
        pellets = np.flatnonzero(members(np.asarray(state["pellets"]), rows * columns))
        canvas.circles(np.stack([pellets % columns, pellets // columns], 1) + 0.5, 0.1, "sand")
        for k, cell in enumerate(maze.powers):
            if int(state["powers"]) >> k & 1:
                canvas.circle(cell % columns + 0.5, cell // columns + 0.5, 0.3, fill="sand")
        x, y = int(state["player"]) % columns + 0.5, int(state["player"]) // columns + 0.5
        turn = {0: -90.0, 1: 180.0, 2: 90.0}.get(int(state["last_move"]), 0.0)
        canvas.circle(x, y, 0.46, fill="grey" if int(state["dead"]) else "yellow")
        mouth = np.deg2rad([turn - 35, turn + 35])
        canvas.polygon([(x, y), *((x + 0.6 * np.cos(a), y + 0.6 * np.sin(a)) for a in mouth)], fill="ink")
        frightened = int(state["frightened"])
        for g, cell in enumerate(np.asarray(state["ghost"]).tolist()):
            _ghost(canvas, cell % columns + 0.5, cell // columns + 0.5, "blue" if frightened > 0 else COLOURS[g])
        fright = f"   fright {frightened}" if frightened > 0 else ""
        left = f"score {int(state['score'])}   {int(state['num_pellets'])} pellets{fright}"
        canvas.hud(left=left, right=f"step {int(state['elapsed_steps'])}")


class PacMan(OfMaze):
    """A player eats the pellets of a maze and flees from four ghosts.

    There is a pellet in each open cell. Player and ghosts that leave the maze on one side come back on the other. Four
    cells have a power pellet, too. It frightens the ghosts for 30 steps, and the player may then eat them.

    **Maze.** ``maze`` is a map: `X` a wall, `.` an open cell, `O` a power pellet, `P` the player's start, four `G`
    where ghosts start, and four `S`, their corners, in reading order. The upper left cell is a wall.

    **Actions.** `Discrete(5)`: 0 up, 1 left, 2 down, 3 right, 4 nothing. The action mask holds the moves to open cells,
    and not 4. An illegal action counts as 4. The neighbour beyond the lower or the right edge is the cell at the edge
    itself; beyond the upper or the left edge it is the cell at the other end.

    **Ghosts** wait for 2, 6, 11 and 16 steps. Then they move by one cell per step. Where the open neighbours are the
    left and the right one, or the upper and the lower one, a ghost repeats its last move, which was none if it had to
    wait there. Elsewhere it goes to the neighbour that is nearest to its target, but not to the cell that it comes
    from; among equals, and if no neighbour is left, each has the same chance. The targets:

    - red: the player;
    - pink: the cell 4 steps ahead of the player, in the direction of its action, with row and column exchanged;
    - blue: the vectors to the two targets above are added, and the shortest sum is the best;
    - orange: the player, if it is more than 8 away, else its corner with row and column exchanged;
    - frightened ghosts: their corners with row and column exchanged.

    The exchanges are slips of the original. All ghosts see the player where it was before it moves.

    **Meetings.** A ghost meets the player if it comes to where the player comes to or has been, or if the player comes
    to where the ghost has been one step before. If the ghost is frightened, it is eaten and starts again from where it
    began; otherwise the player is caught.

    **Observation.** `Box(rows, columns, 8)`, int8: open cells, pellets, power pellets, the player, the red, the pink,
    the blue and the orange ghost. The number is 1 where something is. For a frightened ghost it is minus the number of
    steps for which it stays frightened.

    **Reward.** 10 for a pellet, 50 for a power pellet, 200 for the first time that a ghost is eaten.

    **End.** The player is caught, or all pellets are eaten. Time limit: 1000 steps.

    **In Jumanji** the observation has the maze, cells of pellets, ghosts and player, and the score. The time limit
    terminates the episode. An illegal move changes nothing there, too, but counts as the direction of the player.
    Jumanji's maps also name first targets of the ghosts, which are never used.
    """

    id = "PacMan-v1"
    Config = PacManConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "A lane stores a cell in two words, one after the other.",
    }
    max_episode_steps = 1000
    invalid_action = 4
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 PacMan-v1"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/pac_man/"}
    expert = "gpuzoo.envs.jumanji.ghost_evasion:GhostEvasion"
    similar = (r"[Pp]ac_?[Mm]an.*", r"[Mm]s[Pp]ac[Mm]an.*", r"ALE/MsPacman.*")
    render_fps = 10

    def action_space(self, cfg: PacManConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def action_names(self, cfg: PacManConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "left", "down", "right", "nothing"), 1)

    def infos(self, cfg: PacManConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**super().infos(cfg, state), "solved": state["num_pellets"] == 0}


@dataclasses.dataclass(frozen=True)
class _Maze:
    """A map: whether each cell is open, and cells of what is on it, numbered row by row."""

    open: NDArray[np.uint8]
    player: int
    powers: list[int]
    ghosts: list[int]
    corners: list[int]


@functools.cache
def _maze(text: str) -> _Maze:
    """Reads a map.

    Raises:
        ValueError: lines of unlike length, other letters, or not as many of them as there must be.
    """
    lines = (text or DEFAULT).strip().replace("/", "\n").upper().split("\n")
    if len({len(line) for line in lines}) != 1:
        raise ValueError("PacMan: the lines of the maze must be of the same length.")
    letters = "".join(lines)
    if set(letters) - set("X.OPGS"):
        raise ValueError(
            "PacMan: a maze consists of X (wall), . (open), O (power pellet), P (player), G (ghost) and S."
        )
    cells = {letter: [k for k, other in enumerate(letters) if other == letter] for letter in "OPGS"}
    counts = {letter: len(found) for letter, found in cells.items()}
    if counts != {"O": 4, "P": 1, "G": 4, "S": 4}:
        raise ValueError("PacMan: a maze has one P and four each of O, G and S.")
    if letters[0] != "X":
        raise ValueError("PacMan: the upper left cell of a maze must be a wall.")
    free = np.array([letter != "X" for letter in letters], np.uint8).reshape(len(lines), -1)
    return _Maze(free, cells["P"][0], cells["O"], cells["G"], cells["S"])


def _walls(canvas: Canvas, text: str) -> None:
    """The walls: blocks with lines around them."""
    free = _maze(text).open.astype(bool)
    rows, columns = free.shape
    line, fill = "blue", mix("blue", "ink", 0.75)
    for row, column in np.argwhere(~free):
        canvas.rect(column, row, column + 1, row + 1, fill=fill)
    for row, column in np.argwhere(~free):
        sides = ((-1, 0, (0, 0, 1, 0)), (1, 0, (0, 1, 1, 1)), (0, -1, (0, 0, 0, 1)), (0, 1, (1, 0, 1, 1)))
        for down, right, (x0, y0, x1, y1) in sides:
            if 0 <= row + down < rows and 0 <= column + right < columns and free[row + down, column + right]:
                canvas.line(column + x0, row + y0, column + x1, row + y1, colour=line, width=1.6)


def _ghost(canvas: Canvas, x: float, y: float, colour: str) -> None:
    """A ghost."""
    canvas.circle(x, y - 0.06, 0.42, fill=colour)
    canvas.rect(x - 0.42, y - 0.06, x + 0.42, y + 0.3, fill=colour)
    for k in (-0.28, 0.0, 0.28):
        canvas.circle(x + k, y + 0.3, 0.14, fill=colour)
    for side in (-0.16, 0.16):
        canvas.circle(x + side, y - 0.1, 0.13, fill="white")
        canvas.circle(x + side, y - 0.08, 0.06, fill="ink")
