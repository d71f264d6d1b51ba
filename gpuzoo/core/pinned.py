"""Copies between a GPU and the host through pinned memory, which the GPU reaches by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Pinned:
    """Pinned memory that is used again at each call. All work is on CuPy's current stream.

    Args:
        cupy: the module.
    """

    def __init__(self, cupy: ModuleType) -> None:
        self._cupy = cupy
        self._place = np.zeros(0, np.uint8)  # for what is received
        #: for what is sent: two pieces in turn, each with the event behind its last copy
        self._pieces: deque[tuple[Array, Any]] = deque((self._place, None) for _ in range(2))

    def _of(self, memory: Array, size: int) -> Array:
        """This memory, or new one if it is too small."""
        return memory if len(memory) >= size else np.frombuffer(self._cupy.cuda.alloc_pinned_memory(size), np.uint8)

    def send(self, host: Array, target: Any) -> None:
        """Copies an array to the device. It may be changed as soon as this returns, when the device has yet to read.

        Args:
            host: the array.
            target: of the same shape and dtype; contiguous, or a part of an array that is.
        """
        memory, event = self._pieces[0]
        if event is None:
            event = self._cupy.cuda.Event(disable_timing=True)
        elif not event.done:
            event.synchronize()
        memory = self._of(memory, host.nbytes)
        piece = memory[: host.nbytes].view(host.dtype).reshape(host.shape)
        piece[...] = host
        if target.flags.c_contiguous:
            target.set(piece)
        else:
            self._send_part(piece, target)
        event.record()
        self._pieces[0] = memory, event
        self._pieces.rotate(-1)

    def _send_part(self, piece: Array, target: Any) -> None:
        """Fills a part of an array, such as one group's actions. CuPy would compile a kernel for it."""
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream().ptr
        axis, width = target.ndim, target.itemsize  # of neighbours
        while axis > 1 and target.strides[axis - 1] == width:
            axis -= 1
            width *= target.shape[axis]
        for place in np.ndindex(target.shape[1:axis]):
            to, source = target[(slice(None), *place)], piece[(slice(None), *place)]
            ends = to.data.ptr, to.strides[0], source.ctypes.data, source.strides[0]
            runtime.memcpy2DAsync(*ends, width, len(piece), runtime.memcpyHostToDevice, stream)

    def receive(self, arrays: Sequence[Any]) -> list[Array]:
        """Copies contiguous arrays to the host, with one wait. The next call writes into the same memory."""
        ends = np.cumsum([0, *(-(-array.nbytes // 64) * 64 for array in arrays)])
        self._place = self._of(self._place, int(ends[-1]))
        found = []
        for array, begin in zip(arrays, ends, strict=False):
            host = self._place[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
            array.get(out=host, blocking=False)
            found.append(host)
        self._cupy.cuda.get_current_stream().synchronize()
        return found
