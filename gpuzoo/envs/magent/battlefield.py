"""MAgent's battlefield."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gpuzoo.core.definition import param
from gpuzoo.envs.magent.battle import BattleConfig, MAgentBattle, armies


@dataclasses.dataclass(frozen=True)
class BattlefieldConfig(BattleConfig):
    """The map, what agents see beside it, and rewards."""

    map_size: int = param(80, low=46, high=400, doc="side of the square map, its walls included")


class MAgentBattlefield(MAgentBattle):
    """Two small armies on a large map with walls; otherwise the rules of `MAgentBattle-v0`.

    Each army's square has room for 4 x 4 soldiers, three cells away from the middle of the map. Walls, two cells thick,
    run from top to bottom on both sides of the middle. Soldiers that would begin on a wall are left out, so a map of 80
    x 80 cells has 12 soldiers on each side.

    **Agents.** `red_0`, `red_1`, ... and `blue_0`, `blue_1`, ...

    **Actions.** `Discrete(21)`: 13 moves by at most 2 cells, and 8 attacks, as in `MAgentBattle-v0`.

    **Observation.** `Box(0, 2, (13, 13, 5))`, with `minimap_mode` and `extra_features` as in `MAgentBattle-v0`.

    **Reward.** As in `MAgentBattle-v0`: `step_reward`, `attack_penalty`, `attack_opponent_reward`, 5 for a kill, and
    `dead_penalty`.

    **State.** `Box(0, 2, (map_size, map_size, 5))`.

    **End.** An army is gone: termination for all. A soldier that falls terminates. Time limit: 1000 steps.

    The differences of `MAgentBattle-v0` hold here.
    """

    id = "MAgentBattlefield-v0"
    Config = BattlefieldConfig
    max_episode_steps = 1000
    reference = "magent2==0.3.4 battlefield_v5"
    interaction = "mixed"

    def inner_walls(self, cfg: BattleConfig) -> Iterator[tuple[int, int]]:
        size = cfg.map_size
        left = (*range(10, 45), *range(50, size // 2 + 25))
        right = (*range(size // 2 - 25, size - 50), *range(size - 45, size - 10))
        for rows, columns in ((left, (-5, -4)), (right, (4, 5))):
            yield from ((int(size / 2 + column), y) for column in columns for y in rows)

    def places(self, cfg: BattleConfig) -> dict[str, list[tuple[int, int]]]:
        walls = set(self.inner_walls(cfg))
        red, blue = ([at for at in army if at not in walls] for army in armies(cfg.map_size, 20))
        return {"red": red, "blue": blue}
