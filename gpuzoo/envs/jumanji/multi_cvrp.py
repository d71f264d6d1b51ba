"""MultiCVRP."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Entities, Field, param
from gpuzoo.envs.jumanji.instances import OfSizedInstances, Part, SizedConfig
from gpuzoo.render import CYCLE, Canvas


@dataclasses.dataclass(frozen=True)
class MultiCVRPConfig(SizedConfig):
    """The customers and the vehicles, and what is rewarded."""

    num_customers: int = param(20, low=1, high=1000, doc="customers of the largest instance")
    num_vehicles: int = param(2, low=1, high=32, doc="number of vehicles")
    max_capacity: int = param(60, low=1, high=10_000, doc="what a vehicle carries")
    customer_demand_max: int = param(10, low=1, high=10_000, doc="no drawn demand is larger")
    map_max: float = param(10.0, low=0.0, doc="coordinates are drawn from 0 to this")
    max_start_window: float = param(10.0, low=0.0, doc="latest begin of a drawn time window")
    time_window_length: float = param(20.0, low=0.0, doc="length of drawn time windows")
    min_early_coef: float = param(0.0, low=0.0, doc="smallest drawn penalty of a unit of time too early")
    max_early_coef: float = param(0.2, low=0.0, doc="largest one")
    min_late_coef: float = param(0.0, low=0.0, doc="smallest drawn penalty of a unit of time too late")
    max_late_coef: float = param(1.0, low=0.0, doc="largest one")
    reward: Literal["dense", "sparse"] = param("dense", doc="when costs are paid: at each step, or at the end")


NAMES = ("max_capacity", "customer_demand_max", "map_max", "max_start_window")
#: Jumanji's values of `NAMES` by the numbers of customers and vehicles
SETTINGS: Mapping[tuple[int, int], tuple[float, ...]] = {
    (6, 2): (20, 10, 10.0, 10.0),
    (6, 3): (20, 20, 10.0, 10.0),
    (20, 2): (60, 10, 10.0, 10.0),
    (20, 3): (60, 15, 10.0, 10.0),
    **{(50, vehicles): (150, 5 * vehicles, 20.0, 20.0) for vehicles in (2, 3, 4, 5)},
    **{(100, vehicles): (300, 5 * vehicles, 20.0, 40.0) for vehicles in (2, 3, 4, 5)},
    (150, 5): (180, 10, 20.0, 60.0),
}
FIXED = {"min_early_coef": 0.1, "max_early_coef": 0.1, "min_late_coef": 0.5, "max_late_coef": 0.5}


class MultiCVRP(OfSizedInstances):
    """Several vehicles bring customers what they demand, on short routes and at the right time.

    Node 0 is the depot, and the others are customers. In each step every vehicle drives to a node, or stays where it
    is. It serves a customer that still demands something, no more than the vehicle carries. The depot fills a vehicle
    up. Each vehicle has a clock of its own, which advances by the distance that it drives. A vehicle that comes before
    a customer's time window pays for each unit of time that it is too early. One that comes after it pays for each unit
    that it is too late.

    **Instances.** Coordinates are drawn from 0 to ``map_max``; begins of time windows from 0 to ``max_start_window``;
    penalties from their ranges. Demands are drawn from 0 to ``customer_demand_max`` - 1, then scaled so that they would
    fill all vehicles, rounded down, and cut off at ``customer_demand_max``. A customer may demand nothing. As in
    Jumanji, the numbers of customers and vehicles choose the other parameters, where those are not given: 6 customers
    with 2 or 3 vehicles, 20 with 2 or 3, 50 or 100 with 2 to 5, 150 with 5.

    ``instances`` is a dataset with `coordinates`, (instances, num_customers + 1, 2), not negative, and `demands`,
    `window_start`, `window_end`, `early_coef` and `late_coef`, (instances, num_customers + 1); the depot's demand and
    coefficients are 0. Each episode takes one of them at random, or always the one that ``instance`` names. Instances
    may be smaller than ``num_customers``: `size` of the dataset, (instances,), says how many customers there are; the
    first ones count. ``size`` does the same for drawn instances. It may differ between envs, or be drawn anew for each
    episode by ``gpuzoo.Uniform``. Absent customers have the coordinates -1, and zeros otherwise.

    **Actions.** `Discrete(num_customers + 1)`: the node to drive to. The action mask holds the customers that demand
    something, no more than the vehicle carries, and the depot. A vehicle with an illegal action goes to the depot. Of
    several vehicles with the same customer the one of the lowest number goes there, the others to the depot.

    **Observation.** `Box`, float32. Of the nodes: x and y of each; then demands, begins of time windows, their ends,
    penalties for early and for late service. Of the vehicle, then of the others in their order: x, y, time, what it
    carries.

    **State.** Jumanji's observation: the same with the vehicles in their order.

    **Reward.** All vehicles get minus the sum of all distances and penalties. With ``reward="sparse"`` the last step
    pays this for the whole episode, and other steps pay 0. If the limit of steps ends the episode, the last step
    instead pays minus what it would cost to serve each remaining customer by a tour of its own, one after the other.
    For the penalties, each of them is served at the mean of the vehicles' times plus the length of all these tours.

    **End.** All demands are served and all vehicles are at the depot, or there were 2 ``num_customers`` steps, in
    a smaller instance twice its size.

    **In Jumanji** one agent acts for all vehicles.
    """

    id = "MultiCVRP-v0"
    Config = MultiCVRPConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "The masks of an env begin and end inside of sectors.",
    }
    invalid_action = 0
    action_mask = True
    chooses = True
    interaction = "cooperative"
    observes_apart = True
    reference = "jumanji==1.1.2 MultiCVRP-v0"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/multi_cvrp/",
        "Zhang et al. 2020": "https://doi.org/10.1016/j.trc.2020.102861",
    }
    similar = (r"[Mm]ulti_?[Cc][Vv][Rr][Pp].*", r"MVRPSTW.*", r"vrptw", r"VRPTW.*")
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "100 customers, 5 vehicles": {"num_customers": 100, "num_vehicles": 5}
    }
    render_fps = 4

    def agents(self, cfg: MultiCVRPConfig) -> dict[str, int]:
        return {"vehicle": cfg.num_vehicles}

    def lanes(self, cfg: MultiCVRPConfig) -> int:
        return 32

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        if not {"num_customers", "num_vehicles"} & options.keys():
            return super().parameters_of(options)
        numbers = {
            name: options.get(name, getattr(MultiCVRPConfig, name)) for name in ("num_customers", "num_vehicles")
        }
        for known, values in SETTINGS.items():
            if known == tuple(numbers.values()):
                fixed = FIXED if known == (150, 5) else {}
                options = {**dict(zip(NAMES, values, strict=True)), **fixed, **options}
        return super().parameters_of(options)

    def largest(self, cfg: MultiCVRPConfig) -> int:
        return cfg.num_customers

    def check(self, cfg: MultiCVRPConfig) -> None:
        super().check(cfg)
        if cfg.max_capacity < cfg.customer_demand_max:
            raise ValueError(
                f"{self.id}: max_capacity must be at least customer_demand_max: {cfg.max_capacity} < "
                f"{cfg.customer_demand_max}."
            )
        for kind in ("early", "late"):
            low, high = getattr(cfg, f"min_{kind}_coef"), getattr(cfg, f"max_{kind}_coef")
            if low > high:
                raise ValueError(f"{self.id}: min_{kind}_coef must be at most max_{kind}_coef: {low:g} > {high:g}.")

    def parts(self, cfg: MultiCVRPConfig) -> dict[str, Part]:
        nodes = cfg.num_customers + 1
        times = ("window_start", "window_end", "early_coef", "late_coef")
        return {
            **super().parts(cfg),
            "coordinates": Part((nodes, 2), low=0.0),
            "demands": Part((nodes,), "int32", 0, cfg.max_capacity),
            **{name: Part((nodes,), low=0.0) for name in times},
        }

    def fault(self, cfg: MultiCVRPConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        if any(instance[name][0] for name in ("demands", "early_coef", "late_coef")):
            return "demand and coefficients of the depot, node 0, must be 0"
        return (
            "" if (instance["window_start"] <= instance["window_end"]).all() else "a time window ends before it begins"
        )

    def constants(self, cfg: MultiCVRPConfig) -> dict[str, int]:
        nodes = cfg.num_customers + 1
        return {**super().constants(cfg), "NODES": nodes, "ROUTE": 2 * cfg.num_customers, "WORDS": -(-nodes // 64)}

    def _box(self, cfg: MultiCVRPConfig) -> spaces.Box:
        nodes = cfg.num_customers + 1
        given = bool(cfg.instances)
        place = np.inf if given else cfg.map_max
        end = np.inf if given else cfg.max_start_window + cfg.time_window_length
        early, late = (np.inf if given else high for high in (cfg.max_early_coef, cfg.max_late_coef))
        high = [place] * (2 * nodes) + [cfg.max_capacity] * nodes + [end] * (2 * nodes)
        high += [early] * nodes + [late] * nodes + [place, place, np.inf, cfg.max_capacity] * cfg.num_vehicles
        low = [-1] * (2 * nodes) + [0] * (5 * nodes + 4 * cfg.num_vehicles)
        return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)

    def observation_space(self, cfg: MultiCVRPConfig, group: str) -> spaces.Box:
        return self._box(cfg)

    def state_space(self, cfg: MultiCVRPConfig) -> spaces.Box:
        return self._box(cfg)

    def action_space(self, cfg: MultiCVRPConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_customers + 1)

    def observation_names(self, cfg: MultiCVRPConfig, group: str) -> dict[str, int]:
        nodes = cfg.num_customers + 1
        names = ("demand", "begin of time window", "end of time window", "early penalty", "late penalty")
        who = ["the vehicle itself", *(f"other vehicle {k}" for k in range(1, cfg.num_vehicles))]
        return {
            "x and y of each node": 2 * nodes,
            **{f"{name} of each node": nodes for name in names},
            **{f"{one}: x, y, time, what it carries": 4 for one in who},
        }

    def action_names(self, cfg: MultiCVRPConfig, group: str) -> dict[str, int]:
        return {"depot": 1, "customer": cfg.num_customers}

    def entities(self, cfg: MultiCVRPConfig, group: str) -> Entities:
        return Entities(cfg.num_customers + 1, (2, 1, 1, 1, 1, 1))

    def fields(self, cfg: MultiCVRPConfig) -> dict[str, Field]:
        node, vehicle = ("NODES",), ("agents",)
        return {
            "coordinates": Field("float32", ("NODES", 2), "x and y of each node, -1 where there is none"),
            "demands": Field("int32", node, "what each node still demands"),
            "start": Field("float32", node, "begin of each node's time window"),
            "end": Field("float32", node, "its end"),
            "early": Field("float32", node, "penalty of a unit of time too early"),
            "late": Field("float32", node, "penalty of a unit of time too late"),
            "size": Field("int32", doc="number of customers"),
            "num_left": Field("int32", doc="customers that demand something"),
            "position": Field("int32", vehicle, "node of each vehicle"),
            "capacity": Field("int32", vehicle, "what it carries"),
            "local_time": Field("float32", vehicle, "its time"),
            "distance": Field("float32", vehicle, "the distance that it has driven"),
            "time_penalty": Field("float32", vehicle, "the penalties that it has paid"),
            "order": Field("int16", ("agents", "ROUTE"), "its nodes in their order, from the depot on, then the depot"),
            "step_count": Field("int32", doc="number of steps, plus 1"),
            "next": Field("int32", vehicle, "where each vehicle goes", scratch=True),
        }

    def infos(self, cfg: MultiCVRPConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        sums = {name: state[name].sum(1) for name in ("distance", "time_penalty")}
        return {**sums, "num_left": state["num_left"]}

    def render(self, cfg: MultiCVRPConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, steps = int(state["size"]), int(state["step_count"])
        places, demands = np.asarray(state["coordinates"])[: size + 1], np.asarray(state["demands"])
        side = max(float(places.max()), 1e-6)
        places = places / side
        canvas.background("paper")
        canvas.view(-0.06, -0.06, 1.06, 1.06, hud=True)
        canvas.rect(-0.045, -0.045, 1.045, 1.045, fill="white", outline="line", radius=0.02)
        colours = [CYCLE[v % len(CYCLE)] for v in range(cfg.num_vehicles)]
        served: dict[int, str] = {}
        for v, colour in enumerate(colours):
            route = np.asarray(state["order"])[v, : min(steps, 2 * cfg.num_customers)]
            route = np.append(route, state["position"][v])
            served |= dict.fromkeys(route.tolist(), colour)
            canvas.path(places[route], colour=colour, width=2.5)
        time = float(np.mean(np.asarray(state["local_time"])))
        scale = max(0.5, min(1.0, 20 / size)) / max(cfg.customer_demand_max, 1)
        for k in range(1, size + 1):
            x, y = places[k].tolist()
            if demands[k] > 0:
                window = "sand" if time < state["start"][k] else "red" if time > state["end"][k] else "green"
                radius = 0.012 + 0.02 * scale * float(demands[k])
                canvas.circle(x, y, radius, fill="slate", outline=window, width=3.0)
            else:
                canvas.circle(x, y, 0.011, fill=served.get(k, "line"))
        x, y = places[0].tolist()
        canvas.rect(x - 0.022, y - 0.022, x + 0.022, y + 0.022, fill="ink", radius=0.005)
        for v, colour in enumerate(colours):
            x, y = places[int(state["position"][v])].tolist()
            x += 0.03 * (v - (cfg.num_vehicles - 1) / 2)
            canvas.rect(
                x - 0.022, y - 0.015, x + 0.022, y + 0.015, fill=colour, outline="white", width=1.4, radius=0.006
            )
        cost = float(np.sum(state["distance"]) + np.sum(state["time_penalty"]))
        canvas.hud(left=f"{int(state['num_left'])} customers left", right=f"time {time:.1f}   cost {cost:.2f}")
