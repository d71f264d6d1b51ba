"""MAgent's gather."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gpuzoo.core.definition import param
from gpuzoo.envs.magent.gridworld import GridWorld, GridWorldConfig, Unit

#: side of the field of food in the middle
FIELD = 53


@dataclasses.dataclass(frozen=True)
class GatherConfig(GridWorldConfig):
    """The map, which determines who is on it, what agents see beside it, and rewards."""

    map_size: int = param(200, low=60, high=400, doc="side of the square map, its walls included")
    step_reward: float = param(-0.01, doc="reward of every step")
    attack_penalty: float = param(-0.1, doc="added for every attack")
    dead_penalty: float = param(-1.0, doc="reward of the step in which an agent falls, in place of all before its fall")
    attack_food_reward: float = param(0.5, doc="added for an attack that leaves some of the food")


def square(size: int, part: float, less: int, gap: int) -> Iterator[tuple[int, int]]:
    """(x, y) of every gap-th cell of the sides of a square around the middle of the map."""
    half = int(size * part - less) // 2
    middle = size // 2
    line = range(middle - half, middle + half + 1, gap)
    for x in line:
        yield from ((x, middle - half), (x, middle + half))
    for y in line:
        yield from ((middle - half, y), (middle + half, y))


class MAgentGather(GridWorld):
    """Hundreds of omnivores on a map with food, which is scarce enough that they fight for it.

    Omnivores begin on three squares around the food. A map of 200 x 200 cells has 495 of them. Zheng et al., "MAgent: A
    Many-Agent Reinforcement Learning Platform for Artificial Collective Intelligence" (2018), with the rules of
    MAgent2.

    **Agents.** `omnivore_0`, `omnivore_1`, ...

    **Actions.** `Discrete(33)`. The first 29 move by (x, y) to the cells not farther than 3, row by row; the one in
    the middle stays. The other 4 attack the neighbours above, left, right and below.

    **Attacks** come first, one after another, in a random order that each step draws. An attack takes 6 from the health
    of its target: food has 25, omnivores have 3. A target with a health below 0 is gone. So one attack kills an
    omnivore, and five attacks eat a piece of food.

    **Moves** come last, in the order of the agents. An omnivore stays if an omnivore, food or a wall is in the target
    cell. On a map with more than 9801 cells, agents near the borders of eight vertical bands move after all others.

    **Observation.** `Box(0, 2, (15, 15, 5))`: for each y and x around the agent, whether there is a wall; an omnivore,
    and its health divided by 3; food, and its health divided by 25. Cells farther than 7 are zeros. `minimap_mode` and
    `extra_features` add numbers as in `MAgentBattle-v0`, but for the agent's number.

    **Reward.** `step_reward` in every step; `attack_penalty` for any attack; `attack_food_reward` for an attack that
    leaves some of the food, and 5 for the one that finishes it. An omnivore that falls gets `dead_penalty` in place of
    the first two and of the 5.

    **State.** `Box(0, 2, (map_size, map_size, 5))`: for each x and y whether there is a wall, food, its health divided
    by 25, an omnivore, its health divided by 3. With `extra_features`, an omnivore's last action (one-hot) and last
    reward begin at the fourth number, so they replace the omnivore's presence and health, as in MAgent2.

    **End.** All food or all omnivores are gone: termination for all. An omnivore that falls terminates. Time limit: 500
    steps.

    The oddities and differences of `MAgentBattle-v0` hold here.
    """

    id = "MAgentGather-v0"
    Config = GatherConfig
    max_episode_steps = 500
    reference = "magent2==0.3.4 gather_v5"
    interaction = "competitive"
    attacks_own_group = True
    embedding = 0
    passive = ("food",)

    def units(self, cfg: GatherConfig) -> dict[str, Unit]:
        food = Unit(hp=25.0, speed=0, view=1, attack=0, kill_reward=5.0, colour="green")
        return {"food": food, "omnivore": Unit(hp=3.0, speed=3, view=7, attack=1, damage=6.0)}

    def places(self, cfg: GatherConfig) -> dict[str, list[tuple[int, int]]]:
        size = cfg.map_size
        first = size // 2 - FIELD // 2
        rings = [(0.65, 0, 10), (0.6, 0, 10), (0.55, 0, 10), (0.5, 0, 4), (0.45, 0, 3), (0.4, 0, 1)]
        rings += [(0.3, less, 1) for less in (0, 2, 4, 6)]
        field = [(first + j, first + i) for i in range(FIELD) for j in range(FIELD) if i % 4 > 1 and j % 4 > 1]
        omnivores = [at for ring in ((0.9, 0, 3), (0.8, 0, 4), (0.7, 0, 6)) for at in square(size, *ring)]
        food = [at for ring in rings for at in square(size, *ring)] + field
        omnivores = list(dict.fromkeys(omnivores))
        taken = set(omnivores)
        return {"omnivore": omnivores, "food": [at for at in dict.fromkeys(food) if at not in taken]}
