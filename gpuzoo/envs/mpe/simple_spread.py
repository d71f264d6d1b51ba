"""Simple Spread."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mpe.world import BODIES, PartialConfig, World, draw_agent, draw_goal, draw_plane, seen
from gpuzoo.render import Canvas

RADIUS, COVERED = 0.15, 0.1


@dataclasses.dataclass(frozen=True)
class SimpleSpreadConfig(PartialConfig):
    """The options of MPE2's simple_spread."""

    N: int = param(3, low=1, high=64, doc="number of agents, and of landmarks")
    local_ratio: float = param(0.5, low=0.0, high=1.0, doc="weight of an agent's own collisions in its reward")
    collision_penalty: float = param(1.0, low=0.0, doc="what a collision costs")
    terminate_on_success: bool = param(False, doc="end the episode when all landmarks are covered")


class SimpleSpread(World):
    """Agents share out landmarks among themselves: each should have an agent near it.

    Agents are discs of radius 0.15 that push each other away when they touch; landmarks are
    points. All begin at rest, uniformly in [-1, 1]², and nothing bounds the plane. A step lasts
    0.1 s, a motor's full force accelerates by 5, and a quarter of the velocity is lost per step.

    **Agents.** `agent_0` ... `agent_<N-1>`, with as many landmarks.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at
    full force. With `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of
    which the first does nothing and opposite ones are subtracted. An action out of range counts as
    0; a component of a Box is clipped.

    **Observation.** `Box(6 N)`, float32: own velocity (2), own position (2), the landmark positions
    relative to the agent's (2 each), the other agents' (2 each), and what the others say (2 each,
    always zeros here). With `num_landmark_neighbors` or `num_agent_neighbors` = k > 0 only the k
    nearest are seen, the nearest first, with zeros behind them if there are fewer than k.

    **Reward.** `(1 - local_ratio) * common + local_ratio * own`: the common part is minus the sum
    over landmarks of the distance to the nearest agent, the own part is `-collision_penalty` for
    every other agent closer than 0.3. A penalty of 0 and later of 1 are the two stages of MPE2's
    curriculum: `set_params` changes it at any time.

    **End.** Time limit: 25 steps. With `terminate_on_success`, also when every landmark has an
    agent closer than 0.1, unless the time is up in the same step.
    """

    id = "SimpleSpread-v0"
    Config = SimpleSpreadConfig
    reference = "mpe2 simple_spread_v3"
    aliases = ("MPE_simple_spread_v3",)
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_spread/"}

    def agents(self, cfg: SimpleSpreadConfig) -> dict[str, int]:
        return {"agent": cfg.N}

    def observation_space(self, cfg: SimpleSpreadConfig, group: str) -> spaces.Box:
        landmarks = cfg.num_landmark_neighbors or cfg.N
        others = cfg.num_agent_neighbors or cfg.N - 1
        return seen(4 + 2 * landmarks + 4 * others)

    def observation_names(self, cfg: SimpleSpreadConfig, group: str) -> dict[str, int]:
        others = cfg.num_agent_neighbors or cfg.N - 1
        names = {"own velocity, x and y": 2, "own position, x and y": 2}
        names["landmarks, x and y of each, relative"] = 2 * (cfg.num_landmark_neighbors or cfg.N)
        seen = {"other agents, x and y of each, relative": 2 * others, "what they say, always 0": 2 * others}
        return names | seen if others else names

    def fields(self, cfg: SimpleSpreadConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", ("agents", 2), doc="positions of the landmarks"),
            "gap": Field("float32", ("agents",), doc="from each landmark to the nearest agent after the last step"),
        }

    def render(self, cfg: SimpleSpreadConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents = np.asarray(state["position"], np.float64)
        landmarks = np.asarray(state["landmark"], np.float64)
        speeds = np.asarray(state["velocity"], np.float64)
        apart = np.linalg.norm(agents[:, None] - landmarks[None], axis=-1)
        covered = apart.min(axis=0) < COVERED
        touching = np.linalg.norm(agents[:, None] - agents[None], axis=-1) < 2 * RADIUS
        np.fill_diagonal(touching, False)

        draw_plane(canvas, np.concatenate([agents, landmarks]), RADIUS)
        for a in range(cfg.N):
            draw_agent(canvas, agents[a], speeds[a], RADIUS, "red" if touching[a].any() else "blue")
        for k, xy in enumerate(landmarks):
            draw_goal(canvas, xy, COVERED, "green" if covered[k] else "slate")
        collisions = int(touching.sum()) // 2
        canvas.hud(
            left=f"Simple Spread   {int(covered.sum())} of {cfg.N} covered",
            right=f"collisions {collisions}   step {int(state['elapsed_steps'])}",
        )
