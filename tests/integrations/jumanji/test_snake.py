"""Snake against Jumanji's, but for the place of a new fruit, which is chance.

XLA multiplies by the inverse of the length, where we divide by it.
"""

from __future__ import annotations

import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import Snake
from jumanji.environments.routing.snake.types import Position, State

pytestmark = pytest.mark.rotates


def snake(n: int, rows: int, columns: int, limit: int) -> Against:
    env = Snake(rows, columns, limit)

    def state_of(arrays):
        body = np.maximum(arrays["until"] - arrays["clock"][:, None], 0).reshape(n, rows, columns)
        return State(
            body=body > 0,
            body_state=body,
            head_position=Position(*np.divmod(arrays["head"], columns)),
            tail=body == 1,
            fruit_position=Position(*np.divmod(arrays["fruit"], columns)),
            length=arrays["length"],
            step_count=arrays["elapsed_steps"],
            action_mask=arrays["action_mask"][:, 0] != 0,
            key=keys(n),
        )

    def fruit(ours, theirs, live):
        """It is where it was, unless it was eaten. Then it is in any free cell."""
        eaten = np.asarray(theirs.length) > lengths[0]
        for one, other in zip(ours.fruit_position, theirs.fruit_position, strict=True):
            assert (one == np.asarray(other))[live & ~eaten].all()
        free = ours.body_state[np.arange(n), ours.fruit_position.row, ours.fruit_position.col] == 0
        assert (free | ours.body.all((1, 2)))[live].all()

    lengths = [np.zeros(n)]

    class WithLengths(Against):
        def step(self, actions, live):
            lengths[0] = self.arrays()["length"]
            return super().step(actions, live)

    sim = simulator("Snake-v1", n, num_rows=rows, num_cols=columns, max_episode_steps=limit)
    return WithLengths(
        sim, env, state_of, lambda o: o.grid.reshape(n, -1), lambda o: o.action_mask, observe=env._state_to_observation,
        chance=["fruit_position"], after_illegal=False, also=fruit, seen_rounding=EPS,
    )  # fmt: skip


@pytest.mark.parametrize(("rows", "columns", "limit"), [(12, 12, 4000), (3, 5, 30), (1, 4, 20)])
def test_episodes(rows, columns, limit):
    snake(1000, rows, columns, limit).follow(100_000 if rows == 12 else 20_000)


def test_steps_from_drawn_states():
    """Snakes of all lengths that wind over the board, so that many of them fill it up."""
    n, rows, columns, rng = 20_000, 6, 5, np.random.default_rng(0)
    cells = rows * columns
    way = np.arange(cells).reshape(rows, columns)
    way[1::2] = way[1::2, ::-1]
    length = rng.integers(1, cells, n)
    length[: n // 4] = cells - 1
    start = rng.integers(0, cells - length + 1)
    place = np.zeros((n, cells), int)
    rank = np.arange(cells) - start[:, None]
    place[:, way.reshape(-1)] = np.where((rank >= 0) & (rank < length[:, None]), rank + 1, 0)
    flips = rng.integers(0, 2, (2, n, 1, 1), dtype=bool)
    place = place.reshape(n, rows, columns)
    place = np.where(flips[0], place[:, ::-1], place)
    place = np.where(flips[1], place[:, :, ::-1], place).reshape(n, cells)
    clock = rng.integers(0, 100, n)
    left = rng.integers(0, clock[:, None] + 1, (n, cells))
    snake(n, rows, columns, 4000).from_states({
        "until": np.where(place > 0, place + clock[:, None], left).astype(np.int32),
        "clock": clock.astype(np.int32), "length": length.astype(np.int32),
        "head": place.argmax(1).astype(np.int32),
        "fruit": (rng.random((n, cells)) * (place == 0)).argmax(1).astype(np.int32),
    })  # fmt: skip


def test_beginning():
    theirs, sim = resets(Snake(), 20_000), simulator("Snake-v1", 20_000)
    sim.reset(seed=0)
    for name, place in (("head", theirs.head_position), ("fruit", theirs.fruit_position)):
        row, column = np.divmod(sim.arrays[name], 12)
        same_distribution(row, place.row)
        same_distribution(column, place.col)
    assert (sim.arrays["head"] != sim.arrays["fruit"]).all()


def test_new_fruits_are_in_any_free_cell():
    n = 20_000
    sim = simulator("Snake-v1", n, num_rows=2, num_cols=4)
    sim.reset(seed=0)
    until = np.tile(np.array([1, 2, 0, 0, 0, 0, 0, 0], np.int32), (n, 1))
    state = {
        "until": until,
        "clock": np.zeros(n),
        "length": np.full(n, 2),
        "head": np.full(n, 1),
        "fruit": np.full(n, 2),
    }
    sim.set_state({name: np.asarray(array, np.int32) for name, array in state.items()})
    sim.arrays["action"][...] = 1
    sim.step()
    assert (sim.arrays["reward"] == 1).all()
    counts = np.bincount(sim.arrays["fruit"], minlength=8)
    assert (counts[:3] == 0).all()
    assert (abs(counts[3:] - n / 5) < 5 * np.sqrt(n / 5)).all()
