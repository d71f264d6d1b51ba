"""The switch riddle against JaxMARL's, from states drawn at random. All numbers are exact in both."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np
import pytest
from jaxmarl.environments.switch_riddle.switch_riddle import State

from gpuzoo import Simulator
from gpuzoo.envs.switch_riddle.switch_riddle import SwitchRiddle

OPTIONS = [
    {"num_agents": 3},
    {"num_agents": 4, "initial_bulb_state": True},
    {"num_agents": 10, "reward_all_live": 2.5, "reward_all_die": -0.75},
    {"num_agents": 31},
]


def states(rng, n, agents):
    been = rng.random((n, agents)) < rng.choice([0.3, 0.9, 0.99], (n, 1))
    bits = (been.astype(object) << np.arange(agents, dtype=object)).sum(1)
    return {
        "light": rng.random(n) < 0.5,
        "in_room": rng.integers(0, agents, n).astype(np.int32),
        "has_been": bits.astype(np.uint64),
        "elapsed_steps": rng.integers(0, 4 * agents - 6, n).astype(np.int32),
    }, been


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps(options):
    n, rng, agents = 20_000, np.random.default_rng(0), options["num_agents"]
    sim = Simulator(SwitchRiddle, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=0)
    state, been = states(rng, n, agents)
    sim.set_state(state)
    actions = rng.integers(0, 3, (n, agents))
    sim.arrays["action"][...] = actions[..., None]

    env = jaxmarl.make("switch_riddle", **options)
    theirs = State(
        bulb_state=jnp.array(state["light"]),
        agent_in_room=jnp.array(state["in_room"]),
        has_been=jnp.array(been, int),
        done=jnp.zeros(n, bool),
        step=jnp.array(state["elapsed_steps"]),
    )
    assert_same_observations(env, theirs, sim)
    names = dict(zip(env.agents, actions.T, strict=True))
    keys = jax.random.split(jax.random.key(1), n)
    _, theirs, rewards, done, _ = jax.vmap(env.step_env)(keys, theirs, names)
    sim.step()
    for k, agent in enumerate(env.agents):
        assert (sim.arrays["reward"][:, k] == np.asarray(rewards[agent], np.float32)).all()
        assert (sim.arrays["terminated"][:, k] == np.asarray(done[agent])).all()
    assert not sim.arrays["truncated"].any()
    ours = sim.state()
    assert (ours["light"] == np.asarray(theirs.bulb_state)).all()
    bits = ours["has_been"][:, None] >> np.arange(agents, dtype=np.uint64) & np.uint64(1)
    assert (bits == np.asarray(theirs.has_been)).all()
    assert (ours["elapsed_steps"] == np.asarray(theirs.step)).all()
    assert_same_observations(env, theirs.replace(agent_in_room=jnp.array(ours["in_room"])), sim)


def assert_same_observations(env, theirs, sim):
    observations = jax.vmap(env.get_obs)(theirs)
    for k, agent in enumerate(env.agents):
        assert (sim.arrays["observation"][:, k] == np.asarray(observations[agent])).all()


def test_the_next_one_is_drawn_from_all():
    """By both in the same way: each of 5 in a fifth of 100,000 draws, within 5 standard deviations of the binomial."""
    n, agents = 100_000, 5
    sim = Simulator(SwitchRiddle, n, autoreset_mode="disabled", device="cpu", num_agents=agents)
    sim.reset(seed=0)
    bound = 5 * np.sqrt(n * 0.2 * 0.8)
    assert (abs(np.bincount(sim.arrays["in_room"], minlength=agents) - n / agents) < bound).all()
    before = sim.arrays["in_room"].copy()
    sim.step()
    pairs = np.bincount(agents * before + sim.arrays["in_room"], minlength=agents**2)
    assert (abs(pairs - n / agents**2) < 5 * np.sqrt(n * 0.04 * 0.96)).all()


def test_whole_episodes_begin_as_theirs():
    env = jaxmarl.make("switch_riddle", num_agents=4, initial_bulb_state=True)
    _, theirs = env.reset(jax.random.key(0))
    sim = Simulator(SwitchRiddle, 50, device="cpu", num_agents=4, initial_bulb_state=True)
    sim.reset(seed=0)
    assert (sim.arrays["light"] == bool(theirs.bulb_state)).all()
    assert not sim.arrays["has_been"].any()
    assert not np.asarray(theirs.has_been).any()
