"""A solver of FlatPack, as an expert from which policies can learn.

Blocks that fill a grid are an exact cover: each cell and each block belongs to one of the chosen placements. Knuth's
Algorithm X searches for them in depth. It takes the cell or block with the fewest placements left, and tries one after
the other (Knuth 2000, "Dancing links", https://arxiv.org/abs/cs/0011047). A search that takes long begins anew with the
placements in another order, as few orders take long (Gomes et al. 1998, "Boosting combinatorial search through
randomization").
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host
from gpuzoo.envs.jumanji.flat_pack import ROTATIONS, SIDE
from gpuzoo.envs.jumanji.shortest_ways import Ints

Flags = NDArray[np.bool_]
#: what a placement takes, (cells + blocks,), and the actions that do it
Placement = tuple[Flags, Ints]
STEPS, SEARCHES = 2000, 20  #: of a search, and how often one begins anew: a few seconds in all


def best_moves(group: str, observation: Any) -> Flags:
    """All placements of a solution that are still to be made.

    Args:
        group: of agents; there is one.
        observation: (rows, numbers), of grids with as many rows as columns; an array, or a tensor of torch on any
            device.

    Returns:
        (rows, actions), true for these actions of FlatPack-v0; none for grids that are full, for those that can't be
        filled, and where the search takes too long.

    Raises:
        ValueError: grids of another form.
    """
    seen = to_host(observation).astype(np.int64)
    side = blocks_beside(seen.shape[-1])
    cells, blocks = (2 * side + 1) ** 2, side * side
    best = np.zeros((len(seen), blocks * ROTATIONS * (2 * side + 2 - SIDE) ** 2), bool)
    for row, numbers in enumerate(seen):
        grid, squares = numbers[:cells], numbers[cells:].reshape(blocks, SIDE, SIDE)
        shapes = (squares > 0).tobytes()
        taken = np.append(grid > 0, np.isin(squares.max((1, 2)), grid))
        whole = solution(shapes, np.zeros_like(taken).tobytes())
        found = [placement for placement in whole if not (placement[0] & taken)[cells:].any()]
        if not whole or any((takes & taken).any() for takes, _ in found):
            found = [*solution(shapes, taken.tobytes())]
        for _, actions in found:
            best[row, actions] = True
    return best


def blocks_beside(numbers: int) -> int:
    """How many blocks lie beside each other in a square grid whose observation has so many numbers.

    Raises:
        ValueError: there is no such grid.
    """
    side = (math.isqrt(13 * numbers - 9) - 2) // 13
    if 13 * side * side + 4 * side + 1 != numbers or side < 2:
        raise ValueError(
            f"this solver is for grids with as many rows as columns, not for observations of {numbers} numbers."
        )
    return side


@functools.lru_cache(maxsize=4096)
def solution(shapes: bytes, taken: bytes) -> tuple[Placement, ...]:
    """Placements that fill a grid, or nothing if there are none or the search takes too long.

    Args:
        shapes: bools, the blocks' squares.
        taken: bools, which cells are filled, and which blocks are placed.
    """
    done = np.frombuffer(taken, bool)
    options, option_of = placements(np.frombuffer(shapes, bool).reshape(-1, SIDE, SIDE), done)
    chosen = exact_cover(options, np.flatnonzero(~done))
    return tuple((options[k], np.flatnonzero(option_of == k)) for k in chosen)


def placements(shapes: Flags, taken: Flags) -> tuple[Flags, Ints]:
    """What can be done with blocks that are left.

    Args:
        shapes: (blocks, 3, 3).
        taken: (cells + blocks,).

    Returns:
        (options, cells + blocks), what each option takes; (actions,), the option that each action is, or -1.
    """
    blocks = len(shapes)
    size = math.isqrt(len(taken) - blocks)
    corners, square = (np.add.outer(size * np.arange(n), np.arange(n)).ravel() for n in (size - SIDE + 1, SIDE))
    turned = np.stack([np.rot90(shapes, -turns, (1, 2)) for turns in range(ROTATIONS)], 1).reshape(blocks, -1, 1, 9)
    takes = np.zeros((blocks, ROTATIONS, len(corners), len(taken)), bool)
    takes[:, :, np.arange(len(corners))[:, None], np.add.outer(corners, square)] = turned
    takes[..., size * size :] = np.eye(blocks, dtype=bool)[:, None, None]
    of_actions = takes.reshape(-1, len(taken))
    free = np.flatnonzero(~(of_actions & taken).any(1))
    _, first, number = np.unique(np.packbits(of_actions[free], 1), axis=0, return_index=True, return_inverse=True)
    option_of = np.full(len(of_actions), -1)
    option_of[free] = number
    return of_actions[free[first]], option_of


def exact_cover(options: Flags, wanted: Ints) -> list[int]:
    """Options that have each wanted item exactly once; none if there are no such options, or if it takes too long.

    Args:
        options: (options, items), which items each option has.
        wanted: items; no option has another one.
    """

    def search(alive: Ints, items: Ints) -> Iterator[list[int]]:
        if not len(items):
            yield []
            return
        item = items[options[np.ix_(alive, items)].sum(0).argmin()]
        for option in alive[options[alive, item]]:
            if next(steps, None) is None:
                return
            has = options[option]
            apart = alive[~options[np.ix_(alive, np.flatnonzero(has))].any(1)]
            for others in search(apart, items[~has[items]]):
                yield [int(option), *others]

    generator = np.random.default_rng(0)
    for _ in range(SEARCHES):
        steps = iter(range(STEPS))
        found = next(search(generator.permutation(len(options)), wanted), None)
        if found is not None or next(steps, None) is not None:  # otherwise its steps are used up
            return found or []
    return []
