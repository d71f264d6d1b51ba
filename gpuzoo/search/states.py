"""States of a simulator's envs as rows of bytes, and back, in one launch."""

from __future__ import annotations

import torch
from torch import Tensor

from gpuzoo.core.simulator import Simulator
from gpuzoo.search.tree import bound, unit_of


class States:
    """A place for states of one simulator's envs.

    Args:
        simulator: whose states; all that a snapshot has but observations and masks, which a step writes anew.
        rows: int64 (R,): numbers of rows, on the device; may be written between the calls. Where one is negative,
            nothing is copied.
        share: so many envs in turn have one row: ``num_envs == R * share``.
        into: another one, whose memory this one shares.
        count: number of rows, if ``into`` is None.
    """

    def __init__(
        self, simulator: Simulator, rows: Tensor, share: int = 1, into: States | None = None, count: int = 0
    ) -> None:
        columns, place = list[list[int]](), 0
        for array in simulator.episode_arrays().values():
            elements, size = int(array[0].size), int(array.itemsize)
            flat = [s for s, n in zip(array.strides[1:], array.shape[1:], strict=True) if n > 1]
            columns.append(
                [simulator.backend.address(array), array.strides[0], flat[-1] if flat else size, elements, size, place]
            )
            place += -(-elements * size // 8) * 8
        device = rows.device
        self.memory: Tensor = (
            torch.zeros((count, place), dtype=torch.uint8, device=device) if into is None else into.memory
        )
        table = torch.tensor(columns, dtype=torch.int64).to(device)
        items = simulator.num_envs * len(columns)
        words: list[int | Tensor] = [
            items,
            torch.get_num_threads(),
            len(columns),
            table,
            self.memory,
            place,
            rows,
            share,
        ]
        unit = unit_of(simulator.backend)
        self.save, self.load = (bound(unit, "state_carry", [*words, out]) for out in (1, 0))
