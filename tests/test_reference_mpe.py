"""The silent particle worlds against MPE2 1.1.1; how they are compared, and to which tolerance, is in mpe_worlds.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpe2 import (
    simple_adversary_v3,
    simple_formation_v1,
    simple_line_v1,
    simple_push_v3,
    simple_spread_v3,
    simple_tag_v3,
    simple_v3,
)
from reference.mpe_worlds import (
    Arrays,
    Comparison,
    Scenario,
    U,
    actions,
    compare_episodes,
    compare_states,
    distances,
    near,
    positions,
    sizes,
)
from scipy.optimize import linear_sum_assignment
from scipy.stats import ks_2samp

from gpuzoo.envs.mpe.simple import Simple
from gpuzoo.envs.mpe.simple_adversary import SimpleAdversary
from gpuzoo.envs.mpe.simple_formation import SimpleFormation
from gpuzoo.envs.mpe.simple_line import SimpleLine
from gpuzoo.envs.mpe.simple_push import SimplePush
from gpuzoo.envs.mpe.simple_spread import SimpleSpread
from gpuzoo.envs.mpe.simple_tag import SimpleTag

pytestmark = pytest.mark.rotates


def touches(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which of two lists of entities touch, and of which that is doubtful."""
    apart, reach = distances(positions(one), positions(other)), sizes(one)[:, None] + sizes(other)[None]
    return apart < reach, near(apart, reach)


# ---- simple_spread ----
# The distances from landmarks to the nearest agents err by 3 U each, their sum by N roundings, and the two parts of the
# reward by 4 more.


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
        {"N": 4, "num_agent_neighbors": 70, "num_landmark_neighbors": 66},
    ),
    error=spread_error,
    unsure=spread_unsure,
    options=spread_options,
    draw=spread_draw,
)

# ---- simple_tag ----
# A coordinate x costs 10 (|x| - 0.9), which errs by 10 U (0.9 + 0.1) + U, or exp(2 |x| - 2) <= 10: an argument up to
# 2.4 errs by 2.4 U, and exp by 2 ulp of 10. Two of these and the catches are summed.


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

# ---- simple ----
# The square of a distance is the sum of two squares of differences: 4 roundings.

PLACES = {"position": ("x", "y"), "velocity": ("vx", "vy"), "landmark": ("landmark_x", "landmark_y")}

SIMPLE = Scenario(
    game=Simple,
    original=simple_v3,
    cases=({}, {"continuous_actions": True}),
    error=lambda raw: 4 * U * np.abs([raw.rewards["agent_0"]]),
    to_fields=lambda bodies: {name: bodies[b][:, 0, k] for b, names in PLACES.items() for k, name in enumerate(names)},
    to_bodies=lambda fields: {b: np.stack([fields[x], fields[y]], axis=-1)[:, None] for b, (x, y) in PLACES.items()},
    touching=False,
)

# ---- simple_adversary and simple_push ----
# Distances err by 3 U each, and their difference rounds once.


def to_goal(raw: Any) -> np.ndarray:
    goal = raw.world.agents[0].goal_a
    return np.asarray(distances(positions(raw.world.agents), positions([goal]))[:, 0])


def goal_error(raw: Any) -> np.ndarray:
    gap = to_goal(raw)
    return 4 * U * (gap + gap[0] + gap[1:].min())


def goal_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    count, landmarks = bodies["landmark"].shape[:2]
    return bodies | {"goal": rng.integers(0, landmarks, count).astype(np.int32)}


def goal_inject(raw: Any, state: Arrays, k: int) -> None:
    """The goal; in simple_push the good agent has its colour."""
    goal = int(state["goal"][k])
    for agent in raw.world.agents:
        agent.goal_a = raw.world.landmarks[goal]
    if hasattr(raw.world.landmarks[0], "index"):
        raw.world.agents[1].color = np.array([0.25, 0.25, 0.25]) + 0.5 * np.eye(3)[goal + 1]


ADVERSARY = Scenario(
    game=SimpleAdversary,
    original=simple_adversary_v3,
    cases=(
        {},
        {"continuous_actions": True, "N": 3},
        {"N": 1},
        {"N": 5, "num_agent_neighbors": 2, "num_landmark_neighbors": 3},
        {"N": 2, "num_agent_neighbors": 4, "num_landmark_neighbors": 3},
    ),
    error=goal_error,
    draw=goal_draw,
    inject=goal_inject,
    touching=False,
)
PUSH = Scenario(
    game=SimplePush,
    original=simple_push_v3,
    cases=({}, {"continuous_actions": True}),
    error=goal_error,
    draw=goal_draw,
    inject=goal_inject,
)

# ---- simple_formation and simple_line ----
# The least angle errs by 2 ulp of pi, the difference of positions and the sum with 2 pi by 6 more: less than 20 U; the
# angle of a target, below 4 pi, by 20 more. So a target on the circle of radius 0.5 errs by 20 U, sine and cosine by 2
# and the sum by 1; one on the line by less. A distance errs by that, 3 U of its own, and the mean of N rounds N times.


def targets(raw: Any) -> np.ndarray:
    """Where simple_formation's targets are: the original does not keep them."""
    if hasattr(raw.scenario, "_expected_positions"):
        return np.array(raw.scenario._expected_positions)
    n, (landmark,) = len(raw.world.agents), positions(raw.world.landmarks)
    away = positions(raw.world.agents) - landmark
    theta = (np.arctan2(away[:, 1], away[:, 0]) % (2 * np.pi)).min() + np.arange(n) * 2 * np.pi / n
    return np.asarray(landmark + 0.5 * np.stack([np.cos(theta), np.sin(theta)], axis=1))


def target_error(raw: Any) -> np.ndarray:
    n, goal = len(raw.world.agents), targets(raw)
    return np.full(n, U * (30 + 3 * np.abs(goal).max() + (n + 4) * np.minimum(raw.scenario._delta_dists, 2).mean()))


def target_unsure(raw: Any) -> np.ndarray:
    """Another assignment is as short but for rounding and differs in what is cut off; or somebody has just arrived."""
    apart = distances(positions(raw.world.agents), targets(raw))
    rows, columns = linear_sum_assignment(apart)
    best, gap = apart[rows, columns].sum(), apart[rows, columns]
    n, error = len(apart), len(apart) * target_error(raw)[0] + 30 * U * apart.max()
    arrived = (np.abs(gap - 0.05) < error).any() and raw.scenario.terminate_on_success
    tied = False
    if n > 1 and (apart > 2 - error).any() and (apart < 2 + error).any():
        for row, column in zip(rows, columns, strict=True):
            other = apart.copy()
            other[row, column] = 1e9
            tied |= other[linear_sum_assignment(other)].sum() - best < error
    return np.full(n, arrived or tied)


def target_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    """Agents that are nearly in place, often: on the circle, which any of them may begin, or on the line."""
    position, landmark = bodies["position"].copy(), bodies["landmark"].copy()
    count, n = position.shape[:2]
    angle = rng.uniform(0, 2 * np.pi, (count, 1)) + np.arange(n) * 2 * np.pi / n
    place = landmark[:, :1] + 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    if landmark.shape[1] == 2:
        turn = rng.uniform(0, 2 * np.pi, count)
        landmark[:, 1] = landmark[:, 0] + 1.25 * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        place = landmark[:, :1] + np.linspace(0, 1, n)[None, :, None] * (landmark[:, 1:] - landmark[:, :1])
    place = place[:, rng.permutation(n)]
    use = rng.random((count, 1, 1)) < 0.5
    return {
        "position": np.where(use, place + rng.uniform(-0.03, 0.03, place.shape), position).astype(np.float32),
        "velocity": np.where(use, 0.0, bodies["velocity"]).astype(np.float32),
        "landmark": landmark,
    }


def line_inject(raw: Any, state: Arrays, k: int) -> None:
    first, second = state["landmark"][k].astype(np.float64)
    raw.scenario._expected_positions = list(
        first + np.linspace(0, 1, len(raw.world.agents))[:, None] * (second - first)
    )


FORMATION = Scenario(
    game=SimpleFormation,
    original=simple_formation_v1,
    cases=(
        {},
        {"continuous_actions": True, "N": 7},
        {"N": 1},
        {"N": 2, "terminate_on_success": True},
        {"N": 12},
    ),
    error=target_error,
    unsure=target_unsure,
    draw=target_draw,
    doubt=0.04,
)
LINE = Scenario(
    game=SimpleLine,
    original=simple_line_v1,
    cases=FORMATION.cases,
    error=target_error,
    unsure=target_unsure,
    draw=target_draw,
    doubt=0.04,
    inject=line_inject,
)

SCENARIOS = (SIMPLE, SPREAD, TAG, ADVERSARY, PUSH, FORMATION, LINE)
CASES = [(scenario, config) for scenario in SCENARIOS for config in scenario.cases]


@pytest.mark.parametrize(("scenario", "config"), CASES, ids=lambda value: getattr(value, "name", None) or str(value))
def test_states(scenario: Scenario, config: dict[str, Any]) -> None:
    comparison = compare_states(scenario, config, 150)
    assert comparison.touches > 20 or not scenario.touching or config.get("N") == 1
    ends = {(success, last) for success in (False, True) for last in (False, True)}
    assert comparison.outcomes == (ends if config.get("terminate_on_success") else {(False, False), (False, True)})


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_episodes(scenario: Scenario, continuous: bool) -> None:
    """60 whole episodes of each game: 1,500 steps."""
    compare_episodes(scenario, {"continuous_actions": continuous}, 30)


def test_free_running_episodes() -> None:
    """Without taking over: where agents stay apart, 25 steps err by at most 25 times one step."""
    episodes, n, limit = 200, 2, 25
    rng = np.random.default_rng(4)
    s = SPREAD.simulator(episodes, {"N": n})
    s.set_state({"position": np.float32([[-2, -2], [2, 2]]) + np.zeros((episodes, 1, 1), np.float32)})
    start = s.state()
    chosen = np.stack([actions(rng, s, episodes) for _ in range(limit)])
    for t in range(limit):
        s.arrays["action"][...] = chosen[t]
        s.step()
    comparison = Comparison(SPREAD, {"N": n})
    env = simple_spread_v3.parallel_env(N=n)
    env.reset()
    comparison.raw = env.unwrapped
    compared = 0
    for k in range(episodes):
        env.reset()
        comparison.take_over(start, k)
        least = np.inf
        for t in range(limit):
            assert env.agents
            seen, reward, terminated, truncated, _ = env.step({f"agent_{a}": int(chosen[t, k, a, 0]) for a in range(n)})
            least = min(least, float(np.hypot(*seen["agent_0"][8:10])))
        assert all(truncated.values())
        assert not any(terminated.values())
        if least < 0.5:
            continue
        compared += 1
        for a in range(n):  # |p| < 8 and |v| < 2: a step costs at most 20 U
            allowed = 4 * limit * 20 * U
            np.testing.assert_allclose(s.arrays["observation"][k, a], seen[f"agent_{a}"], rtol=0, atol=allowed)
            assert abs(s.arrays["reward"][k, a] - reward[f"agent_{a}"]) < allowed
    assert compared > 150


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_agents_and_spaces(scenario: Scenario) -> None:
    for config in scenario.cases:
        s, raw = scenario.simulator(1, config), scenario.original_env(config)
        assert s.layout.agent_names() == raw.possible_agents
        assert s.max_episode_steps == raw.max_cycles
        for k, name in enumerate(raw.possible_agents):
            group = s.layout.group_of(k)
            assert s.layout.observation_spaces[group] == raw.observation_space(name)
            assert s.layout.action_spaces[group] == raw.action_space(name)


def test_two_agents_in_one_place_stay_finite() -> None:
    s = SPREAD.simulator(1, {"N": 2})
    s.set_state({"position": np.zeros((1, 2, 2), np.float32)})
    s.arrays["action"][...] = 0
    s.step()
    assert not s.arrays["observation"][0, :, :4].any()
    assert np.isfinite(s.arrays["reward"]).all()


SPANS = {"SimpleTag-v0": 0.9, "SimpleFormation-v0": 0.5, "SimpleLine-v0": 0.25}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_reset(scenario: Scenario) -> None:
    """Uniform in the square, at rest, and every coordinate on its own."""
    s = scenario.simulator(4096, {})
    state = s.state()
    bodies = scenario.to_bodies(state)
    span = SPANS.get(scenario.name, 1.0)
    landmark = bodies["landmark"][:, : 1 if scenario is LINE else None] / np.float32(span)
    both = np.concatenate([bodies["position"], landmark], axis=1).reshape(4096, -1)
    assert both.min() >= -1.0001
    assert both.max() < 1.0001
    # 4096 uniform numbers: the mean varies by 0.009, the mean square (1/3) by 0.0047
    assert np.abs(both.mean(axis=0)).max() < 5 * 0.009
    assert np.abs((both**2).mean(axis=0) - 1 / 3).max() < 5 * 0.0047
    off_diagonal = np.corrcoef(both.T) - np.eye(both.shape[1])
    assert np.abs(off_diagonal).max() < 5 / 64
    assert not bodies["velocity"].any()
    if "goal" in state:
        counts = np.bincount(state["goal"])
        assert np.abs(counts - 2048).max() < 5 * 32


def test_reset_of_a_line() -> None:
    """The second landmark: as far away as it must be, within the square, in directions as they are drawn by MPE2."""
    s = LINE.simulator(4096, {})
    first, second = np.moveaxis(s.arrays["landmark"].astype(np.float64), 1, 0)
    assert np.abs(np.linalg.norm(second - first, axis=1) - 1.25).max() < 1e-6
    assert np.abs(second).max() < 1
    raw = LINE.original_env({})
    theirs = []
    for _ in range(1000):
        raw.scenario.reset_world(raw.world, raw.np_random)
        theirs.append(np.diff(positions(raw.world.landmarks), axis=0)[0])
    angles = [np.arctan2(x[:, 1], x[:, 0]) for x in (second - first, np.array(theirs))]
    assert ks_2samp(*angles).pvalue > 1e-4


def test_equally_near_landmarks_keep_their_order() -> None:
    s = SPREAD.simulator(1, {"N": 3, "num_landmark_neighbors": 2})
    landmark = np.float32([[[0, 1], [2, 0], [0, -1]]])
    s.set_state({"position": np.zeros((1, 3, 2), np.float32), "landmark": landmark})
    s.arrays["action"][...] = 0
    s.step()
    np.testing.assert_array_equal(s.arrays["observation"][0, 0, 4:8], [0, 1, 0, -1])
