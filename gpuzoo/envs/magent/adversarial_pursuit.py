"""MAgent's adversarial pursuit."""

from __future__ import annotations

import dataclasses

from gpuzoo.core.definition import param
from gpuzoo.envs.magent.gridworld import GridWorld, GridWorldConfig, Unit


@dataclasses.dataclass(frozen=True)
class AdversarialPursuitConfig(GridWorldConfig):
    """The map, which determines who is on it, what agents see beside it, and rewards."""

    map_size: int = param(45, low=9, high=400, doc="side of the square map, its walls included")
    tag_penalty: float = param(-0.2, doc="reward of a predator for every attempt to tag")


class MAgentAdversarialPursuit(GridWorld):
    """Large, slow predators tag small, fast prey between obstacles; tagged prey is not hurt.

    A map of 45 x 45 cells has 25 predators of 2 x 2 cells, 50 prey, and 60 cells of walls, at places that each episode
    draws. Zheng et al., "MAgent: A Many-Agent Reinforcement Learning Platform for Artificial Collective Intelligence"
    (2018), with the rules of MAgent2.

    **Agents.** `predator_0`, ... (1.25 % of the number of cells) and `prey_0`, ... (2.5 %).

    **Actions.** Predators `Discrete(13)`: five moves by (x, y) of at most one cell, row by row, of which the third
    stays; then tags of the eight cells that share a side with the predator, row by row. Prey `Discrete(9)`: moves to
    the cells around, row by row, of which the fifth stays. y grows downwards.

    **Tags** come first. **Moves** come last, predators first, in the order of the agents. An agent stays if somebody
    else or a wall is in the way. On a map with more than 9801 cells, agents near the borders of eight vertical bands
    move after all others.

    **Observation.** Predators `Box(0, 2, (10, 10, 5))`, prey `Box(0, 2, (9, 9, 5))`: for each y and x around the
    agent, whether there is a wall; one of its group, and its health, which is 1; one of the other group, and its
    health. Cells farther than 5, or 4 for prey, are zeros. `minimap_mode` and `extra_features` add numbers as in
    `MAgentBattle-v0`.

    **Reward.** A predator gets `tag_penalty` for any attempt to tag, and 1 more if prey is there. Prey gets -1 for each
    tag.

    **State.** `Box(0, 2, (map_size, map_size, 5))`: for each x and y whether there is a wall, the first cell of a
    predator, its health, prey, its health. With `extra_features` also its number, last action and last reward.

    **End.** Nobody falls, so there is only a time limit: 500 steps.

    Differences from MAgent2: its `state()` shows the walls of its first map in all episodes. It accepts maps of 7 or 8
    cells, which have no predators. In its PettingZoo interface, all groups get the actions of the first group in the
    first step of an episode.
    """

    id = "MAgentAdversarialPursuit-v0"
    Config = AdversarialPursuitConfig
    max_episode_steps = 500
    reference = "magent2==0.3.4 adversarial_pursuit_v4"
    interaction = "mixed"

    def units(self, cfg: AdversarialPursuitConfig) -> dict[str, Unit]:
        predator = Unit(hp=1.0, speed=1, view=5, attack=2, side=2)
        return {"predator": predator, "prey": Unit(hp=1.0, speed=1.5, view=4, attack=0, colour="blue")}

    def places(self, cfg: AdversarialPursuitConfig) -> None:
        return None

    def counts(self, cfg: AdversarialPursuitConfig) -> dict[str, int]:
        cells = cfg.map_size**2
        return {"predator": int(cells * 0.0125), "prey": int(cells * 0.025), "wall": int(cells * 0.03)}
