"""Games of a player against a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.snapshot import Snapshot

from ..report.searchers import Player, Score
from .position import Engine, Position


@torch.no_grad()
def match(
    game: str,
    player: Player,
    engine: Engine,
    *,
    games: int = 20,
    opening: int = 2,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    max_moves: int = 2000,
) -> Score:
    """A player's games against a program.

    Args:
        game: its id.
        player: as in `baselines.report.searchers`.
        engine: the program.
        games: how many; an even number. Each opening is played twice, with either of them in the first seat.
        opening: so many moves at the beginning are random.
        config: the game's parameters.
        seed: of the openings and of chance.
        max_moves: a game that lasts longer is drawn.

    Returns:
        Games that the player won, drew and lost.

    Raises:
        ValueError: an odd number of games.
        RuntimeError: the program ends, says nothing, or makes an illegal move.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games must be even, for each opening is played in either seat, and positive, not {games}.")
    begun = Simulator(gpuzoo.get(game), games // 2, device="cpu", autoreset_mode="disabled", **(config or {}))
    begun.reset(seed=seed)
    history: list[list[str]] = [[] for _ in range(games // 2)]
    for _ in range(opening):
        begun.random_actions()
        chosen = begun.arrays["action"][np.arange(games // 2), movers(begun), 0].tolist()
        for k, action in enumerate(chosen):
            history[k].append(position(begun, k, history[k]).name(action))
        begun.step()
    start = begun.snapshot()
    results = [_seat(begun, start, history, player, engine, seat, max_moves) for seat in range(2)]
    begun.close()
    points = np.concatenate(results)
    return Score(*(int((points == x).sum()) for x in (1, 0, -1)))


def movers(envs: Simulator) -> np.ndarray[Any, Any]:
    """Who is to move in each env."""
    return np.asarray(envs.arrays[str(envs.env.turn)]).astype(np.int64)


def position(envs: Simulator, k: int, history: list[str]) -> Position:
    """The position of an env after some moves."""
    state = {name: envs.arrays[name][k] for name in envs.program.fields}
    legal = np.flatnonzero(envs.arrays["action_mask"][k, movers(envs)[k]])
    return Position(envs.env, envs.cfg, state, legal.tolist(), history, k)


def _seat(
    envs: Simulator,
    start: Snapshot,
    begun: list[list[str]],
    player: Player,
    engine: Engine,
    seat: int,
    max_moves: int,
) -> np.ndarray[Any, Any]:
    """1, 0 or -1 for each game with the player in a seat."""
    envs.restore(start)
    history, given_up = [[*names] for names in begun], np.zeros(envs.num_envs, bool)
    for _ in range(max_moves):
        over = envs.arrays["ended"] | envs.arrays["waiting"] | given_up
        if over.all():
            break
        mover = movers(envs)
        mine = ~over & (mover == seat)
        chosen = player(envs).numpy() if mine.any() else np.zeros(envs.num_envs, np.int64)
        for k in np.flatnonzero(~over).tolist():
            now = position(envs, k, history[k])
            reply = int(chosen[k]) if mine[k] else engine.choose(now)
            if reply is None:
                given_up[k] = True
                continue
            history[k].append(now.name(reply))
            envs.arrays["action"][k, mover[k]] = reply
        envs.step(np.flatnonzero(~over & ~given_up))
    over = envs.arrays["ended"] | envs.arrays["waiting"]
    returns = np.sign(np.asarray(envs.arrays["final_return"])[:, seat])
    return np.where(given_up, 1, np.where(over, returns, 0))
