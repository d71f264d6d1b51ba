"""MAgent's battle."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from gpuzoo.core.definition import param
from gpuzoo.envs.magent.gridworld import GridWorld, GridWorldConfig, Unit

KILL_REWARD = 5.0
GAP = 3


@dataclasses.dataclass(frozen=True)
class RewardsConfig(GridWorldConfig):
    """The map, what agents see beside it, and rewards of a fight."""

    step_reward: float = param(-0.005, doc="reward of every step")
    dead_penalty: float = param(-0.1, doc="reward of the step in which an agent falls, in place of all before its fall")
    attack_penalty: float = param(-0.1, doc="added for every attack")
    attack_opponent_reward: float = param(0.2, doc="added for an attack that an opponent survives")


@dataclasses.dataclass(frozen=True)
class BattleConfig(RewardsConfig):
    """The map, which determines how many fight, what agents see beside it, and rewards."""

    map_size: int = param(45, low=12, high=400, doc="side of the square map, its walls included")


def columns(left: int, count: int, size: int) -> list[list[tuple[int, int]]]:
    """(x, y) of a square of agents, column by column, with a free cell between neighbours."""
    side = 2 * int(math.sqrt(count))
    top = (size - side) // 2
    return [[(x, y) for y in range(top, top + side, 2)] for x in range(left, left + side, 2)]


def armies(size: int, count: float) -> tuple[list[list[tuple[int, int]]], list[list[tuple[int, int]]]]:
    """The columns of the army on the left, and of that on the right."""
    side = 2 * int(math.sqrt(count))
    return columns(size // 2 - GAP - side, count, size), columns(size // 2 + GAP, count, size)


class MAgentBattle(GridWorld):
    """TODO
    """

    id = "MAgentBattle-v0"
    Config = BattleConfig
    max_episode_steps = 1000
    reference = "magent2==0.3.4 battle_v4"
    interaction = "mixed"
    title = "Battle"

    def units(self, cfg: BattleConfig) -> dict[str, Unit]:
        soldier = Unit(hp=10.0, speed=2, view=6, attack=1.5, damage=2.0, kill_reward=KILL_REWARD)
        return {"red": soldier, "blue": dataclasses.replace(soldier, colour="blue")}

    def places(self, cfg: BattleConfig) -> dict[str, list[tuple[int, int]]]:
        red, blue = (
            [(x, y) for column in army for x, y in column if 0 < min(x, y) <= max(x, y) < cfg.map_size - 1]
            for army in armies(cfg.map_size, cfg.map_size**2 * 0.04)
        )
        return {"red": red, "blue": blue[: len(red)]}
