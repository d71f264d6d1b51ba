"""Settings of a search: how it selects actions."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

Rule = Literal["puct", "gumbel", "uct"]
RULES = ("puct", "gumbel", "uct")  #: the enum Rule of tree.cuh


@dataclasses.dataclass(frozen=True)
class Settings:
    """How actions are selected.

    Attributes:
        pb_c_init, pb_c_base: weights of PUCT's exploration (Schrittwieser et al. 2020, appendix B).
        value_range: PUCT's values are scaled from this range to [0, 1]; None: from that of the node and its children.
        value_scale, maxvisit_init: weights of the completed values with ``rule="gumbel"`` (Danihelka et al. 2022).
        considered: with ``rule="gumbel"`` at most so many of the root's actions are tried.
        gumbel_scale: weight of the root's Gumbel noise; 0 for the best play, 1 for training.
        dirichlet_fraction, dirichlet_alpha: weight and concentration of the noise in PUCT's priors at the root; a
            fraction of 0 for the best play, 0.25 for training (Silver et al. 2017).
        exploration: the constant of UCT's bound.
    """

    pb_c_init: float = 1.25
    pb_c_base: float = 19652.0
    value_range: tuple[float, float] | None = None
    value_scale: float = 0.1
    maxvisit_init: float = 50.0
    considered: int = 16
    gumbel_scale: float = 1.0
    dirichlet_fraction: float = 0.0
    dirichlet_alpha: float = 0.3
    exploration: float = math.sqrt(2)

    def __post_init__(self) -> None:
        if self.value_range is not None and not self.value_range[0] < self.value_range[1]:
            raise ValueError(f"value_range must be (lowest, highest) or None, not {self.value_range}.")
        if self.considered < 1:
            raise ValueError(f"considered must be at least 1, not {self.considered}.")
        if not 0 <= self.dirichlet_fraction <= 1 or self.dirichlet_alpha <= 0:
            raise ValueError("dirichlet_fraction must be from 0 to 1, and dirichlet_alpha positive.")

    def numbers(self) -> list[float]:
        """The struct Settings of tree.cuh."""
        lowest, highest = self.value_range or (0.0, 0.0)
        first = [self.pb_c_init, self.pb_c_base, lowest, highest]
        return [*first, self.value_scale, self.maxvisit_init, self.exploration]
