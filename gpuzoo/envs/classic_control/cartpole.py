"""CartPole."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class CartPoleConfig(Config):
    """The constants of Gymnasium's CartPole."""

    gravity: float = param(9.8, doc="acceleration of gravity, m/s²")
    masscart: float = param(1.0, low=1e-3, doc="mass of the cart, kg")
    masspole: float = param(0.1, low=1e-3, doc="mass of the pole, kg")
    length: float = param(0.5, low=1e-3, doc="half the length of the pole, m")
    force_mag: float = param(10.0, doc="force of a push, N")
    tau: float = param(0.02, low=1e-6, doc="seconds between steps")
    x_threshold: float = param(2.4, low=0.0, doc="the episode ends when the cart is further from the centre, m")
    theta_threshold_radians: float = param(
        12 * 2 * math.pi / 360, low=0.0, doc="the episode ends when the pole leans further, rad"
    )
    sutton_barto_reward: bool = param(False, doc="reward 0, and -1 when the pole falls, as in the paper of 1983")


class CartPole(EnvDef):
    """A pole stands on a cart that runs on a frictionless track; pushes to the left and right keep it upright.

    **Actions.** `Discrete(2)`: 0 pushes the cart to the left, 1 to the right.

    **Observation.** `Box(4)`, float32: position of the cart (m), its velocity (m/s), angle of the pole (rad, 0 is
    upright), its angular velocity (rad/s). All four start uniformly in [-0.05, 0.05].

    **Reward.** 1 for each step, the last one included. With `sutton_barto_reward` 0, and -1 for a step that
    terminates the episode (not for one that the time limit truncates).

    **End.** The pole leans more than 12° or the cart is more than 2.4 m from the centre. Time limit: 500 steps.
    An action out of range counts as 0.
    """

    id = "CartPole-v1"
    Config = CartPoleConfig
    max_episode_steps = 500
    reference = "gymnasium CartPole-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/classic_control/cart_pole/",
        "Barto, Sutton and Anderson 1983": "https://doi.org/10.1109/TSMC.1983.6313077",
    }
    benchmarks = {"4096 envs": {"num_envs": 4096}}
    render_fps = 50
    reward_threshold = 475.0

    def observation_space(self, cfg: CartPoleConfig, group: str) -> spaces.Box:
        high = np.array([cfg.x_threshold * 2, np.inf, cfg.theta_threshold_radians * 2, np.inf], np.float32)
        return spaces.Box(-high, high, dtype=np.float32)

    def action_space(self, cfg: CartPoleConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: CartPoleConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            (
                "position of the cart, m",
                "velocity of the cart, m/s",
                "angle of the pole, rad",
                "angular velocity of the pole, rad/s",
            ),
            1,
        )

    def action_names(self, cfg: CartPoleConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("push to the left", "push to the right"), 1)

    def fields(self, cfg: CartPoleConfig) -> dict[str, Field]:
        return {
            "x": Field("float32", doc="position of the cart, m"),
            "x_dot": Field("float32", doc="velocity of the cart, m/s"),
            "theta": Field("float32", doc="angle of the pole, rad"),
            "theta_dot": Field("float32", doc="angular velocity of the pole, rad/s"),
        }

    def render(self, cfg: CartPoleConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        x, theta = float(state["x"]), float(state["theta"])
        edge = cfg.x_threshold
        canvas.background("paper")
        canvas.view(-edge, -0.6, edge, 1.8, hud=True)
        canvas.line(-edge, 0, edge, 0, colour="slate", width=2)
        for k in np.arange(-edge, edge + 0.1, edge / 6):
            canvas.line(k, 0, k, -0.05, colour="grey", width=1)
        canvas.rect(x - 0.3, -0.08, x + 0.3, 0.22, fill="ink", radius=0.06)
        for wheel in (-0.17, 0.17):
            canvas.circle(x + wheel, -0.08, 0.08, fill="slate", outline="paper")
        tip = (x + 2 * cfg.length * math.sin(theta), 0.16 + 2 * cfg.length * math.cos(theta))
        lean = min(1.0, abs(theta) / cfg.theta_threshold_radians)
        canvas.line(x, 0.16, *tip, colour="orange" if lean < 0.7 else "red", width=9)
        canvas.circle(x, 0.16, 0.06, fill="sand", outline="ink")
        canvas.hud(left="CartPole", right=f"step {int(state['elapsed_steps'])}")
