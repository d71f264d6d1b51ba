"""A step of the optimiser as prepared calls."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..train import distributed
from ..train.learner import Learner
from .kernels import bind_adam
from .native import clip
from .plan import Plan


class Descent:
    """Steps of Adam down a learner's gradient, which is clipped.

    Args:
        learner: whose policy and moments.
        on_cpu: whether they are on a CPU.
    """

    def __init__(self, learner: Learner, on_cpu: bool) -> None:
        flat = learner.policy.flat
        assert flat.grad is not None
        self.gradient, self.count, self._single = flat.grad, learner.count, distributed.world_size() == 1
        self.factor, self.rate, self.limit = torch.ones(3, len(flat), 1, device=flat.device)
        self._adam = bind_adam(
            flat.data, flat.grad, learner.momentum, learner.square, self.factor, self.rate, learner.count
        )
        self._run: Callable[[], None] = self._launch
        if on_cpu:
            plan = Plan()
            plan.add(clip(self.gradient, self.limit, self.factor, self.count))
            plan.add(self._adam)
            self._run = plan.run

    def step(self, rate: Tensor, max_grad_norm: Tensor) -> None:
        """See `Executor.step`."""
        if not self._single:
            distributed.all_reduce(self.gradient)
        self.limit.copy_(max_grad_norm)
        self.rate.copy_(rate)
        self._run()

    def _launch(self) -> None:
        """On a GPU, where torch finds the norms."""
        self.count.add_(1)
        norm = torch.linalg.vector_norm(self.gradient, dim=1, keepdim=True)
        torch.clamp(self.limit / (norm + 1e-6), max=1, out=self.factor)
        self._adam()
