"""SMAX with continuous actions."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gpuzoo.envs.smax.battle import Battle, BattleConfig


class SMAXContinuous(Battle):
    """Todo."""

    id = "SMAXContinuous-v0"
    Config = BattleConfig
    max_episode_steps = 101
    reference = "jaxmarl 0.2.0 HeuristicEnemySMAX with continuous actions"

    def action_space(self, cfg: BattleConfig, group: str) -> spaces.Box:
        return spaces.Box(0.0, 1.0, (4,), np.float32)

    def action_names(self, cfg: BattleConfig, group: str) -> dict[str, int]:
        names = ("chance of a new target", "chance of a move, not an attack", "length", "direction / 2π, from east")
        return dict.fromkeys(names, 1)
