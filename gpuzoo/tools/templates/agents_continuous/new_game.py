"""NewGame."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo import Canvas, Config, EnvDef, Field, param, register


@dataclasses.dataclass(frozen=True)
class NewGameConfig(Config):
    """Integers are compiled into the kernel; floats can be changed at any time and can differ from env to env."""

    num_drones: int = param(4, low=2, high=64, doc="number of drones")
    thrust: float = param(0.005, low=0.0, doc="speed from a full action, per step")
    drag: float = param(0.1, low=0.0, high=1.0, doc="share of the speed that the air takes, per step")


@register
class NewGame(EnvDef):
    """Drones fly close to a beacon, but must not touch each other.

    Walls at -1 and 1 along x and y stop the drones.

    **Start.** The drones are at rest on a circle around the middle. The beacon is anywhere within 0.5 of the middle,
    along x and along y.

    **Actions.** `Box(2)` in [-1, 1]: thrust along x and y.

    **Observation.** `Box(8)`, float32: own position and velocity, the way to the beacon, the way to the nearest other
    drone in the game (0 if there is none).

    **Reward.** 0.1 at the beacon, less with the distance to it, 0 from a distance of 1 on; -1 for a crash.

    **End.** Drones less than 0.04 apart crash and leave the game. Time limit: 200 steps.
    """

    id = "NewGame-v0"
    Config = NewGameConfig
    max_episode_steps = 200
    interaction = "mixed"
    exempt: ClassVar[Mapping[str, str]] = {"reference": "new: not compared with an independent implementation yet"}

    def agents(self, cfg: NewGameConfig) -> dict[str, int]:
        """Groups of agents, in order, and their sizes."""
        return {"drone": cfg.num_drones}

    def observation_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Of one agent: position, velocity, way to the beacon, way to the nearest other."""
        return spaces.Box(-np.inf, np.inf, (8,), np.float32)

    def action_space(self, cfg: NewGameConfig, group: str) -> spaces.Box:
        """Of one agent: thrust."""
        return spaces.Box(-1.0, 1.0, (2,), np.float32)

    def observation_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the numbers of an observation are, for the documentation: name -> how many."""
        return {"position": 2, "velocity": 2, "way to the beacon": 2, "way to the nearest other": 2}

    def action_names(self, cfg: NewGameConfig, group: str) -> dict[str, int]:
        """What the actions are."""
        return {"thrust along x": 1, "thrust along y": 1}

    def fields(self, cfg: NewGameConfig) -> dict[str, Field]:
        """The state of one env."""
        return {
            "x": Field("float32", ("drones",), "position"),
            "y": Field("float32", ("drones",), "position"),
            "vx": Field("float32", ("drones",), "velocity, per step"),
            "vy": Field("float32", ("drones",), "velocity, per step"),
            "beacon_x": Field("float32", doc="the beacon's position"),
            "beacon_y": Field("float32", doc="the beacon's position"),
        }

    def render(self, cfg: NewGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        """Draws one env."""
        canvas.background("paper")
        canvas.view(-1.05, -1.05, 1.05, 1.05, hud=True)
        canvas.rect(-1.02, -1.02, 1.02, 1.02, fill="white", outline="line")
        canvas.circle(float(state["beacon_x"]), float(state["beacon_y"]), 0.06, fill="yellow")
        colours = ["blue" if alive else "grey" for alive in state["alive"]]
        canvas.circles(np.stack([state["x"], state["y"]], 1), 0.02, colours)
        flying = int(np.count_nonzero(state["alive"]))
        canvas.hud(left=f"NewGame, {flying} flying", right=f"step {int(state['elapsed_steps'])}")
