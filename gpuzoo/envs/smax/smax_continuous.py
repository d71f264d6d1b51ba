"""SMAX with continuous actions."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gpuzoo.envs.smax.battle import Battle, BattleConfig


class SMAXContinuous(Battle):
    """SMAX with continuous actions: units choose by chance whether to move or to attack, in any direction.

    Agents, scenarios, world steps, enemies, observation, state, reward and end are those of `SMAX-v0`.

    **Actions.** `Box(0, 1, (4,))`: the chance to look for a target, the chance to move, a length r, and a direction t.

    With the chance of the second number the unit moves in this step, by r times its velocity, at an angle of 2π t from
    the east, counterclockwise. Otherwise it attacks. With the chance of the first number its target is then the
    opponent nearest to the point at the distance r in that direction, dead or alive; otherwise it repeats its last
    action, if that was an attack, and does nothing else. An attack hits under the same conditions as in `SMAX-v0`.

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
