"""The networks of a policy as prepared calls, on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from ..train.networks import Policy
from .fused import Towers
from .native import Rows, copy
from .units import Call


class FusedPolicy:
    """The dense networks of a policy without memory, actor and critic in one call.

    Args:
        policy: one that is `served`.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy, self.shared = policy, policy.critic is None
        self._towers = Towers(policy.flat.data, self._shapes(policy), policy.actor.activation)

    @staticmethod
    def _shapes(policy: Policy) -> tuple[tuple[int, ...], ...]:
        """Sizes of the networks, whose parameters stand first in `Policy.flat`; none if they are more than that."""
        fits = all(n.plain for n in policy.networks) and not policy.central and not policy.heads
        return tuple(n.sizes for n in policy.networks) if fits else ()

    @classmethod
    def served(cls, policy: Policy) -> bool:
        """Whether all networks of a policy run in one call."""
        shapes = cls._shapes(policy)
        return bool(shapes) and not policy.one_hot and Towers.serves(policy.flat, shapes)

    def bind(self, x: Tensor, out: Tensor, value: Tensor, saved: Tensor | None = None) -> list[Call]:
        """Prepares what `Policy.forward` does with features.

        Args:
            x: (members, rows, features) float32.
            out: (members, rows, outputs), contiguous; is written.
            value: (members, rows), contiguous; is written.
            saved: from `workspace`, if there will be a backward pass.
        """
        if not self.shared:
            return [self._towers.bind(x, [out, value], saved)]
        both, columns = self._both(out)
        into = [Rows(out.view(len(both), -1)), Rows(value.view(-1, 1))]
        return [self._towers.bind(x, [both], saved), *map(copy, into, columns, (out.shape[-1], 1))]

    def workspace(self, rows: int) -> Tensor:
        """Memory for what `bind` saves of so many rows of each member."""
        return self._towers.workspace(rows * self.policy.members)

    def bind_backward(self, x: Tensor, saved: Tensor, of_out: Tensor, of_value: Tensor) -> list[Call]:
        """Prepares the backward pass, from gradients of what `bind` wrote, contiguous ones, to that of ``flat``."""
        gradient = self.policy.flat.grad
        assert gradient is not None
        if not self.shared:
            return [self._towers.bind_backward(x, saved, [of_out, of_value], gradient)]
        both, columns = self._both(of_out)
        sources = [Rows(of_out.view(len(both), -1)), Rows(of_value.view(-1, 1))]
        return [*map(copy, columns, sources, (of_out.shape[-1], 1)),
                self._towers.bind_backward(x, saved, [both], gradient)]  # fmt: skip

    def bind_whole(self, x: Tensor, out: Tensor, value: Tensor, loss: Call, of_out: Tensor, of_value: Tensor) -> Call:
        """Prepares forward pass, loss and backward pass as one call, for a critic of its own.

        ``loss`` is an entry for some of the rows that writes the gradients of ``out`` and ``value``, see
        `Loss.bind_rows`.
        """
        assert not self.shared
        assert self.policy.flat.grad is not None
        return self._towers.bind_whole(x, [out, value], loss, [of_out, of_value], self.policy.flat.grad)

    @staticmethod
    def _both(out: Tensor) -> tuple[Tensor, list[Rows]]:
        """A row for outputs and a value each, and where in it they lie."""
        both = torch.empty(out.shape[0] * out.shape[1], out.shape[2] + 1)
        return both, [Rows(both), Rows(both, [out.shape[2]])]
