"""Tournaments of policies in turn-based games of two, and their ratings."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.files import replacing
from gpuzoo.core.simulator import Simulator
from gpuzoo.tensors import views

from ..train.networks import Policy
from . import plots


@dataclasses.dataclass
class Table:
    """The ratings of a tournament's players. The last player acts at random.

    Attributes:
        names: of the players.
        iterations: when in the run they were what they are; None for players that do not learn.
        elo: (players,) ratings; 0 for random play.
        wins: (players, players), games that one won against the other.
        draws: (players, players), symmetric.
        unit: of ``iterations``.
    """

    names: list[str]
    iterations: list[int | None]
    elo: NDArray[np.float64]
    wins: NDArray[np.float64]
    draws: NDArray[np.float64]
    unit: str = "iteration"

    def write(self, folder: Path) -> None:
        """Leaves ``elo.csv``, a line for each player, and ``elo.png``, the ratings over the run.

        Raises:
            OSError: whatever the file system says.
        """
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(["player", self.unit, "elo", "wins", "draws", "losses"])
        won, drawn, lost = (x.astype(int).tolist() for x in (self.wins.sum(1), self.draws.sum(1), self.wins.sum(0)))
        elo = [f"{x:.1f}" for x in self.elo]
        out.writerows(zip(self.names, self.iterations, elo, won, drawn, lost, strict=True))
        with replacing(folder / "elo.csv") as file:
            file.write(text.getvalue().encode())
        curve = [(n, float(x)) for n, x in zip(self.iterations, self.elo, strict=True) if n is not None]
        plots.elo_curve(curve, folder / "elo.png", self.unit)


@torch.no_grad()
def tournament(
    game: str | type[EnvDef],
    policy: Policy,
    iterations: Sequence[int] = (),
    *,
    games: int = 64,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    max_steps: int = 10_000,
) -> Table:
    """All players play each other, all games at the same time.

    Ratings are `bradley_terry`'s after one more game of each pair, a drawn one: without it, who won all games would
    have no finite rating. So two players of whom one always wins are ``400 * log10(2 * games + 1)`` points apart: to
    tell larger differences takes more games, or players in between.

    Args:
        game: turn-based, of two agents that the policy can both play.
        policy: its members are the players; one more player acts at random.
        iterations: of the run, from which the members come; none: they are called by their numbers.
        games: of each pair, one half with either of them in the first seat.
        config: parameters of the game.
        seed: of the games, which training does not use.
        max_steps: a game that lasts longer is drawn.

    Raises:
        ValueError: another number of agents, or an odd number of games.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games must be even, for each pair plays as many in either seat, and positive, not {games}.")
    players, device = policy.members + 1, policy.flat.device
    pairs = [(a, b) for a in range(players) for b in range(players) if a != b]
    seats = torch.tensor(pairs).repeat_interleave(games // 2, 0)  # (envs, 2): who plays
    rows = seats.flatten().argsort(stable=True).view(players, -1)[:-1].to(device)  # of each member, among all agents
    sim = Simulator(registry.get(game), len(seats), device=str(device), autoreset_mode="same_step", **(config or {}))
    try:
        if sim.layout.agents != 2:
            raise ValueError(f"a tournament is for games of two agents: {sim.env.id} has {sim.layout.agents}.")
        sim.reset(seed=(seed << 32) + 2**31)
        generator = torch.Generator(device).manual_seed(seed)
        now = views(sim)
        memory = torch.zeros(*rows.shape, policy.memory_size, device=device)
        over = torch.zeros(len(seats), dtype=torch.bool, device=device)
        result = torch.zeros(len(seats), device=device)  # 1 if the first seat won, 0 for a draw, -1
        for step in range(max_steps):
            sim.random_actions()
            seen = now["observation"].flatten(0, 1)[rows].view(*rows.shape, *(policy.observation_space.shape or ()))
            if policy.recurrent:
                out, memory = policy.act(seen.unsqueeze(0), memory)
                out = out[0]
            else:
                out, _ = policy.act(seen)
            mask = now["action_mask"].flatten(0, 1)[rows] if "action_mask" in now else None
            chosen = policy.actions.sample(out, policy.log_std, mask, generator)
            now["action"].flatten(0, 1)[rows] = chosen.to(now["action"].dtype)
            sim.step()
            returns = now["final_return"]
            result = torch.where(now["ended"] & ~over, (returns[:, 0] - returns[:, 1]).sign(), result)
            over |= now["ended"]
            if step % 8 == 7 and bool(over.all()):
                break
    finally:
        sim.close()
    wins, draws = np.zeros((players, players)), np.zeros((players, players))
    first, second = seats.numpy().T
    found = result.cpu().numpy()
    np.add.at(wins, (first, second), found > 0)
    np.add.at(wins, (second, first), found < 0)
    np.add.at(draws, (first, second), found == 0)
    draws += draws.T
    names = [f"iteration {n}" for n in iterations] or [*map(str, range(policy.members))]
    ages: list[int | None] = list(iterations) or [None] * policy.members
    return Table([*names, "random"], [*ages, None], rated(wins, draws), wins, draws)


def rated(wins: NDArray[np.float64], draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Elo from games, with one more drawn game between each pair that played; the last player's is 0."""
    credit = 0.5 * ((wins + wins.T + draws) > 0)
    elo: NDArray[np.float64] = 400 * np.log10(bradley_terry(wins + draws / 2 + credit))
    return elo - elo[-1]


def bradley_terry(wins: NDArray[Any]) -> NDArray[np.float64]:
    """Strengths by maximum likelihood, where ``i`` beats ``j`` with probability ``p[i] / (p[i] + p[j])``.

    Source: the MM algorithm of Hunter, "MM algorithms for generalized Bradley-Terry models", Annals of Statistics 32,
    2004, equation 3.

    Args:
        wins: (players, players), games that one won against the other, a draw as half a game for each.

    Returns:
        (players,), with 1 as their geometric mean.

    Raises:
        ValueError: some players never won a point against the others, so that no finite strengths are the likeliest.
    """
    above = (wins > 0) | np.eye(len(wins), dtype=bool)  # i above j: there are wins from i down to j
    for _ in wins:
        above = above @ above
    if not above.all():
        raise ValueError("some players won no point against the others: let them play more games, or credit a draw.")
    games, points, strength = wins + wins.T, wins.sum(1), np.ones(len(wins))
    while True:
        new = points / (games / np.add.outer(strength, strength)).sum(1)
        new /= np.exp(np.log(new).mean())
        if np.abs(np.log(new / strength)).max() < 1e-10:
            return np.asarray(new, np.float64)
        strength = new
