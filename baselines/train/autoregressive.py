"""Actions that consist of parts, chosen one after the other: each part knows those before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional

from .actions import IMPOSSIBLE, Actions

RANK = 8  # numbers by which a choice tells later parts of itself


class Autoregressive(Actions):
    """A distribution over the combinations of several parts, which a Discrete action counts with the last part fastest.

    The network says three things of each choice. Its logit counts by itself. Its code, `RANK` numbers, is what later
    parts see of it if it is taken; a fixed random code is added, so that choices differ from the beginning. Its key is
    what is multiplied with the sum of the codes of earlier choices; the product is added to the logit. A part's choice
    is legal if any legal action begins with the choices so far and this one.

    Args:
        space: of one agent's action.
        factors: choices of each part; their product is the number of actions.
        device: where the tensors lie.

    Raises:
        ValueError: the space is not Discrete, or has another number of actions.
    """

    def __init__(self, space: spaces.Space[object], factors: Sequence[int], device: torch.device | str = "cpu") -> None:
        super().__init__(space, device)
        self.factors = tuple(factors)
        if not isinstance(space, spaces.Discrete) or math.prod(self.factors) != int(space.n):
            raise ValueError(f"parts of {' x '.join(map(str, self.factors))} choices are no {space}.")
        total = sum(self.factors)
        self.outputs = total + RANK * (2 * total - self.factors[0] - self.factors[-1])
        codes = torch.randn(total - self.factors[-1], RANK, generator=torch.Generator().manual_seed(0))
        self._codes = (codes / math.sqrt(RANK)).to(device)

    def _parts(
        self, out: Tensor, mask: Tensor | None, action: Tensor | None, noise: Tensor | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Log-probabilities (..., choices) of each part after those before, and its choice (...,).

        Choices are those of ``action`` (...,), or the likeliest ones, with ``noise`` added to their log-probabilities.
        """
        first, last, total = self.factors[0], self.factors[-1], sum(self.factors)
        codes, keys = out[..., total:].unflatten(-1, (-1, RANK)).split([total - last, total - first], -2)
        codes = codes + self._codes
        said: Tensor | None = None
        legal = None if mask is None else mask != 0
        rest, begin = math.prod(self.factors), 0
        for factor in self.factors:
            rest //= factor
            logits = out[..., begin : begin + factor]
            if said is not None:
                logits = logits + (keys[..., begin - first : begin - first + factor, :] * said.unsqueeze(-2)).sum(-1)
            if legal is not None:
                legal = legal.unflatten(-1, (factor, rest))
                logits = logits.masked_fill(~legal.any(-1), IMPOSSIBLE)
            log = functional.log_softmax(logits, -1)
            if legal is not None:  # as in a part without a legal choice, see `Actions.log_probs`
                log = log.masked_fill(~legal.any(-1).any(-1, keepdim=True), 0)
            if action is not None:
                choice = action.long() // rest % factor
            elif noise is None:
                choice = logits.argmax(-1)
            else:
                drawn = noise[..., begin : begin + factor]
                if legal is not None:
                    drawn = drawn.masked_fill(log == 0, 0)
                choice = (log + drawn).argmax(-1)
            yield log, choice
            if legal is not None:
                legal = legal.take_along_dim(choice[..., None, None], -2).squeeze(-2)
            if begin + factor < total:
                code = codes[..., begin : begin + factor, :].take_along_dim(choice[..., None, None], -2).squeeze(-2)
                said = code if said is None else said + code
            begin += factor

    def evaluate(self, out: Tensor, log_std: Tensor, mask: Tensor | None, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of an action, and the entropies of its parts given those before it, added up.

        The latter's mean over actions of the policy is the entropy of the distribution. See `Actions.evaluate`.
        """
        chosen = entropy = out.new_zeros(out.shape[:-1])
        for log, choice in self._parts(out, mask, action.squeeze(-1)):
            chosen = chosen + log.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
            entropy = entropy - (log.exp() * log).sum(-1)
        return chosen, entropy

    def _chosen(self, out: Tensor, mask: Tensor | None, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        number = torch.zeros(out.shape[:-1], dtype=torch.long, device=out.device)
        total = out.new_zeros(out.shape[:-1])
        for factor, (log, choice) in zip(self.factors, self._parts(out, mask, None, noise), strict=True):
            number = number * factor + choice
            total = total + log.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
        return number.unsqueeze(-1), total

    def greedy(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """The likeliest choice of each part after those before, as an action (..., 1)."""
        return self._chosen(out, mask, None)[0]

    def choose(self, out: Tensor, log_std: Tensor, mask: Tensor | None, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Random actions (members, ..., 1) and their log-probabilities (members, ...); see `Actions.choose`."""
        return self._chosen(out, mask, noise)

    def log_probs(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """Log-probabilities (..., 1, actions) of all actions; 0 where none is legal."""
        every = torch.arange(math.prod(self.factors), device=out.device)
        wide = out.unsqueeze(-2).expand(*out.shape[:-1], len(every), out.shape[-1])
        legal = None if mask is None else mask.unsqueeze(-2).expand(*wide.shape[:-1], mask.shape[-1])
        action = every.expand(wide.shape[:-1])
        log = torch.zeros(wide.shape[:-1], device=out.device)
        for part, choice in self._parts(wide, legal, action):
            log = log + part.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
        if mask is not None:
            log = log.masked_fill((mask == 0) & (mask != 0).any(-1, keepdim=True), IMPOSSIBLE)
        return log.unsqueeze(-2)

    def logits(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """The same as `log_probs`."""
        return self.log_probs(out, mask)
