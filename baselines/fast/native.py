"""What trainers do on a CPU between networks, samplers, envs and losses, as prepared calls.

Torch, which does the same on a GPU, takes longer to begin than these take in all.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from gpuzoo.core.backend import Unit

from .units import Call, Word, compile_unit, prepare, unit_code, words_of

#: numbers that `features` reads, by their places in its source
KINDS = (torch.float32, torch.int32, torch.int8, torch.uint8)
_KERNELS = ("run", "env_step", "copy", "features", "acting", "gather", "standardize", "clip")


@functools.cache
def unit() -> Unit:
    """The kernels of this file and of `Plan`."""
    return compile_unit(unit_code("plan.cuh", "minibatch.cuh"), "cpu", *_KERNELS)


# ---- in a rollout ----


class Rows:
    """Where rows lie in a tensor: those of the same places in each group.

    Args:
        x: contiguous; the first axis are the groups.
        places: of a group's rows, counted in elements from where the group begins; by default a row is all of a group.
    """

    def __init__(self, x: Tensor, places: Sequence[int] = (0,)) -> None:
        assert x.is_contiguous()
        self.x, self.groups, self.stride = x, len(x), x[0].nbytes
        self.places = torch.tensor([place * x.element_size() for place in places])

    @property
    def count(self) -> int:
        """Rows of all groups."""
        return self.groups * len(self.places)

    @property
    def words(self) -> list[Word]:
        """As the kernels take them."""
        return [self.x, self.stride, self.places]


def copy(to: Rows, source: Rows, size: int, when: Tensor | None = None) -> Call:
    """Copies the first ``size`` elements of each row; with ``when``, only if one of these flags is set."""
    assert (to.groups, len(to.places)) == (source.groups, len(source.places))
    assert to.x.dtype == source.x.dtype
    condition: list[Word] = [0, 0] if when is None else [when, when.numel()]
    words = [source.count, len(source.places), size * to.x.element_size(), *source.words, *to.words, *condition]
    return prepare(unit(), "copy", words)


def clear(x: Tensor, rows: Tensor) -> Call:
    """Fills some rows, the same of each member, of a contiguous (members, rows, size) with zeros."""
    size = x.shape[-1]
    zeros = Rows(torch.zeros(len(x), size, dtype=x.dtype), [0] * len(rows))
    return copy(Rows(x, (rows * size).tolist()), zeros, size)


def features(to: Tensor, source: Rows, mean: Tensor | None, factor: Tensor | None) -> Call:
    """Fills (members, rows, size) with the rows as float32, normalised by (members, size) if there is a mean."""
    members, rows, size = to.shape
    assert members * rows == source.count
    kind = KINDS.index(source.x.dtype)
    scale: list[Word] = [0, 0] if mean is None or factor is None else [mean, factor]
    words = [source.count, len(source.places), size, kind, rows, *source.words, *scale, to]
    return prepare(unit(), "features", words)


def acting(alive: Tensor, mask: Tensor | None, turn: Tensor | None, acts: Tensor, saved: Tensor | None) -> Call:
    """Whether agents act, (envs, agents): they live, have a legal action, and it is their turn. Saves the masks."""
    words = [len(alive), alive.shape[1], 0 if mask is None else mask.shape[-1], alive,
             *(0 if x is None else x for x in (mask, turn)), acts, 0 if saved is None else saved]  # fmt: skip
    return prepare(unit(), "acting", words)


# ---- in an update ----


class Gather:
    """Rows of tensors (steps, members, rows, ...), taken by their numbers step * rows + row.

    Args:
        shape: (steps, members, rows).
        count: how many are taken for each member.
        like: tensors such as the sources will be, four at most.

    Attributes:
        taken: (members, count, ...) of each source.
        weight: (members, count), 1 where a row is filled.
        call: takes what `aim` said.
    """

    def __init__(self, shape: tuple[int, int, int], count: int, like: Sequence[Tensor]) -> None:
        _, members, rows = shape
        self.taken = [torch.empty(members, count, *x.shape[3:], dtype=x.dtype) for x in like]
        self.weight = torch.ones(members, count)
        sizes = [x[0, 0].nbytes for x in self.taken] if count else [0] * len(like)
        parts: list[Word] = [w for x, size in zip(self.taken, sizes, strict=True) for w in (0, x, size)]
        parts += [0] * (12 - len(parts))
        self.call = prepare(unit(), "gather", [members * count, members, rows, 0, 0, 0, 0, self.weight, *parts])
        self._words = words_of(self.call)

    def aim(self, index: Tensor, filled: Tensor | None, sources: Sequence[Tensor]) -> None:
        """Says what to take.

        Args:
            index: int64 (members, count).
            filled: bool, of the same shape and strides; None: all are.
            sources: contiguous, like those that it was made for.
        """
        assert filled is None or filled.stride() == index.stride()
        words = self._words
        words[4], words[5] = index.data_ptr(), 0 if filled is None else filled.data_ptr()
        words[6], words[7] = index.stride()
        for k, x in enumerate(sources):
            words[9 + 3 * k] = x.data_ptr()


def standardize(packed: Tensor, column: int, share: Tensor) -> Call:
    """Gives a column of (members, rows, columns) mean 0 and deviation 1, by shares (members, rows) that sum up to 1."""
    assert all(x.is_contiguous() for x in (packed, share))
    members, rows, columns = packed.shape
    return prepare(unit(), "standardize", [members, rows, columns, packed[..., column:], share])


def clip(gradient: Tensor, limit: Tensor, factor: Tensor, count: Tensor) -> Call:
    """Factors (members, 1) that scale gradients (members, size) down to limits (members, 1); and counts the steps."""
    assert all(x.is_contiguous() for x in (gradient, limit, factor, count))
    return prepare(unit(), "clip", [len(gradient), gradient.shape[1], gradient, limit, factor, count])
