"""Connector."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.render import CYCLE, Canvas, fade

CHANNELS = ("own path", "the agent itself", "own target", "others: 1 path, 2 agent, 3 target")
UP, RIGHT, DOWN, LEFT = range(4)


@dataclasses.dataclass(frozen=True)
class ConnectorConfig(InstanceConfig):
    """The board, how it is drawn, and what is rewarded."""

    grid_size: int = param(10, low=3, high=100, doc="rows and columns of the board")
    num_agents: int = param(10, low=1, high=64, doc="number of agents")
    generator: Literal["random_walk", "uniform", "legacy_random_walk"] = param(
        "random_walk", doc="how boards are drawn"
    )
    max_walk_steps: int = param(0, low=0, doc="steps of a random walk at most; 0: one and a half times the grid size")
    temperature: float = param(1.0, low=0.01, doc="how little a random walk is drawn away from its start")
    reward: Literal["dense", "shared_dense", "sparse", "shared_sparse"] = param("dense", doc="who is rewarded for what")
    connected_reward: float = param(1.0, doc="dense rewards: for a connection")
    timestep_reward: float = param(-0.03, doc="dense rewards: for a step that began without connection")


class Connector(OfInstances):
    """Agents lay wires to their targets on one board without blocking each other.

    An agent moves by one cell per step, and the cells that it leaves stay occupied by its path. It may go to empty
    cells and to its own target, where it is connected and stays. All move at the same time. If several agents want the
    same cell, the one with the highest number gets it, and the others stay where they are.

    **Boards.** With ``generator="random_walk"`` each board has a solution. One agent after the other gets a first cell,
    any that is empty and has an empty cell beside it, and then one of the latter as its second cell. From there all
    walk on at the same time, to empty cells only, until none can, or for ``max_walk_steps`` - 1 steps. The odds of a
    direction are the exponential of the way that the walk has come in that direction, divided by ``temperature``. An
    agent starts where its walk begins, and its target is where it ends. A walk of ``"legacy_random_walk"`` takes each
    way with the same chance, never touches itself, and goes on until no walk can. There the same random number chooses
    the first cell and the first direction, so that upper cells go with steps upward. ``"uniform"`` puts agents and
    targets anywhere, and a board may have no solution.

    **Instances.** ``instances`` is a dataset with `starts` and `targets`, (instances, num_agents, 2) each: row and
    column. Each episode takes one of them at random, or always the one that ``instance`` names, which may differ
    between envs.

    **Actions.** `Discrete(5)`: 0 nothing, 1 up, 2 right, 3 down, 4 left. The action mask holds the moves to empty cells
    and to the agent's own target; a connected agent can only do nothing. An illegal action does nothing.

    **Observation.** `Box(0, 3, (grid_size, grid_size, 4))`, int8: row, column, channel. The first three channels are 1
    at the agent's own path, at the agent, and at its target. The last one is 1 at paths of others, 2 at other agents
    and 3 at their targets. A target disappears once it is reached.

    **State.** Jumanji's observation, `Box(grid_size²)`, int16: 0 for an empty cell, and 3 a + 1, 3 a + 2 and 3 a + 3
    for path, place and target of agent a.

    **Reward.** 1 for the connection, and -0.03 for each step that the agent began without one
    (``connected_reward``, ``timestep_reward``). With ``reward="sparse"`` 1 for the connection. With
    ``"shared_dense"`` and ``"shared_sparse"`` all agents get the sum of these.

    **End.** Nobody can move any more, as all are connected or blocked. Time limit: 50 steps.

    **In Jumanji** one agent acts for all, sees the state and the number of steps, and agents that are connected or
    blocked have a discount of 0 before the end. `Connector-v2` was the game with legacy walks. Here such a walk begins
    only where there is an empty cell beside it; there a walk without one leaves the board.
    """

    id = "Connector-v3"
    Config = ConnectorConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "The masks of an env are 50 bytes, which begin and end inside of sectors.",
    }
    max_episode_steps = 50
    invalid_action = 0
    action_mask = True
    chooses = True
    interaction = "mixed"
    reference = "jumanji==1.1.2 Connector-v3"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/connector/"}
    similar = (r"[Cc]onnector.*",)
    render_fps = 6

    def agents(self, cfg: ConnectorConfig) -> dict[str, int]:
        return {"agent": cfg.num_agents}

    def lanes(self, cfg: ConnectorConfig) -> int:
        return 32

    def check(self, cfg: ConnectorConfig) -> None:
        super().check(cfg)
        room = cfg.grid_size**2 // (2 if cfg.instances or cfg.generator == "uniform" else 4)
        if cfg.num_agents > room:
            raise ValueError(
                f"{self.id}: at most {room} agents have room on {cfg.grid_size} x {cfg.grid_size} cells, not "
                f"{cfg.num_agents}."
            )

    def parts(self, cfg: ConnectorConfig) -> dict[str, Part]:
        places = Part((cfg.num_agents, 2), "int32", 0, cfg.grid_size - 1)
        return {"starts": places, "targets": places}

    def fault(self, cfg: ConnectorConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        cells = np.concatenate([instance["starts"], instance["targets"]])
        for k, cell in enumerate(cells):
            if (cells[:k] == cell).all(1).any():
                return f"two things are in the cell {tuple(cell.tolist())}"
        return ""

    def constants(self, cfg: ConnectorConfig) -> dict[str, int]:
        cells = cfg.grid_size**2
        longest = cells if cfg.generator == "legacy_random_walk" else cfg.max_walk_steps or int(1.5 * cfg.grid_size)
        own = {"SIDE": cfg.grid_size, "CELLS": cells, "GRID": (cfg.grid_size + 2) ** 2}
        own |= {"LONGEST_WALK": longest, "ODDS": 2 * cfg.grid_size}
        return {**super().constants(cfg), **own}

    def observation_space(self, cfg: ConnectorConfig, group: str) -> spaces.Box:
        high = np.ones((cfg.grid_size, cfg.grid_size, len(CHANNELS)), np.int8)
        high[..., -1] = 3
        return spaces.Box(np.zeros_like(high), high, dtype=np.int8)

    def state_space(self, cfg: ConnectorConfig) -> spaces.Box:
        return spaces.Box(0, 3 * cfg.num_agents, (cfg.grid_size**2,), np.int16)

    def action_space(self, cfg: ConnectorConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def observation_names(self, cfg: ConnectorConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(CHANNELS, 1)

    def action_names(self, cfg: ConnectorConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("nothing", "up", "right", "down", "left"), 1)

    def fields(self, cfg: ConnectorConfig) -> dict[str, Field]:
        return {
            "grid": Field(
                "int16", ("GRID",), "the board in a margin of -1, row by row; 0, or 3 a + 1, 2, 3, as in the state"
            ),
            "entered": Field("int8", ("GRID",), "direction by which an agent came: 0 up, 1 right, 2 down, 3 left; -1"),
            "place": Field("int32", ("agents",), "cell of each agent in the grid"),
            "start": Field("int32", ("agents",), "cell where each began"),
            "target": Field("int32", ("agents",), "cell that each must come to"),
            "odds": Field("float32", ("ODDS",), "of ways that are worse than the best by so much", scratch=True),
            "way": Field("int32", ("agents",), "direction that each agent takes, or -1", scratch=True),
            "held": Field("int16", ("CELLS",), "what each cell of the grid holds", scratch=True),
            "owner": Field("int32", ("CELLS",), "agent whose mark each cell holds, or -1", scratch=True),
            "kind": Field("int32", ("CELLS",), "1, 2, 3 for its path, head or target, 0 for none", scratch=True),
        }

    def infos(self, cfg: ConnectorConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        connections = (state["place"] == state["target"]).sum(1)
        return {
            "num_connections": connections,
            "ratio_connections": connections / cfg.num_agents,
            "solved": connections == cfg.num_agents,
            "total_path_length": ((state["grid"] > 0) & (state["grid"] % 3 == 1)).sum(1) + cfg.num_agents,
        }

    def render(self, cfg: ConnectorConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        side = cfg.grid_size
        canvas.background("paper")
        canvas.view(-0.2, -0.2, side + 0.2, side + 0.2, y_down=True, hud=True)
        canvas.cached(_board, side)
        unit = 380 / (side + 0.4)
        for a in range(cfg.num_agents):
            colour = CYCLE[a % len(CYCLE)]
            if a >= len(CYCLE):
                colour = fade(colour, 0.65)
            start, place, target = (_row_and_column(int(state[name][a]), side) for name in ("start", "place", "target"))
            row, column = target
            connected = place == target
            canvas.rect(column + 0.16, row + 0.16, column + 0.84, row + 0.84, outline=colour, width=2.5, radius=0.16)
            wire = _wire(state, side, place, start)
            centres = np.array(wire)[:, ::-1] + 0.5
            if len(wire) > 1:
                canvas.path(centres, colour=colour, width=0.28 * unit)
            canvas.circle(start[1] + 0.5, start[0] + 0.5, 0.19, fill=colour, outline="white", width=1.2)
            canvas.circle(place[1] + 0.5, place[0] + 0.5, 0.32, fill=colour)
            canvas.text(place[1] + 0.5, place[0] + 0.5, str(a), colour="white", height=0.34, bold=True)
            if connected:
                canvas.circle(place[1] + 0.5, place[0] + 0.5, 0.36, outline="ink", width=1.5)
        connections = int((np.asarray(state["place"]) == np.asarray(state["target"])).sum())
        canvas.hud(left=f"{connections} of {cfg.num_agents} connected", right=f"step {int(state['elapsed_steps'])}")


def _row_and_column(cell: int, side: int) -> tuple[int, int]:
    return cell // (side + 2) - 1, cell % (side + 2) - 1


def _wire(
    state: Mapping[str, NDArray[Any]], side: int, place: tuple[int, int], start: tuple[int, int]
) -> list[tuple[int, int]]:
    """Cells from where an agent is back to where it began, or as far as is known."""
    wire = [place]
    while wire[-1] != start and len(wire) < side**2:
        row, column = wire[-1]
        way = int(state["entered"][(row + 1) * (side + 2) + column + 1])
        if way < 0:
            break
        wire.append((row + (way == UP) - (way == DOWN), column + (way == LEFT) - (way == RIGHT)))
    return wire


def _board(canvas: Canvas, side: int) -> None:
    """The cells."""
    canvas.rect(-0.12, -0.12, side + 0.12, side + 0.12, fill="white", outline="line", radius=0.12)
    for row in range(side):
        for column in range(side):
            canvas.rect(column + 0.04, row + 0.04, column + 0.96, row + 0.96, fill="mist", radius=0.12)
