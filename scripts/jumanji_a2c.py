"""Jumanji's own A2C, with its own networks and settings, for as long as our agents learned.

    pip install "jumanji[train]==1.1.2" "jax==0.6.2" "jaxlib==0.6.2"    # newer versions of JAX lack what it calls
    JAX_PLATFORMS=cpu python scripts/jumanji_a2c.py [ID ...] [--seconds S | --whole] [--episodes N]

A game's A2C learns for the CPU seconds that `baselines/results` reports for a seed of ours, or for ``--seconds``, or as
many steps as Jumanji's settings say (``--whole``). Compilation doesn't count. Then it plays episodes, once with
sampled actions and once with the likeliest ones. A line of JSON per game says what it reached, and how many CPU hours
its whole training would take. Pin it to one core (`taskset -c 0`): then CPU seconds are seconds.

Returns are per agent, as ours are: Jumanji's trainer adds up those of LevelBasedForaging, Connector and
SearchAndRescue. Where our agents learn a smaller game than the default one, so does A2C.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import jumanji
import jumanji.training
from hydra import compose, initialize_config_dir
from jumanji.environments.routing.cleaner.generator import RandomGenerator as CleanerGenerator
from jumanji.environments.routing.mmst.generator import SplitRandomGenerator
from jumanji.environments.routing.robot_warehouse.generator import RandomGenerator as WarehouseGenerator
from jumanji.environments.routing.sokoban.generator import SimpleSolveGenerator
from jumanji.training.evaluator import Evaluator
from jumanji.training.setup_train import setup_agent, setup_training_state
from jumanji.wrappers import MultiToSingleWrapper, VmapAutoResetWrapper

RESULTS = Path(__file__).parent.parent / "baselines" / "results"
SETTINGS = Path(jumanji.training.__file__).parent / "configs"
#: our ids whose settings Jumanji keeps under another name than the id in lower case
NAMES = {
    "BinPack-v2": "bin_pack", "FlatPack-v0": "flat_pack", "Game2048-v0": "game_2048",
    "GraphColoring-v1": "graph_coloring", "JobShop-v0": "job_shop", "LevelBasedForaging-jumanji-v0": "lbf",
    "MultiCVRP-v0": "multi_cvrp", "PacMan-v1": "pac_man", "RobotWarehouse-jumanji-v0": "robot_warehouse",
    "RubiksCube-partly-scrambled-v0": "rubiks_cube", "SearchAndRescue-v0": "search_and_rescue",
    "SlidingTilePuzzle-v0": "sliding_tile_puzzle", "Sudoku-v0": "sudoku", "Sudoku-very-easy-v0": "sudoku",
}  # fmt: skip
SAME_NAME = (
    "Cleaner-v0", "Connector-v3", "CVRP-v1", "Knapsack-v1", "Maze-v0", "Minesweeper-v0", "MMST-v0", "Snake-v1",
    "Sokoban-v0", "Tetris-v0", "TSP-v1",
)  # fmt: skip
NAMES |= {game: game.split("-")[0].lower() for game in SAME_NAME}

#: the smaller games, and those levels that need no download
SMALLER: dict[str, Any] = {
    "Cleaner-v0": lambda: {"generator": CleanerGenerator(num_rows=6, num_cols=6, num_agents=3), "time_limit": 100},
    "MMST-v0": lambda: {
        "generator": SplitRandomGenerator(
            num_nodes=12, num_edges=18, max_degree=5, num_agents=2, num_nodes_per_agent=3, max_step=70
        )
    },
    "RobotWarehouse-jumanji-v0": lambda: {
        "generator": WarehouseGenerator(
            shelf_rows=2, shelf_columns=3, column_height=2, num_agents=2, sensor_range=1, request_queue_size=8
        )
    },
    "Sokoban-v0": lambda: {"generator": SimpleSolveGenerator()},
}


def learn(game: str, seconds: float | None, seed: int, episodes: int) -> dict[str, Any]:
    """Trains and plays. ``seconds``: None for Jumanji's whole training."""
    with initialize_config_dir(config_dir=str(SETTINGS), version_base=None):
        settings = compose("config.yaml", overrides=[f"env={NAMES[game]}", "agent=a2c"])
    name = "Sudoku-v0" if game == "Sudoku-v0" else settings.env.registered_version
    raw = jumanji.make(name, **SMALLER.get(game, dict)())
    together = NAMES[game] in ("lbf", "connector", "search_and_rescue")
    agents = getattr(raw, "num_agents", None) or getattr(raw, "num_searchers", 1) if together else 1
    raw = MultiToSingleWrapper(raw) if together else raw
    env = VmapAutoResetWrapper(raw)
    agent = setup_agent(settings, env)
    state = setup_training_state(env, agent, jax.random.PRNGKey(seed))
    evaluators = {how: Evaluator(raw, agent, episodes, how == "sampled") for how in ("sampled", "greedy")}

    def play(how: str) -> float:
        found = evaluators[how].run_evaluation(state.params_state, jax.random.PRNGKey(seed + 1000))
        return float(jax.tree_util.tree_map(lambda x: x[0], found)["episode_return"]) / agents

    began = time.perf_counter()
    untrained = play("sampled")
    epoch = jax.pmap(agent.run_epoch, axis_name="devices")
    jax.block_until_ready(epoch(state))
    compiled = time.perf_counter() - began

    training = settings.env.training
    whole = training.num_epochs * training.num_learner_steps_per_epoch
    each = training.n_steps * training.total_batch_size
    done, spent = 0, 0.0
    while done < whole and (seconds is None or spent < seconds):
        at = time.process_time()
        state, _ = epoch(state)
        jax.block_until_ready(state)
        spent += time.process_time() - at
        done += 1
    return {
        "game": game, "cpu_seconds": round(spent, 1), "env_steps": done * each, "whole_env_steps": whole * each,
        "whole_cpu_hours": round(spent / done * whole / 3600, 1), "compile_seconds": round(compiled),
        "untrained": untrained, **{how: play(how) for how in evaluators},
    }  # fmt: skip


def ours(game: str) -> tuple[float, dict[str, float]]:
    """Seconds of a seed, and mean returns, of our agents."""
    found = json.loads((RESULTS / f"{game}.json").read_text())
    means = {scenario: next(iter(groups.values()))["mean"] for scenario, groups in found["scores"].items()}
    return found["seconds"] / len(found["seeds"]), means


def main() -> None:
    """Learns one game after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("games", nargs="*", metavar="ID", choices=[*NAMES, []], help="games (default: all)")
    parser.add_argument("--seconds", type=float, help="CPU seconds of learning (default: as long as ours)")
    parser.add_argument("--whole", action="store_true", help="as many steps as Jumanji's settings say")
    parser.add_argument("--episodes", type=int, default=200, help="of an evaluation (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for game in args.games or sorted(NAMES):
        seconds, means = ours(game)
        budget = None if args.whole else args.seconds or seconds
        print(json.dumps({**learn(game, budget, args.seed, args.episodes), "ours": means}), flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main()
