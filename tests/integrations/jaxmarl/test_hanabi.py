"""Hanabi against JaxMARL's, over whole episodes with the same deals.

Its observations have probabilities in place of what is possible of a card. They follow from ours: what is possible,
weighted by the copies that are neither discarded nor in a firework. They are compared within 1e-6, float32's rounding
of a quotient. All else is equal. From the same probabilities follow those of our `beliefs` that a card of another
player is playable, as its holder sees it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxmarl.environments.hanabi import Hanabi as Theirs

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.hanabi.beliefs import CLASSES
from gpuzoo.envs.hanabi.hanabi import GAMES, cards_per_color, hand_size

VARIANTS = {
    "full": {},
    "3 players": {"players": 3},
    "5 players": {"players": 5},
    "small": dict(GAMES["Small"]),
}
pytestmark = pytest.mark.rotates
COPIES = np.array([3, 2, 2, 2, 1])


def packed(cards):
    """The bit that is set in each byte, -1 where there is none: (..., 8)."""
    bits = np.ascontiguousarray(cards).view(np.uint8).reshape(*cards.shape, 8)
    return np.where(bits == 0, -1, np.log2(np.maximum(bits, 1)).astype(int))


def newest(sim, players):
    """(color, rank) of the newest card of a player's full hand in each env."""
    every, last = np.arange(sim.num_envs), hand_size(sim.cfg) - 1
    return np.stack([packed(sim.arrays[name])[every, players, last] for name in ("color", "rank")], -1)


def decks(sim, drawn):
    """Decks that give the hands with which ours began and then the cards drawn; the rest does not matter."""
    hand, n, cfg = hand_size(sim.cfg), sim.num_envs, sim.cfg
    hands = np.stack([packed(sim.arrays[name])[..., :hand] for name in ("color", "rank")], -1)
    return np.concatenate([hands.reshape(n, cfg.players * hand, 2), drawn], 1)


def shown_by(sim):
    """What ours shows, and what its probabilities follow from."""
    return [sim.arrays[name].copy() for name in ("observation", "discards", "fireworks")]


def with_probabilities(cfg, observations, discards, fireworks):
    """Our observations with probabilities in place of what is possible."""
    n, cards, deck = len(observations), cfg.colors * cfg.ranks, cfg.colors * cards_per_color(cfg)
    each = cards + cfg.colors + cfg.ranks
    out = observations.astype(np.float32)
    discarded = discards[:, None] >> np.arange(deck, dtype=np.uint64) & np.uint64(1)
    kinds = np.repeat(np.arange(cards), np.tile(COPIES, cfg.colors))
    gone = np.stack([discarded[:, kinds == k].sum(1) for k in range(cards)], 1)
    played = fireworks[:, None] >> np.arange(cards, dtype=np.uint32) & np.uint32(1)
    left = (np.tile(COPIES, cfg.colors) - gone.astype(int) - played).astype(np.float32)
    known = out[..., -cfg.players * hand_size(cfg) * each :].reshape(n, cfg.players, -1, each)
    weights = known[..., :cards] * left[:, None, None]
    known[..., :cards] = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-9)
    return np.concatenate([out[..., : -known[0, 0].size], known.reshape(n, cfg.players, -1)], -1)


def chances_of_playable(cfg, beliefs):
    """Of the cards of the others, as their holders see them: (envs, players, cards)."""
    cards, own, each = (
        (cfg.players - 1) * hand_size(cfg),
        len(CLASSES) + 7 + cfg.ranks,
        2 * len(CLASSES) + cfg.ranks + 3,
    )
    rows = beliefs[..., hand_size(cfg) * own :][..., : cards * each]
    return rows.reshape(*beliefs.shape[:2], cards, each)[..., len(CLASSES)]


def playable_by(cfg, probabilities, fireworks):
    """The same from observations with probabilities."""
    n, kinds = len(fireworks), cfg.colors * cfg.ranks
    each = kinds + cfg.colors + cfg.ranks
    known = probabilities[..., -cfg.players * hand_size(cfg) * each :].reshape(n, cfg.players, -1, each)
    played = fireworks[:, None] >> np.arange(kinds, dtype=np.uint32) & np.uint32(1)
    height = played.reshape(n, cfg.colors, cfg.ranks).sum(-1)
    fits = (height[..., None] == np.arange(cfg.ranks)).reshape(n, 1, 1, kinds)
    return (known[:, :, hand_size(cfg) :, :kinds] * fits).sum(-1)


def play(sim, believing, rng):
    """Random games, half of them without plays that do not fit; each step's actions, rewards, ends, observations,
    beliefs and masks, and the cards drawn."""
    s, cfg, n = sim.arrays, sim.cfg, sim.num_envs
    hand, every, careful = hand_size(cfg), np.arange(n), np.arange(n) % 2 == 0
    steps, drawn = [], np.zeros((n, int(np.bitwise_count(s["deck"][0])), 2), int)
    taken, going = np.zeros(n, int), np.ones(n, bool)
    while going.any():
        mover, before = s["to_move"].copy(), np.bitwise_count(s["deck"])
        masks = s["action_mask"][every, mover].astype(bool)
        color, rank = (packed(s[name])[every, mover, :hand] for name in ("color", "rank"))
        fireworks = s["fireworks"][:, None] >> (cfg.ranks * np.maximum(color, 0)).astype(np.uint32)
        fits = (rank == np.bitwise_count(fireworks & np.uint32((1 << cfg.ranks) - 1))) & (color >= 0)
        weights = rng.random(masks.shape) * masks + masks
        weights[:, hand : 2 * hand] += np.where(careful[:, None] & ~fits, -0.99, 0.0) * masks[:, hand : 2 * hand]
        actions = weights.argmax(1)
        for one in (sim, believing):
            one.arrays["action"][every, mover, 0] = actions
            one.step()
        draws = (np.bitwise_count(s["deck"]) < before) & going
        drawn[draws, taken[draws]] = newest(sim, mover)[draws]
        taken += draws
        ended = s["terminated"][:, 0].astype(bool)
        shown, beliefs = shown_by(sim), believing.arrays["observation"].copy()
        steps.append((going, mover, actions, s["reward"][:, 0].copy(), ended, shown, beliefs, s["action_mask"].copy()))
        going = going & ~ended
    return steps, drawn


@pytest.mark.parametrize("variant", VARIANTS)
def test_whole_episodes(variant):
    n, rng = 1000 if variant in ("full", "small") else 250, np.random.default_rng(0)
    sim, believing = (
        Simulator(gpuzoo.get("Hanabi-v0"), n, device="cpu", autoreset_mode="disabled", **VARIANTS[variant] | option)
        for option in ({}, {"observation_type": "beliefs"})
    )
    sim.reset(seed=0)
    believing.reset(seed=0)
    cfg = sim.cfg
    first, hands = with_probabilities(cfg, *shown_by(sim)), decks(sim, np.zeros((n, 0, 2), int))
    steps, drawn = play(sim, believing, rng)
    env = Theirs(
        num_agents=cfg.players, num_colors=cfg.colors, hand_size=hand_size(cfg),
        max_info_tokens=cfg.max_information_tokens, max_life_tokens=cfg.max_life_tokens,
    )  # fmt: skip
    observations, state = jax.vmap(env.reset_from_deck_of_pairs)(jnp.array(np.concatenate([hands, drawn], 1)))
    advance = jax.jit(jax.vmap(env.step_env, (None, 0, 0)))
    legal = jax.jit(jax.vmap(env.get_legal_moves))
    np.testing.assert_allclose(first, np.stack([observations[a] for a in env.agents], 1), atol=1e-6)
    wait = env.num_moves - 1
    for going, mover, actions, rewards, ended, shown, beliefs, masks in steps:
        chosen = {a: jnp.where(mover == k, actions, wait) for k, a in enumerate(env.agents)}
        observations, state, theirs, done, _ = advance(jax.random.key(0), state, chosen)
        np.testing.assert_array_equal(rewards[going], np.asarray(theirs[env.agents[0]])[going])
        np.testing.assert_array_equal(ended[going], np.asarray(done["__all__"])[going])
        seen = np.stack([observations[a] for a in env.agents], 1)
        np.testing.assert_allclose(with_probabilities(cfg, *shown)[going], seen[going], atol=1e-6)
        fits = playable_by(cfg, seen[going], shown[2][going])
        np.testing.assert_allclose(chances_of_playable(cfg, beliefs[going]), fits, atol=1e-6)
        allowed = legal(state)
        allowed = np.stack([allowed[a][:, :wait] for a in env.agents], 1)
        np.testing.assert_array_equal(masks[going], allowed[going])
