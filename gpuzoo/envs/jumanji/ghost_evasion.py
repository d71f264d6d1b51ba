"""A player of PacMan that evades ghosts, as an expert from which policies can learn.

It remembers where ghosts were one step ago, and so knows where they are going, which an observation does not tell. It
lets them hunt the player by their rules, along random walks of the player. Then dynamic programming over cells and
steps finds the first moves of ways to the nearest pellets on which a meeting is least likely (Bellman 1957, "Dynamic
Programming").
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host
from gpuzoo.envs.jumanji.pac_man import CHANNELS
from gpuzoo.envs.jumanji.shortest_ways import Ints

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
WAYS = np.array([(-1, 0), (0, -1), (1, 0), (0, 1)])  #: rows and columns that the first four actions move
BACK = np.array([2, 3, 0, 1])  #: the opposite of each way
NOWHERE = -1  #: the way of a ghost that did not come from a neighbour
AHEAD, SHY = 4, 8  #: of the ghosts' rules: how far pink looks ahead, and where orange gives up
HORIZON = 32  #: steps that are looked ahead
WALKS, WILD = 16, 4  #: random walks of the player, and those in which ghosts go anywhere
DISCOUNT, CAUTION = 0.985, 1.2  #: of a pellet for each step, and how many times a ghost counts
NEARNESS = 0.3  #: the base of a pellet's weight, so small that the nearest one decides


class GhostEvasion:
    """The player, with what it remembers: where each row's ghosts were, and its random numbers."""

    def __init__(self) -> None:
        self._ghosts = np.zeros((0, 4), np.int64)
        self._random = np.random.default_rng(0)

    def __call__(self, group: str, observation: Any) -> Flags:
        """The first moves of ways to pellets on which a meeting is least likely.

        Args:
            group: of agents; there is one.
            observation: (rows, maze rows, maze columns, 8), of one maze; an array, or a tensor of torch on any device.
                Rows are those of the step before.

        Returns:
            (rows, 5), true for these actions of PacMan-v1.

        Raises:
            ValueError: another shape, or rows with different mazes.
        """
        seen = to_host(observation).astype(np.int64)
        if seen.ndim != 4 or seen.shape[3] != len(CHANNELS):
            raise ValueError(f"this player needs mazes with {len(CHANNELS)} channels, not shape {seen.shape[1:]}.")
        free = seen[0, ..., 0] != 0
        if (seen[..., 0] != free).any():
            raise ValueError("this player needs the same maze in all rows.")
        maze = maze_of(free.tobytes(), *free.shape)
        things = seen[:, free]
        pellets, powers = things[..., 1].T > 0, things[..., 2].T > 0
        player, ghosts = things[..., 3].argmax(1), abs(things[..., 4:]).argmax(1)
        frightened = np.maximum(0, -things[..., 4:].min((1, 2)))
        danger = expected_ghosts(maze, player, ghosts, self._ways(maze, ghosts), frightened, self._random)
        worth = values(maze, player, frightened, pellets, powers, danger)
        return np.pad(worth >= worth.max(1, keepdims=True) * (1 - 1e-5), ((0, 0), (0, 1)))

    def _ways(self, maze: Maze, ghosts: Ints) -> Ints:
        """The last way of each ghost, (rows, 4)."""
        before, self._ghosts = self._ghosts, ghosts
        if before.shape != ghosts.shape or before.max(initial=0) >= len(maze.places):
            return np.full(ghosts.shape, NOWHERE)
        came = maze.open[before] & (maze.after[before] == ghosts[..., None])
        return np.where(came.any(2), came.argmax(2), NOWHERE)


@dataclasses.dataclass
class Maze:
    """What depends on a maze alone. A ghost's state is 4 times its cell, plus the way by which it came.

    Attributes:
        shape: rows and columns.
        places: (cells, 2), row and column of each open cell.
        after: (cells, 4), the cell after each way.
        open: (cells, 4), whether a way leads to another cell.
        hunt: (states, targets), the next state on the way to a target.
        nearness: (cells, cells), a number that falls with the distance.
    """

    shape: tuple[int, int]
    places: Ints
    after: Ints
    open: Flags
    hunt: NDArray[np.int32]
    nearness: Floats

    def target(self, places: Ints) -> Ints:
        """The number of a target, from its row and column (..., 2) in half cells."""
        return np.asarray(places @ (2 * max(self.shape), 1))

    @functools.cached_property
    def corners(self) -> Ints:
        """(4,), the targets of frightened ghosts: the middle of each quarter, as their corners are not observed."""
        rows, columns = self.shape
        return self.target(np.array([(column * columns // 2, row * rows // 2) for row in (1, 3) for column in (1, 3)]))

    def targets(self, player: Ints, move: Ints, ghosts: Ints, frightened: Flags) -> Ints:
        """What ghosts are after, (rows, 4, walks).

        Args:
            player: (rows, walks), its cell.
            move: (rows, walks), its action there.
            ghosts: (rows, 4, walks), their cells.
            frightened: (rows,), whether they are.
        """
        here = self.places[player]
        ahead = ((here + AHEAD * WAYS[move]) % self.shape)[..., ::-1]
        red, pink, blue = (self.target(place) for place in (2 * here, 2 * ahead, here + ahead))
        apart = self.places[ghosts[:, 3]] - here
        orange = np.where((apart**2).sum(-1) <= SHY * SHY, self.corners[3], red)
        return np.where(frightened[:, None, None], self.corners[:, None], np.stack([red, pink, blue, orange], 1))


@functools.lru_cache(maxsize=8)
def maze_of(free: bytes, rows: int, columns: int) -> Maze:
    """A maze, from bools that tell which cells are open."""
    cells = np.flatnonzero(np.frombuffer(free, bool))
    count, side = len(cells), 2 * max(rows, columns)
    number = np.full(rows * columns, -1)
    number[cells] = np.arange(count)
    places = np.stack(np.divmod(cells, columns), 1)
    beside = number[((places[:, None] + WAYS) % (rows, columns)) @ (columns, 1)]
    after, ways = np.where(beside < 0, np.arange(count)[:, None], beside), beside >= 0

    distance = np.where(np.eye(count, dtype=bool), 0, np.inf)
    for steps in range(1, count):
        distance[np.isfinite(distance[after]).any(1) & np.isinf(distance)] = steps

    came, corridor = np.arange(4), (ways[:, :2] == ways[:, 2:]).all(1) & (ways.sum(1) == 2)
    onward = (BACK[:, None] != came) & (~corridor[:, None, None] | np.eye(4, dtype=bool))
    legal = ways[:, None] & onward
    legal = np.where(legal.any(2, keepdims=True), legal, ways[:, None])
    half = np.arange(side)
    down, right = np.moveaxis(2 * (places[:, None] + WAYS), 2, 0)[..., None] - half
    gap = (down[..., :, None] ** 2 + right[..., None, :] ** 2).reshape(count, 4, -1)
    best = np.stack([np.where(legal[:, way, :, None], gap, 9 * side**2).argmin(1) for way in came], 1)
    hunt = (4 * after[np.arange(count)[:, None, None], best] + best).reshape(4 * count, -1).astype(np.int32)
    return Maze((rows, columns), places, after, ways, hunt, (NEARNESS**distance).astype(np.float32))


def expected_ghosts(
    maze: Maze, player: Ints, ghosts: Ints, ways: Ints, frightened: Ints, random: np.random.Generator
) -> Floats:
    """How many ghosts are in each cell on average, (2 + HORIZON, cells, rows), from one step ago on.

    Args:
        maze: where they are.
        player: (rows,), its cell.
        ghosts: (rows, 4), their cells.
        ways: (rows, 4), by which they came; `NOWHERE` stands for any.
        frightened: (rows,), for how many steps ghosts are.
        random: numbers for walks and ways.
    """
    rows, count = len(player), len(maze.places)
    wish = random.random((*ghosts.shape, WALKS, 4))
    any_way = np.where(maze.open[ghosts][:, :, None, BACK], wish, -1.0).argmax(3)
    state = 4 * ghosts[..., None] + np.where(ways[..., None] == NOWHERE, any_way, ways[..., None])
    trail = [maze.after[state >> 2, BACK[state & 3]], state >> 2]
    here, last = np.repeat(player[:, None], WALKS, 1), np.full((rows, WALKS), NOWHERE)
    for step in range(1, HORIZON + 1):
        turns_back = np.arange(4) == (last ^ 2)[..., None]
        last = np.where(maze.open[here], random.random((rows, WALKS, 4)) - turns_back, -9.0).argmax(2)
        prey = maze.targets(here, last, trail[-1], step <= frightened)
        prey[..., :WILD] = random.integers(0, maze.hunt.shape[1], prey[..., :WILD].shape)
        state = maze.hunt[state, prey].astype(np.int64)
        here = maze.after[here, last]
        trail.append(state >> 2)
    when, row, *_ = np.ogrid[: len(trail), :rows, :1, :1]
    place = (when * count + np.stack(trail)) * rows + row
    found = np.bincount(place.ravel(), minlength=len(trail) * count * rows)
    return (found.reshape(-1, count, rows) / WALKS).astype(np.float32)


def values(maze: Maze, player: Ints, frightened: Ints, pellets: Flags, powers: Flags, danger: Floats) -> Floats:
    """What each way is worth, (rows, 4): the chance to eat a pellet and to survive, less for a later one.

    Args:
        maze: where the player is.
        player: (rows,), its cell.
        frightened: (rows,), for how many steps ghosts are.
        pellets: (cells, rows), where some are.
        powers: (cells, rows), where power pellets are.
        danger: `expected_ghosts`.
    """
    safe = np.ones(pellets.shape, np.float32)
    near = np.minimum(1, maze.nearness @ pellets.astype(np.float32))
    worth = near ** np.float32(np.log(DISCOUNT) / np.log(NEARNESS))
    ways = [*zip(maze.after.T, maze.open.T, strict=True)]
    for step in range(HORIZON, 0, -1):
        ghosts, before = np.float32(CAUTION) * (step > frightened) * danger[[step + 1, step - 1]]
        come, leave = 1 - np.minimum(1, ghosts + before), 1 - np.minimum(1, ghosts)
        safe = np.where(powers, 1, safe)
        worth, safe = come * np.where(pellets, np.maximum(worth, safe), worth), come * safe
        moves = [worth[cells] * free[:, None] for cells, free in ways]
        worth = np.float32(DISCOUNT) * leave * functools.reduce(np.maximum, moves)
        safe = leave * functools.reduce(np.maximum, [safe[cells] * free[:, None] for cells, free in ways])
    found = np.stack([move[player, np.arange(len(player))] for move in moves], 1)
    return np.where(maze.open[player], found, -1)
