"""Games against the Monte-Carlo tree search of OpenSpiel (Lanctot et al. 2019), an opponent of known strength."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import torch
from numpy.typing import NDArray

from baselines.report.evaluation import Seat
from baselines.train.networks import Policy
from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.batch import BatchEnv


@torch.no_grad()
def play(
    game: str | type[EnvDef],
    spiel_name: str,
    policy: Policy | None,
    seat: int,
    games: int,
    simulations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Plays a turn-based game of two, which both libraries must number their actions alike in.

    The search is UCT with random play-outs, one for each simulation, and an exploration constant of 2; it knows when a
    position is won or lost for certain.

    Args:
        game: id of the game.
        spiel_name: what OpenSpiel calls it.
        policy: takes the likeliest moves; None acts at random.
        seat: of the policy, 0 or 1.
        games: how many, played side by side.
        simulations: of the search, for each move.
        seed: of all moves.

    Returns:
        (games,) 1, 0 or -1 for a win, a draw or a loss of the policy.

    Raises:
        RuntimeError: the rules of the two libraries differ.
    """
    rules = pyspiel.load_game(spiel_name)
    guess = pyspiel.RandomRolloutEvaluator(1, seed)
    bot = pyspiel.MCTSBot(rules, guess, 2.0, simulations, 100, True, seed, False)
    boards: list[Any] = [rules.new_initial_state() for _ in range(games)]
    env = BatchEnv(game, games, device="cpu", output="torch", autoreset_mode="disabled")
    (group,) = env.groups
    player = None if policy is None else Seat(group, slice(seat, seat + 1), policy, env)
    generator, ended = torch.Generator().manual_seed(seed), torch.ones(games, dtype=torch.bool)
    observations, _ = env.reset(seed=seed)
    while not all(board.is_terminal() for board in boards):
        actions = env.random_actions()
        mine = actions[group][:, seat] if player is None else player(observations[group], ended, True, generator)
        moves = mine.view(games).tolist()
        for k, board in enumerate(boards):
            if board.is_terminal():
                continue
            move = moves[k] if board.current_player() == seat else bot.step(board)
            actions[group][k] = move
            board.apply_action(move)
        observations, _, _, _, infos = env.step(actions)
        ended = infos["ended"]
        for k, board in enumerate(boards):
            if bool(ended[k]) and not board.is_terminal():
                raise RuntimeError(f"a game is over that goes on in OpenSpiel's {spiel_name}.")
    env.close()
    return np.array([np.sign(board.returns()[seat]) for board in boards])
