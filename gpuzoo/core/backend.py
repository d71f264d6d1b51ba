"""What the engine needs from a kind of device: arrays, a compiler and a launch."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from gpuzoo.core.codegen import Program
from gpuzoo.core.layout import Shapes

KERNELS = ("reset", "step", "rollout", "act", "state")

#: ``launch(store, argument, count, threads)``; see `Kernels`
Launch = Callable[[Any, int, int, int], None]


def prepared(launch: Launch, *arguments: Any) -> Callable[[], None]:
    """A launch with its arguments, for many calls: those of a ctypes function are converted once.

    Args:
        launch: one of `Kernels.launches`.
        arguments: as it takes them.
    """
    kinds = getattr(launch, "argtypes", None)
    if kinds is not None:
        arguments = tuple(kind(argument) for kind, argument in zip(kinds, arguments, strict=True))
    return functools.partial(launch, *arguments)


class Kernels(Protocol):
    """A compiled program.

    Attributes:
        launches: by the name of one of `KERNELS`, the function that runs it for all envs, or ``step`` for some. It
            returns before the work is done where the device has a queue of its own. Its arguments are

            - ``store``: from `Backend.store`;
            - ``argument``: what ``reset`` does and how many steps ``rollout`` makes; for ``step`` 0, or the device
              address of ``count`` int64 indices of the envs to step, all different; for ``state`` where to write;
            - ``count``: number of envs;
            - ``threads``: how many threads of a CPU share them.
        threads: what to give as that.
    """

    launches: Mapping[str, Launch]
    threads: int


class Unit(Protocol):
    """A compiled translation unit that is no game."""

    def bind(self, kernel: str, words: Sequence[int]) -> Callable[[int], None]:
        """Prepares a call, which is then made with nothing but its offset.

        On a GPU the entry is ``gz_<kernel>(Arguments, i64 offset)``: the struct is passed by value, each item has a
        thread, and the call returns before the work is done. On a CPU it is ``gz_launch_<kernel>(const Arguments *,
        i64 offset)``.

        Args:
            kernel: name of the entry.
            words: members of the struct, of 8 bytes each: integers and device addresses. The first is the number of
                items; without any the call does nothing.
        """


class Event(Protocol):
    """A point in the work that a stream was given."""

    def done(self) -> bool:
        """Whether the device has come past it."""

    def join(self) -> None:
        """Makes later work on the current stream wait for it; the host does not."""


class Stream(Protocol):
    """A queue of work of its own, beside the current stream."""

    def run(self, work: Callable[[], None]) -> Event:
        """Gives it launches and array operations, after all that the current stream was given so far.

        Arrays that the work reads must be kept until the event it returns is done or joined.
        """


class Backend(Protocol):
    """Arrays, compiler and launch for one device.

    Attributes:
        device: the device's name as users write it, ``"cpu"`` or ``"cuda:0"``.
        xp: the array module, NumPy or CuPy.
        interleaves: whether the kernels of a game with one lane want the elements of its fields with the envs along the
            last axis (see ``field_offset`` in prelude.cuh).
        scratch_per_env: whether scratch fields are arrays over all envs; a CPU's threads have their own.
    """

    device: str
    xp: ModuleType
    interleaves: bool
    scratch_per_env: bool

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A new array of zeros on the device."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array on the device, to be written in full."""

    def zeros_all(self, shapes: Shapes) -> tuple[list[Any], list[int]]:
        """Many new arrays of zeros, and the `address` of each."""

    def address(self, array: Any) -> int:
        """Where an array's data begins, as the kernels see it."""

    def store(self, members: np.ndarray[Any, Any]) -> Any:
        """What launches take as the struct `Store`.

        Args:
            members: uint64, in host memory, to be kept as long as there are launches: a CPU's kernels get its address.
                A GPU's get its content, with each launch.
        """

    def upload(self, array: Any, values: Any) -> None:
        """Writes values from host memory into an array, which they are broadcast to, in its dtype."""

    def fill(self, array: Any, byte: int) -> None:
        """Gives every byte of a contiguous array this value."""

    def compile(self, program: Program) -> Kernels:
        """Compiles a program, or finds it in the cache.

        Raises:
            RuntimeError: no compiler, or the compiler's message about the author's file and line.
        """

    def compile_unit(self, code: str, name: str, kernels: Sequence[str]) -> Unit:
        """Compiles any other translation unit, or finds it in the cache.

        Args:
            code: the source.
            name: what messages call it.
            kernels: its entries.

        Raises:
            RuntimeError: no compiler, or the compiler's message.
        """

    def take(self, array: Any, envs: Any) -> Any:
        """A contiguous copy of some envs' part of an array of the simulator, whose first axis is that of envs.

        Args:
            array: the array.
            envs: int64 indices, an array on the device; None for all.
        """

    def put(self, array: Any, envs: Any, rows: Any) -> None:
        """Writes what envs get into an array of the simulator.

        Args:
            array: the array, whose first axis is that of envs.
            envs: int64 indices, an array on the device; None for all.
            rows: in the array's dtype, one for each of these envs or one for all; on the device or not.
        """

    def copied(self, array: Any, dtype: Any = None) -> Any:
        """A contiguous copy of an array of any strides on the device, in another dtype where one is named."""

    def write(self, target: Any, array: Any) -> None:
        """Copies an array on the device into another one, both of any strides, in the dtype of the other."""

    def is_zero(self, array: Any) -> Any:
        """Where an array on the device is 0: a new array of bools."""

    def either(self, one: Any, other: Any) -> Any:
        """Where one of two arrays of bools on the device is True: a new array."""

    def any(self, array: Any, axis: int | None = None) -> Any:
        """Where there is a number that is not 0 along an axis of an array on the device; (1,) for all axes."""

    def to_numpy(self, array: Any) -> Any:
        """A NumPy copy of an array; waits for the device."""

    def staged(self, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        """Contiguous arrays in host memory, with one wait for all. It is the memory of the next call, too."""

    def ordered(self) -> AbstractContextManager[Any]:
        """Array operations inside are ordered with the kernels that are launched before and after."""

    def new_stream(self) -> Stream:
        """A stream beside the current one; where the device has no streams, one whose work is done at once."""

    def synchronize(self) -> None:
        """Waits until all launched work is done."""

    def release(self, arrays: list[Any]) -> None:
        """Lets go of arrays when the work that uses them is done: it waits, or keeps them while a graph is captured."""


class TorchDevice(Protocol):
    """What is looked at of a ``torch.device``."""

    @property
    def type(self) -> str:
        """Such as ``"cuda"``."""

    @property
    def index(self) -> int | None:
        """Which one, or None."""


#: how callers name a device
Device = str | TorchDevice


def make_backend(device: Device = "auto", threads: int | None = None) -> Backend:
    """Chooses the backend for a device.

    Args:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"``, ``"simt"`` (the thread form on the host, for tests), or ``"auto"``:
            CUDA where a GPU and CuPy are present, else the CPU; or a ``torch.device``.
        threads: CPU threads; all available ones by default.

    Raises:
        ValueError: an unknown device.
        RuntimeError: ``"cuda"`` without a GPU.
        ImportError: ``"cuda"`` without CuPy.
    """
    from gpuzoo.core.backend_cpu import CpuBackend

    device = str(device)
    if device == "auto":
        from gpuzoo.core.backend_cuda import available

        device = "cuda" if available() else "cpu"
    if device == "cpu":
        return CpuBackend(threads=threads)
    if device == "simt":
        return CpuBackend(simt=True)
    if re.fullmatch(r"cuda(:\d+)?", device):
        from gpuzoo.core.backend_cuda import CudaBackend

        return CudaBackend(int(device.partition(":")[2] or 0))
    raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:<index>' or 'auto', not {device!r}.")
