"""Draws of actions as prepared calls."""

from __future__ import annotations

import torch
from torch import Tensor

from ..train.player import Draws
from .kernels import CategoricalSampler, NormalSampler
from .units import Call


class Sampling:
    """Draws the actions of each step with the counter-based generator of the samplers.

    Args:
        draws: where it reads and writes.

    Attributes:
        out: (members, rows, outputs), network outputs for the next draw.
        mask: (members, rows, choices), legal choices for it, or None.
        calls: a draw for each step, from these two.
    """

    def __init__(self, draws: Draws) -> None:
        (T, M, R, parts), device, actions = draws.action.shape, draws.log_prob.device, draws.policy.actions
        self.out = torch.zeros(M, R, actions.outputs, device=device)
        self.mask: Tensor | None = None
        self.calls: list[Call]
        if not actions.discrete:
            normal, log_std = NormalSampler(parts, device), draws.policy.log_std
            self.calls = [
                normal.bind(draws.seeds, draws.counter, self.out, log_std, draws.action[t], draws.log_prob[t],
                            draws.first_row)
                for t in range(T)
            ]  # fmt: skip
            return
        if draws.masked:
            self.mask = torch.ones(M, R, sum(actions.nvec), dtype=torch.int8, device=device)
        categorical = CategoricalSampler(actions.nvec, draws.masked, device)
        self.calls = [
            categorical.bind(draws.seeds, draws.counter, self.out, self.mask, draws.action[t], draws.log_prob[t],
                             draws.first_row)
            for t in range(T)
        ]  # fmt: skip

    def __call__(self, t: int, out: Tensor, mask: Tensor | None) -> None:
        """Draws the actions of step ``t``."""
        self.out.copy_(out)
        if self.mask is not None and mask is not None:
            self.mask.copy_(mask)
        self.calls[t](t)
