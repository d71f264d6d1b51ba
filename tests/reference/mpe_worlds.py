"""Our particle worlds against MPE2's, which compute in float64.

A comparison has two halves. **Motion**: MPE2's world takes over our float32 numbers, steps, and ends where ours
ends, but for the rounding of one step. **Judgement**: MPE2's world takes over the numbers that our step ended with,
and says what is seen, what it is worth and whether it is the end; only the rounding of these few operations is
allowed, and where a distance is within 6 U of a threshold, or two distances that are put in order are within 6 U of
each other, anything is.

With U = 2^-24, the half ulp of 1, and to first order, a step rounds like this:

- position p' = p + 0.1 v: the factor, the product and the sum round once each, U (0.2 |v| + |p'|).
- contact at distance d < R + 0.03, where R is the sum of the radii: the difference of positions, its square and the
  root err by 3 U d, the sum of the radii by U R and the depth rounds by U R: it errs by U (5 R + 0.09), and the
  smooth max(0, depth) by that times its slope, which is at most 1. It comes from exp and log1p with errors of 2
  ulp, which is 8 U of what it is; division, product and direction add 8 U. Times stiffness, time step and 1 / mass
  that is 10 U ((5 R + 0.09) slope + 16 pressed) / mass for the velocity. Beyond the cut-off the force is below
  1e-14.
- velocity v' = 0.75 v + 0.1 F / mass, where F is the motor's force and up to n contacts: 4 roundings of the
  product, n of the partial sums, one of 0.75 v and one of the sum: U (|v| + |v'| + (4 + n) 0.1 |F| / mass) and the
  contacts' error.
- a speed limit m mixes the components, which makes sqrt(2) of the errors, and rounds 6 times: 6 U m.
- a touch is a comparison of squares: the difference of positions, its square, the sum and the radii's sum and
  square round 9 times, which is half as much of a distance.

An observation is a number of the state, or one difference: U of what it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo import EnvDef
from gpuzoo.core.simulator import Simulator

U = 2.0**-24
NEAR = 6 * U  # relative error of a distance
Arrays = dict[str, np.ndarray]


def distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(x[:, None] - y[None], axis=-1))


def positions(entities: Any) -> np.ndarray:
    return np.array([entity.state.p_pos for entity in entities]).reshape(-1, 2)


def sizes(entities: Any) -> np.ndarray:
    return np.array([entity.size for entity in entities])


def near(value: np.ndarray, threshold: Any) -> np.ndarray:
    """Which distances are so near to a threshold that rounding decides."""
    return np.asarray(np.abs(value - threshold) <= NEAR * np.maximum(threshold, value))


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One game and how it is compared.

    Attributes:
        game: our declaration.
        original: MPE2's module.
        cases: configurations, each a dict of our options.
        error: MPE2's env -> what float32 explains of each agent's reward.
        unsure: MPE2's env -> agents whose reward or end hangs on a threshold that is too near.
        options: our configuration -> MPE2's arguments.
        prepare: what the arguments of MPE2 1.1.1 cannot say, done to its env.
        draw: fields beside bodies and landmarks, or other values of these: (rng, bodies, configuration) -> fields.
        inject: the same fields, put into MPE2's env: (env, state, index).
        to_fields: bodies and landmarks -> our fields.
        to_bodies: and back.
        touching: whether bodies that touch are expected in states.
        doubt: the part of the rewards that may be unsure in wide states; in episodes it is a tenth of that.
    """

    game: type[EnvDef]
    original: Any
    cases: tuple[dict[str, Any], ...]
    error: Callable[[Any], np.ndarray]
    unsure: Callable[[Any], np.ndarray] = lambda raw: np.zeros(len(raw.world.agents), bool)
    options: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: config
    prepare: Callable[[Any, dict[str, Any]], None] = lambda raw, config: None
    draw: Callable[[np.random.Generator, Arrays, dict[str, Any]], Arrays] = lambda rng, bodies, config: bodies
    inject: Callable[[Any, Arrays, int], None] = lambda raw, state, k: None
    to_fields: Callable[[Arrays], Arrays] = lambda bodies: bodies
    to_bodies: Callable[[Arrays], Arrays] = lambda fields: fields
    touching: bool = True
    doubt: float = 0.01

    @property
    def name(self) -> str:
        return self.game.id

    def simulator(self, num_envs: int, config: dict[str, Any]) -> Simulator:
        s = Simulator(self.game, num_envs, device="cpu", autoreset_mode="disabled", **config)
        s.reset(seed=0)
        return s

    def original_env(self, config: dict[str, Any]) -> Any:
        """MPE2's env without its wrappers, after a reset."""
        options = {
            name: value or None if name.endswith("_neighbors") else value
            for name, value in self.options(config).items()
        }
        raw = self.original.raw_env(**options)
        raw.reset(seed=0)
        self.prepare(raw, config)
        return raw


def actions(rng: np.random.Generator, s: Simulator, num_envs: int) -> np.ndarray:
    """Random actions, (num_envs, agents, components); of a Box half the components are 0."""
    out = np.zeros((num_envs, s.layout.agents, s.layout.action_size), s.layout.action_dtype)
    for a in range(s.layout.agents):
        space = s.layout.action_spaces[s.layout.group_of(a)]
        if isinstance(space, spaces.Discrete):
            out[:, a, 0] = rng.integers(0, space.n, num_envs)
        else:
            shape = (num_envs, *space.shape)
            out[:, a, : space.shape[0]] = rng.random(shape) * rng.integers(0, 2, shape)
    return out


def wide_bodies(rng: np.random.Generator, num_envs: int, raw: Any) -> Arrays:
    """Agents heaped up or far apart, at rest or fast; some a hair inside or outside of a touch with anything."""
    agents, landmarks = len(raw.world.agents), len(raw.world.landmarks)
    radius = sizes(raw.world.entities)
    n = agents + landmarks
    spread = rng.choice([0.03, 0.2, 0.5, 1.0, 10.0], (num_envs, 1, 1))
    place = spread * rng.uniform(-1, 1, (num_envs, n, 2)) + rng.uniform(-1, 1, (num_envs, 1, 2))
    for k in np.flatnonzero(rng.random(num_envs) < 0.5):
        a = rng.integers(agents)
        b = rng.choice([j for j in range(n) if j != a])
        angle = rng.uniform(0, 2 * np.pi)
        apart = radius[a] + radius[b] + rng.choice([-1, 1]) * 10 ** rng.uniform(-6, -1.4)
        place[k, a] = place[k, b] + apart * np.array([np.cos(angle), np.sin(angle)])
    speed = rng.choice([0.0, 0.5, 5.0, 50.0], (num_envs, 1, 1))
    bodies = {
        "position": place[:, :agents],
        "velocity": speed * rng.uniform(-1, 1, (num_envs, agents, 2)),
        "landmark": place[:, agents:],
    }
    return {name: array.astype(np.float32) for name, array in bodies.items()}


class Comparison:
    """Steps of our envs, one after another, with MPE2's."""

    def __init__(self, scenario: Scenario, config: dict[str, Any]) -> None:
        self.scenario, self.raw = scenario, scenario.original_env(config)
        self.options = scenario.options(config)
        self.touches = self.unsure = self.rewards = 0
        self.outcomes: set[tuple[bool, bool]] = set()

    def take_over(self, state: Arrays, k: int) -> None:
        bodies = self.scenario.to_bodies(state)
        for a, agent in enumerate(self.raw.world.agents):
            agent.state.p_pos = bodies["position"][k, a].astype(np.float64)
            agent.state.p_vel = bodies["velocity"][k, a].astype(np.float64)
        for a, landmark in enumerate(self.raw.world.landmarks):
            landmark.state.p_pos = bodies["landmark"][k, a].astype(np.float64)
        self.scenario.inject(self.raw, state, k)

    def act(self, s: Simulator, chosen: np.ndarray) -> None:
        self.raw.current_actions = []
        for a, row in enumerate(chosen):
            space = s.layout.action_spaces[s.layout.group_of(a)]
            box = isinstance(space, spaces.Box)
            self.raw.current_actions.append(row[: space.shape[0]].astype(np.float64) if box else int(row[0]))
        self.raw._execute_world_step()

    def motion(self, s: Simulator, before: Arrays, after: Arrays, k: int, chosen: np.ndarray) -> None:
        world = self.raw.world
        self.take_over(before, k)
        was, had = positions(world.entities), np.array([a.state.p_vel for a in world.agents])
        self.act(s, chosen)
        position, velocity = positions(world.agents), np.array([a.state.p_vel for a in world.agents])
        ours = self.scenario.to_bodies(after)

        n = len(world.agents)
        mass, radius = np.array([[a.mass] for a in world.agents]), sizes(world.entities)
        solid = np.array([entity.collide for entity in world.entities])
        reach = radius[:n, None] + radius[None]
        depth = np.where(solid[:n, None] & solid[None], reach - distances(was[:n], was), -np.inf)
        np.fill_diagonal(depth, -np.inf)
        slope = 0.5 + 0.5 * np.tanh(depth / 2e-3)
        pressed = np.logaddexp(0, depth / 1e-3) * 1e-3
        count = (depth > -0.03).sum(1)[:, None]
        strength = np.array([[5.0 if a.accel is None else a.accel] for a in world.agents])
        force = np.sqrt(2) * strength + 100 * pressed.sum(1)[:, None]
        contact = 10 * ((5 * reach + 0.09) * slope + 16 * pressed).sum(1)[:, None]
        self.touches += int((depth > 0).sum())

        moved = U * (0.2 * np.abs(had) + np.abs(position))
        assert (np.abs(ours["position"][k] - position) <= moved).all()
        limit = np.array([[a.max_speed or 0.0] for a in world.agents])
        mixing = np.where(limit > 0, np.sqrt(2), 1)
        faster = U * (np.abs(had) + np.abs(velocity) + (contact + 0.1 * (4 + count) * force) / mass) + 1e-14 / mass
        faster = mixing * np.where(limit > 0, faster.max(1)[:, None], faster) + 6 * U * limit
        assert (np.abs(ours["velocity"][k] - velocity) <= faster).all()
        np.testing.assert_array_equal(ours["landmark"][k], positions(world.landmarks))

    def in_order(self, world: Any, a: int) -> bool:
        """Whether the order of what agent `a` sees is beyond doubt."""
        here = world.agents[a].state.p_pos[None]
        lists = {"num_agent_neighbors": world.agents, "num_landmark_neighbors": world.landmarks}
        for name, entities in lists.items():
            if self.options.get(name):
                far = np.sort(distances(here, positions(entities))[0])
                if near(far[1:], far[:-1]).any():
                    return False
        return True

    def judgement(self, s: Simulator, after: Arrays, k: int, chosen: np.ndarray, last: bool) -> None:
        raw, world = self.raw, self.raw.world
        self.take_over(after, k)
        world.step = lambda: None
        self.act(s, chosen)
        del world.step
        for a, agent in enumerate(world.agents):
            want = raw.scenario.observation(agent, world)
            space = s.layout.observation_spaces[s.layout.group_of(a)]
            assert want.shape == space.shape
            seen = s.arrays["observation"][k, a, : len(want)]
            assert (np.abs(seen - want) <= U * np.abs(want)).all() or not self.in_order(world, a)
        want = np.array([raw.rewards[agent.name] for agent in world.agents])
        unsure = self.scenario.unsure(raw)
        close = np.abs(s.arrays["reward"][k] - want) <= self.scenario.error(raw)
        assert (close | unsure).all()
        self.unsure += int(unsure.sum())
        self.rewards += len(want)
        assert (s.arrays["truncated"][k] == last).all()
        success = bool(raw.scenario.is_terminal(world))
        assert (s.arrays["terminated"][k] == (success and not last)).all() or unsure.any()
        self.outcomes.add((success, last))


def compare_states(scenario: Scenario, config: dict[str, Any], count: int) -> Comparison:
    """One step from each of `count` widely drawn states, a quarter of them at the time limit."""
    rng = np.random.default_rng(len(str(config)))
    comparison = Comparison(scenario, config)
    s = scenario.simulator(count, config)
    late = np.where(np.arange(count) % 4 == 0, s.max_episode_steps - 1, 3).astype(np.int32)
    bodies = wide_bodies(rng, count, comparison.raw)
    before = scenario.draw(rng, bodies, config)
    s.set_state(scenario.to_fields(before) | {"elapsed_steps": late})
    before = s.state()
    chosen = actions(rng, s, count)
    s.arrays["action"][...] = chosen
    s.step()
    after = s.state()
    for k in range(count):
        comparison.motion(s, before, after, k, chosen[k])
        comparison.judgement(s, after, k, chosen[k], late[k] == 24)
    assert comparison.unsure <= scenario.doubt * comparison.rewards, (comparison.unsure, comparison.rewards)
    return comparison


def compare_episodes(scenario: Scenario, config: dict[str, Any], count: int) -> Comparison:
    """Whole episodes of random actions, from reset to their end; MPE2 takes over our numbers before every step."""
    rng = np.random.default_rng(1)
    comparison = Comparison(scenario, config)
    s = scenario.simulator(count, config)
    playing = np.ones(count, bool)
    for t in range(25):
        before = s.state()
        chosen = actions(rng, s, count)
        s.arrays["action"][...] = chosen
        s.step()
        after = s.state()
        for k in np.flatnonzero(playing):
            comparison.motion(s, before, after, k, chosen[k])
            comparison.judgement(s, after, k, chosen[k], t == 24)
        playing &= ~s.arrays["ended"]
    assert not playing.any()
    assert comparison.unsure <= 0.1 * scenario.doubt * comparison.rewards, (comparison.unsure, comparison.rewards)
    return comparison
