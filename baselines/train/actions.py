"""What the outputs of a policy's network mean: distributions over discrete, multi-discrete and Box actions."""

from __future__ import annotations

import math

import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional

from gpuzoo.core.definition import choices, flat_size

IMPOSSIBLE = -1e8  # the logit of a choice that must not be taken


class Actions:
    """The distributions that belong to an action space.

    Discrete and MultiDiscrete actions are independent categoricals over logits (..., parts, width), in which shorter
    parts are padded; Box actions are normal distributions whose deviation does not depend on the observation, and which
    the env clips to the bounds.

    Args:
        space: of one agent's action.
        device: where the tensors lie.

    Attributes:
        discrete: whether actions are choices.
        nvec: number of choices of each part; empty for a Box.
        parts: numbers in an action.
        width: logits of each part; 1 for a Box.
        outputs: columns that the network must have.
    """

    def __init__(self, space: spaces.Space[object], device: torch.device | str = "cpu") -> None:
        self.nvec = choices(space)
        self.discrete = bool(self.nvec)
        self.parts = len(self.nvec) or flat_size(space)
        self.width = max(self.nvec) if self.nvec else 1
        self.outputs = self.parts * self.width
        places = [p * self.width + c for p, n in enumerate(self.nvec) for c in range(n)]
        self.ragged = self.discrete and len(places) < self.outputs
        self._places = torch.tensor(places, device=device)
        legal = torch.zeros(self.outputs, dtype=torch.bool)
        legal[places] = True
        self._legal = legal.view(self.parts, self.width).to(device)

    def logits(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """Logits (..., parts, width), with illegal and padded choices at `IMPOSSIBLE`.

        Args:
            out: (..., outputs).
            mask: (..., sum(nvec)), nonzero where legal, or None.
        """
        logits = out.unflatten(-1, (self.parts, self.width))
        if mask is not None:
            allowed = mask != 0
            if self.ragged:
                padded = torch.zeros(out.shape, dtype=torch.bool, device=out.device)
                allowed = padded.index_copy_(-1, self._places, allowed)
            return logits.masked_fill(~allowed.view_as(logits), IMPOSSIBLE)
        return logits.masked_fill(~self._legal, IMPOSSIBLE) if self.ragged else logits

    def evaluate(self, out: Tensor, log_std: Tensor, mask: Tensor | None, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of an action and entropy of the distribution, each (...,).

        Args:
            out: (members, ..., outputs) of the network.
            log_std: (members, parts) of Box actions.
            mask: (members, ..., sum(nvec)) or None.
            action: (members, ..., parts).
        """
        if self.discrete:
            log = functional.log_softmax(self.logits(out, mask), -1)
            chosen = log.gather(-1, action.long().unsqueeze(-1)).sum((-2, -1))
            return chosen, -(log.exp() * log).sum((-2, -1))
        log_std = log_std.unsqueeze(1)
        z = (action - out) * (-log_std).exp()
        scale = log_std.sum(-1) + 0.5 * self.parts * math.log(2 * math.pi)
        return -0.5 * z.square().sum(-1) - scale, (scale + 0.5 * self.parts).expand(z.shape[:-1])

    def greedy(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """The likeliest action (..., parts)."""
        return self.logits(out, mask).argmax(-1) if self.discrete else out

    def sample(self, out: Tensor, log_std: Tensor, mask: Tensor | None, generator: torch.Generator) -> Tensor:
        """A random action (..., parts), for playing; training draws with `baselines.fast.kernels.Sampler`."""
        if not self.discrete:
            noise = torch.empty_like(out).normal_(generator=generator)
            return out + log_std.unsqueeze(1).exp() * noise
        logits = self.logits(out, mask)
        noise = torch.empty_like(logits).exponential_(generator=generator)
        return (logits - noise.log()).argmax(-1)  # Gumbel's trick
