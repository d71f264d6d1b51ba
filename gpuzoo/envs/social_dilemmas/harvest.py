"""Harvest."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.social_dilemmas.grid import APPLE, OTHERS, Grid, GridConfig

#: the original's map
MAP = """
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@ P   P      A    P AAAAA    P  A P  @
@  P     A P AA    P    AAA    A  A  @
@     A AAA  AAA    A    A AA AAAA   @
@ A  AAA A    A  A AAA  A  A   A A   @
@AAA  A A    A  AAA A  AAA        A P@
@ A A  AAA  AAA  A A    A AA   AA AA @
@  A A  AAA    A A  AAA    AAA  A    @
@   AAA  A      AAA  A    AAAA       @
@ P  A       A  A AAA    A  A      P @
@A  AAA  A  A  AAA A    AAAA     P   @
@    A A   AAA  A A      A AA   A  P @
@     AAA   A A  AAA      AA   AAA P @
@ A    A     AAA  A  P          A    @
@       P     A         P  P P     P @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
"""


@dataclasses.dataclass(frozen=True)
class HarvestConfig(GridConfig):
    """The map, how apples grow, and what agents, beams and rewards are like."""

    ascii_map: str = param(MAP, doc="lines of the map: @ wall, A apple, P where an agent may begin")
    regrowth_1: float = param(0.005, low=0.0, high=1.0, doc="chance that an apple grows beside one other")
    regrowth_2: float = param(0.02, low=0.0, high=1.0, doc="beside two others")
    regrowth_3: float = param(0.05, low=0.0, high=1.0, doc="beside three others or more")


class Harvest(Grid):
    """Apples grow only where apples are left: a tragedy of the commons.

    Agents pick apples on a map of 38 x 16 cells. The more apples there are around a place, the faster a new one grows
    there, and without any none grows. So agents that take all they can ruin the harvest for everybody. Perolat et al.
    (2017) and Hughes et al., "Inequity aversion improves cooperation in intertemporal social dilemmas" (2018), with the
    rules of Vinitsky et al.'s `sequential_social_dilemma_games`.

    **Start.** Apples at each `A` of `ascii_map`. Agents at different `P`, drawn at random, as is where they look.

    **Actions.** `Discrete(8)`: move left, right, ahead, back (as seen by the agent), stay, turn right, turn left, and
    fine. No move goes into a wall or off the map.

    **Moves** happen at the same time. Of several who want the same cell, one drawn at random gets it. Nobody gets it if
    the agent there stays, turns, uses a beam, or wants to go to the place of one of them. Two cannot swap places, but
    three or more may go round. Whoever follows an agent that leaves takes its place.

    **Apples.** An agent takes the apple of its cell.

    **Beams.** A fining beam lights up `beam_length` cells ahead of the agent, and as many in the two lines beside that,
    which begin at the agent's left and right. In each line it ends before a wall, and with the first agent that it
    hits. An agent that is hit loses `fine`, for each line and beam. A beam costs `fire_cost`.

    **Growth.** At the end of a step an apple grows with chance 0, `regrowth_1`, `regrowth_2` or `regrowth_3` at each
    free `A` without an agent, if there are 0, 1, 2 or more apples in the eight cells around it.

    **Observation.** `Box(0, 1, (15, 15, 8), int8)`: the cells that are at most `view_len` away. For each row, column
    and plane whether there is a wall, an apple, the outside of the map, a fining beam, or another agent that looks the
    same way as the agent, to its right, back, to its left. The view turns with the agent: whoever looks up or down on
    the map looks upwards in its view. Whoever looks left or right looks downwards in it, which is probably a mistake of
    the original; with `upright_views` all look upwards.

    **Reward.** 1 for an apple, less costs and fines. With `use_collective_reward` everybody gets the sum. With
    `inequity_averse_reward` "hughes", alpha / (n - 1) times what each other agent has more, and beta / (n - 1) times
    what each has less, is taken off it, where an agent has e = `inequity_decay` e + reward, summed over its steps. With
    "original" it is rewards of this step that are compared, and the second term is added instead.

    **End.** None but the time limit, 1000 steps.

    Oddities of the original, which are kept: whoever gets a contested cell goes there at once, while the agent that was
    there has yet to leave; if that agent then cannot, both are on one cell. Contested cells are settled row by row. Of
    agents on one cell the last one is seen and hit, and the first one takes the apple. Differences: the original's
    observations are RGB pictures, in which beams do not appear, though they do in what it renders; it has at most nine
    agents, and no time limit. It computes rewards in float64. Its `inequity_averse_reward=True` is "original".
    """

    id = "Harvest-v0"
    Config = HarvestConfig
    reference = "sequential_social_dilemma_games harvest"
    letters: ClassVar = {**Grid.letters, "A": APPLE}
    orchard = "A"
    actions = 8
    planes: ClassVar = ("wall", "apple", "outside of the map", "fining beam", *OTHERS)
    benchmarks = {"10 agents": {"num_agents": 10}}

    def constants(self, cfg: HarvestConfig) -> dict[str, int]:
        return {**super().constants(cfg), "APPLES": len(self.places(cfg, "A"))}

    def tables(self, cfg: HarvestConfig) -> dict[str, NDArray[Any]]:
        return {**super().tables(cfg), "apple_cell": np.array(self.places(cfg, "A") or [0], np.int32)}

    def fields(self, cfg: HarvestConfig) -> dict[str, Field]:
        return {**super().fields(cfg), "ripe": Field("bool", ("APPLES",), "whether an apple grows", scratch=True)}
