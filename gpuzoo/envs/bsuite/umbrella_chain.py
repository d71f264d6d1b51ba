"""Umbrella chain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class UmbrellaChainConfig(Config):
    """How far away the consequence is, and what distracts from it."""

    chain_length: int = param(10, low=1, high=100_000, doc="steps of an episode; bsuite: 1 to 100")
    n_distractor: int = param(0, low=0, high=4096, doc="number of random bits in the observation; bsuite: 1 to 100")


class UmbrellaChain(EnvDef):
    """Take an umbrella or leave it: the first action is the only one that matters, and its reward comes at the end.

    Osband et al., "Behaviour suite for reinforcement learning" (2019): the experiments `umbrella_length` (with 20
    distractors) and `umbrella_distract` (`chain_length` 20).

    **Actions.** `Discrete(2)`: in the first step 1 takes the umbrella and 0 leaves it. Later actions have no effect.

    **Observation.** `Box(3 + n_distractor)`, float32: whether an umbrella will be needed, whether the agent has one,
    1 - steps / `chain_length`; then distractors, each 0 or 1 with equal probability, drawn anew at every observation.

    **Beginning.** Both bits are drawn at random with equal probability; what is seen of the second one before the first
    step means nothing.

    **Reward.** In the last step: 1 if the agent has an umbrella just when it needs one, -1 otherwise. In all steps
    before: 1 or -1 with equal probability, whatever is done.

    **End.** After `chain_length` steps.

    bsuite's observation has an axis of length 1 in front, Gymnax's has not. The default of `chain_length` is Gymnax's,
    as bsuite has none. An action out of range counts as 0.
    """

    id = "UmbrellaChain-bsuite-v0"
    Config = UmbrellaChainConfig
    reference = "bsuite 0.3.6 UmbrellaChain"
    links: ClassVar[Mapping[str, str]] = {
        "bsuite": "https://github.com/google-deepmind/bsuite",
        "Osband et al. 2019": "https://arxiv.org/abs/1908.03568",
    }
    render_fps = 4

    def observation_space(self, cfg: UmbrellaChainConfig, group: str) -> spaces.Box:
        return spaces.Box(0.0, 1.0, (3 + cfg.n_distractor,), np.float32)

    def action_space(self, cfg: UmbrellaChainConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: UmbrellaChainConfig, group: str) -> dict[str, int]:
        names = {"whether an umbrella will be needed": 1, "whether the agent has one": 1, "1 - steps / chain_length": 1}
        return names | ({"distractors, 0 or 1 at random": cfg.n_distractor} if cfg.n_distractor else {})

    def action_names(self, cfg: UmbrellaChainConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("leave the umbrella", "take it"), 1)

    def fields(self, cfg: UmbrellaChainConfig) -> dict[str, Field]:
        return {
            "need_umbrella": Field("bool", doc="whether it rains at the end"),
            "has_umbrella": Field("bool", doc="whether the agent has an umbrella"),
        }

    def render(self, cfg: UmbrellaChainConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        length, t = cfg.chain_length, int(state["elapsed_steps"])
        rain, umbrella = bool(state["need_umbrella"]), bool(state["has_umbrella"])
        canvas.background("#dfe5ee" if rain else "#eaf4fb")
        canvas.view(0, 0, 10, 10, hud=True)
        canvas.rect(-1, 0, 11, 2.4, fill="grass")
        canvas.line(0.9, 2.0, 9.1, 2.0, colour="sand", width=14)
        for k in range(length + 1) if length <= 40 else ():
            canvas.circle(0.9 + 8.2 * k / length, 2.0, 0.09, fill="brown" if k <= t else "grey")
        if rain:
            for k in range(28):
                x, y = 7.0 + 0.36 * (k % 7), 3.2 + 0.85 * (k // 7) + 0.3 * (k * 5 % 7) / 7
                canvas.line(x, y, x - 0.12, y - 0.4, colour="blue", width=2)
            for x, y, r in ((7.3, 7.1, 0.6), (8.1, 7.5, 0.8), (8.9, 7.1, 0.65), (8.1, 6.9, 0.6)):
                canvas.circle(x, y, r, fill="slate")
        else:
            for k in range(12):
                a = 2 * np.pi * k / 12
                x, y = np.cos(a), np.sin(a)
                canvas.line(8.1 + 1.0 * x, 7.3 + 1.0 * y, 8.1 + 1.35 * x, 7.3 + 1.35 * y, colour="yellow", width=4)
            canvas.circle(8.1, 7.3, 0.8, fill="yellow")
        canvas.rect(8.75, 2.1, 9.45, 3.0, fill="rose", outline="brown")
        canvas.polygon([(8.6, 3.0), (9.6, 3.0), (9.1, 3.6)], fill="red", outline="brown")
        x = 0.9 + 8.2 * min(t, length) / length
        if t == 0 or umbrella:
            ux, uy = (x + 0.45, 4.3) if t > 0 else (0.9, 5.6)
            canvas.line(ux, uy - 0.8, ux, uy + 0.1, colour="ink", width=2.5)
            canvas.sector(ux, uy, 0.85, 0.0, np.pi, fill="purple" if t > 0 else "#8a66d360", outline="ink")
        if t == 0:
            canvas.text(0.9, 6.9, "?", height=0.8, colour="purple", bold=True)
        canvas.line(x, 2.15, x, 3.1, colour="blue", width=11)
        canvas.circle(x, 3.5, 0.3, fill="sand", outline="ink")
        words = "" if t < length else "well prepared" if rain == umbrella else "wrong"
        canvas.hud(left=f"Umbrella chain   {words}", right=f"step {t} of {length}")
