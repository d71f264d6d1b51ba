"""Queues of envs that are stepped while their caller does something else: EnvPool's idea. Knows no RL library.

One file, as the queue of a CPU and that of a GPU keep the same contract, which stands here as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from gpuzoo.core.backend import Event
from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.headers import DEVICE
from gpuzoo.core.simulator import Simulator

_HEADERS: Final = ("base.cuh", "threads.cuh", "pool.cuh")
_SPINS: Final = "-DGZ_SPINS=500"  # beside the caller's own work, which a worker that spins would hold up
_NOTHING: Final = "recv() would wait forever: no env is in flight; call send() or async_reset() first."
_WORTH = 20_000  # nanoseconds of work for which a worker is called: what its waking up may cost
_MOVING = 20  # nanoseconds for an env's way from core to core: steps that are shorter stay with who receives
_KEPT: Final = 8  # sets of output arrays that are used again
_MAX_COLUMNS: Final = 12  # as in pool.cuh
_FLOAT64: Final = np.dtype(np.float64)

Array = np.ndarray[Any, Any]
Rows = tuple[Any, ...]


class Column(NamedTuple):
    """An array of the simulator that `receive` returns: its name, an env's rows of it, and the shape of a row."""

    name: str
    rows: int
    shape: tuple[int, ...]


class Queue(Protocol):
    """Envs that are in flight from `send` until `receive` returns them.

    Attributes:
        flight: uint8 (num_envs,): 1 while an env is in flight.
        usable: False after `close` and in the child of a fork.
    """

    flight: Array
    usable: bool

    @property
    def in_flight(self) -> int:
        """How many envs are in flight."""

    def send(self, envs: Array, actions: Any) -> bool:
        """Steps some envs in the background.

        Args:
            envs: integers (n,).
            actions: (n * agents, ...), an env's rows together; copied.

        Returns:
            False, with nothing changed, if an index is out of range, named twice or in flight.
        """

    def reset(self, envs: Array, reset: Callable[[], None]) -> bool:
        """Has some envs reset, which then wait to be received. Returns as `send`."""

    def receive(self, most: int) -> Rows:
        """Waits for the envs that are finished first, ``most`` of them, or all that are in flight if these are fewer.

        Returns:
            int32 indices of the envs, an index for each of their agents, and the columns, in arrays of the caller's.

        Raises:
            RuntimeError: none is in flight.
        """

    def close(self) -> None:
        """Forgets what is in flight."""


def _check_landed(queue: Queue) -> None:
    if queue.in_flight:
        raise RuntimeError(f"{queue.in_flight} envs are in flight: recv() them before the pool is copied or pickled.")


@functools.cache
def _functions() -> dict[str, Any]:
    code = "\n".join(f'#line 1 "{name}"\n' + (DEVICE / name).read_text(encoding="utf-8") for name in _HEADERS)
    library = ctypes.CDLL(str(compile_host(code, "pool", (_SPINS,))))
    pointer, number = ctypes.c_void_p, ctypes.c_longlong
    types: dict[str, tuple[Any, list[Any]]] = {
        "new": (pointer, [pointer]),
        "delete": (None, [pointer]),
        "send": (ctypes.c_int, [pointer, pointer, number]),
        "take_off": (ctypes.c_int, [pointer, number]),
        "put_back": (None, [pointer, number]),
        "land": (None, [pointer, pointer, number]),
        "receive": (ctypes.c_int, [pointer, pointer, number]),
    }
    out = {}
    for name, (result, arguments) in types.items():
        out[name] = function = getattr(library, f"gz_pool_{name}")
        function.restype, function.argtypes = result, arguments
    return out


_queues: weakref.WeakSet[Any] = weakref.WeakSet()


def _forked() -> None:
    for queue in list(_queues):
        queue.usable = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Outputs:
    """Arrays for what is received, their addresses as C has them, and how many references they have when idle."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        self.rows: Rows = tuple(arrays)
        self._addresses = np.array([a.ctypes.data for a in self.rows], np.uint64)
        self.address = int(self._addresses.ctypes.data)
        self.idle = list(map(sys.getrefcount, self.rows))


class HostQueue:
    """A `Queue` of a simulator on a CPU, whose envs are stepped by native threads, and by the one that receives.

    Args:
        simulator: the envs, in next-step mode.
        workers: native threads beside the one that receives.
        columns: what `receive` returns.
        action_shape: shape of a row of actions.

    Raises:
        RuntimeError: no compiler, or a system without POSIX threads.
    """

    def __init__(
        self, simulator: Simulator, workers: int, columns: Sequence[Column], action_shape: tuple[int, ...]
    ) -> None:
        if os.name != "posix":
            raise RuntimeError("the pool's threads need POSIX; on this system use make_vec.")
        n = simulator.num_envs
        self._arguments = (simulator, workers, columns, action_shape)
        self._simulator, self._agents = simulator, simulator.layout.agents
        self.flight = np.zeros(n, np.uint8)
        self._flying = np.zeros((), np.int64)  # counted in C: an interrupt may come between a call and what follows
        self._ids = np.zeros(n, np.int32)
        self._actions = np.zeros((n * self._agents, *action_shape), simulator.layout.action_dtype)
        self._parts: dict[int, tuple[Array, Array]] = {}
        indices = (1, (), np.dtype(np.int32)), (self._agents, (), np.dtype(np.int32))
        self._columns = [*indices, *((c.rows, c.shape, simulator.arrays[c.name].dtype) for c in columns)]
        self._sets: dict[int, list[_Outputs]] = {}
        # Without the GIL other threads' references are not all counted: then every batch gets new arrays.
        self._counted = getattr(sys, "_is_gil_enabled", lambda: True)()
        kernels: Any = simulator._kernels
        words = [kernels.address("step"), n, self._agents, len(columns), workers, _WORTH, _MOVING, kernels.pack_width]
        words += [a.ctypes.data for a in (self._ids, self._actions, self.flight, self._flying)]
        for name in ("action", *(c.name for c in columns)):
            words += [simulator.program.store.index(name), simulator.arrays[name][0].nbytes]
        words += [0, 0] * (_MAX_COLUMNS - len(columns))
        self._c = _functions()
        self._c_send, self._c_receive = self._c["send"], self._c["receive"]
        self._queue = self._c["new"]((ctypes.c_longlong * len(words))(*words))
        if self._queue is None:
            raise MemoryError("no memory is left for the pool.")
        self._memory = simulator._owned  # lives as long as the threads that write to it
        self.usable = True
        _queues.add(self)
        self._sending, self._receiving = threading.RLock(), threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        _check_landed(self)
        return HostQueue, self._arguments  # with threads of its own

    @property
    def in_flight(self) -> int:
        """As `Queue.in_flight`."""
        return int(self._flying)

    def _part(self, count: int) -> tuple[Array, Array]:
        part = self._ids[:count], self._actions[: count * self._agents]
        if len(self._parts) < _KEPT:
            self._parts[count] = part
        return part

    def send(self, envs: Array, actions: Any) -> bool:
        """As `Queue.send`."""
        count = len(envs)
        with self._sending:
            ids, place = self._parts.get(count) or self._part(count)
            ids[...] = envs
            if actions.dtype is _FLOAT64:
                with np.errstate(over="ignore"):  # what overflows becomes infinite, which the kernel clips
                    place[...] = actions
            else:
                place[...] = actions
            return bool(self._c_send(self._queue, self._simulator._store, count))

    def reset(self, envs: Array, reset: Callable[[], None]) -> bool:
        """As `Queue.reset`."""
        count = len(envs)
        with self._sending:
            self._part(count)[0][...] = envs
            if not self._c["take_off"](self._queue, count):
                return False
            try:
                reset()
            except BaseException:
                self._c["put_back"](self._queue, count)
                raise
            self._c["land"](self._queue, self._simulator._store, count)
        return True

    def _new_outputs(self, count: int) -> _Outputs:
        if len(self._sets) >= _KEPT:
            self._sets.clear()
        sets = self._sets.setdefault(count, [])
        outputs = _Outputs(np.empty((count * rows, *shape), dtype) for rows, shape, dtype in self._columns)
        if self._counted and len(sets) < _KEPT:
            sets.append(outputs)
        return outputs

    def receive(self, most: int) -> Rows:
        """As `Queue.receive`."""
        with self._receiving:
            count = self._flying.item()
            if count > most:
                count = most
            elif count == 0:
                raise RuntimeError(_NOTHING)
            for outputs in self._sets.get(count, ()):
                # Nobody else holds one of these arrays or a view of them: as in gpuzoo.interfaces.arrays.
                if list(map(sys.getrefcount, outputs.rows)) == outputs.idle:
                    break
            else:
                outputs = self._new_outputs(count)
            while not self._c_receive(self._queue, outputs.address, count):
                if not self.usable:
                    raise RuntimeError("the pool was closed while recv() waited.")
            return outputs.rows

    def close(self) -> None:
        """As `Queue.close`."""
        self.usable = False
        with self._sending, self._receiving:
            queue, self._queue = self._queue, None
            if queue is not None:
                self._c["delete"](queue)


@dataclasses.dataclass(eq=False)
class _Batch:
    ids: Array
    where: Any
    actions: Any
    event: Event | None  # None: it comes before the current stream's later work in any case


class StreamQueue:
    """A `Queue` of a simulator on a GPU: each batch is launched on a stream, and its event says when it is done.

    What is received is gathered on the current stream, which waits for the batch; the host does not. `receive` returns
    the oldest of the finished batches; if none is finished, the oldest of all.

    Args:
        simulator: the envs, in next-step mode.
        batch_size: most envs of a batch: what is sent is split.
        columns: what `receive` returns.
        streams: how many streams.
    """

    def __init__(self, simulator: Simulator, batch_size: int, columns: Sequence[Column], streams: int) -> None:
        self._arguments = (simulator, batch_size, columns, streams)
        self._simulator, self._backend, self._xp = simulator, simulator.backend, simulator.xp
        self.flight = np.zeros(simulator.num_envs, np.uint8)
        self._batch_size, self._columns = batch_size, columns
        self._streams = deque(self._backend.new_stream() for _ in range(streams))
        self._batches: deque[_Batch] = deque()
        self._alone = threading.Lock()
        self.usable = True
        _queues.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        _check_landed(self)
        return StreamQueue, self._arguments

    @contextlib.contextmanager
    def _one_thread(self) -> Iterator[None]:
        if not self._alone.acquire(blocking=False):
            raise RuntimeError(
                "another thread is in send(), recv() or reset() of this pool: on a GPU a pool is for one thread at a "
                "time; call them from one thread, or with a lock around them."
            )
        try:
            yield
        finally:
            self._alone.release()

    @property
    def in_flight(self) -> int:
        """As `Queue.in_flight`."""
        return sum(len(b.ids) for b in self._batches)

    def _take_off(self, envs: Array) -> bool:
        n = len(self.flight)
        if len(envs) and (envs.min() < 0 or envs.max() >= n):
            return False
        if self.flight[envs].any() or np.bincount(envs).max(initial=0) > 1:
            return False
        self.flight[envs] = 1
        return True

    def _on_device(self, actions: Any) -> Any:
        """A copy of actions in the simulator's dtype."""
        target = self._simulator.arrays["action"]
        shape = (-1, *target.shape[1:])
        if hasattr(actions, "data_ptr"):
            actions = actions.detach()
            if actions.is_cuda:
                narrow = actions.float() if target.dtype.kind == "f" else actions.int()
                return self._xp.from_dlpack(narrow.clone().contiguous()).reshape(shape)
            actions = actions.numpy()
        if not isinstance(actions, np.ndarray):
            return self._backend.copied(actions, target.dtype).reshape(shape)
        with np.errstate(over="ignore"):
            return self._xp.array(actions.astype(target.dtype)).reshape(shape)

    def send(self, envs: Array, actions: Any) -> bool:
        """As `Queue.send`. Raises RuntimeError while another thread uses the queue, as the methods below."""
        with self._one_thread():
            return self._send(envs, actions)

    def _send(self, envs: Array, actions: Any) -> bool:
        if not self._take_off(envs):
            return False
        with self._backend.ordered():
            rows = self._on_device(actions)
            wheres = self._xp.asarray(envs, dtype="int64")
        for begin in range(0, len(envs), self._batch_size):
            part = slice(begin, begin + self._batch_size)
            self._launch(np.array(envs[part], np.int32), wheres[part], rows[part])
        return True

    def _launch(self, ids: Array, where: Any, actions: Any) -> None:
        sim = self._simulator

        def work() -> None:
            self._backend.put(sim.arrays["action"], where, actions)
            sim.step(ids)

        event = self._streams[0].run(work)
        self._streams.rotate(-1)
        self._batches.append(_Batch(ids, where, actions, event))

    def reset(self, envs: Array, reset: Callable[[], None]) -> bool:
        """As `Queue.reset`."""
        with self._one_thread():
            return self._reset(envs, reset)

    def _reset(self, envs: Array, reset: Callable[[], None]) -> bool:
        if not self._take_off(envs):
            return False
        try:
            reset()
        except BaseException:
            self.flight[envs] = 0
            raise
        for begin in range(0, len(envs), self._batch_size):
            ids = np.array(envs[begin : begin + self._batch_size], np.int32)
            with self._backend.ordered():
                where = self._xp.asarray(ids, dtype="int64")
            self._batches.append(_Batch(ids, where, None, None))
        return True

    def receive(self, most: int) -> Rows:
        """As `Queue.receive`."""
        with self._one_thread():
            return self._receive(most)

    def _receive(self, most: int) -> Rows:
        if not self._batches:
            raise RuntimeError(_NOTHING)
        finished = (b for b in self._batches if b.event is None or b.event.done())
        batch = next(finished, self._batches[0])
        if batch.event is not None:
            batch.event.join()
        sim, ids = self._simulator, batch.ids
        taken = (self._backend.take(sim.arrays[c.name], batch.where) for c in self._columns)
        rows = [array.reshape(len(ids) * c.rows, *c.shape) for array, c in zip(taken, self._columns, strict=True)]
        self._batches.remove(batch)
        self.flight[ids] = 0
        return ids, np.repeat(ids, sim.layout.agents), *rows

    def close(self) -> None:
        """As `Queue.close`."""
        self.usable = False
        batches, self._batches = self._batches, deque()
        self._backend.release(list(batches))
