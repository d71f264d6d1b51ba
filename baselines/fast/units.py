"""Translation units of the trainers: compiled once, called with tensors that were checked before."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpuzoo.core import units
from gpuzoo.core.backend import Unit, make_backend

SOURCES = Path(__file__).parent / "kernels"

Words = ctypes.Array[ctypes.c_longlong]
Word = int | Tensor  # a member of a kernel's arguments: a number, or where a tensor lies


class Call:
    """A prepared call of a kernel, which keeps its tensors alive.

    Attributes:
        function: what makes the call; it takes the offset.
    """

    def __init__(self, function: Callable[[int], None], kept: object = None) -> None:
        self.function, self._kept = function, kept

    def __call__(self, offset: int = 0) -> None:
        """Makes the call, with a number that the kernel adds to its counter or ignores."""
        self.function(offset)


def prepare(unit: Unit, kernel: str, words: Sequence[Word]) -> Call:
    """A call of a kernel, whose arguments these words are, without the number of threads behind the first of them."""
    numbers = [x.data_ptr() if isinstance(x, Tensor) else x for x in words]
    return Call(unit.bind(kernel, [numbers[0], torch.get_num_threads(), *numbers[1:]]), words)


def words_of(call: Call) -> Words:
    """The arguments of a call that was prepared for the CPU: what is written there counts from its next run on."""
    assert isinstance(call.function, functools.partial)  # so `CpuBackend` binds
    words: Words = call.function.args[0]
    return words


def entry(call: Call) -> tuple[int, int]:
    """Addresses of the function of a call that was prepared for the CPU, and of its arguments: for host code."""
    function: Any = call.function
    return ctypes.cast(function.func, ctypes.c_void_p).value or 0, ctypes.addressof(words_of(call))


# ---- compiling ----


def unit_code(*files: str, constants: str = "") -> str:
    """A translation unit of the engine's headers and of files of ``kernels``.

    Args:
        files: names of files in ``kernels``, or code itself, which stand in this order after ``streams.cuh``.
        constants: C++ that stands before them.
    """
    parts = (SOURCES / x if x.endswith(".cuh") else x for x in files)
    return units.unit_code(SOURCES / "streams.cuh", constants, *parts)


@functools.cache
def compile_unit(code: str, device: str, *kernels: str) -> Unit:
    """A program with the kernels that it is to have."""
    return make_backend(device).compile_unit(code, kernels[0], kernels)


# ---- checks ----


def device_name(device: str | torch.device) -> str:
    """The device as the engine names it."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", str(device)):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:<index>', not {str(device)!r}.")
    place = torch.device(device)
    if place.type == "cpu" or place.index is not None:
        return str(place)
    return f"cuda:{torch.cuda.current_device() if torch.cuda.is_available() else 0}"


def shape_of(name: str, x: Tensor, meaning: str) -> torch.Size:
    """The shape of something that must be a tensor with as many axes as ``meaning`` has words."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch tensor, not {type(x).__name__}.")
    if x.dim() != len(meaning.split(",")):
        raise ValueError(f"{name} must have the shape ({meaning}), not {tuple(x.shape)}.")
    return x.shape


def check(name: str, x: Tensor, dtype: torch.dtype, shape: Sequence[int], device: str, strided: int = 0) -> None:
    """Refuses a tensor that a kernel would misread.

    Args:
        name: what messages call it.
        x: the tensor.
        dtype: what it must have.
        shape: what it must have.
        device: where it must be.
        strided: number of leading axes that may have any stride.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch tensor, not {type(x).__name__}.")
    if x.dtype != dtype:
        raise TypeError(f"{name} must be {dtype}, not {x.dtype}: convert it with .to({dtype}).")
    if str(x.device) != device:
        raise ValueError(f"{name} must be on {device} like the kernel, not on {x.device}.")
    if x.shape != torch.Size(shape):
        raise ValueError(f"{name} must have the shape {tuple(shape)}, not {tuple(x.shape)}.")
    if x.numel() and not x[(0,) * strided].is_contiguous():
        axes = " in its last axis" if strided else ""
        raise ValueError(f"{name} must be contiguous{axes}: its strides are {x.stride()}; see .contiguous().")
