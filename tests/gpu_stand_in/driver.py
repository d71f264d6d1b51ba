"""A driver without a GPU: streams, events, captures, and a log of all that it was asked.

Work is done at once, whatever its stream, but for a capture: what is given to a capturing stream is kept in its graph
and done by each replay. What a driver refuses is refused: queries and waits within a capture, work on the legacy stream
beside one, a launch with another device current than the kernel's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator

#: kinds of entries that are work on a stream
WORK = ("launch", "compiled", "copy", "upload", "download", "fill", "torch")
LEGACY = 0  #: the handle of the legacy default stream


class DriverError(RuntimeError):
    """What CuPy and torch raise when the driver refuses."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """Something that the driver was asked.

    Attributes:
        kind: one of `WORK`: a launch, an operation that CuPy compiles at first use (only in `Driver.compiling`), a copy
            on the device, from the host or to it, a memset, an operation of torch; or ``allocate``, ``load``,
            ``record``, ``wait``, ``synchronize``.
        what: its name.
        stream: handle of the stream.
    """

    kind: str
    what: str
    stream: int


class _Thread(threading.local):
    def __init__(self) -> None:
        self.device = 0
        self.cupy: list[tuple[int, int]] = []  # (device, handle) of the streams entered
        self.torch: dict[int, int] = {}


class Driver:
    """One or more devices, all of which are the host."""

    def __init__(self, devices: int = 1, version: int = 13000) -> None:
        self.devices, self.version, self.multiprocessors = devices, version, 132
        self.log: list[Entry] = []
        self.thread = _Thread()
        self.graphs: dict[int, list[Callable[[], None]]] = {}  # by capturing stream
        self.torch_is_initialized = False
        self.refuses_waits = False  # as torch.cuda.set_sync_debug_mode("error")
        self.compiles = False  # whether operations may be asked for that CuPy compiles at first use
        self.failures: list[str] = []
        self._handles = itertools.count(0x7000, 16)

    # ---- streams ----

    def new_handle(self) -> int:
        return next(self._handles)

    def cupy_stream(self) -> int:
        """CuPy's current stream of the current device."""
        mine = [handle for device, handle in self.thread.cupy if device == self.thread.device]
        return mine[-1] if mine else LEGACY

    def torch_stream(self, device: int | None = None) -> int:
        self.torch_is_initialized = True
        return self.thread.torch.get(self.thread.device if device is None else device, LEGACY)

    @contextlib.contextmanager
    def on_device(self, device: int) -> Iterator[None]:
        before, self.thread.device = self.thread.device, device
        try:
            yield
        finally:
            self.thread.device = before

    # ---- work ----

    def note(self, kind: str, what: str, stream: int) -> None:
        self.log.append(Entry(kind, what, stream))

    def give(self, kind: str, what: str, stream: int, work: Callable[[], None]) -> None:
        """Work for a stream: done now, or by each replay of the graph that it becomes part of."""
        if kind == "compiled" and not self.compiles:
            self.refuse(f"{what}, which CuPy compiles at first use")
        self.note(kind, what, stream)
        if stream in self.graphs:
            self.graphs[stream].append(work)
            return
        if self.graphs and stream == LEGACY:
            self.refuse(f"{what} on the legacy stream while another stream is captured")
        work()

    def wait(self, what: str, stream: int = LEGACY) -> None:
        """The host waits for the device, or asks what it has done."""
        self.note("synchronize", what, stream)
        if self.graphs:
            self.refuse(f"{what} while a stream is captured")
        if self.refuses_waits:
            self.refuse(f"{what}: the host waits for the device")

    def refuse(self, message: str) -> None:
        """Raises, and remembers it for where nobody sees what is raised, as in a finalizer."""
        self.failures.append(message)
        raise DriverError(f"the driver refuses {message}.")

    def begin_capture(self, stream: int) -> None:
        if stream == LEGACY:
            self.refuse("to capture the legacy stream")
        self.graphs[stream] = []

    def end_capture(self, stream: int) -> list[Callable[[], None]]:
        return self.graphs.pop(stream)

    # ---- what tests ask ----

    def entries(self, *kinds: str) -> list[Entry]:
        return [entry for entry in self.log if not kinds or entry.kind in kinds]

    def streams(self) -> set[int]:
        """The streams that were given work."""
        return {entry.stream for entry in self.entries(*WORK)}

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """A caller's own operations inside may be any of CuPy's."""
        before, self.compiles = self.compiles, True
        try:
            yield
        finally:
            self.compiles = before

    @contextlib.contextmanager
    def unwatched(self) -> Iterator[None]:
        """What a test asks for itself inside is not noted, and may be anything."""
        start = len(self.log)
        try:
            with self.compiling():
                yield
        finally:
            del self.log[start:]

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[Entry]]:
        """What is asked inside."""
        entries: list[Entry] = []
        start = len(self.log)
        try:
            yield entries
        finally:
            entries += self.log[start:]


driver = Driver()


def restart(devices: int = 1, version: int = 13000) -> Driver:
    """A driver as at the start of a process, in place of the one before."""
    driver.__init__(devices, version)  # type: ignore[misc]
    return driver
