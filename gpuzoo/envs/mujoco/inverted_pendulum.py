"""InvertedPendulum."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class InvertedPendulumConfig(RobotConfig):
    """Options of Gymnasium's InvertedPendulum-v5."""

    frame_skip: int = param(2, low=1, doc="steps of time, of 0.02 seconds, for each step of the env")
    reset_noise_scale: float = param(0.01, low=0.0, doc="noise of the first state")


class InvertedPendulum(Robot):
    """A cart balances a pole: cart-pole with forces of any strength, and MuJoCo's motion.

    **Actions.** `Box(1)` in [-3, 3]: the force on the cart is a hundred times that.

    **Observation.** `Box(4)`, float32: position of the cart, angle of the pole, and their velocities.

    **Motion.** MuJoCo's, 2 steps of 0.02 s.

    **Reward.** 1 for each step after which the pole stands.

    **Start.** Upright and at rest, with uniform noise of `reset_noise_scale` in positions and velocities.

    **End.** The pole leans by more than 0.2. Time limit: 1000 steps.
    """

    id = "InvertedPendulum-v5"
    Config = InvertedPendulumConfig
    max_episode_steps = 1000
    reward_threshold = 950.0
    reference = "gymnasium==1.4.0 InvertedPendulum-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/mujoco/inverted_pendulum/"
    }
    render_fps = 25
    model = "inverted_pendulum"
    needs = (2, 2, 1)
    exactly = True
    view_height = 1.5
    told_of_step = ("reward_survive",)

    def number(self, cfg: Any, name: str, state: Mapping[str, Any]) -> Any:
        stands = (state["qpos"][:, 1] <= 0.2) & (state["qpos"][:, 1] >= -0.2) & (state["diverged"] == 0)
        return stands * 1.0  # the reward

    def observation_space(self, cfg: InvertedPendulumConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (4,), np.float32)
