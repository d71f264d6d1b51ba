"""Minibatches of transitions, evaluated by the policy as it now is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from baselines.native import KINDS, Gather, Rows, features
from baselines.networks import Policy
from baselines.plan import Plan

#: what a rollout knows about a transition
COLUMNS = ("advantage", "target", "old_value", "old_log_prob")


def share_of(weight: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    """Weights (members, rows), divided by their sum over all processes."""
    return weight / total(weight.sum(1, keepdim=True)).clamp(min=1)


class Minibatch:
    """Transitions of each member, (members, rows, ...) each.

    On a CPU the memory is that of the same part of the next pass: use what is here before, or copy it.

    Attributes:
        policy: as it now is.
        out: outputs of the actor, with gradients.
        value: of the critic, with gradients.
        back: makes the policy's gradient, from gradients of ``out`` and ``value``.
        mask: of legal choices, or None.
        action: what was done.
        weight: 1 for transitions, 0 for rows that fill up a member's share.
        share: the weight, divided by its sum over all processes.
        total: sums a tensor over all processes.
        packed: (members, rows, columns), what the rollout knows about the transitions, in the order of `COLUMNS`.
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
        prepared: dict[Any, Callable[[], Any]] | None = None,
    ) -> None:
        self.policy, self.out, self.value, self.back, self.mask, self.action = policy, out, value, back, mask, action
        self.packed, self.weight, self.share, self.total = packed, weight, share, total
        self.prepared = {} if prepared is None else prepared

    @property
    def columns(self) -> dict[str, Tensor]:
        """What the rollout knows about the transitions, by name; views of `packed`."""
        return dict(zip(COLUMNS, self.packed.unbind(-1), strict=True))

    @functools.cached_property
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


class Prepared:
    """Memory and calls of a CPU's minibatches of one size: to take the rows, and the networks' way forth and back.

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
        self.policy, self.count, self._total, self._alone = policy, count, total, alone
        self._gather, self._plan, M = Gather(shape, count, sources), Plan(), policy.members
        seen, self._action, self._packed, *masks = self._gather.taken
        self._mask = masks[0] if masks else None
        self._plan.add(self._gather.call)
        self._x, self._factor = seen.flatten(2), torch.empty_like(policy.scale.mean)
        if policy.normalize or seen.dtype != torch.float32:
            self._x = torch.empty(self._x.shape)
            scale = (policy.scale.mean, self._factor) if policy.normalize else (None, None)
            self._plan.add(features(self._x, Rows(seen.view(M * count, -1)), *scale))
        self._out, self._value = torch.empty(M, count, policy.actions.outputs), torch.empty(M, count)
        self._kept = policy.room(count)
        for call in policy.bind(self._x, self._out, self._value, self._kept):
            self._plan.add(call)
        self._out.requires_grad_()
        self._value.requires_grad_()
        self._share, self._even = torch.empty(M, count), False
        self._calls: dict[Any, Callable[[], Any]] = {}
        self._back: tuple[Tensor, Tensor, Plan] | None = None

    @staticmethod
    def fits(policy: Policy, seen: Tensor) -> bool:
        """Whether minibatches of these observations can be prepared."""
        return seen.is_cpu and seen.dtype in KINDS and policy.is_fused and not policy.one_hot

    def load(self, index: Tensor, filled: Tensor | None, sources: Sequence[Tensor]) -> Minibatch:
        """The minibatch of these rows, in the memory of the one that was loaded before."""
        if self.policy.normalize:
            self._factor.copy_(self.policy.scale.factor())
        self._gather.aim(index, filled, sources)
        self._plan.run()
        even = filled is None and self._alone  # all rows have the same share
        if not (even and self._even):
            self._share.copy_(share_of(self._gather.weight, self._total))
            self._even = even
        return Minibatch(
            self.policy, self._out, self._value, self._go_back, self._mask, self._action, self._packed,
            self._gather.weight, self._share, self._total, self._calls,
        )  # fmt: skip

    def _go_back(self, slope: Tensor, of_value: Tensor) -> None:
        if self._back is None or slope is not self._back[0] or of_value is not self._back[1]:
            plan, slopes = Plan(), (slope.contiguous(), of_value.contiguous())
            for call in self.policy.bind_back(self._x, self._kept, *slopes):
                plan.add(call)
            self._back = *slopes, plan
        self._back[2].run()
