"""Somebody who searches before each move.

With AlphaZero's network where one comes with the package for the game and its parameters, otherwise with random games
to the end (UCT).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.baselines import alphazero
from gpuzoo.baselines.report import pretrained
from gpuzoo.baselines.report.searchers import searcher
from gpuzoo.core.simulator import Simulator
from gpuzoo.search import Evaluate

SIMULATIONS = 200  #: of each move, with a network
PLAYOUTS = 1000  #: random games of each move, without one


def searching(envs: Simulator) -> Callable[[], NDArray[Any]]:
    """The best actions that a search finds in the envs as they are.

    Args:
        envs: of a game of two who move in turn.

    Returns:
        A function that searches: int64 (num_envs,), for who is to move in each env.
    """
    evaluate = network(envs)
    player = searcher("puct", SIMULATIONS, evaluate) if evaluate else searcher("uct", PLAYOUTS)
    return lambda: np.asarray(player(envs).cpu())


def network(envs: Simulator) -> Evaluate | None:
    """The network that comes with the package for these envs, or None."""
    try:
        found, args = alphazero.load(pretrained.network_of(envs.env), envs.device)
    except ValueError:
        return None
    same = type(envs.env).Config(**(args.config or {})) == envs.config(0)
    return alphazero.evaluator(found) if same else None
