"""Options and players that scripts about a network of `baselines.alphazero` share."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.alphazero import Args, evaluator, load
from baselines.report.searchers import Player, searcher

import torch  # isort: skip


def parser(description: str | None) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("network", help="a checkpoint of baselines.alphazero")
    found.add_argument("--simulations", type=int, nargs="+", default=[32, 400], help="of AlphaZero's search, per move")
    found.add_argument("--playouts", type=int, default=1000, help="of UCT, for each move")
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--bfloat16", action="store_true", help="twice as fast where the processor has it")
    return found


def players(given: argparse.Namespace) -> tuple[Args, dict[str, Player], Player]:
    """Options of the network's training, the network with each number of simulations, and UCT, on one thread."""
    torch.set_num_threads(1)
    network, args = load(given.network)
    evaluate = evaluator(network, torch.bfloat16 if given.bfloat16 else torch.float32)
    found = {f"AlphaZero, {n} simulations": searcher("puct", n, evaluate, 1) for n in given.simulations}
    return args, found, searcher("uct", given.playouts, None, 1)
