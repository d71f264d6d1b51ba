"""Self-play in turn-based games of two: against a pool of past selves, and how strong each of them is.

Whoever only ever plays against itself can run in circles: it forgets how to beat what it once was. So half of the envs
are games against policies from earlier in the run. All of them are one `Policy`, with the past selves as its members:
their moves cost one batched pass, however many they are.

Ratings are Elo's (Elo, "The Rating of Chessplayers", 1978): 400 points more are ten times the chance. During a run they
follow the games as they end; `baselines.report.tournament` measures afterwards, once more and from scratch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

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
    from their moves, but their replies count for the learner's move before, as in
    `baselines.train.advantages`.

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
        change = K * min(1.0, GAMES / max(1.0, float(games.sum()))) * (score - games * expected)
        self.elo += float(change.sum())
        self.ratings -= change
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
            raise ValueError(f"the checkpoint {path} cannot go on: its record of past selves is damaged.")
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

    def players(self, iteration: int) -> tuple[Policy, list[int]]:
        """The snapshots from before an iteration, and last the learner as it is: members of one policy.

        Returns:
            The policy, and from which iterations its members are.
        """
        learner = self._player.policy
        before = [(n, weights) for n, weights in self.past if n < iteration]
        policy = learner.stacked([*(weights for _, weights in before), learner.state_dict()])
        return policy, [*(n for n, _ in before), iteration]
