"""SMAX."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from gpuzoo.envs.smax.battle import MOVES, Battle, BattleConfig


class SMAX(Battle):
    """Todo."""

    id = "SMAX-v0"
    Config = BattleConfig
    max_episode_steps = 101
    action_mask = True
    invalid_action = 4
    reference = "jaxmarl 0.2.0 HeuristicEnemySMAX"

    def action_space(self, cfg: BattleConfig, group: str) -> spaces.Discrete:
        allies, enemies = self._both(cfg)
        return spaces.Discrete(MOVES + len(enemies if group == "ally" else allies))

    def action_names(self, cfg: BattleConfig, group: str) -> dict[str, int]:
        allies, enemies = self._both(cfg)
        opponents = [f"enemy_{k}" for k in range(len(enemies))]
        if group == "enemy":
            opponents = [f"ally_{k}" for k in reversed(range(len(allies)))]
        return dict.fromkeys(["north (y + 1)", "east", "south", "west", "stop", *(f"attack {o}" for o in opponents)], 1)
