"""Leagues of players that search: each plays each other, and all get ratings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .searchers import Player, match, random_player, searcher
from .tournament import Table, rated

#: of the past selves, so many play; those between them are left out
PAST_SELVES = 8


def standings(
    game: str, past_selves: Mapping[int, Player], opponent: int = 1000, threads: int | None = None, **options: Any
) -> Table:
    """The league of a run: its past selves, UCT with two numbers of random games, and random play.

    Args:
        game: its id.
        past_selves: by the minutes for which they had learned.
        opponent: random games for each move of the stronger UCT; the weaker one plays a tenth of them.
        threads: of UCT on a CPU.
        options: of `match`.
    """
    ages = sorted(past_selves)
    ages = [ages[k] for k in np.unique(np.linspace(0, len(ages) - 1, PAST_SELVES).round().astype(int))]
    fixed = {f"UCT, {n} playouts": searcher("uct", n, None, threads) for n in (opponent, max(1, opponent // 10))}
    players = {**{f"after {age} minutes": past_selves[age] for age in ages}, **fixed, "random": random_player}
    return league(game, players, ages, "minutes", **options)


def league(
    game: str, players: Mapping[str, Player], ages: list[int] | None = None, unit: str = "iteration", **options: Any
) -> Table:
    """All players play each other; ratings are as in `tournament`, and the last player's is 0.

    Args:
        game: its id.
        players: by name.
        ages: how far training was for the first players.
        unit: of the ages.
        options: of `match`.
    """
    names = [*players]
    wins, draws = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for a, b in itertools.combinations(range(len(names)), 2):
        score = match(game, players[names[a]], players[names[b]], **options)
        wins[a, b], wins[b, a] = score.wins, score.losses
        draws[a, b] = draws[b, a] = score.draws
    of_players: list[int | None] = [*(ages or ())]
    of_players += [None] * (len(names) - len(of_players))
    return Table(names, of_players, rated(wins, draws), wins, draws, unit)


def lines_of(table: Table) -> Iterator[str]:
    """The ratings, best first, for people."""
    points = (table.wins + table.draws / 2).sum(1)
    played = (table.wins + table.wins.T + table.draws).sum(1)
    for k in np.argsort(-table.elo):
        yield f"{table.names[k]:>24}  Elo {table.elo[k]:5.0f}, {points[k]:.1f} points of {played[k]:.0f}"
