"""FlatPack against Jumanji's; drawn blocks are compared in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import FlatPack
from jumanji.environments.packing.flat_pack.generator import (
    RandomFlatPackGenerator,
    ToyFlatPackGeneratorNoRotation,
    ToyFlatPackGeneratorWithRotation,
)
from jumanji.environments.packing.flat_pack.reward import BlockDenseReward, CellDenseReward
from jumanji.environments.packing.flat_pack.types import State

pytestmark = pytest.mark.rotates
REWARDS = {"cells": CellDenseReward, "blocks": BlockDenseReward}
TOYS = {"toy": ToyFlatPackGeneratorNoRotation, "turned-toy": ToyFlatPackGeneratorWithRotation}


def flat_pack(n: int, rows: int, columns: int, reward: str = "cells", generator: str = "random", **options) -> Against:
    made = RandomFlatPackGenerator(rows, columns) if generator == "random" else TOYS[generator]()
    blocks, high, wide = rows * columns, 2 * rows + 1, 2 * columns + 1
    shape = (blocks, 4, high - 2, wide - 2)
    sim = simulator(
        "FlatPack-v0", n, num_row_blocks=rows, num_col_blocks=columns, reward=reward, generator=generator, **options
    )
    flat = options.get("action_form") != "parts"

    def state_of(arrays):
        cells = (arrays["shape"][..., :1] >> np.arange(9) & 1) * arrays["number"][..., None].astype(np.int32)
        legal = (arrays["action_mask"][:, 0] != 0).reshape(n, *shape) if flat else joint(arrays)
        return State(
            grid=arrays["colour"].reshape(n, high, wide).astype(np.int32),
            num_blocks=np.full(n, blocks, np.int32),
            blocks=cells.reshape(n, blocks, 3, 3),
            action_mask=legal,
            placed_blocks=arrays["placed"] != 0,
            step_count=arrays["elapsed_steps"],
            key=keys(n),
        )

    def joint(arrays):
        """Legal actions, which masks of parts do not say."""
        grid = arrays["colour"].reshape(n, high, wide) > 0
        squares = np.lib.stride_tricks.sliding_window_view(grid, (3, 3), axis=(1, 2)).reshape(n, 1, 1, high - 2, -1, 9)
        shapes = (arrays["shape"][..., None] >> np.arange(9) & 1).astype(bool)[:, :, :, None, None]
        return ~(squares & shapes).any(-1) & (arrays["placed"] == 0)[:, :, None, None, None]

    def mask(o):
        if flat:
            return o.action_mask.reshape(n, -1)
        legal = np.asarray(o.action_mask)
        return np.concatenate([legal.any(tuple({1, 2, 3, 4} - {k})) for k in (1, 2, 3, 4)], 1)

    return Against(
        sim, FlatPack(made, REWARDS[reward]()), state_of,
        lambda o: np.concatenate([o.grid.reshape(n, -1), o.blocks.reshape(n, -1)], 1), mask,
        action=lambda actions: np.stack(np.unravel_index(actions, shape), 1).astype(np.int32) if flat else actions,
        rounding=EPS,  # XLA multiplies by the reciprocal of a constant
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "columns", "reward", "moves"),
    [(5, 5, "cells", 20_000), (2, 3, "blocks", 20_000), (3, 3, "cells", 100_000)],
)
def test_episodes(rows, columns, reward, moves):
    """Most moves are in a smaller grid: Jumanji tries each action on a grid of its own, in 1 ms at the default size."""
    flat_pack(50, rows, columns, reward).follow(moves)


@pytest.mark.parametrize("toy", [*TOYS])
def test_toys(toy):
    game = flat_pack(400, 2, 2, generator=toy)
    game.sim.reset(seed=0)
    ours, theirs = game.state_of(game.arrays()), resets(game.env, 400)
    np.testing.assert_array_equal(ours.blocks, theirs.blocks)
    game.follow(20_000)


def test_actions_in_parts():
    """Any combination of parts; few of them are legal once there are some blocks."""
    game = flat_pack(200, 3, 3, action_form="parts")
    for seed in range(3):
        game.sim.reset(seed=seed)
        rng, live = np.random.default_rng(seed), np.ones(200, bool)
        for _ in range(9):
            game.sim.random_actions()
            actions = game.sim.arrays["action"][:, 0].copy()
            before = game.sim.arrays["placed"].sum()
            stuck = game.sim.arrays["options"].sum(1) == 0
            wild = rng.random(200) < 0.3
            actions[wild] = game.any_actions(rng, legal=False)[wild]
            game.step(actions, live)
            assert game.sim.arrays["placed"].sum() >= before + (~wild & ~stuck).sum()


def test_steps_from_drawn_states():
    n, rows, columns, rng = 5000, 3, 4, np.random.default_rng(0)
    blocks, cells = rows * columns, (2 * rows + 1) * (2 * columns + 1)
    filled = rng.random((n, cells)) < rng.random((n, 1)) ** 2
    numbers = rng.permuted(np.tile(np.arange(1, blocks + 1), (n, 1)), axis=1)
    shapes = (rng.random((n, blocks, 3, 3)) < rng.random((n, blocks, 1, 1))) | (np.arange(9).reshape(3, 3) == 4)
    turned = np.stack([np.rot90(shapes, -k, axes=(2, 3)) for k in range(4)], 2).reshape(n, blocks, 4, 9)
    bits = filled.reshape(n, 2 * rows + 1, -1) @ (1 << np.arange(2 * columns + 1))
    flat_pack(n, rows, columns).from_states({
        "filled": bits.astype(np.uint32), "colour": (filled * rng.integers(1, blocks + 1, (n, cells))).astype(np.uint8),
        "number": numbers.astype(np.uint8), "shape": (turned @ (1 << np.arange(9))).astype(np.int16),
        "placed": rng.random((n, blocks)) < 0.5, "elapsed_steps": rng.integers(0, blocks, n).astype(np.int32),
    })  # fmt: skip


def test_end_when_stuck():
    """The episode is over as soon as the original's mask is empty."""
    game = flat_pack(200, 3, 3, end_when_stuck=True)
    game.over = lambda ours, legal: ~ours.action_mask.any((1, 2, 3, 4)) | (ours.step_count >= 9)
    game.follow(5000)


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (2, 3)])
def test_generator(rows, columns):
    n = 3000
    game = flat_pack(n, rows, columns)
    game.sim.reset(seed=0)
    ours, theirs = (np.asarray(s.blocks) for s in (game.state_of(game.arrays()), resets(game.env, n)))
    in_order = []
    for blocks in (ours, theirs):
        number = blocks.max((2, 3))
        assert (np.sort(number) == np.arange(1, rows * columns + 1)).all()
        assert ((blocks > 0).sum((1, 2, 3)) == (2 * rows + 1) * (2 * columns + 1)).all()
        in_order.append(np.take_along_axis(blocks > 0, number.argsort(1)[..., None, None], 1).reshape(n, -1, 9))
    same_distribution(ours[:, 0].max((1, 2)), theirs[:, 0].max((1, 2)))
    for block in range(rows * columns):
        one, other = (cells[:, block] for cells in in_order)
        same_distribution(one.sum(1), other.sum(1))
        codes = [np.bincount(cells @ (1 << np.arange(9)), minlength=512) for cells in (one, other)]
        assert (abs(codes[0] - codes[1]) <= 5 * np.sqrt(codes[0] + codes[1] + 1)).all()
    pairs = [(cells[:, 0].sum(1) - cells[:, 1].sum(1)) * cells[:, columns].sum(1) for cells in in_order]
    same_distribution(*pairs)


def test_given_blocks():
    blocks = np.zeros((2, 4, 3, 3), np.uint8)
    blocks[0, np.arange(4), 0, 1] = blocks[1, np.arange(4), 1, 0] = [2, 1, 4, 3]
    sim = simulator("FlatPack-v0", 2, num_row_blocks=2, num_col_blocks=2, instances={"blocks": blocks}, instance=[1, 0])
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["observation"][:, 0, 25:].reshape(2, 4, 3, 3), blocks[[1, 0]])
    blocks[1, 0] = 0
    with pytest.raises(ValueError, match="instance 1: each of the numbers 1 to 4 must belong to one block"):
        simulator("FlatPack-v0", 2, num_row_blocks=2, num_col_blocks=2, instances={"blocks": blocks})
