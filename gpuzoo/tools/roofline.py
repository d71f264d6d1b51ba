"""The memory roofline of a step: the fewest bytes that it has to move, over the device's copy bandwidth.

The bytes of one env, from the declaration alone: every field of the state read and written once; every agent's
observation, action mask, reward, termination and truncation written once; its action read once; the engine's running
counts (return, length, who is alive) read and written once. Random draws, parameters, tables and what is rare (ends and
beginnings of episodes) count nothing. The bandwidth is that of the copy: bytes read plus bytes written, of arrays much
larger than the caches, by as many threads as step the envs. So a batch that stays in the caches, or a step that leaves
most of a large field alone, can be above 100 %.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gpuzoo.core.backend import Backend
from gpuzoo.core.codegen import Program
from gpuzoo.core.generated.store import ENGINE_ARRAYS
from gpuzoo.core.layout import flat_size

#: how often a step touches what the engine keeps: once where it only reads or only writes
_TOUCHES: Mapping[str, int] = {
    "reward": 1,
    "terminated": 1,
    "truncated": 1,
    "episode_return": 2,
    "alive": 2,
    "elapsed_steps": 2,
    "waiting": 1,
    "ended": 1,
}


class Copy:
    """A copy on the device, much larger than the caches, as work for a `Clock`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._on_cpu = backend.xp is np
        size = 2**27 if self._on_cpu else 2**30
        #: bytes read plus bytes written by one copy
        self.bytes = 2 * size
        with backend.ordered():
            self._source, self._target = backend.zeros((size,), "uint8"), backend.zeros((size,), "uint8")
        workers = int(getattr(backend, "threads", 1))
        edges = [size * k // workers for k in range(workers + 1)]
        self._parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
        self._pool = ThreadPoolExecutor(workers)

    def __call__(self, count: int) -> None:
        """Copies so many times."""
        for _ in range(count):
            if self._on_cpu:
                list(self._pool.map(lambda part: np.copyto(self._target[part], self._source[part]), self._parts))
            else:
                with self._backend.ordered():
                    self._backend.xp.copyto(self._target, self._source)
        self._backend.synchronize()


def step_bytes(program: Program) -> int:
    """The fewest bytes that a step of one env has to move; see the module's documentation."""
    lay = program.layout
    total = 2 * sum(int(np.prod(f.sizes)) * np.dtype(f.dtype).itemsize for f in program.fields.values())
    itemsize = np.dtype(lay.observation_dtype).itemsize
    for group, count in lay.groups.items():
        total += count * flat_size(lay.observation_spaces[group]) * itemsize
        total += count * flat_size(lay.action_spaces[group]) * np.dtype(lay.action_dtype).itemsize
    total += lay.agents * lay.mask_size
    for name, touches in _TOUCHES.items():
        dtype, per = ENGINE_ARRAYS[name]
        if name != "alive" or lay.agents > 1:
            total += touches * np.dtype(dtype).itemsize * (lay.agents if per == "A" else 1)
    return total
