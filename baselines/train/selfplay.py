"""Self-play in turn-based games of two: against a pool of past selves, and how strong each of them is.

Whoever only ever plays against itself can run in circles: it forgets how to beat what it once was. So half of the envs
are games against policies from earlier in the run. All of them are one `Policy`, with the past selves as its members:
their moves cost one batched pass, however many they are.

Ratings are Elo's (Elo, "The Rating of Chessplayers", 1978): 400 points more are ten times the chance. During a run they
follow the games as they end; `tournament` measures afterwards, once more and from scratch.
"""

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
from torch import Tensor

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.files import replacing
from gpuzoo.core.simulator import Simulator
from gpuzoo.tensors import views

from ..report import plots
from . import distributed
from .networks import Policy
from .player import Draws
from .rollout import Rollout

K = 32.0  # the most that a game moves a rating
GAMES = 8  # the most that the games of an iteration count for: they are played with the same weights
SNAPSHOTS = 16  # for the tournament; the pool holds the newest only


class SelfPlay:
    """The pool, its moves in a rollout, and the ratings.

    In the first half of the envs the learner plays both seats. The second half is shared out among the past selves in
    equal blocks, in which they take the two seats by turns. `Rollout.mine` is false for them, so that nothing is learnt
    from their moves, but their replies count for the learner's move before, as in `baselines.train.learner.advantages`.

    Every ``every`` iterations the learner's weights replace the oldest past self. Until the pool is full, the newest
    holds all free places: it is the strongest opponent that there is. A newcomer takes over the games as they stand;
    how these end does not count for the ratings.

    Args:
        rollout: where they play; with one player, of both agents, and one member.
        size: of the pool; four times as many divide the number of envs.
        every: iterations between two past selves.

    Attributes:
        policy: the past selves.
        elo: the learner's rating; it began at 0.
        ratings: float64 (size,), of the past selves.
        memory: (size, envs of each past self, memory size), what they remember.
        began_before: (size, envs of each past self) bool, games that began before their newest player came.
        past: iteration and weights of at most `SNAPSHOTS` past selves, evenly spread over the run.
    """

    def __init__(self, rollout: Rollout, size: int, every: int) -> None:
        (self._player,) = rollout.players.values()
        self._rollout, self.size, self.every = rollout, size, every
        learner, device = self._player.policy, rollout.device
        self.policy = learner.stacked([learner.state_dict()] * size)
        self.elo, self.ratings = 0.0, torch.zeros(size, dtype=torch.float64)
        self.past: list[tuple[int, dict[str, Tensor]]] = []
        self._entered, self._spacing = 0, 1
        self._half = rollout.envs // 2
        env = torch.arange(self._half, rollout.envs, device=device)
        seat = env % 2
        self._rows = 2 * env + seat  # of the past selves, among all agents
        self._side = 2.0 * seat - 1  # 1 where the learner has the first seat
        games = self._half // size
        self.began_before = torch.zeros(size, games, dtype=torch.bool, device=device)  # before the newcomer entered
        self.memory = torch.zeros(size, games, self.policy.memory_size, device=device)
        rows, actions = self.memory.shape[:2], self.policy.actions
        self._chosen = torch.zeros(*rows, actions.parts, dtype=rollout.action.dtype, device=device)
        log_prob = torch.zeros(rows, device=device)
        # Negative, as no learner's seed is.
        seeds = -1 - rollout.seeds * size - torch.arange(size, device=device)
        self._masked = rollout.mask is not None and actions.discrete
        steps = rollout.steps
        self._draw = rollout.executor.sampler(Draws(
            "past selves", self.policy, seeds, rollout.counter, rollout.first_env, self._masked,
            self._chosen.expand(steps, *self._chosen.shape), log_prob.expand(steps, *log_prob.shape),
        ))  # fmt: skip
        mine = torch.ones(2 * rollout.envs, dtype=torch.bool, device=device)
        rollout.mine = mine.index_fill_(0, self._rows, False).view(rollout.envs, 2)
        rollout.opponents = self.play
        self._enter(0)

    def play(self, t: int) -> None:
        """Writes the past selves' actions of step ``t`` over what the learner would have done in their place."""
        rollout, player = self._rollout, self._player
        seen = self._theirs(player.observations(rollout.observation[t]))
        if self.policy.recurrent:
            begins = rollout.begins[t, :, self._half :].view(1, self.size, -1)
            out, memory = self.policy.act(seen.unsqueeze(0), self.memory, begins)
            out = out[0]
            self.memory.copy_(memory)
        else:
            out = self.policy.act(seen)[0]
        mask = None if rollout.mask is None or not self._masked else self._theirs(player.masks(rollout.mask[t]))
        self._draw(t, out, mask)
        action = rollout.action[t].flatten(0, 1)
        action.index_copy_(0, self._rows, self._chosen.flatten(0, 1))

    def _theirs(self, x: Tensor) -> Tensor:
        """The past selves' rows of a tensor (1, rows of the player, ...): (size, games, ...)."""
        return x[0].index_select(0, self._rows).view(*self.memory.shape[:2], *x.shape[2:])

    def after(self, iteration: int) -> dict[str, float]:
        """Rates the games that ended in an iteration, and lets the learner enter the pool if it is time.

        A game moves the learner's rating by ``K * (result - expected)`` and its opponent's as much the other way, where
        K is 32 for up to 8 games and gets smaller if more of them end in the iteration.

        Returns:
            ``elo``, the learner's rating, and ``win_rate``, the mean result of all these games: 1 for a win, 0.5 for a
            draw; NaN if none ended.
        """
        games, score = self._results()
        expected = 1 / (1 + 10 ** ((self.ratings - self.elo) / 400))
        gain = K * min(1.0, GAMES / max(1.0, float(games.sum()))) * (score - games * expected)
        self.elo += float(gain.sum())
        self.ratings -= gain
        if iteration % self.every == 0:
            self._enter(iteration)
        return {"elo": self.elo, "win_rate": float(score.sum() / games.sum())}

    def _results(self) -> tuple[Tensor, Tensor]:
        """How many games against each past self ended, and the learner's points in them: float64 (size,) each."""
        rollout = self._rollout
        ended, returns = rollout.ended[:, self._half :], rollout.final_return[:, self._half :]
        points = (1 + ((returns[..., 0] - returns[..., 1]) * self._side).sign()) / 2
        began_before = self.began_before.flatten()
        counts = ended & ~(began_before & (ended.cumsum(0) == 1))
        began_before &= ~ended.any(0)
        both = torch.stack([counts.double(), counts * points.double()]).sum(1).view(2, self.size, -1).sum(2)
        games, score = distributed.all_reduce(both).cpu()
        return games, score

    def _enter(self, iteration: int) -> None:
        """The learner as it is becomes a past self."""
        weights, oldest = self._player.policy.state_dict(), self._entered % self.size
        places = slice(oldest, None if self._entered < self.size else oldest + 1)
        for theirs, ours in zip(self.policy.state_dict().values(), weights.values(), strict=True):
            theirs[places] = ours
        self.ratings[places] = self.elo
        self.memory[places] = 0
        self.began_before[places] = iteration > 0
        if self._entered % self._spacing == 0:
            self.past.append((iteration, {k: v.to("cpu", copy=True) for k, v in weights.items()}))
        if len(self.past) > SNAPSHOTS:
            self.past, self._spacing = self.past[::2], 2 * self._spacing
        self._entered += 1

    def state(self) -> dict[str, Tensor]:
        """All that the next iteration and the tournament depend on, by name."""
        found = {f"weights/{k}": v for k, v in self.policy.state_dict().items()}
        found |= {f"past/{k}": torch.stack([w[k] for _, w in self.past]) for k in self.past[0][1]}
        return found | {
            "iterations": torch.tensor([iteration for iteration, _ in self.past]),
            "counts": torch.tensor([self._entered, self._spacing]),
            "elo": torch.tensor(self.elo, dtype=torch.float64), "ratings": self.ratings,
            "memory": self.memory, "began_before": self.began_before,
        }  # fmt: skip

    def past_like(self, found: Mapping[str, Tensor], path: Any, prefix: str) -> dict[str, Tensor]:
        """What a checkpoint must have of the past selves, of which it says how many there are.

        Raises:
            ValueError: there cannot be so many, or their numbers are none.
        """
        empty = torch.zeros(0, dtype=torch.int64)
        iterations, counts = (found.get(f"{prefix}{name}", empty) for name in ("iterations", "counts"))
        count = len(iterations) if iterations.ndim == 1 else 0
        if not 1 <= count <= SNAPSHOTS or counts.shape != (2,) or counts.min() < 1 or iterations.min() < 0:
            raise ValueError(f"the checkpoint {path} cannot go on: it says nothing possible of its past selves.")
        past = {f"{prefix}past/{k}": x.expand(count, *x.shape) for k, x in self.past[0][1].items()}
        return {**past, f"{prefix}iterations": torch.zeros(count, dtype=torch.int64)}

    def restore(self, found: Mapping[str, Tensor]) -> None:
        """Puts back what `state` gave."""
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "past": {}}
        for name, value in found.items():
            part, _, key = name.partition("/")
            if part in parts:
                parts[part][key] = value
        self.policy.load_state_dict(parts["weights"])
        iterations = found["iterations"].tolist()
        self.past = [(n, {k: v[i] for k, v in parts["past"].items()}) for i, n in enumerate(iterations)]
        self._entered, self._spacing = found["counts"].tolist()
        self.elo = float(found["elo"])
        self.ratings.copy_(found["ratings"])
        self.memory.copy_(found["memory"])
        self.began_before.copy_(found["began_before"])

    def tournament(self, game: str | type[EnvDef], iteration: int, **more: Any) -> Table:
        """The learner, its snapshots and random play against each other.

        Args:
            game: what they play.
            iteration: the present one.
            **more: see the function `tournament`.
        """
        learner = self._player.policy
        before = [(n, weights) for n, weights in self.past if n < iteration]
        policy = learner.stacked([*(weights for _, weights in before), learner.state_dict()])
        iterations = [*(n for n, _ in before), iteration]
        return tournament(game, policy, [f"iteration {n}" for n in iterations], iterations, **more)


# ---- tournaments ----


@dataclasses.dataclass
class Table:
    """What a tournament says about its players, of which the last one plays randomly.

    Attributes:
        names: of the players.
        iterations: when in the run they were what they are; None for random play.
        elo: (players,) ratings; 0 for random play.
        wins: (players, players), games that one won against the other.
        draws: (players, players), symmetric.
    """

    names: list[str]
    iterations: list[int | None]
    elo: NDArray[np.float64]
    wins: NDArray[np.float64]
    draws: NDArray[np.float64]

    def write(self, folder: Path) -> None:
        """Leaves ``elo.csv``, a line for each player, and ``elo.png``, the ratings over the run.

        Raises:
            OSError: whatever the file system says.
        """
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(["player", "iteration", "elo", "wins", "draws", "losses"])
        won, drawn, lost = (x.astype(int).tolist() for x in (self.wins.sum(1), self.draws.sum(1), self.wins.sum(0)))
        elo = [f"{x:.1f}" for x in self.elo]
        out.writerows(zip(self.names, self.iterations, elo, won, drawn, lost, strict=True))
        with replacing(folder / "elo.csv") as file:
            file.write(text.getvalue().encode())
        curve = [(n, float(x)) for n, x in zip(self.iterations, self.elo, strict=True) if n is not None]
        plots.elo_curve(curve, folder / "elo.png")


@torch.no_grad()
def tournament(
    game: str | type[EnvDef],
    policy: Policy,
    names: Sequence[str] | None = None,
    iterations: Sequence[int | None] | None = None,
    *,
    games: int = 64,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    max_steps: int = 10_000,
) -> Table:
    """Everybody plays against everybody, all games at the same time.

    Ratings are `bradley_terry`'s after one more game of each pair, a drawn one: without it, who won all games would
    have no finite rating. So two players of whom one always wins are ``400 * log10(2 * games + 1)`` points apart: to
    tell larger differences takes more games, or players in between.

    Args:
        game: turn-based, of two agents that the policy can both play.
        policy: its members are players; one more plays randomly.
        names: of the members.
        iterations: of the run that they come from.
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
    credit = 0.5 * (1 - np.eye(players))
    elo = 400 * np.log10(bradley_terry(wins + draws / 2 + credit))
    names, iterations = names or [*map(str, range(policy.members))], iterations or [None] * policy.members
    return Table([*names, "random"], [*iterations, None], elo - elo[-1], wins, draws)


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
