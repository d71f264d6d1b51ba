"""Levels with four boxes for `Sokoban-v0`, in the way of Racaniere et al., "Imagination-Augmented Agents" (2017).

    python scripts/make_sokoban.py gpuzoo/envs/jumanji/sokoban.npz [--levels 1000] [--seed 1]

A walk through 8 x 8 cells of rock leaves a room. Boxes stand on the targets at first, and the worker walks backwards
from there and pulls boxes with it, at random. Played forwards, that walk is a solution. The best of several such walks
is taken: the distances of the boxes from where they stood, times how often the worker went over to another box. Each
solution is played before a level is written.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SIDE, BOXES, WALKS, STEPS = 10, 4, 40, 300
WAYS = (-SIDE, 1, SIDE, -1)
#: what a step of the walk leaves open, around its cell
PATTERNS = ((-1, 0, 1), (-SIDE, 0, SIDE), (-1, 0, SIDE), (0, -1, SIDE, SIDE - 1), (0, 1, SIDE))
INNER = {SIDE * row + column for row in range(1, SIDE - 1) for column in range(1, SIDE - 1)}


def room(draw: random.Random) -> set[int]:
    """The open cells."""
    cell, way, cells = draw.choice(sorted(INNER)), draw.choice(WAYS), set()
    for _ in range(34):
        if draw.random() < 0.35:
            way = draw.choice(WAYS)
        cell = cell + way if cell + way in INNER else cell
        cells |= {cell + k for k in draw.choice(PATTERNS)} & INNER
    return cells


def walk_back(
    cells: set[int], targets: list[int], worker: int, draw: random.Random
) -> tuple[int, int, list[int], list[int]]:
    """Score, the worker's cell, boxes and the moves of a solution, after a random walk that pulls boxes."""
    boxes, solution, last, changes = list(targets), [], -1, 0
    for _ in range(STEPS):
        way = draw.randrange(4)
        step = WAYS[way]
        if worker - step not in cells or worker - step in boxes:
            continue
        if worker + step in boxes and draw.random() < 0.85:
            box = boxes.index(worker + step)
            boxes[box] = worker
            changes += box != last
            last = box
        worker -= step
        solution.append(way)
    far = [abs(a // SIDE - b // SIDE) + abs(a % SIDE - b % SIDE) for a, b in zip(boxes, targets, strict=True)]
    whole = min(far) > 0 and not {*boxes, worker} & {*targets}
    return changes * sum(far) if whole else 0, worker, boxes, solution[::-1]


def is_solution(cells: set[int], targets: list[int], worker: int, boxes: list[int], moves: list[int]) -> bool:
    """Whether the moves bring all boxes onto targets."""
    left = {*boxes}
    for way in moves:
        worker += WAYS[way]
        if worker in left:
            left = left - {worker} | {worker + WAYS[way]}
        if worker not in cells or not left <= cells or len(left) < BOXES:
            return False
    return left == {*targets}


def level(draw: random.Random) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Walls (1) and targets (2), and the worker (3) and boxes (4), as Jumanji numbers them; (10, 10) each."""
    while True:
        cells = room(draw)
        if len(cells) < 3 * BOXES:
            continue
        worker, *targets = draw.sample(sorted(cells), BOXES + 1)
        score, worker_, boxes, moves = max(
            (walk_back(cells, targets, worker, draw) for _ in range(WALKS)), key=lambda found: found[0]
        )
        if score and is_solution(cells, targets, worker_, boxes, moves):
            fixed, variable = np.ones(SIDE * SIDE, np.uint8), np.zeros(SIDE * SIDE, np.uint8)
            fixed[[*cells]], fixed[targets] = 0, 2
            variable[worker_], variable[boxes] = 3, 4
            return fixed.reshape(SIDE, SIDE), variable.reshape(SIDE, SIDE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--levels", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    draw = random.Random(chosen.seed)
    found = [level(draw) for _ in range(chosen.levels)]
    fixed, variable = (np.stack(part) for part in zip(*found, strict=True))
    np.savez_compressed(chosen.file, fixed=fixed, variable=variable)


if __name__ == "__main__":
    main()
