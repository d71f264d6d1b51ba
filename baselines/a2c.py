"""A2C, advantage actor-critic (Mnih et al. 2016), for groups of agents and whole populations.

    python -m baselines.a2c TagContinuous-v0 --num-envs 64 --total-steps 2e6 --out out/tag

One gradient step for each short rollout, on all of it at once. Everything else is as in ``ppo.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import run
from .fast.losses import Loss
from .train.args import A2CArgs as Args
from .train.learner import Learner
from .train.trainer import Trainer

if TYPE_CHECKING:  # `baselines` must set OMP_WAIT_POLICY before torch is imported
    from torch import Tensor


class A2C(Trainer):
    """A run of A2C."""

    args: Args

    def loss_of(self, learner: Learner) -> Loss:
        """The policy gradient, with the losses of value and entropy; see ``kernels/a2c.cuh``."""
        return self.compile(
            learner, "a2c.cuh", ("vf_coef", "ent_coef"), ("policy_loss", "value_loss", "entropy")
        )  # fmt: skip

    def learn(self, learner: Learner, loss: Loss) -> dict[str, Tensor]:
        """One step on the whole rollout."""
        args, hyper, slopes = self.args, self.hyper, None
        for batch in learner.minibatches(0, 1, args.sequence or args.num_steps):
            if args.normalize_advantages:
                batch.normalize("advantage")
            slopes = self.slopes(batch, loss)
            learner.step(batch, slopes, hyper["lr"] * self.fraction, hyper["max_grad_norm"])
        return {} if slopes is None else self.numbers(slopes, loss)


if __name__ == "__main__":
    run.main(A2C, Args)
