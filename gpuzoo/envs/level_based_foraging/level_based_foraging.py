"""Level-Based Foraging."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import CYCLE, Canvas, fade

_NAME = re.compile(
    r"Foraging(?P<grid>-grid)?(-(?P<sight>\d+)s)?-(?P<rows>\d+)x(?P<cols>\d+)-(?P<players>\d+)p-(?P<food>\d+)f"
    r"(?P<coop>-coop)?(?P<ind>-ind)?(?P<pen>-pen)?-v3"
)


@dataclasses.dataclass(frozen=True)
class LevelBasedForagingConfig(Config):
    """The options of lbforaging's ForagingEnv; those not in its registered ids have its defaults."""

    rows: int = param(8, low=3, high=127, doc="rows of the field")
    cols: int = param(8, low=3, high=127, doc="columns of the field")
    players: int = param(2, low=1, high=64, doc="number of players")
    min_player_level: int = param(1, low=1, high=32, doc="lowest level of a player")
    max_player_level: int = param(2, low=1, high=32, doc="highest level of a player")
    max_num_food: int = param(2, low=1, high=64, doc="foods of an episode, as far as there is room")
    min_food_level: int = param(1, low=1, high=127, doc="lowest level of a food")
    max_food_level: int = param(
        0, low=0, high=127, doc="highest level of a food; 0 for the sum of the three lowest player levels"
    )
    force_coop: bool = param(False, doc="every food has the highest level")
    sight: int = param(0, low=0, high=127, doc="how many cells far a player sees; 0 for the longer side of the field")
    grid_observation: bool = param(False, doc="observe maps of what is around instead of lists")
    observe_agent_levels: bool = param(True, doc="whether players see the levels of players")
    normalize_reward: bool = param(True, doc="all rewards of an episode in which all food is loaded add up to 1")
    penalty: float = param(0.0, low=0.0, doc="what each player who takes part in a failed load pays")


class LevelBasedForaging(EnvDef):
    """Players of different levels walk over a field and load food, for which they often must join forces.

    The rules are those of lbforaging 2.0.0, which has an id for each of its settings. `config_of` gives their
    parameters:

    ```python
    import gpuzoo

    game = gpuzoo.get("LevelBasedForaging-v3")
    envs = gpuzoo.make(game, num_envs=4, **game.config_of("Foraging-2s-8x8-2p-2f-coop-v3"))
    ```

    **Start.** Players stand on different cells, each with a level from `min_player_level` to `max_player_level`. Foods
    have levels from `min_food_level` to `max_food_level`, or all the latter with `force_coop`. They lie neither on the
    border of the field nor on a player, and far enough from each other that nobody can stand beside two: not in the 3 x
    3 cells around another, and not two cells from it in its row or column. All is uniform. After 1000 draws of cells,
    foods that still have no place are left out.

    **Agents.** `player_0`, `player_1`, ...

    **Actions.** `Discrete(6)`: 0 none, 1 north (row - 1), 2 south, 3 west (column - 1), 4 east, 5 load. Walking off the
    field or onto a food is illegal, and so is loading when no food lies on one of the four cells beside the player. An
    illegal action counts as none; the action mask holds the legal ones.

    All act at once. A player who wants a cell to which somebody else goes, or on which somebody stays of their own
    accord, stays where they were. Two players may change places. A food is loaded, and gone, if the levels of all
    beside it who load add up to at least its own level; otherwise the load fails.

    **Observation.** float32. By default three numbers per food (row, column, level), in row-major order, and three per
    player (row, column, level), the observing player first, then the others in their order. Foods and players that are
    gone or out of sight are left out, and the list is filled up with (-1, -1, 0). Rows and columns count from the upper
    left corner of what the player sees: the cells at most `sight` rows and columns away, as far as they are on the
    field. Without `observe_agent_levels` players have two numbers. With `grid_observation`, three maps of (2 sight +
    1)² cells around the player: the levels of players (1 for each without `observe_agent_levels`), the levels of foods,
    and 1 for cells of the field that are free.

    **Reward.** For each player who loads a food: own level * food level, with `normalize_reward` divided by the sum of
    the levels of those who load it * the sum of the levels of all foods that the episode began with. For each player
    whose load fails: -`penalty`.

    **End.** All food is loaded. Time limit: 50 steps. (lbforaging reports both as termination.)

    **As in the original.** A player who comes to the cell of a player that wanted to leave and was turned back shares
    it from then on, until one of them leaves. A player who stands fewer than `sight` rows from the top, or columns from
    the left, sees other players up to row or column 2 `sight`, farther than food.

    **Differences from the original.** The original does not place a player where that player, or one that is placed
    later, was at the end of the last episode. On a field that is not square it raises an error once a coordinate
    exceeds the shorter side, because its observation space exchanges rows and columns. With Gymnasium 1.4 it cannot be
    made with `grid_observation`. Its levels may have a range for each player and each food. A sight of 0 means 0 there.
    """

    id = "LevelBasedForaging-v3"
    Config = LevelBasedForagingConfig
    max_episode_steps = 50
    action_mask = True
    reference = "lbforaging==2.0.0 Foraging-v3"
    aliases = (r"Foraging-[-\w]+-v3",)
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "lbforaging": "https://github.com/semitable/lb-foraging",
        "Papoudakis et al. 2021": "https://arxiv.org/abs/2006.07869",
    }
    benchmarks = {
        "Foraging-2s-8x8-2p-2f-coop": {"sight": 2, "force_coop": True},
        "Foraging-15x15-8p-4f": {"rows": 15, "cols": 15, "players": 8, "max_num_food": 4},
        "Foraging-grid-2s-8x8-2p-2f": {"sight": 2, "grid_observation": True},
    }
    render_fps = 5

    @staticmethod
    def config_of(name: str) -> dict[str, Any]:
        """The parameters of an id of lbforaging, with which this game is that one.

        `Foraging[-grid][-{sight}s]-{rows}x{cols}-{players}p-{food}f[-coop][-ind][-pen]-v3`: players see the whole field
        unless `sight` is given; `-grid` is `grid_observation`, `-coop` is `force_coop`, `-ind` is foods of level 1, and
        `-pen` a penalty of 0.1.

        Raises:
            ValueError: no such id.
        """
        found = _NAME.fullmatch(name)
        if not found:
            raise ValueError(
                f"{name!r} is no id of lbforaging 2.0.0: they look like 'Foraging-8x8-2p-2f-v3' or "
                "'Foraging-2s-8x8-2p-2f-coop-v3'."
            )
        rows, cols = int(found["rows"]), int(found["cols"])
        return {
            "rows": rows,
            "cols": cols,
            "players": int(found["players"]),
            "max_num_food": int(found["food"]),
            "sight": int(found["sight"] or max(rows, cols)),
            "grid_observation": bool(found["grid"]),
            "force_coop": bool(found["coop"]),
            "max_food_level": 1 if found["ind"] else 0,
            "penalty": 0.1 if found["pen"] else 0.0,
        }

    def agents(self, cfg: LevelBasedForagingConfig) -> dict[str, int]:
        return {"player": cfg.players}

    def lanes(self, cfg: LevelBasedForagingConfig) -> int:
        if cfg.grid_observation:
            return 32
        return 1 if cfg.players <= 4 else min(32, 1 << (cfg.players - 1).bit_length())

    def check(self, cfg: LevelBasedForagingConfig) -> None:
        if cfg.players > cfg.rows * cfg.cols:
            raise ValueError(f"LevelBasedForaging: {cfg.players} players do not fit on {cfg.rows} x {cfg.cols} cells.")
        if cfg.min_player_level > cfg.max_player_level:
            raise ValueError("LevelBasedForaging: min_player_level must be at most max_player_level.")
        highest = cfg.max_food_level or min(3, cfg.players) * cfg.min_player_level
        if not cfg.force_coop and cfg.min_food_level > highest:
            raise ValueError(
                f"LevelBasedForaging: min_food_level must be at most {highest}, which is max_food_level, or without it "
                "the least that the three lowest player levels can add up to."
            )

    def observation_space(self, cfg: LevelBasedForagingConfig, group: str) -> spaces.Box:
        food_level = cfg.max_food_level or min(3, cfg.players) * cfg.max_player_level
        if cfg.grid_observation:
            width = 2 * (cfg.sight or max(cfg.rows, cfg.cols)) + 1
            player_level = cfg.max_player_level if cfg.observe_agent_levels else 1
            top = np.array([[[player_level]], [[food_level]], [[1]]], np.float32)
            return spaces.Box(0.0, np.tile(top, (1, width, width)), dtype=np.float32)
        size = 3 if cfg.observe_agent_levels else 2
        place = [cfg.rows - 1, cfg.cols - 1]
        low = [-1, -1, 0] * cfg.max_num_food + [-1, -1, 0][:size] * cfg.players
        high = [*place, food_level] * cfg.max_num_food + [*place, cfg.max_player_level][:size] * cfg.players
        return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)

    def action_space(self, cfg: LevelBasedForagingConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(6)

    def observation_names(self, cfg: LevelBasedForagingConfig, group: str) -> dict[str, int]:
        if cfg.grid_observation:
            return {"levels of players": 1, "levels of foods": 1, "free cells": 1}
        each = "row, column, level" if cfg.observe_agent_levels else "row, column"
        names = {f"food {k}: row, column, level": 3 for k in range(cfg.max_num_food)}
        who = ["the player itself", *(f"other player {k}" for k in range(1, cfg.players))]
        return names | {f"{one}: {each}": each.count(",") + 1 for one in who}

    def action_names(self, cfg: LevelBasedForagingConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            ("none", "north (row - 1)", "south (row + 1)", "west (column - 1)", "east (column + 1)", "load"), 1
        )

    def fields(self, cfg: LevelBasedForagingConfig) -> dict[str, Field]:
        return {
            "position": Field("int8", ("players", 2), "row and column of each player"),
            "level": Field("int8", ("players",), "level of each player"),
            "food": Field("int8", ("max_num_food", 3), "row, column and level (0: gone), in row-major order"),
            "food_spawned": Field("int32", doc="sum of the levels of all foods that the episode began with"),
            "target": Field(
                "int32", ("players",), "cell where each wanted to be in the last step: row * cols + column"
            ),
        }

    def render(self, cfg: LevelBasedForagingConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        position, level, food = (np.asarray(state[name], int) for name in ("position", "level", "food"))
        draw_field(canvas, cfg.rows, cfg.cols, position, level, food, int(state["elapsed_steps"]))


def draw_field(
    canvas: Canvas, rows: int, cols: int, position: NDArray[Any], level: NDArray[Any], food: NDArray[Any], step: int
) -> None:
    """A picture of the field.

    Args:
        canvas: what is drawn on.
        rows: of the field.
        cols: columns of the field.
        position: (players, 2), row and column.
        level: (players,).
        food: (foods, 3), row, column and level; of level 0 if it is gone, in row 0 if there never was any.
        step: number of steps.
    """
    canvas.background("paper")
    canvas.view(0, 0, cols, rows, y_down=True, pad=8, hud=True)
    canvas.rect(0, 0, cols, rows, fill="grass")
    for row in range(rows + 1):
        canvas.line(0, row, cols, row, colour="white", width=1.0)
    for col in range(cols + 1):
        canvas.line(col, 0, col, rows, colour="white", width=1.0)
    for row, col, strength in food:
        x, y = col + 0.5, row + 0.5
        if strength:
            canvas.line(x, y - 0.25, x + 0.08, y - 0.42, colour="brown", width=1.5)
            canvas.circle(x, y + 0.03, 0.32, fill="red")
            canvas.text(x, y + 0.03, str(strength), colour="white", height=0.32, bold=True)
        elif row:
            canvas.circle(x, y, 0.1, fill=fade("brown", 0.5))
    for a, (row, col) in enumerate(position):
        mates = np.flatnonzero((position == position[a]).all(axis=1))
        x = col + 0.5 + 0.16 * (2 * int(np.searchsorted(mates, a)) - len(mates) + 1)
        y, colour = row + 0.5, CYCLE[a % len(CYCLE)]
        beside = (np.abs(food[:, :2] - position[a]).sum(axis=1) == 1) & (food[:, 2] > 0)
        for k in np.flatnonzero(beside):
            canvas.line(x, y, food[k, 1] + 0.5, food[k, 0] + 0.5, colour=fade(colour, 0.6), width=3.0)
        canvas.rect(x - 0.3, y - 0.3, x + 0.3, y + 0.3, fill=colour, outline="white", radius=0.12)
        canvas.text(x, y, str(level[a]), colour="white", height=0.32, bold=True)
    spawned, left = int((food[:, 0] > 0).sum()), int((food[:, 2] > 0).sum())
    canvas.hud(
        left="Level-Based Foraging",
        right=f"food {spawned - left} of {spawned}   step {step}",
    )
