"""In CuPy's place: arrays in host memory that refuse what CuPy's refuse, and note each operation with its stream.

One file, as it takes the place of one module.
"""

from __future__ import annotations

import ctypes
import operator
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import kernels
from .driver import LEGACY, driver

__version__ = "14.2.0"
uint8, int32, int64, uint64, float32, bool_ = np.uint8, np.int32, np.int64, np.uint64, np.float32, np.bool_
_CONVERSION = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
)


def _unwrapped(value: Any, what: str) -> Any:
    """An operand as NumPy takes it."""
    if isinstance(value, ndarray):
        if value.device.id != driver.thread.device:
            raise ValueError(f"{what}: an array of device {value.device.id} on device {driver.thread.device}.")
        return value._a
    if isinstance(value, np.ndarray) or hasattr(value, "data_ptr"):
        raise TypeError(f"Unsupported type {type(value)} in {what}")
    return value


def _index(key: Any) -> tuple[Any, bool]:
    """An index as NumPy takes it, and whether CuPy needs a kernel for it."""
    if isinstance(key, tuple):
        parts = [_index(k) for k in key]
        return tuple(k for k, _ in parts), any(advanced for _, advanced in parts)
    if isinstance(key, ndarray):
        return key._a, True
    if isinstance(key, (np.ndarray, list)):
        driver.note("upload", "an index", driver.cupy_stream())
        return np.asarray(key), True
    return key, False


def _is_mask(key: Any) -> bool:
    return any(getattr(k, "dtype", None) == np.bool_ for k in (key if isinstance(key, tuple) else (key,)))


def _made(kind: str, what: str, compute: Callable[[], Any]) -> ndarray:
    """A new array by an operation of the current stream."""
    handle = driver.cupy_stream()
    driver.note("allocate", what, handle)
    place = np.array(compute())

    def work() -> None:
        np.copyto(place, compute())

    driver.give(kind, what, handle, work)
    return ndarray(place)


def _changed(kind: str, what: str, work: Callable[[], None]) -> None:
    driver.give(kind, what, driver.cupy_stream(), work)


def _bases(array: Any) -> Iterator[Any]:
    """What an array's memory belongs to."""
    while array is not None:
        yield array
        array = getattr(array, "base", None) if isinstance(array, np.ndarray) else getattr(array, "obj", None)


class _Pointer:
    def __init__(self, array: ndarray) -> None:
        self._array, self.ptr, self.device_id = array, array._a.ctypes.data, array.device.id

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        array = self._array._a
        if not array.flags.c_contiguous or size > array.nbytes:
            driver.refuse("a memset beyond an array")
        handle = driver.cupy_stream() if stream is None else stream.ptr
        driver.give("fill", "memset", handle, lambda: array.reshape(-1).view(np.uint8)[:size].fill(value))


class ndarray:  # noqa: N801 CuPy's name
    """An array on the device that was current when it was made."""

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray[Any, Any], device: int | None = None) -> None:
        self._a = array
        self.device = Device(driver.thread.device if device is None else device)

    data = property(_Pointer)
    dtype = property(lambda self: self._a.dtype)
    shape = property(lambda self: self._a.shape)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    nbytes = property(lambda self: self._a.nbytes)
    itemsize = property(lambda self: self._a.itemsize)
    strides = property(lambda self: self._a.strides)
    flags = property(lambda self: self._a.flags)
    T = property(lambda self: self._view(self._a.T))

    def _view(self, array: np.ndarray[Any, Any]) -> ndarray:
        return ndarray(array, self.device.id)

    # ---- to the host ----

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(_CONVERSION)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        handle = driver.cupy_stream() if stream is None else stream.ptr
        if not self._a.flags.c_contiguous:
            _made("compiled", "a contiguous copy", lambda: self._a)
        if out is None:
            out = np.empty(self.shape, self.dtype)
        elif out.dtype != self.dtype or out.shape != self.shape or not out.flags.c_contiguous:
            raise ValueError(f"{out.dtype} {out.shape} array cannot be obtained from {self.dtype} {self.shape} array")
        if blocking:
            driver.wait("get", handle)
        driver.give("download", "get", handle, lambda: np.copyto(out, self._a))
        return out

    def item(self) -> Any:
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def tobytes(self) -> bytes:
        return bytes(self.get().tobytes())

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __index__(self) -> int:
        return operator.index(self.get())

    def __reduce__(self) -> tuple[Any, ...]:
        return array, (self.get(),)

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a device array is iterated over, element by element.")

    def __repr__(self) -> str:
        return f"array({self._a!r})"

    # ---- from the host, and copies ----

    def set(self, arr: Any, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self._a.flags.c_contiguous or self._a.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        handle = driver.cupy_stream() if stream is None else stream.ptr
        if handle in driver.graphs:
            raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
        if not any(isinstance(memory, _Pinned) for memory in _bases(arr)):
            driver.refuse("an asynchronous copy from memory that is not pinned")
        driver.give("upload", "set", handle, lambda: np.copyto(self._a, arr))

    def fill(self, value: Any) -> None:
        if isinstance(value, ndarray):
            raise ValueError("non-scalar cupy.ndarray cannot be used for fill")
        value = np.asarray(value, self.dtype)
        if value.shape != ():
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        is_memset = bool(value == 0) and self._a.flags.c_contiguous
        _changed("fill" if is_memset else "compiled", "fill", lambda: self._a.fill(value[()]))

    def copy(self, order: str = "C") -> ndarray:
        return self.astype(self.dtype)

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> ndarray:
        dtype = np.dtype(dtype)
        if not copy and dtype == self.dtype:
            return self
        plain = dtype == self.dtype and self._a.flags.c_contiguous
        return _made("copy" if plain else "compiled", "astype", lambda: self._a.astype(dtype, "C"))

    def reshape(self, *shape: Any) -> ndarray:
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        new = self._a.reshape(shape)
        if new.size == 0 or np.shares_memory(new, self._a):
            return self._view(new)
        return _made("compiled", "reshape", lambda: self._a.reshape(shape))

    def view(self, dtype: Any) -> ndarray:
        return self._view(self._a.view(dtype))

    def transpose(self, *axes: Any) -> ndarray:
        return self._view(self._a.transpose(*axes))

    def ravel(self) -> ndarray:
        return self.reshape(-1)

    def flatten(self) -> ndarray:
        return self.reshape(-1).copy()

    def repeat(self, repeats: Any, axis: int | None = None) -> ndarray:
        repeats = _unwrapped(repeats, "repeat")
        return _made("compiled", "repeat", lambda: self._a.repeat(repeats, axis))

    def __getitem__(self, key: Any) -> ndarray:
        place, advanced = _index(key)
        if not advanced:
            part = self._a[place]
            if isinstance(part, np.generic):  # CuPy has arrays without axes in place of scalars
                position = place if isinstance(place, tuple) else (place,)
                part = self._a[(*position, ...)]
            return self._view(part)
        if _is_mask(key):
            driver.wait("the number of True in an index", driver.cupy_stream())
        return _made("compiled", "take", lambda: self._a[place])

    def __setitem__(self, key: Any, value: Any) -> None:
        if hasattr(value, "data_ptr"):
            value = asarray(value)
        place, advanced = _index(key)
        if advanced:
            value = asarray(value) if isinstance(value, np.ndarray) else value
            other = value._a if isinstance(value, ndarray) else value
            _changed("compiled", "scatter", lambda: self._a.__setitem__(place, other))
            return
        part = self[key]
        if not isinstance(value, ndarray):
            part.fill(value)
            return
        if part._a.ctypes.data == value._a.ctypes.data and part.strides == value.strides and part.shape == value.shape:
            return
        same = part.shape == value.shape and part.dtype == value.dtype
        plain = same and part._a.flags.c_contiguous and value._a.flags.c_contiguous
        source = value._a
        kind = "copy" if plain else "compiled"
        _changed(kind, "copy", lambda: np.copyto(part._a, np.asarray(source), casting="unsafe"))

    # ---- operations that CuPy compiles ----

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            return NotImplemented
        operands = [_unwrapped(x, ufunc.__name__) for x in inputs]
        return _made("compiled", ufunc.__name__, lambda: ufunc(*operands))

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        own = globals().get(function.__name__)
        return NotImplemented if own is None else own(*args, **kwargs)

    def _reduced(self, name: str, axis: Any, keepdims: bool) -> ndarray:
        return _made("compiled", name, lambda: getattr(self._a, name)(axis=axis, keepdims=keepdims))

    def any(self, axis: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced("any", axis, keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced("all", axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced("max", axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced("min", axis, keepdims)

    def sum(self, axis: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced("sum", axis, keepdims)

    # ---- other libraries ----

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        wants = 1 if stream is None else stream
        if wants == 0:
            warnings.warn("Stream 0 is passed from a library that you are converting to", stacklevel=2)
            wants = 1
        mine = driver.cupy_stream() or 1
        if wants >= 0 and wants != mine:
            _record(driver.cupy_stream())
            _wait(0 if wants == 1 else wants)
        driver.note("export", "__dlpack__", driver.cupy_stream())
        return self._a.__dlpack__()


def _operators() -> None:
    """Operators between arrays, and with numbers; NumPy's arrays are refused."""

    def define(name: str, function: Any) -> None:
        def forward(self: ndarray, other: Any) -> Any:
            other = _unwrapped(other, name)
            return _made("compiled", name, lambda: function(self._a, other))

        def backward(self: ndarray, other: Any) -> Any:
            other = _unwrapped(other, name)
            return _made("compiled", name, lambda: function(other, self._a))

        def in_place(self: ndarray, other: Any) -> ndarray:
            other = _unwrapped(other, name)
            _changed("compiled", name, lambda: np.copyto(self._a, function(self._a, other), casting="same_kind"))
            return self

        setattr(ndarray, f"__{name}__", forward)
        setattr(ndarray, f"__r{name}__", backward)
        setattr(ndarray, f"__i{name}__", in_place)

    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split():
        define(name, getattr(operator, f"{name}_" if name in ("and", "or") else name))
    for name in "lt le gt ge eq ne".split():

        def compare(self: ndarray, other: Any, name: str = name) -> Any:
            other = _unwrapped(other, name)
            return _made("compiled", name, lambda: getattr(operator, name)(self._a, other))

        setattr(ndarray, f"__{name}__", compare)
    for name in ("invert", "neg", "abs"):

        def alone(self: ndarray, name: str = name) -> Any:
            return _made("compiled", name, lambda: getattr(operator, name)(self._a))

        setattr(ndarray, f"__{name}__", alone)


_operators()

# ---- the module's functions ----


def array(obj: Any, dtype: Any = None, copy: bool = True) -> ndarray:
    if isinstance(obj, ndarray):
        return obj.astype(obj.dtype if dtype is None else dtype, copy=copy)
    if isinstance(obj, (list, tuple)) and any(isinstance(x, ndarray) for x in obj):
        raise TypeError("a list of device arrays")
    if getattr(obj, "is_cuda", False):  # by __cuda_array_interface__, without a copy
        return array(ndarray(obj.host().numpy(), obj.device.index), dtype, copy)
    host = np.array(obj, dtype)
    if host.dtype.kind not in "biufcV":
        raise ValueError(f"Unsupported dtype {host.dtype}")
    handle = driver.cupy_stream()
    if handle in driver.graphs:
        raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
    return _made("upload", "array", lambda: host)


def asarray(a: Any, dtype: Any = None) -> ndarray:
    return array(a, dtype, copy=False)


def empty(shape: Any, dtype: Any = float) -> ndarray:
    driver.note("allocate", "empty", driver.cupy_stream())
    return ndarray(np.full(shape, 0, dtype))


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    out = empty(shape, dtype)
    out.data.memset_async(0, out.nbytes)
    return out


def arange(*args: Any, dtype: Any = None) -> ndarray:
    return _made("compiled", "arange", lambda: np.arange(*args, dtype=dtype))


def ascontiguousarray(a: ndarray) -> ndarray:
    return a if a._a.flags.c_contiguous else a.copy()


def moveaxis(a: ndarray, source: int, destination: int) -> ndarray:
    return a._view(np.moveaxis(a._a, source, destination))


def expand_dims(a: ndarray, axis: int) -> ndarray:
    return a._view(np.expand_dims(a._a, axis))


def broadcast_to(a: ndarray, shape: Any) -> ndarray:
    return a._view(np.broadcast_to(a._a, shape))


def flatnonzero(a: ndarray) -> ndarray:
    driver.wait("the number of True", driver.cupy_stream())
    return _made("compiled", "flatnonzero", lambda: np.flatnonzero(a._a))


def concatenate(arrays: Any, axis: int = 0) -> ndarray:
    parts = [_unwrapped(x, "concatenate") for x in arrays]
    if not all(isinstance(x, ndarray) for x in arrays):
        raise TypeError("Only cupy arrays can be concatenated")
    return _made("compiled", "concatenate", lambda: np.concatenate(parts, axis))


def isfinite(a: ndarray) -> ndarray:
    return _made("compiled", "isfinite", lambda: np.isfinite(a._a))


def copyto(dst: ndarray, src: Any) -> None:
    if isinstance(src, np.ndarray) and src.size != 1:
        raise ValueError("non-scalar numpy.ndarray cannot be used for copyto")
    dst[...] = src


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    if isinstance(a, ndarray):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    return np.asarray(a, order=order)  # type: ignore[call-overload]


def from_dlpack(x: Any) -> ndarray:
    if isinstance(x, ndarray):
        return x._view(x._a)
    if not getattr(x, "is_cuda", False):
        raise TypeError(f"{type(x)} is not on a GPU")
    if driver.torch_stream() != driver.cupy_stream():
        _record(driver.torch_stream())
        _wait(driver.cupy_stream())
    return ndarray(x.host().numpy(), x.device.index)


class _MemoryPool:
    def total_bytes(self) -> int:
        """Grows with every allocation: nobody frees here."""
        return sum(entry.kind == "allocate" for entry in driver.log)

    def used_bytes(self) -> int:
        return self.total_bytes()


def get_default_memory_pool() -> _MemoryPool:
    return _MemoryPool()


class RawModule:
    def __init__(self, *, path: str) -> None:
        if not isinstance(path, str):
            raise TypeError(f"path must be a str, not {path!r}.")
        self._path = path
        driver.note("load", "module", driver.cupy_stream())
        if driver.graphs:
            driver.refuse("to load a module while a stream is captured")

    def get_function(self, name: str) -> kernels.Kernel:
        return kernels.Kernel(kernels.binaries[self._path], name, driver.thread.device)


# ---- cupy.cuda ----


def _record(handle: int) -> None:
    driver.note("record", "event", handle)
    if driver.graphs and handle not in driver.graphs:
        driver.refuse("to order a capturing stream behind one that is not captured")


def _wait(handle: int) -> None:
    driver.note("wait", "event", handle)


class Device:
    compute_capability = "90"

    def __init__(self, device: int | None = None) -> None:
        self.id = driver.thread.device if device is None else int(device)
        self._before: list[int] = []

    def __enter__(self) -> Device:
        self._before.append(driver.thread.device)
        driver.thread.device = self.id
        return self

    def __exit__(self, *error: object) -> None:
        driver.thread.device = self._before.pop()

    def synchronize(self) -> None:
        driver.wait("Device.synchronize")


class _BaseStream:
    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id = ptr, device_id

    def __enter__(self) -> _BaseStream:
        device = driver.thread.device if self.device_id == -1 else self.device_id
        if device != driver.thread.device:
            raise RuntimeError("This stream was not created on the current device")
        driver.thread.cupy.append((device, self.ptr))
        return self

    def __exit__(self, *error: object) -> None:
        driver.thread.cupy.pop()

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        _wait(self.ptr)

    def synchronize(self) -> None:
        driver.wait("Stream.synchronize", self.ptr)

    def is_capturing(self) -> bool:
        return self.ptr in driver.graphs

    def begin_capture(self, mode: Any = None) -> None:
        driver.begin_capture(self.ptr)

    def end_capture(self) -> list[Callable[[], None]]:
        return driver.end_capture(self.ptr)


class Stream(_BaseStream):
    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
        super().__init__(LEGACY if null else driver.new_handle(), driver.thread.device)


class ExternalStream(_BaseStream):
    def __init__(self, ptr: int, device_id: int = -1) -> None:
        warnings.warn("ExternalStream is deprecated; use Stream.from_external.", DeprecationWarning, stacklevel=2)
        super().__init__(ptr, device_id)


class Event:
    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        pass

    def record(self, stream: _BaseStream | None = None) -> None:
        _record(driver.cupy_stream() if stream is None else stream.ptr)

    @property
    def done(self) -> bool:
        driver.note("query", "event", driver.cupy_stream())
        if driver.graphs:
            driver.refuse("an event's state while a stream is captured")
        return True

    def synchronize(self) -> None:
        driver.wait("Event.synchronize")


class _Pinned(bytearray):
    """Host memory that the device can reach by itself."""

    @property
    def ptr(self) -> int:
        return int(np.frombuffer(self, np.uint8).ctypes.data)


def _alloc_pinned_memory(size: int) -> _Pinned:
    driver.note("allocate", "pinned", driver.cupy_stream())
    if driver.graphs:
        driver.refuse("to allocate pinned memory while a stream is captured")
    memory = _Pinned(size)
    _pinned.append(weakref.ref(memory))
    return memory


_pinned: list[weakref.ref[_Pinned]] = []


def _is_pinned(begin: int, end: int) -> bool:
    alive = [memory for reference in _pinned if (memory := reference()) is not None]
    return any(memory.ptr <= begin and end <= memory.ptr + len(memory) for memory in alive)


def _memcpy_2d_async(
    dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int
) -> None:
    if kind != runtime.memcpyHostToDevice or width > min(dpitch, spitch):
        driver.refuse("a copy of lines that overlap, or to the host")
    if stream in driver.graphs:
        driver.refuse("an upload while a stream is captured")
    if not _is_pinned(src, src + (height - 1) * spitch + width):
        driver.refuse("an asynchronous copy from memory that is not pinned")

    def work() -> None:
        for line in range(height):
            ctypes.memmove(dst + line * dpitch, src + line * spitch, width)

    driver.give("upload", "memcpy2DAsync", stream, work)


def _get_current_stream(device: int = -1) -> _BaseStream:
    return _BaseStream(driver.cupy_stream(), driver.thread.device)


runtime = types.SimpleNamespace(
    getDeviceCount=lambda: driver.devices,
    getDevice=lambda: driver.thread.device,
    driverGetVersion=lambda: driver.version,
    memGetInfo=lambda: (2**36, 2**37),
    getDeviceProperties=lambda device: {"name": b"none", "multiProcessorCount": 132},
    cudaDevAttrMultiProcessorCount=16,
    deviceGetAttribute=lambda attribute, device: {16: driver.multiprocessors}[attribute],
    memcpyHostToDevice=1,
    memcpy2DAsync=_memcpy_2d_async,
    streamIsCapturing=lambda handle: handle in driver.graphs,
)
cuda = types.SimpleNamespace(
    Device=Device,
    Stream=Stream,
    ExternalStream=ExternalStream,
    Event=Event,
    alloc_pinned_memory=_alloc_pinned_memory,
    get_current_stream=_get_current_stream,
    set_allocator=lambda allocator: None,
    runtime=runtime,
)
