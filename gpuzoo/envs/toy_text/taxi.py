"""Taxi."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

#: the town: a wall | or a way : between neighbours of a row; the stops
MAP = """\
R: | : :G
 : | : :
 : : : :
 | : | :
Y| : |B:
"""
SIZE = 5
ROWS = [line.ljust(2 * SIZE - 1) for line in MAP.splitlines()]
STOPS = [next((r, line.index(name) // 2) for r, line in enumerate(ROWS) if name in line) for name in "RGYB"]
WALLS = [(r, c) for r, line in enumerate(ROWS) for c in range(SIZE - 1) if line[2 * c + 1] == "|"]
COLOURS = ("red", "green", "yellow", "blue")


@dataclasses.dataclass(frozen=True)
class TaxiConfig(Config):
    """The arguments of Gymnasium's Taxi."""

    is_rainy: bool = param(False, doc="whether the taxi may drift to the side")
    fickle_passenger: bool = param(False, doc="whether the passenger may change the destination, once")
    rainy_probability: float = param(0.8, low=0.0, high=1.0, doc="probability of the wanted direction in the rain")
    fickle_probability: float = param(0.3, low=0.0, high=1.0, doc="probability that the passenger is a fickle one")


class Taxi(EnvDef):
    """A taxi fetches a passenger at one of four stops and takes them to another one.

    **Map.** 5 rows of 5 cells, with walls between some neighbours of a row, and four stops::

        R: | : :G
         : | : :
         : : : :
         | : | :
        Y| : |B:

    **Actions.** `Discrete(6)`: 0 south, 1 north, 2 east, 3 west, 4 picks up the passenger, 5 drops them off.

    **Observation.** `Discrete(500)`: ((5 row + column) 5 + passenger) 4 + destination, rows and columns counted from
    the top left. The passenger is at the stop 0 red, 1 green, 2 yellow, 3 blue, or 4 in the taxi; the destination is
    one of the stops.

    **Movement.** One cell in the direction, unless a wall or the edge of the town is there. A passenger is picked up
    where they wait, and dropped off at any stop.

    **Reward.** -1 for each step, but 20 for dropping the passenger off at the destination, and -10 for picking up or
    dropping off where that is not possible.

    **Start.** The taxi anywhere, the passenger at a stop, the destination another stop, all with equal probabilities.

    **End.** The passenger is dropped off at the destination. Time limit: 200 steps. An action out of range counts as 0.

    **Options.** `is_rainy`: a taxi whose way is free drives that way with probability `rainy_probability`, and
    otherwise to the left or to the right of it, with equal probabilities, if nothing is there. `fickle_passenger`: with
    probability `fickle_probability`, at the first move with the passenger in the taxi the destination becomes another
    stop.

    **Differences from Gymnasium.** Gymnasium's `info["action_mask"]` marks the actions that change the state, but all
    actions stay allowed. A mask of gpuzoo forbids actions, which would make another game, so this game has none.
    """

    id = "Taxi-v4"
    Config = TaxiConfig
    max_episode_steps = 200
    reference = "gymnasium Taxi-v4"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/toy_text/taxi/",
        "Dietterich 2000": "https://doi.org/10.1613/jair.639",
    }
    benchmarks = {"rainy, fickle": {"is_rainy": True, "fickle_passenger": True}}
    render_fps = 4
    reward_threshold = 8.0

    def constants(self, cfg: TaxiConfig) -> dict[str, int]:
        town = [(row, column) for row in range(SIZE) for column in range(SIZE)]
        free = {
            "SOUTH": [place for place in town if place[0] < SIZE - 1],
            "NORTH": [place for place in town if place[0] > 0],
            "EAST": [place for place in town if place[1] < SIZE - 1 and place not in WALLS],
            "WEST": [(row, column) for row, column in town if column > 0 and (row, column - 1) not in WALLS],
        }
        ways = {f"WAYS_{name}": sum(1 << SIZE * r + c for r, c in places) for name, places in free.items()}
        return {"SIZE": SIZE, **ways, **{f"STOP_{k}": SIZE * r + c for k, (r, c) in enumerate(STOPS)}}

    def observation_space(self, cfg: TaxiConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(SIZE * SIZE * 5 * 4)

    def action_space(self, cfg: TaxiConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(6)

    def observation_names(self, cfg: TaxiConfig, group: str) -> dict[str, int]:
        return {"((5 row + column) 5 + passenger) 4 + destination": 1}

    def action_names(self, cfg: TaxiConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("south", "north", "east", "west", "pick up the passenger", "drop the passenger off"), 1)

    def fields(self, cfg: TaxiConfig) -> dict[str, Field]:
        return {
            "row": Field("int32", doc="the taxi's row, 0 at the top"),
            "column": Field("int32", doc="the taxi's column"),
            "passenger": Field("int32", doc="the stop where the passenger is, or 4: in the taxi"),
            "destination": Field("int32", doc="the stop where the passenger wants to go"),
            "fickle_step": Field("int32", doc="1 if the passenger will change the destination, else 0"),
        }

    def render(self, cfg: TaxiConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        row, column = int(state["row"]), int(state["column"])
        passenger, destination = int(state["passenger"]), int(state["destination"])
        canvas.background("mist")
        canvas.view(-0.15, -0.15, SIZE + 0.15, SIZE + 0.15, y_down=True, pad=4, hud=True)
        canvas.rect(-0.08, -0.08, SIZE + 0.08, SIZE + 0.08, fill="slate", radius=0.1)
        for k in range(1, SIZE):
            for a in np.arange(0.1, SIZE, 0.4).tolist():
                canvas.line(k, a, k, a + 0.15, colour="#7b8695", width=1.5)
                canvas.line(a, k, a + 0.15, k, colour="#7b8695", width=1.5)
        for k, (r, c) in enumerate(STOPS):
            canvas.rect(c + 0.06, r + 0.06, c + 0.94, r + 0.94, fill=COLOURS[k], radius=0.12)
            canvas.rect(c + 0.14, r + 0.14, c + 0.86, r + 0.86, outline="white", width=1.5, radius=0.08)
            canvas.text(c + 0.26, r + 0.29, "RGYB"[k], height=0.24, colour="white", bold=True)
        for r, c in WALLS:
            canvas.rect(c + 0.95, r, c + 1.05, r + 1, fill="sand", radius=0.04)
        r, c = STOPS[destination]
        canvas.line(c + 0.72, r + 0.34, c + 0.72, r + 0.12, width=2.5)
        canvas.polygon([(c + 0.72, r + 0.1), (c + 0.95, r + 0.17), (c + 0.72, r + 0.25)], fill="ink")
        x, y = column + 0.5, row + 0.54
        for side in (-0.2, 0.2):
            canvas.circle(x + side, y + 0.19, 0.09, fill="ink")
            canvas.circle(x + side, y + 0.19, 0.035, fill="grey")
        canvas.polygon(
            [(x - 0.23, y - 0.02), (x - 0.15, y - 0.22), (x + 0.13, y - 0.22), (x + 0.22, y - 0.02)], fill="#f7d774"
        )
        canvas.polygon(
            [(x - 0.17, y - 0.02), (x - 0.12, y - 0.17), (x + 0.1, y - 0.17), (x + 0.16, y - 0.02)], fill="water"
        )
        canvas.rect(x - 0.36, y - 0.04, x + 0.36, y + 0.17, fill="#f7d774", outline="ink", width=1, radius=0.06)
        for k in range(7):
            canvas.rect(x - 0.28 + 0.08 * k, y + 0.04, x - 0.24 + 0.08 * k, y + 0.08, fill="ink")
        canvas.rect(x - 0.09, y - 0.3, x + 0.09, y - 0.22, fill="ink", radius=0.02)
        if passenger < 4:
            person_y, person_x, size = STOPS[passenger][0] + 0.72, STOPS[passenger][1] + 0.26, 1.0
        else:
            person_x, person_y, size = x, y - 0.03, 0.75
        canvas.circle(person_x, person_y - 0.2 * size, 0.085 * size, fill="brown")
        canvas.sector(person_x, person_y, 0.15 * size, np.pi, 2 * np.pi, fill="purple")
        what = "to fetch" if passenger < 4 else "riding"
        canvas.hud(
            left=f"Taxi: passenger {what}, to {COLOURS[destination]}", right=f"step {int(state['elapsed_steps'])}"
        )
