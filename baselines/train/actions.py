"""Distributions over discrete, multi-discrete and Box actions, from the outputs of a policy's network."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional

from gpuzoo.core.layout import choices, flat_size

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
        draws: random numbers for an action.
    """

    #: whether no part depends on another one
    at_once = True

    def __init__(self, space: spaces.Space[object], device: torch.device | str = "cpu") -> None:
        self.nvec = choices(space)
        self.discrete = bool(self.nvec)
        self.parts = len(self.nvec) or flat_size(space)
        self.width = max(self.nvec) if self.nvec else 1
        self.outputs = self.draws = self.parts * self.width
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
            return logits.masked_fill(~self.padded(mask != 0).view_as(logits), IMPOSSIBLE)
        return logits.masked_fill(~self._legal, IMPOSSIBLE) if self.ragged else logits

    def padded(self, values: Tensor) -> Tensor:
        """Values of choices (..., sum(nvec)) where their logits are, (..., outputs), and zeros between them."""
        if not self.ragged:
            return values
        zeros = torch.zeros((*values.shape[:-1], self.outputs), dtype=values.dtype, device=values.device)
        return zeros.index_copy_(-1, self._places, values)

    def log_probs(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """Log-probabilities (..., parts, width) of all choices; 0 in a part without a legal one."""
        logits = self.logits(out, mask)
        log = functional.log_softmax(logits, -1)
        return log if mask is None else log.masked_fill((logits == IMPOSSIBLE).all(-1, keepdim=True), 0)

    def evaluate(self, out: Tensor, log_std: Tensor, mask: Tensor | None, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of an action and entropy of the distribution, each (...,).

        A part without a legal choice adds nothing to either: its action cannot matter.

        Args:
            out: (members, ..., outputs) of the network.
            log_std: (members, parts) of Box actions.
            mask: (members, ..., sum(nvec)) or None.
            action: (members, ..., parts).
        """
        if self.discrete:
            log = self.log_probs(out, mask)
            chosen = log.gather(-1, action.long().unsqueeze(-1)).sum((-2, -1))
            return chosen, -(log.exp() * log).sum((-2, -1))
        log_std = log_std.unsqueeze(1)
        z = (action - out) * (-log_std).exp()
        scale = log_std.sum(-1) + 0.5 * self.parts * math.log(2 * math.pi)
        return -0.5 * z.square().sum(-1) - scale, (scale + 0.5 * self.parts).expand(z.shape[:-1])

    def greedy(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """The likeliest action (..., parts)."""
        return self.logits(out, mask).argmax(-1) if self.discrete else out

    def fill_noise(self, noise: Tensor, generators: Sequence[torch.Generator]) -> None:
        """Fills (members, ..., draws) with what makes an action random: Gumbel's noise for choices, else the normal.

        Args:
            noise: contiguous within a member.
            generators: one for each member; or one for all of them.
        """
        for x, generator in zip(noise if len(generators) > 1 else [noise], generators, strict=True):
            if self.discrete:
                x.exponential_(generator=generator)
            else:
                x.normal_(generator=generator)
        if self.discrete:
            noise.log_().neg_()

    def choose(self, out: Tensor, log_std: Tensor, mask: Tensor | None, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Random actions (members, ..., parts) and their log-probabilities (members, ...).

        Args:
            out: (members, ..., outputs) of the network.
            log_std: (members, parts) of Box actions.
            mask: (members, ..., sum(nvec)) or None.
            noise: from `fill_noise`.
        """
        if not self.discrete:
            action = out + log_std.unsqueeze(1).exp() * noise
            return action, self.evaluate(out, log_std, None, action)[0]
        log = self.log_probs(out, mask)
        noise = noise.view_as(log)
        if mask is not None:  # no noise makes a choice of probability 0 possible; without a legal one it is the first
            noise = noise.masked_fill(log == 0, 0)
        action = (log + noise).argmax(-1, keepdim=True)  # Gumbel's trick
        return action.squeeze(-1), log.gather(-1, action).sum((-2, -1))

    def sample(self, out: Tensor, log_std: Tensor, mask: Tensor | None, generator: torch.Generator) -> Tensor:
        """A random action (..., parts), see `choose`."""
        noise = torch.empty(*out.shape[:-1], self.draws, dtype=out.dtype, device=out.device)
        self.fill_noise(noise, [generator])
        return self.choose(out, log_std, mask, noise)[0]
