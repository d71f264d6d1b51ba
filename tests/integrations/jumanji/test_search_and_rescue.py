"""SearchAndRescue against Jumanji's.

Targets drift at random, so theirs are told where ours went; how ours drift is compared in distribution. Sines, cosines
and arc tangents of XLA differ from ours by some units in the last place (CLOSE, of numbers up to 2 pi). An angle that
lies as close to the edge of a view may count as inside for one of both, and so may a distance: states are drawn so that
a find happens without such a tie, and rays that differ must lie at an edge of what they hit.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import SearchAndRescue
from jumanji.environments.swarms.common.types import AgentState
from jumanji.environments.swarms.search_and_rescue import dynamics, generator, observations, reward
from jumanji.environments.swarms.search_and_rescue.types import State, TargetState

pytestmark = pytest.mark.rotates
CLOSE = 4e-6


class _Told(dynamics.TargetDynamics):
    """The targets of the state have drifted already."""

    def __call__(self, key, targets, env_size):
        return targets


def rescue(n: int, searchers=2, targets=40, rays=128, size=1.0, split=True, scale=True, limit=400, **ranges) -> Against:
    ranges = {"target_contact_range": 0.02, "searcher_vision_range": 0.4, "target_vision_range": 0.1} | ranges
    angle, radius = ranges.pop("view_angle", 0.4), ranges.pop("agent_radius", 0.02)
    views = observations.AgentAndTargetObservationFn(
        rays, ranges["searcher_vision_range"], ranges["target_vision_range"], angle, radius, size
    )
    env = SearchAndRescue(
        ranges["target_contact_range"], time_limit=limit, target_dynamics=_Told(), observation=views,
        generator=generator.RandomGenerator(searchers, targets, size),
        reward_fn=reward.IndividualRewardFn(split, scale),
    )  # fmt: skip

    def pairs(arrays, name):
        return np.stack([arrays[f"{name}x"], arrays[f"{name}y"]], 2)

    def state_of(arrays):
        drifted = sim.arrays
        return State(
            searchers=AgentState(pos=pairs(arrays, ""), heading=arrays["heading"], speed=arrays["speed"]),
            targets=TargetState(
                pos=pairs(drifted, "target_"), vel=pairs(drifted, "target_v"), found=arrays["found"] != 0
            ),
            key=keys(n),
            step=arrays["elapsed_steps"],
        )

    def also(ours, theirs, live):
        for name, length in (("pos", size), ("heading", 2 * np.pi), ("speed", None)):
            difference = abs(np.asarray(getattr(theirs.searchers, name)) - getattr(ours.searchers, name))[live]
            if length is not None:
                difference = np.minimum(difference, length - difference)
            assert difference.max() < CLOSE
        one, other = ours.targets.found[live], np.asarray(theirs.targets.found)[live]
        assert (one != other).mean() < 1e-5
        game.found += int(one.sum())
        views_are_close(game, ours, live)

    sim = simulator(
        "SearchAndRescue-v0", n, num_searchers=searchers, num_targets=targets, num_vision=rays, env_size=size,
        split_rewards=split, scale_rewards=scale, max_episode_steps=limit, view_angle=angle, agent_radius=radius,
        **ranges,
    )  # fmt: skip
    game = Against(
        sim, env, state_of, lambda o: o.targets_remaining, chance=["searchers", "targets"], also=also,
        rounding=targets * EPS,
    )  # fmt: skip
    game.found = 0
    game.look = jax.jit(jax.vmap(env._state_to_observation))
    game.same_observations = lambda *_: None  # `also` does it
    return game


def views_are_close(game: Against, state, live) -> None:
    """Both see the same from our states, but for rays at the edge of something."""
    cfg, observation = game.sim.cfg, game.look(state)
    n, rays = game.sim.num_envs, cfg.num_vision
    ours = game.sim.arrays["observation"].reshape(n, cfg.num_searchers, 3 * rays + 1)[live]
    theirs = np.asarray(observation.searcher_views).reshape(n, cfg.num_searchers, -1)[live]
    left = np.asarray(observation.targets_remaining)[live]
    np.testing.assert_allclose(ours[..., -1], np.repeat(left[:, None], cfg.num_searchers, 1), rtol=0, atol=EPS)
    differ = abs(ours[..., :-1] - theirs) > CLOSE
    assert differ.mean() < 1e-5
    joint = np.asarray(game.sim.global_state()).reshape(n, -1)[live]
    places = joint[:, : 5 * cfg.num_searchers].reshape(-1, cfg.num_searchers, 5)[..., :2]
    np.testing.assert_allclose(places, np.asarray(observation.positions)[live], rtol=2 * EPS)


def actions(game: Against, rng: np.random.Generator) -> np.ndarray:
    """Also beyond the bounds, where both clip them."""
    return rng.uniform(-1.2, 1.2, (game.sim.num_envs, game.sim.cfg.num_searchers, 2)).astype(np.float32)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"searchers": 5, "targets": 7, "rays": 16, "size": 2.5, "split": False, "view_angle": 0.7, "limit": 50},
        {"searchers": 3, "targets": 3, "rays": 9, "scale": False, "target_contact_range": 0.2, "limit": 60},
    ],
)
def test_episodes(options):
    game, rng = rescue(250, **options), np.random.default_rng(0)
    made, seed = 0, 0
    while made < (20_000 if options else 100_000):
        game.sim.reset(seed=seed)
        live, seed = np.ones(250, bool), seed + 1
        while live.any():
            made += int(live.sum())
            live &= ~game.step(np.clip(actions(game, rng), -1, 1), live)
    assert game.found > 1000


@pytest.mark.parametrize("split", [True, False])
def test_steps_from_drawn_states(split):
    """Crowds, where several searchers find a target at the same time."""
    n, rng = 5000, np.random.default_rng(0)
    game = rescue(
        n, searchers=6, targets=10, rays=32, split=split, target_contact_range=0.15, target_vision_range=0.3,
        agent_radius=0.05,
    )  # fmt: skip
    draw = lambda low, high, *shape: rng.uniform(low, high, shape).astype(np.float32)  # noqa: E731
    game.sim.reset(seed=1)
    game.sim.set_state({
        "x": draw(0, 1, n, 6), "y": draw(0, 1, n, 6), "heading": draw(0, 6.28, n, 6), "speed": draw(0.005, 0.02, n, 6),
        "target_x": draw(0, 1, n, 10), "target_y": draw(0, 1, n, 10), "target_vx": draw(-0.002, 0.002, n, 10),
        "target_vy": draw(-0.002, 0.002, n, 10), "found": rng.random((n, 10)) < 0.3,
    })  # fmt: skip
    game.step(actions(game, rng), np.ones(n, bool))
    assert game.found > 1000


def test_beginning_and_drift():
    n = 2000
    theirs, sim = resets(SearchAndRescue(), n), simulator("SearchAndRescue-v0", n)
    sim.reset(seed=0)
    ours, there = sim.arrays, theirs.searchers
    for axis, name in enumerate("xy"):
        same_distribution(ours[name], there.pos[..., axis])
        same_distribution(ours[f"target_{name}"], theirs.targets.pos[..., axis])
        assert not ours[f"target_v{name}"].any()
    same_distribution(ours["heading"], there.heading)
    same_distribution(ours["speed"], there.speed)
    walk = dynamics.RandomWalk(0.001, 0.002)  # so that velocities are cut off soon
    sim = simulator("SearchAndRescue-v0", n, target_acc_std=0.001)
    sim.reset(seed=0)
    state = theirs.targets
    before = np.array(sim.arrays["target_x"])
    for step in range(4):
        state = jax.vmap(walk, in_axes=(0, 0, None))(jax.random.split(jax.random.key(step), n), state, 1.0)
        sim.step()
    velocity = sim.arrays["target_vx"]
    same_distribution(velocity, state.vel[..., 0])
    speed = np.hypot(velocity, sim.arrays["target_vy"])  # many are the highest one, but for rounding
    same_distribution(speed.round(7), np.linalg.norm(state.vel, axis=-1).round(7))
    moved = (sim.arrays["target_x"] - before + 0.5) % 1 - 0.5
    other = (np.asarray(state.pos - theirs.targets.pos)[..., 0] + 0.5) % 1 - 0.5
    same_distribution(moved, other)
