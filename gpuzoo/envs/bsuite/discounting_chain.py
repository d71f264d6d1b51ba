"""Discounting chain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import CYCLE, Canvas, fade

REWARD_TIMESTEP = (1, 3, 10, 30, 100)


@dataclasses.dataclass(frozen=True)
class DiscountingChainConfig(Config):
    """Which chain has the bonus."""

    mapping_seed: int = param(0, low=0, doc="the chain with the bonus is number mapping_seed % 5")


class DiscountingChain(EnvDef):
    """The first action chooses among five rewards that come after 1, 3, 10, 30 and 100 steps; one of them is larger.

    Osband et al., "Behaviour suite for reinforcement learning" (2019): the experiment `discounting_chain`. An agent
    that discounts strongly does not see that a late reward is the larger one.

    **Actions.** `Discrete(5)`: in the first step the number of a chain. Later actions have no effect.

    **Observation.** `Box(2)`, float32: the chosen chain, -1 before the first step; steps / 100.

    **Reward.** 1 in step 1, 3, 10, 30 or 100, for chain 0, 1, 2, 3 or 4; 1.1 in the chain with the bonus, which is
    number `mapping_seed` % 5, in all envs and episodes. Otherwise 0.

    **End.** After 100 steps; that is a rule of the game, so it terminates.

    bsuite's observation has an axis of length 1 in front, Gymnax's has not; Gymnax truncates at the end. Without a
    `mapping_seed` bsuite draws one. An action out of range counts as 0.
    """

    id = "DiscountingChain-bsuite-v0"
    Config = DiscountingChainConfig
    reference = "bsuite 0.3.6 DiscountingChain"
    links: ClassVar[Mapping[str, str]] = {
        "bsuite": "https://github.com/google-deepmind/bsuite",
        "Osband et al. 2019": "https://arxiv.org/abs/1908.03568",
    }
    render_fps = 15

    def observation_space(self, cfg: DiscountingChainConfig, group: str) -> spaces.Box:
        return spaces.Box(np.array([-1, 0], np.float32), np.array([4, 1], np.float32), dtype=np.float32)

    def action_space(self, cfg: DiscountingChainConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def observation_names(self, cfg: DiscountingChainConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("the chosen chain, -1 before the first step", "steps / 100"), 1)

    def action_names(self, cfg: DiscountingChainConfig, group: str) -> dict[str, int]:
        return {f"choose the reward after {steps} steps": 1 for steps in REWARD_TIMESTEP}

    def fields(self, cfg: DiscountingChainConfig) -> dict[str, Field]:
        return {"context": Field("int32", doc="the chosen chain, -1 before the first step")}

    def tables(self, cfg: DiscountingChainConfig) -> dict[str, NDArray[Any]]:
        return {"reward_timestep": np.array(REWARD_TIMESTEP, np.int32)}

    def render(self, cfg: DiscountingChainConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        t, chosen, bonus = int(state["elapsed_steps"]), int(state["context"]), cfg.mapping_seed % 5
        canvas.background("paper")
        canvas.view(-0.06, -0.1, 1.08, 1.0, y_down=True, hud=True)
        for chain, when in enumerate(REWARD_TIMESTEP):
            y = 0.1 + 0.19 * chain
            end, mine = np.log10(1 + when) / np.log10(101), chain == chosen
            colour = CYCLE[chain]
            canvas.line(0, y, end, y, colour=colour if mine else "line", width=9 if mine else 6)
            for k in range(1, when):
                at = np.log10(1 + k) / np.log10(101)
                canvas.circle(at, y, 0.006, fill="white")
            got = mine and t >= when
            canvas.circle(end, y, 0.05, fill=fade(colour, 1.0 if got or chosen < 0 or mine else 0.3), outline="ink")
            canvas.text(end, y, "1.1" if chain == bonus else "1", size=11, colour="white", bold=True)
            canvas.text(end, y - 0.075, f"step {when}", size=9, colour="slate")
            if mine:
                at = np.log10(1 + min(t, 100)) / np.log10(101)
                canvas.circle(at, y, 0.028, fill="ink", outline="white", width=2)
        if chosen < 0:
            for chain in range(5):
                canvas.circle(0, 0.1 + 0.19 * chain, 0.028, fill="white", outline="ink", width=2)
        words = "no chain chosen" if chosen < 0 else f"chain {chosen}"
        canvas.hud(left=f"Discounting chain   {words}", right=f"step {t} of 100")
