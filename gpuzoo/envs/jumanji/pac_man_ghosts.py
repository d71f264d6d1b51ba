"""PacMan with ghosts that agents move."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from gymnasium import spaces

from gpuzoo.core.definition import param
from gpuzoo.envs.jumanji.pac_man import CHANNELS, OfMaze, PacManConfig


@dataclasses.dataclass(frozen=True)
class PacManGhostsConfig(PacManConfig):
    """The maze, and what it is worth to catch the player."""

    catch_reward: float = param(
        200.0, low=0.0, doc="what each ghost gets, and the player loses, if the player is caught"
    )


class PacManGhosts(OfMaze):
    """PacMan with five agents: the player, and the four ghosts that hunt it.

    Maze, pellets, meetings, and the steps that ghosts wait at the beginning are those of `PacMan-v1`, which has the
    rules.

    **Agents.** `player_0`, and `ghost_0` to `ghost_3`: the red, the pink, the blue and the orange one.

    **Actions.** `Discrete(5)`: 0 up, 1 left, 2 down, 3 right, 4 nothing. The player's action mask holds the moves to
    open cells, and not 4. A ghost that waits can do nothing else. The others go to open cells, but not back to where
    they come from, unless there is no other way. An illegal action counts as 4.

    **Observation.** `Box(rows, columns, 8)`, int8, as in `PacMan-v1`: open cells, pellets, power pellets, the player,
    the four ghosts. A ghost sees itself as the first of the ghosts, and then the others in their order.

    **Reward.** For the player: 10 for a pellet, 50 for a power pellet, 200 for the first time that a ghost is eaten,
    -``catch_reward`` if it is caught. For each ghost: minus the player's reward.

    **End.** The player is caught, or all pellets are eaten. Time limit: 1000 steps.
    """

    id = "PacManGhosts-v0"
    Config = PacManGhostsConfig
    max_episode_steps = 1000
    invalid_action = 4
    action_mask = True
    chooses = True
    interaction = "mixed"
    exempt: ClassVar[Mapping[str, str]] = {
        "reference": "Ghosts move by themselves in Jumanji; a test compares this game with PacMan-v1."
    }
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/pac_man/"}
    render_fps = 10

    def agents(self, cfg: PacManGhostsConfig) -> dict[str, int]:
        return {"player": 1, "ghost": 4}

    def action_space(self, cfg: PacManGhostsConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def action_names(self, cfg: PacManGhostsConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("up", "left", "down", "right", "nothing"), 1)

    def observation_names(self, cfg: PacManConfig, group: str) -> dict[str, int]:
        if group == "player":
            return dict.fromkeys(CHANNELS, 1)
        own = ("the ghost itself", *(f"other ghost {k}" for k in (1, 2, 3)))
        return dict.fromkeys((*CHANNELS[:4], *own), 1)
