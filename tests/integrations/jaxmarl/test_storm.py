"""STORM against JaxMARL's, from states drawn at random and over whole episodes. Cells and coins are exact in both.

Payoffs are a few products and sums of numbers up to 5, which XLA may fuse: 1e-6 is eight roundings of the largest.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.storm.storm_2p import COINS, SIDE, STARTS, Storm2P

pytestmark = pytest.mark.rotates

PAYOFFS = [f"{player}_payoff_{kinds}" for player in ("red", "blue") for kinds in ("rr", "rb", "br", "bb")]
OPTIONS = [
    {},
    {"num_inner_steps": 3, "num_outer_steps": 4},
    {"freeze_penalty": 1, "fixed_coin_location": False},
    {"freeze_penalty": 0},
    dict(zip(PAYOFFS, (1.5, 0.25, -3.0, 2.0, 0.5, -0.75, 4.0, 0.125), strict=True)),
]
ROUNDING = 1e-6
RED, BLUE, RED_COIN, BLUE_COIN, BEAM = 1, 2, 3, 4, 6
PLACES = SIDE * np.array(COINS)[:, 0] + np.array(COINS)[:, 1]


def make(options):
    """JaxMARL's env with our options."""
    plain = {k: v for k, v in options.items() if k not in PAYOFFS}
    values = [options.get(name, getattr(Storm2P.Config(), name)) for name in PAYOFFS]
    return jaxmarl.make("storm_2p", payoff_matrix=jnp.array(values).reshape(2, 2, 2), **plain)


def draw(rng, n, penalty):
    """Any field: players, coins and beams anywhere, near each other in half of the envs."""
    grid = rng.choice([0, 0, 0, 0, RED_COIN, BLUE_COIN, BEAM], (n, SIDE * SIDE)).astype(np.int8)
    red = rng.integers(0, SIDE, (n, 2))
    near = np.clip(red + rng.integers(-2, 3, (n, 2)), 0, SIDE - 1)
    blue = np.where(rng.random((n, 1)) < 0.5, near, rng.integers(0, SIDE, (n, 2)))
    same = (red == blue).all(1)
    blue[same] = (red[same] + 1) % SIDE
    cell = np.stack([red, blue], 1) @ [SIDE, 1]
    grid[np.arange(n), cell[:, 0]] = RED
    grid[np.arange(n), cell[:, 1]] = BLUE
    hidden = rng.random(n) < 0.1  # as by a coin at the beginning
    grid[hidden, cell[hidden, 0]] = RED_COIN
    return {
        "cell": cell.astype(np.int32),
        "direction": rng.integers(0, 4, (n, 2)).astype(np.int32),
        "inventory": (rng.integers(0, 7, (n, 2, 2)) * (rng.random((n, 2, 1)) < 0.8)).astype(np.int32),
        "freeze": np.where(rng.random(n) < 0.6, -1, rng.integers(0, penalty + 1, n)).astype(np.int32),
        "grid": grid,
        "coin_is_red": rng.permuted(np.tile(np.arange(12) < 6, (n, 1)), axis=1),
    }


def place(state, values):
    """JaxMARL's states with our fields."""
    xy = np.stack([*np.divmod(values["cell"], SIDE), values["direction"]], -1).astype(np.int8)
    order = np.argsort(~values["coin_is_red"], axis=1, kind="stable")
    coins = np.array(COINS, np.int8)[order]
    return state.replace(
        red_pos=jnp.array(xy[:, 0]), blue_pos=jnp.array(xy[:, 1]),
        grid=jnp.array(values["grid"].reshape(-1, SIDE, SIDE)),
        red_inventory=jnp.array(values["inventory"][:, 0], jnp.float32),
        blue_inventory=jnp.array(values["inventory"][:, 1], jnp.float32),
        red_coins=jnp.array(coins[:, :6]), blue_coins=jnp.array(coins[:, 6:]),
        freeze=jnp.array(values["freeze"], jnp.int16),
    )  # fmt: skip


def fields(state):
    """Our fields of JaxMARL's states."""
    both = np.stack([np.asarray(state.red_pos), np.asarray(state.blue_pos)], 1)
    inventory = np.stack([np.asarray(state.red_inventory), np.asarray(state.blue_inventory)], 1)
    red = np.asarray(state.red_coins, np.int32) @ [SIDE, 1]
    return {
        "cell": both[..., :2] @ [SIDE, 1],
        "direction": both[..., 2],
        "inventory": inventory.astype(np.int32),
        "freeze": np.asarray(state.freeze),
        "grid": np.asarray(state.grid).reshape(len(both), -1),
        "coin_is_red": (red[..., None] == PLACES).any(1),
    }


def assert_same_observations(env, theirs, sim):
    for k, found in enumerate(jax.vmap(env.get_obs)(theirs)):
        view = np.asarray(found["observation"]).reshape(sim.num_envs, -1)
        np.testing.assert_array_equal(
            sim.arrays["observation"][:, k], np.concatenate([view, np.asarray(found["inventory"])], 1)
        )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps(options):
    n, rng = 20_000, np.random.default_rng(0)
    sim = Simulator(Storm2P, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=0)
    inner, outer = sim.cfg.num_inner_steps, sim.cfg.num_outer_steps
    values = draw(rng, n, sim.cfg.freeze_penalty)
    t = rng.integers(0, inner * outer, n).astype(np.int32)
    sim.set_state({**values, "elapsed_steps": t})
    actions = rng.choice(5, (n, 2), p=[0.15, 0.15, 0.3, 0.3, 0.1])
    sim.arrays["action"][...] = actions[..., None]

    env = make(options)
    keys = jax.random.split(jax.random.key(1), n)
    _, theirs = jax.vmap(env.reset)(keys)
    theirs = place(theirs, values).replace(step=jnp.array(t % inner), outer_t=jnp.array(t // inner))
    assert_same_observations(env, theirs, sim)
    _, after, rewards, done, _ = jax.vmap(env.step_env)(keys, theirs, tuple(actions.T))
    sim.step()
    for k in range(2):
        np.testing.assert_allclose(sim.arrays["reward"][:, k], np.asarray(rewards[k]), rtol=ROUNDING, atol=ROUNDING)
        np.testing.assert_array_equal(sim.arrays["terminated"][:, k], np.asarray(done["__all__"]))
    assert not sim.arrays["truncated"].any()
    if sim.cfg.num_inner_steps > 3:
        assert (sim.arrays["reward"] != 0).any(1).sum() > n / 100

    ours, want = sim.state(), fields(after)
    drawn = np.asarray(after.step) == 0  # what was drawn anew differs, as the random numbers do
    begun = drawn | ((want["freeze"] == -1) & (values["freeze"] >= 0)) | (sim.cfg.freeze_penalty <= 1)
    contested = both_want(values, actions)
    for name in ("freeze", "inventory", "grid", "cell", "direction"):
        kept = ~contested & (~drawn if name in ("freeze", "inventory") else ~begun)
        np.testing.assert_array_equal(ours[name][kept], want[name][kept], err_msg=name)
    np.testing.assert_array_equal(ours["coin_is_red"][~drawn], want["coin_is_red"][~drawn])
    assert contested.sum() > 10
    assert kept.sum() > n / 5 or sim.cfg.freeze_penalty <= 1
    assert_same_observations(env, place(after, ours), sim)


def both_want(values, actions):
    """Where both may move to the same cell, and chance decides."""
    step = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[values["direction"]]
    xy = np.stack(np.divmod(values["cell"], SIDE), -1)
    to = np.clip(xy + step * (actions == 2)[..., None], 0, SIDE - 1)
    return (to[:, 0] == to[:, 1]).all(1) & (values["freeze"] <= 0)


def test_chance_decides_who_moves():
    """Both come to one cell from elsewhere: red moves in half of 40,000 envs, within 5 standard deviations."""
    n = 40_000
    sim = Simulator(Storm2P, n, autoreset_mode="disabled", device="cpu")
    sim.reset(seed=0)
    grid = np.zeros((n, SIDE * SIDE), np.int8)
    grid[:, 9], grid[:, 27] = RED, BLUE  # (1, 1) and (3, 3)
    cell, direction = np.tile([[17, 19]], (n, 1)), np.tile([[0, 2]], (n, 1))  # (2, 1) upwards, (2, 3) downwards
    sim.set_state({"cell": cell.astype(np.int32), "direction": direction.astype(np.int32), "grid": grid})
    sim.arrays["action"][...] = 2
    sim.step()
    red = sim.arrays["cell"][:, 0] == 18
    assert (red != (sim.arrays["cell"][:, 1] == 18)).all()
    assert abs(red.sum() - n / 2) < 5 * np.sqrt(n / 4)


@pytest.mark.parametrize("fixed", [True, False])
def test_starts(fixed):
    """Each start and direction as often as there, 5 standard deviations at most; colours as often at each place."""
    n = 36_000
    sim = Simulator(Storm2P, n, autoreset_mode="disabled", device="cpu", fixed_coin_location=fixed)
    sim.reset(seed=0)
    env = make({"fixed_coin_location": fixed})
    _, state = jax.vmap(env.reset)(jax.random.split(jax.random.key(3), n))
    theirs, ours = fields(state), sim.state()
    for name, shape in (("cell", SIDE * SIDE), ("direction", 4)):
        for k in range(2):
            counts = [np.bincount(x[name][:, k], minlength=shape) for x in (ours, theirs)]
            np.testing.assert_array_equal(counts[0] > 0, counts[1] > 0)
            share = 1 / (len(STARTS) if name == "cell" else 3)
            assert (abs(counts[0][counts[0] > 0] - n * share) < 5 * np.sqrt(n * share)).all()
    if fixed:
        np.testing.assert_array_equal(ours["coin_is_red"], theirs["coin_is_red"])
    else:
        assert (ours["coin_is_red"].sum(1) == 6).all()
        assert (abs(ours["coin_is_red"].sum(0) - n / 2) < 5 * np.sqrt(n / 4)).all()
    for k in range(n // 1000):  # the field as it is drawn from places and coins
        np.testing.assert_array_equal(grid_of(ours, k), ours["grid"][k])
        np.testing.assert_array_equal(grid_of(theirs, k), theirs["grid"][k])


def grid_of(state, k):
    grid = np.zeros(SIDE * SIDE, np.int8)
    grid[state["cell"][k]] = RED, BLUE
    grid[PLACES] = np.where(state["coin_is_red"][k], RED_COIN, BLUE_COIN)
    return grid


def test_episodes():
    """1,000 whole episodes: JaxMARL follows our states where chance decided, and agrees on all else."""
    n, rng = 1000, np.random.default_rng(1)
    sim = Simulator(Storm2P, n, autoreset_mode="disabled", device="cpu")
    sim.reset(seed=5)
    env = make({})
    _, theirs = jax.vmap(env.reset)(jax.random.split(jax.random.key(1), n))
    step, met, moved = jax.jit(jax.vmap(env.step_env)), 0, 0
    for t in range(sim.cfg.num_inner_steps):
        values = sim.state()
        theirs = place(theirs, values).replace(step=jnp.full(n, t), outer_t=jnp.zeros(n, int))
        actions = rng.choice(5, (n, 2), p=[0.15, 0.1, 0.45, 0.25, 0.05])
        keys = jax.random.split(jax.random.key(t), n)
        _, after, rewards, done, _ = step(keys, theirs, tuple(actions.T))
        sim.arrays["action"][...] = actions[..., None]
        sim.step()
        np.testing.assert_allclose(sim.arrays["reward"], np.stack(rewards, 1), rtol=ROUNDING, atol=ROUNDING)
        np.testing.assert_array_equal(sim.arrays["terminated"][:, 0], np.asarray(done["__all__"]))
        ours, want = sim.state(), fields(after)
        met += int((sim.arrays["reward"] != 0).any(1).sum())
        if t + 1 == sim.cfg.num_inner_steps:
            assert sim.arrays["terminated"].all()
            break
        begun = (want["freeze"] == -1) & (values["freeze"] > 0)
        kept = ~begun & ~both_want(values, actions)
        for name in ours.keys() & want.keys():
            np.testing.assert_array_equal(ours[name][kept], want[name][kept], err_msg=name)
        moved += int(begun.sum())
    assert met > 100
    assert moved > 100
