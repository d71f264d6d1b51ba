"""Minibatches of transitions, evaluated by the policy as it now is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..fast.losses import Loss, Slopes
from ..fast.native import KINDS, Gather, Rows, features, standardize
from ..fast.plan import Plan
from ..fast.units import Call
from .networks import Policy

#: what a rollout knows about a transition
COLUMNS = ("advantage", "target", "old_value", "old_log_prob")


def share_of(weight: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    """Weights (members, rows), divided by their sum over all processes."""
    return weight / total(weight.sum(1, keepdim=True)).clamp(min=1)


class Minibatch:
    """Transitions of each member, (members, rows, ...) each.

    On a CPU the memory is that of the same part of the next pass: use what is here before, or copy it.

    Args:
        policy: as it now is.
        out: outputs of the actor, with gradients.
        value: of the critic, with gradients.
        back: makes the policy's gradient, from gradients of ``out`` and ``value``.
        mask: of legal choices, or None.
        action: what was done.
        packed: (members, rows, columns), what the rollout knows about the transitions, in the order of `COLUMNS`.
        weight: 1 for transitions, 0 for rows that fill up a member's share.
        share: the weight, divided by its sum over all processes.
        total: sums a tensor over all processes.
    """

    def __init__(
        self,
        policy: Policy,
        out: Tensor,
        value: Tensor,
        back: Callable[[Tensor, Tensor], None],
        mask: Tensor | None,
        action: Tensor,
        packed: Tensor,
        weight: Tensor,
        share: Tensor,
        total: Callable[[Tensor], Tensor],
    ) -> None:
        self.policy, self._out, self._value, self.back, self.mask, self.action = policy, out, value, back, mask, action
        self.packed, self.weight, self.share, self.total = packed, weight, share, total

    @property
    def out(self) -> Tensor:
        """Outputs of the actor, with gradients."""
        return self._out

    @property
    def value(self) -> Tensor:
        """Values of the critic, with gradients."""
        return self._value

    @property
    def columns(self) -> dict[str, Tensor]:
        """What the rollout knows about the transitions, by name; views of `packed`."""
        return dict(zip(COLUMNS, self.packed.unbind(-1), strict=True))

    @property
    def distribution(self) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions, and entropies, with gradients: for a loss that is written in torch."""
        return self.policy.actions.evaluate(self.out, self.policy.log_std, self.mask, self.action)

    def mean(self, x: Tensor) -> Tensor:
        """(members, rows) -> (members, 1), over the transitions of all processes; with gradients, this one's share."""
        x = (x * self.share).sum(1, keepdim=True)
        return x if x.requires_grad else self.total(x)

    def normalize(self, name: str) -> None:
        """Gives a column mean 0 and deviation 1 within each member's minibatch."""
        x = self.packed[..., COLUMNS.index(name)]
        x -= self.mean(x)
        x /= self.mean(x.square()).sqrt() + 1e-8

    def slopes(self, loss: Loss, hyper: Tensor) -> Slopes:
        """Gradients of a loss by what the networks said, with hyper-parameters (members, those of its formula)."""
        return loss(self.out, self.value, self.policy.log_std, self.mask, self.action, self.packed, self.share, hyper)


class Prepared(Minibatch):
    """A CPU's minibatches of one size, one after the other in the same memory, which its calls are prepared for.

    The networks are evaluated when their outputs are asked for. Where only `slopes` is asked for, rows go through them,
    to the loss and back while they are in the cache.

    Args:
        policy: one that `Prepared.fits`.
        shape: (steps, members, rows) of the rollout.
        count: rows of each member.
        sources: what the rollout knows, (steps, members, rows, ...) each: observations, actions, columns, and masks if
            there are any.
        total: sums a tensor over all processes.
        alone: whether there is one process only.
    """

    def __init__(
        self,
        policy: Policy,
        shape: tuple[int, int, int],
        count: int,
        sources: Sequence[Tensor],
        total: Callable[[Tensor], Tensor],
        alone: bool,
    ) -> None:
        M = policy.members
        self.count, self._alone = count, alone
        self._gather, self._plan = Gather(shape, count, sources), Plan()
        seen, action, packed, *masks = self._gather.taken
        super().__init__(policy, torch.empty(M, count, policy.actions.outputs), torch.empty(M, count), self._go_back,
                         masks[0] if masks else None, action, packed, self._gather.weight,
                         torch.empty(M, count), total)  # fmt: skip
        self._plan.add(self._gather.call)
        self._x, self._factor = seen.flatten(2), torch.empty_like(policy.scale.mean)
        if policy.normalize or seen.dtype != torch.float32:
            self._x = torch.empty(self._x.shape)
            scale = (policy.scale.mean, self._factor) if policy.normalize else (None, None)
            self._plan.add(features(self._x, Rows(seen.view(M * count, -1)), *scale))
        self._even = False  # whether all rows have the same share
        self._standardize = [standardize(packed, k, self.share) for k in range(len(COLUMNS))] if alone else []
        self._evaluated = False
        self._descents: dict[tuple[Loss, int], tuple[Call, Callable[[], Slopes]]] = {}
        #: slopes whose way back has been gone, as they were
        self._gone: tuple[Tensor, Tensor, int, int] | None = None
        self._losses: dict[tuple[Loss, int], Callable[[], Slopes]] = {}
        self._backs: tuple[Tensor, Tensor, Plan] | None = None

    @staticmethod
    def fits(policy: Policy, seen: Tensor) -> bool:
        """Whether minibatches of these observations can be prepared."""
        return seen.is_cpu and seen.dtype in KINDS and policy.is_fused and not policy.one_hot

    def load(self, index: Tensor, filled: Tensor | None, sources: Sequence[Tensor]) -> Prepared:
        """Becomes the minibatch of these rows."""
        if self.policy.normalize:
            self._factor.copy_(self.policy.scale.factor())
        self._gather.aim(index, filled, sources)
        self._plan.run()
        even = filled is None and self._alone
        if not (even and self._even):
            self.share.copy_(share_of(self.weight, self.total))
            self._even = even
        self._evaluated, self._gone = False, None
        return self

    @property
    def out(self) -> Tensor:
        """Outputs of the actor, with gradients."""
        self._evaluate()
        return self._out

    @property
    def value(self) -> Tensor:
        """Values of the critic, with gradients."""
        self._evaluate()
        return self._value

    @functools.cached_property
    def _forth(self) -> tuple[Tensor, Plan]:
        """Memory for the way back, and the way to the outputs."""
        kept, plan = self.policy.room(self.count), Plan()
        for call in self.policy.bind(self._x, self._out, self._value, kept):
            plan.add(call)
        self._out.requires_grad_()
        self._value.requires_grad_()
        return kept, plan

    def _evaluate(self) -> None:
        if not self._evaluated:
            self._forth[1].run()
            self._evaluated = True

    def normalize(self, name: str) -> None:
        """Gives a column mean 0 and deviation 1 within each member's minibatch."""
        if self._standardize:
            self._standardize[COLUMNS.index(name)]()
        else:
            super().normalize(name)

    def slopes(self, loss: Loss, hyper: Tensor) -> Slopes:
        """Gradients of a loss by what the networks said, with hyper-parameters (members, those of its formula)."""
        key = loss, id(hyper)  # whose address the calls have, and which they keep alive
        if self._evaluated or self.policy.critic is None:
            self._evaluate()
            if key not in self._losses:
                self._losses[key] = loss.bind(self._out, self._value, *self._beside(hyper))
            return self._losses[key]()
        call, finish = self._descents.get(key) or self._bind_descent(loss, hyper)
        call()
        slopes = finish()
        self._gone = (slopes.out, slopes.value, slopes.out._version, slopes.value._version)
        self.policy.gradient.of = self
        return slopes

    def _beside(self, hyper: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor, Tensor]:
        """What a loss takes besides the outputs."""
        return self.policy.log_std, self.mask, self.action, self.packed, self.share, hyper

    def _bind_descent(self, loss: Loss, hyper: Tensor) -> tuple[Call, Callable[[], Slopes]]:
        rows, finish = loss.bind_rows(self._out, self._value, *self._beside(hyper))
        slopes = finish()
        call = self.policy.bind_descent(self._x, self._out, self._value, rows, slopes.out, slopes.value)
        self._descents[loss, id(hyper)] = call, finish
        return call, finish

    def _go_back(self, slope: Tensor, of_value: Tensor) -> None:
        if self.policy.gradient.of is self and self._gone is not None:
            out, value, *versions = self._gone
            if slope is out and of_value is value and versions == [slope._version, of_value._version]:
                return
        self._evaluate()
        if self._backs is None or slope is not self._backs[0] or of_value is not self._backs[1]:
            plan, slopes = Plan(), (slope.contiguous(), of_value.contiguous())
            for call in self.policy.bind_back(self._x, self._forth[0], *slopes):
                plan.add(call)
            self._backs = *slopes, plan
        self._backs[2].run()
