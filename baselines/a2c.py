"""A2C, advantage actor-critic (Mnih et al. 2016), for groups of agents and whole populations.

    python -m baselines.a2c TagContinuous-v0 --num-envs 64 --total-steps 2e6 --out out/tag

One gradient step for each short rollout, on all of it at once. Everything else is as in ``ppo.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from . import run
from .executors import choose
from .train.args import A2CArgs as Args
from .train.learner import Learner
from .train.loss import Hyper, Row
from .train.trainer import Trainer


class A2C(Trainer):
    """A run of A2C."""

    args: Args
    choose_executor = staticmethod(choose)

    def loss(self, row: Row, hyper: Hyper) -> tuple[Tensor, dict[str, Tensor]]:
        """The policy gradient, with the losses of value and entropy."""
        policy_loss = -row.advantage * row.log_prob
        value_loss = 0.5 * (row.value - row.target).square()
        return policy_loss + hyper.vf_coef * value_loss - hyper.ent_coef * row.entropy, {
            "policy_loss": policy_loss, "value_loss": value_loss, "entropy": row.entropy,
        }  # fmt: skip

    def learn(self, learner: Learner) -> Mapping[str, Tensor]:
        """One step on the whole rollout."""
        numbers: Mapping[str, Tensor] = {}
        for batch in learner.minibatches(0, 1, self.args.sequence):
            if self.args.normalize_advantages:
                batch.normalize("advantage")
            numbers = self.evaluate(batch)
            self.step(learner)
        return numbers


if __name__ == "__main__":
    run.main(A2C, Args)
