"""PPO (Schulman et al. 2017) for groups of agents and whole populations, on one device or several.

    python -m baselines.ppo TagContinuous-v0 --num-envs 64 --total-steps 2e6 --out out/tag --config.num_runners 20
    python -m baselines.ppo CartPole-v1 --population 16 --sweep lr=log:1e-4:1e-2 --out out/sweep
    torchrun --nproc-per-node=2 -m baselines.ppo SimpleSpread-v0 --out out/spread

Each group of agents has a policy of its own, named after the group, unless ``--policies`` says otherwise; all agents of
a policy share its weights and learn from their own observations and rewards (IPPO), or with ``--critic central`` from a
critic that sees what all of them see (MAPPO). All tensors have the members of the population as their first axis.

This file is the algorithm. `Trainer.iterate` plays a rollout, calls `Trainer.on_rollout`, computes advantages, and
calls `PPO.learn`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from . import run
from .executors import choose
from .train.args import PPOArgs as Args
from .train.learner import Learner
from .train.loss import Hyper, Row
from .train.trainer import Trainer


class PPO(Trainer):
    """A run of PPO."""

    args: Args
    choose_executor = staticmethod(choose)

    def loss(self, row: Row, hyper: Hyper) -> tuple[Tensor, dict[str, Tensor]]:
        """The clipped surrogate objective, with the losses of value and entropy."""
        log_ratio = row.log_prob - row.old_log_prob
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - hyper.clip_eps, 1 + hyper.clip_eps)
        policy_loss = -torch.minimum(row.advantage * ratio, row.advantage * clipped)

        error = (row.value - row.target).square()
        if self.args.clip_values:
            near = row.old_value + (row.value - row.old_value).clamp(-hyper.clip_eps, hyper.clip_eps)
            error = torch.maximum(error, (near - row.target).square())
        value_loss = 0.5 * error

        return policy_loss + hyper.vf_coef * value_loss - hyper.ent_coef * row.entropy, {
            "policy_loss": policy_loss, "value_loss": value_loss, "entropy": row.entropy,
            "kl": ratio - 1 - log_ratio, "clipped": (ratio - 1).abs() > hyper.clip_eps,
        }  # fmt: skip

    def learn(self, learner: Learner) -> Mapping[str, Tensor]:
        """Several passes over the rollout, in minibatches."""
        args, hyper = self.args, self.hyper
        numbers: Mapping[str, Tensor] = {}
        rate = hyper.lr * self.fraction
        for epoch in range(args.epochs):
            for batch in learner.minibatches(epoch, args.minibatches, args.sequence):
                if args.normalize_advantages:
                    batch.normalize("advantage")
                numbers = self.evaluate(batch)
                if (
                    args.target_kl or "target_kl" in args.sweep + args.schedule
                ):  # multiplied by 0, a rate stays 0 for all that follows
                    kl = numbers["kl"][:, None]
                    rate = rate * ((kl <= 1.5 * hyper.target_kl) | (hyper.target_kl == 0))
                self.step(learner, rate)
        return numbers


if __name__ == "__main__":
    run.main(PPO, Args)
