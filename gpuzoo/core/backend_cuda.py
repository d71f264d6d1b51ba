"""NVIDIA GPUs: CuPy arrays, NVRTC, launches on the stream that torch (or else CuPy) has made current."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gpuzoo.core import nvrtc
from gpuzoo.core.backend import KERNELS, Event, Kernels, Launch, Stream, Unit
from gpuzoo.core.codegen import Program
from gpuzoo.core.layout import Shapes
from gpuzoo.core.moves import IS_ZERO, OR, Moves
from gpuzoo.core.pinned import Pinned

#: what was closed while a graph was captured, until somebody can wait for the device
_held: list[Any] = []

_NOTHING = contextlib.nullcontext()

_MISSING = "device='cuda' needs CuPy: pip install 'gpuzoo[cuda13]', or 'gpuzoo[cuda12]' for a CUDA 12 driver."


def available() -> bool:
    """Whether CuPy is installed and sees a GPU."""
    if importlib.util.find_spec("cupy") is None:
        return False
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # a broken driver shows as one of many errors, none of which is ours to report here
        return False


def _by_value(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A struct as an argument: CuPy passes an array of one element by value."""
    return words.view(f"V{words.nbytes}")


def block_size(threads: int, largest: int, multiprocessors: int) -> int:
    """Threads of a block for a launch of so many: fewer than usual where multiprocessors would have nothing to do."""
    block = largest
    while 32 < block <= 128 and threads <= block // 2 * multiprocessors:
        block //= 2
    return block


class _CudaKernels:
    def __init__(self, backend: CudaBackend, path: str, lanes: int, block: int) -> None:
        module = backend.xp.RawModule(path=path)
        self._backend, self._lanes, self._largest = backend, lanes, block
        self._multiprocessors = backend.multiprocessors()
        functions = {kernel: module.get_function(f"gz_{kernel}") for kernel in KERNELS}
        self.launches: Mapping[str, Launch] = {
            kernel: functools.partial(self._launch, function) for kernel, function in functions.items()
        }
        self.threads = 0
        self._last: tuple[int, int] = (-1, -1)  # what the arguments of the next launch mostly are again

    def _launch(self, function: Any, store: Any, argument: int, count: int, threads: int) -> None:
        if self._last != (argument, count):
            lanes = count * self._lanes
            block = block_size(lanes, self._largest, self._multiprocessors) if self._lanes <= 32 else self._largest
            self._last, self._grid, self._block = (argument, count), (-(-lanes // block),), (block,)
            self._numbers = np.int64(argument), np.int64(count)
        self._backend.launch(function, self._grid, self._block, (store, *self._numbers))


class _CudaUnit:
    BLOCK = 128

    def __init__(self, backend: CudaBackend, path: str, kernels: Sequence[str]) -> None:
        module = backend.xp.RawModule(path=path)
        self._backend = backend
        self._functions = {kernel: module.get_function(f"gz_{kernel}") for kernel in kernels}

    def bind(self, kernel: str, words: Sequence[int]) -> Callable[[int], None]:
        if not words[0]:  # the driver refuses a grid without blocks
            return lambda offset: None
        launch, function, block = self._backend.launch, self._functions[kernel], (self.BLOCK,)
        grid = (-(-words[0] // self.BLOCK),)
        arguments = _by_value(np.array(words, np.int64))

        def call(offset: int) -> None:
            launch(function, grid, block, (arguments, np.int64(offset)))

        return call


class _CudaEvent:
    def __init__(self, backend: CudaBackend, event: Any) -> None:
        self._backend, self._event = backend, event

    def done(self) -> bool:
        return bool(self._event.done)

    def join(self) -> None:
        with self._backend.ordered():
            self._backend.xp.cuda.get_current_stream().wait_event(self._event)


class _CudaStream:
    def __init__(self, backend: CudaBackend) -> None:
        self._backend = backend
        with backend.ordered():
            self._stream = backend.xp.cuda.Stream(non_blocking=True)

    def run(self, work: Callable[[], None]) -> Event:
        backend, new_event = self._backend, self._backend.xp.cuda.Event
        with backend.ordered():
            before, after = new_event(disable_timing=True), new_event(disable_timing=True)
            before.record()
            self._stream.wait_event(before)
            with backend.only(self._stream):
                work()
            after.record(self._stream)
        return _CudaEvent(backend, after)


class _Thread(threading.local):
    """What a thread has of a backend."""

    only: Any = None  # the stream that everything goes to; see `CudaBackend.only`


class CudaBackend:
    """One NVIDIA GPU.

    Args:
        index: number of the device.

    Raises:
        ImportError: CuPy is missing.
        RuntimeError: there is no such GPU.
    """

    def __init__(self, index: int = 0) -> None:
        if importlib.util.find_spec("cupy") is None:
            raise ImportError(_MISSING)
        import cupy

        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:
            raise RuntimeError(f"device='cuda': CuPy finds no usable GPU ({error}); use device='cpu'.") from error
        if index >= count:
            raise RuntimeError(f"device='cuda:{index}': there are {count} GPUs, numbered from 0; use device='cpu'.")
        self.index = index
        self.device = f"cuda:{index}"
        self.xp: ModuleType = cupy
        self.interleaves = self.scratch_per_env = True
        self._get_device: Callable[[], int] = cupy.cuda.runtime.getDevice
        self._streams: dict[int, Any] = {}
        self._torch_stream: Callable[[int], int] | None = None  # once torch uses CUDA
        self._thread = _Thread()
        self._pinned = Pinned(cupy)

    # ---- streams ----

    def is_current(self) -> bool:
        """Whether this thread's launches go to this device."""
        return self._get_device() == self.index

    def stream(self) -> Any:
        """The stream for launches and array operations, looked up at each use; None for CuPy's current one.

        It is torch's current one if torch is loaded and uses CUDA, else CuPy's; inside `only`, that one.
        """
        only = self._thread.only
        if only is not None:
            return only
        look_up = self._torch_stream
        if look_up is None:
            torch = sys.modules.get("torch")
            if torch is None or not torch.cuda.is_initialized():
                return None
            look_up = self._torch_stream = _raw_stream(torch)
        handle = look_up(self.index)
        return self._streams.get(handle) or self._wrapped(handle)

    def _wrapped(self, handle: int) -> Any:
        # CuPy 14 would rather have Stream.from_external, which destroys the stream of torch together with its own.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            stream = self._streams[handle] = self.xp.cuda.ExternalStream(handle, self.index)
        return stream

    def ordered(self) -> contextlib.AbstractContextManager[Any]:
        return self.stream() or _NOTHING if self.is_current() else self._on_device()

    @contextlib.contextmanager
    def _on_device(self) -> Iterator[None]:
        with self.xp.cuda.Device(self.index), self.stream() or _NOTHING:
            yield

    def launch(self, function: Any, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        """Launches a kernel on the current stream."""
        if self.is_current():
            function(grid, block, arguments, stream=self.stream())
            return
        with self.ordered():
            function(grid, block, arguments)

    @contextlib.contextmanager
    def only(self, stream: Any) -> Iterator[None]:
        """Everything that this thread does inside goes to this stream of CuPy's."""
        before, self._thread.only = self._thread.only, stream
        try:
            with stream:
                yield
        finally:
            self._thread.only = before

    def new_stream(self) -> Stream:
        return _CudaStream(self)

    def _captures(self) -> bool:
        """Whether a graph is being captured on the stream that work goes to now."""
        with self.ordered():
            try:
                return bool(self.xp.cuda.get_current_stream().is_capturing())
            except RuntimeError:  # the legacy stream cannot be asked beside a capture
                return True

    def synchronize(self) -> None:
        self.xp.cuda.Device(self.index).synchronize()

    def release(self, arrays: list[Any]) -> None:
        if self._captures():
            _held.append(arrays)
            return
        self.synchronize()
        _held.clear()

    def _refuse_capture(self, why: str) -> None:
        if self._captures():
            raise RuntimeError(f"a CUDA graph is being captured: {why}.")

    # ---- arrays ----

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self._new("zeros", shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self._new("empty", shape, dtype)

    def _new(self, contents: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of ``"zeros"``, or one that is ``"empty"``."""
        torch = sys.modules.get("torch")
        with self.ordered():
            if torch is None or not torch.cuda.is_initialized():
                return getattr(self.xp, contents)(shape, dtype)
            # one memory pool for both
            size = math.prod(shape) * np.dtype(dtype).itemsize
            raw = getattr(torch, contents)(max(1, size), dtype=torch.uint8, device=self.device)
            return self.xp.from_dlpack(raw)[:size].view(dtype).reshape(shape)

    def zeros_all(self, shapes: Shapes) -> tuple[list[Any], list[int]]:
        ends = list(itertools.accumulate(_whole_lines(shape, dtype) for shape, dtype in shapes.shapes))
        block = self.zeros((ends[-1],), "uint8")
        arrays, begin = [], 0
        for (shape, dtype), end in zip(shapes.shapes, ends, strict=True):
            size = math.prod(shape) * np.dtype(dtype).itemsize
            arrays.append(block[begin : begin + size].view(dtype).reshape(shape))
            begin = end
        first = self.address(block)
        return arrays, [first + begin for begin in (0, *ends[:-1])]

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def upload(self, array: Any, values: Any) -> None:
        host = np.broadcast_to(np.asarray(values, array.dtype), array.shape)
        with self.ordered():
            self._refuse_capture("values from host memory cannot be part of it; give arrays or tensors on the device")
            order = _as_it_lies(array)
            self._pinned.send(host.transpose(order), array.transpose(order))

    def fill(self, array: Any, byte: int) -> None:
        with self.ordered():
            array.data.memset_async(byte, array.nbytes)

    def to_numpy(self, array: Any) -> Any:
        with self.ordered():
            if array.flags.c_contiguous:
                return self.xp.asnumpy(array)
            order = _as_it_lies(array)
            host = self.xp.asnumpy(array.transpose(order))
        return np.ascontiguousarray(host.transpose(np.argsort(order)))

    def staged(self, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        with self.ordered():
            self._refuse_capture("arrays in host memory cannot be part of it; ask for output='torch'")
            return self._pinned.receive(arrays)

    @functools.cached_property
    def _moves(self) -> Moves:
        return Moves(self)

    def take(self, array: Any, envs: Any) -> Any:
        rows = self.empty((array.shape[0] if envs is None else len(envs), *array.shape[1:]), array.dtype)
        self._moves(rows, array, source_envs=envs)
        return rows

    def put(self, array: Any, envs: Any, rows: Any) -> None:
        with self.ordered():
            rows = self.xp.asarray(rows)
            count = array.shape[0] if envs is None else len(envs)
            rows = self.xp.broadcast_to(rows, (count, *array.shape[1:]))
        self._moves(array, rows, to_envs=envs)

    def copied(self, array: Any, dtype: Any = None) -> Any:
        copy = self.empty(array.shape, dtype or array.dtype)
        self.write(copy, array)
        return copy

    def write(self, target: Any, array: Any) -> None:
        with self.ordered():
            if array.dtype == target.dtype and array.flags.c_contiguous and target.flags.c_contiguous:
                target[...] = array  # a copy of memory
                return
        self._moves(target, array)

    def is_zero(self, array: Any) -> Any:
        found = self.empty(array.shape, "bool")
        self._moves(found, array, IS_ZERO)
        return found

    def either(self, one: Any, other: Any) -> Any:
        found = self.copied(one)
        self._moves(found, other, OR)
        return found

    def any(self, array: Any, axis: int | None = None) -> Any:
        found = self.zeros((1,) if axis is None else (*array.shape[:axis], *array.shape[axis + 1 :]), "bool")
        with self.ordered():
            everywhere = self.xp.broadcast_to(found if axis is None else self.xp.expand_dims(found, axis), array.shape)
        self._moves(everywhere, array, OR)
        return found

    # ---- kernels ----

    def multiprocessors(self) -> int:
        """How many blocks can run side by side, at least."""
        runtime = self.xp.cuda.runtime
        return int(runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, self.index))

    def store(self, members: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return _by_value(members)

    def _cubin(self, code: str, name: str, block: int | None = None) -> str:
        capability = self.xp.cuda.Device(self.index).compute_capability
        driver = self.xp.cuda.runtime.driverGetVersion()
        return str(nvrtc.cached_cubin(code, name, f"sm_{capability}", block, driver))

    def compile(self, program: Program) -> Kernels:
        path = self._cubin(program.code, program.env.id, None if program.debug else program.block)
        with self.xp.cuda.Device(self.index):
            return _CudaKernels(self, path, program.lanes, program.block)

    def compile_unit(self, code: str, name: str, kernels: Sequence[str]) -> Unit:
        path = self._cubin(code, name)
        with self.xp.cuda.Device(self.index):
            return _CudaUnit(self, path, kernels)


def _whole_lines(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of an array, in whole pieces of what the allocators align to."""
    return -(-math.prod(shape) * np.dtype(dtype).itemsize // 256) * 256


def _as_it_lies(array: Any) -> list[int]:
    """The axes in the order of the memory. For a copy that turns them CuPy would compile a kernel."""
    if array.flags.c_contiguous:
        return list(range(array.ndim))
    return sorted(range(array.ndim), key=lambda axis: -array.strides[axis])


def _raw_stream(torch: ModuleType) -> Callable[[int], int]:
    """A function that gives the handle of torch's current stream of a device."""
    found: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # without a new object
    return found or (lambda index: int(torch.cuda.current_stream(index).cuda_stream))
