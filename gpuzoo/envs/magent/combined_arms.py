"""MAgent's combined arms."""

from __future__ import annotations

import dataclasses

from gpuzoo.core.definition import param
from gpuzoo.envs.magent.battle import GAP, RewardsConfig, side_of
from gpuzoo.envs.magent.gridworld import GridWorld, Unit


@dataclasses.dataclass(frozen=True)
class CombinedArmsConfig(RewardsConfig):
    """The map, which determines how many fight, what agents see beside it, and rewards."""

    map_size: int = param(45, low=16, high=400, doc="side of the square map, its walls included")


class MAgentCombinedArms(GridWorld):
    """Two armies of strong melee and mobile ranged soldiers, who can hurt comrades as well.

    The armies begin in squares as in `MAgentBattle-v0`, with alternating columns of melee and ranged soldiers. A map of
    45 x 45 cells has 45 melee and 36 ranged soldiers on each side. Zheng et al., "MAgent: A Many-Agent Reinforcement
    Learning Platform for Artificial Collective Intelligence" (2018), with the rules of MAgent2.

    | | health | moves | attacks |
    |---|---|---|---|
    | melee | 10 | up to 1 cell: 5 | up to 1 cell: 4 |
    | ranged | 3 | up to 2 cells: 13 | up to 2 cells: 12 |

    **Agents.** `redmelee_0`, ..., `redranged_0`, ..., `bluemelee_0`, ..., `blueranged_0`, ...

    **Actions.** Melee `Discrete(9)`, ranged `Discrete(25)`. First come the moves by (x, y), row by row, of which the
    one in the middle stays; then the attacks of the cells around, row by row. y grows downwards.

    **Attacks** come first, one after another, in a random order that each step draws. An attack takes 2 from the health
    of anybody in its cell, comrades included. A soldier whose health is below 0 falls: it leaves the map, and its own
    attack and move are dropped.

    **Recovery.** After the attacks, every soldier gains 0.1, up to its health at the start.

    **Moves** come last, in the order of the agents. A soldier stays if somebody or a wall is in the target cell. On a
    map with more than 9801 cells, agents near the borders of eight vertical bands move after all others.

    **Observation.** `Box(0, 2, (13, 13, 9))`: for each y and x around the agent, whether there is a wall, and for each
    group, its own first and the others in a circle, whether one is there, and its share of its health. Cells farther
    than 6 are zeros. `minimap_mode` and `extra_features` add numbers as in `MAgentBattle-v0`.

    **Reward.** `step_reward` in every step; `attack_penalty` for any attack; `attack_opponent_reward` for an attack
    that the opponent survives, and 5 for one that kills it. A soldier that falls gets `dead_penalty` in place of the
    first two.

    **State.** `Box(0, 2, (map_size, map_size, 9))`: for each x and y whether there is a wall, and for each group,
    whether one is there, and its share of its health. With `extra_features` also its number, last action (one-hot, 25
    numbers) and last reward.

    **End.** One of the four groups is gone: termination for all. A soldier that falls terminates. Time limit: 1000
    steps.

    The oddities and differences of `MAgentBattle-v0` hold here.
    """

    id = "MAgentCombinedArms-v0"
    Config = CombinedArmsConfig
    max_episode_steps = 1000
    reference = "magent2==0.3.4 combined_arms_v6"
    interaction = "mixed"
    attacks_own_group = True

    def units(self, cfg: CombinedArmsConfig) -> dict[str, Unit]:
        melee = Unit(hp=10.0, speed=1, view=6, attack=1, damage=2.0)
        ranged = Unit(hp=3.0, speed=2, view=6, attack=2, damage=2.0)
        colours = {"redmelee": "red", "redranged": "orange", "bluemelee": "blue", "blueranged": "teal"}
        return {
            name: dataclasses.replace(melee if "melee" in name else ranged, colour=colour)
            for name, colour in colours.items()
        }

    def places(self, cfg: CombinedArmsConfig) -> dict[str, list[tuple[int, int]]]:
        size, side = cfg.map_size, side_of(cfg.map_size**2 * 0.04)
        left, right, top = size // 2 - GAP - side, size // 2 + GAP, (size - side) // 2
        red = range(max(left, 1), left + side, 2)
        blue = range(right, min(right + side, size - 1), 2)[: len(red)]
        found: dict[str, list[tuple[int, int]]] = {}
        for name, columns in (("red", red), ("blue", blue)):
            for kind, own in (("melee", columns[0::2]), ("ranged", columns[1::2])):
                found[f"{name}{kind}"] = [(x, y) for x in own for y in range(top, min(top + side, size - 1), 2)]
        return found
