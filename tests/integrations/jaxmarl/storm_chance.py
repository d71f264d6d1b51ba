"""Compares STORM where chance decides: the same states are played very often, in gpuzoo and in JaxMARL."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np

from gpuzoo import Simulator


def branching(game, env, place, fields, states, actions, times, told):
    """How many of the states have several outcomes. Each outcome must be as often in both, up to 5 standard deviations.

    `place(theirs, values)` writes our fields into JaxMARL's states, and `fields` reads them. An outcome is the rewards
    and the fields in `told`.
    """
    values, actions = ({k: np.repeat(v, times, 0) for k, v in states.items()}, np.repeat(actions, times, 0))
    n = len(actions)
    sim = Simulator(game, n, autoreset_mode="disabled", device="cpu", num_agents=actions.shape[1])
    sim.reset(seed=1)
    sim.set_state(values)
    sim.arrays["action"][...] = actions[..., None]
    sim.step()
    keys = jax.random.split(jax.random.key(2), n)
    _, theirs = jax.jit(jax.vmap(env.reset))(keys)
    _, after, rewards, _, _ = jax.jit(jax.vmap(env.step_env))(keys, place(theirs, values), tuple(actions.T))
    ours = outcomes(sim.state(), sim.arrays["reward"], told)
    want = outcomes(fields(after), rewards, told)
    several = 0
    for low in range(0, n, times):
        here, there = (Counter(map(tuple, rows[low : low + times].tolist())) for rows in (ours, want))
        several += len(there) > 1
        for outcome in here.keys() | there.keys():
            share = (here[outcome] + there[outcome]) / (2 * times)
            assert abs(here[outcome] - there[outcome]) < 5 * np.sqrt(2 * times * share * (1 - share)) + 1
    return several


def outcomes(state, rewards, told):
    """(envs, numbers). Rewards are counted in steps of 1/997, so that rounding does not make two of one outcome."""
    columns = [np.asarray(state[name]).reshape(len(rewards), -1) for name in told]
    return np.concatenate([*columns, np.floor(997 * np.asarray(rewards) + 0.37)], 1).astype(int)
