"""MAgent's tiger and deer."""

from __future__ import annotations

import dataclasses

from gpuzoo.core.definition import param
from gpuzoo.envs.magent.gridworld import GridWorld, GridWorldConfig, Unit


@dataclasses.dataclass(frozen=True)
class TigerDeerConfig(GridWorldConfig):
    """The map, which determines who is on it, what agents see beside it, hunger and rewards."""

    map_size: int = param(45, low=10, high=400, doc="side of the square map, its walls included")
    tiger_step_recover: float = param(-0.1, doc="health that a tiger gains in each step")
    deer_attacked: float = param(-0.1, doc="reward of a deer for every attack that it survives")


class MAgentTigerDeer(GridWorld):
    """Tigers hunt deer or starve; they are rewarded for attacking together.

    A map of 45 x 45 cells has 101 deer, 20 tigers and 81 cells of walls, at places that each episode draws. Zheng et
    al., "MAgent: A Many-Agent Reinforcement Learning Platform for Artificial Collective Intelligence" (2018), with the
    rules of MAgent2.

    **Agents.** `deer_0`, ... (5 % of the number of cells) and `tiger_0`, ... (1 %).

    **Actions.** Deer `Discrete(5)`: up, left, stay, right, down. Tigers `Discrete(9)`: the same, and attacks of the
    cells above, left, right and below. y grows downwards.

    **Attacks** come first, one after another, in a random order that each step draws. An attack takes 1 from the health
    of the deer in its cell; deer begin with 5. A deer whose health is below 0 falls, and its killer gains 8. Tigers do
    not hurt each other.

    **Recovery.** After the attacks, deer gain 0.2, up to 5. Tigers gain `tiger_step_recover`, up to 10, their health at
    the start. A tiger whose health is below 0 falls.

    **Moves** come last, deer first, in the order of the agents. An animal stays if somebody or a wall is in the target
    cell. On a map with more than 9801 cells, agents near the borders of eight vertical bands move after all others.

    **Observation.** Deer `Box(0, 2, (3, 3, 5))`, tigers `Box(0, 2, (9, 9, 5))`: for each y and x around the agent,
    whether there is a wall; one of its group, and its share of its health; one of the other group, and its share. Cells
    farther than 1, or 4 for tigers, are zeros. `minimap_mode` and `extra_features` add numbers as in `MAgentBattle-v0`.

    **Reward.** If n tigers attack a deer in the same step and it survives these attacks, each gets n - 1, and the deer
    n times `deer_attacked`. A deer that falls gets -1 more. Its killer gets nothing and does not count among the n.

    **State.** `Box(0, 2, (map_size, map_size, 5))`: for each x and y whether there is a wall, a deer, its health
    divided by 5, a tiger, its health divided by 10. With `extra_features` also its number, last action and last reward.

    **End.** All deer or all tigers are gone: termination for all. An animal that falls is terminated. Time limit: 300
    steps.

    MAgent2's page says that deer gain 0.1; its code, and this game, have 0.2. An animal with a health of exactly 0 does
    not fall. Differences: MAgent2's `state()` shows the walls of its first map in all episodes. Its own generator draws
    the order of attacks. In its PettingZoo interface, all groups get the actions of the first group in the first step
    of an episode.
    """

    id = "MAgentTigerDeer-v0"
    Config = TigerDeerConfig
    max_episode_steps = 300
    reference = "magent2==0.3.4 tiger_deer_v4"
    interaction = "mixed"

    def units(self, cfg: TigerDeerConfig) -> dict[str, Unit]:
        deer = Unit(hp=5.0, speed=1, view=1, attack=0, supply=8.0, colour="brown")
        return {"deer": deer, "tiger": Unit(hp=10.0, speed=1, view=4, attack=1, damage=1.0, colour="orange")}

    def places(self, cfg: TigerDeerConfig) -> None:
        return None

    def counts(self, cfg: TigerDeerConfig) -> dict[str, int]:
        cells = cfg.map_size**2
        return {"deer": int(cells * 0.05), "tiger": int(cells * 0.01), "wall": int(cells * 0.04)}
