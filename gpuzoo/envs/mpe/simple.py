"""Simple."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.mpe.world import World, WorldConfig, draw_agent, draw_goal, draw_plane, seen
from gpuzoo.render import Canvas


class Simple(World):
    """One agent is drawn to a landmark.

    Both begin uniformly in [-1, 1]², the agent at rest; nothing bounds the plane. A step lasts
    0.1 s, the motor's full force accelerates by 5, and a quarter of the velocity is lost per step.

    **Agents.** `agent_0`.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at
    full force. With `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of
    which the first does nothing and opposite ones are subtracted. An action out of range counts as
    0; a component of a Box is clipped.

    **Observation.** `Box(4)`, float32: own velocity (2), the landmark's position relative to the
    agent's (2).

    **Reward.** Minus the square of the distance to the landmark.

    **End.** Time limit: 25 steps.
    """

    id = "Simple-v0"
    Config = WorldConfig
    reference = "mpe2 simple_v3"
    aliases = ("MPE_simple_v3",)
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple/"}

    def observation_space(self, cfg: WorldConfig, group: str) -> spaces.Box:
        return seen(4)

    def observation_names(self, cfg: WorldConfig, group: str) -> dict[str, int]:
        return {"own velocity, x and y": 2, "the landmark, x and y, relative": 2}

    def fields(self, cfg: WorldConfig) -> dict[str, Field]:
        return {
            "x": Field("float32", doc="position"),
            "y": Field("float32", doc="position"),
            "vx": Field("float32", doc="velocity"),
            "vy": Field("float32", doc="velocity"),
            "landmark_x": Field("float32", doc="position of the landmark"),
            "landmark_y": Field("float32", doc="position of the landmark"),
        }

    def render(self, cfg: WorldConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        position, velocity, landmark = (
            np.array([state[x], state[y]], np.float64)
            for x, y in (("x", "y"), ("vx", "vy"), ("landmark_x", "landmark_y"))
        )
        draw_plane(canvas, [position, landmark], 0.05)
        canvas.line(*position, *landmark, colour="line", width=1.2)
        draw_agent(canvas, position, velocity, 0.05, "blue")
        draw_goal(canvas, landmark, 0.1, "slate")
        canvas.hud(
            left=f"Simple   distance {np.hypot(*(position - landmark)):.2f}",
            right=f"step {int(state['elapsed_steps'])}",
        )
