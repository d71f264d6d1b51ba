"""Minibatches of transitions, and the policy's evaluation of them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from .loss import Row
from .networks import Policy


def share_of(weight: Tensor, all_reduce: Callable[[Tensor], Tensor]) -> Tensor:
    """Weights (members, rows), divided by their sum over all processes."""
    return weight / all_reduce(weight.sum(1, keepdim=True)).clamp(min=1)


@dataclasses.dataclass
class Sequences:
    """Extra inputs of a recurrent policy. The rows of its minibatch are sequences of steps.

    Attributes:
        count: of sequences; a member's rows are (steps, count), flattened.
        memory: (members, count, ...) before the first step.
        begins: (members, rows), 1 where an episode begins.
    """

    count: int
    memory: Tensor
    begins: Tensor

    def steps(self, x: Tensor) -> Tensor:
        """(members, steps * count, ...) -> (steps, members, count, ...)."""
        return x.unflatten(1, (-1, self.count)).transpose(0, 1)


@dataclasses.dataclass
class Minibatch:
    """Transitions of each member of a population, (members, rows, ...) each.

    An executor may use its memory again for a later minibatch: use what is here before, or copy it.

    Attributes:
        policy: learns from it.
        names: of the columns.
        observation: before the action.
        action: (members, rows, parts).
        packed: (members, rows, columns), what the rollout knows about the transitions.
        mask: of legal choices, or None.
        weight: 1 for transitions, 0 for rows that fill up a member's share.
        share: the weight, divided by its sum over all processes.
        all_reduce: sums a tensor over all processes.
        bf16: whether the networks compute in bfloat16.
        state: the global state, for a central critic.
        seat: which of its agents a row is, likewise.
        sequences: for a recurrent policy.
    """

    policy: Policy
    names: tuple[str, ...]
    observation: Tensor
    action: Tensor
    packed: Tensor
    mask: Tensor | None
    weight: Tensor
    share: Tensor
    all_reduce: Callable[[Tensor], Tensor]
    bf16: bool = False
    state: Tensor | None = None
    seat: Tensor | None = None
    sequences: Sequences | None = None

    @property
    def columns(self) -> dict[str, Tensor]:
        """The rollout's data of the transitions, by name: views of `packed`."""
        return dict(zip(self.names, self.packed.unbind(-1), strict=True))

    def mean(self, x: Tensor) -> Tensor:
        """(members, rows) -> (members, 1), over the transitions of all processes; with gradients, this one's share."""
        x = (x * self.share).sum(1, keepdim=True)
        return x if x.requires_grad else self.all_reduce(x)

    def normalize(self, name: str) -> None:
        """Gives a column mean 0 and deviation 1 within each member's minibatch."""
        x = self.packed[..., self.names.index(name)]
        x -= self.mean(x)
        x /= self.mean(x.square()).sqrt() + 1e-8

    def forward(self) -> tuple[Tensor, Tensor]:
        """Outputs (members, rows, outputs) and values ``(members, rows, *value_shape)``, with gradients."""
        s = self.sequences
        narrow = torch.autocast(self.packed.device.type, torch.bfloat16, cache_enabled=False) if self.bf16 else None
        with narrow or contextlib.nullcontext():
            if s is None:
                out, value, _ = self.policy(self.observation, self.state, self.seat)
                return out.float(), value.float()
            state, seat = (None if x is None else s.steps(x) for x in (self.state, self.seat))
            out, value, _ = self.policy(s.steps(self.observation), state, seat, s.memory, s.steps(s.begins))
            return out.transpose(0, 1).flatten(1, 2).float(), value.transpose(0, 1).flatten(1, 2).float()

    def row(self, out: Tensor, value: Tensor) -> Row:
        """The arguments of a loss, from the results of `forward`."""
        log_prob, entropy = self.policy.actions.evaluate(out, self.policy.log_std, self.mask, self.action)
        values = {"value": value}
        if self.policy.heads:
            names = ("value", *(f"value_{head}" for head in self.policy.heads))
            values = dict(zip(names, value.unbind(-1), strict=True))
        return Row(log_prob=log_prob, entropy=entropy, out=out, **values, **self.columns)
