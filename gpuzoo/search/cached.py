"""Evaluators, and one that remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

#: ``evaluate(observation, legal) -> (logits, value)``; see `gpuzoo.search.Search.run`
Evaluate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
MOST_BYTES = 2**26  # of the logits and values that are remembered


def evaluated(evaluate: Evaluate, observation: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
    """What an evaluator says of positions: float32 logits (R, A) and values (R,).

    Raises:
        ValueError: its tensors have other shapes.
    """
    with torch.no_grad():
        logits, value = evaluate(observation, legal)
    if logits.shape != legal.shape or value.shape != legal.shape[:1]:
        want = f"{tuple(legal.shape)} and {tuple(legal.shape[:1])}"
        raise ValueError(
            f"evaluate must return logits and values of shapes {want}, not {tuple(logits.shape)} and "
            f"{tuple(value.shape)}."
        )
    return logits.float(), value.float()


class Cached:
    """An evaluator that evaluates a position once, as long as it remembers it.

    Games that are searched side by side come to the same positions, and the search of the next move comes to many that
    the last one saw. It pays on a CPU, where a smaller batch takes less time. On a GPU each call waits for the device.

    A position is known by a hash of its observation and its legal actions, of 63 bits. Two positions have the same hash
    with a probability below 2^-48: it is a sum of 16-bit integers with random weights of 64 bits.

    The evaluator must be a function of the position, such as a network that does not change: make a new `Cached` after
    each phase of learning. Where a library rounds differently in batches of other sizes, so do the results.

    Args:
        evaluate: see `gpuzoo.search.Search.run`. It gets batches of fewer rows, some of them twice.
        capacity: how many positions are remembered at most, rounded down to a power of two; fewer where their logits
            would take more than 64 MiB. A new position takes the place of an older one.

    Attributes:
        asked, evaluated: positions that came, and those that were evaluated.

    Raises:
        ValueError: a capacity below 1; when it is called, what `evaluate` returns has other shapes.
    """

    def __init__(self, evaluate: Evaluate, capacity: int = 2**18) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}.")
        self._evaluate, self._capacity = evaluate, capacity
        self._weights = torch.zeros(0, dtype=torch.int64)
        self._key, self._owner, self._logits, self._value = (torch.zeros(0) for _ in range(4))
        self.asked = self.evaluated = 0

    def __call__(self, observation: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (R, A) and values (R,) of observations (R, ...) with legal actions, bool (R, A)."""
        if not len(self._weights):
            self._begin(observation, legal)
        key = self._keys(observation, legal)
        slot = (key >> 32) & (len(self._key) - 1)
        new = (self._key[slot] != key).nonzero()[:, 0]
        logits, value = self._logits[slot], self._value[slot]
        self.asked += len(key)
        if len(new):
            unique, group = key[new].unique(return_inverse=True)
            first = torch.empty_like(unique).scatter_(0, group, new)
            rows = first[torch.arange(padded(len(first), len(key)), device=new.device) % len(first)]
            found, worth = (x[: len(first)] for x in evaluated(self._evaluate, observation[rows], legal[rows]))
            self.evaluated += len(first)
            logits[new], value[new] = found[group], worth[group]
            self._remember(slot[first], key[first], found, worth)
        return logits, value

    def _begin(self, observation: Tensor, legal: Tensor) -> None:
        actions, device = legal.shape[1], legal.device
        slots = 1 << (min(self._capacity, MOST_BYTES // (4 * (actions + 1))).bit_length() - 1)
        generator = torch.Generator().manual_seed(0)
        size = numbers(observation, legal).shape[1]
        self._weights = torch.randint(-(2**63), 2**63 - 1, (size,), generator=generator).to(device)
        self._key, self._owner = (torch.zeros(slots, dtype=torch.int64, device=device) for _ in range(2))
        self._logits, self._value = torch.zeros((slots, actions), device=device), torch.zeros(slots, device=device)

    def _keys(self, observation: Tensor, legal: Tensor) -> Tensor:
        """int64 (R,), never 0: sums of the position's numbers, each with a random weight of its own."""
        return (numbers(observation, legal) * self._weights).sum(1) | 1

    def _remember(self, slot: Tensor, key: Tensor, logits: Tensor, value: Tensor) -> None:
        """Of several positions with one slot, one is kept."""
        here = torch.arange(len(slot), device=slot.device)
        self._owner[slot] = here
        mine = self._owner[slot] == here
        slot = slot[mine]
        self._key[slot], self._logits[slot], self._value[slot] = key[mine], logits[mine], value[mine]


def numbers(observation: Tensor, legal: Tensor) -> Tensor:
    """int64 (R, N): a position as integers of at most 16 bits, so that a weight loses few of its bits in a product."""
    seen = observation.flatten(1)
    seen = seen if seen.element_size() == 1 else seen.contiguous().view(torch.int16)
    return torch.cat([seen.long(), legal.long()], 1)


def padded(rows: int, most: int) -> int:
    """The size of a batch for so many rows: one of a few, as libraries compile convolutions for each size they meet."""
    size = 1 << (rows - 1).bit_length() if rows <= 32 else -(-rows // 32) * 32
    return min(size, most)
