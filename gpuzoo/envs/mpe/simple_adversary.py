"""Simple Adversary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mpe.world import BODIES, PartialConfig, World, draw_agent, draw_goal, draw_landmark, draw_plane, seen
from gpuzoo.render import Canvas

RADIUS, LANDMARK_RADIUS = 0.15, 0.08


@dataclasses.dataclass(frozen=True)
class SimpleAdversaryConfig(PartialConfig):
    """The options of MPE2's simple_adversary."""

    N: int = param(2, low=1, high=63, doc="number of good agents, and of landmarks")


class SimpleAdversary(World):
    """Good agents cover a goal without giving it away to an adversary, who must guess it from what they do.

    One of the landmarks is the goal, drawn for every episode, and only the good agents know which.
    Agents pass through each other and through landmarks. All begin at rest, uniformly in [-1, 1]²,
    and nothing bounds the plane. A step lasts 0.1 s, a motor's full force accelerates by 5, and a
    quarter of the velocity is lost per step.

    **Agents.** `adversary_0`, then `agent_0` ... `agent_<N-1>`, with N landmarks.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at
    full force. With `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of
    which the first does nothing and opposite ones are subtracted. An action out of range counts as
    0; a component of a Box is clipped.

    **Observation.** float32, positions relative to the agent's: of the goal (2; good agents only),
    of the landmarks (2 each), of the other agents (2 each, in the order above). That is `Box(4 N)`
    for the adversary and `Box(4 N + 2)` for good agents. With `num_landmark_neighbors` or
    `num_agent_neighbors` = k > 0 only the k nearest are seen, the nearest first, with zeros behind
    them if there are fewer than k; good agents see the goal in any case.

    **Reward.** The adversary gets minus its distance to the goal. Every good agent gets that
    distance, minus that of the good agent who is nearest to the goal.

    **End.** Time limit: 25 steps.
    """

    id = "SimpleAdversary-v0"
    Config = SimpleAdversaryConfig
    reference = "mpe2 simple_adversary_v3"
    aliases = ("MPE_simple_adversary_v3",)
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_adversary/"}

    def agents(self, cfg: SimpleAdversaryConfig) -> dict[str, int]:
        return {"adversary": 1, "agent": cfg.N}

    def observation_space(self, cfg: SimpleAdversaryConfig, group: str) -> spaces.Box:
        places = (cfg.num_landmark_neighbors or cfg.N) + (cfg.num_agent_neighbors or cfg.N)
        return seen(2 * places + 2 * (group == "agent"))

    def observation_names(self, cfg: SimpleAdversaryConfig, group: str) -> dict[str, int]:
        goal = {"the goal, x and y, relative": 2} if group == "agent" else {}
        places = {"landmarks, x and y of each, relative": 2 * (cfg.num_landmark_neighbors or cfg.N)}
        return goal | places | {"other agents, x and y of each, relative": 2 * (cfg.num_agent_neighbors or cfg.N)}

    def fields(self, cfg: SimpleAdversaryConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", ("N", 2), doc="positions of the landmarks"),
            "goal": Field("int32", doc="index of the landmark that is the goal"),
        }

    def render(self, cfg: SimpleAdversaryConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents, landmarks = np.asarray(state["position"], np.float64), np.asarray(state["landmark"], np.float64)
        goal = landmarks[int(state["goal"]) % cfg.N]
        gaps = np.linalg.norm(agents - goal, axis=1)
        draw_plane(canvas, np.concatenate([agents, landmarks]), RADIUS)
        for a in (0, 1 + int(gaps[1:].argmin())):
            canvas.line(*agents[a], *goal, colour="rose" if a == 0 else "water", width=2.0)
        for a, xy in enumerate(agents):
            draw_agent(canvas, xy, state["velocity"][a], RADIUS, "red" if a == 0 else "blue")
        for k, xy in enumerate(landmarks):
            if k == state["goal"]:
                draw_goal(canvas, xy, 1.8 * LANDMARK_RADIUS, "green")
            else:
                draw_landmark(canvas, xy, LANDMARK_RADIUS, "slate")
        canvas.hud(
            left=f"Simple Adversary   to the goal: adversary {gaps[0]:.2f}, agents {gaps[1:].min():.2f}",
            right=f"step {int(state['elapsed_steps'])}",
        )
