"""The particle worlds in which agents speak, and Collect Treasure, against MPE2 1.1.1.

How they are compared, and to which tolerance, is in mpe_worlds.py. What agents say is not injected: MPE2's world keeps
what its own step made of the same actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpe2 import (
    collect_treasure_v1,
    simple_crypto_v3,
    simple_reference_v3,
    simple_speaker_listener_v4,
    simple_world_comm_v3,
)
from reference.mpe_worlds import (
    NEAR,
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
    wide_bodies,
)

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.mpe.collect_treasure import CollectTreasure
from gpuzoo.envs.mpe.simple_crypto import SimpleCrypto
from gpuzoo.envs.mpe.simple_reference import SimpleReference
from gpuzoo.envs.mpe.simple_speaker_listener import SimpleSpeakerListener
from gpuzoo.envs.mpe.simple_world_comm import SimpleWorldComm

pytestmark = pytest.mark.rotates

LIMIT = 25


# ---- simple_reference ----
# Two distances of 3 U each are summed, halved and weighed, which is 6 roundings of at most their sum.


def reference_error(raw: Any) -> np.ndarray:
    return 9 * U * sum(-raw.scenario.reward(agent, raw.world) for agent in raw.world.agents) * np.ones(2)


def goal_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    return bodies | {"goal": rng.integers(0, 3, (len(bodies["position"]), 2)).astype(np.uint8)}


def goal_inject(raw: Any, state: Arrays, k: int) -> None:
    for agent, goal in zip(raw.world.agents, np.atleast_1d(state["goal"][k]), strict=False):
        agent.goal_b = raw.world.landmarks[int(goal)]


REFERENCE = Scenario(
    game=SimpleReference,
    original=simple_reference_v3,
    cases=(
        {},
        {"continuous_actions": True},
        {"local_ratio": 0.0},
        {"local_ratio": 1.0},
        {"local_ratio": 0.75, "continuous_actions": True},
    ),
    error=reference_error,
    draw=goal_draw,
    inject=goal_inject,
    touching=False,
)

# ---- simple_speaker_listener ----
# A squared distance is a sum of two squares of differences: 4 roundings.


def listener_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    """The speaker never moves."""
    still = bodies["velocity"] * np.float32([[0], [1]])
    return bodies | {"velocity": still, "goal": rng.integers(0, 3, len(still)).astype(np.uint8)}


LISTENER = Scenario(
    game=SimpleSpeakerListener,
    original=simple_speaker_listener_v4,
    cases=({}, {"continuous_actions": True}),
    error=lambda raw: 4 * U * np.abs([raw.rewards[agent.name] for agent in raw.world.agents]),
    draw=listener_draw,
    inject=goal_inject,
    touching=False,
)

# ---- simple_world_comm ----
# An adversary: a tenth of a distance errs by 5 U of it, and is added to an exact number. A good agent: a coordinate's
# share, twice 10 (|x| - 0.9) or twice exp(2 |x| - 2) <= 10, errs by 2 * 64 U as in simple_tag, two of them are added to
# an exact number, with 3 roundings of at most 40 and of the reward, and a twentieth of a distance.


def world_error(raw: Any) -> np.ndarray:
    world = raw.world
    far = distances(positions(world.agents), positions(world.agents + world.food)).max(1)
    rewards = np.array([raw.rewards[agent.name] for agent in world.agents])
    good = np.array([not agent.adversary for agent in world.agents])
    return U * (0.5 * far + 3 * np.abs(rewards) + good * (4 * 64 + 3 * 40))


def world_unsure(raw: Any) -> np.ndarray:
    adversaries, good = raw.scenario.adversaries(raw.world), raw.scenario.good_agents(raw.world)
    doubt = False
    for one, other in ((adversaries, good), (good, raw.world.food)):
        doubt |= near(distances(positions(one), positions(other)), sizes(one)[:, None] + sizes(other)[None]).any()
    return np.full(len(raw.world.agents), doubt)


def world_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    """Half of the worlds as small as at the start, so that there is somebody in the forests."""
    small = rng.random((len(bodies["position"]), 1, 1)) < 0.5
    drawn = {name: rng.uniform(-0.9, 0.9, bodies[name].shape) for name in ("position", "landmark")}
    return bodies | {name: np.where(small, x, bodies[name]).astype(np.float32) for name, x in drawn.items()}


WORLD = Scenario(
    game=SimpleWorldComm,
    original=simple_world_comm_v3,
    cases=(
        {},
        {"continuous_actions": True},
        {"num_good": 1, "num_adversaries": 1, "num_obstacles": 0, "num_food": 1, "num_forests": 0},
        {"num_good": 1, "num_adversaries": 1, "num_obstacles": 1, "num_food": 1, "num_forests": 1},
        {"num_good": 4, "num_adversaries": 2, "num_obstacles": 3, "num_food": 3, "num_forests": 5},
        {"num_good": 2, "num_adversaries": 6, "num_forests": 3, "continuous_actions": True},
    ),
    error=world_error,
    unsure=world_unsure,
    draw=world_draw,
)

SCENARIOS = (REFERENCE, LISTENER, WORLD)
CASES = [(scenario, config) for scenario in SCENARIOS for config in scenario.cases]


@pytest.mark.parametrize(("scenario", "config"), CASES, ids=lambda value: getattr(value, "name", None) or str(value))
def test_states(scenario: Scenario, config: dict[str, Any]) -> None:
    comparison = compare_states(scenario, config, 160)
    assert comparison.touches > 20 or not scenario.touching
    assert comparison.outcomes == {(False, False), (False, True)}


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_episodes(scenario: Scenario, continuous: bool) -> None:
    comparison = compare_episodes(scenario, {"continuous_actions": continuous}, 40)
    assert comparison.touches > 40 or not scenario.touching


def test_states_of_world_comm_are_wide() -> None:
    """What the comparison of its states has met: of all pairs of agents so many do and do not see each other."""
    rng = np.random.default_rng(0)
    raw = WORLD.original_env({})
    bodies = world_draw(rng, wide_bodies(rng, 400, raw), {})
    radius = sizes(raw.world.entities)
    everything = np.concatenate([bodies["position"], bodies["landmark"]], axis=1)
    apart = np.linalg.norm(everything[:, :6, None] - everything[:, None], axis=-1)
    touching = apart < radius[:6, None] + radius
    inside = touching[:, :, 9:]
    together = (inside[:, :, None] & inside[:, None]).any(-1)
    outside = ~inside.any(-1)
    sees = together | (outside[:, :, None] & outside[:, None])
    assert min(sees.sum(), (~sees).sum(), together[:, 4:, :4].sum()) > 500
    assert min(touching[:, 4:, :4].sum(), touching[:, 4:, 7:9].sum(), touching[:, :, 6].sum()) > 40


# ---- simple_crypto ----


@pytest.mark.parametrize("continuous", [False, True])
def test_crypto_episodes(continuous: bool) -> None:
    """60 whole episodes. A mistake is a sum of 4 squares below 1, two are subtracted: 13 roundings of at most 4."""
    episodes = 60
    rng = np.random.default_rng(0)
    s = Simulator(SimpleCrypto, episodes, device="cpu", autoreset_mode="disabled", continuous_actions=continuous)
    env = simple_crypto_v3.parallel_env(continuous_actions=continuous)
    s.reset(seed=0)
    start = s.state()
    chosen = [actions(rng, s, episodes) * (rng.random((episodes, 3, 1)) < 0.9) for _ in range(LIMIT)]
    seen, rewards = [s.arrays["observation"].copy()], []
    for t in range(LIMIT):
        s.arrays["action"][...] = chosen[t]
        s.step()
        seen.append(s.arrays["observation"].copy())
        rewards.append(s.arrays["reward"].copy())
        assert (s.arrays["truncated"] == (t == LIMIT - 1)).all()
        assert not s.arrays["terminated"].any()
    outcomes = set()
    for k in range(episodes):
        env.reset()
        world = env.unwrapped.world
        for agent in world.agents:
            agent.goal_a = world.landmarks[int(start["message"][k])]
        world.agents[2].key = world.landmarks[int(start["key"][k])].color
        observations = {name: env.unwrapped.observe(name) for name in env.agents}
        for t in range(LIMIT):
            for a, name in enumerate(observations):
                row = seen[t][k, a]
                np.testing.assert_array_equal(row[: len(observations[name])], observations[name])
                assert not row[len(observations[name]) :].any()
            taken = chosen[t][k].astype(np.float32) if continuous else [int(x) for x in chosen[t][k, :, 0]]
            observations, reward, _, truncated, _ = env.step(dict(zip(env.agents, taken, strict=True)))
            assert set(truncated.values()) == {t == LIMIT - 1}
            want = np.array(list(reward.values()))
            assert (np.abs(rewards[t][k] - want) <= (13 * 4 * U if continuous else 0)).all()
            outcomes.add(tuple(want))
    assert len(outcomes) > 1000 if continuous else outcomes == {(-2, 2, 2), (-2, 0, 0), (0, -2, -2), (0, 0, 0)}


def test_crypto_starts() -> None:
    """Message and key are drawn equally often and independently."""
    s = Simulator(SimpleCrypto, 4096, device="cpu")
    s.reset(seed=0)
    both = np.bincount(s.arrays["message"] + 2 * s.arrays["key"], minlength=4) / 4096
    assert np.abs(both - 0.25).max() < 5 * 0.0068


# ---- collect_treasure ----


class Drawn:
    """What our env drew, as MPE2 asks for it."""

    def __init__(self, after: Arrays, new: np.ndarray, k: int) -> None:
        self.places = [after["landmark"][k, i].astype(np.float64) for i in np.flatnonzero(new)]
        self.kinds = [int(after["kind"][k, i]) for i in np.flatnonzero(new)]

    def uniform(self, low: float = 0.0, high: float = 1.0, size: int | None = None) -> Any:
        return 0.0 if size is None else self.places.pop(0)

    def integers(self, low: int, high: int) -> int:
        return self.kinds.pop(0)


def treasure_inject(raw: Any, state: Arrays, k: int) -> None:
    for landmark, present, kind in zip(raw.world.landmarks, state["present"][k], state["kind"][k], strict=True):
        landmark.alive, landmark.type = bool(present), int(kind)
    for collector, kind in zip(raw.scenario.collectors(raw.world), state["holding"][k], strict=True):
        collector.holding = None if kind < 0 else int(kind)


def treasure_draw(rng: np.random.Generator, bodies: Arrays, config: dict[str, Any]) -> Arrays:
    count, treasures = bodies["landmark"].shape[:2]
    kinds = config.get("num_deposits", 2)
    present = rng.random((count, treasures)) < 0.8
    return bodies | {
        "landmark": np.where(present[..., None], bodies["landmark"], np.float32(-999)),
        "present": present,
        "kind": rng.integers(0, kinds, (count, treasures)).astype(np.int8),
        "holding": rng.integers(-1, kinds, (count, config.get("num_collectors", 6))).astype(np.int8),
    }


def treasure_error(raw: Any) -> np.ndarray:
    """A tenth of a distance errs by 5 U of it, that from the centre of C agents by C + 2 more of their coordinates."""
    place = positions(raw.world.agents)
    far = 3 * np.abs(place).max() + 3
    rewards = np.array([raw.rewards[agent.name] for agent in raw.world.agents])
    return U * (0.1 * (len(place) + 7) * far + np.abs(rewards))


TREASURE = Scenario(
    game=CollectTreasure,
    original=collect_treasure_v1,
    cases=(
        {},
        {"continuous_actions": True},
        {"num_collectors": 1, "num_deposits": 1, "num_treasures": 1},
        {"num_collectors": 4, "num_deposits": 2, "num_treasures": 3},
        {"num_collectors": 9, "num_deposits": 6, "num_treasures": 11},
        {"num_collectors": 18, "num_deposits": 3, "num_treasures": 2, "continuous_actions": True},
    ),
    error=treasure_error,
    inject=treasure_inject,
    draw=treasure_draw,
    touching=False,
)


class Collecting(Comparison):
    """MPE2 picks up, delivers and draws only in the judgement, from our positions and the treasures before the step."""

    picked = delivered = collisions = 0

    def motion(self, s: Simulator, before: Arrays, after: Arrays, k: int, chosen: np.ndarray) -> None:
        self.before = before
        self.raw.scenario.post_step = lambda world: None
        super().motion(s, before, after | {"landmark": before["landmark"]}, k, chosen)
        del self.raw.scenario.post_step

    def judgement(self, s: Simulator, after: Arrays, k: int, chosen: np.ndarray, last: bool) -> None:
        raw, before = self.raw, self.before
        was = before["present"][k].astype(bool)
        raw.world._np_random = Drawn(after, ~was, k)
        super().judgement(s, before | {name: after[name] for name in ("position", "velocity")}, k, chosen, last)
        present = np.array([landmark.alive for landmark in raw.world.landmarks])
        held = [-1 if agent.holding is None else agent.holding for agent in raw.scenario.collectors(raw.world)]
        np.testing.assert_array_equal(after["present"][k], present)
        np.testing.assert_array_equal(after["kind"][k], [landmark.type for landmark in raw.world.landmarks])
        np.testing.assert_array_equal(after["holding"][k], held)
        np.testing.assert_array_equal(after["landmark"][k], positions(raw.world.landmarks))
        picked, delivered = raw.scenario._cached_global_collecting / 5, raw.scenario._cached_global_deposit / 5
        assert after["deals"][k] == picked + delivered
        self.picked += int(picked)
        self.delivered += int(delivered)
        place = positions(raw.scenario.collectors(raw.world))
        self.collisions += int((distances(place, place) < 0.1).sum()) - len(place)

    def in_order(self, world: Any, a: int) -> bool:
        others = [agent for agent in world.agents if agent is not world.agents[a]]
        for entities in (others, [landmark for landmark in world.landmarks if landmark.alive]):
            far = np.sort(distances(world.agents[a].state.p_pos[None], positions(entities))[0])
            if (np.diff(far) <= NEAR * far[1:]).any():
                return False
        return True


@pytest.mark.parametrize("config", TREASURE.cases, ids=str)
def test_collect_treasure_states(config: dict[str, Any]) -> None:
    count = 200
    rng = np.random.default_rng(len(str(config)))
    comparison = Collecting(TREASURE, config)
    s = TREASURE.simulator(count, config)
    s.set_state(treasure_draw(rng, wide_bodies(rng, count, comparison.raw), config))
    step(comparison, s, actions(rng, s, count), last=False)
    assert min(comparison.picked, comparison.delivered) > 5
    assert comparison.collisions > 100 or s.layout.groups["collector"] == 1


def step(comparison: Collecting, s: Simulator, chosen: np.ndarray, last: bool) -> None:
    before = s.state()
    s.arrays["action"][...] = chosen
    s.step()
    after = s.state()
    for k in range(s.num_envs):
        comparison.motion(s, before, after, k, chosen[k])
        comparison.judgement(s, after, k, chosen[k], last)


@pytest.mark.parametrize("continuous", [False, True])
def test_collect_treasure_episodes(continuous: bool) -> None:
    config = {"continuous_actions": continuous}
    rng = np.random.default_rng(2)
    comparison, s = Collecting(TREASURE, config), TREASURE.simulator(25, config)
    for t in range(LIMIT):
        step(comparison, s, actions(rng, s, 25), t == LIMIT - 1)
    assert comparison.picked > 3


def test_collect_treasure_starts() -> None:
    """Kinds are drawn equally often; places are uniform in [-0.95, 0.95]^2."""
    s = TREASURE.simulator(4096, {"num_deposits": 3})
    assert np.abs(np.bincount(s.arrays["kind"].ravel()) / (4096 * 6) - 1 / 3).max() < 5 * 0.003
    x = s.arrays["landmark"].reshape(4096, -1) / 0.95
    assert np.abs(x).max() <= 1
    assert np.abs(x.mean(axis=0)).max() < 5 * 0.009
    assert np.abs((x**2).mean(axis=0) - 1 / 3).max() < 5 * 0.0047
    assert (s.arrays["holding"] == -1).all()
    assert s.arrays["present"].all()


# ---- all of them ----


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize(
    ("scenario", "config"),
    [*CASES, *((TREASURE, config) for config in TREASURE.cases)],
    ids=lambda value: getattr(value, "name", None) or str(value),
)
def test_agents_and_spaces(scenario: Scenario, config: dict[str, Any], continuous: bool) -> None:
    config = config | {"continuous_actions": continuous}
    layout, raw = scenario.simulator(1, config).layout, scenario.original_env(config)
    assert layout.agent_names() == raw.possible_agents
    for a, name in enumerate(raw.possible_agents):
        assert layout.observation_spaces[layout.group_of(a)] == raw.observation_space(name)
        assert layout.action_spaces[layout.group_of(a)] == raw.action_space(name)
