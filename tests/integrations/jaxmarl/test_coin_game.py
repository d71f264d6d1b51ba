"""The coin game against JaxMARL's, from states drawn at random. All numbers are exact in both."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.coin_game.coin_game import CoinGame

PAYOFFS = ("red_takes_red", "red_takes_blue", "red_loses", "blue_takes_red", "blue_takes_blue", "blue_loses")
OPTIONS = [
    {},
    {"cnn": True},
    {"egocentric": True, "shared_rewards": True},
    {"egocentric": True, "cnn": True, "num_inner_steps": 3, "num_outer_steps": 4},
    {"num_inner_steps": 1, "num_outer_steps": 1},
    dict(zip(PAYOFFS, (1.5, 0.25, -3.0, 2.0, 0.5, -0.75), strict=True)),
]
FIELDS = {"red": "red_pos", "blue": "blue_pos", "red_coin": "red_coin_pos", "blue_coin": "blue_coin_pos"}


def make(options):
    """JaxMARL's env with our options."""
    plain = {k: v for k, v in options.items() if k not in PAYOFFS}
    values = [options.get(name, getattr(CoinGame.Config(), name)) for name in PAYOFFS]
    return jaxmarl.make("coin_game", payoff_matrix=[values[:3], values[3:]], **plain)


def place(state, values):
    """JaxMARL's states with our cells."""
    return state.replace(**{theirs: jnp.stack(jnp.divmod(values[ours], 3), axis=-1) for ours, theirs in FIELDS.items()})


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps(options):
    n, rng = 20_000, np.random.default_rng(0)
    sim = Simulator(CoinGame, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=0)
    inner, outer = sim.cfg.num_inner_steps, sim.cfg.num_outer_steps
    values = {name: rng.integers(0, 9, n).astype(np.int32) for name in FIELDS}
    t = rng.integers(0, inner * outer, n).astype(np.int32)
    sim.set_state({**values, "elapsed_steps": t})
    actions = rng.integers(0, 5, (n, 2))
    sim.arrays["action"][...] = actions[..., None]

    env = make(options)
    keys = jax.random.split(jax.random.key(1), n)
    _, theirs = jax.vmap(env.reset)(keys)
    theirs = place(theirs, values).replace(step=jnp.array(t % inner), outer_t=jnp.array(t // inner))
    assert_same_observations(env, theirs, sim)
    names = dict(zip(env.agents, actions.T, strict=True))
    _, after, rewards, done, infos = jax.vmap(env.step_env)(keys, theirs, names)
    sim.step()
    for k, agent in enumerate(env.agents):
        assert (sim.arrays["reward"][:, k] == np.asarray(rewards[agent], np.float32)).all()
        assert (sim.arrays["terminated"][:, k] == np.asarray(done[agent])).all()
    assert not sim.arrays["truncated"].any()

    ours, going_on = sim.state(), ~np.asarray(infos["inner_episode_done"])
    cells = {name: np.asarray(getattr(after, FIELDS[name])) @ [3, 1] for name in FIELDS}
    red = [np.asarray(getattr(after, f"red_{kind}"))[:, :outer].sum(1) for kind in ("coop", "defect")]
    blue = [np.asarray(getattr(after, f"blue_{kind}"))[:, :outer].sum(1) for kind in ("coop", "defect")]
    assert (ours["own_coins"] == red[0] + blue[0]).all()
    assert (ours["other_coins"] == red[1] + blue[1]).all()
    taken = {
        "red_coin": (cells["red"] == values["red_coin"]) | (cells["blue"] == values["red_coin"]),
        "blue_coin": (cells["red"] == values["blue_coin"]) | (cells["blue"] == values["blue_coin"]),
    }
    for name in FIELDS:  # what was drawn anew differs, as the random numbers do
        kept = going_on & ~taken.get(name, np.zeros(n, bool))
        assert (ours[name][kept] == cells[name][kept]).all()
    if inner > 1:
        assert kept.sum() > n / 3
    assert_same_observations(env, place(after, ours), sim)


def assert_same_observations(env, theirs, sim):
    shape = (3, 3, 4) if sim.cfg.cnn else (36,)
    observations = jax.vmap(env.get_obs)(theirs)
    for k, agent in enumerate(env.agents):
        assert (sim.arrays["observation"][:, k].reshape(-1, *shape) == np.asarray(observations[agent])).all()


@pytest.mark.parametrize("steps", [0, 1, 10])
def test_places_are_drawn_from_all_cells(steps):
    """At the beginning, after coins were taken and in a new round: each pair of a player and a coin in 1/81 of 100,000
    draws, within 5 standard deviations of the binomial."""
    n = 100_000
    sim = Simulator(CoinGame, n, autoreset_mode="disabled", device="cpu")
    sim.reset(seed=0)
    for _ in range(steps):
        sim.random_actions()
        sim.step()
    bound = 5 * np.sqrt(n / 81)
    if steps == 1:  # a coin that was taken comes back anywhere, whoever took it and wherever it lay
        sim.set_state({"red": np.zeros(n, np.int32), "red_coin": np.ones(n, np.int32)})
        sim.arrays["action"][:, 0] = 0
        sim.arrays["action"][:, 1] = 4
        sim.step()
        assert (abs(np.bincount(sim.arrays["red_coin"], minlength=9) - n / 9) < 5 * np.sqrt(n / 9)).all()
        return
    for player in ("red", "blue"):
        for coin in ("red_coin", "blue_coin"):
            pairs = np.bincount(9 * sim.arrays[player] + sim.arrays[coin], minlength=81)
            assert (abs(pairs - n / 81) < bound).all()
