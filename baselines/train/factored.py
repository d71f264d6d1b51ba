"""Actions that are chosen part by part, each given the parts before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional

from .actions import IMPOSSIBLE, Actions
from .parts import refusal

#: numbers by which a part tells the later ones what was chosen
RANK = 8

#: picks a choice (...,) of a part, from its number and the log-probabilities (..., choices)
Pick = Callable[[int, Tensor], Tensor]


class Legal:
    """What may be chosen in each part, given the choices before.

    Args:
        mask: (..., choices of an action) for whole actions, or (..., sum of the choices of the parts) for each part.
        factors: choices of each part.
        joint: whether it is of whole actions.
    """

    def __init__(self, mask: Tensor, factors: Sequence[int], joint: bool) -> None:
        self._lead, self._joint = mask.ndim - 1, joint
        self._left = mask.unflatten(-1, tuple(factors)) if joint else mask
        self._parts = () if joint else mask.split(list(factors), -1)

    def part(self, k: int) -> Tensor:
        """(..., choices) of part ``k``."""
        return self._left.unsqueeze(-1).flatten(self._lead + 1).any(-1) if self._joint else self._parts[k]

    def take(self, choice: Tensor) -> None:
        """A part is chosen: (...,)."""
        if self._joint:
            one = choice.view(*choice.shape, *[1] * (self._left.ndim - self._lead))
            self._left = self._left.take_along_dim(one, self._lead).squeeze(self._lead)


class FactoredActions(Actions):
    """An autoregressive distribution: p(a) = p(a_1) p(a_2 | a_1) p(a_3 | a_1, a_2) ...

    The parts are those of a MultiDiscrete action, or the digits of a Discrete one: of parts (3, 4), 7 is 1 and 3.
    The network says for each choice of a part a logit, the vector by which it is told to later parts, and the vector by
    which it listens to earlier ones. A part's logits are its own, plus the inner product of what a choice listens to
    and the sum of what was told. The cosines of the discrete cosine transform are added to what is told, so that each
    choice is told apart before anything was learnt.

    A Discrete action has one mask for whole actions. A part may then take the choices with which some legal action
    begins, given the parts before; so an illegal combination is never chosen. A MultiDiscrete action has a mask for
    each part, whatever the others are.

    The entropy is the sum of the parts' entropies, each given what the earlier parts are in the action at hand. Its
    mean over actions of the policy is the entropy of the whole distribution. The likeliest action is taken part by
    part, too.

    Args:
        space: of one agent's action.
        factors: choices of each part; see `parts.refusal`.
        device: where the tensors lie.

    Attributes:
        factors: choices of each part.

    Raises:
        ValueError: the factors do not fit the space.
    """

    at_once = False

    def __init__(self, space: spaces.Space[object], factors: Sequence[int], device: torch.device | str = "cpu") -> None:
        super().__init__(space, device)
        if fault := refusal(space, factors):
            raise ValueError(fault)
        self.factors, self.joint = tuple(factors), isinstance(space, spaces.Discrete)
        self._strides = torch.tensor([math.prod(factors[k + 1 :]) for k in range(len(factors))], device=device)
        self.draws = sum(self.factors)
        last = len(self.factors) - 1
        self._sizes = [
            size for k, n in enumerate(self.factors) for size in (n, n * RANK * (k < last), n * RANK * (k > 0))
        ]
        self.outputs = sum(self._sizes)
        self._codes = [
            torch.outer(torch.arange(n) + 0.5, torch.arange(1, RANK + 1)).mul(math.pi / n).cos().to(device)
            for n in self.factors
        ]

    def _walk(self, out: Tensor, mask: Tensor | None, pick: Pick) -> Iterator[tuple[Tensor, Tensor]]:
        """The log-probabilities (..., choices) and the choice (...,) of each part, one after the other.

        Log-probabilities are 0 in a part without a legal choice.
        """
        columns, told = out.split(self._sizes, -1), None
        left = None if mask is None else Legal(mask != 0, self.factors, self.joint)
        for k, n in enumerate(self.factors):
            logits, tells, listens = columns[3 * k : 3 * k + 3]
            if told is not None:
                logits = logits + (listens.unflatten(-1, (n, RANK)) * told.unsqueeze(-2)).sum(-1)
            if left is None:
                log = functional.log_softmax(logits, -1)
            else:
                legal = left.part(k)
                log = functional.log_softmax(logits.masked_fill(~legal, IMPOSSIBLE), -1)
                log = log.masked_fill(~legal.any(-1, keepdim=True), 0)
            choice = pick(k, log)
            yield log, choice
            if k + 1 < len(self.factors):
                place = choice[..., None, None].expand(*choice.shape, 1, RANK)
                code = self._codes[k][choice] + tells.unflatten(-1, (n, RANK)).gather(-2, place).squeeze(-2)
                told = code if told is None else told + code
                if left is not None:
                    left.take(choice)

    def _whole(self, choices: Sequence[Tensor]) -> Tensor:
        """The action (..., parts) of the space."""
        parts = torch.stack(list(choices), -1)
        return (parts * self._strides).sum(-1, keepdim=True) if self.joint else parts

    def _part(self, action: Tensor, k: int) -> Tensor:
        """What part ``k`` of an action (..., parts) is."""
        if not self.joint:
            return action[..., k].long()
        return action[..., 0].long() // self._strides[k] % self.factors[k]

    def evaluate(self, out: Tensor, log_std: Tensor, mask: Tensor | None, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of an action and entropy, see the class; each (...,). Arguments as in `Actions`."""
        chosen, entropy = out.new_zeros(out.shape[:-1]), out.new_zeros(out.shape[:-1])
        for log, choice in self._walk(out, mask, lambda k, _: self._part(action, k)):
            chosen = chosen + log.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
            entropy = entropy - (log.exp() * log).sum(-1)
        return chosen, entropy

    def greedy(self, out: Tensor, mask: Tensor | None) -> Tensor:
        """The likeliest choice of each part, given those before it, as an action (..., parts)."""
        return self._whole([choice for _, choice in self._walk(out, mask, lambda _, log: log.argmax(-1))])

    def choose(self, out: Tensor, log_std: Tensor, mask: Tensor | None, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Random actions and their log-probabilities, as in `Actions`."""
        drawn = noise.split(list(self.factors), -1)

        def pick(k: int, log: Tensor) -> Tensor:
            return (log + drawn[k].masked_fill(log == 0, 0)).argmax(-1)  # as in `Actions.choose`

        found, chosen = out.new_zeros(out.shape[:-1]), []
        for log, choice in self._walk(out, mask, pick):
            found = found + log.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
            chosen.append(choice)
        return self._whole(chosen), found


def meaning(space: spaces.Space[object], factors: Sequence[int], device: torch.device | str = "cpu") -> Actions:
    """What a network's outputs mean: independent distributions, or one part after the other where there are factors."""
    return FactoredActions(space, factors, device) if factors else Actions(space, device)
