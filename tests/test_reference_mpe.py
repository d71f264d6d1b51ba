"""The silent particle worlds against MPE2 1.1.1; how they are compared, and to which tolerance, is in mpe_worlds.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpe2 import simple_spread_v3, simple_tag_v3
from reference.mpe_worlds import (
    NEAR,
    U,
    Arrays,
    Scenario,
    actions,
    compare_episodes,
    compare_states,
    distances,
    near,
    positions,
    sizes,
    wide_bodies,
)

from gpuzoo.envs.mpe.simple_spread import SimpleSpread
from gpuzoo.envs.mpe.simple_tag import SimpleTag


def touches(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which of two lists of entities touch, and of which that is doubtful."""
    apart, reach = distances(positions(one), positions(other)), sizes(one)[:, None] + sizes(other)[None]
    return apart < reach, near(apart, reach)


# ---- simple_spread ----
# The distances from landmarks to the nearest agents err by 3 U each, their sum of N by N roundings, and the two parts of
# the reward by 4 more.


def gaps(raw: Any) -> np.ndarray:
    return np.asarray(distances(positions(raw.world.agents), positions(raw.world.landmarks)).min(0))


def spread_error(raw: Any) -> np.ndarray:
    n = len(raw.world.agents)
    return U * ((n + 7) * (1 - raw.local_ratio) * gaps(raw).sum() + 4 * n) * np.ones(n)


def spread_unsure(raw: Any) -> np.ndarray:
    close = near(gaps(raw), 0.1).any() and raw.scenario.terminate_on_success
    return touches(raw.world.agents, raw.world.agents)[1].any(1) | close


def spread_options(config: dict[str, Any]) -> dict[str, Any]:
    """MPE2 1.1.1 stays in stage 0 of a curriculum for ever: a setter in BaseScenario drops the value."""
    rest = {name: value for name, value in config.items() if name != "collision_penalty"}
    return rest | {"curriculum": config.get("collision_penalty") == 0}


def spread_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    if config.get("terminate_on_success"):
        covering = bodies["landmark"][:, ::-1] + rng.uniform(-0.08, 0.08, bodies["position"].shape).astype(np.float32)
        still = 0.01 * bodies["velocity"]
        use = rng.random((len(covering), 1, 1)) < 0.5
        return bodies | {
            "position": np.where(use, covering, bodies["position"]),
            "velocity": np.where(use, still, bodies["velocity"]),
        }
    return bodies


SPREAD = Scenario(
    game=SimpleSpread,
    original=simple_spread_v3,
    cases=(
        {},
        {"continuous_actions": True},
        {"N": 1, "local_ratio": 0.0},
        {"N": 2, "local_ratio": 1.0, "terminate_on_success": True},
        {"N": 5, "local_ratio": 0.75, "collision_penalty": 0.0},
        {"N": 5, "num_agent_neighbors": 2, "num_landmark_neighbors": 3, "continuous_actions": True},
        {"N": 4, "num_agent_neighbors": 7, "num_landmark_neighbors": 6},
    ),
    error=spread_error,
    unsure=spread_unsure,
    options=spread_options,
    draw=spread_draw,
)

# ---- simple_tag ----
# A coordinate x costs 10 (|x| - 0.9), which errs by 10 U (0.9 + 0.1) + U, or exp(2 |x| - 2) <= 10: an argument up to 2.4
# errs by 2.4 U, and exp by 2 ulp of 10. Two of these and the catches are summed.


def tag_error(raw: Any) -> np.ndarray:
    rewards = np.array([raw.rewards[agent.name] for agent in raw.world.agents])
    return 2 * U * (11 + 10 * (2.4 + 4)) + 2 * U * np.abs(rewards)


def tag_unsure(raw: Any) -> np.ndarray:
    scenario, world = raw.scenario, raw.world
    doubt = touches(scenario.adversaries(world), scenario.good_agents(world))[1]
    return np.full(len(world.agents), doubt.any())


def tag_options(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "prey_speed_factor"}


def tag_prepare(raw: Any, config: dict[str, Any]) -> None:
    """The stages of the curriculum, which MPE2 1.1.1 does not reach."""
    for agent in raw.scenario.good_agents(raw.world):
        agent.max_speed = 1.3 * config.get("prey_speed_factor", 1)
        agent.accel = 4.0 * config.get("prey_speed_factor", 1)


def tag_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    """Good agents in the arms of the first adversary, often."""
    if config.get("terminate_on_success"):
        n = config.get("num_adversaries", 3)
        position = bodies["position"].copy()
        caught = position[:, :1] + rng.uniform(-0.12, 0.12, position[:, n:].shape)
        position[:, n:] = np.where(rng.random((len(position), 1, 1)) < 0.7, caught, position[:, n:])
        return bodies | {"position": position}
    return bodies


TAG = Scenario(
    game=SimpleTag,
    original=simple_tag_v3,
    cases=(
        {},
        {"continuous_actions": True, "prey_speed_factor": 0.75},
        {"num_good": 3, "num_adversaries": 2, "num_obstacles": 0, "prey_speed_factor": 0.5},
        {"num_good": 2, "num_adversaries": 4, "num_agent_neighbors": 3, "num_landmark_neighbors": 1},
        {"num_good": 2, "num_adversaries": 1, "num_agent_neighbors": 4, "num_landmark_neighbors": 3},
        {"num_good": 2, "terminate_on_success": True},
        {"num_good": 1, "terminate_on_success": True, "continuous_actions": True},
    ),
    error=tag_error,
    unsure=tag_unsure,
    options=tag_options,
    prepare=tag_prepare,
    draw=tag_draw,
)

SCENARIOS = (SPREAD, TAG)
CASES = [(scenario, config) for scenario in SCENARIOS for config in scenario.cases]


@pytest.mark.parametrize(("scenario", "config"), CASES, ids=lambda value: getattr(value, "name", None) or str(value))
def test_states(scenario: Scenario, config: dict[str, Any]) -> None:
    comparison = compare_states(scenario, config, 160)
    assert comparison.touches > 40 or not scenario.touching or config.get("N") == 1
    ends = {(success, last) for success in (False, True) for last in (False, True)}
    assert comparison.outcomes == (ends if config.get("terminate_on_success") else {(False, False), (False, True)})


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_episodes(scenario: Scenario, continuous: bool) -> None:
    comparison = compare_episodes(scenario, {"continuous_actions": continuous}, 40)
    assert comparison.touches > 40 or not scenario.touching
