"""Arguments and results of a loss: rows of a minibatch, hyper-parameters, and numbers for the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

#: what the rollout knows about every transition
COLUMNS = ("advantage", "target", "old_value", "old_log_prob")


class Row:
    """A minibatch as a loss sees it: tensors (members, rows), with the names of what they hold.

    Attributes:
        log_prob: of the actions, by the policy as it now is; with a gradient, like the next two.
        entropy: of the policy's distribution.
        value: of the critic. Of a further head, see `Trainer.heads`, ``value_<head>``, and likewise the next three.
        advantage, target, old_value, old_log_prob: what the rollout knows, see `Learner.columns`; and whatever
            ``on_rollout`` added there.
        out: (members, rows, outputs), the network's own output: logits, or means. For losses that need more than the
            above; a loss that reads it is not fused.
    """

    def __init__(self, **columns: Tensor) -> None:
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Tensor:
        raise AttributeError(f"a row has no {name!r}; it has {', '.join(vars(self))}.")


class Hyper(Mapping[str, Tensor]):
    """Hyper-parameters in which the members of a population may differ: tensors (members, 1), by their names.

    They are views of one tensor, so what is written into one in place counts from then on.

    Args:
        values: of each, one number for each member.
        device: where they are needed.

    Attributes:
        table: (members, hyper-parameters).
    """

    def __init__(self, values: Mapping[str, list[float]], device: torch.device | str = "cpu") -> None:
        self._names = tuple(values)
        self.table = torch.tensor([*map(list, values.values())], dtype=torch.float32).T.contiguous().to(device)
        self._views = dict(zip(values, self.table.split(1, 1), strict=True))
        self.__dict__.update(self._views)

    def __getattr__(self, name: str) -> Tensor:
        raise AttributeError(f"there is no hyper-parameter {name!r} that members can differ in.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> Tensor:
        return self._views[name]

    def __len__(self) -> int:
        return len(self._names)


#: gives the loss of each row, and numbers of each row to log
Loss = Callable[[Row, Hyper], tuple[Tensor, dict[str, Tensor]]]


class Numbers(Mapping[str, Tensor]):
    """Numbers that a loss returns: by name, the mean over the minibatch (members,). Computed when first read.

    Args:
        names: of the numbers.
        means: makes (members, numbers).
    """

    def __init__(self, names: tuple[str, ...], means: Callable[[], Tensor]) -> None:
        self._names, self._means = names, means
        self._found: dict[str, Tensor] | None = None

    def __getitem__(self, name: str) -> Tensor:
        if self._found is None:
            self._found = dict(zip(self._names, self._means().unbind(1), strict=True))
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
