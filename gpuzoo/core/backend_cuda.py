"""NVIDIA GPUs: CuPy arrays, NVRTC, launches on the stream that torch (or else CuPy) has made current."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gpuzoo.core import nvrtc
from gpuzoo.core.backend import KERNELS, Event, Kernels, Launch, Stream, Unit
from gpuzoo.core.codegen import Program
from gpuzoo.core.definition import Shapes

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


class _CudaKernels:
    def __init__(self, backend: CudaBackend, path: str, lanes: int, block: int) -> None:
        module = backend.xp.RawModule(path=path)
        self._backend, self._lanes, self._block = backend, lanes, block
        functions = {kernel: module.get_function(f"gz_{kernel}") for kernel in KERNELS}
        self.launches: Mapping[str, Launch] = {
            kernel: functools.partial(self._launch, function) for kernel, function in functions.items()
        }
        self.threads = 0

    def _launch(self, function: Any, store: Any, argument: int, count: int, threads: int) -> None:
        grid = (-(-count * self._lanes // self._block),)
        with self._backend.ordered():
            function(grid, (self._block,), (store, np.int64(argument), np.int64(count)))


class _CudaUnit:
    BLOCK = 128

    def __init__(self, backend: CudaBackend, path: str, kernels: Sequence[str]) -> None:
        module = backend.xp.RawModule(path=path)
        self._backend = backend
        self._functions = {kernel: module.get_function(f"gz_{kernel}") for kernel in kernels}

    def bind(self, kernel: str, words: Sequence[int]) -> Callable[[int], None]:
        if not words[0]:  # the driver refuses a grid without blocks
            return lambda offset: None
        ordered, function, block = self._backend.ordered, self._functions[kernel], (self.BLOCK,)
        grid = (-(-words[0] // self.BLOCK),)
        arguments = _by_value(np.array(words, np.int64))

        def call(offset: int) -> None:
            with ordered():
                function(grid, block, (arguments, np.int64(offset)))

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
        self._cupy = cupy
        self._index = index
        self.device = f"cuda:{index}"
        self.xp: ModuleType = cupy
        self.interleaves = self.scratch_per_env = True
        self._streams: dict[int, Any] = {}
        self._only: Any = None

    @contextlib.contextmanager
    def ordered(self) -> Iterator[None]:
        """The stream for launches and array operations, looked up at each use.

        It is torch's current one if torch is loaded and uses CUDA, else CuPy's; inside `only`, that one.
        """
        torch = sys.modules.get("torch")
        with self._cupy.cuda.Device(self._index):
            if self._only is not None:
                with self._only:
                    yield
                return
            if torch is None or not torch.cuda.is_initialized():
                yield
                return
            with self._stream(torch.cuda.current_stream(self._index).cuda_stream):
                yield

    @contextlib.contextmanager
    def only(self, stream: Any) -> Iterator[None]:
        """Everything inside goes to this stream of CuPy's."""
        before, self._only = self._only, stream
        try:
            with stream:
                yield
        finally:
            self._only = before

    def new_stream(self) -> Stream:
        return _CudaStream(self)

    def _stream(self, handle: int) -> Any:
        stream = self._streams.get(handle)
        if stream is None:
            # CuPy 14 would rather have Stream.from_external, which destroys the stream of torch together with its own.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                stream = self._streams[handle] = self._cupy.cuda.ExternalStream(handle, self._index)
        return stream

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        with self._cupy.cuda.Device(self._index):
            if importlib.util.find_spec("torch") is not None:
                import torch

                if torch.cuda.is_available():  # one memory pool for both
                    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                    raw = torch.zeros(max(1, size), dtype=torch.uint8, device=self.device)
                    return self._cupy.from_dlpack(raw)[:size].view(dtype).reshape(shape)
            return self._cupy.zeros(shape, dtype)

    def zeros_all(self, shapes: Shapes) -> tuple[list[Any], list[int]]:
        arrays = [self.zeros(shape, dtype) for shape, dtype in shapes.shapes]
        return arrays, [self.address(array) for array in arrays]

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def store(self, members: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return _by_value(members)

    def _cubin(self, code: str, name: str, block: int | None = None) -> str:
        capability = self._cupy.cuda.Device(self._index).compute_capability
        return str(nvrtc.cached_cubin(code, name, f"sm_{capability}", block))

    def compile(self, program: Program) -> Kernels:
        path = self._cubin(program.code, program.env.id, None if program.debug else program.block)
        with self._cupy.cuda.Device(self._index):
            return _CudaKernels(self, path, program.lanes, program.block)

    def compile_unit(self, code: str, name: str, kernels: Sequence[str]) -> Unit:
        path = self._cubin(code, name)
        with self._cupy.cuda.Device(self._index):
            return _CudaUnit(self, path, kernels)

    def to_numpy(self, array: Any) -> Any:
        with self.ordered():
            return self._cupy.asnumpy(array)

    def synchronize(self) -> None:
        self._cupy.cuda.Device(self._index).synchronize()
