"""Simple Crypto."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef, Field
from gpuzoo.envs.mpe.speech import action_space, draw_bubble, spoken
from gpuzoo.envs.mpe.world import WorldConfig, seen
from gpuzoo.render import Canvas, fade

WORDS = 4


@dataclasses.dataclass(frozen=True)
class SimpleCryptoConfig(WorldConfig):
    """The option of MPE2's simple_crypto."""


class SimpleCrypto(EnvDef):
    """Alice tells Bob a secret in public; they share a key, and Eve, who listens, should not understand.

    The message and the key are drawn at the start, each one of two symbols with equal chance, and stay for the whole
    episode. Symbol k is written as a one-hot vector of 4 with its 1 in place k, so words 2 and 3 are never right. All
    three speak at once, in every step. Nobody moves.

    **Agents.** `eve_0`, `bob_0`, `alice_0`.

    **Actions.** `Discrete(4)`: the word to say. What Bob and Eve say is what they think the message is. With
    `continuous_actions`, `Box(0, 1, (4,))`: how loudly each word is said. An action out of range counts as 0; a
    component of a Box is clipped.

    **Observation.** float32.

    | agent | space | values |
    |---|---|---|
    | `eve_0` | `Box(4)` | what Alice said |
    | `bob_0` | `Box(8)` | the key (4), what Alice said (4) |
    | `alice_0` | `Box(8)` | the message (4), the key (4) |

    What an agent says is the one-hot vector of its word, or its whole action with `continuous_actions`; before the
    first step it is zeros.

    **Reward.** The mistake of Bob or Eve is the squared distance between what it says and the message: 2 for a wrong
    word, 0 for the right one. Eve gets minus her mistake; Alice and Bob both get Eve's mistake minus Bob's. Saying
    nothing at all (a Box of zeros) is no mistake, as in MPE2.

    **End.** Never: there is a time limit of 25 steps.

    MPE2 also gives the three and two landmarks positions, which nobody sees; they are left out.
    """

    id = "SimpleCrypto-v0"
    Config = SimpleCryptoConfig
    max_episode_steps = 25
    observes_apart = True
    reference = "mpe2 simple_crypto_v3"
    aliases = ("MPE_simple_crypto_v3",)
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {
        "MPE2": "https://mpe2.farama.org/environments/simple_crypto/",
        "Lowe et al. 2017": "https://arxiv.org/abs/1706.02275",
    }
    render_fps = 4

    def agents(self, cfg: SimpleCryptoConfig) -> dict[str, int]:
        return {"eve": 1, "bob": 1, "alice": 1}

    def observation_space(self, cfg: SimpleCryptoConfig, group: str) -> spaces.Box:
        return seen(WORDS if group == "eve" else 2 * WORDS)

    def action_space(self, cfg: SimpleCryptoConfig, group: str) -> spaces.Space[Any]:
        return action_space(cfg.continuous_actions, 0, WORDS)

    def constants(self, cfg: SimpleCryptoConfig) -> dict[str, int]:
        return {"WORDS": WORDS}

    def observation_names(self, cfg: SimpleCryptoConfig, group: str) -> dict[str, int]:
        first = {"eve": {}, "bob": {"the key": WORDS}, "alice": {"the message": WORDS}}[group]
        return {**first, "the key" if group == "alice" else "what Alice said": WORDS}

    def action_names(self, cfg: SimpleCryptoConfig, group: str) -> dict[str, int]:
        return spoken(cfg.continuous_actions, 0, WORDS)

    def fields(self, cfg: SimpleCryptoConfig) -> dict[str, Field]:
        return {
            "message": Field("uint8", doc="what Alice should tell, 0 or 1"),
            "key": Field("uint8", doc="what Alice and Bob share, 0 or 1"),
            "speech": Field("float32", ("agents", "WORDS"), doc="what each agent said in the last step"),
        }

    def render(self, cfg: SimpleCryptoConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        speech = np.asarray(state["speech"], np.float64)
        message, key = min(int(state["message"]), 1), min(int(state["key"]), 1)
        wrong = ((speech - np.eye(WORDS)[message]) ** 2).sum(1) * speech.any(1)
        canvas.background("paper")
        canvas.view(-1.6, -1.6, 1.6, 1.6, hud=True)
        places = {"eve": (0.0, -0.95), "bob": (0.95, 0.55), "alice": (-0.95, 0.55)}
        colours = {"eve": "red", "bob": "blue", "alice": "blue"}
        canvas.line(*places["alice"], *places["bob"], colour="line", width=5)
        canvas.line(0.0, 0.55, *places["eve"], colour="line", width=5)
        for a, (name, (x, y)) in enumerate(places.items()):
            canvas.circle(x, y, 0.3, fill=fade(colours[name], 0.28), outline=colours[name])
            canvas.circle(x, y, 0.3, fill=fade("white", 0.5))
            canvas.text(x, y, name.capitalize(), height=0.17, bold=True)
            if name == "alice":
                canvas.text(x, y - 0.45, f"message {'AB'[message]}", height=0.15, colour="slate")
            elif speech[a].any():
                right = wrong[a] < 0.5
                text = f"mistake {wrong[a]:.2g}" if wrong[a] else "understands"
                canvas.text(x, y - 0.45, text, height=0.15, colour="green" if right else "slate")
            if name != "eve":
                canvas.text(x, y + 0.87, f"key {'AB'[key]}", height=0.13, colour="grey")
            draw_bubble(canvas, x + 0.1, y + 0.57, speech[a], 0.32, colours[name])
        canvas.hud(left="Simple Crypto", right=f"step {int(state['elapsed_steps'])}")
