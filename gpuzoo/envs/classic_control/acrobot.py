"""Acrobot."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class AcrobotConfig(Config):
    """The constants of Gymnasium's Acrobot; `low` and `high` are its options of `reset`."""

    book_or_nips: Literal["book", "nips"] = param("book", doc="equations of Sutton and Barto's book, or of the paper")
    torque_noise_max: float = param(0.0, low=0.0, doc="noise on the torque is uniform within this, N m")
    avail_torque: float = param(1.0, doc="torque of the motor, N m")
    dt: float = param(0.2, low=1e-6, doc="seconds between steps")
    link_length_1: float = param(1.0, low=1e-3, doc="length of the upper link, m")
    link_mass_1: float = param(1.0, low=1e-3, doc="mass of the upper link, kg")
    link_mass_2: float = param(1.0, low=1e-3, doc="mass of the lower link, kg")
    link_com_pos_1: float = param(0.5, low=0.0, doc="from the upper link's joint to its centre of mass, m")
    link_com_pos_2: float = param(0.5, low=0.0, doc="from the lower link's joint to its centre of mass, m")
    link_moi: float = param(1.0, low=1e-3, doc="moment of inertia of each link, kg m²")
    max_vel_1: float = param(4 * math.pi, low=0.0, doc="largest angular velocity of the upper joint, rad/s")
    max_vel_2: float = param(9 * math.pi, low=0.0, doc="largest angular velocity of the lower joint, rad/s")
    low: float = param(-0.1, doc="angles and velocities at the beginning are at least this")
    high: float = param(0.1, doc="angles and velocities at the beginning are at most this")


class Acrobot(EnvDef):
    """Two links hang from a hinge, with a motor at the joint between them: the free end must swing above the line.

    **Actions.** `Discrete(3)`: the motor's torque is `avail_torque` times -1, 0 or 1.

    **Observation.** `Box(6)`, float32: cosine and sine of `theta1`, the upper link's angle (0 hangs down); cosine and
    sine of `theta2`, the lower link's angle relative to the upper one; the two angular velocities.

    **Movement.** One step of Runge and Kutta's fourth-order method of length `dt` through the equations in
    `acrobot.cuh`, the torque being constant; with `book_or_nips` "nips" the equation of the second acceleration has no
    centrifugal term. Then the angles are wrapped into [-pi, pi], the velocities clipped to ± `max_vel_1` and
    ± `max_vel_2`. `torque_noise_max` adds uniform noise to the torque. Gravity is 9.8.

    **Reward.** -1 for each step, 0 for the last one.

    **Start.** All four numbers of the state uniform in [`low`, `high`].

    **End.** `-cos(theta1) - cos(theta1 + theta2) > 1`: with links of length 1, the free end is more than 1 above the
    hinge. Time limit: 500 steps. An action out of range counts as 0.
    """

    id = "Acrobot-v1"
    Config = AcrobotConfig
    max_episode_steps = 500
    reference = "gymnasium Acrobot-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/classic_control/acrobot/",
        "Sutton 1996": "https://proceedings.neurips.cc/paper/1995/hash/8f1d43620bc6bb580df6e80b0dc05c48-Abstract.html",
    }
    reward_threshold = -100.0
    render_fps = 15

    def check(self, cfg: AcrobotConfig) -> None:
        if cfg.low > cfg.high:
            raise ValueError(f"Acrobot: low must not be above high: {cfg.low} > {cfg.high}.")
        for name in ("max_vel_1", "max_vel_2"):
            if max(-cfg.low, cfg.high) > getattr(cfg, name):
                raise ValueError(
                    f"Acrobot: velocities at the beginning, {cfg.low} to {cfg.high} (low to high), must lie within "
                    f"{name}={getattr(cfg, name)}."
                )

    def observation_space(self, cfg: AcrobotConfig, group: str) -> spaces.Box:
        high = np.array([1.0, 1.0, 1.0, 1.0, cfg.max_vel_1, cfg.max_vel_2], np.float32)
        return spaces.Box(-high, high, dtype=np.float32)

    def action_space(self, cfg: AcrobotConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def observation_names(self, cfg: AcrobotConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            (
                "cosine of theta1",
                "sine of theta1",
                "cosine of theta2",
                "sine of theta2",
                "angular velocity of theta1",
                "angular velocity of theta2",
            ),
            1,
        )

    def action_names(self, cfg: AcrobotConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("torque -1", "torque 0", "torque +1"), 1)

    def fields(self, cfg: AcrobotConfig) -> dict[str, Field]:
        return {
            "theta1": Field("float32", doc="angle of the upper link, rad, 0 hangs down"),
            "theta2": Field("float32", doc="angle of the lower link relative to the upper one, rad"),
            "dtheta1": Field("float32", doc="angular velocity of the upper joint, rad/s"),
            "dtheta2": Field("float32", doc="angular velocity of the lower joint, rad/s"),
        }

    def render(self, cfg: AcrobotConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        theta1, theta2 = float(state["theta1"]), float(state["theta2"])
        canvas.background("paper")
        canvas.view(-2.25, -2.25, 2.25, 2.25, hud=True)
        canvas.line(-2.25, 1, 2.25, 1, colour="green", width=2.5)

        def places(first: float, second: float) -> tuple[tuple[float, float], tuple[float, float]]:
            x, y = math.sin(first), -math.cos(first)
            return (x, y), (x + math.sin(first + second), y - math.cos(first + second))

        first, second = float(state["dtheta1"]), float(state["dtheta2"])
        past = [places(theta1 - s * first, theta2 - s * second)[1] for s in np.linspace(0.12, 0, 12)]
        canvas.trail(past, colour="orange", width=5)
        joint, tip = places(theta1, theta2)
        above = tip[1] > 1
        canvas.line(0, 0, *joint, colour="blue", width=15)
        canvas.line(*joint, *tip, colour="teal", width=12)
        canvas.circle(0, 0, 0.14, fill="ink")
        canvas.circle(*joint, 0.13, fill="yellow", outline="ink", width=2)
        canvas.circle(*tip, 0.08, fill="green" if above else "red")
        canvas.hud(left="Acrobot", right=f"step {int(state['elapsed_steps'])}")
