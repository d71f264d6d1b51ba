"""Pendulum."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, mix


@dataclasses.dataclass(frozen=True)
class PendulumConfig(Config):
    """The constants of Gymnasium's Pendulum; `x_init` and `y_init` are its options of `reset`."""

    g: float = param(10.0, doc="acceleration of gravity, m/s²")
    m: float = param(1.0, low=1e-3, doc="mass of the rod, kg")
    l: float = param(1.0, low=1e-3, doc="length of the rod, m")  # noqa: E741
    dt: float = param(0.05, low=1e-6, doc="seconds between steps")
    max_speed: float = param(8.0, low=0.0, doc="largest angular velocity, rad/s")
    x_init: float = param(math.pi, low=0.0, doc="the first angle is within this distance of upright, rad")
    y_init: float = param(1.0, low=0.0, doc="largest angular velocity at the beginning, rad/s")


class Pendulum(EnvDef):
    """A rod hangs on a hinge with a motor that is too weak to lift it at once: it must be swung up and held there.

    **Actions.** `Box(1)` in [-2, 2]: the motor's torque u (N m), positive is counter-clockwise.

    **Observation.** `Box(3)`, float32: cosine and sine of the rod's angle `theta` (0 is upright, counter-clockwise is
    positive), its angular velocity.

    **Movement.** `theta_dot += dt (3 g / (2 l) sin(theta) + 3 u / (m l²))`, clipped to ± `max_speed`; then
    `theta += dt theta_dot`.

    **Reward.** `-(theta² + 0.1 theta_dot² + 0.001 u²)`, of the state before the movement, with theta in [-pi, pi].

    **Start.** Angle uniform in [-`x_init`, `x_init`], angular velocity uniform in [-`y_init`, `y_init`].

    **End.** None. Time limit: 200 steps.

    **Differences from Gymnasium.** The state's angle is kept in [-pi, pi], where theirs grows. Observations and
    rewards do not depend on it.
    """

    id = "Pendulum-v1"
    Config = PendulumConfig
    max_episode_steps = 200
    reference = "gymnasium Pendulum-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/classic_control/pendulum/",
    }
    render_fps = 30

    def observation_space(self, cfg: PendulumConfig, group: str) -> spaces.Box:
        high = np.array([1.0, 1.0, cfg.max_speed], np.float32)
        return spaces.Box(-high, high, dtype=np.float32)

    def action_space(self, cfg: PendulumConfig, group: str) -> spaces.Box:
        return spaces.Box(-2.0, 2.0, (1,), np.float32)

    def observation_names(self, cfg: PendulumConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("cosine of the angle", "sine of the angle", "angular velocity, rad/s"), 1)

    def action_names(self, cfg: PendulumConfig, group: str) -> dict[str, int]:
        return {"torque, N m, positive is counter-clockwise": 1}

    def fields(self, cfg: PendulumConfig) -> dict[str, Field]:
        return {
            "theta": Field("float32", doc="angle of the rod, rad, 0 is upright"),
            "theta_dot": Field("float32", doc="angular velocity, rad/s"),
        }

    def render(self, cfg: PendulumConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        theta, theta_dot = float(state["theta"]), float(state["theta_dot"])
        canvas.background("paper")
        canvas.view(-1.35, -1.35, 1.35, 1.35, hud=True)
        canvas.circle(0, 0, 1.06, outline="mist", width=2)
        canvas.line(0, 1.0, 0, 1.12, colour="green", width=3)
        up = math.pi / 2
        swing = np.linspace(theta - 0.16 * theta_dot, theta, 24) + up
        canvas.trail(np.stack([np.cos(swing), np.sin(swing)], 1), colour="orange", width=7)
        tip = (math.cos(theta + up), math.sin(theta + up))
        rod = mix("red", "green", max(0.0, math.cos(theta)) ** 4)
        canvas.line(0, 0, *tip, colour=rod, width=22)
        canvas.circle(*tip, 0.05, fill="paper")
        canvas.circle(0, 0, 0.12, fill="ink")
        canvas.circle(0, 0, 0.045, fill="sand")
        degrees = math.degrees(math.remainder(theta, 2 * math.pi))
        canvas.hud(left=f"Pendulum: {degrees:.0f}° from upright", right=f"step {int(state['elapsed_steps'])}")
