"""torch's CUDA on a build without it: tensors that say they are on a GPU, streams, and graphs that can be replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from . import cupy
from .driver import driver

Plain = torch._C.DisableTorchFunctionSubclass
#: what reads a tensor on the host, and so waits for the device
_READS = ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "nonzero", "equal", "is_nonzero", "unique")
#: what may have tensors of both kinds
_MIXES = ("copy_", "__setitem__", "__getitem__", "to", "type_as")
#: what is asked of a tensor without any work
_ASKS = (
    "__get__ size dim numel stride data_ptr is_contiguous is_floating_point view reshape unsqueeze squeeze expand "
    "detach requires_grad_ __len__ storage_offset untyped_storage ndimension is_complex is_conj is_neg element_size"
).split()


class CudaTensor(torch.Tensor):
    """A tensor of host memory that behaves as one of a GPU."""

    def host(self) -> torch.Tensor:
        """The same memory as a tensor of the host."""
        with Plain():
            return self.detach().as_subclass(torch.Tensor)

    @classmethod
    def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        return _called(func, args, kwargs)


class CudaParameter(CudaTensor, torch.nn.Parameter):
    """A parameter that was moved to a GPU."""


def _index_of(device: Any) -> int:
    return torch.device(device).index or 0


def _is_cuda(device: Any) -> bool:
    return device is not None and not isinstance(device, torch.dtype) and torch.device(device).type == "cuda"


def on_gpu(value: Any, device: int = 0) -> Any:
    """Tensors within a value as tensors on a GPU."""
    if isinstance(value, torch.Tensor) and not isinstance(value, CudaTensor):
        with Plain():
            value = value.as_subclass(CudaTensor)
    if isinstance(value, CudaTensor):
        value._device = getattr(value, "_device", device)
        return value
    if type(value) in (tuple, list):
        return type(value)(on_gpu(x, device) for x in value)
    if isinstance(value, tuple):  # such as what max(dim) returns
        return type(value)([on_gpu(x, device) for x in value])
    return value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for x in value:
            yield from _tensors(x)
    elif isinstance(value, dict):
        for x in value.values():
            yield from _tensors(x)


def _getter(func: Any) -> str:
    """The attribute that a getter is for."""
    return str(getattr(getattr(func, "__self__", None), "__name__", ""))


def _called(func: Any, args: Any, kwargs: Any) -> Any:
    """A function of torch with at least one tensor on a GPU."""
    name = str(getattr(func, "__name__", func))
    device = next((x._device for x in _tensors((args, kwargs)) if isinstance(x, CudaTensor)), 0)
    if name == "__get__":
        attribute = _getter(func)
        if isinstance(args[0], CudaTensor):
            if attribute == "device":
                return torch.device("cuda", device)
            if attribute in ("is_cuda", "is_cpu"):
                return attribute == "is_cuda"
    if name in ("numpy", "__array__"):
        raise TypeError(
            f"can't convert cuda:{device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if name == "_has_compatible_shallow_copy_type":
        return True
    if name == "__set__" and _getter(func) == "data" and isinstance(args[1], CudaTensor):
        with Plain():
            func(*args)
        if not isinstance(args[0], CudaTensor):  # Module.to changes where a parameter is
            args[0].__class__ = CudaParameter if isinstance(args[0], torch.nn.Parameter) else CudaTensor
            args[0]._device = device
        return None
    stream = driver.torch_stream(device)
    if name == "cpu" or (name == "to" and _target(args, kwargs, "cpu")):
        driver.wait(name, stream)
        driver.note("download", name, stream)
        with Plain():
            order = kwargs.get("memory_format", torch.preserve_format)
            return args[0].as_subclass(torch.Tensor).clone(memory_format=order)
    if name == "cuda" or (name == "to" and _target(args, kwargs, "cuda")):
        return _moved(name, args, kwargs, stream, device)
    others = [x for x in _tensors((args, kwargs)) if not isinstance(x, CudaTensor) and x.dim()]
    if others and name not in _MIXES and not name.startswith("__") and name != "__get__":
        raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found cuda:{device} and cpu!")
    if name in _READS:
        driver.wait(name, stream)
    elif name not in _ASKS:
        driver.note("torch", name, stream)
        if driver.graphs and stream not in driver.graphs:
            driver.refuse(f"torch's {name} on stream {stream} while another one is captured")
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": "cpu"}
    with Plain():
        result = func(*args, **kwargs)
    return on_gpu(result, device)


def _target(args: Any, kwargs: Any, kind: str) -> bool:
    """Whether ``Tensor.to`` is asked for a kind of device."""
    places = [kwargs.get("device"), *args[1:]]
    for place in places:
        if isinstance(place, (str, torch.device)) and torch.device(place).type == kind:
            return True
        if isinstance(place, torch.Tensor) and isinstance(place, CudaTensor) == (kind == "cuda"):
            return True
    return False


def _moved(name: str, args: Any, kwargs: Any, stream: int, device: int) -> Any:
    """``Tensor.to`` a GPU, and ``Tensor.cuda``."""
    source, dtypes = args[0], [x for x in (kwargs.get("dtype"), *args[1:]) if isinstance(x, torch.dtype)]
    dtypes += [x.dtype for x in args[1:] if isinstance(x, torch.Tensor)]
    if isinstance(source, CudaTensor):
        return source.to(dtypes[0]) if dtypes else source
    driver.note("upload", name, stream)
    if stream in driver.graphs:
        driver.refuse("an upload within a capture")
    with torch._C.DisableTorchFunction():
        copy = source.detach().clone()
        copy = copy.to(dtypes[0]) if dtypes else copy
    return on_gpu(copy.requires_grad_(source.requires_grad), device)


class Cuda(TorchFunctionMode):
    """Makes what is asked for on a GPU."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(getattr(func, "__name__", func))
        if func is torch.from_dlpack:
            return from_dlpack(*args, **kwargs)
        if any(isinstance(x, CudaTensor) for x in _tensors((args, kwargs))):
            return _called(func, args, kwargs)
        moves = name == "cuda" or (name == "to" and _target(args, kwargs, "cuda"))
        if moves:
            return _moved(name, args, kwargs, driver.torch_stream(), 0)
        device = kwargs.get("device")
        if _is_cuda(device):
            stream = driver.torch_stream(_index_of(device))
            driver.note("allocate", name, stream)
            driver.note("torch", name, stream)
            result = func(
                *args,
                **{**kwargs, "device": "cpu", "pin_memory": False}
                if "pin_memory" in kwargs
                else {**kwargs, "device": "cpu"},
            )
            result = result.clone() if name in ("as_tensor", "asarray") else result
            return on_gpu(result, _index_of(device))
        return func(*args, **kwargs)


def from_dlpack(source: Any, **kwargs: Any) -> Any:
    """As torch's: of an array with the consumer's stream, which is torch's current one; a capsule is taken as it is."""
    if isinstance(source, cupy.ndarray):
        stream = driver.torch_stream(source.device.id)
        capsule = source.__dlpack__(stream=1 if stream == 0 else stream)
        return on_gpu(torch._C._from_dlpack(capsule), source.device.id)
    if type(source).__name__ == "PyCapsule":
        return on_gpu(torch._C._from_dlpack(source), driver.thread.device)
    return on_gpu(torch._C._from_dlpack(source.__dlpack__()))


# ---- torch.cuda ----


class Stream:
    """In place of ``torch.cuda.Stream``."""

    def __init__(self, device: Any = None, priority: int = 0, handle: int | None = None) -> None:
        index = driver.thread.device if device is None else _index_of(device)
        driver.torch_is_initialized = True
        self.device, self.device_index = torch.device("cuda", index), index
        self.cuda_stream = driver.new_handle() if handle is None else handle

    def wait_stream(self, other: Stream) -> None:
        driver.note("wait", "stream", self.cuda_stream)

    def wait_event(self, event: Any) -> None:
        driver.note("wait", "event", self.cuda_stream)

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def synchronize(self) -> None:
        driver.wait("Stream.synchronize", self.cuda_stream)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    __hash__ = None  # type: ignore[assignment]


class Event:
    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        driver.note("record", "event", driver.torch_stream())

    def wait(self, stream: Any = None) -> None:
        driver.note("wait", "event", driver.torch_stream())

    def synchronize(self) -> None:
        driver.wait("Event.synchronize")


@contextlib.contextmanager
def use_stream(stream: Stream | None) -> Iterator[None]:
    """``torch.cuda.stream``."""
    if stream is None:
        yield
        return
    current = driver.thread.torch
    before = driver.torch_stream(stream.device_index)
    current[stream.device_index] = stream.cuda_stream
    try:
        yield
    finally:
        current[stream.device_index] = before


class _Recorder(TorchDispatchMode):
    """Puts the operations of torch into a graph. What changes a tensor is not done before the graph is replayed."""

    def __init__(self, graph: list[Callable[[], None]]) -> None:
        super().__init__()
        self._graph = graph

    def __torch_dispatch__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        changed = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        if changed:
            self._graph.append(lambda: _quietly(func, args, kwargs))
            if not schema.returns:
                return None
            names = [a.name for a in schema.arguments]
            values = [kwargs[a.name] if a.name in kwargs else args[names.index(a.name)] for a in changed]
            assert len(values) == len(schema.returns), schema
            return values[0] if len(values) == 1 else tuple(values)
        result = func(*args, **kwargs)
        if not schema.returns or any(r.alias_info is not None for r in schema.returns):
            return result  # a view: nothing is done
        places = [x for x in _tensors(result) if x.numel()]

        def replay() -> None:
            for place, value in zip(
                places, [x for x in _tensors(_quietly(func, args, kwargs)) if x.numel()], strict=True
            ):
                with Plain():
                    place.detach().copy_(value.detach())

        self._graph.append(replay)
        return result


def _quietly(func: Any, args: Any, kwargs: Any) -> Any:
    with torch._C.DisableTorchFunction(), torch.no_grad():
        return func(*args, **kwargs)


class CUDAGraph:
    """In place of ``torch.cuda.CUDAGraph``: what it holds is done by each replay."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._work: list[Callable[[], None]] | None = None

    def replay(self) -> None:
        if self._work is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        driver.note("launch", "graph", driver.torch_stream())
        if driver.graphs:
            driver.refuse("a replay within a capture")
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch._C._DisableTorchDispatch()) if False else None
            for work in self._work:
                work()

    def reset(self) -> None:
        self._work = None

    def pool(self) -> tuple[int, int]:
        return 0, 0


@contextlib.contextmanager
def capture(
    graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
) -> Iterator[None]:
    """``torch.cuda.graph``."""
    driver.wait("torch.cuda.graph")
    stream = Stream() if stream is None else stream
    with use_stream(stream):
        driver.begin_capture(stream.cuda_stream)
        try:
            with _Recorder(driver.graphs[stream.cuda_stream]):
                yield
        finally:
            graph._work = driver.end_capture(stream.cuda_stream)


def _initialize() -> None:
    driver.torch_is_initialized = True


def _allocations() -> int:
    return sum(entry.kind == "allocate" for entry in driver.log)


def _sync_debug_mode(mode: Any) -> None:
    driver.refuses_waits = mode in ("error", 2)


def put_in_place(monkeypatch: Any) -> None:
    """Replaces what gpuzoo and its tests use of ``torch.cuda``."""
    cuda = {
        "is_available": lambda: True,
        "is_initialized": lambda: driver.torch_is_initialized,
        "init": _initialize,
        "device_count": lambda: driver.devices,
        "current_device": lambda: driver.thread.device,
        "set_device": lambda device: setattr(driver.thread, "device", _index_of(device)),
        "device": lambda device: driver.on_device(device if isinstance(device, int) else _index_of(device)),
        "get_device_name": lambda device=None: "none",
        "current_stream": lambda device=None: _current(device),
        "default_stream": lambda device=None: Stream(device, handle=0),
        "stream": use_stream,
        "Stream": Stream,
        "ExternalStream": lambda handle, device=None: Stream(device, handle=handle),
        "Event": Event,
        "synchronize": lambda device=None: driver.wait("torch.cuda.synchronize"),
        "CUDAGraph": CUDAGraph,
        "graph": capture,
        "is_current_stream_capturing": lambda: driver.torch_stream() in driver.graphs,
        "memory_stats": lambda device=None: {"allocation.all.allocated": _allocations()},
        "memory_allocated": lambda device=None: 0,
        "set_sync_debug_mode": _sync_debug_mode,
        "_sleep": lambda cycles: driver.note("torch", "_sleep", driver.torch_stream()),
    }
    for name, value in cuda.items():
        monkeypatch.setattr(torch.cuda, name, value)
    raw = "_cuda_getCurrentRawStream"
    monkeypatch.setattr(torch._C, raw, lambda device: driver.torch_stream(device), raising=False)
    monkeypatch.setattr(torch, "from_dlpack", from_dlpack)
    monkeypatch.setattr(torch.utils.dlpack, "from_dlpack", from_dlpack)


def _current(device: Any) -> Stream:
    index = device if isinstance(device, int) or device is None else _index_of(device)
    return Stream(None if index is None else f"cuda:{index}", handle=driver.torch_stream(index))
