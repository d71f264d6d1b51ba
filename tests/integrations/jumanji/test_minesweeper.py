"""Minesweeper against Jumanji's; mines are compared in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, resets, simulator
from jumanji.environments import Minesweeper
from jumanji.environments.logic.minesweeper.generator import UniformSamplingGenerator
from jumanji.environments.logic.minesweeper.reward import DefaultRewardFn
from jumanji.environments.logic.minesweeper.types import State

from gpuzoo.envs.jumanji.instances import bits, members

pytestmark = pytest.mark.rotates

OTHER = {"revealed_empty_square_reward": 0.5, "revealed_mine_reward": -2.0, "invalid_action_reward": -3.0}


def minesweeper(n: int, rows: int, columns: int, mines: int, **rewards) -> Against:
    options = {"generator": UniformSamplingGenerator(rows, columns, mines)}
    env = (
        Minesweeper(**options, reward_function=DefaultRewardFn(*rewards.values()))
        if rewards
        else Minesweeper(**options)
    )

    def state_of(arrays):
        where = np.nonzero(members(arrays["mines"], rows * columns))[1].reshape(n, mines)
        return State(
            board=arrays["board"].reshape(n, rows, columns).astype(np.int32),
            step_count=arrays["elapsed_steps"],
            flat_mine_locations=where.astype(np.int32),
            key=keys(n),
        )

    sim = simulator("Minesweeper-v0", n, num_rows=rows, num_cols=columns, num_mines=mines, **rewards)
    return Against(
        sim, env, state_of, lambda o: o.board.reshape(n, -1), lambda o: o.action_mask.reshape(n, -1),
        action=lambda actions: np.stack(np.divmod(actions, columns), 1),
    )  # fmt: skip


@pytest.mark.parametrize("rewards", [{}, OTHER], ids=["default", "other"])
@pytest.mark.parametrize(("rows", "columns", "mines"), [(10, 10, 10), (2, 3, 1), (4, 9, 0)])
def test_episodes(rows, columns, mines, rewards):
    minesweeper(1000, rows, columns, mines, **rewards).follow(100_000 if rows == 10 else 20_000)


def test_steps_from_drawn_states():
    n, rows, columns, mines, rng = 20_000, 5, 6, 8, np.random.default_rng(0)
    cells = rows * columns
    mined = rng.permuted(np.tile(np.arange(cells) < mines, (n, 1)), axis=1)
    wide = np.pad(mined.reshape(n, rows, columns), ((0, 0), (1, 1), (1, 1))).astype(int)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2)).sum((-1, -2)).reshape(n, cells)
    covered = mined | (rng.random((n, cells)) < rng.random((n, 1)) * 0.3)
    minesweeper(n, rows, columns, mines).from_states({
        "board": np.where(covered, -1, windows - mined).astype(np.int8), "covered": bits(covered), "mines": bits(mined),
    })  # fmt: skip


def test_generator():
    n = 20_000
    theirs, sim = resets(Minesweeper(), n), simulator("Minesweeper-v0", n)
    sim.reset(seed=0)
    mines = members(sim.arrays["mines"], 100)
    assert (mines.sum(1) == 10).all()
    others = np.zeros((n, 100), bool)
    np.put_along_axis(others, np.asarray(theirs.flat_mine_locations), True, axis=1)
    for frequency in (lambda m: m.mean(0), lambda m: (m[:, :, None] & m[:, None]).reshape(n, -1).mean(0)):
        one, other = frequency(mines), frequency(others)
        assert (abs(one - other) < 5.5 * np.sqrt((one + other) / n)).all()


def test_given_boards():
    given = np.zeros((2, 10, 10), int)
    given[0, 0], given[1, :, 3] = 1, 1
    sim = simulator("Minesweeper-v0", 2, instances={"mines": given}, instance=np.array([1, 0]))
    sim.reset(seed=0)
    np.testing.assert_array_equal(members(sim.arrays["mines"], 100).reshape(2, 10, 10), given[::-1] == 1)
    with pytest.raises(ValueError, match="has 10 mines, and num_mines is 9"):
        simulator("Minesweeper-v0", 2, num_mines=9, instances={"mines": given})
