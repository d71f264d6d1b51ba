"""SMAX with continuous actions."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gpuzoo.envs.smax.battle import Battle, BattleConfig


class SMAXContinuous(Battle):
    """SMAX with continuous actions: units move or attack with given probabilities, in any direction.

    Agents, scenarios, world steps, enemies, observation, state, reward and end are those of `SMAX-v0`.

    **Actions.** `Box(0, 1, (4,))`: the probability to look for a target, the probability to move, a length r, and a
    direction t.

    With the second probability the unit moves in this step, by r times its velocity, at an angle of 2π t from the east,
    counterclockwise. Otherwise it attacks. With the first probability its target is the opponent nearest to the point
    at distance r in that direction, dead or alive. Otherwise it repeats its last action if that was an attack, and else
    does nothing. An attack hits under the same conditions as in `SMAX-v0`.

    **As in the original.** Its names for the first two numbers, `shoot_last_enemy` and `do_shoot`, say the opposite of
    what they do. The point is at most 1 away, though units see 8 to 10 far.
    """

    id = "SMAXContinuous-v0"
    Config = BattleConfig
    max_episode_steps = 101
    reference = "jaxmarl==0.2.0 (SMAX with action_type=continuous)"

    def action_space(self, cfg: BattleConfig, group: str) -> spaces.Box:
        return spaces.Box(0.0, 1.0, (4,), np.float32)

    def action_names(self, cfg: BattleConfig, group: str) -> dict[str, int]:
        names = ("chance to look for a target", "chance to move", "length", "direction / 2π, from the east")
        return dict.fromkeys(names, 1)
