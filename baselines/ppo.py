"""PPO (Schulman et al. 2017) for groups of agents and whole populations, on one device or several.

    python -m baselines.ppo TagContinuous-v0 --num-envs 64 --total-steps 2e6 --out out/tag --config.num_runners 20
    python -m baselines.ppo CartPole-v1 --population 16 --sweep lr=log:1e-4:1e-2 --out out/sweep
    torchrun --nproc-per-node=2 -m baselines.ppo SimpleSpread-v0 --out out/spread

Each group of agents has a policy of its own, named after the group, unless ``--policies`` says otherwise; all agents of
a policy share its weights and learn from their own observations and rewards (IPPO), or with ``--critic central`` from a
critic that sees what all of them see (MAPPO). All tensors have the members of the population as an axis.

Here stands the algorithm, and its loss in ``kernels/ppo.cuh``. `Trainer.iterate` plays (`Rollout.play`), estimates
advantages (`learner.advantages`) and calls `PPO.learn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import run
from .fast.losses import Loss
from .train.args import PPOArgs as Args
from .train.learner import Learner
from .train.trainer import Trainer

if TYPE_CHECKING:  # `baselines` must set OMP_WAIT_POLICY before torch is imported
    from torch import Tensor


class PPO(Trainer):
    """A run of PPO."""

    args: Args

    def loss_of(self, learner: Learner) -> Loss:
        """The clipped surrogate objective, with the losses of value and entropy; see ``kernels/ppo.cuh``."""
        return self.compile(
            learner, "ppo.cuh", ("clip_eps", "vf_coef", "ent_coef"),
            ("policy_loss", "value_loss", "entropy", "kl", "clipped"), clip_values=self.args.clip_values,
        )  # fmt: skip

    def learn(self, learner: Learner, loss: Loss) -> dict[str, Tensor]:
        """Several passes over the rollout, in minibatches."""
        args, hyper = self.args, self.hyper
        rate, slopes = hyper["lr"] * self.fraction, None
        for epoch in range(args.epochs):
            for batch in learner.minibatches(epoch, args.minibatches, args.sequence or args.num_steps):
                if args.normalize_advantages:
                    batch.normalize("advantage")
                slopes = self.slopes(batch, loss)
                if args.target_kl or "target_kl" in args.sweep:
                    moved = self.numbers(slopes, loss)["kl"][:, None]
                    rate = rate * ((moved <= 1.5 * hyper["target_kl"]) | (hyper["target_kl"] == 0))
                learner.step(batch, slopes, rate, hyper["max_grad_norm"])
        return {} if slopes is None else self.numbers(slopes, loss)


if __name__ == "__main__":
    run.main(PPO, Args)
