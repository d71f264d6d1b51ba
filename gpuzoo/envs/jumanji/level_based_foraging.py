"""Level-Based Foraging by Jumanji's rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.level_based_foraging.level_based_foraging import draw_field
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class LevelBasedForagingConfig(Config):
    """The field, who is on it, and what is rewarded."""

    grid_size: int = param(8, low=5, high=100, doc="rows and columns of the field")
    fov: int = param(8, low=1, high=100, doc="how many cells far an agent sees")
    num_agents: int = param(2, low=1, high=64, doc="number of agents")
    num_food: int = param(2, low=1, high=64, doc="foods of an episode")
    max_agent_level: int = param(2, low=2, high=32, doc="highest level of an agent")
    force_coop: bool = param(True, doc="every food has the highest level")
    agents_avoid_rows: bool = param(True, doc="no agent starts in a row that has the number of a food's row or column")
    grid_observation: bool = param(False, doc="observe maps of what is around instead of a list")
    normalize_reward: bool = param(True, doc="all rewards of an episode in which all food is loaded add up to 1")
    penalty: float = param(0.0, low=0.0, doc="what a failed load costs each agent")


class LevelBasedForaging(EnvDef):
    """Agents of different levels walk over a field and load food, by the rules of Jumanji.

    `LevelBasedForaging-v3` has the rules of lbforaging. The differences: nobody may walk onto the cell of another
    agent, even if that one leaves it; foods may lie diagonally to each other, so that an agent can load two at a time;
    a food keeps its place in the observation; and a penalty is paid by all.

    **Start.** Foods lie inside the border, neither on nor beside each other. Agents stand on different cells without
    food. All is uniform, but no agent stands in a row that has the number of a food's row or of a food's column, a slip
    of the original that ``agents_avoid_rows=False`` corrects. Levels of agents are uniform from 1 to
    ``max_agent_level``. Foods have levels from 1 to the sum of the three lowest levels of agents, or all the latter
    with ``force_coop``.

    **Actions.** `Discrete(6)`: 0 nothing, 1 north (row - 1), 2 south, 3 west (column - 1), 4 east, 5 load. The action
    mask holds the moves to cells without agent and food, and loading beside a food. An illegal action does nothing. All
    act at once, and agents who want the same cell stay where they are. Foods are loaded after the moves: a food is gone
    if the levels of all beside it who load add up to at least its own.

    **Observation.** float32. Three numbers (row, column, level) for each food, for the agent itself and for each other
    agent, in this order. Rows and columns count from the upper left corner of what the agent sees: the cells at most
    ``fov`` rows and columns away, as far as they are on the field. What is gone or too far away is (-1, -1, 0). With
    ``grid_observation``, three maps of (2 fov + 1)² cells around the agent: levels of agents, levels of foods, and 1
    for free cells of the field.

    **Reward.** For each agent who loads a food: own level * food level, with ``normalize_reward`` divided by the sum of
    the levels of those who load it * the sum of the levels of all foods. A load that fails costs every agent
    ``penalty``, with ``normalize_reward`` divided by the same product.

    **End.** All food is loaded. Time limit: 100 steps.

    **In Jumanji** one agent acts for all, and the number of steps is observed.
    """

    id = "LevelBasedForaging-jumanji-v0"
    Config = LevelBasedForagingConfig
    max_episode_steps = 100
    action_mask = True
    chooses = True
    interaction = "cooperative"
    reference = "jumanji==1.1.2 LevelBasedForaging-v0"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/lbf/",
        "Papoudakis et al. 2021": "https://arxiv.org/abs/2006.07869",
    }
    similar = (r"lbf", r"LBF", r"LevelBasedForaging.*")
    render_fps = 5

    def agents(self, cfg: LevelBasedForagingConfig) -> dict[str, int]:
        return {"agent": cfg.num_agents}

    def lanes(self, cfg: LevelBasedForagingConfig) -> int:
        return 1 if cfg.num_agents <= 4 else min(32, 1 << (cfg.num_agents - 1).bit_length())

    def check(self, cfg: LevelBasedForagingConfig) -> None:
        side = cfg.grid_size
        if cfg.fov > side:
            raise ValueError(f"{self.id}: fov must be at most grid_size, {side}, not {cfg.fov}.")
        if (side - 2) ** 2 - cfg.num_agents <= 5 * cfg.num_food:
            raise ValueError(f"{self.id}: {cfg.num_food} foods may not find room on {side} x {side} cells.")
        if cfg.agents_avoid_rows and cfg.num_agents > 2 * side:
            raise ValueError(f"{self.id}: with agents_avoid_rows at most {2 * side} agents have room.")

    def observation_space(self, cfg: LevelBasedForagingConfig, group: str) -> spaces.Box:
        food_level = min(3, cfg.num_agents) * cfg.max_agent_level
        if cfg.grid_observation:
            top = np.array([[[cfg.max_agent_level]], [[food_level]], [[1]]], np.float32)
            return spaces.Box(0.0, np.tile(top, (1, 2 * cfg.fov + 1, 2 * cfg.fov + 1)), dtype=np.float32)
        edge = cfg.grid_size - 1
        low = [-1, -1, 0] * (cfg.num_food + cfg.num_agents)
        high = [edge, edge, food_level] * cfg.num_food + [edge, edge, cfg.max_agent_level] * cfg.num_agents
        return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)

    def action_space(self, cfg: LevelBasedForagingConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(6)

    def observation_names(self, cfg: LevelBasedForagingConfig, group: str) -> dict[str, int]:
        if cfg.grid_observation:
            return {"levels of agents": 1, "levels of foods": 1, "free cells": 1}
        who = [f"food {k}" for k in range(cfg.num_food)]
        who += ["the agent itself", *(f"other agent {k}" for k in range(1, cfg.num_agents))]
        return {f"{one}: row, column, level": 3 for one in who}

    def action_names(self, cfg: LevelBasedForagingConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            ("nothing", "north (row - 1)", "south (row + 1)", "west (column - 1)", "east (column + 1)", "load"), 1
        )

    def fields(self, cfg: LevelBasedForagingConfig) -> dict[str, Field]:
        return {
            "position": Field("int8", ("agents", 2), "row and column of each agent"),
            "level": Field("int8", ("agents",), "level of each agent"),
            "food": Field("int8", ("num_food", 3), "row, column and level of each food"),
            "eaten": Field("bool", ("num_food",), "whether each food is gone"),
            "target": Field(
                "int32", ("agents",), "cell where each wants to be: row * grid_size + column", scratch=True
            ),
        }

    def infos(self, cfg: LevelBasedForagingConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        eaten = (state["eaten"] != 0).sum(1)
        return {"percent_eaten": eaten / cfg.num_food * 100, "solved": eaten == cfg.num_food}

    def render(self, cfg: LevelBasedForagingConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        food = np.array(state["food"], int)
        food[np.asarray(state["eaten"]) != 0, 2] = 0
        position, level = (np.asarray(state[name], int) for name in ("position", "level"))
        draw_field(canvas, cfg.grid_size, cfg.grid_size, position, level, food, int(state["elapsed_steps"]))
