"""MAgent's battle."""

from __future__ import annotations

import dataclasses
import math

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


def side_of(count: float) -> int:
    """Side of the square in which so many stand on every second cell."""
    return 2 * int(math.sqrt(count))


def armies(size: int, count: float) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(x, y) of the army on the left, and of that on the right, column by column."""
    side = side_of(count)
    top = (size - side) // 2
    starts = (size // 2 - GAP - side, size // 2 + GAP)
    red, blue = ([(x, y) for x in range(x0, x0 + side, 2) for y in range(top, top + side, 2)] for x0 in starts)
    return red, blue


class MAgentBattle(GridWorld):
    """Two armies on a map; soldiers move, or attack a neighbour, and the battle ends when one army is gone.

    The armies begin in two squares, three cells away from the middle of the map, with a free cell between neighbours. A
    map of 45 x 45 cells has 81 soldiers on each side. Zheng et al., "MAgent: A Many-Agent Reinforcement Learning
    Platform for Artificial Collective Intelligence" (2018), with the rules of MAgent2.

    **Agents.** `red_0`, `red_1`, ... and `blue_0`, `blue_1`, ...: as many as `map_size` makes room for, at most 1,024.

    **Actions.** `Discrete(21)`. The first 13 move by (x, y) to the cells not farther than 2, row by row: y = -2 is
    first, and the seventh stays. The other 8 attack the cells around, row by row. y grows downwards.

    **Attacks** come first, one after another, in a random order that each step draws uniformly. An attack takes 2 from
    the health of an opponent in its cell; soldiers begin with 10. A soldier whose health is below 0 falls: it leaves
    the map, and its own attack and move are dropped. Comrades are not hurt.

    **Recovery.** After the attacks, every soldier gains 0.1, up to 10.

    **Moves** come last, in the order of the agents, red first. A soldier stays if somebody or a wall is in the target
    cell; cells in between do not matter. On a map with more than 9801 cells, agents near the borders of eight vertical
    bands move after all others.

    **Observation.** `Box(0, 2, (13, 13, 5))`: for each y and x around the agent, whether there is a wall; a comrade (or
    the agent itself), and its health divided by 10; an opponent, and its health divided by 10. Cells farther than 6 are
    zeros. With `minimap_mode`, each group has a third number: the share of the group in one part of the map, for 13 x
    13 parts of the whole map, plus 1 in the agent's part; and every cell has the agent's x and y divided by `map_size`.
    With `extra_features`, every cell also has the agent's number in ten binary digits, its last action, one-hot, and
    the reward of the step before the last. An agent that fell sees the cells around its place once more; after that its
    numbers are zeros.

    **Reward.** `step_reward` in every step; `attack_penalty` for any attack; `attack_opponent_reward` for an attack
    that the opponent survives, and 5 for one that kills it. A soldier that falls gets `dead_penalty` in place of all
    that, except for `attack_opponent_reward`.

    **State.** `Box(0, 2, (map_size, map_size, 5))`: for each x and y whether there is a wall, a red soldier, its health
    divided by 10, a blue one, its health. With `extra_features` also its number, last action and last reward.

    **End.** An army is gone: termination for all. A soldier that falls terminates. Time limit: 1000 steps.

    Oddities of the original that are kept: a soldier with a health of exactly 0 does not fall; the reward among the
    features is older than the observation. Differences: the original draws the order of attacks with its own generator,
    and with several threads it depends on them. In the original's PettingZoo interface, all groups get the actions of
    the first group in the first step of an episode; here each gets its own.
    """

    id = "MAgentBattle-v0"
    Config = BattleConfig
    max_episode_steps = 1000
    reference = "magent2==0.3.4 battle_v4"
    interaction = "mixed"

    def units(self, cfg: BattleConfig) -> dict[str, Unit]:
        soldier = Unit(hp=10.0, speed=2, view=6, attack=1.5, damage=2.0, kill_reward=KILL_REWARD)
        return {"red": soldier, "blue": dataclasses.replace(soldier, colour="blue")}

    def places(self, cfg: BattleConfig) -> dict[str, list[tuple[int, int]]]:
        inside = range(1, cfg.map_size - 1)
        both = armies(cfg.map_size, cfg.map_size**2 * 0.04)
        red, blue = ([(x, y) for x, y in army if x in inside and y in inside] for army in both)
        return {"red": red, "blue": blue[: len(red)]}
