"""Cleanup."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.social_dilemmas.grid import EMPTY, OTHERS, RIVER, STREAM, WASTE, Grid, GridConfig

#: the original's map
MAP = """
@@@@@@@@@@@@@@@@@@
@RRRRRR     BBBBB@
@HHHHHH      BBBB@
@RRRRRR     BBBBB@
@RRRRR  P    BBBB@
@RRRRR    P BBBBB@
@HHHHH       BBBB@
@RRRRR      BBBBB@
@HHHHHHSSSSSSBBBB@
@HHHHHHSSSSSSBBBB@
@RRRRR   P P BBBB@
@HHHHH   P  BBBBB@
@RRRRRR    P BBBB@
@HHHHHH P   BBBBB@
@RRRRR       BBBB@
@HHHH    P  BBBBB@
@RRRRR       BBBB@
@HHHHH  P P BBBBB@
@RRRRR       BBBB@
@HHHH       BBBBB@
@RRRRR       BBBB@
@HHHHH      BBBBB@
@RRRRR       BBBB@
@HHHH       BBBBB@
@@@@@@@@@@@@@@@@@@
"""


@dataclasses.dataclass(frozen=True)
class CleanupConfig(GridConfig):
    """The map, how apples and waste grow, and what agents, beams and rewards are like."""

    ascii_map: str = param(
        MAP, doc="lines of the map: @ wall, B apple tree, H waste, R river, S stream, P where an agent may begin"
    )
    threshold_depletion: float = param(0.4, low=0.0, doc="part of the river with waste from which on nothing grows")
    threshold_restoration: float = param(0.0, low=0.0, doc="part of the river with waste up to which all apples grow")
    waste_spawn_probability: float = param(0.5, low=0.0, high=1.0, doc="chance of waste in a clean cell, in turn")
    apple_respawn_probability: float = param(0.05, low=0.0, high=1.0, doc="chance that an apple grows, at most")


class Cleanup(Grid):
    """Apples grow only while somebody cleans the river: a public good.

    Agents pick apples at one side of a map of 18 x 25 cells. At the other side is a river, which fills with waste. The
    more waste there is, the slower apples grow. Whoever cleans the river gets nothing for it. Hughes et al., "Inequity
    aversion improves cooperation in intertemporal social dilemmas" (2018), with the rules of Vinitsky et al.'s
    `sequential_social_dilemma_games`.

    **Start.** Waste at each `H` of `ascii_map`, water at each `R` (river) and `S` (stream), no apples but those that
    grow at once. Agents at different `P`, drawn at random, as is where they look.

    **Actions.** `Discrete(9)`: those of Harvest, and clean. Agents may walk through water and waste.

    **Moves, apples and fining beams** are those of Harvest.

    **Cleaning beams** have the same form, cost nothing, and hurt nobody. They turn the waste of the cells that they
    light up into river. In each line they end before a wall, and with the first agent or waste. Agents use their beams
    one after another, in an order drawn at random, in which all orders are equally likely.

    **Growth.** At the end of a step, let d be the part of all `H` and `R` cells that hold waste. If d is at least
    `threshold_depletion`, nothing grows. Otherwise an apple grows at each free `B` without an agent, with chance
    `apple_respawn_probability`, times (depletion - d) / (depletion - restoration) if d is greater than
    `threshold_restoration`. Clean cells of the river are then tried in a random order, each with chance
    `waste_spawn_probability`, until one fills with waste.

    **Observation.** `Box(0, 1, (15, 15, 12), int8)`: the planes are wall, apple, waste, river; another agent that looks
    the same way as the agent, to its right, back, to its left; stream, the outside of the map, a fining beam, a
    cleaning beam. The rest is as in Harvest.

    **Reward, end, oddities and differences** are those of Harvest. The original's pictures show river and stream in the
    same colour. It computes the share of waste in float64.
    """

    id = "Cleanup-v0"
    Config = CleanupConfig
    reference = "sequential_social_dilemma_games cleanup"
    letters: ClassVar = {**Grid.letters, "B": EMPTY, "H": WASTE, "R": RIVER, "S": STREAM}
    orchard = "B"
    actions = 9
    planes: ClassVar = (
        "wall", "apple", "waste", "river", *OTHERS, "stream", "outside of the map", "fining beam", "cleaning beam",
    )  # fmt: skip
    benchmarks = {"10 agents": {"num_agents": 10}}

    def check(self, cfg: CleanupConfig) -> None:
        super().check(cfg)
        if cfg.threshold_depletion <= cfg.threshold_restoration:
            raise ValueError(f"{self.id}: threshold_depletion must be greater than threshold_restoration.")

    def constants(self, cfg: CleanupConfig) -> dict[str, int]:
        sizes = {"APPLES": len(self.places(cfg, "B")), "WASTES": len(self.places(cfg, "HR"))}
        return {**super().constants(cfg), **sizes}

    def fields(self, cfg: CleanupConfig) -> dict[str, Field]:
        return {**super().fields(cfg), "ripe": Field("bool", ("APPLES",), "whether an apple may grow", scratch=True)}

    def tables(self, cfg: CleanupConfig) -> dict[str, NDArray[Any]]:
        cells = {"apple_cell": self.places(cfg, "B"), "waste_cell": self.places(cfg, "HR")}
        own = {name: np.array(found or [0], np.int32) for name, found in cells.items()}
        return {**super().tables(cfg), **own}
