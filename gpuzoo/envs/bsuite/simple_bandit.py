"""Simple bandit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef, Field, param
from gpuzoo.envs.bsuite.rewards import RewardConfig
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class SimpleBanditConfig(RewardConfig):
    """The arms, and what is done with the rewards."""

    num_actions: int = param(11, low=2, high=1024, doc="number of arms")
    mapping_seed: int = param(0, low=0, high=2**32 - 1, doc="seed of the order of the arms, as in bsuite")


class SimpleBandit(EnvDef):
    """Arms with fixed rewards between 0 and 1; one pull is an episode.

    Osband et al., "Behaviour suite for reinforcement learning" (2019): the experiments `bandit`, `bandit_noise` and
    `bandit_scale`.

    **Actions.** `Discrete(num_actions)`: the arm.

    **Observation.** `Box(1)`, float32: always 1.

    **Reward.** 0, 1 / (n - 1), ..., 1 for the n = `num_actions` arms, in an order drawn from `mapping_seed`. It is the
    same in all envs and episodes, and the same as in bsuite. (Gymnax draws it anew for each episode, so that nothing
    can be learnt.) Then `reward_scale` times the reward, plus `noise_scale` times a number of the standard normal
    distribution.

    **End.** After one step.

    bsuite's observation has an axis of length 1 in front. Without a `mapping_seed` bsuite draws one. An action out of
    range counts as 0.
    """

    id = "SimpleBandit-bsuite-v0"
    Config = SimpleBanditConfig
    short_episodes = True
    reference = "bsuite 0.3.6 SimpleBandit"
    links: ClassVar[Mapping[str, str]] = {
        "bsuite": "https://github.com/google-deepmind/bsuite",
        "Osband et al. 2019": "https://arxiv.org/abs/1908.03568",
    }
    render_fps = 2

    def observation_space(self, cfg: SimpleBanditConfig, group: str) -> spaces.Box:
        return spaces.Box(0.0, 1.0, (1,), np.float32)

    def action_space(self, cfg: SimpleBanditConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_actions)

    def observation_names(self, cfg: SimpleBanditConfig, group: str) -> dict[str, int]:
        return {"always 1": 1}

    def action_names(self, cfg: SimpleBanditConfig, group: str) -> dict[str, int]:
        return {f"pull arm {k}": 1 for k in range(cfg.num_actions)}

    def fields(self, cfg: SimpleBanditConfig) -> dict[str, Field]:
        return {"arm": Field("int32", doc="the arm that was pulled, -1 before")}

    def tables(self, cfg: SimpleBanditConfig) -> dict[str, NDArray[Any]]:
        n = cfg.num_actions  # NumPy promises that the numbers of a RandomState never change
        order = np.random.RandomState(cfg.mapping_seed).choice(range(n), size=n, replace=False)
        return {"rewards": np.linspace(0, 1, n)[order].astype(np.float32)}

    def render(self, cfg: SimpleBanditConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        n, arm = cfg.num_actions, int(state["arm"])
        rewards = self.tables(cfg)["rewards"]
        canvas.background("paper")
        canvas.view(-0.04 * n, -0.08 * n, 1.04 * n, 1.02 * n, hud=True)
        best = int(rewards.argmax())
        for k in range(n):
            colour = "orange" if k == arm else "teal" if k == best else "blue"
            height = 0.94 * n * float(rewards[k])
            canvas.rect(k + 0.1, 0, k + 0.9, max(height, 0.008 * n), fill=colour)
            if n <= 16:
                canvas.text(k + 0.5, height + 0.035 * n, f"{rewards[k]:.2g}", size=10, colour="slate")
                canvas.text(k + 0.5, -0.04 * n, str(k), size=11, bold=k == arm)
        canvas.line(0, 0, n, 0, colour="ink", width=2)
        words = "no arm pulled" if arm < 0 else f"arm {arm}: {rewards[arm]:.3g}"
        canvas.hud(left=f"Simple bandit   {words}", right="")
