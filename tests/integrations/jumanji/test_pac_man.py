"""PacMan against Jumanji's.

Among equal ways the ghosts of both draw different ones. So theirs take ours, which we hide in the key of the state,
wherever their odds of it are not 0.
"""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import Against, simulator
from jumanji.environments import PacMan
from jumanji.environments.routing.pac_man import utils
from jumanji.environments.routing.pac_man.constants import DEFAULT_MAZE
from jumanji.environments.routing.pac_man.generator import AsciiGenerator
from jumanji.environments.routing.pac_man.types import Position, State

from gpuzoo.envs.jumanji.instances import bits, members

pytestmark = pytest.mark.rotates

SMALL = [
    "XXXXXXXX",
    "XS O  SX",
    "X XX X X",
    "    O   ",
    "X XTTXGX",
    "XGO P GX",
    "X XT XTX",
    "XS GO SX",
    "XXX XXXX",
]


class _Told:
    """In place of `jax.random`: the key is (ways of the four ghosts, 8 bits each; the way of this ghost)."""

    @staticmethod
    def split(key, n=2):
        if n == 5:
            return [key, *(jnp.stack([key[0], key[0] >> (8 * g) & 255]) for g in range(4))]
        return key, key

    @staticmethod
    def choice(key, _, p):
        way = key[1].astype(jnp.int32)
        return jnp.where(p[jnp.minimum(way, 3)] > 0.1, way, 9)


@pytest.fixture(autouse=True)
def _told(monkeypatch):
    monkeypatch.setattr(utils, "jax", SimpleNamespace(lax=jax.lax, vmap=jax.vmap, random=_Told))


def pac_man(n: int, maze: list[str] = DEFAULT_MAZE, limit: int = 1000) -> Against:
    generator = AsciiGenerator(maze)
    env = PacMan(generator, time_limit=limit)
    rows, columns = env.x_size, env.y_size
    text = "/".join(maze).replace(" ", ".").replace("T", ".")
    sim = simulator("PacMan-v1", n, max_episode_steps=limit, **({} if maze is DEFAULT_MAZE else {"maze": text}))
    first = generator(jax.random.PRNGKey(0))
    spaces, powers = np.asarray(first.pellet_locations), np.asarray(first.power_up_locations)
    same = lambda name: np.broadcast_to(getattr(first, name), (n, *np.shape(getattr(first, name))))  # noqa: E731
    at = lambda cell: np.stack([cell % columns, cell // columns], -1).astype(np.int32)  # noqa: E731

    def state_of(arrays):
        pellets = members(arrays["pellets"], rows * columns)[:, spaces[:, 1] * columns + spaces[:, 0]]
        left = arrays["powers"][:, None] >> np.arange(4) & 1
        chosen = sim.arrays["ghost_way"].astype(np.uint32) << (8 * np.arange(4))
        player = at(arrays["player"])
        start = Position(*(np.full(n, int(k), np.int32) for k in first.initial_player_locations))
        return State(
            key=np.stack([chosen.sum(1), chosen.sum(1)], 1).astype(np.uint32),
            grid=same("grid"),
            pellets=arrays["num_pellets"],
            frightened_state_time=arrays["frightened"],
            pellet_locations=spaces * pellets[..., None],
            power_up_locations=powers * left[..., None],
            player_locations=Position(x=player[:, 1], y=player[:, 0]),
            ghost_locations=at(arrays["ghost"]),
            initial_player_locations=start,
            initial_ghost_positions=same("initial_ghost_positions"),
            ghost_init_targets=[tuple(np.full(n, k) for k in target) for target in first.ghost_init_targets],
            old_ghost_locations=at(arrays["old_ghost"]),
            ghost_init_steps=np.tile(-arrays["elapsed_steps"][:, None], (1, 4)),
            ghost_actions=arrays["ghost_way"].astype(np.int32),
            last_direction=arrays["last_move"],
            dead=arrays["dead"] != 0,
            visited_index=start,
            ghost_starts=arrays["wait"],
            scatter_targets=same("scatter_targets"),
            step_count=arrays["elapsed_steps"],
            ghost_eaten=arrays["edible"] != 0,
            score=arrays["score"],
        )

    def seen(o):
        planes = np.zeros((n, rows, columns, 8))
        planes[..., 0] = o.grid
        row = np.arange(n)[:, None]
        for channel, places in ((1, o.pellet_locations), (2, o.power_up_locations)):
            places = np.asarray(places)
            planes[row, places[..., 1], places[..., 0], channel] = 1
            planes[:, 0, 0, channel] = 0  # where they put what is eaten
        planes[row[:, 0], o.player_locations.x, o.player_locations.y, 3] = 1
        for g in range(4):
            place = np.asarray(o.ghost_locations)[:, g]
            fright = np.asarray(o.frightened_state_time)
            planes[row[:, 0], place[:, 1], place[:, 0], 4 + g] = np.where(fright > 0, -fright, 1)
        return planes.reshape(n, -1)

    return Against(sim, env, state_of, seen, lambda o: o.action_mask, after_illegal=False)


@pytest.mark.parametrize("maze", [DEFAULT_MAZE, SMALL])
def test_episodes(maze):
    game = pac_man(1000 if maze is SMALL else 500, maze, 200 if maze is SMALL else 1000)
    game.follow(20_000 if maze is SMALL else 100_000, illegal=0.0)


def drawn(game: Against) -> dict[str, np.ndarray]:
    """Any state: ghosts near the player, also on walls, where Jumanji's get to as well."""
    sim, rng = game.sim, np.random.default_rng(0)
    n, constants, tables = sim.num_envs, sim.env.constants(sim.cfg), sim.env.tables(sim.cfg)
    rows, columns, cells = (constants[name] for name in ("ROWS", "COLUMNS", "CELLS"))
    free = np.flatnonzero(tables["open"])
    player = rng.choice(free, n)
    shift = lambda cell, k: (  # noqa: E731
        (cell // columns + rng.integers(-k, k + 1, (n, 4))) % rows * columns
        + (cell % columns + rng.integers(-k, k + 1, (n, 4))) % columns
    )
    ghost = np.where(rng.random((n, 4)) < 0.5, shift(player[:, None], 2), rng.choice(free, (n, 4)))
    ghost = np.where(tables["open"][ghost] | (rng.random((n, 4)) < 0.1), ghost, rng.choice(free, (n, 4)))
    pellets = np.zeros((n, cells), bool)
    pellets[:, free] = rng.random((n, len(free))) < rng.random((n, 1))
    return {
        "pellets": bits(pellets), "num_pellets": pellets.sum(1).astype(np.int32),
        "powers": rng.integers(0, 16, n).astype(np.int32), "player": player.astype(np.int32),
        "last_move": rng.integers(0, 5, n).astype(np.int32), "ghost": ghost.astype(np.int32),
        "old_ghost": shift(ghost, 1).astype(np.int32), "ghost_way": rng.integers(0, 5, (n, 4)).astype(np.int8),
        "wait": rng.integers(-9, 2, (n, 4)).astype(np.int32), "edible": rng.random((n, 4)) < 0.7,
        "frightened": rng.integers(-9, 10, n).astype(np.int32), "score": rng.integers(0, 99, n).astype(np.int32),
    }  # fmt: skip


@pytest.mark.parametrize("maze", [DEFAULT_MAZE, SMALL])
def test_steps_from_drawn_states(maze):
    game = pac_man(5000 if maze is DEFAULT_MAZE else 20_000, maze)
    game.from_states(drawn(game), illegal=0.0)  # an illegal move turns the player in Jumanji, and none here


def test_doing_nothing():
    """It is illegal by the mask, but an action like others."""
    game = pac_man(20_000, SMALL)
    game.after_illegal = True
    game.sim.reset(seed=1)
    game.sim.set_state(drawn(game))
    game.step(np.full(20_000, 4), np.ones(20_000, bool))


def test_ghosts_choose_any_of_equal_ways():
    """Eight steps from the start on, the red ghost has been at crossings with two equal ways: both are taken."""
    sim = simulator("PacMan-v1", 20_000)
    sim.reset(seed=0)
    ways = np.array(sim.arrays["ghost"])
    for _ in range(20):
        sim.arrays["action"][...] = 4
        sim.step()
        ways = np.concatenate([ways, sim.arrays["ghost"]], 1)
    for g in range(4):
        cells, counts = np.unique(ways[:, -4 + g], return_counts=True)
        if len(cells) == 2:
            assert abs(counts[0] - counts[1]) < 5 * np.sqrt(20_000)
    assert any(len(np.unique(ways[:, -4 + g])) > 1 for g in range(4))
