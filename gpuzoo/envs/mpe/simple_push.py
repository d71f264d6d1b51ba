"""Simple Push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.mpe.world import BODIES, World, WorldConfig, draw_agent, draw_goal, draw_landmark, draw_plane, seen
from gpuzoo.render import Canvas

RADIUS = 0.05


class SimplePush(World):
    """An adversary pushes a good agent away from a goal that only the good agent knows.

    Both agents are discs of radius 0.05 that push each other away when they touch; the two landmarks
    are points, and one of them, drawn for every episode, is the goal. All begin at rest, uniformly in
    [-1, 1]², and nothing bounds the plane. A step lasts 0.1 s, a motor's full force accelerates by 5,
    and a quarter of the velocity is lost per step.

    **Agents.** `adversary_0`, `agent_0`.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at
    full force. With `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of
    which the first does nothing and opposite ones are subtracted. An action out of range counts as
    0; a component of a Box is clipped.

    **Observation.** float32. The adversary has `Box(8)`: own velocity (2), the landmarks' positions
    relative to its own (2 each), the agent's (2). The good agent has `Box(19)`: own velocity (2), the
    goal's relative position (2), its own colour (3), the landmarks' relative positions (2 each),
    their colours (3 each), the adversary's relative position (2). Landmark k is bright in component
    k + 1 of its colour: (0.1, 0.9, 0.1) and (0.1, 0.1, 0.9); the good agent's colour is that of its
    goal in the same way, (0.25, 0.75, 0.25) or (0.25, 0.25, 0.75).

    **Reward.** The good agent gets minus its distance to the goal; the adversary gets that distance,
    minus its own distance to the goal.

    **End.** Time limit: 25 steps.
    """

    id = "SimplePush-v0"
    Config = WorldConfig
    reference = "mpe2 simple_push_v3"
    aliases = ("MPE_simple_push_v3",)
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_push/"}

    def agents(self, cfg: WorldConfig) -> dict[str, int]:
        return {"adversary": 1, "agent": 1}

    def observation_space(self, cfg: WorldConfig, group: str) -> spaces.Box:
        return seen(8 if group == "adversary" else 19)

    def observation_names(self, cfg: WorldConfig, group: str) -> dict[str, int]:
        landmarks = {"landmarks, x and y of each, relative": 4}
        if group == "adversary":
            return {"own velocity, x and y": 2, **landmarks, "the agent, x and y, relative": 2}
        own = {"own velocity, x and y": 2, "the goal, x and y, relative": 2, "own colour": 3}
        return own | landmarks | {"colours of the landmarks": 6, "the adversary, x and y, relative": 2}

    def fields(self, cfg: WorldConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", (2, 2), doc="positions of the landmarks"),
            "goal": Field("int32", doc="index of the landmark that is the goal"),
        }

    def render(self, cfg: WorldConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents, landmarks = np.asarray(state["position"], np.float64), np.asarray(state["landmark"], np.float64)
        goal = landmarks[int(state["goal"]) % 2]
        draw_plane(canvas, np.concatenate([agents, landmarks]), RADIUS)
        draw_goal(canvas, goal, 0.13, "orange")
        for a, xy in enumerate(agents):
            canvas.line(*xy, *goal, colour="rose" if a == 0 else "mist", width=2.0)
        for k, xy in enumerate(landmarks):
            draw_landmark(canvas, xy, RADIUS, ("green", "blue")[k])
        for a, xy in enumerate(agents):
            draw_agent(canvas, xy, state["velocity"][a], RADIUS, ("red", ("green", "blue")[int(state["goal"]) % 2])[a])
        gaps = np.linalg.norm(agents - goal, axis=1)
        canvas.hud(
            left=f"Simple Push   to the goal: adversary {gaps[0]:.2f}, agent {gaps[1]:.2f}",
            right=f"step {int(state['elapsed_steps'])}",
        )
