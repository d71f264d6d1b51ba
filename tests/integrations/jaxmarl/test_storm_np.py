"""StormNP against JaxMARL's, from states drawn at random and over whole episodes. Cells are exact.

Payoffs are a few products and sums of numbers up to 5, which XLA may fuse: 1e-6 is eight roundings of the largest.
Where chance decides, the same states are played very often, and all outcomes must be as frequent in both.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np
import pytest
from storm_chance import branching

from gpuzoo import Simulator
from gpuzoo.envs.storm.storm_np import BEAM, BLUE_COIN, RED_COIN, StormNP

pytestmark = pytest.mark.rotates  # JAX compiles for long

PAYOFFS = [f"{player}_payoff_{kinds}" for player in ("first", "second") for kinds in ("rr", "rb", "br", "bb")]
OTHERS = dict(zip(PAYOFFS, (1.5, 0.25, -3.0, 2.0, 0.5, -0.75, 4.0, 0.125), strict=True))
OPTIONS = [
    {"num_agents": 2},
    {"num_agents": 3, "num_inner_steps": 3, "num_outer_steps": 4},
    {"num_agents": 5, "freeze_penalty": 1, "grid_size": 7, "obs_size": 3, "num_coins": 4} | OTHERS,
    {"num_agents": 3, "freeze_penalty": 0},
    {"num_agents": 16, "grid_size": 10, "obs_size": 7} | OTHERS,
]
ROUNDING = 1e-6
PLAYER_0, STAY, NEAR = 5, 3, 4


def make(options):
    """JaxMARL's env with our options."""
    plain = {k: v for k, v in options.items() if k not in PAYOFFS}
    values = [options.get(name, getattr(StormNP.Config(), name)) for name in PAYOFFS]
    return jaxmarl.make("storm_np", payoff_matrix=jnp.array(values).reshape(2, 2, 2), **plain)


def near(rng, n, players, side):
    """Cells of players, most of them near each other, some in the same cell."""
    centre = rng.integers(0, side, (n, 1, 2))
    reach = rng.integers(1, side, (n, 1, 1))
    return np.clip(centre + rng.integers(-reach, reach + 1, (n, players, 2)), 0, side - 1) @ [side, 1]


def draw(rng, n, cfg):
    """Any field: players, coins and beams anywhere; a few players are hidden or share a cell."""
    side, players = cfg.grid_size, cfg.num_agents
    grid = rng.choice([0, 0, 0, BEAM], (n, side * side)).astype(np.int8)
    coins = rng.permuted(np.tile(np.arange(side * side), (n, 1)), axis=1)[:, : 2 * cfg.num_coins]
    for k in range(coins.shape[1]):
        shown = rng.random(n) < 0.7
        grid[shown, coins[shown, k]] = RED_COIN if k < cfg.num_coins else BLUE_COIN
    cell = near(rng, n, players, side)
    for a in range(players):
        shown = rng.random(n) < 0.95
        grid[shown, cell[shown, a]] = PLAYER_0 + a
    freeze = rng.integers(-1, 1, (n, players, players))
    freeze = np.where(
        rng.random(freeze.shape) < 0.2 / players, rng.integers(0, cfg.freeze_penalty + 1, freeze.shape), freeze
    )
    free = rng.random(n) < 0.5
    freeze[free] = np.minimum(freeze[free], 0)
    return {
        "cell": cell.astype(np.int32),
        "direction": rng.integers(0, 4, (n, players)).astype(np.int32),
        "inventory": (rng.integers(0, 7, (n, players, 2)) * (rng.random((n, players, 1)) < 0.8)).astype(np.int32),
        "freeze": freeze.astype(np.int32),
        "grid": grid,
        "coin_cell": coins.astype(np.int32),
    }  # fmt: skip


def place(state, values, side):
    """JaxMARL's states with our fields."""
    locs = np.stack([*np.divmod(values["cell"], side), values["direction"]], -1)
    coins = np.stack(np.divmod(values["coin_cell"], side), -1)
    half = coins.shape[1] // 2
    new = {
        "agent_locs": locs, "agent_invs": values["inventory"], "freeze": values["freeze"],
        "grid": values["grid"].reshape(-1, side, side), "red_coins": coins[:, :half], "blue_coins": coins[:, half:],
    }  # fmt: skip
    return state.replace(**{name: jnp.array(value, getattr(state, name).dtype) for name, value in new.items()})


def fields(state):
    """Our fields of JaxMARL's states."""
    locs, side = np.asarray(state.agent_locs, np.int32), state.grid.shape[-1]
    coins = np.concatenate([np.asarray(state.red_coins), np.asarray(state.blue_coins)], 1).astype(np.int32)
    return {
        "cell": locs[..., :2] @ [side, 1],
        "direction": locs[..., 2],
        "inventory": np.asarray(state.agent_invs, np.int32),
        "freeze": np.asarray(state.freeze),
        "grid": np.asarray(state.grid).reshape(len(locs), -1),
        "coin_cell": coins @ [side, 1],
    }


def assert_same_observations(env, theirs, sim):
    found = np.asarray(jax.jit(jax.vmap(env.get_obs))(theirs))
    np.testing.assert_array_equal(sim.arrays["observation"], found.reshape(sim.arrays["observation"].shape))


def chance(values, actions, side):
    """Where chance may decide: two move to one cell, or several shoot from the same distance."""
    step = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[values["direction"]]
    xy = np.stack(np.divmod(values["cell"], side), -1)
    free = ~(values["freeze"] > 0).any(2)
    wanted = np.clip(xy + step * ((actions == 2) & free)[..., None], 0, side - 1) @ [side, 1]
    moves = wanted != values["cell"]
    players = wanted.shape[1]
    pairs = [(a, b) for a in range(players) for b in range(a)]
    contested = np.any([(wanted[:, a] == wanted[:, b]) & moves[:, a] & moves[:, b] for a, b in pairs], 0)
    return contested | ((free & (actions == NEAR)).sum(1) > 1) | ((free & (actions > NEAR)).sum(1) > 1)


def act(rng, n, players):
    """Everybody walks and shoots, or at most two shoot."""
    actions = rng.choice(8, (n, players), p=[0.1, 0.1, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1])
    calm = rng.random(n) < 0.7
    shots = np.where(np.arange(players) == 0, NEAR, rng.integers(NEAR + 1, 8, (n, players)))
    rest = rng.choice(4, (n, players), p=[0.1, 0.1, 0.3, 0.5])
    quiet = rng.permuted(np.where(np.arange(players) < 2, shots, -1), axis=1)
    actions[calm] = np.where(quiet >= 0, quiet, rest)[calm]
    return actions


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps(options):
    n, rng = 5_000, np.random.default_rng(0)
    sim = Simulator(StormNP, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=0)
    inner, outer, players, side = (
        sim.cfg.num_inner_steps, sim.cfg.num_outer_steps, sim.cfg.num_agents, sim.cfg.grid_size,
    )  # fmt: skip
    values = draw(rng, n, sim.cfg)
    t = rng.integers(0, inner * outer, n).astype(np.int32)
    sim.set_state({**values, "elapsed_steps": t})
    actions = act(rng, n, players)
    sim.arrays["action"][...] = actions[..., None]

    env = make(options)
    keys = jax.random.split(jax.random.key(1), n)
    _, theirs = jax.jit(jax.vmap(env.reset))(keys)
    theirs = place(theirs, values, side).replace(step=jnp.array(t % inner), outer_t=jnp.array(t // inner))
    assert_same_observations(env, theirs, sim)
    _, after, rewards, done, _ = jax.jit(jax.vmap(env.step_env))(keys, theirs, tuple(actions.T))
    sim.step()
    plain = ~chance(values, actions, side)
    np.testing.assert_allclose(sim.arrays["reward"][plain], np.asarray(rewards)[plain], rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_array_equal(sim.arrays["terminated"], np.tile(np.asarray(done["__all__"])[:, None], players))
    assert not sim.arrays["truncated"].any()

    ours, want = sim.state(), fields(after)
    drawn = np.asarray(after.step) == 0  # what was drawn anew differs, as the random numbers do
    kept = plain & ~drawn
    begun = ((want["freeze"] == 0) & (values["freeze"] == 1)).any(2)
    np.testing.assert_array_equal(ours["freeze"][kept], want["freeze"][kept])
    np.testing.assert_array_equal(ours["inventory"][kept], want["inventory"][kept])
    for name in ("cell", "direction"):
        same = kept[:, None] & ~begun
        np.testing.assert_array_equal(ours[name][same], want[name][same], err_msg=name)
    still = kept & ~begun.any(1)
    for name in ("grid", "coin_cell"):
        np.testing.assert_array_equal(ours[name][still], want[name][still], err_msg=name)
    assert still.sum() > n / 20
    if inner > 3:
        assert (want["freeze"][still] > values["freeze"][still]).any((1, 2)).sum() > 50
        assert (sim.arrays["reward"][plain] != 0).any(1).sum() > 10
    assert_same_observations(env, place(after, ours, side), sim)


@pytest.mark.parametrize("players", [2, 3, 5])
def test_chance(players):
    """States in which chance decides, 500 times each: all outcomes as often in both, within 5 standard deviations."""
    tries, rng = 8, np.random.default_rng(players)
    cfg = StormNP.Config(num_agents=players)
    many = draw(rng, 1_000, cfg)
    cells = near(rng, 1_000, players, 3) // 3 * 8 + near(rng, 1_000, players, 3) % 3  # at a corner
    many["grid"][...] = 0
    for a in range(players):
        many["grid"][np.arange(1_000), cells[:, a]] = PLAYER_0 + a
    many["cell"][...] = cells
    many["inventory"][...] = rng.integers(1, 5, many["inventory"].shape)
    many["freeze"][...] = -1
    many["direction"][...] = rng.integers(0, 2, many["direction"].shape)
    actions = rng.choice([2, 4, 5, 6, 7], (1_000, players))
    sim = Simulator(StormNP, 1_000 * tries, autoreset_mode="disabled", device="cpu", num_agents=players)
    sim.reset(seed=2)
    sim.set_state({k: np.repeat(v, tries, 0) for k, v in many.items()})
    sim.arrays["action"][...] = np.repeat(actions, tries, 0)[..., None]
    sim.step()
    grids = sim.state()["grid"].reshape(1_000, tries, -1)
    freezes = sim.state()["freeze"].reshape(1_000, tries, -1)
    varies = [(x != x[:, :1]).any((1, 2)) for x in (grids, freezes)]
    ranks = varies[0], varies[1], chance(many, actions, 8)
    chosen = np.concatenate([np.argsort(~rank, kind="stable")[:8] for rank in ranks])
    states = {k: v[chosen] for k, v in many.items()}
    told, placed = ("cell", "freeze", "grid"), functools.partial(place, side=8)
    env = make({"num_agents": players})
    assert branching(StormNP, env, placed, fields, states, actions[chosen], 500, told) > 3


def assert_as_often(here, there, most):
    """Each value as often in both at each place, within 5 standard deviations."""
    for k in range(here.shape[1]):
        one, two = (np.bincount(x[:, k].astype(int), minlength=most) for x in (here, there))
        share = (one + two) / (2 * len(here))
        assert (abs(one - two) <= 5 * np.sqrt(2 * len(here) * share * (1 - share)) + 1).all()


def test_starts_and_new_places():
    """Where players and coins begin, and where they begin anew, as often as there."""
    n, players = 10_000, 3
    sim = Simulator(StormNP, n, autoreset_mode="disabled", device="cpu", num_agents=players)
    sim.reset(seed=0)
    env = make({"num_agents": players})
    keys = jax.random.split(jax.random.key(3), n)
    _, state = jax.jit(jax.vmap(env.reset))(keys)
    ours, theirs = sim.state(), fields(state)
    for name in ("cell", "direction", "grid", "coin_cell"):
        assert_as_often(ours[name], theirs[name], 64)
    values = {k: np.repeat(v[:1], n, 0) for k, v in ours.items() if k in theirs}
    values["freeze"][:, 0, 1] = values["freeze"][:, 1, 0] = 1
    for k in (0, 1, 7):  # taken
        values["grid"][np.arange(n), values["coin_cell"][:, k]] = 0
    sim.set_state(values)
    sim.arrays["action"][...] = STAY
    sim.step()
    actions = (jnp.full(n, STAY),) * players
    _, after, *_ = jax.jit(jax.vmap(env.step_env))(keys, place(state, values, 8), actions)
    ours, theirs = sim.state(), fields(after)
    for name in ("cell", "direction", "grid", "coin_cell"):
        assert_as_often(ours[name], theirs[name], 64)
    np.testing.assert_array_equal(ours["freeze"], theirs["freeze"])


@pytest.mark.parametrize("players", [2, 4])
def test_episodes(players):
    """1,000 whole episodes: JaxMARL follows our states where chance decided, and agrees on all else."""
    n, rng = 1000, np.random.default_rng(1)
    sim = Simulator(StormNP, n, autoreset_mode="disabled", device="cpu", num_agents=players)
    sim.reset(seed=5)
    env = make({"num_agents": players})
    _, theirs = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(1), n))
    step, met, moved = jax.jit(jax.vmap(env.step_env)), 0, 0
    for t in range(sim.cfg.num_inner_steps):
        values = sim.state()
        theirs = place(theirs, values, 8).replace(step=jnp.full(n, t), outer_t=jnp.zeros(n, int))
        actions = act(rng, n, players)
        keys = jax.random.split(jax.random.key(t), n)
        found, after, rewards, done, _ = step(keys, theirs, tuple(actions.T))
        sim.arrays["action"][...] = actions[..., None]
        sim.step()
        plain = ~chance(values, actions, 8)
        np.testing.assert_allclose(
            sim.arrays["reward"][plain], np.asarray(rewards)[plain], rtol=ROUNDING, atol=ROUNDING
        )
        np.testing.assert_array_equal(sim.arrays["terminated"][:, 0], np.asarray(done["__all__"]))
        if t + 1 == sim.cfg.num_inner_steps:
            assert sim.arrays["terminated"].all()
            break
        ours, want = sim.state(), fields(after)
        begun = ((want["freeze"] == 0) & (values["freeze"] == 1)).any((1, 2))
        for name in want:
            kept = plain & (~begun | (name == "freeze"))
            np.testing.assert_array_equal(ours[name][kept], want[name][kept], err_msg=name)
        kept = plain & ~begun
        np.testing.assert_array_equal(
            sim.arrays["observation"][kept], np.asarray(found).reshape(sim.arrays["observation"].shape)[kept]
        )
        met += int((want["freeze"] == 5).any((1, 2)).sum())
        moved += int(begun.sum())
    assert met > 100
    assert moved > 100
