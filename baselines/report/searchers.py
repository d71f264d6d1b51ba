"""Players of turn-based games that search, and matches between them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.search import Evaluate, Search, Settings
from gpuzoo.search.settings import Rule
from gpuzoo.tensors import as_tensor

from ..train.networks import Policy

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


def policy_player(policy: Policy) -> Player:
    """A player that takes the likeliest actions of a policy that remembers nothing.

    Raises:
        ValueError: the policy has a memory.
    """
    if policy.recurrent:
        raise ValueError("a policy with a memory plays whole games only, as `baselines.report.evaluation` does.")

    def play(envs: Simulator) -> Tensor:
        mover = as_tensor(envs.arrays[str(envs.env.turn)]).long()
        here = torch.arange(envs.num_envs, device=mover.device)
        seen, mask = (as_tensor(envs.arrays[name])[here, mover].unsqueeze(0) for name in ("observation", "action_mask"))
        space: Any = next(iter(envs.layout.observation_spaces.values()))
        out, _ = policy.act(seen.view(1, envs.num_envs, *space.shape))
        return policy.actions.greedy(out, mask)[0, :, 0].long()

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

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the points."""
        return interval(self.points, self.wins + self.draws + self.losses)


def interval(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of ``count`` trials (Wilson, "Probable inference", 1927)."""
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    width = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - width), min(1.0, middle + width)


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
