"""InvertedDoublePendulum."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class InvertedDoublePendulumConfig(RobotConfig):
    """Options of Gymnasium's InvertedDoublePendulum-v5."""

    frame_skip: int = param(5, low=1, doc="steps of time, of 0.01 seconds, for each step of the env")
    healthy_reward: float = param(10.0, doc="reward of each step after which the tip is high")
    reset_noise_scale: float = param(0.1, low=0.0, doc="noise of the first state")


class InvertedDoublePendulum(Robot):
    """A cart balances two poles, one on top of the other.

    **Actions.** `Box(1)` in [-1, 1]: the force on the cart.

    **Observation.** `Box(9)`, float32: position of the cart; sines of the two angles; their cosines; three velocities,
    clipped to [-10, 10]; the force of the rail's end on the cart, clipped likewise.

    **Motion.** MuJoCo's, 5 steps of 0.01 s.

    **Reward.** `healthy_reward` while the tip is high, less 0.01 x² + (y - 2)², the tip being at x and at the height y,
    and less 0.001 and 0.005 times the squared velocities of the two angles. As in MuJoCo's data after a step, the tip
    and the force are those of the last evaluation of the dynamics, just before the state.

    **Start.** Upright and at rest, with uniform noise of `reset_noise_scale` in positions, normal noise in velocities.

    **End.** The tip is not above 1. Time limit: 1000 steps.
    """

    id = "InvertedDoublePendulum-v5"
    Config = InvertedDoublePendulumConfig
    max_episode_steps = 1000
    reward_threshold = 9100.0
    reference = "gymnasium==1.4.0 InvertedDoublePendulum-v5 with mujoco==4.0.0"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/mujoco/inverted_double_pendulum/"
    }
    render_fps = 20
    model = "inverted_double_pendulum"
    needs = (3, 3, 1)
    exactly = True
    evaluates = True
    watch = ("site_xpos 0", "qfrc_constraint 0")
    view_height = 2.6
    told_of_step = ("reward_survive", "distance_penalty", "velocity_penalty")
    parts: ClassVar = {
        "rail_force": "force of the rail's end on the cart, clipped to [-10, 10]",
        "reward_survive": "part of the last reward",
        "distance_penalty": "part of the last reward",
        "velocity_penalty": "part of the last reward",
    }

    def observation_space(self, cfg: InvertedDoublePendulumConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (9,), np.float32)

    def observation_names(self, cfg: InvertedDoublePendulumConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            (
                "position of the cart",
                "sine of angle 1",
                "sine of angle 2",
                "cosine of angle 1",
                "cosine of angle 2",
                "velocity of the cart",
                "angular velocity 1",
                "angular velocity 2",
                "force of the rail's end on the cart",
            ),
            1,
        )
