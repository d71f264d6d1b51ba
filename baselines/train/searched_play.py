"""Games that a network plays against itself with a search, for `baselines.alphazero`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.search import Evaluate, Result, Search, Settings
from gpuzoo.tensors import as_tensor

from .replay import Replay

if TYPE_CHECKING:
    from ..alphazero import Args


class SelfPlay:
    """Games of the network against itself."""

    def __init__(self, args: Args) -> None:
        given: dict[str, Any] = {"device": args.device, "threads": args.threads, **(args.config or {})}
        env = gpuzoo.get(args.game)
        self.envs = Simulator(env, args.num_envs, autoreset_mode="same_step", **given)
        settings = Settings(
            considered=args.considered,
            dirichlet_fraction=0.25 if args.rule == "puct" else 0.0,
            value_range=(-1.0, 1.0),
        )
        rule: Any = args.rule
        self.search = Search(
            env, args.num_envs, simulations=args.simulations, rule=rule, settings=settings, seed=args.seed, **given
        )
        self.envs.reset(seed=args.seed)
        self.arrays = {name: as_tensor(array) for name, array in self.envs.arrays.items()}
        self.args, self.games, self.moves = args, 0, 0

    def observation(self) -> tuple[Tensor, Tensor]:
        """Observations (envs, ...) of the players to move, and their indices, int64 (envs,)."""
        turn = self.envs.env.turn
        seen = self.arrays["observation"]
        mover = torch.zeros(len(seen), dtype=torch.int64, device=seen.device)
        mover = mover if turn is None else self.arrays[turn].long()
        shape = next(iter(self.envs.layout.observation_spaces.values())).shape or (1,)
        return seen[torch.arange(len(seen), device=seen.device), mover].view(-1, *shape), mover

    def act(self, visits: Tensor, best: Tensor) -> Tensor:
        """The move of each game: the best one, or with PUCT in the beginning one drawn by visits."""
        if self.args.rule == "gumbel":
            return best
        early = self.arrays["elapsed_steps"] < self.args.exploring_moves
        drawn = torch.multinomial(visits.float().clamp_min(1e-9), 1)[:, 0]
        return torch.where(early, drawn, best)

    def vary(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """Puts random moves among those of the openings; also returns where, bool (envs,).

        Without them a network sees few openings: it learns early which one it likes.
        """
        coin = torch.rand(len(action), device=action.device) < 0.5
        varied = coin & (self.arrays["elapsed_steps"] < self.args.opening)
        if not self.args.opening:
            return action, varied
        _, mover = self.observation()
        self.envs.random_actions()
        return torch.where(
            varied, self.arrays["action"][:, :, 0].long().gather(1, mover[:, None])[:, 0], action
        ), varied

    def play(self, evaluate: Evaluate, replay: Replay) -> dict[str, float]:
        """Some moves of all games go into the replay, each with the result for who made it, as far as it is known.

        What follows a random move says nothing about the position before it, which has the value that its search found.
        """
        steps, arrays, weight = list[tuple[Tensor, ...]](), self.arrays, self.args.td_lambda
        for _ in range(self.args.num_steps):
            found = self.search.run(self.envs, evaluate)
            seen, mover = self.observation()
            action, random = self.vary(self.act(found.visits, found.action))
            arrays["action"].copy_(action.view(-1, 1, 1).expand_as(arrays["action"]))
            self.envs.step()
            reward = arrays["reward"].gather(1, mover[:, None])[:, 0]
            ended = arrays["ended"].clone()
            steps.append((seen.clone(), found.policy, searched(found), random, mover, reward, ended))
        seen, after = self.observation()
        value = evaluate(seen, torch.ones(len(seen), self.search.tree.actions, dtype=torch.bool, device=seen.device))[1]
        for seen, policy, searched_value, random, mover, reward, ended in reversed(steps):
            value = reward + torch.where(ended, 0.0, torch.where(after == mover, value, -value))
            value = torch.where(random, searched_value, value)
            replay.add(seen, policy, value)
            value, after = weight * value + (1 - weight) * searched_value, mover
        ends = torch.stack([ended for *_, ended in steps])
        self.moves += ends.numel()
        self.games += int(ends.sum())
        policy = torch.stack([policy for _, policy, *_ in steps])
        entropy = -(policy * policy.clamp_min(1e-12).log()).sum(-1).mean()
        return {"games": self.games, "moves": self.moves, "search_entropy": float(entropy)}


def searched(found: Result) -> Tensor:
    """(R,): the value of a root whose player follows the improved policy."""
    weight = found.policy * (found.visits > 0)
    return (weight * found.q).sum(1) / weight.sum(1).clamp_min(1e-9)
