"""A CPU's minibatches, in memory that calls are prepared for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..train import distributed
from ..train.learner import Learner
from ..train.minibatch import Minibatch, share_of
from .losses import Gradients, Loss
from .native import KINDS, Gather, Rows, features, standardize
from .networks import FusedPolicy
from .plan import Plan
from .units import Call


def sources(learner: Learner) -> list[Tensor]:
    """The tensors (steps, members, rows, ...) that minibatches are gathered from."""
    found = [learner.observation, learner.action, learner.packed]
    return found if learner.mask is None else [*found, learner.mask]


class PreparedMinibatch(Minibatch):
    """Minibatches of one size, one after the other in the same memory.

    `differentiate` takes rows through the networks, to the loss and back while they are in the cache.

    Args:
        learner: one that it `serves`.
        networks: of its policy.
        count: rows of each member.
    """

    def __init__(self, learner: Learner, networks: FusedPolicy, count: int) -> None:
        policy, taken = learner.policy, sources(learner)
        self.networks, self.count, self._single = networks, count, distributed.world_size() == 1
        self._gather, self._plan, M = Gather(learner.player.shape, count, taken), Plan(), policy.members
        observation, action, packed, *masks = self._gather.taken
        super().__init__(policy, tuple(learner.columns), observation, action, packed, masks[0] if masks else None,
                         self._gather.weight, torch.empty(M, count), distributed.all_reduce)  # fmt: skip
        self._out, self._value = torch.empty(M, count, policy.actions.outputs), torch.empty(M, count)
        self._plan.add(self._gather.call)
        self._x, self._factor = observation.flatten(2), torch.empty_like(policy.scale.mean)
        if policy.normalize or observation.dtype != torch.float32:
            self._x = torch.empty(self._x.shape)
            scale = (policy.scale.mean, self._factor) if policy.normalize else (None, None)
            self._plan.add(features(self._x, Rows(observation.view(M * count, -1)), *scale))
        self._even = False  # whether all rows have the same share
        self._standardize: dict[str, Call] = {}
        self._bound: dict[tuple[Loss, int], Callable[[], Gradients]] = {}

    @staticmethod
    def serves(learner: Learner) -> bool:
        """Whether minibatches of a learner can be prepared."""
        return not learner.bf16 and learner.observation.dtype in KINDS and FusedPolicy.served(learner.policy)

    def load(self, learner: Learner, index: Tensor, filled: Tensor | None) -> PreparedMinibatch:
        """Becomes the minibatch of these rows; see `Learner.gather`."""
        if self.policy.normalize:
            self._factor.copy_(self.policy.scale.factor())
        self._gather.aim(index, filled, sources(learner))
        self._plan.run()
        even = filled is None and self._single
        if not (even and self._even):
            self.share.copy_(share_of(self.weight, self.all_reduce))
            self._even = even
        return self

    def normalize(self, name: str) -> None:
        """Gives a column mean 0 and deviation 1 within each member's minibatch."""
        if not self._single:
            super().normalize(name)
            return
        if name not in self._standardize:
            self._standardize[name] = standardize(self.packed, self.names.index(name), self.share)
        self._standardize[name]()

    def differentiate(self, loss: Loss, hyper: Tensor) -> Gradients:
        """Leaves the gradient of a loss in the policy's, but that of ``log_std``; returns those of the outputs.

        Args:
            loss: a compiled one.
            hyper: (members, hyper-parameters), those of the loss.
        """
        key = loss, id(hyper)  # whose address the calls have, and which they keep alive
        if key not in self._bound:
            inputs = (
                self._out,
                self._value,
                self.policy.log_std,
                self.mask,
                self.action,
                self.packed,
                self.share,
                hyper,
            )
            self._bound[key] = (self._bind_parts if self.networks.shared else self._bind_whole)(loss, inputs)
        return self._bound[key]()

    def _bind_whole(self, loss: Loss, inputs: Sequence[Tensor | None]) -> Callable[[], Gradients]:
        rows, finish = loss.bind_rows(*inputs)
        into = finish()
        call = self.networks.bind_whole(self._x, self._out, self._value, rows, into.out, into.value)

        def run() -> Gradients:
            call()
            return finish()

        return run

    def _bind_parts(self, loss: Loss, inputs: Sequence[Tensor | None]) -> Callable[[], Gradients]:
        forward, backward, saved = Plan(), Plan(), self.networks.workspace(self.count)
        for call in self.networks.bind(self._x, self._out, self._value, saved):
            forward.add(call)
        evaluate = loss.bind(*inputs)  # type: ignore[arg-type]
        into = evaluate()
        for call in self.networks.bind_backward(self._x, saved, into.out, into.value):
            backward.add(call)

        def run() -> Gradients:
            forward.run()
            found = evaluate()
            backward.run()
            return found

        return run
