"""SlidingTilePuzzle against Jumanji's; mixed boards are compared in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, resets, same_distribution, simulator
from jumanji.environments import SlidingTilePuzzle
from jumanji.environments.logic.sliding_tile_puzzle.generator import RandomWalkGenerator
from jumanji.environments.logic.sliding_tile_puzzle.reward import DenseRewardFn, SparseRewardFn
from jumanji.environments.logic.sliding_tile_puzzle.types import State

pytestmark = pytest.mark.rotates


def puzzle(n: int, size: int, moves: int, limit: int, reward: str) -> Against:
    env = SlidingTilePuzzle(
        RandomWalkGenerator(size, moves), DenseRewardFn() if reward == "dense" else SparseRewardFn(), limit
    )

    def state_of(arrays):
        return State(
            puzzle=arrays["puzzle"].reshape(n, size, size).astype(np.int32),
            empty_tile_position=np.stack(np.divmod(arrays["empty"], size), 1),
            key=keys(n),
            step_count=arrays["elapsed_steps"],
        )

    def seen(o):
        row, column = np.asarray(o.empty_tile_position).T
        assert (np.asarray(o.puzzle)[np.arange(n), row, column] == 0).all()
        return o.puzzle.reshape(n, -1)

    sim = simulator(
        "SlidingTilePuzzle-v0", n, grid_size=size, num_random_moves=moves, max_episode_steps=limit, reward=reward
    )
    return Against(sim, env, state_of, seen, lambda o: o.action_mask)


@pytest.mark.parametrize("reward", ["dense", "sparse"])
@pytest.mark.parametrize(("size", "moves"), [(5, 200), (2, 3), (3, 0)])
def test_episodes(size, moves, reward):
    puzzle(1000, size, moves, 60, reward).follow(100_000 if size == 5 else 20_000, illegal=0.05)


@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_steps_from_drawn_states(reward):
    """Boards in any order, and a fifth of them nearly solved."""
    n, size, rng = 20_000, 4, np.random.default_rng(0)
    cells, solved = size * size, np.roll(np.arange(size * size), -1)
    board = rng.permuted(np.tile(np.arange(cells), (n, 1)), axis=1)
    board[: n // 5] = solved
    board[: n // 10, [-1, -2]] = board[: n // 10, [-2, -1]]
    board[n // 10 : n // 5, [-1, -1 - size]] = board[n // 10 : n // 5, [-1 - size, -1]]
    puzzle(n, size, 5, 60, reward).from_states({
        "puzzle": board.astype(np.int16), "empty": (board == 0).argmax(1).astype(np.int32),
        "correct": (board == solved).sum(1).astype(np.int32),
    })  # fmt: skip


@pytest.mark.parametrize(("size", "moves"), [(5, 200), (3, 7)])
def test_generator(size, moves):
    n = 20_000
    theirs = resets(SlidingTilePuzzle(RandomWalkGenerator(size, moves)), n)
    sim = simulator("SlidingTilePuzzle-v0", n, grid_size=size, num_random_moves=moves)
    sim.reset(seed=0)
    others = np.asarray(theirs.puzzle).reshape(n, -1)
    for cell in range(size * size):
        same_distribution(sim.arrays["puzzle"][:, cell], others[:, cell])
    solved = np.roll(np.arange(size * size), -1)
    same_distribution((sim.arrays["puzzle"] == solved).sum(1), (others == solved).sum(1))
    assert (sim.arrays["correct"] == (sim.arrays["puzzle"] == solved).sum(1)).all()


def test_given_boards_and_infos():
    boards = np.stack([np.roll(np.arange(9), -1), np.arange(9)]).reshape(2, 3, 3)
    sim = simulator("SlidingTilePuzzle-v0", 2, grid_size=3, instances={"puzzle": boards}, instance=np.array([0, 1]))
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["puzzle"], boards.reshape(2, 9))
    np.testing.assert_array_equal(sim.arrays["empty"], [8, 0])
    np.testing.assert_array_equal(sim.arrays["correct"], [9, 0])
    infos = type(sim.env)().infos(sim.cfg, sim.arrays)
    np.testing.assert_array_equal(infos["prop_correctly_placed"], [1, 0])
