"""The C library's allocator."""

from __future__ import annotations

import contextlib
import ctypes
import functools


@functools.cache
def keep_freed_memory() -> None:
    """Lets the C library keep freed memory for the next minibatch, where it is glibc.

    By default it gives large blocks back to the system, which clears them page by page when they are wanted again: a
    third of the time of an update with large minibatches.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(-4, 0)  # M_MMAP_MAX
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
