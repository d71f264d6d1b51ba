"""FrozenLake."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

MAPS = {
    "4x4": "SFFF/FHFH/FFFH/HFFG",
    "8x8": "SFFFFFFF/FFFFFFFF/FFFHFFFF/FFFFFHFF/FFFHFFFF/FHHFFFHF/FHFFHFHF/FFFHFFFG",
}


@dataclasses.dataclass(frozen=True)
class FrozenLakeConfig(Config):
    """The arguments of Gymnasium's FrozenLake; the three rewards are its `reward_schedule`."""

    map_name: Literal["4x4", "8x8"] = param("4x4", doc="one of the known lakes")
    desc: str = param("", doc="a lake of one's own instead: lines of S, F, H and G with / between them")
    is_slippery: bool = param(True, doc="whether steps may go to the side")
    success_rate: float = param(1 / 3, low=0.0, high=1.0, doc="probability of the wanted direction on slippery ice")
    reward_goal: float = param(1.0, doc="reward for a step onto the goal")
    reward_hole: float = param(0.0, doc="reward for a step into a hole")
    reward_frozen: float = param(0.0, doc="reward for any other step")


def lake(cfg: FrozenLakeConfig) -> list[str]:
    """The lines of the map."""
    return (cfg.desc or MAPS[cfg.map_name]).split("/")


def _draw_lake(canvas: Canvas, lines: tuple[str, ...]) -> None:
    for y, line in enumerate(lines):
        for x, cell in enumerate(line):
            canvas.rect(x + 0.03, y + 0.03, x + 0.97, y + 0.97, fill="water", radius=0.08)
            if cell == "H":
                canvas.circle(x + 0.5, y + 0.5, 0.36, fill="white")
                canvas.circle(x + 0.5, y + 0.5, 0.32, fill="#2b5f93")
                canvas.circle(x + 0.5, y + 0.55, 0.25, fill="#1d466f")
                continue
            canvas.line(x + 0.2, y + 0.3, x + 0.42, y + 0.18, colour="white", width=2)
            if cell == "S":
                canvas.rect(x + 0.12, y + 0.12, x + 0.88, y + 0.88, outline="slate", width=2, radius=0.08)
                canvas.text(x + 0.5, y + 0.26, "start", height=0.15, colour="slate")
            if cell == "G":
                canvas.rect(x + 0.2, y + 0.36, x + 0.8, y + 0.84, fill="red", radius=0.05)
                canvas.rect(x + 0.45, y + 0.36, x + 0.55, y + 0.84, fill="yellow")
                canvas.rect(x + 0.16, y + 0.28, x + 0.84, y + 0.42, fill="red", radius=0.04)
                canvas.rect(x + 0.45, y + 0.28, x + 0.55, y + 0.42, fill="yellow")
                for side in (-1, 1):
                    canvas.circle(x + 0.5 + 0.11 * side, y + 0.2, 0.09, outline="yellow", width=3.5)


class FrozenLake(EnvDef):
    """A walk over a frozen lake to the gift on the other side, on slippery ice with holes in it.

    **Map.** Rows of cells: S start, F frozen, H hole, G goal. `map_name` chooses one of two, `desc` is another one:
    `"SFF/FHF/FFG"`.

    **Actions.** `Discrete(4)`: 0 left, 1 down, 2 right, 3 up.

    **Observation.** `Discrete(rows * columns)`: row * columns + column of the player's cell, counted from the top left.

    **Movement.** One cell in the direction; at the edge of the lake the player stays. On slippery ice the direction is
    the wanted one with probability `success_rate`, and otherwise one of the two at right angles to it, with equal
    probabilities.

    **Reward.** `reward_goal`, `reward_hole` or `reward_frozen`, by the cell that the step leads to.

    **Start.** A start cell, all with equal probabilities.

    **End.** The player is in a hole or at the goal. Time limit: 100 steps; `FrozenLake8x8-v1` has 200. An action out of
    range counts as 0.

    **Differences from Gymnasium.** A map is one text, and none is made at random; their function makes one:
    `desc="/".join(generate_random_map())`.
    """

    id = "FrozenLake-v1"
    Config = FrozenLakeConfig
    max_episode_steps = 100
    short_episodes = True
    reference = "gymnasium FrozenLake-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/toy_text/frozen_lake/",
    }
    render_fps = 4
    reward_threshold = 0.7

    @classmethod
    def variants(cls) -> dict[str, dict[str, Any]]:
        return {"FrozenLake8x8-v1": {"map_name": "8x8", "max_episode_steps": 200, "reward_threshold": 0.85}}

    def check(self, cfg: FrozenLakeConfig) -> None:
        lines = lake(cfg)
        if len({len(line) for line in lines}) != 1 or not lines[0] or set("".join(lines)) - set("SFHG"):
            raise ValueError(
                f"FrozenLake-v1: desc must have equal lines of S, F, H and G, with / between: {cfg.desc!r}."
            )
        if "S" not in cfg.desc and cfg.desc:
            raise ValueError(f"FrozenLake-v1: desc has no start, S: {cfg.desc!r}.")

    def constants(self, cfg: FrozenLakeConfig) -> dict[str, int]:
        lines = lake(cfg)
        return {"ROWS": len(lines), "COLUMNS": len(lines[0]), "STARTS": "".join(lines).count("S")}

    def tables(self, cfg: FrozenLakeConfig) -> dict[str, NDArray[Any]]:
        cells = "".join(lake(cfg))
        return {
            "tiles": np.array([{"H": 1, "G": 2}.get(cell, 0) for cell in cells], np.int32),
            "starts": np.array([k for k, cell in enumerate(cells) if cell == "S"], np.int32),
        }

    def observation_space(self, cfg: FrozenLakeConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(len("".join(lake(cfg))))

    def action_space(self, cfg: FrozenLakeConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def observation_names(self, cfg: FrozenLakeConfig, group: str) -> dict[str, int]:
        return {"row * columns + column of the player's cell": 1}

    def action_names(self, cfg: FrozenLakeConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("left", "down", "right", "up"), 1)

    def fields(self, cfg: FrozenLakeConfig) -> dict[str, Field]:
        return {
            "row": Field("int32", doc="the player's row, 0 at the top"),
            "column": Field("int32", doc="the player's column"),
        }

    def render(self, cfg: FrozenLakeConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        lines = lake(cfg)
        rows, columns = len(lines), len(lines[0])
        row, column = int(state["row"]), int(state["column"])
        canvas.background("white")
        canvas.view(0, 0, columns, rows, y_down=True, pad=6, hud=True)
        canvas.cached(_draw_lake, tuple(lines))
        sunk = lines[row][column] == "H"
        right, down = column + 0.5, row + 0.5 + 0.12 * sunk
        canvas.circle(right, down + 0.16, 0.2, fill="green")
        canvas.circle(right, down - 0.1, 0.15, fill="#f3cfa9")
        canvas.sector(right, down - 0.12, 0.16, np.pi, 2 * np.pi, fill="green")
        canvas.rect(right - 0.18, down - 0.15, right + 0.18, down - 0.1, fill="white", radius=0.02)
        canvas.circle(right, down - 0.29, 0.045, fill="white")
        if sunk:
            canvas.sector(right, down + 0.02, 0.3, 0, np.pi, fill="#1d466f")
            for hand in (-0.2, 0.2):
                canvas.circle(right + hand, down - 0.02, 0.05, fill="#f3cfa9")
        what = {"H": "fell into a hole", "G": "reached the goal"}.get(lines[row][column], "")
        canvas.hud(left=f"FrozenLake{': ' + what if what else ''}", right=f"step {int(state['elapsed_steps'])}")
