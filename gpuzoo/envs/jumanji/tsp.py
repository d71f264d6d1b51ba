"""TSP."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Entities, Field, param
from gpuzoo.envs.jumanji.instances import OfSizedInstances, Part, SizedConfig
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class TSPConfig(SizedConfig):
    """How many cities, and what is rewarded."""

    num_cities: int = param(20, low=1, high=1000, doc="cities of the largest instance")
    reward: Literal["dense", "sparse"] = param("dense", doc="when distances are paid: at each step, or at the end")


class TSP(OfSizedInstances):
    """The travelling salesman problem: find a short tour through all cities.

    Each step visits a city. The tour leads from the last city back to the first one. The coordinates of the cities are
    drawn uniformly from the unit square, or given.

    **Instances.** ``instances`` is a dataset with `coordinates`, (instances, num_cities, 2) in [0, 1]. Each episode
    takes one of them at random, or always the one that ``instance`` names. Instances may be smaller than
    ``num_cities``: `size` of the dataset, (instances,), says how many cities there are; the first ones count. ``size``
    does the same for drawn instances. It may differ between envs, or be drawn anew for each episode by
    ``gpuzoo.Uniform``. Absent cities have the coordinates -1, and are never legal.

    **Actions.** `Discrete(num_cities)`: the city to visit. The action mask holds those that were not visited.

    **Observation.** `Box(3 num_cities + 1)`, float32: x and y of each city; the last visited city, -1 at the beginning;
    the visited cities in their order, then -1.

    **Reward.** Minus the distance from the last city to this one, 0 at the first step; the last step also pays the way
    back to the first city. With ``reward="sparse"`` only the last step is paid, with minus the length of the tour. An
    illegal action gives minus the size times the root of 2.

    **End.** All cities were visited, or the action was illegal, which changes nothing.
    """

    id = "TSP-v1"
    Config = TSPConfig
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 TSP-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/tsp/",
        "Kwon et al. 2020": "https://arxiv.org/abs/2010.16011",
    }
    similar = (r"tsp.*", r"TSP.*", r"ATSP.*")
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"100 cities": {"num_cities": 100}}
    render_fps = 4

    def largest(self, cfg: TSPConfig) -> int:
        return cfg.num_cities

    def parts(self, cfg: TSPConfig) -> dict[str, Part]:
        return {**super().parts(cfg), "coordinates": Part((cfg.num_cities, 2), low=0.0, high=1.0)}

    def constants(self, cfg: TSPConfig) -> dict[str, int]:
        return {**super().constants(cfg), "WORDS": -(-cfg.num_cities // 64)}

    def observation_space(self, cfg: TSPConfig, group: str) -> spaces.Box:
        n = cfg.num_cities
        high = np.array([1.0] * (2 * n) + [n - 1] * (n + 1), np.float32)
        return spaces.Box(np.full(3 * n + 1, -1, np.float32), high, dtype=np.float32)

    def action_space(self, cfg: TSPConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_cities)

    def observation_names(self, cfg: TSPConfig, group: str) -> dict[str, int]:
        return {"x and y of each city": 2 * cfg.num_cities, "last city": 1, "visited cities": cfg.num_cities}

    def action_names(self, cfg: TSPConfig, group: str) -> dict[str, int]:
        return {"city": cfg.num_cities}

    def entities(self, cfg: TSPConfig, group: str) -> Entities:
        last, end = 2 * cfg.num_cities, 3 * cfg.num_cities + 1
        return Entities(cfg.num_cities, (2,), pointers=(last, last + 1), listed=tuple(range(last + 1, end)))

    def fields(self, cfg: TSPConfig) -> dict[str, Field]:
        return {
            "coordinates": Field("float32", ("num_cities", 2), "x and y of each city, -1 where there is none"),
            "size": Field("int32", doc="number of cities"),
            "left": Field("uint64", ("WORDS",), "cities that were not visited, a bit for each"),
            "trajectory": Field("int16", ("num_cities",), "visited cities in their order, then -1"),
            "position": Field("int32", doc="the last visited city, -1 at the beginning"),
            "num_visited": Field("int32", doc="number of visited cities"),
        }

    def render(self, cfg: TSPConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, visited = int(state["size"]), int(state["num_visited"])
        cities = np.asarray(state["coordinates"])[:size]
        tour = cities[np.asarray(state["trajectory"])[:visited]]
        canvas.background("paper")
        canvas.view(-0.04, -0.04, 1.04, 1.04, y_down=False, hud=True)
        canvas.rect(-0.03, -0.03, 1.03, 1.03, fill="white", outline="line", radius=0.02)
        whole = np.concatenate([tour, tour[:1]]) if visited == size else tour
        canvas.path(whole, colour="blue", width=2.5)
        radius = max(0.008, 0.016 * min(1.0, 20 / size))
        canvas.circles(cities, radius, "grey")
        canvas.circles(tour, radius, "blue")
        if visited:
            canvas.circle(float(tour[0, 0]), float(tour[0, 1]), 1.5 * radius, fill="green")
            canvas.circle(float(tour[-1, 0]), float(tour[-1, 1]), 1.5 * radius, fill="orange")
        length = float(np.hypot(*np.diff(whole, axis=0).T).sum())
        canvas.hud(left=f"city {visited} of {size}", right=f"length {length:.2f}")

    def presses(self, cfg: TSPConfig, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float]]:
        x, y = np.asarray(state["coordinates"])[action].tolist()
        return [(x, y)]
