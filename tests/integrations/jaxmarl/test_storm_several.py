"""Storm for several players against JaxMARL's, from states drawn at random and over whole episodes. Cells are exact.

Payoffs are a few products and sums of numbers up to 5, which XLA may fuse: 1e-6 is eight roundings of the largest.
Where chance decides, the same states are played very often, and all outcomes must be as frequent in both. JaxMARL
shuffles all 43,758 starts in each step, which takes long. Here it has every thousandth, but for `test_starts`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np
import pytest
from jaxmarl.environments.storm import storm_env
from storm_chance import branching

from gpuzoo import Simulator
from gpuzoo.envs.storm.storm import BEAM, BLUE_COIN, COINS, RED_COIN, SIDE, STARTS, Storm

pytestmark = [
    pytest.mark.rotates,  # JAX compiles for long
    pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types"),  # in JaxMARL's rules
]

PAYOFFS = [f"{player}_payoff_{kinds}" for player in ("first", "second") for kinds in ("rr", "rb", "br", "bb")]
OTHERS = dict(zip(PAYOFFS, (1.5, 0.25, -3.0, 2.0, 0.5, -0.75, 4.0, 0.125), strict=True))
OPTIONS = [
    {"num_agents": 2},
    {"num_agents": 3},
    {"num_agents": 4, "num_inner_steps": 3, "num_outer_steps": 4},
    {"num_agents": 5, "freeze_penalty": 1, "fixed_coin_location": False},
    {"num_agents": 3, "freeze_penalty": 0},
    {"num_agents": 8} | OTHERS,
]
ROUNDING = 1e-6
PLACES = SIDE * np.array(COINS)[:, 0] + np.array(COINS)[:, 1]


ALL_STARTS = np.asarray(storm_env.AGENT_SPAWNS, np.int32) @ [SIDE, 1]
storm_env.AGENT_SPAWNS = storm_env.AGENT_SPAWNS[::1000]


def make(options):
    """JaxMARL's env with our options."""
    plain = {k: v for k, v in options.items() if k not in PAYOFFS}
    values = [options.get(name, getattr(Storm.Config(), name)) for name in PAYOFFS]
    return jaxmarl.make("storm", payoff_matrix=jnp.array(values).reshape(2, 2, 2), **plain)


def near(rng, n, players):
    """Cells of players, most of them near each other, some in the same cell."""
    centre = rng.integers(0, SIDE, (n, 1, 2))
    reach = rng.integers(1, SIDE, (n, 1, 1))
    xy = np.clip(centre + rng.integers(-reach, reach + 1, (n, players, 2)), 0, SIDE - 1)
    return xy @ [SIDE, 1]


def draw(rng, n, players, penalty):
    """Any field: players, coins and beams anywhere; a few players are hidden or share a cell."""
    grid = rng.choice([0, 0, 0, 0, RED_COIN, BLUE_COIN, BEAM], (n, SIDE * SIDE)).astype(np.int8)
    cell = near(rng, n, players)
    for a in range(players):
        shown = rng.random(n) < 0.95
        grid[shown, cell[shown, a]] = a + 1
    inventory = rng.integers(0, 7, (n, players, 2)) * (rng.random((n, players, 1)) < 0.8)
    return {
        "cell": cell.astype(np.int32),
        "direction": rng.integers(0, 4, (n, players)).astype(np.int32),
        "inventory": inventory.astype(np.int32),
        "freeze": np.where(rng.random((n, players)) < 0.8, -1, rng.integers(0, penalty + 1, (n, players))).astype("i4"),
        "grid": grid,
        "coin_is_red": rng.permuted(np.tile(np.arange(12) < 6, (n, 1)), axis=1),
        "timer": rng.integers(1, 10, (n, 12)).astype(np.int8),
    }


def place(state, values):
    """JaxMARL's states with our fields."""
    xy = np.stack([*np.divmod(values["cell"], SIDE), values["direction"]], -1).astype(np.int8)
    order = np.argsort(~values["coin_is_red"], axis=1, kind="stable")
    coins, timer = np.array(COINS, np.int8)[order], np.take_along_axis(values["timer"], order, 1).astype(np.int32)
    return state.replace(
        agent_positions=jnp.array(xy), grid=jnp.array(values["grid"].reshape(-1, SIDE, SIDE)),
        agent_inventories=jnp.array(values["inventory"], jnp.float32),
        coin_coop=jnp.array(coins[:, :6]), coin_defect=jnp.array(coins[:, 6:]),
        coin_timer_coop=jnp.array(timer[:, :6]), coin_timer_defect=jnp.array(timer[:, 6:]),
        agent_freezes=jnp.array(values["freeze"], jnp.int16),
    )  # fmt: skip


def fields(state):
    """Our fields of JaxMARL's states."""
    found = np.asarray(state.agent_positions, np.int32)
    coins = np.concatenate([np.asarray(state.coin_coop), np.asarray(state.coin_defect)], 1).astype(int) @ [SIDE, 1]
    timer = np.concatenate([np.asarray(state.coin_timer_coop), np.asarray(state.coin_timer_defect)], 1)
    order = np.argsort(coins, axis=1)
    place_of = np.argsort(np.argsort(PLACES))
    return {
        "cell": found[..., :2] @ [SIDE, 1],
        "direction": found[..., 2],
        "inventory": np.asarray(state.agent_inventories).astype(np.int32),
        "freeze": np.maximum(np.asarray(state.agent_freezes), -1),  # it counts down on, to no effect
        "grid": np.asarray(state.grid).reshape(len(found), -1),
        "coin_is_red": (order < 6)[:, place_of],
        "timer": np.take_along_axis(timer, order, 1)[:, place_of],
    }


def assert_same_observations(env, theirs, sim):
    found = jax.jit(jax.vmap(env.get_obs))(theirs)
    n, players = sim.num_envs, sim.cfg.num_agents
    views = np.asarray(found["observations"]).reshape(n, players, -1)
    red, blue, pickups, red_shown, blue_shown = np.moveaxis(np.asarray(found["inventory"]), 1, 0)
    for a in range(players):
        order = np.arange(players)
        order[[0, a]] = a, 0
        own = [red[:, [a]], blue[:, [a]], pickups[:, order], red_shown[:, order], blue_shown[:, order]]
        np.testing.assert_array_equal(sim.arrays["observation"][:, a], np.concatenate([views[:, a], *own], 1))


def wishes(values, actions):
    """The cells into which players want to go, and whether they move."""
    step = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[values["direction"]]
    xy = np.stack(np.divmod(values["cell"], SIDE), -1)
    forward = (actions == 2) & (values["freeze"] <= 0)
    wanted = np.clip(xy + step * forward[..., None], 0, SIDE - 1) @ [SIDE, 1]
    return wanted, wanted != values["cell"]


def chance(values, actions):
    """Where chance may decide who moves or who meets: two move to one cell, or more than one pair shoots."""
    wanted, moves = wishes(values, actions)
    n, players = wanted.shape
    if players == 2:
        return np.zeros(n, bool)
    pairs = [(a, b) for a in range(players) for b in range(a)]
    contested = np.any([(wanted[:, a] == wanted[:, b]) & moves[:, a] & moves[:, b] for a, b in pairs], 0)
    shooting = (actions == 3) & (values["freeze"] <= 0)
    return contested | (shooting.sum(1) > (2 if players == 3 else 1))


def act(rng, n, players):
    """Either everybody walks, or two shoot."""
    actions = rng.choice(5, (n, players), p=[0.1, 0.1, 0.5, 0.2, 0.1])
    calm = rng.random(n) < 0.5
    rest = rng.choice([0, 1, 2, 4], (n, players), p=[0.1, 0.1, 0.3, 0.5])
    two = rng.permuted(np.tile(np.arange(players) < 2, (n, 1)), axis=1)
    actions[calm] = np.where(two, 3, rest)[calm]
    return actions


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps(options):
    n, rng = 5_000, np.random.default_rng(0)
    sim = Simulator(Storm, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=0)
    inner, outer, players = sim.cfg.num_inner_steps, sim.cfg.num_outer_steps, sim.cfg.num_agents
    values = draw(rng, n, players, sim.cfg.freeze_penalty)
    t = rng.integers(0, inner * outer, n).astype(np.int32)
    sim.set_state({**values, "elapsed_steps": t})
    actions = act(rng, n, players)
    sim.arrays["action"][...] = actions[..., None]

    env = make(options)
    keys = jax.random.split(jax.random.key(1), n)
    _, theirs = jax.jit(jax.vmap(env.reset))(keys)
    theirs = place(theirs, values).replace(step=jnp.array(t % inner), outer_t=jnp.array(t // inner))
    assert_same_observations(env, theirs, sim)
    _, after, rewards, done, _ = jax.jit(jax.vmap(env.step_env))(keys, theirs, tuple(actions.T))
    sim.step()
    plain = ~chance(values, actions)
    np.testing.assert_allclose(sim.arrays["reward"][plain], np.asarray(rewards)[plain], rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_array_equal(sim.arrays["terminated"], np.tile(np.asarray(done["__all__"])[:, None], players))
    assert not sim.arrays["truncated"].any()

    ours, want = sim.state(), fields(after)
    drawn = np.asarray(after.step) == 0  # what was drawn anew differs, as the random numbers do
    begun = (values["freeze"] == 1) | ((sim.cfg.freeze_penalty == 0) & (actions == 3))
    begun[(values["freeze"] == 1).any(1)] |= sim.cfg.freeze_penalty == 0
    kept = plain & ~drawn
    still = kept & ~begun.any(1)
    for name in ("freeze", "inventory"):
        np.testing.assert_array_equal(ours[name][kept], want[name][kept], err_msg=name)
    for name in ("cell", "direction"):
        np.testing.assert_array_equal(ours[name][kept][~begun[kept]], want[name][kept][~begun[kept]], err_msg=name)
    np.testing.assert_array_equal(ours["grid"][still], want["grid"][still])
    np.testing.assert_array_equal(ours["coin_is_red"][kept], want["coin_is_red"][kept])
    same = kept[:, None] & (values["timer"] > 1)
    np.testing.assert_array_equal(ours["timer"][same], want["timer"][same])
    assert still.sum() > n / 20
    if inner > 3:
        met = (want["freeze"] == sim.cfg.freeze_penalty) & (values["freeze"] <= 0)
        if players <= 3:  # of more, chance decides which pairs are looked at
            assert met[plain].any(1).sum() > 10 or sim.cfg.freeze_penalty == 0
            assert (sim.arrays["reward"][plain] != 0).any() == (players > 2)  # two are never paid
    assert_same_observations(env, place(after, ours), sim)


@pytest.mark.parametrize("players", [2, 3, 4, 6])
def test_chance(players):
    """States in which chance decides, 500 times each: all outcomes as often in both, within 5 standard deviations."""
    rng = np.random.default_rng(players)
    many = draw(rng, 20_000, players, 0)
    cells = near(rng, 20_000, players) // SIDE // 3 * SIDE + near(rng, 20_000, players) % SIDE // 3  # at a corner
    many["grid"][...] = 0
    for a in range(players):
        many["grid"][np.arange(20_000), cells[:, a]] = a + 1
    many["cell"][...] = cells
    many["inventory"][...] = rng.integers(1, 5, many["inventory"].shape)
    many["timer"][...] = 9
    many["freeze"][...] = -1
    actions = rng.choice([2, 3], (20_000, players))
    wanted, moves = wishes(many, actions)
    same = (wanted[:, :, None] == wanted[:, None]) & moves[:, :, None] & moves[:, None]
    ranks = np.triu(same, 1).sum((1, 2)), (actions == 3).sum(1)
    chosen = np.concatenate([np.argsort(-rank, kind="stable")[:12] for rank in ranks])
    states = {k: v[chosen] for k, v in many.items()}
    told = ("cell", "freeze", "inventory")
    several = branching(Storm, make({"num_agents": players}), place, fields, states, actions[chosen], 500, told)
    assert several == 0 if players == 2 else several > 4


@pytest.mark.parametrize("fixed", [True, False])
def test_starts(fixed):
    """Each start, direction, colour and timer as often as there, within 5 standard deviations."""
    n, players = 12_000, 8
    sim = Simulator(Storm, n, autoreset_mode="disabled", device="cpu", fixed_coin_location=fixed, num_agents=players)
    sim.reset(seed=0)
    env = make({"fixed_coin_location": fixed, "num_agents": players})
    _, state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(3), n))
    theirs, ours = fields(state), sim.state()
    for name, count in (("direction", 4), ("timer", 11), ("coin_is_red", 2)):
        for k in range(ours[name].shape[1]):
            here, there = (np.bincount(x[name][:, k].astype(int), minlength=count) for x in (ours, theirs))
            np.testing.assert_array_equal(here > 0, there > 0)
            share = (here + there) / (2 * n)
            assert (abs(here - there) <= 5 * np.sqrt(2 * n * share * (1 - share))).all()
    for k in range(players):  # JaxMARL takes each row of the table with the same chance
        here, there = (np.bincount(x, minlength=SIDE * SIDE) for x in (ours["cell"][:, k], ALL_STARTS[:, k]))
        share = there / len(ALL_STARTS)
        assert not here[there == 0].any()
        assert (abs(here - n * share) <= 5 * np.sqrt(n * share * (1 - share)) + 1).all()
    assert {*map(tuple, ours["cell"].tolist())} <= {*map(tuple, ALL_STARTS.tolist())}
    assert len(STARTS) == len(np.unique(ALL_STARTS))
    for k in range(36):  # the field as it is drawn from places and coins
        for x in (ours, theirs):
            grid = np.zeros(SIDE * SIDE, np.int8)
            grid[x["cell"][k]] = np.arange(1, players + 1)
            grid[PLACES] = np.where(x["coin_is_red"][k], RED_COIN, BLUE_COIN)
            np.testing.assert_array_equal(grid, x["grid"][k])


@pytest.mark.parametrize("players", [2, 3])
def test_episodes(players):
    """1,000 whole episodes: JaxMARL follows our states where chance decided, and agrees on all else."""
    n, rng = 1000, np.random.default_rng(1)
    sim = Simulator(Storm, n, autoreset_mode="disabled", device="cpu", num_agents=players)
    sim.reset(seed=5)
    env = make({"num_agents": players})
    _, theirs = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(1), n))
    step, met, moved = jax.jit(jax.vmap(env.step_env)), 0, 0
    for t in range(sim.cfg.num_inner_steps):
        values = sim.state()
        theirs = place(theirs, values).replace(step=jnp.full(n, t), outer_t=jnp.zeros(n, int))
        actions = rng.choice(5, (n, players), p=[0.15, 0.1, 0.35, 0.35, 0.05])
        keys = jax.random.split(jax.random.key(t), n)
        _, after, rewards, done, _ = step(keys, theirs, tuple(actions.T))
        sim.arrays["action"][...] = actions[..., None]
        sim.step()
        plain = ~chance(values, actions)
        np.testing.assert_allclose(
            sim.arrays["reward"][plain], np.asarray(rewards)[plain], rtol=ROUNDING, atol=ROUNDING
        )
        np.testing.assert_array_equal(sim.arrays["terminated"][:, 0], np.asarray(done["__all__"]))
        if t + 1 == sim.cfg.num_inner_steps:
            assert sim.arrays["terminated"].all()
            break
        ours, want = sim.state(), fields(after)
        begun = values["freeze"] == 1
        for name in ("freeze", "inventory", "cell", "direction"):
            kept = plain[:, None] & (~begun | (name in ("freeze", "inventory")))
            np.testing.assert_array_equal(ours[name][kept], want[name][kept], err_msg=name)
        kept = plain & ~begun.any(1)
        np.testing.assert_array_equal(ours["grid"][kept], want["grid"][kept])
        met += int(((want["freeze"] == 5) & plain[:, None]).any(1).sum())
        moved += int(begun.any(1).sum())
    assert met > 50
    assert moved > 50
