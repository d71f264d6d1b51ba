"""Bernoulli bandit."""

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
class BernoulliBanditConfig(Config):
    """How different the arms are, and what is seen of the time."""

    reward_prob: float = param(0.1, low=0.0, high=1.0, doc="probability of a reward of one arm; the other has the rest")
    normalize_time: bool = param(True, doc="the time is seen as a number between min_lim and max_lim")
    min_lim: float = param(-1.0, doc="what stands for the beginning")
    max_lim: float = param(1.0, doc="what stands for step t_max")
    t_max: int = param(100, low=1, doc="step at which max_lim is reached")


class BernoulliBandit(EnvDef):
    """Two arms, one good and one bad: in every episode the agent must find out again which one is good.

    Wang et al., "Learning to reinforcement learn" (2016), as in Gymnax: a test of learning within an episode. Random
    play gets 50 in 100 steps. An agent that stays with an arm after a reward, and leaves it otherwise, gets 82. One
    that remembers all rewards gets 89.4.

    **Actions.** `Discrete(2)`: the arm.

    **Observation.** `Box(4)`, float32: the last reward; whether arm 0 was pulled last; whether arm 1 was; the time.
    Before the first step the last reward is 0 and arm 0 counts as pulled. The time is `min_lim` + (`max_lim` -
    `min_lim`) steps / `t_max`, or the number of steps without `normalize_time`.

    **Beginning.** Arm 0 yields a reward with probability `reward_prob` or 1 - `reward_prob`, each in half of the
    episodes; arm 1 with the probability that remains.

    **Reward.** 1 or 0.

    **End.** Never: there is a time limit of 100 steps. An action out of range counts as 0.
    """

    id = "BernoulliBandit-misc-v0"
    Config = BernoulliBanditConfig
    max_episode_steps = 100
    reference = "gymnax 1.0.1 BernoulliBandit-misc"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnax": "https://github.com/RobertTLange/gymnax",
        "Wang et al. 2016": "https://arxiv.org/abs/1611.05763",
    }
    render_fps = 4

    def observation_space(self, cfg: BernoulliBanditConfig, group: str) -> spaces.Box:
        low, high = np.array([[0, 0, 0, -np.inf], [1, 1, 1, np.inf]], np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def action_space(self, cfg: BernoulliBanditConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: BernoulliBanditConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            ("last reward", "whether arm 0 was pulled last", "whether arm 1 was pulled last", "time"), 1
        )

    def action_names(self, cfg: BernoulliBanditConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("pull arm 0", "pull arm 1"), 1)

    def fields(self, cfg: BernoulliBanditConfig) -> dict[str, Field]:
        return {
            "prob": Field("float32", doc="probability of a reward of arm 0"),
            "last_action": Field("int32", doc="the arm pulled last"),
            "last_reward": Field("float32", doc="the last reward"),
        }

    def render(self, cfg: BernoulliBanditConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        prob = float(state["prob"])
        chances = [f"{100 * p:.0f} %" for p in (prob, 1 - prob)]
        draw(canvas, state, "Bernoulli bandit", chances, int(prob < 0.5))
