"""Deep sea."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, mix


@dataclasses.dataclass(frozen=True)
class DeepSeaConfig(Config):
    """How deep the sea is, and what a dive meets."""

    size: int = param(8, low=2, high=255, doc="rows and columns of the grid; bsuite's experiments have 10 to 50")
    deterministic: bool = param(True, doc="no wind, no noise on the rewards at the bottom")
    unscaled_move_cost: float = param(0.01, doc="what a whole dive to the right costs")
    randomize_actions: bool = param(True, doc="which action goes to the right is drawn for each cell; else it is 1")
    mapping_seed: int = param(42, low=0, high=2**32 - 1, doc="seed of that draw, as in bsuite")


class DeepSea(EnvDef):
    """A diver sinks by one row per step; only a dive that goes to the right at every step reaches the treasure.

    Osband et al., "Deep exploration via randomized value functions" (2019): a test of exploration. Each step to the
    right costs a little, and a dive with random actions finds the treasure once in 2^`size` dives. The experiments
    `deep_sea` and `deep_sea_stochastic` of bsuite.

    **Actions.** `Discrete(2)`: left and right. Which of the two is right differs from cell to cell; it is the same in
    all envs and episodes, and the same as in bsuite with the same `mapping_seed`. Without `randomize_actions` 1 is
    right everywhere.

    **Observation.** `Box(size, size)`, float32: 1 in the cell of the diver, 0 elsewhere; all 0 after the last step.

    **Beginning.** The diver is in the top left cell. Each step leads one row down and one column to the left or to the
    right; at the walls the column stays.

    **Reward.** 1 for going right in the last column, which can be reached in the last row only. Each step to the right
    costs `unscaled_move_cost` / `size`. The best return is 1 - `unscaled_move_cost`.

    **Wind.** Where the game is not `deterministic`, a step to the right stays in its column with probability 1 /
    `size`, and costs the same; and a number of the standard normal distribution is added to the reward of the last
    step in the first and in the last column. The best mean return is (1 - 1 / `size`)^(`size` - 1) -
    `unscaled_move_cost`.

    **End.** After `size` steps.

    The default of `size` is Gymnax's, as bsuite has none. Gymnax's `sample_action_map`, a new mapping for each episode,
    is left out. An action out of range counts as 0.
    """

    id = "DeepSea-bsuite-v0"
    Config = DeepSeaConfig
    short_episodes = True
    reference = "bsuite 0.3.6 DeepSea"
    links: ClassVar[Mapping[str, str]] = {
        "bsuite": "https://github.com/google-deepmind/bsuite",
        "Osband et al. 2019": "https://arxiv.org/abs/1908.03568",
    }
    render_fps = 5

    def observation_space(self, cfg: DeepSeaConfig, group: str) -> spaces.Box:
        return spaces.Box(0.0, 1.0, (cfg.size, cfg.size), np.float32)

    def action_space(self, cfg: DeepSeaConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: DeepSeaConfig, group: str) -> dict[str, int]:
        return {"1 in the cell of the diver, row by row": cfg.size**2}

    def action_names(self, cfg: DeepSeaConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("left or right, by the cell", "the other one"), 1)

    def fields(self, cfg: DeepSeaConfig) -> dict[str, Field]:
        return {
            "row": Field("int32", doc="row of the diver, from the top"),
            "column": Field("int32", doc="column of the diver, from the left"),
        }

    def tables(self, cfg: DeepSeaConfig) -> dict[str, NDArray[Any]]:
        right = np.ones(cfg.size**2, np.int32)
        if cfg.randomize_actions:  # NumPy promises that the numbers of a RandomState never change
            right[:] = np.random.RandomState(cfg.mapping_seed).binomial(1, 0.5, right.shape)
        return {"right": right}

    def render(self, cfg: DeepSeaConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        n, row, column = cfg.size, int(state["row"]), int(state["column"])
        right = self.tables(cfg)["right"].reshape(n, n)
        canvas.background("paper")
        canvas.view(-0.15, -0.15, n + 0.15, n + 0.85, y_down=True, hud=True)
        for k in range(n):
            canvas.rect(0, k, n, k + 1, fill=mix("#9fd3f0", "#123a63", k / max(n - 1, 1)))
        canvas.rect(0, n, n, n + 0.7, fill="#c9b48a")
        canvas.polygon([(0, 0), (n, n), (0, n)], fill="#00000018")
        for k in range(1, n):
            canvas.line(0, k, n, k, colour="#ffffff28", width=1)
            canvas.line(k, 0, k, n, colour="#ffffff28", width=1)
        if n <= 16:
            for i in range(n):
                for j in range(i + 1):
                    way = "left" if right[i, j] == 0 else "right"
                    canvas.text(
                        j + 0.83, i + 0.2, str(right[i, j]), height=0.24, colour="#ffffffa0", bold=way == "right"
                    )
        x, y = n - 0.5, n + 0.32
        canvas.rect(x - 0.36, y - 0.22, x + 0.36, y + 0.26, fill="brown", outline="ink", radius=0.06)
        canvas.rect(x - 0.36, y - 0.22, x + 0.36, y - 0.04, fill="yellow", outline="ink", radius=0.06)
        canvas.circle(x, y + 0.03, 0.06, fill="yellow", outline="ink", width=1)
        down = row >= n
        x, y = column + 0.5, min(row, n) + (0.5 if not down else 0.3)
        for k, (dx, dy) in enumerate([(-0.2, -0.42), (-0.3, -0.62), (-0.18, -0.8)]):
            canvas.circle(x + dx, y + dy, 0.07 - 0.015 * k, outline="#ffffffb0", width=1)
        canvas.circle(x, y, 0.3, fill="orange", outline="white", width=2)
        canvas.circle(x + 0.06, y - 0.03, 0.15, fill="#d3e6f6", outline="ink", width=1.5)
        note = "" if cfg.deterministic else "   windy"
        canvas.hud(left=f"Deep sea {n}{note}", right=f"row {row}, column {column}")
