"""How far players are from the best known solutions of combinatorial games: random, greedy, trained, and OR-Tools.

    pip install ortools
    python scripts/best_known.py [ID ...] [--instances 100] [--seconds 1] [--checkpoint ID=FILE ...]
    python scripts/best_known.py TSP-v1 --config '{"num_cities": 50}'   # agents that were trained with 20 cities

The game draws the instances, and all play the same ones. OR-Tools (Google) has so many seconds of one thread for each:
its routing library with guided local search for TSP and CVRP, its branch and bound for Knapsack, its CP-SAT for
JobShop. The column "proven" says of how many instances it proved that nothing is better. Greedy heuristics drive to the
nearest legal city or customer, pack the item of the largest value by weight, and begin the job with the most work left.
A trained agent, by default the pretrained one, takes its likeliest actions. The gap is that of the mean to OR-Tools'.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gpuzoo
from gpuzoo import Simulator

Numbers = NDArray[Any]
State = Mapping[str, Numbers]
#: gives actions from the state, the action mask and the observation of all envs
Player = Callable[[State, Numbers, Numbers], Numbers]
#: gives the best return that it finds in so many seconds, and whether it is proven to be the best
Solver = Callable[[State, float], tuple[float, bool]]

# ---- heuristics ----


def random_choice(seed: int) -> Player:
    rng = np.random.default_rng(seed)

    def player(state: State, mask: Numbers, observation: Numbers) -> Numbers:
        return np.where(mask, rng.random(mask.shape), -1).argmax(-1)

    return player


def nearest(start: int) -> Player:
    """The nearest node of those that are legal; ``start`` first, and the depot only where nothing else is legal."""

    def player(state: State, mask: Numbers, observation: Numbers) -> Numbers:
        here = state["position"]
        places = state["coordinates"]
        at = places[np.arange(len(here)), np.maximum(here, 0)]
        distance = np.where(mask, np.hypot(*np.moveaxis(places - at[:, None], -1, 0)), math.inf)
        if "demands" in state:
            distance[:, 0] = np.where(mask[:, 0], 1e9, math.inf)
        return np.where(here < 0, start, distance.argmin(-1))

    return player


def densest(state: State, mask: Numbers, observation: Numbers) -> Numbers:
    return np.where(mask, state["values"] / np.maximum(state["weights"], 1e-9), -1).argmax(-1)


def most_work_left(state: State, mask: Numbers, observation: Numbers) -> Numbers:
    durations = np.maximum(state["ops_durations"], 0)
    waiting = np.arange(durations.shape[-1]) >= state["next_op"][..., None]
    work = (durations * waiting).sum(-1)
    work = np.concatenate([work, np.zeros_like(work[:, :1])], -1)  # to do nothing is the last choice
    return np.where(mask, work[:, None], -1).argmax(-1)


# ---- OR-Tools ----


def routes(places: Numbers, demands: Numbers | None, capacity: int, seconds: float) -> float:
    """The length of the routes that guided local search finds; one vehicle without demands."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    scale = 1_000_000
    distance = np.rint(np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) * scale).astype(int)
    nodes = len(places)
    manager = pywrapcp.RoutingIndexManager(nodes, 1 if demands is None else nodes - 1, 0)
    routing = pywrapcp.RoutingModel(manager)
    cost = routing.RegisterTransitCallback(lambda a, b: int(distance[manager.IndexToNode(a), manager.IndexToNode(b)]))
    routing.SetArcCostEvaluatorOfAllVehicles(cost)
    if demands is not None:
        load = routing.RegisterUnaryTransitCallback(lambda a: int(demands[manager.IndexToNode(a)]))
        routing.AddDimension(load, 0, capacity, True, "load")
    search = pywrapcp.DefaultRoutingSearchParameters()
    search.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    search.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    search.time_limit.FromMilliseconds(int(seconds * 1000))
    return routing.SolveWithParameters(search).ObjectiveValue() / scale


def solve_tsp(one: State, seconds: float) -> tuple[float, bool]:
    return -routes(one["coordinates"][: int(one["size"])], None, 0, seconds), False


def solve_cvrp(one: State, seconds: float) -> tuple[float, bool]:
    nodes = int(one["size"]) + 1
    capacity = int(one["capacity"])  # the vehicle is full at the beginning
    return -routes(one["coordinates"][:nodes], one["demands"][:nodes], capacity, seconds), False


def solve_knapsack(one: State, seconds: float) -> tuple[float, bool]:
    from ortools.algorithms.python import knapsack_solver

    scale = 10_000_000
    size = int(one["size"])
    values, weights = (one[name][:size].astype(float) for name in ("values", "weights"))
    solver = knapsack_solver.KnapsackSolver(
        knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER, "items"
    )
    solver.set_time_limit(seconds)
    budget = int(float(one["remaining_budget"]) * scale)  # nothing is packed at the beginning
    solver.init(np.rint(values * scale).astype(int).tolist(), [np.ceil(weights * scale).astype(int).tolist()], [budget])
    return solver.solve() / scale, solver.is_solution_optimal()


def solve_job_shop(one: State, seconds: float) -> tuple[float, bool]:
    from ortools.sat.python import cp_model

    model, ends = cp_model.CpModel(), []
    horizon = int(np.maximum(one["ops_durations"], 0).sum())
    of_machine: dict[int, list[Any]] = {}
    for machines, durations in zip(one["ops_machine_ids"], one["ops_durations"], strict=True):
        before: Any = 0
        for machine, duration in zip(machines.tolist(), durations.tolist(), strict=True):
            if machine >= 0:
                begin = model.new_int_var(0, horizon, "")
                of_machine.setdefault(machine, []).append(model.new_fixed_size_interval_var(begin, duration, ""))
                model.add(begin >= before)
                before = begin + duration
        ends.append(before)
    for intervals in of_machine.values():
        model.add_no_overlap(intervals)
    makespan = model.new_int_var(0, horizon, "")
    model.add_max_equality(makespan, ends)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    status = solver.solve(model)
    return -solver.objective_value, status == cp_model.OPTIMAL


#: by game: the fields that make an instance, the heuristic and the solver
GAMES: dict[str, tuple[tuple[str, ...], Player, Solver]] = {
    "TSP-v1": (("size", "coordinates"), nearest(0), solve_tsp),
    "CVRP-v1": (("size", "coordinates", "demands"), nearest(0), solve_cvrp),
    "Knapsack-v1": (("size", "weights", "values"), densest, solve_knapsack),
    "JobShop-v0": (("size", "ops_machine_ids", "ops_durations"), most_work_left, solve_job_shop),
}

# ---- playing ----


def trained(env_id: str, file: str, config: Mapping[str, Any]) -> Player:
    """The likeliest actions of a policy."""
    from baselines.report import match

    import torch  # isort: skip

    policy = next(iter(match.arrange(env_id, {}, file, config).players.values()))
    assert policy is not None

    def player(state: State, mask: Numbers, observation: Numbers) -> Numbers:
        with torch.no_grad():
            out, _ = policy.act(torch.from_numpy(observation)[None])
            chosen = policy.actions.greedy(out, torch.from_numpy(mask.reshape(1, len(mask), -1)))[0].numpy()
        return chosen if mask.ndim > 2 else chosen[:, 0]

    return player


def returns(env_id: str, dataset: dict[str, Numbers], player: Player, config: Mapping[str, Any]) -> Numbers:
    """(instances,), the return of an episode on each."""
    count = len(dataset["size"])
    envs = gpuzoo.make_vec(
        env_id, count, device="cpu", threads=1, instances=dataset, instance=[float(k) for k in range(count)], **config
    )
    observation, _ = envs.reset(seed=0)
    total, going = np.zeros(count), np.ones(count, bool)
    parts = getattr(envs.single_action_space, "nvec", None)
    while going.any():
        mask = np.asarray(envs.action_mask) != 0
        if parts is not None:
            mask = mask.reshape(count, len(parts), -1)
        state = {name: np.asarray(array) for name, array in envs.simulator.state().items()}
        action = player(state, mask, observation["observation"])
        observation, reward, terminated, truncated, _ = envs.step(action.astype(envs.action_space.dtype))
        total += reward * going
        going &= ~(terminated | truncated)
    envs.close()
    return total


def drawn(env_id: str, count: int, config: Mapping[str, Any]) -> tuple[dict[str, Numbers], list[State]]:
    """Instances as a dataset, and the state of each at the beginning."""
    simulator = Simulator(gpuzoo.get(env_id), count, device="cpu", threads=1, **config)
    simulator.reset(seed=1)
    state = {name: np.asarray(array).copy() for name, array in simulator.state().items()}
    simulator.close()
    return {name: state[name] for name in GAMES[env_id][0]}, [{n: a[k] for n, a in state.items()} for k in range(count)]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", metavar="ID", default=list(GAMES))
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1.0, help="of OR-Tools for each instance")
    parser.add_argument("--checkpoint", nargs="*", default=[], metavar="ID=FILE", help="other agents than pretrained")
    parser.add_argument("--config", type=json.loads, default={}, metavar="JSON", help="parameters of the games")
    chosen = parser.parse_args(words)
    agents = dict.fromkeys(GAMES, "pretrained") | dict(text.split("=", 1) for text in chosen.checkpoint)
    print("| game | player | mean return | gap | proven |\n|:--|:--|--:|--:|--:|")
    for env_id in chosen.games:
        if env_id not in GAMES:
            parser.error(f"there is no solver for {env_id}; there are {', '.join(GAMES)}.")
        dataset, instances = drawn(env_id, chosen.instances, chosen.config)
        _, heuristic, solver = GAMES[env_id]
        found = [solver(one, chosen.seconds) for one in instances]
        best = float(np.mean([value for value, _ in found]))
        print(
            f"| {env_id} | OR-Tools | {best:.3f} | | {sum(proven for _, proven in found)} of {len(found)} |", flush=True
        )
        players = {"random": random_choice(0), "greedy": heuristic}
        players["trained"] = trained(env_id, agents[env_id], chosen.config)
        for name, player in players.items():
            mean = float(returns(env_id, dataset, player, chosen.config).mean())
            print(f"| | {name} | {mean:.3f} | {abs(mean - best) / abs(best):.1%} | |", flush=True)


if __name__ == "__main__":
    main()
