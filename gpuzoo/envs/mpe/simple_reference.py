"""Simple Reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mpe.speech import action_space, draw_bubble, spoken
from gpuzoo.envs.mpe.world import BODIES, World, WorldConfig, draw_agent, draw_goal, draw_plane, seen
from gpuzoo.render import Canvas, fade

MOVES, WORDS, LANDMARKS = 5, 10, 3
COLOURS = ("red", "green", "blue")  # of the landmarks


@dataclasses.dataclass(frozen=True)
class SimpleReferenceConfig(WorldConfig):
    """The options of MPE2's simple_reference."""

    local_ratio: float = param(0.5, low=0.0, high=1.0, doc="weight of the own partner's distance in an agent's reward")


class SimpleReference(World):
    """Two agents tell each other where to go: each knows the landmark that is the other's.

    Agents are discs that pass through each other, of mass 1; landmarks are points. All begin at rest, uniformly in
    [-1, 1]², and nothing bounds the plane. The landmark where an agent wants the other is one of three with equal
    chance, both may have the same. A step lasts 0.1 s, a motor's full force accelerates by 5, and a quarter of the
    velocity is lost per step.

    **Agents.** `agent_0` and `agent_1`, each other's partners.

    **Actions.** `Discrete(50)`: `move + 5 word` with moves 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up
    (+y), and words 0 to 9. With `continuous_actions`, `Box(0, 1, (15,))`: the strengths of the five moves, of which the
    first does nothing and opposite ones are subtracted, then how loudly each of the ten words is said. An action out of
    range counts as 0; a component of a Box is clipped.

    **Observation.** `Box(21)`, float32: own velocity (2), the landmarks' positions relative to the agent's (2 each),
    the colour of the landmark where the partner should go (3), and what the partner said (10). Colour k of the three is
    0.75 in component k and 0.25 elsewhere. What an agent says is the one-hot vector of its word, or the last ten
    components of its action with `continuous_actions`; before the first step it is zeros.

    **Reward.** `(1 - local_ratio) * common + local_ratio * own`: the own part is minus the distance of the agent's
    *partner* from the landmark where it should go, the common part is the mean of both agents' own parts.

    **End.** Never: there is a time limit of 25 steps.
    """

    id = "SimpleReference-v0"
    Config = SimpleReferenceConfig
    observes_apart = True
    reference = "mpe2 simple_reference_v3"
    aliases = ("MPE_simple_reference_v3",)
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_reference/"}

    def agents(self, cfg: SimpleReferenceConfig) -> dict[str, int]:
        return {"agent": 2}

    def observation_space(self, cfg: SimpleReferenceConfig, group: str) -> spaces.Box:
        return seen(2 + 2 * LANDMARKS + 3 + WORDS)

    def action_space(self, cfg: SimpleReferenceConfig, group: str) -> spaces.Space[Any]:
        return action_space(cfg.continuous_actions, MOVES, WORDS)

    def constants(self, cfg: SimpleReferenceConfig) -> dict[str, int]:
        return {"WORDS": WORDS, "LANDMARKS": LANDMARKS}

    def observation_names(self, cfg: SimpleReferenceConfig, group: str) -> dict[str, int]:
        places = {"own velocity, x and y": 2, "landmarks, x and y of each, relative": 2 * LANDMARKS}
        return places | {"colour of the partner's goal": 3, "what the partner said, one-hot": WORDS}

    def action_names(self, cfg: SimpleReferenceConfig, group: str) -> dict[str, int]:
        return spoken(cfg.continuous_actions, MOVES, WORDS)

    def fields(self, cfg: SimpleReferenceConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", ("LANDMARKS", 2), doc="positions of the landmarks"),
            "goal": Field("uint8", ("agents",), doc="the landmark where each agent wants its partner"),
            "speech": Field("float32", ("agents", "WORDS"), doc="what each agent said in the last step"),
        }

    def render(self, cfg: SimpleReferenceConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents = np.asarray(state["position"], np.float64)
        landmarks = np.asarray(state["landmark"], np.float64)
        draw_plane(canvas, np.concatenate([agents, landmarks]), 0.2)
        for k, xy in enumerate(landmarks):
            draw_goal(canvas, xy, 0.1, COLOURS[k])
        for a, (x, y) in enumerate(agents):
            goal = min(int(state["goal"][1 - a]), LANDMARKS - 1)
            canvas.line(x, y, *landmarks[goal], colour=fade(COLOURS[goal], 0.5), width=1.5)
            draw_agent(canvas, agents[a], state["velocity"][a], 0.05, COLOURS[goal])
        for a, (x, y) in enumerate(agents):
            draw_bubble(canvas, x + 0.1, y + 0.21, state["speech"][a], 0.2)
        distances = [np.hypot(*(agents[1 - a] - landmarks[min(int(state["goal"][a]), 2)])) for a in (1, 0)]
        canvas.hud(
            left="Simple Reference   still to go " + " and ".join(f"{d:.2f}" for d in distances),
            right=f"step {int(state['elapsed_steps'])}",
        )
