"""CVRP."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Entities, Field, param
from gpuzoo.envs.jumanji.instances import OfSizedInstances, Part, SizedConfig, members
from gpuzoo.render import CYCLE, Canvas


@dataclasses.dataclass(frozen=True)
class CVRPConfig(SizedConfig):
    """The customers and the vehicle, and what is rewarded."""

    num_nodes: int = param(20, low=1, high=1000, doc="customers of the largest instance")
    max_capacity: int = param(30, low=1, high=1_000_000, doc="what the vehicle carries")
    max_demand: int = param(10, low=2, high=1_000_000, doc="drawn demands are smaller than this")
    reward: Literal["dense", "sparse"] = param("dense", doc="when distances are paid: at each step, or at the end")


class CVRP(OfSizedInstances):
    """The capacitated vehicle routing problem: find short routes that bring each customer what it demands.

    Node 0 is the depot, and the others are customers. Each step drives to a node. A customer is visited once, when the
    vehicle still carries as much as the customer demands. The depot fills the vehicle up. Coordinates are drawn
    uniformly from the unit square and demands from 1 to ``max_demand`` - 1, or both are given.

    **Instances.** ``instances`` is a dataset with `coordinates`, (instances, num_nodes + 1, 2) in [0, 1], and
    `demands`, (instances, num_nodes + 1), integers up to ``max_capacity``, 0 for the depot. Each episode takes one of
    them at random, or always the one that ``instance`` names. Instances may be smaller than ``num_nodes``: `size` of
    the dataset, (instances,), says how many customers there are; the first ones count. ``size`` does the same for drawn
    instances. It may differ between envs, or be drawn anew for each episode by ``gpuzoo.Uniform``. Absent customers
    have the coordinates -1 and the demand 0, count as visited, and are never legal.

    **Actions.** `Discrete(num_nodes + 1)`: the node to drive to. The action mask holds the customers that were not
    visited and demand no more than is left, and the depot unless the vehicle is there.

    **Observation.** `Box(6 num_nodes + 6)`, float32: x and y of each node; demand of each node as a part of
    ``max_capacity``; whether it is still to be visited, which is true of the depot unless the vehicle is there; the
    last node; 2 ``num_nodes`` nodes of the route, beginning with the depot and filled up with it; what is left as a
    part of ``max_capacity``.

    **Reward.** Minus the distance from the last node to this one. With ``reward="sparse"`` only the last step is paid,
    with minus the length of all routes. An illegal action gives minus twice the size times the root of 2.

    **End.** All customers were visited and the vehicle is back at the depot, or the action was illegal, which changes
    nothing.
    """

    id = "CVRP-v1"
    Config = CVRPConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "Masks are no whole sectors; rows are long, so few envs observe at a time.",
    }
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 CVRP-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/cvrp/",
        "Toth and Vigo 2014": "https://doi.org/10.1137/1.9781611973594",
    }
    similar = (r"cvrp.*", r"CVRP.*", r"vrp", r"VRP.*")
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"100 customers": {"num_nodes": 100, "max_capacity": 50}}
    render_fps = 4

    def largest(self, cfg: CVRPConfig) -> int:
        return cfg.num_nodes

    def check(self, cfg: CVRPConfig) -> None:
        super().check(cfg)
        if cfg.max_capacity < cfg.max_demand:
            raise ValueError(
                f"{self.id}: max_capacity must be at least max_demand: {cfg.max_capacity} < {cfg.max_demand}."
            )

    def parts(self, cfg: CVRPConfig) -> dict[str, Part]:
        nodes = cfg.num_nodes + 1
        return {
            **super().parts(cfg),
            "coordinates": Part((nodes, 2), low=0.0, high=1.0),
            "demands": Part((nodes,), "int32", 0, cfg.max_capacity),
        }

    def fault(self, cfg: CVRPConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        return "" if instance["demands"][0] == 0 else "the demand of the depot, node 0, must be 0"

    def constants(self, cfg: CVRPConfig) -> dict[str, int]:
        nodes = cfg.num_nodes + 1
        return {**super().constants(cfg), "NODES": nodes, "ROUTE": 2 * cfg.num_nodes, "WORDS": -(-nodes // 64)}

    def observation_space(self, cfg: CVRPConfig, group: str) -> spaces.Box:
        n = cfg.num_nodes
        low = np.array([-1] * (2 * n + 2) + [0] * (4 * n + 4), np.float32)
        high = np.array([1] * (4 * n + 4) + [n] * (2 * n + 1) + [1], np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def action_space(self, cfg: CVRPConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_nodes + 1)

    def observation_names(self, cfg: CVRPConfig, group: str) -> dict[str, int]:
        nodes = cfg.num_nodes + 1
        return {
            "x and y of each node": 2 * nodes, "demand of each node": nodes, "whether it is still to be visited": nodes,
            "last node": 1, "route": 2 * cfg.num_nodes, "what the vehicle carries": 1,
        }  # fmt: skip

    def action_names(self, cfg: CVRPConfig, group: str) -> dict[str, int]:
        return {"depot": 1, "customer": cfg.num_nodes}

    def entities(self, cfg: CVRPConfig, group: str) -> Entities:
        nodes = cfg.num_nodes + 1
        return Entities(nodes, (2, 1, 1), pointers=(4 * nodes,), listed=tuple(range(4 * nodes + 1, 6 * nodes - 1)))

    def fields(self, cfg: CVRPConfig) -> dict[str, Field]:
        return {
            "coordinates": Field("float32", ("NODES", 2), "x and y of each node, -1 where there is none"),
            "demands": Field("int32", ("NODES",), "demand of each node"),
            "size": Field("int32", doc="number of customers"),
            "left": Field("uint64", ("WORDS",), "nodes that are still to be visited, a bit for each"),
            "trajectory": Field("int16", ("ROUTE",), "visited nodes in their order, then the depot"),
            "position": Field("int32", doc="the last node"),
            "capacity": Field("int32", doc="what the vehicle carries"),
            "num_total_visits": Field("int32", doc="number of visits, with that of the depot at the beginning"),
        }

    def render(self, cfg: CVRPConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, visits = int(state["size"]), int(state["num_total_visits"])
        places, demands = np.asarray(state["coordinates"]), np.asarray(state["demands"])
        left = members(np.asarray(state["left"]), size + 1)
        nodes = np.asarray(state["trajectory"])[:visits]
        nodes = np.append(nodes, 0) if visits > cfg.num_nodes * 2 else nodes
        canvas.background("paper")
        canvas.view(-0.04, -0.04, 1.04, 1.04, hud=True)
        canvas.rect(-0.03, -0.03, 1.03, 1.03, fill="white", outline="line", radius=0.02)
        routes = np.split(nodes, np.flatnonzero(nodes == 0)[1:])
        length = 0.0
        for k, route in enumerate(routes):
            closed = k + 1 < len(routes)
            path = places[np.append(route, 0) if closed else route]
            canvas.path(path, colour=CYCLE[k % len(CYCLE)], width=2.5)
            length += float(np.hypot(*np.diff(path, axis=0).T).sum())
        scale = max(0.5, min(1.0, 20 / size)) / max(int(demands.max()), 1)
        for k in range(1, size + 1):
            colour = "grey" if left[k] else "slate"
            radius = 0.008 + 0.016 * scale * float(demands[k])
            canvas.circle(float(places[k, 0]), float(places[k, 1]), radius, fill=colour)
        x, y = places[0]
        canvas.rect(x - 0.02, y - 0.02, x + 0.02, y + 0.02, fill="ink", radius=0.005)
        x, y = places[int(state["position"])]
        canvas.circle(float(x), float(y), 0.012, fill="white", outline="red", width=2.5)
        carries = f"load {int(state['capacity'])} of {cfg.max_capacity}"
        canvas.hud(left=f"{int((~left[1:]).sum())} of {size} customers   {carries}", right=f"length {length:.2f}")

    def presses(self, cfg: CVRPConfig, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float]]:
        x, y = np.asarray(state["coordinates"])[action].tolist()
        return [(x, y)]
