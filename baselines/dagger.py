"""DAgger (Ross et al. 2011): policies learn what an expert does, in the states that they come to themselves.

    python -m baselines.dagger RubiksCube-v0 --out out/cube

An expert is a function of observations that says which actions it would take: a program, a solver, another policy. Some
games have one of their own; ``--expert MODULE:FUNCTION`` names another. A policy plays half of the envs alone. In the
others the expert helps, hardly in the first and always in the last. So the policy sees whole solutions from the first
rollout on, as well as its own mistakes. The critic learns the returns, so that PPO can go on from there. Everything
else is as in ``ppo.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

from . import run
from .executors import choose
from .train.args import DAggerArgs as Args
from .train.executor import Executor, Plain
from .train.experts import Expert
from .train.learner import Learner
from .train.loss import Hyper, Row
from .train.player import Player
from .train.trainer import Trainer


class DAgger(Trainer):
    """A run of DAgger.

    Attributes:
        expert: who is asked.
        help: (members * envs,), the share of ``--beta`` in each env.
        wanted: for each policy that learns, (steps, members, rows, parts): the actions that it took where the expert
            would take them, and elsewhere one that the expert would take.
        taught, agreed: (steps, members, rows), 1 where an agent acts and the expert wants
            anything, and where the policy did that.
    """

    args: Args
    choose_executor = staticmethod(choose)

    def __init__(self, args: Args, executor: Executor | None = None) -> None:
        args.check()
        self.expert = Expert(args.game, args.expert)
        super().__init__(args, executor)
        self.extra["draws"] = self.draws = torch.Generator(self.device).manual_seed(args.seed)
        players = {name: learner.player for name, learner in self.learners.items()}
        self.wanted = {
            k: p.rows(self.rollout.action, 1)[..., : p.policy.actions.parts].clone() for k, p in players.items()
        }
        self.taught = {k: torch.zeros_like(p.log_prob) for k, p in players.items()}
        self.agreed = {k: torch.zeros_like(p.log_prob) for k, p in players.items()}
        self.rollout.opponents = self.ask
        envs = torch.linspace(-1, 1, self.rollout.envs, device=self.device)
        self.help = envs.clamp(min=0).repeat(self.rollout.members)
        self.rollout.counted = self.help == 0
        # Step by step: an expert may do what no graph of a GPU can repeat.
        self.play = functools.partial(Plain.play, cast(Plain, self.executor), self.rollout)

    @torch.no_grad()
    def ask(self, t: int) -> None:
        """Asks the expert before step ``t``, and lets it take some of the actions."""
        rollout = self.rollout
        for name, learner in self.learners.items():
            player, nvec = learner.player, learner.policy.actions.nvec
            action = player.rows(rollout.action[t], 1)[..., : len(nvec)]
            best = self.best(player, t)
            wanted = chosen(best, action.long(), nvec, self.draws).to(action.dtype)
            taught = torch.stack([part.any(-1) for part in best.split([*nvec], -1)]).all(0)
            taught &= player.rows(rollout.acting[t])
            self.wanted[name][t], self.taught[name][t] = wanted, taught
            self.agreed[name][t] = (wanted == action).all(-1)
            share = (self.help.view(rollout.members, -1) * self.hyper.beta).repeat_interleave(len(player.agents), 1)
            helped = torch.rand(share.shape, generator=self.draws, device=self.device) < share
            player.put(t, torch.where((helped & taught).unsqueeze(-1), wanted, action))

    def best(self, player: Player, t: int) -> Tensor:
        """The actions that the expert would take before step ``t``, bool (members, rows, choices)."""
        seen = player.observations(self.rollout.observation[t])
        best = self.expert(player.groups[0], seen.flatten(0, 1), sum(player.policy.actions.nvec))
        best = best.view(*seen.shape[:2], -1)
        return best if self.rollout.mask is None else best & (player.masks(self.rollout.mask[t]) != 0)

    def on_rollout(self, learner: Learner) -> Mapping[str, Tensor]:
        """The actions to learn are those that the expert wants."""
        taught, agreed = self.taught[learner.name], self.agreed[learner.name]
        learner.action, learner.columns["taught"] = self.wanted[learner.name], taught
        share = (agreed * taught).sum((0, 2)) / taught.sum((0, 2))
        return {"agreement": share, **super().on_rollout(learner)}

    def loss(self, row: Row, hyper: Hyper) -> tuple[Tensor, dict[str, Tensor]]:
        """The cross-entropy of what the expert wants, with the losses of value and entropy."""
        imitation_loss = -row.taught * row.log_prob
        value_loss = 0.5 * (row.value - row.target).square()
        return imitation_loss + hyper.vf_coef * value_loss - hyper.ent_coef * row.entropy, {
            "imitation_loss": imitation_loss, "value_loss": value_loss, "entropy": row.entropy,
        }  # fmt: skip

    def learn(self, learner: Learner) -> Mapping[str, Tensor]:
        """Some passes over the rollout, in minibatches."""
        numbers: Mapping[str, Tensor] = {}
        for epoch in range(self.args.epochs):
            for batch in learner.minibatches(epoch, self.args.minibatches, self.args.sequence):
                numbers = self.evaluate(batch)
                self.step(learner)
        return numbers


def chosen(best: Tensor, action: Tensor, nvec: Sequence[int], generator: torch.Generator) -> Tensor:
    """The actions where they are among the best, and elsewhere one of the best.

    So the expected gradient is that of the probability of all best actions together: a policy need not take each.

    Args:
        best: bool (members, rows, choices), the choices of all parts side by side.
        action: int64 (members, rows, parts).
        nvec: choices of each part.
        generator: of the draws.
    """
    parts = []
    for k, among in enumerate(best.split([*nvec], -1)):
        mine = action[..., k : k + 1]
        drawable = (among | ~among.any(-1, keepdim=True)).flatten(0, 1).float()
        drawn = torch.multinomial(drawable, 1, generator=generator).view_as(mine)
        parts.append(torch.where(among.gather(-1, mine), mine, drawn))
    return torch.cat(parts, -1)


if __name__ == "__main__":
    run.main(DAgger, Args)
