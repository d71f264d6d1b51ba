"""Players of turn-based games that search, and matches between them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.search import Evaluate, Search, Settings
from gpuzoo.search.settings import Rule
from gpuzoo.tensors import as_tensor

from .tournament import Table, bradley_terry

#: gets the envs of a match, and returns an action for who moves in each of them, int64 (envs,)
Player = Callable[[Simulator], Tensor]


def random_player(envs: Simulator) -> Tensor:
    """A legal action at random."""
    envs.random_actions()
    turn = as_tensor(envs.arrays[str(envs.env.turn)]).long()
    return as_tensor(envs.arrays["action"])[:, :, 0].long().gather(1, turn[:, None])[:, 0]


def searcher(
    rule: Rule, simulations: int, evaluate: Evaluate | None = None, threads: int | None = None, seed: int = 0
) -> Player:
    """A player that searches without noise, at its strongest.

    Args:
        rule: of `gpuzoo.search.Search`.
        simulations: of each move; with ``"uct"`` as many random games.
        evaluate: a network; None with ``"uct"``.
        threads: of a CPU.
        seed: of the search.
    """
    made: dict[int, Search] = {}

    def play(envs: Simulator) -> Tensor:
        search = made.get(envs.num_envs)
        if search is None:
            settings = Settings(gumbel_scale=0.0, value_range=(-1.0, 1.0))
            given: dict[str, Any] = {"device": envs.device, "threads": threads, "settings": settings, "seed": seed}
            given |= {name: value for name, value in envs.constants().items()}
            search = Search(envs.env, envs.num_envs, simulations=simulations, rule=rule, **given)
            made.clear()
            made[envs.num_envs] = search
        return search.run(envs, evaluate).action

    return play


@dataclasses.dataclass(frozen=True)
class Score:
    """Games that the first player of a match won, drew and lost."""

    wins: int
    draws: int
    losses: int

    @property
    def points(self) -> float:
        """Share of the points, where a draw is worth one half."""
        return (self.wins + self.draws / 2) / (self.wins + self.draws + self.losses)


@torch.no_grad()
def match(
    game: str,
    one: Player,
    other: Player,
    *,
    games: int = 100,
    opening: int = 2,
    config: Mapping[str, Any] | None = None,
    device: str = "cpu",
    seed: int = 0,
    max_moves: int = 1000,
) -> Score:
    """Two players play against each other, all games at the same time.

    Args:
        game: its id.
        one: the player whose score it is.
        other: the other one.
        games: how many; an even number. Each opening is played twice, with either of them in the first seat.
        opening: so many moves at the beginning are random, as players without noise would repeat one game.
        config: the game's parameters.
        device: of the envs.
        seed: of the openings.
        max_moves: a game that lasts longer is drawn.

    Raises:
        ValueError: an odd number of games.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games must be even, for each opening is played in either seat, and positive, not {games}.")
    half = games // 2
    envs = Simulator(gpuzoo.get(game), games, device=device, autoreset_mode="disabled", **(config or {}))
    begun = Simulator(gpuzoo.get(game), half, device=device, autoreset_mode="disabled", **(config or {}))
    try:
        begun.reset(seed=seed)
        begun.rollout(opening)
        envs.restore(begun.snapshot(np.tile(np.arange(half), 2)))
        turn, action = as_tensor(envs.arrays[str(envs.env.turn)]), as_tensor(envs.arrays["action"])
        first = torch.arange(games, device=turn.device) >= half  # the seat of `one`
        waiting, ended = as_tensor(envs.arrays["waiting"]), as_tensor(envs.arrays["ended"])
        for _ in range(max_moves):
            if bool((waiting | ended).all()):
                break
            chosen = torch.where(turn.bool() == first, one(envs), other(envs))
            action.copy_(chosen.view(-1, 1, 1).expand_as(action))
            envs.step()
        over = waiting | ended
        returns = as_tensor(envs.arrays["final_return"]).gather(1, first.long()[:, None])[:, 0]
        result = torch.where(over, returns.sign(), 0)
        return Score(*(int((result == x).sum()) for x in (1, 0, -1)))
    finally:
        begun.close()
        envs.close()


def league(game: str, players: Mapping[str, Player], **options: Any) -> Table:
    """All players play each other; ratings as in `tournament`, the last player's is 0.

    Args:
        game: its id.
        players: by name.
        options: of `match`.
    """
    names, games = [*players], options.get("games", 100)
    wins, draws = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for a, b in itertools.combinations(range(len(names)), 2):
        score = match(game, players[names[a]], players[names[b]], **options)
        wins[a, b], wins[b, a], draws[a, b], draws[b, a] = score.wins, score.losses, score.draws, score.draws
        assert score.wins + score.draws + score.losses == games
    elo = rated(wins, draws)
    return Table(names, [None] * len(names), elo, wins, draws)


def rated(wins: np.ndarray[Any, Any], draws: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Elo from games, with one more drawn game between each pair that played; the last player's is 0."""
    credit = 0.5 * ((wins + wins.T + draws) > 0)
    elo: np.ndarray[Any, Any] = 400 * np.log10(bradley_terry(wins + draws / 2 + credit))
    return elo - elo[-1]


def lines_of(table: Table) -> Sequence[str]:
    """The ratings, for people."""
    order = np.argsort(-table.elo)
    points = (table.wins + table.draws / 2).sum(1)
    played = (table.wins + table.wins.T + table.draws).sum(1)
    return [f"{table.names[k]:>24} {table.elo[k]:6.0f}  {points[k]:.1f} of {played[k]:.0f}" for k in order]
