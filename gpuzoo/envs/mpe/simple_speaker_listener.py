"""Simple Speaker Listener."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.mpe.speech import action_space, draw_bubble, spoken
from gpuzoo.envs.mpe.world import BODIES, World, WorldConfig, draw_agent, draw_goal, draw_plane, seen
from gpuzoo.render import Canvas, fade

MOVES, WORDS, LANDMARKS = 5, 3, 3
COLOURS = ("red", "green", "blue")  # of the landmarks


@dataclasses.dataclass(frozen=True)
class SimpleSpeakerListenerConfig(WorldConfig):
    """The option of MPE2's simple_speaker_listener."""


class SimpleSpeakerListener(World):
    """One agent sees which landmark is the goal and can only speak; the other hears it and can only move.

    Both agents begin at rest, uniformly in [-1, 1]², as are the three landmarks, and nothing bounds the plane; the goal
    is one of the landmarks with equal chance. The speaker stays where it is, and the listener passes through it. A step
    lasts 0.1 s, a motor's full force accelerates by 5, and a quarter of the velocity is lost per step.

    **Agents.** `speaker_0`, `listener_0`.

    **Actions.** The speaker's: `Discrete(3)`, the word to say. The listener's: `Discrete(5)`: 0 nothing, 1 left (-x),
    2 right (+x), 3 down (-y), 4 up (+y), at full force. With `continuous_actions`, `Box(0, 1, (3,))`: how loudly each
    word is said, and `Box(0, 1, (5,))`: the strengths of the five moves, of which the first does nothing and opposite
    ones are subtracted. An action out of range counts as 0; a component of a Box is clipped.

    **Observation.** float32. The speaker's, `Box(3)`: the colour of the goal, 0.65 in component k for landmark k and
    0.15 elsewhere. The listener's, `Box(11)`: own velocity (2), the landmarks' positions relative to its own (2 each),
    and what the speaker said (3): the one-hot vector of its word, or its action with `continuous_actions`; before the
    first step zeros.

    **Reward.** Both get minus the squared distance between the listener and the goal.

    **End.** Never: there is a time limit of 25 steps.
    """

    id = "SimpleSpeakerListener-v0"
    Config = SimpleSpeakerListenerConfig
    observes_apart = True
    reference = "mpe2 simple_speaker_listener_v4"
    aliases = ("MPE_simple_speaker_listener_v4",)
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_speaker_listener/"}

    def agents(self, cfg: SimpleSpeakerListenerConfig) -> dict[str, int]:
        return {"speaker": 1, "listener": 1}

    def observation_space(self, cfg: SimpleSpeakerListenerConfig, group: str) -> spaces.Box:
        return seen(3 if group == "speaker" else 2 + 2 * LANDMARKS + WORDS)

    def action_space(self, cfg: SimpleSpeakerListenerConfig, group: str) -> spaces.Space[Any]:
        speaks = group == "speaker"
        return action_space(cfg.continuous_actions, 0 if speaks else MOVES, WORDS if speaks else 0)

    def constants(self, cfg: SimpleSpeakerListenerConfig) -> dict[str, int]:
        return {"WORDS": WORDS, "LANDMARKS": LANDMARKS}

    def observation_names(self, cfg: SimpleSpeakerListenerConfig, group: str) -> dict[str, int]:
        if group == "speaker":
            return {"colour of the goal": 3}
        places = {"own velocity, x and y": 2, "landmarks, x and y of each, relative": 2 * LANDMARKS}
        return places | {"what the speaker said, one-hot": WORDS}

    def action_names(self, cfg: SimpleSpeakerListenerConfig, group: str) -> dict[str, int]:
        speaks = group == "speaker"
        return spoken(cfg.continuous_actions, 0 if speaks else MOVES, WORDS if speaks else 0)

    def fields(self, cfg: SimpleSpeakerListenerConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", ("LANDMARKS", 2), doc="positions of the landmarks"),
            "goal": Field("uint8", doc="the landmark that is the goal"),
            "speech": Field("float32", ("speakers", "WORDS"), doc="what the speaker said in the last step"),
        }

    def render(self, cfg: SimpleSpeakerListenerConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        speaker, listener = np.asarray(state["position"], np.float64)
        landmarks = np.asarray(state["landmark"], np.float64)
        goal = min(int(state["goal"]), LANDMARKS - 1)
        draw_plane(canvas, np.concatenate([state["position"], landmarks]), 0.2)
        for k, (x, y) in enumerate(landmarks.tolist()):
            if k == goal:
                draw_goal(canvas, landmarks[k], 0.13, COLOURS[k])
            else:
                canvas.circle(x, y, 0.05, fill=COLOURS[k])
        x, y = speaker.tolist()
        canvas.circle(x, y, 0.075, fill=fade("grey", 0.28), outline="grey")
        canvas.circle(x, y, 0.03, fill=COLOURS[goal])
        draw_agent(canvas, listener, state["velocity"][1], 0.075, "purple")
        draw_bubble(canvas, x + 0.12, y + 0.25, state["speech"][0], 0.22)
        distance = float(np.hypot(*(listener - landmarks[goal])))
        canvas.hud(
            left=f"Simple Speaker Listener   still to go {distance:.2f}", right=f"step {int(state['elapsed_steps'])}"
        )
