"""Gaussian bandit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.bandits.two_arms import draw
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class GaussianBanditConfig(Config):
    """The distribution of the second arm, and what is seen of the time."""

    mean_mu: float = param(-1.0, doc="mean of the second arm's mean")
    sigma_p: float = param(1.0, low=0.0, doc="standard deviation of the second arm's mean, between episodes")
    sigma_l: float = param(0.1, low=0.0, doc="standard deviation of the second arm's reward, between pulls")
    normalize_time: bool = param(True, doc="the time is seen as steps / 50 - 1")


class GaussianBandit(EnvDef):
    """One arm always yields nothing; is the other one better or worse in this episode? Trying it has a price.

    Lange and Sprekeler, "Learning not to learn: nature versus nurture in silico" (2022), as in Gymnax. An agent that
    tries arm 1 in the first step, and stays with it just when it paid, gets 7.2 in 100 steps.

    **Actions.** `Discrete(2)`: the arm.

    **Observation.** `Box(4)`, float32: the last reward; whether arm 0 was pulled last; whether arm 1 was; the time.
    Before the first step the last reward is 0 and arm 0 counts as pulled. The time goes from -1 to 1 in 100 steps, or
    is the number of steps without `normalize_time`.

    **Beginning.** The mean of arm 1 is drawn from the normal distribution with mean `mean_mu` and standard deviation
    `sigma_p`.

    **Reward.** 0 for arm 0; for arm 1 a draw from the normal distribution with its mean and `sigma_l`.

    **End.** Never: there is a time limit of 100 steps. An action out of range counts as 0.
    """

    id = "GaussianBandit-misc-v0"
    Config = GaussianBanditConfig
    max_episode_steps = 100
    reference = "gymnax 1.0.1 GaussianBandit-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
        "Lange and Sprekeler 2022": "https://arxiv.org/abs/2010.04466",
    }
    render_fps = 4

    def observation_space(self, cfg: GaussianBanditConfig, group: str) -> spaces.Box:
        low, high = np.array([[-np.inf, 0, 0, -1], [np.inf, 1, 1, np.inf]], np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def action_space(self, cfg: GaussianBanditConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: GaussianBanditConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            ("last reward", "whether arm 0 was pulled last", "whether arm 1 was pulled last", "time"), 1
        )

    def action_names(self, cfg: GaussianBanditConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("pull arm 0", "pull arm 1"), 1)

    def fields(self, cfg: GaussianBanditConfig) -> dict[str, Field]:
        return {
            "mu": Field("float32", doc="mean reward of arm 1"),
            "last_action": Field("int32", doc="the arm pulled last"),
            "last_reward": Field("float32", doc="the last reward"),
        }

    def render(self, cfg: GaussianBanditConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        mu = float(state["mu"])
        draw(canvas, state, "Gaussian bandit", ["0", f"{mu:.2f}"], int(mu > 0))
